//! The cases of evaluations, one by one and as files.

use std::{sync::LazyLock, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, TryStreamExt, stream};
use lectern_derive::handler;
use lectern_shared::{
    ids::{EvaluationCaseId, EvaluationId, TraceId, WorkspaceId},
    model::evaluation::EvaluationCase,
    secrets::{hex, sha256},
};
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{examples::case_example, view::CaseView};
use crate::{
    auth::{Caller, in_force::RequestCredential},
    error::{ApiError, ApiErrorKind},
    extract::{PathId, PathIds, ValidJson},
    idempotency::{CreateRequest, IdempotencyKey, creation_response, json_encoder},
    multipart::{MultipartForm, PartBudget},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list},
    services::{
        actor::Actor,
        creation::{CreationOutcome, ResponseEncoder},
        evaluations::{
            CaseChange, CaseFile, EvaluationService, ImportFormat, ImportOutcome, NewCase, NewCases,
            QuoteProblem, QuoteReport, TraceCase,
        },
        uploads::late,
    },
    turns::{FairSemaphore, PermitError, SemaphoreLimits},
    v1::users::NullBody,
};

/// Bytes of a file with cases.
const FILE: usize = 32 << 20;
/// The longest that a file may take to be sent, as long as a JSON body: it has one of the turns meanwhile.
const FILE_WITHIN: Duration = Duration::from_mins(2);
/// Files that are taken in at once in a process: each is in memory. A workspace has one turn, so that nobody has them all.
static IMPORTS: LazyLock<FairSemaphore<WorkspaceId>> = LazyLock::new(|| {
    FairSemaphore::new(SemaphoreLimits {
        at_once: 2,
        reserved: 0,
        of_one: 1,
        waiting: 2,
        // Less than proxies and clients wait for an answer.
        patience: Duration::from_secs(20),
    })
});
/// When a file that did not get its turn may be sent again, in seconds.
const AGAIN: u64 = 10;

pub(super) fn router() -> ApiRouter {
    let import = ApiRouter::new().routes(routes!(import)).without_body_limit();
    ApiRouter::new()
        .routes(routes!(index, create))
        .routes(routes!(change, remove))
        .routes(routes!(export))
        .routes(routes!(create_of_trace))
        .merge(import)
}

/// How cases are told that were added.
fn shown(made: &[EvaluationCase]) -> Vec<CaseView> {
    made.iter().cloned().map(CaseView::from).collect()
}

/// Add cases
///
/// Adds a question with what is to come of it, or up to 1,000 of them as `{"cases": […]}`. What answers is words of a document: they are
/// found again when it is cut or read otherwise.
#[utoipa::path(
    post,
    path = "/evaluations/{id}/cases",
    tag = "Evaluations",
    operation_id = "createEvaluationCases",
    params(("id" = String, Path, description = "The evaluation's id")),
    request_body(content = NewCase, example = json!({
        "question": "How long does the warranty last?",
        "expect": [{"documentId": "019a8f42-51d0-7e8c-a4f6-0b1c2d3e4f50", "quote": "The warranty lasts two years"}],
    })),
    responses(
        (
            status = 200,
            description = "The new cases",
            body = inline(SuccessResponse<Vec<CaseView>>),
            example = json!({"success": true, "data": [case_example()]}),
        ),
        (status = 404, description = "There is no such evaluation, or one of the documents is none of yours"),
    ),
)]
#[handler]
async fn create(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathId(id): PathId<EvaluationId>,
    CreateRequest { body, once }: CreateRequest<NewCases>,
) -> ApiResult {
    let show = json_encoder(|made: &Vec<EvaluationCase>| Ok(shown(made)));
    evaluations.add_cases(&caller.actor(), id, body, once, show).await.map(creation_response)
}

/// Make a case of a trace
///
/// Adds the question of a recorded answer to an evaluation: with the words of one of its citations as what is to be found, or as one that is
/// to be declined.
#[utoipa::path(
    post,
    path = "/traces/{id}/cases",
    tag = "Evaluations",
    operation_id = "createCaseOfTrace",
    params(("id" = String, Path, description = "The trace's id")),
    request_body(content = TraceCase, example = json!({
        "evaluationId": "019a8f60-11c2-7d30-8a4e-6b5c7d8e9f01", "citation": 1,
    })),
    responses(
        (
            status = 200,
            description = "The new case",
            body = inline(SuccessResponse<CaseView>),
            example = json!({"success": true, "data": case_example()}),
        ),
        (status = 404, description = "There is no such trace or evaluation, or the cited document is not there any more"),
    ),
)]
#[handler]
async fn create_of_trace(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathId(id): PathId<TraceId>,
    CreateRequest { body, once }: CreateRequest<TraceCase>,
) -> ApiResult {
    let show = json_encoder(|made: &Vec<EvaluationCase>| Ok(shown(made).into_iter().next()));
    evaluations.add_trace_case(&caller.actor(), id, body, once, show).await.map(creation_response)
}

/// List the cases of an evaluation
///
/// Shows its cases, newest first.
#[utoipa::path(
    get,
    path = "/evaluations/{id}/cases",
    tag = "Evaluations",
    operation_id = "listEvaluationCases",
    params(("id" = String, Path, description = "The evaluation's id")),
    responses((
        status = 200,
        description = "The cases",
        body = inline(SuccessResponse<Vec<CaseView>>),
        example = json!({"success": true, "data": [case_example()]}),
    )),
)]
#[handler]
async fn index(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathId(id): PathId<EvaluationId>,
    paging: Paging,
) -> ApiResult {
    list(paging, move |before, limit| {
        let (evaluations, actor) = (evaluations.clone(), caller.actor());
        async move {
            let cases = evaluations.cases(&actor, id, before, limit).await?;
            Ok(cases.into_iter().map(|case| (*case.id.as_uuid(), CaseView::from(case))).collect())
        }
    })
    .await
}

/// Change a case
///
/// Changes what is sent.
#[utoipa::path(
    patch,
    path = "/evaluations/{id}/cases/{case}",
    tag = "Evaluations",
    operation_id = "updateEvaluationCase",
    params(
        ("id" = String, Path, description = "The evaluation's id"),
        ("case" = String, Path, description = "The case's id"),
    ),
    request_body(content = CaseChange, example = json!({"expect": "decline"})),
    responses(
        (
            status = 200,
            description = "The case as it is now",
            body = inline(SuccessResponse<CaseView>),
            example = json!({"success": true, "data": case_example()}),
        ),
        (status = 409, description = "The evaluation would have more text than it may (`too_many_cases`)"),
    ),
)]
#[handler]
async fn change(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathIds(id, case): PathIds<EvaluationId, EvaluationCaseId>,
    ValidJson(body): ValidJson<CaseChange>,
) -> ApiResult {
    Ok(data(CaseView::from(evaluations.change_case(&caller.actor(), id, case, body).await?)))
}

/// Delete a case
///
/// Deletes a case. What came of it in earlier runs stays.
#[utoipa::path(
    delete,
    path = "/evaluations/{id}/cases/{case}",
    tag = "Evaluations",
    operation_id = "deleteEvaluationCase",
    params(
        ("id" = String, Path, description = "The evaluation's id"),
        ("case" = String, Path, description = "The case's id"),
    ),
    responses((
        status = 200,
        description = "It is deleted",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathIds(id, case): PathIds<EvaluationId, EvaluationCaseId>,
) -> ApiResult {
    evaluations.delete_case(&caller.actor(), id, case).await?;
    Ok(data(NullBody))
}

/// A file with cases.
#[derive(ToSchema)]
#[schema(as = EvaluationImport)]
#[expect(dead_code, reason = "it is read while it is sent")]
struct ImportForm {
    /// CSV with a header (`question`, `document` or `documentId`, `quote`, and if need be `grade`, `expect`, `note`), lines of JSON as the
    /// export has them, or a ZIP file in the form of BEIR (`queries.jsonl`, `qrels/test.tsv`). At most 32 MiB.
    #[schema(value_type = String, format = Binary)]
    file: (),
}

/// What became of a file with cases.
#[derive(Serialize, ToSchema)]
#[schema(as = EvaluationImported)]
struct ImportedView {
    /// Cases that were added.
    added: usize,
    /// Cases that were left out: the evaluation has the same ones already, or the file has them twice; and questions of a collection in the
    /// form of BEIR of which none of what answers them is among the documents.
    skipped: usize,
    /// Lines that quote what is not in their documents as they are now, at most 100, and what else was not looked for. They are added
    /// all the same.
    warnings: Vec<WarningView>,
}

/// What is to be known of a line of a file with cases.
#[derive(Serialize, ToSchema)]
#[schema(as = EvaluationImportWarning)]
struct WarningView {
    /// Where it stands, such as `line 3`; `file` for all of it.
    path: String,
    /// What is to be known.
    message: String,
}

impl From<&ImportOutcome> for ImportedView {
    fn from(made: &ImportOutcome) -> Self {
        let QuoteReport { lines, more, unlooked } = &made.quotes;
        let warning = |path: String, message: String| WarningView { path, message };
        let mut warnings: Vec<WarningView> = lines
            .iter()
            .map(|(line, problem)| {
                let message = match problem {
                    QuoteProblem::NotSaid => "The document does not say what is quoted.",
                    QuoteProblem::NotSearchable => {
                        "What is quoted could not be looked for: the document cannot be searched, or not yet."
                    }
                };
                warning(format!("line {line}"), message.to_owned())
            })
            .collect();
        if *more > 0 {
            warnings.push(warning("file".to_owned(), format!("There are more such lines: {more}.")));
        }
        if *unlooked > 0 {
            let message = format!("There was no time to look for all quotations: {unlooked} were not.");
            warnings.push(warning("file".to_owned(), message));
        }
        Self { added: made.added, skipped: made.known + made.foreign, warnings }
    }
}

/// Import cases
///
/// Adds the cases of a file: all of them, or none when something is wrong; but those that the evaluation has already are left out.
/// Documents are named by their id, by what their metadata has as `_id`, or by their name. With an `Idempotency-Key`, the same request is
/// one with the same file and name.
#[utoipa::path(
    post,
    path = "/evaluations/{id}/import",
    tag = "Evaluations",
    operation_id = "importEvaluationCases",
    params(("id" = String, Path, description = "The evaluation's id")),
    request_body(
        content = ImportForm,
        content_type = "multipart/form-data",
        example = json!({"file": "(the file)"}),
    ),
    responses(
        (
            status = 200,
            description = "How many cases were added",
            body = inline(SuccessResponse<ImportedView>),
            example = json!({"success": true, "data": {"added": 120, "skipped": 0, "warnings": [
                {"path": "line 3", "message": "The document does not say what is quoted."},
            ]}}),
        ),
        (status = 409, description = "None of the collection's documents is here, or there would be too many cases"),
        (status = 413, description = "The file is too large"),
    ),
)]
#[handler]
async fn import(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathId(id): PathId<EvaluationId>,
    request: Request,
) -> ApiResult {
    let show = json_encoder(|made: &ImportOutcome| Ok(ImportedView::from(made)));
    import_file(&evaluations, &caller.actor(), id, request, None, show).await.map(creation_response)
}

/// Adds the cases of the file of a form. With an `Idempotency-Key`, the same request is one with the same file and name. A page cannot set
/// that header, and has what stands for the key in the part `nonce`, before the file.
pub(crate) async fn import_file(
    evaluations: &EvaluationService,
    actor: &Actor,
    id: EvaluationId,
    request: Request,
    nonce: Option<&str>,
    tell: impl ResponseEncoder<ImportOutcome>,
) -> ApiResult<CreationOutcome> {
    let key = IdempotencyKey::of(request.headers())?;
    let path = request.uri().path().to_owned();
    let workspace = evaluations.find(actor, id).await?.owner.workspace_id;
    let opened = request.extensions().get::<RequestCredential>().cloned();
    let reading = Box::pin(async {
        // Held until the cases are added.
        let turn = IMPORTS.acquire(workspace).await.map_err(of_turn)?;
        ApiResult::Ok((turn, read_within(request, nonce, FILE_WITHIN).await?))
    });
    let (turn, SentCases { name, bytes, word }) = match opened {
        Some(opened) => opened.while_in_force(reading).await?,
        None => reading.await?,
    };
    let (turn, (hash, bytes)) = turn.run_and_keep(move || (hex(&sha256(&bytes)), bytes)).await?;
    let content = format!("{hash} {name}");
    let key = if nonce.is_some() { IdempotencyKey::of_form(word.as_deref(), &content) } else { key };
    let once = key.once(actor, &path, content.as_bytes());
    let file = CaseFile { format: ImportFormat::of(&name, &bytes), bytes, turn: Some(turn) };
    evaluations.import(actor, id, file, once, tell).await
}

fn of_turn(error: PermitError) -> ApiError {
    let message = match error {
        PermitError::QueueFull => "Too many files with cases of this workspace wait; try again shortly.",
        PermitError::Late => "Too many files with cases are taken in at this moment; try again shortly.",
    };
    let error = ApiError::new(ApiErrorKind::Unavailable, "too_many_imports", message);
    ApiError { retry_after: Some(AGAIN), ..error }
}

/// A file with cases, as it was sent.
struct SentCases {
    name: String,
    bytes: Vec<u8>,
    /// What stood in the part that tells one form of a page from another one.
    word: Option<String>,
}

/// The file of a form, if all of it comes within this time.
async fn read_within(request: Request, nonce: Option<&str>, within: Duration) -> Result<SentCases, ApiError> {
    timeout(within, read_file(request, nonce)).await.map_err(|_| late())?
}

/// The file of a form, and what stands before it in the part that `nonce` names.
async fn read_file(request: Request, nonce: Option<&str>) -> Result<SentCases, ApiError> {
    let mut form = MultipartForm::of(request).await?;
    let mut others = PartBudget::within(1 << 20);
    let mut word = None;
    while let Some(part) = form.next().await? {
        if nonce.is_some() && part.name() == nonce {
            word = others.read_word(part).await?;
            continue;
        }
        if part.name() != Some("file") {
            others.read(part, 0).await?;
            continue;
        }
        let mut file = part.into_file();
        let mut bytes = Vec::new();
        while let Some(piece) = file.bytes.try_next().await? {
            if bytes.len() + piece.len() > FILE {
                let message = format!("A file with cases may have at most {FILE} bytes.");
                return Err(ApiError::new(ApiErrorKind::TooLarge, "too_large", message));
            }
            bytes.extend_from_slice(&piece);
        }
        return Ok(SentCases { name: file.name, bytes, word });
    }
    Err(ApiError::invalid_field("file", "is required: CSV, lines of JSON, or a ZIP file in the form of BEIR"))
}

/// Export cases
///
/// All cases, oldest first, as lines of JSON that can be imported again.
#[utoipa::path(
    get,
    path = "/evaluations/{id}/export",
    tag = "Evaluations",
    operation_id = "exportEvaluationCases",
    params(("id" = String, Path, description = "The evaluation's id")),
    responses((
        status = 200,
        description = "A case in each line",
        body = String,
        content_type = "application/x-ndjson",
        example = json!("{\"question\":\"Who founded it?\",\"expect\":\"decline\"}\n"),
    )),
)]
#[handler]
async fn export(
    State(evaluations): State<EvaluationService>,
    caller: Caller,
    PathId(id): PathId<EvaluationId>,
) -> ApiResult<Response> {
    let actor = caller.actor();
    // The first lines are read before the answer begins, so that what is wrong is an ordinary error.
    let first = evaluations.export(&actor, id, Uuid::nil().into()).await?;
    let after = first.as_ref().map(|(_, last)| *last);
    let rest = stream::try_unfold(after, move |after| {
        let (evaluations, actor) = (evaluations.clone(), actor.clone());
        async move {
            let Some(after) = after else { return Ok::<_, std::io::Error>(None) };
            let page = evaluations.export(&actor, id, after).await;
            let page = page.map_err(|error| std::io::Error::other(error.message))?;
            Ok(page.map(|(lines, last)| (lines, Some(last))))
        }
    });
    let lines = stream::iter(first.map(|(lines, _)| Ok(lines))).chain(rest);
    let name = format!("attachment; filename=\"evaluation-{id}.jsonl\"");
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_str(&name).map_err(|_| ApiError::internal())?),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_does_not_come_to_its_end_is_given_up() {
        let head =
            "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"cases.csv\"\r\n\r\nquestion";
        let pieces = stream::iter([Ok::<_, std::io::Error>(head)]).chain(stream::pending());
        let request = axum::http::Request::builder();
        let request = request.header(header::CONTENT_TYPE, "multipart/form-data; boundary=x");
        let request = request.body(Body::from_stream(pieces)).unwrap();
        // Far less than the silence for which a form is given up in any case.
        let refused = read_within(request, None, Duration::from_millis(50)).await.err().unwrap();
        assert_eq!((refused.kind.status(), refused.code), (408, "timeout"));
    }
}
