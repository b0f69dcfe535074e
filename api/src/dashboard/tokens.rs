//! API tokens in a browser.

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_derive::handler;
use lectern_shared::{clock::Timestamp, ids::ApiTokenId};
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::{
    PagePolicy, ROLES,
    frame::{Frame, SubmittedForm, Visitor},
    html,
    text::filters,
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

/// Tokens that are shown.
const SHOWN: u32 = 200;

#[derive(Template)]
#[template(path = "tokens.html")]
struct TokensPage {
    frame: Frame,
    rows: Vec<TokenRow>,
    roles: Vec<(&'static str, &'static str)>,
    agents: Vec<(String, String)>,
    /// A new token's value.
    made: Option<String>,
}

struct TokenRow {
    id: ApiTokenId,
    description: String,
    role: String,
    /// What else bounds it.
    limits: String,
    expires_at: Option<Timestamp>,
    maker: String,
    used_at: Option<Timestamp>,
    can_delete: bool,
}

impl TokenRow {
    /// As somebody sees it.
    fn of(RevealedToken { token, maker, .. }: RevealedToken, actor: &Actor) -> Self {
        let can_delete = may_delete(actor, &token).is_ok();
        let limits = [
            token.agent_id.map(|_| "asks one agent only".to_owned()),
            // A published page's own has none, and is in nobody's hands.
            token
                .origins
                .filter(|origins| !origins.0.is_empty())
                .map(|origins| format!("in pages of {}", origins.0.join(", "))),
            token.rate_per_minute.map(|rate| format!("at most {rate} requests a minute")),
        ];
        Self {
            id: token.id,
            description: token.description,
            role: token.role.map_or_else(|| "what its maker may".to_owned(), |role| role.to_string()),
            limits: limits.into_iter().flatten().collect::<Vec<_>>().join(", "),
            expires_at: token.expires_at,
            maker: maker.name,
            used_at: token.last_used_at,
            can_delete,
        }
    }
}

async fn page(
    tokens: &TokenService,
    asking: &AskService,
    visitor: Visitor,
    made: Option<String>,
) -> ApiResult {
    let actor = visitor.actor();
    let rows = tokens.list(&actor, &visitor.caller.user, Uuid::max(), SHOWN).await?;
    let given =
        ROLES.into_iter().filter(|(role, _)| role.parse().is_ok_and(|role| actor.may_grant(role).is_ok()));
    let page = TokensPage {
        rows: rows.into_iter().map(|row| TokenRow::of(row, &actor)).collect(),
        roles: given.collect(),
        agents: asking
            .all_askable(&actor, |agent| (agent.agent().id.to_string(), agent.agent().name.clone()))
            .await?,
        made,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Shows the tokens.
#[handler]
pub(super) async fn show(
    State(tokens): State<TokenService>,
    State(asking): State<AskService>,
    visitor: Visitor,
) -> ApiResult {
    page(&tokens, &asking, visitor, None).await
}

/// Makes one, and shows its value.
#[handler]
pub(super) async fn create(
    State(tokens): State<TokenService>,
    State(asking): State<AskService>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewApiToken>,
) -> ApiResult {
    let value_of = |made: &RevealedToken| {
        let value = made.value.as_ref().map(|value| value.expose_secret().as_bytes().to_vec());
        Ok(value.unwrap_or_default())
    };
    let made = tokens.create(&visitor.actor(), &visitor.caller.user, body, once, value_of).await?;
    let (CreationOutcome::Now(value) | CreationOutcome::Before(value)) = made;
    page(&tokens, &asking, visitor, Some(String::from_utf8_lossy(&value).into_owned())).await
}

/// Deletes one.
#[handler]
pub(super) async fn delete(
    State(tokens): State<TokenService>,
    visitor: Visitor,
    PathId(id): PathId<ApiTokenId>,
) -> ApiResult {
    tokens.delete(&visitor.actor(), &visitor.caller.user, id).await?;
    Ok(visitor.go("tokens?said=token-deleted"))
}
