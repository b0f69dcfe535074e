//! What is read of cases and runs, besides plain values, and how it is described.

use lectern_shared::{
    ids::DocumentId,
    model::{
        evaluation::{DeclineWord, ExpectedOutcome, GoldQuote, simply},
        search::SearchMode,
    },
};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ArrayBuilder, ObjectBuilder, RefOr, Schema,
        schema::{AnyOfBuilder, Type},
    },
};

use crate::fields::{FieldRule, GivenId, JsonFields, as_whole};

/// Things that answer one question: collections of others have hundreds.
pub(super) const MOST_GOLD: usize = 2_000;
/// Longest quotation, in characters.
pub(super) const QUOTE: usize = 10_000;
/// The highest grade.
const GRADE: u32 = 100;

/// What is to come of a question, with ids as they were given.
pub(crate) struct GivenExpectation(pub(super) Result<ExpectedOutcome, lectern_shared::ids::InvalidId>);

/// `"decline"`, or places that answer.
pub(super) struct ExpectSchema;

impl PartialSchema for ExpectSchema {
    fn schema() -> RefOr<Schema> {
        let text =
            |description: &str| ObjectBuilder::new().schema_type(Type::String).description(Some(description));
        let gold = ObjectBuilder::new()
            .property("documentId", text("One of your documents."))
            .required("documentId")
            .property(
                "quote",
                text(
                    "Words of it that answer, as they stand in its text. Any passage of it will do without.",
                ),
            )
            .property(
                "grade",
                ObjectBuilder::new()
                    .schema_type(Type::Integer)
                    .minimum(Some(0))
                    .maximum(Some(GRADE))
                    .description(Some("How well it answers; 1 when left out.")),
            );
        let gold = ArrayBuilder::new().items(gold).min_items(Some(1)).max_items(Some(MOST_GOLD));
        let decline = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(["decline"]))
            .description(Some("Nothing in the documents answers it, and that is to be said."));
        AnyOfBuilder::new()
            .item(gold)
            .item(decline)
            .description(Some(
                "What is to come of the question: any of these places answers it, or it is to be declined.",
            ))
            .into()
    }
}

impl ToSchema for ExpectSchema {}

/// What is said where nothing says what is to come of a question.
pub(super) const NO_OUTCOME: &str = "is required: \"decline\", or a list of {documentId, quote}";

/// What is to come of a question, with the places that answer it as they were given.
pub(super) enum GivenOutcome<T> {
    /// It is to be declined.
    Decline,
    /// Any of these answers it.
    Gold(Vec<T>),
}

/// Reads what is to come of a question, each of the places that answer it by `place`.
pub(super) fn outcome<T>(
    fields: &mut JsonFields<'_>,
    name: &str,
    place: impl FnMut(&mut JsonFields<'_>) -> T,
) -> Option<GivenOutcome<T>> {
    match fields.get(name)? {
        Value::String(word) if word == "decline" => Some(GivenOutcome::Decline),
        Value::Array(items) if !items.is_empty() => {
            fields.objects(name, MOST_GOLD, place).map(GivenOutcome::Gold)
        }
        _ => {
            fields.refuse(name, "must be \"decline\", or a list of {documentId, quote}");
            None
        }
    }
}

/// Reads what is to come of a question.
pub(super) fn expect(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<GivenExpectation> {
    let given = match outcome(fields, rule.name, gold)? {
        GivenOutcome::Decline => Ok(ExpectedOutcome::Decline(DeclineWord::Decline)),
        GivenOutcome::Gold(gold) => gold.into_iter().collect::<Result<_, _>>().map(ExpectedOutcome::Gold),
    };
    Some(GivenExpectation(given))
}

fn gold(fields: &mut JsonFields<'_>) -> GivenId<GoldQuote> {
    fields.only(&["documentId", "quote", "grade"]);
    let id = fields.text("documentId", 100).parse::<DocumentId>();
    let quote = fields.optional_text("quote", QUOTE).filter(|quote| !quote.trim().is_empty());
    let grade = grade(fields);
    Ok(GoldQuote { document_id: id?, quote, grade })
}

/// Reads how well a place answers.
pub(super) fn grade(fields: &mut JsonFields<'_>) -> u32 {
    let Some(grade) = fields.get("grade") else { return simply() };
    let read = as_whole(grade).and_then(|grade| u32::try_from(grade).ok()).filter(|grade| *grade <= GRADE);
    if read.is_none() {
        fields.refuse("grade", format!("must be a whole number from 0 to {GRADE}"));
    }
    read.unwrap_or_default()
}

/// Reads a way of searching.
pub(super) fn modes(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<SearchMode> {
    fields.get(rule.name)?;
    fields.choice(rule.name, &SearchMode::choices())
}
