//! API tokens in a browser.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_derive::handler;
use lectern_shared::{
    clock::{Clock, Timestamp},
    ids::{AgentId, ApiTokenId},
    model::{Json, workspace::Role},
};
use secrecy::ExposeSecret;

use super::{
    PagePolicy, ROLES,
    choices::{ListPlace, told_apart},
    confirm::Confirmed,
    frame::{Frame, SubmittedForm, Visitor},
    html,
    text::{counted, filters, for_people},
};
use crate::{
    extract::PathId,
    response::ApiResult,
    services::{
        actor::Actor,
        asking::AskService,
        creation::CreationOutcome,
        tokens::{NewApiToken, RevealedToken, TokenService, may_delete},
    },
};

/// Tokens of a page.
const TOKENS: u32 = 50;

#[derive(Template)]
#[template(path = "tokens.html")]
struct TokensPage {
    frame: Frame,
    rows: Vec<TokenRow>,
    place: ListPlace,
    /// The query of the next page, if there is one.
    next: Option<String>,
    roles: Vec<(&'static str, &'static str)>,
    agents: Vec<(AgentId, String)>,
    /// A new token's value.
    made: Option<String>,
}

struct TokenRow {
    id: ApiTokenId,
    description: String,
    maker: String,
    role: String,
    /// What its role is for.
    does: &'static str,
    /// The one agent that it asks, whatever its role may.
    agent: Option<(AgentId, String)>,
    /// How often; empty for as often as the service lets everybody.
    rate: String,
    /// What uses it.
    used_from: &'static str,
    /// The sites whose pages do.
    origins: Vec<String>,
    expires_at: Option<Timestamp>,
    is_over: bool,
    used_at: Option<Timestamp>,
    can_delete: bool,
}

impl TokenRow {
    /// As somebody sees it at this moment, who may ask these agents.
    fn of(
        RevealedToken { token, maker, .. }: RevealedToken,
        actor: &Actor,
        agents: &[(AgentId, String)],
        now: Timestamp,
    ) -> Self {
        let can_delete = may_delete(actor, &token).is_ok();
        let called =
            |id: AgentId| agents.iter().find(|(other, _)| *other == id).map(|(_, name)| name.clone());
        let does = |role: Role| ROLES.into_iter().find(|(name, _)| *name == role.as_str());
        let origins = token.origins.map(|Json(origins)| origins);
        let used_from = match &origins {
            None => "programs",
            // It is in nobody's hands.
            Some(origins) if origins.is_empty() => "the page of a published agent",
            Some(_) => "pages of",
        };
        Self {
            id: token.id,
            description: token.description,
            maker: maker.name,
            role: token.role.map_or_else(|| "what its maker may".to_owned(), |role| role.to_string()),
            does: token.role.and_then(does).map(|(_, does)| does).unwrap_or_default(),
            agent: token.agent_id.map(|id| (id, called(id).unwrap_or_else(|| "one agent".to_owned()))),
            rate: token.rate_per_minute.map(rate_words).unwrap_or_default(),
            used_from,
            origins: origins.unwrap_or_default(),
            expires_at: token.expires_at,
            is_over: token.expires_at.is_some_and(|end| end <= now),
            used_at: token.last_used_at,
            can_delete,
        }
    }
}

fn rate_words(rate: i64) -> String {
    format!("at most {} a minute", counted(rate.unsigned_abs(), "request", "requests"))
}

async fn page(
    tokens: &TokenService,
    asking: &AskService,
    now: Timestamp,
    visitor: Visitor,
    mut place: ListPlace,
    made: Option<String>,
) -> ApiResult {
    let actor = visitor.actor();
    let user = &visitor.caller.user;
    let mut rows = tokens.list(&actor, user, &place.name, place.before(), TOKENS + 1).await?;
    // All that stood on it may be gone.
    if rows.is_empty() && place.after.take().is_some() {
        rows = tokens.list(&actor, user, &place.name, place.before(), TOKENS + 1).await?;
    }
    let has_more = rows.len() > TOKENS as usize;
    rows.truncate(TOKENS as usize);
    let next = place.next(rows.last().map(|last| *last.token.id.as_uuid()).filter(|_| has_more));
    let agents =
        asking.all_askable(&actor, |askable| (askable.agent().id, askable.agent().name.clone())).await?;
    let given =
        ROLES.into_iter().filter(|(role, _)| role.parse().is_ok_and(|role| actor.may_grant(role).is_ok()));
    let page = TokensPage {
        rows: rows.into_iter().map(|row| TokenRow::of(row, &actor, &agents, now)).collect(),
        place,
        next,
        roles: given.collect(),
        agents: told_apart(agents),
        made,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Shows the tokens, the newest first.
#[handler]
pub(super) async fn show(
    State(tokens): State<TokenService>,
    State(asking): State<AskService>,
    State(clock): State<Clock>,
    visitor: Visitor,
    uri: Uri,
) -> ApiResult {
    page(&tokens, &asking, clock.now(), visitor, ListPlace::of(&uri), None).await
}

/// Makes one, and shows its value.
#[handler]
pub(super) async fn create(
    State(tokens): State<TokenService>,
    State(asking): State<AskService>,
    State(clock): State<Clock>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewApiToken>,
) -> ApiResult {
    let value_of = |made: &RevealedToken| {
        let value = made.value.as_ref().map(|value| value.expose_secret().as_bytes().to_vec());
        Ok(value.unwrap_or_default())
    };
    let made = tokens
        .create(&visitor.actor(), &visitor.caller.user, body, once, value_of)
        .await
        .map_err(for_people)?;
    let (CreationOutcome::Now(value) | CreationOutcome::Before(value)) = made;
    let value = String::from_utf8_lossy(&value).into_owned();
    page(&tokens, &asking, clock.now(), visitor, ListPlace::default(), Some(value)).await
}

/// Deletes one.
#[handler]
pub(super) async fn delete(
    State(tokens): State<TokenService>,
    PathId(id): PathId<ApiTokenId>,
    uri: Uri,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    tokens.delete(&visitor.actor(), &visitor.caller.user, id).await?;
    Ok(visitor.go_to_list("tokens", "token-deleted", &uri))
}
