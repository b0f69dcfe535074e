//! Cases of evaluations in a browser: by a form, from a file, and from an answer.

use axum::{
    extract::{FromRequestParts, Request, State},
    response::{IntoResponse, Response},
};
use lectern_derive::{RequestBody, handler};
use lectern_shared::ids::{EvaluationCaseId, EvaluationId, TraceId};
use serde_json::json;
use utoipa::ToSchema;

use super::{imported::query, page};
use crate::{
    dashboard::{
        confirm::Confirmed,
        frame::{NONCE, SubmittedForm, Visitor},
    },
    error::{ApiError, ApiErrorKind, FieldError, FieldErrorCause},
    error_response::status_of,
    extract::{PathId, PathIds},
    fields::GivenId,
    response::ApiResult,
    services::{
        agents::AgentService,
        asking::AskService,
        creation::CreationOutcome,
        evaluations::{CaseFile, EvaluationService, ImportFormat, ImportOutcome},
    },
    state::AppState,
    v1::import_file,
};

/// A case as a form has it.
#[derive(RequestBody, ToSchema)]
pub(super) struct CaseForm {
    /// The question.
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    question: String,
    /// The document that answers, by its name or its id; the question is to be declined without.
    #[schema(max_length = 1_000)]
    document: Option<String>,
    /// Words of it that answer.
    #[schema(max_length = 10_000)]
    quote: Option<String>,
    /// Anything worth saying of it.
    #[schema(max_length = 10_000)]
    note: Option<String>,
}

/// An answer that becomes a case, as its page has it.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct TraceCaseForm {
    /// The evaluation that it is added to.
    #[schema(value_type = String)]
    evaluation_id: GivenId<EvaluationId>,
    /// The place of the citation that answers among the answer's, from 1; the question is to be declined without.
    #[schema(value_type = Option<u32>, minimum = 1)]
    place: Option<u32>,
}

/// The page of an evaluation, which says what was added.
fn page_of(id: EvaluationId, added: CreationOutcome) -> String {
    let (CreationOutcome::Now(query) | CreationOutcome::Before(query)) = added;
    format!("evaluations/{id}?{}", String::from_utf8_lossy(&query))
}

/// What is wrong with a file of one line that is made of a form, which has a field for what the line names.
fn of_form(mut error: ApiError) -> ApiError {
    const WANTED: &str =
        "must be the name of one document alone, or its id, which the address of its page ends with";
    let of_document = |field: &&mut FieldError| field.cause == FieldErrorCause::UnknownDocument;
    for field in error.fields.iter_mut().filter(of_document) {
        *field = FieldError::new("document", WANTED);
    }
    error
}

/// Adds one, as if it stood in a file.
#[handler]
pub(super) async fn add(
    State(evaluations): State<EvaluationService>,
    PathId(id): PathId<EvaluationId>,
    SubmittedForm { visitor, body, once }: SubmittedForm<CaseForm>,
) -> ApiResult {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let expect = match given(&body.document) {
        None if given(&body.quote).is_some() => {
            return Err(ApiError::invalid_field("document", "is required: the document that says so"));
        }
        None => json!("decline"),
        Some(document) => json!([{"document": document.trim(), "quote": given(&body.quote)}]),
    };
    let line = json!({"question": body.question, "expect": expect, "note": given(&body.note)}).to_string();
    let file = CaseFile { format: ImportFormat::JsonLines, bytes: line.into_bytes(), turn: None };
    let told = |made: &ImportOutcome| Ok(query(made, false));
    let added = evaluations.import(&visitor.actor(), id, file, once, told).await.map_err(of_form)?;
    Ok(visitor.go(&page_of(id, added)))
}

/// Adds those of a file. What is wrong with it is said on the page that it was chosen on.
#[handler]
pub(super) async fn import(
    State(state): State<AppState>,
    State(evaluations): State<EvaluationService>,
    State(asking): State<AskService>,
    State(former): State<AgentService>,
    request: Request,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let visitor = match Visitor::from_request_parts(&mut parts, &state).await {
        Ok(visitor) => visitor,
        Err(response) => return response,
    };
    let imported = async {
        let PathId(id) = PathId::<EvaluationId>::from_request_parts(&mut parts, &state).await?;
        let uri = parts.uri.clone();
        let (actor, request) = (visitor.actor(), Request::from_parts(parts, body));
        let told = |made: &ImportOutcome| Ok(query(made, true));
        let read = import_file(&evaluations, &actor, id, request, Some(NONCE), told).await;
        // Else there is nothing to show the page of, or the service has failed.
        let is_of_file =
            |error: &ApiError| error.kind != ApiErrorKind::NotFound && !status_of(error).is_server_error();
        match read {
            Ok(added) => ApiResult::Ok(visitor.go(&page_of(id, added))),
            Err(error) if is_of_file(&error) && !visitor.is_script() => {
                page(&evaluations, &asking, &former, visitor, &uri, id, Some(&error)).await
            }
            Err(error) => Err(error),
        }
    };
    imported.await.into_response()
}

/// Deletes one.
#[handler]
pub(super) async fn delete(
    State(evaluations): State<EvaluationService>,
    PathIds(id, case): PathIds<EvaluationId, EvaluationCaseId>,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    evaluations.delete_case(&visitor.actor(), id, case).await?;
    Ok(visitor.go(&format!("evaluations/{id}?said=removed")))
}

/// Makes one of an answer.
#[handler]
pub(super) async fn add_of_trace(
    State(evaluations): State<EvaluationService>,
    PathId(id): PathId<TraceId>,
    SubmittedForm { visitor, body, once }: SubmittedForm<TraceCaseForm>,
) -> ApiResult {
    let TraceCaseForm { evaluation_id, place } = body;
    let actor = visitor.actor();
    evaluations.add_trace_case_at(&actor, id, evaluation_id, place, once, |_| Ok(Vec::new())).await?;
    Ok(visitor.go(&format!("traces/{id}?said=added")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_is_not_known_is_told_by_its_cause_and_in_no_other_words() {
        let told = ["names the document \"Rules\", which is not there", "names the document twice"];
        let [unknown, other] = told.map(|message| FieldError::new("line 1", message));
        let unknown = FieldError { cause: FieldErrorCause::UnknownDocument, ..unknown };
        let error = of_form(ApiError::invalid(vec![unknown, other.clone()]));
        let paths: Vec<_> = error.fields.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, ["document", "line 1"]);
        assert_eq!(error.fields[1], other);
        // Clients get what they got before.
        assert_eq!(json!(other), json!({"path": "line 1", "message": "names the document twice"}));
    }
}
