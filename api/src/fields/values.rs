//! The types that fields of a body have, and how each is read.

use std::str::FromStr;

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, AskerId, CollectionId, DocumentId, EvaluationId, InvalidId, PromptId, TagId, ToolId},
    model::{
        agent::AgentType,
        document::DocumentType,
        publication::PublicationAccess,
        search::SearchMode,
        sync::{PageDiscovery, SyncSourceType},
        tool::ToolType,
        workspace::Role,
    },
};
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::{FieldRule, FieldValue, FromFields, JsonFields, as_whole, blank_problem};

/// The id of something of the caller's. Text that cannot be an id is an unknown id, which the service answers.
pub(crate) type GivenId<T> = Result<T, InvalidId>;

/// Ids of which one cannot be an id, or all can.
pub(crate) type GivenIds<T> = Result<Vec<T>, InvalidId>;

/// An id by which callers name what is theirs.
pub(super) trait NamedId: FromStr<Err = InvalidId> {
    /// What several are called.
    const MANY: &'static str;
}

macro_rules! named_ids {
    ($($name:ident: $many:literal,)*) => {$(
        impl NamedId for $name {
            const MANY: &'static str = $many;
        }
    )*};
}
named_ids! {
    AgentId: "agent ids",
    AskerId: "ids of askers",
    DocumentId: "document ids",
    CollectionId: "collection ids",
    EvaluationId: "evaluation ids",
    PromptId: "prompt ids",
    TagId: "tag ids",
    ToolId: "tool ids",
}

impl<T: NamedId> FieldValue for GivenId<T> {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        match fields.get(rule.name)? {
            Value::String(text) => Some(text.parse()),
            _ => {
                fields.refuse(rule.name, "must be a string");
                None
            }
        }
    }

    fn stand_in() -> Self {
        Err(InvalidId)
    }
}

impl<T: NamedId> FieldValue for GivenIds<T> {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        let texts = fields.texts(rule.name, rule.max_items, T::MANY)?;
        Some(texts.into_iter().map(str::parse).collect())
    }

    fn stand_in() -> Self {
        Err(InvalidId)
    }
}

/// Enums that are one word of several; the variant stands in for a wrong word.
macro_rules! words {
    ($($name:ident: $stand_in:ident,)*) => {$(
        impl FieldValue for $name {
            fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
                fields.get(rule.name)?;
                fields.choice(rule.name, &Self::choices())
            }

            fn stand_in() -> Self {
                Self::$stand_in
            }

            fn missing() -> String {
                format!("is required: one of {}", Self::choices())
            }
        }
    )*};
}
words! {
    AgentType: ChatVendor,
    DocumentType: Txt,
    PageDiscovery: Auto,
    PublicationAccess: Members,
    Role: Asker,
    SearchMode: Hybrid,
    SyncSourceType: Site,
    ToolType: Search,
}

impl FieldValue for String {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        let text = fields.optional_text(rule.name, rule.max_length)?;
        if let Some(problem) = blank_problem(&text).filter(|_| rule.min_length > 0) {
            fields.refuse(rule.name, problem);
        }
        Some(text)
    }

    fn stand_in() -> Self {
        Self::new()
    }
}

impl FieldValue for SecretString {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        String::read(fields, rule).map(Self::from)
    }

    fn stand_in() -> Self {
        Self::default()
    }
}

impl FieldValue for Vec<String> {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        let texts = fields.texts(rule.name, rule.max_items, "strings")?;
        Some(texts.into_iter().map(str::to_owned).collect())
    }

    fn stand_in() -> Self {
        Self::new()
    }
}

impl FieldValue for bool {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        fields.boolean(rule.name)
    }

    fn stand_in() -> Self {
        false
    }
}

/// A count of at least 1, as a number or as digits.
impl FieldValue for u32 {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        fields.count(rule.name)
    }

    fn stand_in() -> Self {
        1
    }
}

/// A whole number between two bounds, as a number.
impl FieldValue for usize {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        let FieldRule { name, minimum, maximum, .. } = rule;
        let value = fields.get(name)?;
        let within = value.as_f64().is_some_and(|number| (*minimum..=*maximum).contains(&number));
        let number = as_whole(value).filter(|_| within).and_then(|number| Self::try_from(number).ok());
        if number.is_none() {
            fields.refuse(name, format_args!("must be a whole number between {minimum} and {maximum}"));
        }
        number
    }

    fn stand_in() -> Self {
        0
    }
}

impl FieldValue for f64 {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        fields.number(rule.name, rule.minimum, rule.maximum)
    }

    fn stand_in() -> Self {
        0.0
    }
}

/// A moment, in RFC 3339.
impl FieldValue for Timestamp {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        fields.get(rule.name)?;
        let time = fields.parsed(rule.name);
        if time.is_none() {
            fields.refuse(rule.name, "must be a time such as 2026-01-31T08:00:00Z");
        }
        time
    }

    fn stand_in() -> Self {
        Self::from_micros(0)
    }
}

impl FieldValue for Map<String, Value> {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        fields.object(rule.name)
    }

    fn stand_in() -> Self {
        Self::new()
    }
}

/// A body within another.
impl<T: FromFields> FieldValue for T {
    fn read(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Self> {
        fields.nested(rule.name, T::from_fields)
    }

    fn stand_in() -> Self {
        let nothing = Map::new();
        let mut errors = Vec::new();
        let mut fields =
            JsonFields { map: &nothing, path: String::new(), is_change: false, errors: &mut errors };
        T::from_fields(&mut fields)
    }
}
