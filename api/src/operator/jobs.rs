//! Jobs, one by one.

use std::str::FromStr;

use axum::{
    Json,
    extract::{FromRequestParts, State},
    http::request::Parts,
    response::{IntoResponse, Response},
};
use lectern_db::operator_jobs::{self, JobAction, JobCursor};
use lectern_derive::handler;
use lectern_shared::{ids::JobId, model::job::JobPhase};
use serde_json::json;

use super::view::{self, JobView};
use crate::{
    auth::AdminCaller,
    error::{ApiError, FieldError},
    extract::{PathId, parameter},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, data},
    services::jobs::{JobFilter, JobList, JobOperator, JobService, JobSnapshot},
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new()
        .routes(routes!(index))
        .routes(routes!(find))
        .routes(routes!(retry))
        .routes(routes!(discard))
}

/// Jobs that are listed without a limit.
const LIMIT: u32 = 50;

/// What is asked of the list.
struct JobListQuery {
    filter: JobFilter,
    limit: u32,
    after: Option<JobCursor>,
}

impl<S: Sync> FromRequestParts<S> for JobListQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut wrong = Vec::new();
        let query = Self {
            filter: JobFilter {
                standing: parse(parts, "state", &mut wrong, || {
                    format!("must be one of {}", JobPhase::choices())
                }),
                user: parameter(&parts.uri, "user"),
                document: parse(parts, "document", &mut wrong, || "must be the id of a document".to_owned()),
                code: parse(parts, "code", &mut wrong, || BAD_CODE.to_owned()).map(|JobErrorCode(code)| code),
            },
            limit: parse(parts, "limit", &mut wrong, || "must be a number between 1 and 200".to_owned())
                .map_or(LIMIT, |JobListLimit(limit)| limit),
            after: parse(parts, "cursor", &mut wrong, || {
                "must be the nextCursor of an earlier answer".to_owned()
            }),
        };
        if wrong.is_empty() { Ok(query) } else { Err(ApiError::invalid(wrong)) }
    }
}

fn parse<T: FromStr>(
    parts: &Parts,
    name: &str,
    wrong: &mut Vec<FieldError>,
    problem: impl FnOnce() -> String,
) -> Option<T> {
    let parsed = parameter(&parts.uri, name)?.parse().ok();
    if parsed.is_none() {
        wrong.push(FieldError::new(name, &problem()));
    }
    parsed
}

/// How many to give.
struct JobListLimit(u32);

impl FromStr for JobListLimit {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().ok().filter(|limit| (1..=operator_jobs::BATCH).contains(limit)).map(Self).ok_or(())
    }
}

/// The code of an error.
pub(super) struct JobErrorCode(pub(super) String);

pub(super) const BAD_CODE: &str = "must be a code of small letters, digits and `_`, such as not_found";

impl FromStr for JobErrorCode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let good = (1..=100).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if good { Ok(Self(text.to_owned())) } else { Err(()) }
    }
}

/// List jobs
///
/// Shows the jobs of all users. Those that are `queued`, `due` or `waiting` come in the order in which workers take them; those
/// that are `running` with the longest running first; those that are `dead` or `cancelled` with the last that ended first; and
/// without a state, or with `done`, those of the newest documents come first.
#[utoipa::path(
    get,
    path = "/admin/jobs",
    tag = "Operation",
    operation_id = "listJobs",
    params(
        ("state" = Option<String>, Query, description = "Only jobs that stand so: `queued` (`due` or `waiting`), `due`, `waiting`, `running`, `dead`, `done` or `cancelled`"),
        ("user" = Option<String>, Query, description = "Only the jobs of this user, by e-mail or id"),
        ("document" = Option<String>, Query, description = "Only the job of this document, by its id"),
        ("code" = Option<String>, Query, description = "Only jobs whose last attempt failed with this code, such as `embedder_failed`"),
        ("limit" = Option<u32>, Query, description = "How many to give; 50 without it", minimum = 1, maximum = 200),
    ),
    responses((
        status = 200,
        description = "The jobs",
        body = inline(SuccessResponse<Vec<JobView>>),
        example = json!({"success": true, "data": [view::example()]}),
    )),
)]
#[handler]
async fn index(State(jobs): State<JobService>, _: AdminCaller, query: JobListQuery) -> ApiResult {
    let JobListQuery { filter, limit, after } = query;
    let JobList { jobs, at, next } = jobs.list(filter, after, limit).await?;
    let jobs: Vec<JobView> = jobs.into_iter().map(|job| JobView::new(job, at)).collect();
    let mut body = json!({"success": true, "data": jobs});
    if let (Some(next), Some(body)) = (next, body.as_object_mut()) {
        body.insert("nextCursor".to_owned(), next.to_string().into());
    }
    Ok(Json(body).into_response())
}

/// Get a job
///
/// Shows one job.
#[utoipa::path(
    get,
    path = "/admin/jobs/{id}",
    tag = "Operation",
    operation_id = "getJob",
    params(("id" = String, Path, description = "The job's id")),
    responses((
        status = 200,
        description = "The job",
        body = inline(SuccessResponse<JobView>),
        example = json!({"success": true, "data": view::example()}),
    )),
)]
#[handler]
async fn find(State(jobs): State<JobService>, _: AdminCaller, PathId(id): PathId<JobId>) -> ApiResult {
    Ok(show(jobs.find(id).await?))
}

fn show(JobSnapshot { job, at }: JobSnapshot) -> Response {
    data(JobView::new(job, at))
}

/// Retry a job
///
/// Makes a job due at once, with all its attempts before it, as when the document's owner asks for an ingestion. One that was to
/// make the index again from stored passages still does, unless it had ended well. One that is due already stays as it is. Until
/// it has succeeded, searches find the document as it was.
#[utoipa::path(
    post,
    path = "/admin/jobs/{id}/retry",
    tag = "Operation",
    operation_id = "retryJob",
    params(("id" = String, Path, description = "The job's id")),
    responses(
        (
            status = 200,
            description = "The job as it is now",
            body = inline(SuccessResponse<JobView>),
            example = json!({"success": true, "data": view::due_example()}),
        ),
        (status = 409, description = "A worker holds the job"),
    ),
)]
#[handler]
async fn retry(State(jobs): State<JobService>, admin: AdminCaller, PathId(id): PathId<JobId>) -> ApiResult {
    Ok(show(jobs.change_and_find(operator(&admin), JobAction::Retry, id).await?))
}

/// Discard a job
///
/// Stops a job, be it queued or running, and lays a dead one aside, as when the document's owner stops the ingestion: it is
/// `cancelled` then. The document stays, and what can be searched of it. A job that has ended stays as it is.
#[utoipa::path(
    post,
    path = "/admin/jobs/{id}/discard",
    tag = "Operation",
    operation_id = "discardJob",
    params(("id" = String, Path, description = "The job's id")),
    responses((
        status = 200,
        description = "The job as it is now",
        body = inline(SuccessResponse<JobView>),
        example = json!({"success": true, "data": view::cancelled_example()}),
    )),
)]
#[handler]
async fn discard(State(jobs): State<JobService>, admin: AdminCaller, PathId(id): PathId<JobId>) -> ApiResult {
    Ok(show(jobs.change_and_find(operator(&admin), JobAction::Discard, id).await?))
}

/// On whose behalf this request changes jobs.
pub(super) fn operator(admin: &AdminCaller) -> JobOperator {
    JobOperator::Admin(admin.id())
}
