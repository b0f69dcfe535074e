//! The cases of evaluations.

use std::collections::{HashMap, HashSet};

use lectern_db::{
    self as db,
    evaluations::{
        self,
        cases::{self, NewEvaluationCase},
    },
};
use lectern_derive::RequestBody;
use lectern_shared::{
    ids::{DocumentId, EvaluationCaseId, EvaluationId, TraceId, WorkspaceId},
    model::{
        Json,
        audit::AuditAction,
        evaluation::{DeclineWord, Evaluation, EvaluationCase, ExpectedOutcome, GoldQuote, simply},
    },
};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    EvaluationService, MOST_CASES,
    readers::{self, ExpectSchema, GivenExpectation, NO_OUTCOME},
    unknown,
};
use crate::{
    error::{ApiError, ApiErrorKind},
    fields::{FromFields, GivenId, JsonFields, SenderTrust},
    services::{
        actor::{Actor, Permission},
        creation::{CreationOutcome, IdempotentRequest, ResponseEncoder},
    },
};

/// Cases that one request adds.
const MOST_AT_ONCE: usize = 1_000;
/// Bytes of what is to come of one case, as JSON; and with the question, of all cases of a set: runs have all of it in memory.
const CASE_BYTES: usize = 256 << 10;
const SET_BYTES: u64 = 64 << 20;
/// Documents that are looked for at a time.
const LOOKED_UP: usize = 1_000;

/// A new case.
#[derive(RequestBody, ToSchema)]
pub(crate) struct NewCase {
    /// The question.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    question: String,
    /// What is to come of it.
    #[schema(value_type = ExpectSchema)]
    #[body(with = readers::expect)]
    expect: Option<GivenExpectation>,
    /// Anything that you want to say of it.
    #[schema(max_length = 10_000)]
    note: Option<String>,
}

/// One new case, or several as `cases`.
pub(crate) struct NewCases(Vec<NewCase>);

impl FromFields for NewCases {
    const SENDER: SenderTrust = NewCase::SENDER;

    fn from_fields(fields: &mut JsonFields<'_>) -> Self {
        if fields.get("cases").is_none() {
            return Self(vec![read_case(fields)]);
        }
        fields.only(&["cases"]);
        let cases = fields.objects("cases", MOST_AT_ONCE, read_case);
        if cases.as_ref().is_some_and(Vec::is_empty) {
            fields.refuse("cases", "must have at least one case");
        }
        Self(cases.unwrap_or_default())
    }
}

fn read_case(fields: &mut JsonFields<'_>) -> NewCase {
    if fields.get("expect").is_none() {
        fields.refuse("expect", NO_OUTCOME);
    }
    NewCase::from_fields(fields)
}

/// What is to be different about a case. What is left out stays as it is.
#[derive(RequestBody, ToSchema)]
#[body(change)]
#[expect(clippy::option_option, reason = "a note is left alone, taken away or set")]
pub(crate) struct CaseChange {
    /// The question.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S", nullable = false)]
    question: Option<String>,
    /// What is to come of it.
    #[schema(value_type = Option<ExpectSchema>, nullable = false)]
    #[body(with = readers::expect)]
    expect: Option<GivenExpectation>,
    /// Anything that you want to say of it; null for nothing.
    #[schema(max_length = 10_000)]
    note: Option<Option<String>>,
}

/// What is made a case of a recorded answer.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct TraceCase {
    /// The evaluation that it is added to.
    #[schema(value_type = String)]
    evaluation_id: GivenId<EvaluationId>,
    /// The number of the citation that answers, as in the answer's `[n]`: its quote becomes what is expected. The question is to be declined
    /// when this is null or left out.
    #[schema(value_type = Option<u32>, minimum = 1)]
    citation: Option<u32>,
    /// Anything that you want to say of it.
    #[schema(max_length = 10_000)]
    note: Option<String>,
}

/// What is made a case of a recorded answer, however it is told which citation is meant.
struct CitedCase {
    evaluation: GivenId<EvaluationId>,
    /// The citation that answers; the question is to be declined without.
    citation: Option<CitationChoice>,
    note: Option<String>,
}

/// One of an answer's citations.
#[derive(Clone, Copy, Debug)]
enum CitationChoice {
    /// The first with this number, and of several the first that is verified.
    Number(u32),
    /// The one at this place of their list, from 1.
    Place(u32),
}

impl From<TraceCase> for CitedCase {
    fn from(TraceCase { evaluation_id, citation, note }: TraceCase) -> Self {
        Self { evaluation: evaluation_id, citation: citation.map(CitationChoice::Number), note }
    }
}

fn unknown_case() -> ApiError {
    ApiError::not_found("case")
}

fn too_many() -> ApiError {
    let message = format!("An evaluation may have at most {MOST_CASES} cases.");
    ApiError::new(ApiErrorKind::Conflict, "too_many_cases", message)
}

/// Bytes of what is to come of a case.
fn expected_size(expect: &ExpectedOutcome) -> Result<usize, ApiError> {
    Ok(serde_json::to_vec(expect).map_err(|_| ApiError::internal())?.len())
}

/// # Errors
/// When what is to come of a case has too many bytes.
fn check_size(expect: &ExpectedOutcome) -> Result<(), ApiError> {
    if expected_size(expect)? > CASE_BYTES {
        let message = format!("may have at most {CASE_BYTES} bytes in one case");
        return Err(ApiError::invalid_field("expect", &message));
    }
    Ok(())
}

/// Bytes of a case that count in its set.
fn size(question: &str, expect: &ExpectedOutcome) -> Result<u64, ApiError> {
    Ok((question.len() + expected_size(expect)?) as u64)
}

/// # Errors
/// When a set would have too many bytes.
fn check_set(bytes: u64) -> Result<(), ApiError> {
    if bytes > SET_BYTES {
        let message = format!(
            "The questions of an evaluation and what answers them may have at most {SET_BYTES} bytes."
        );
        return Err(ApiError::new(ApiErrorKind::Conflict, "too_many_cases", message));
    }
    Ok(())
}

impl EvaluationService {
    /// Adds cases to a set.
    ///
    /// # Errors
    /// When a document is not the workspace's, or the set has as many as it may.
    pub(crate) async fn add_cases(
        &self,
        actor: &Actor,
        id: EvaluationId,
        NewCases(new): NewCases,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<Vec<EvaluationCase>>,
    ) -> Result<CreationOutcome, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let missing = || ApiError::not_found("document");
        let case = |new: NewCase| {
            let GivenExpectation(expect) = new.expect.ok_or_else(ApiError::internal)?;
            Ok(NewEvaluationCase {
                id: EvaluationCaseId::generate(),
                question: new.question,
                expect: expect.map_err(|_| missing())?,
                note: new.note,
            })
        };
        let new: Vec<NewEvaluationCase> = new.into_iter().map(case).collect::<Result<_, ApiError>>()?;
        self.check_documents(workspace, new.iter().map(|case| &case.expect)).await?;
        let (tx, made) = self.insert_cases(actor, id, new).await?;
        self.creations.commit(tx, once, &made, tell).await
    }

    /// Adds cases whose documents are the workspace's, in a transaction that is to be committed.
    async fn insert_cases(
        &self,
        actor: &Actor,
        id: EvaluationId,
        new: Vec<NewEvaluationCase>,
    ) -> Result<(db::Tx, Vec<EvaluationCase>), ApiError> {
        let (mut tx, evaluation) = self.lock_set(actor, id).await?;
        let made = self.insert_locked(&mut tx, actor, &evaluation, new).await?;
        Ok((tx, made))
    }

    /// One set, and a transaction in which nobody else changes it or its cases.
    pub(super) async fn lock_set(
        &self,
        actor: &Actor,
        id: EvaluationId,
    ) -> Result<(db::Tx, Evaluation), ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let mut tx = self.db.begin().await?;
        db::locks::lock_workspace(&mut tx, workspace).await?;
        let evaluation = evaluations::lock(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        Ok((tx, evaluation))
    }

    /// Adds cases to a set that is locked.
    pub(super) async fn insert_locked(
        &self,
        tx: &mut db::Tx,
        actor: &Actor,
        evaluation: &Evaluation,
        new: Vec<NewEvaluationCase>,
    ) -> Result<Vec<EvaluationCase>, ApiError> {
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let (workspace, id) = (evaluation.owner.workspace_id, evaluation.id);
        let now = self.clock.now();
        let more = i64::try_from(new.len()).unwrap_or(i64::MAX);
        if evaluation.cases.saturating_add(more) > MOST_CASES {
            return Err(too_many());
        }
        let mut bytes = cases::stored_bytes(tx, workspace, id).await?;
        for case in &new {
            check_size(&case.expect)?;
            bytes = bytes.saturating_add(size(&case.question, &case.expect)?);
        }
        check_set(bytes)?;
        cases::insert(tx, workspace, id, Some(actor.user), &new, now).await?;
        let made = new.into_iter().map(|case| EvaluationCase {
            id: case.id,
            workspace_id: workspace,
            evaluation_id: id,
            question: case.question,
            expect: Json(case.expect),
            note: case.note,
            created_at: now,
            updated_at: now,
        });
        Ok(made.collect())
    }

    /// Sees to it that everything that is expected is the workspace's.
    async fn check_documents<'a>(
        &self,
        workspace: WorkspaceId,
        expected: impl Iterator<Item = &'a ExpectedOutcome>,
    ) -> Result<(), ApiError> {
        let ids: HashSet<DocumentId> =
            expected.flat_map(ExpectedOutcome::gold).map(|gold| gold.document_id).collect();
        let ids: Vec<DocumentId> = ids.into_iter().collect();
        for ids in ids.chunks(LOOKED_UP) {
            if !db::documents::has_all(&self.db, workspace, ids).await? {
                return Err(ApiError::not_found("document"));
            }
        }
        Ok(())
    }

    /// The cases of a set before an id, newest first.
    pub(crate) async fn cases(
        &self,
        actor: &Actor,
        id: EvaluationId,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<EvaluationCase>, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        evaluations::find(&self.db, workspace, id).await?.ok_or_else(unknown)?;
        Ok(cases::list(&self.db, workspace, id, before.into(), limit).await?)
    }

    /// Changes a case, which is as it is returned afterwards.
    ///
    /// # Errors
    /// When a document is not the workspace's, or the set would have more bytes than it may.
    pub(crate) async fn change_case(
        &self,
        actor: &Actor,
        id: EvaluationId,
        case: EvaluationCaseId,
        change: CaseChange,
    ) -> Result<EvaluationCase, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let expect = match change.expect {
            Some(GivenExpectation(expect)) => Some(expect.map_err(|_| ApiError::not_found("document"))?),
            None => None,
        };
        if let Some(expect) = &expect {
            self.check_documents(workspace, std::iter::once(expect)).await?;
            check_size(expect)?;
        }
        let mut tx = self.db.begin().await?;
        db::locks::lock_workspace(&mut tx, workspace).await?;
        evaluations::lock(&mut tx, workspace, id).await?.ok_or_else(unknown_case)?;
        let found = cases::find(&mut tx, workspace, id, case).await?;
        let mut case = found.ok_or_else(unknown_case)?;
        let before = size(&case.question, &case.expect.0)?;
        case.question = change.question.unwrap_or(case.question);
        if let Some(expect) = expect {
            case.expect = Json(expect);
        }
        if let Some(note) = change.note {
            case.note = note;
        }
        let after = size(&case.question, &case.expect.0)?;
        // Sets that were made before questions counted may have more, and can be made smaller.
        if after > before {
            let all = cases::stored_bytes(&mut tx, workspace, id).await?;
            check_set(all.saturating_sub(before).saturating_add(after))?;
        }
        case.updated_at = self.clock.now();
        if !cases::update(&mut tx, workspace, &case, case.updated_at).await? {
            return Err(unknown_case());
        }
        tx.commit().await?;
        Ok(case)
    }

    /// Deletes a case. What came of it in runs stays.
    pub(crate) async fn delete_case(
        &self,
        actor: &Actor,
        id: EvaluationId,
        case: EvaluationCaseId,
    ) -> Result<(), ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let mut tx = self.db.begin_essential().await?;
        if !cases::delete(&mut tx, workspace, id, case).await? {
            return Err(unknown_case());
        }
        self.audit.note(&mut tx, actor, AuditAction::Deleted, "evaluation_case", case).await?;
        Ok(tx.commit().await?)
    }

    /// Makes a case of a recorded answer.
    ///
    /// # Errors
    /// When the answer does not cite this, or what it cites is not there any more.
    pub(crate) async fn add_trace_case(
        &self,
        actor: &Actor,
        trace: TraceId,
        new: TraceCase,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<Vec<EvaluationCase>>,
    ) -> Result<CreationOutcome, ApiError> {
        self.add_cited_case(actor, trace, new.into(), once, tell).await
    }

    /// Makes a case of a recorded answer whose citation is chosen by its place in their list, from 1: several words may be cited
    /// under one number.
    ///
    /// # Errors
    /// As [`EvaluationService::add_trace_case`].
    pub(crate) async fn add_trace_case_at(
        &self,
        actor: &Actor,
        trace: TraceId,
        evaluation: GivenId<EvaluationId>,
        place: Option<u32>,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<Vec<EvaluationCase>>,
    ) -> Result<CreationOutcome, ApiError> {
        let new = CitedCase { evaluation, citation: place.map(CitationChoice::Place), note: None };
        self.add_cited_case(actor, trace, new, once, tell).await
    }

    /// What the documents are called that answer cases, as far as they are there still: of many only some.
    pub(crate) async fn document_names(
        &self,
        actor: &Actor,
        cases: &[EvaluationCase],
    ) -> Result<HashMap<DocumentId, String>, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let gold = cases.iter().flat_map(|case| case.expect.0.gold());
        let ids: HashSet<Uuid> = gold.map(|gold| *gold.document_id.as_uuid()).take(LOOKED_UP).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let named = db::audit::names(&self.db, workspace, "document", &ids).await?;
        Ok(named.into_iter().map(|(id, name)| (id.into(), name)).collect())
    }

    async fn add_cited_case(
        &self,
        actor: &Actor,
        trace: TraceId,
        new: CitedCase,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<Vec<EvaluationCase>>,
    ) -> Result<CreationOutcome, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let trace = self.traces.find_with_record(actor, trace).await?;
        let id = new.evaluation.map_err(|_| unknown())?;
        let question = trace.question().ok_or_else(|| {
            let message = "The question is not kept with this trace.";
            ApiError::new(ApiErrorKind::Conflict, "question_not_kept", message)
        })?;
        let expect = match new.citation {
            None => ExpectedOutcome::Decline(DeclineWord::Decline),
            Some(choice) => {
                ExpectedOutcome::Gold(vec![cited(&trace.trace.body.0, choice).ok_or_else(|| {
                    ApiError::invalid_field("citation", "must be the number of one of the answer's citations")
                })?])
            }
        };
        self.check_documents(workspace, std::iter::once(&expect)).await?;
        let case = NewEvaluationCase { id: EvaluationCaseId::generate(), question, expect, note: new.note };
        let (tx, made) = self.insert_cases(actor, id, vec![case]).await?;
        self.creations.commit(tx, once, &made, tell).await
    }
}

/// What a citation of an answer cites.
fn cited(trace: &Value, choice: CitationChoice) -> Option<GoldQuote> {
    let citations = trace.get("citations")?.as_array()?;
    let citation = match choice {
        CitationChoice::Number(number) => {
            let own = || citations.iter().filter(move |citation| citation["n"] == number);
            own().find(|citation| citation["verified"] == true).or_else(|| own().next())?
        }
        CitationChoice::Place(place) => citations.get(usize::try_from(place).ok()?.checked_sub(1)?)?,
    };
    let quote = citation.get("quote").and_then(Value::as_str).filter(|quote| !quote.trim().is_empty());
    Some(GoldQuote {
        document_id: citation.get("documentId")?.as_str()?.parse().ok()?,
        quote: quote.map(str::to_owned),
        grade: simply(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_citations_with_one_number_the_verified_one_or_the_chosen_one_is_taken() {
        let document = DocumentId::generate();
        let citation = |n: u32, quote: &str, verified: bool| json!({"n": n, "documentId": document, "quote": quote, "verified": verified});
        let trace = json!({"citations": [
            citation(2, "of another passage", true),
            citation(1, "made up by the model", false),
            citation(1, "said by the document", true),
            citation(3, "only told again", false),
        ]});
        let quote = |choice| cited(&trace, choice).and_then(|gold| gold.quote);
        for (choice, expected) in [
            (CitationChoice::Number(1), Some("said by the document")),
            (CitationChoice::Number(3), Some("only told again")),
            (CitationChoice::Number(4), None),
            (CitationChoice::Place(0), None),
            (CitationChoice::Place(1), Some("of another passage")),
            (CitationChoice::Place(2), Some("made up by the model")),
            (CitationChoice::Place(3), Some("said by the document")),
            (CitationChoice::Place(5), None),
        ] {
            assert_eq!(quote(choice).as_deref(), expected);
        }
    }
}
