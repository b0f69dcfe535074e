//! What a workspace uses and did, and how the service does: for owners and operators.

use askama::Template;
use axum::{
    extract::{FromRequestParts, State},
    http::{StatusCode, Uri, request::Parts},
    response::{IntoResponse, Response},
};
use lectern_db::{audit::AuditEvent, operator_jobs::JobAction};
use lectern_derive::handler;
use lectern_runtime::{Runtime, health};
use lectern_shared::{
    clock::{Clock, Timestamp},
    ids::{AuditEventId, JobId, UserId},
    model::{
        Json,
        audit::AuditAction,
        job::{JobPhase, JobRecord},
    },
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};
use url::form_urlencoded::Serializer;
use uuid::Uuid;

use super::{
    PagePolicy,
    frame::{Frame, Visitor},
    html,
    text::{self, filters},
};
use crate::{
    audit_query::audit_filter,
    error::ApiError,
    extract::{PathId, parameter},
    response::ApiResult,
    services::{
        actor::Permission,
        audit::{AuditNames, AuditService},
        jobs::{JobFilter, JobOperator, JobService},
        traces::TraceService,
        workspaces::UsageService,
    },
    state::AppState,
};

/// Days of the chart.
const DAYS: u16 = 30;
const DAY: Duration = Duration::from_hours(24);
/// The chart, in its own units.
const CHART_WIDTH: u64 = 600;
const CHART_TOP: u64 = 16;
const CHART_HEIGHT: u64 = 106;
/// Rows of a page.
const ROWS: u32 = 50;

#[derive(Template)]
#[template(path = "usage.html")]
struct UsagePage {
    frame: Frame,
    rows: Vec<UsageRow>,
    days: Vec<DayBar>,
    first_day: String,
    last_day: String,
    /// Answers of the day with the most.
    most: u64,
}

struct UsageRow {
    label: &'static str,
    used: String,
    allowed: String,
    /// How much of how much.
    share: Option<(u64, u64)>,
}

struct DayBar {
    date: String,
    count: u64,
    x: u64,
    y: u64,
    width: u64,
    height: u64,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    rows: Vec<AuditRow>,
    /// Every action, and what it is called.
    actions: Vec<(&'static str, String)>,
    /// What was asked for, by its name.
    asked: BTreeMap<&'static str, String>,
    /// The query of the next page.
    next: Option<String>,
    /// That of the first page, where this is a further one.
    first: Option<String>,
}

impl AuditPage {
    /// What was asked for under a name.
    fn asked(&self, name: &str) -> &str {
        self.asked.get(name).map_or("", String::as_str)
    }

    /// Whether a time was asked for under a name: a field for days would leave it out.
    fn is_time(&self, name: &str) -> bool {
        self.asked(name).parse::<Timestamp>().is_ok()
    }
}

struct AuditRow {
    at: Timestamp,
    actor: UserId,
    who: String,
    what: String,
    /// What is said further of it.
    details: String,
    kind: String,
    /// Of what it was done to, if that has one and is there still.
    name: String,
    id: String,
    address: String,
}

#[derive(Template)]
#[template(path = "jobs.html")]
struct JobsPage {
    frame: Frame,
    /// Each part of the service, how it is, and what else is known of it.
    parts: Vec<(String, String, String)>,
    states: Vec<&'static str>,
    state: String,
    rows: Vec<JobRow>,
    /// The query of the next page.
    next: Option<String>,
}

struct JobRow {
    id: JobId,
    kind: String,
    document: String,
    email: String,
    state: String,
    tries: i64,
    error: String,
    queued_at: Timestamp,
    can_retry: bool,
}

fn row(label: &'static str, used: u64, allowed: Option<u64>, written: fn(u64) -> String) -> UsageRow {
    UsageRow {
        label,
        used: written(used),
        allowed: allowed.map(written).unwrap_or_default(),
        share: allowed.map(|allowed| (used.min(allowed), allowed.max(1))),
    }
}

/// Shows what the workspace holds and uses.
#[handler]
pub(super) async fn usage(
    State(usage): State<UsageService>,
    State(traces): State<TraceService>,
    State(clock): State<Clock>,
    visitor: Visitor,
) -> ApiResult {
    let actor = visitor.actor();
    actor.may(Permission::ManageWorkspace)?;
    let (used, quotas) = (usage.of(&actor).await?, actor.quotas());
    let mut rows = vec![
        row("Documents", used.documents, quotas.documents, |count| count.to_string()),
        row("Stored", used.bytes, quotas.bytes, text::size),
        row("Tokens of models this month", used.tokens_this_month, quotas.tokens_per_month, |count| {
            count.to_string()
        }),
    ];
    rows.push(UsageRow {
        label: "Cost of models this month",
        used: cost_words(used.cost_this_month, used.tokens_this_month, quotas.cost_per_month),
        allowed: quotas.cost_per_month.map(|cost| format!("{cost:.2}")).unwrap_or_default(),
        share: None,
    });
    let first = clock.now().minus(DAY * u32::from(DAYS - 1));
    let counts: HashMap<String, u64> = traces.per_day(&actor, first).await?.into_iter().collect();
    let dates: Vec<String> = (0..DAYS).map(|day| date(first.plus(DAY * u32::from(day)))).collect();
    let most = counts.values().copied().max().unwrap_or_default();
    let bars = dates
        .iter()
        .zip(0..)
        .map(|(date, at)| bar(date, at, counts.get(date).copied().unwrap_or_default(), most));
    let page = UsagePage {
        first_day: dates.first().cloned().unwrap_or_default(),
        last_day: dates.last().cloned().unwrap_or_default(),
        days: bars.collect(),
        most,
        rows,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// What models cost. Where none that was asked has a price, nothing is known of it, which is not that it was for nothing.
fn cost_words(cost: f64, tokens: u64, allowed: Option<f64>) -> String {
    if cost <= 0.0 && tokens > 0 && allowed.is_none() {
        "not known: none of the models that were asked has a price".to_owned()
    } else {
        format!("{cost:.2}")
    }
}

fn date(at: Timestamp) -> String {
    let text = at.to_string();
    text.get(..10).unwrap_or(&text).to_owned()
}

fn bar(date: &str, at: u64, count: u64, most: u64) -> DayBar {
    let step = CHART_WIDTH / u64::from(DAYS);
    let height = (count * CHART_HEIGHT).checked_div(most).unwrap_or_default();
    DayBar {
        date: date.to_owned(),
        count,
        x: at * step,
        y: CHART_TOP + CHART_HEIGHT - height,
        width: step - 4,
        height,
    }
}

/// Shows what was done in the workspace.
#[handler]
pub(super) async fn audit(State(audit): State<AuditService>, visitor: Visitor, uri: Uri) -> ApiResult {
    let actor = visitor.actor();
    let after: Option<AuditEventId> = parameter(&uri, "after").and_then(|after| after.parse().ok());
    let asked = asked_of_audit(&uri);
    let filter = audit_filter(|name| asked.get(name).cloned())?;
    let before = after.map_or_else(Uuid::max, |after| *after.as_uuid());
    let mut events = audit.list(&actor, filter, before, ROWS + 1).await?;
    let has_more = events.len() > ROWS as usize;
    events.truncate(ROWS as usize);
    let next = events.last().filter(|_| has_more).map(|last| query_of_audit(&asked, Some(last.id)));
    let first = after.map(|_| query_of_audit(&asked, None));
    let names = audit.names(&actor, &events).await?;
    let rows = events.into_iter().map(|event| AuditRow {
        at: event.at,
        actor: event.user_id,
        who: who_did(&event, &names),
        what: event.action.as_str().replace('_', " "),
        details: details_of(&event),
        name: names.of_target(&event).unwrap_or_default().to_owned(),
        kind: event.target_kind.replace('_', " "),
        id: event.target_id,
        address: event.address.unwrap_or_default(),
    });
    let actions = AuditAction::ALL.iter().map(|action| (action.as_str(), action.as_str().replace('_', " ")));
    let (rows, actions, frame) = (rows.collect(), actions.collect(), visitor.frame);
    let page = AuditPage { frame, rows, actions, asked, next, first };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// What the form of the audit log was sent with. Fields that were left empty ask for nothing.
fn asked_of_audit(uri: &Uri) -> BTreeMap<&'static str, String> {
    let asked = |name: &'static str| {
        let text = parameter(uri, name)?.trim().to_owned();
        (!text.is_empty()).then_some((name, text))
    };
    ["actor", "action", "target", "since", "until"].into_iter().filter_map(asked).collect()
}

/// The query of what was asked for, behind a line of it or from its beginning.
fn query_of_audit(asked: &BTreeMap<&'static str, String>, after: Option<AuditEventId>) -> String {
    let after = after.map(|after| ("after", after.to_string()));
    let pairs = asked.iter().map(|(name, text)| (*name, text.clone())).chain(after);
    Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Who did what a line of the audit log tells, and by what.
fn who_did(event: &AuditEvent, names: &AuditNames) -> String {
    if event.user_id.as_uuid().is_nil() {
        return "the operator (shell)".to_owned();
    }
    let who = names.of_user(event).map_or_else(|| event.user_id.to_string(), str::to_owned);
    // What is deleted in somebody's name without a request is what a source has no more.
    let is_by_source = event.action == AuditAction::Deleted && event.request_id.is_none();
    match event.token_id {
        Some(_) => format!("{who}, by an API token"),
        None if is_by_source => format!("{who}, by a source"),
        None => who,
    }
}

/// What a line of the audit log says further, in words.
fn details_of(event: &AuditEvent) -> String {
    let Some(Json(details)) = &event.details else { return String::new() };
    // A value keeps its direction, whichever the others have.
    let said = details.pairs().map(|(name, value)| match (name, name.rsplit_once('.')) {
        ("from" | "to", _) => format!("{name} {value}"),
        (_, Some((setting, "from"))) => format!("{setting} from \u{2068}{value}\u{2069}"),
        (_, Some((setting, "to"))) => format!("{setting} to \u{2068}{value}\u{2069}"),
        (_, Some(_) | None) => format!("{name}: {value}"),
    });
    said.collect::<Vec<_>>().join(", ")
}

/// A visitor who is the operator's admin.
pub(super) struct AdminVisitor(Visitor);

impl FromRequestParts<AppState> for AdminVisitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Response> {
        let visitor = Visitor::from_request_parts(parts, state).await?;
        if visitor.frame.is_admin {
            Ok(Self(visitor))
        } else {
            Err(ApiError::forbidden("This is for admins. Your account is none.").into_response())
        }
    }
}

/// Shows the jobs of the whole service, and how its parts are.
#[handler]
pub(super) async fn jobs(
    State(runtime): State<Runtime>,
    State(jobs): State<JobService>,
    AdminVisitor(visitor): AdminVisitor,
    uri: Uri,
) -> ApiResult {
    let state = parameter(&uri, "state").unwrap_or_default();
    let filter = JobFilter { standing: state.parse().ok(), ..JobFilter::default() };
    let after = parameter(&uri, "after").and_then(|after| after.parse().ok());
    let found = jobs.list(filter, after, ROWS).await?;
    let at = found.at;
    let next = found.next.map(|next| {
        let pairs = [("state", state.clone()), ("after", next.to_string())];
        Serializer::new(String::new()).extend_pairs(pairs).finish()
    });
    let report = Box::pin(health::check(&runtime)).await;
    let page = JobsPage {
        parts: parts(&report.parts),
        states: JobPhase::ALL.iter().map(|phase| phase.as_str()).collect(),
        state,
        rows: found.jobs.into_iter().map(|job| job_row(job, at)).collect(),
        next,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// What is known of each part.
fn parts(parts: &Value) -> Vec<(String, String, String)> {
    let known = parts.as_object().into_iter().flatten();
    let part = |(name, known): (&String, &Value)| {
        let status = known.get("status").and_then(Value::as_str).unwrap_or_default().to_owned();
        let others = known.as_object().into_iter().flatten();
        let others = others.filter(|(key, value)| *key != "status" && !value.is_null());
        let detail = others.map(|(key, value)| match value {
            Value::String(text) => format!("{key}: {text}"),
            value => format!("{key}: {value}"),
        });
        (name.clone(), status, detail.collect::<Vec<_>>().join(", "))
    };
    known.map(part).collect()
}

fn job_row(job: JobRecord, at: Timestamp) -> JobRow {
    let standing = job.standing(at);
    JobRow {
        id: job.id,
        kind: job.document_type.to_string(),
        document: job.document_id.to_string(),
        state: standing.to_string(),
        tries: job.attempts,
        error: job.last_error.map(|error| error.0.message).unwrap_or_default(),
        email: job.user_email,
        queued_at: job.queued_at,
        can_retry: JobAction::Retry.standings().contains(&standing),
    }
}

/// Has a job tried again.
#[handler]
pub(super) async fn retry(
    State(jobs): State<JobService>,
    AdminVisitor(visitor): AdminVisitor,
    PathId(id): PathId<JobId>,
) -> ApiResult {
    let operator = JobOperator::Admin(visitor.caller.user.id);
    jobs.change_and_find(operator, JobAction::Retry, id).await?;
    Ok(visitor.go("jobs?said=job-queued"))
}

#[cfg(test)]
mod tests {
    use lectern_shared::{ids::ApiTokenId, model::audit::AuditDetails};

    use super::*;

    /// Something that an account did to a document.
    fn line(user: Uuid, action: AuditAction, request: Option<&str>) -> AuditEvent {
        let somebody = Uuid::from_u128(7);
        AuditEvent {
            id: AuditEventId::generate(),
            workspace_id: somebody.into(),
            at: Timestamp::from_micros(0),
            user_id: user.into(),
            token_id: None,
            action,
            target_kind: "document".to_owned(),
            target_id: somebody.to_string(),
            address: None,
            request_id: request.map(str::to_owned),
            details: None,
        }
    }

    #[test]
    fn a_line_of_the_audit_log_says_who_did_it_and_by_what() {
        let somebody = Uuid::from_u128(7);
        let said = |event: &AuditEvent| who_did(event, &AuditNames::default());
        let by_hand = line(somebody, AuditAction::Deleted, Some("a request"));
        assert_eq!(said(&by_hand), somebody.to_string());
        let by_token = AuditEvent { token_id: Some(ApiTokenId::generate()), ..by_hand };
        assert_eq!(said(&by_token), format!("{somebody}, by an API token"));
        let by_source = line(somebody, AuditAction::Deleted, None);
        assert_eq!(said(&by_source), format!("{somebody}, by a source"));
        assert_eq!(said(&line(Uuid::nil(), AuditAction::RoleChanged, None)), "the operator (shell)");
    }

    #[test]
    fn what_a_setting_was_and_is_stands_together() {
        let details = AuditDetails::default().with_setting("documents", None, Some(10)).with_setting(
            "name",
            Some("Archive"),
            Some("Library"),
        );
        let changed = line(Uuid::nil(), AuditAction::WorkspaceChanged, None);
        let event = AuditEvent { details: Some(Json(details)), ..changed };
        let said = details_of(&event).replace(['\u{2068}', '\u{2069}'], "");
        assert_eq!(said, "documents from none, documents to 10, name from Archive, name to Library");
    }

    #[test]
    fn what_has_no_price_is_not_said_to_be_for_nothing() {
        assert!(cost_words(0.0, 72, None).starts_with("not known"));
        assert_eq!(cost_words(0.0, 0, None), "0.00");
        assert_eq!(cost_words(0.0, 72, Some(5.0)), "0.00");
        assert_eq!(cost_words(1.234, 72, None), "1.23");
    }

    #[test]
    fn the_bars_of_a_month_stay_in_their_chart() {
        for (at, count, most) in [(0, 0, 0), (29, 7, 7), (3, 1, 1_000_000)] {
            let bar = bar("2026-01-01", at, count, most);
            assert!(bar.x + bar.width <= CHART_WIDTH && bar.y + bar.height == CHART_TOP + CHART_HEIGHT);
        }
    }
}
