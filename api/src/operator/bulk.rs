//! Many jobs at once, after an outage for instance.

use axum::extract::State;
use lectern_db::operator_jobs::JobAction;
use lectern_derive::{RequestBody, handler};
use lectern_shared::model::job::JobPhase;
use serde::Serialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type},
};

use super::jobs::{BAD_CODE, JobErrorCode, operator};
use crate::{
    auth::AdminCaller,
    extract::ValidJson,
    fields::{FieldRule, JsonFields},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, data},
    services::jobs::{JobFilter, JobService},
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(retry)).routes(routes!(discard))
}

/// Longest code, in characters.
const CODE: usize = 100;

/// Which jobs are to be retried: those that meet everything that is set.
#[derive(RequestBody, ToSchema)]
struct JobsToRetry {
    /// How they stand.
    #[schema(value_type = RetriedJobState)]
    #[body(with = retried_state)]
    state: Option<JobPhase>,
    /// Only those of this user, by e-mail or id.
    #[schema(required = false, max_length = 320)]
    user: Option<String>,
    /// Only those whose last attempt failed with this code, such as `embedder_failed`.
    #[schema(required = false, pattern = "^[a-z0-9_]{1,100}$")]
    #[body(with = code)]
    code: Option<String>,
}

/// Which jobs are to be discarded: those that meet everything that is set.
#[derive(RequestBody, ToSchema)]
struct JobsToDiscard {
    /// How they stand; `queued` is `due` and `waiting`.
    #[schema(value_type = DiscardedJobState)]
    #[body(with = discarded_state)]
    state: Option<JobPhase>,
    /// Only those of this user, by e-mail or id.
    #[schema(required = false, max_length = 320)]
    user: Option<String>,
    /// Only those whose last attempt failed with this code, such as `embedder_failed`.
    #[schema(required = false, pattern = "^[a-z0-9_]{1,100}$")]
    #[body(with = code)]
    code: Option<String>,
}

/// How jobs stand that can be retried.
struct RetriedJobState;

impl PartialSchema for RetriedJobState {
    fn schema() -> RefOr<Schema> {
        describe(JobAction::Retry, "How jobs stand that can be retried.")
    }
}

impl ToSchema for RetriedJobState {}

/// How jobs stand that can be discarded.
struct DiscardedJobState;

impl PartialSchema for DiscardedJobState {
    fn schema() -> RefOr<Schema> {
        describe(JobAction::Discard, "How jobs stand that can be discarded.")
    }
}

impl ToSchema for DiscardedJobState {}

fn describe(action: JobAction, description: &str) -> RefOr<Schema> {
    let words: Vec<&str> = action.standings().iter().map(|standing| standing.as_str()).collect();
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
        .enum_values(Some(words))
        .into()
}

/// How the jobs stand. It has to be said, so that a forgotten filter is not all that there are.
fn state(fields: &mut JsonFields<'_>, rule: &FieldRule, action: JobAction) -> Option<JobPhase> {
    let choices = action.choices();
    let state = fields.choice(rule.name, &choices)?;
    if !action.standings().contains(&state) {
        fields.refuse(rule.name, format_args!("must be one of {choices}"));
    }
    Some(state)
}

fn retried_state(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<JobPhase> {
    state(fields, rule, JobAction::Retry)
}

fn discarded_state(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<JobPhase> {
    state(fields, rule, JobAction::Discard)
}

fn code(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let code = fields.optional_text(rule.name, CODE)?;
    match code.parse() {
        Ok(JobErrorCode(code)) => Some(code),
        Err(()) => {
            fields.refuse(rule.name, BAD_CODE);
            None
        }
    }
}

/// How many jobs were changed.
#[derive(Serialize, ToSchema)]
#[schema(as = JobsChanged)]
struct ChangedView {
    /// Their number.
    jobs: usize,
}

/// Retry many jobs
///
/// Makes all jobs due at once that meet the filter, as `POST /admin/jobs/{id}/retry` does one: after an outage, those that died
/// of it. When the answer does not come to its end, send the same again: what was done is done.
#[utoipa::path(
    post,
    path = "/admin/jobs/retry",
    tag = "Operation",
    operation_id = "retryJobs",
    request_body(content = JobsToRetry, example = json!({"state": "dead", "code": "embedder_failed"})),
    responses((
        status = 200,
        description = "How many are due now",
        body = inline(SuccessResponse<ChangedView>),
        example = json!({"success": true, "data": {"jobs": 17}}),
    )),
)]
#[handler]
async fn retry(
    State(jobs): State<JobService>,
    admin: AdminCaller,
    ValidJson(body): ValidJson<JobsToRetry>,
) -> ApiResult {
    let JobsToRetry { state, user, code } = body;
    let filter = JobFilter { standing: state, user, document: None, code };
    let jobs = jobs.change_all(operator(&admin), JobAction::Retry, filter).await?;
    Ok(data(ChangedView { jobs }))
}

/// Discard many jobs
///
/// Stops all jobs that meet the filter, as `POST /admin/jobs/{id}/discard` does one. When the answer does not come to its end,
/// send the same again: what was done is done.
#[utoipa::path(
    post,
    path = "/admin/jobs/discard",
    tag = "Operation",
    operation_id = "discardJobs",
    request_body(content = JobsToDiscard, example = json!({"state": "dead", "user": "ada@example.com"})),
    responses((
        status = 200,
        description = "How many are cancelled now",
        body = inline(SuccessResponse<ChangedView>),
        example = json!({"success": true, "data": {"jobs": 17}}),
    )),
)]
#[handler]
async fn discard(
    State(jobs): State<JobService>,
    admin: AdminCaller,
    ValidJson(body): ValidJson<JobsToDiscard>,
) -> ApiResult {
    let JobsToDiscard { state, user, code } = body;
    let filter = JobFilter { standing: state, user, document: None, code };
    let jobs = jobs.change_all(operator(&admin), JobAction::Discard, filter).await?;
    Ok(data(ChangedView { jobs }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{error::ApiError, fields::validate};

    fn wrong<T>(read: Result<T, ApiError>) -> Vec<String> {
        read.map_or_else(|error| error.fields.into_iter().map(|field| field.path).collect(), |_| Vec::new())
    }

    #[test]
    fn a_filter_says_how_the_jobs_stand() {
        let retry = |body: Value| wrong(validate::<JobsToRetry>(&body));
        let discard = |body: Value| wrong(validate::<JobsToDiscard>(&body));
        assert_eq!(retry(json!({})), ["state"]);
        assert_eq!(discard(json!({"user": "ada@example.com"})), ["state"]);
        for state in ["dead", "waiting", "cancelled"] {
            assert_eq!(retry(json!({"state": state, "user": null})), [""; 0], "{state}");
        }
        for state in ["queued", "due", "running", "done", "lost"] {
            assert_eq!(retry(json!({"state": state})), ["state"], "{state}");
        }
        for state in ["dead", "queued", "due", "waiting", "running"] {
            assert_eq!(discard(json!({"state": state, "code": "not_found"})), [""; 0], "{state}");
        }
        for state in ["done", "cancelled"] {
            assert_eq!(discard(json!({"state": state})), ["state"], "{state}");
        }
        for code in ["", "Not found", "a%", &"x".repeat(101)] {
            assert_eq!(retry(json!({"state": "dead", "code": code})), ["code"], "{code}");
        }
    }
}
