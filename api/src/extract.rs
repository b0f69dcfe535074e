//! What handlers take from a request. A handler never sees an invalid id or body.

use std::{str::FromStr, sync::Arc};

use axum::{
    RequestPartsExt,
    body::HttpBody,
    extract::{FromRef, FromRequest, FromRequestParts, MatchedPath, Path, Request},
    http::{Method, Uri, request::Parts},
};
use lectern_shared::ids::{AgentId, WorkspaceId};
use serde_json::json;

use crate::{
    auth::Caller,
    body::BodyReader,
    error::ApiError,
    fields::{FromFields, validate},
    services::{
        actor::{Actor, Permission},
        agents::AgentService,
        credentials::Authenticator,
        workspaces::WorkspaceService,
    },
};

/// The id in the path. Text that cannot be one is an unknown id.
pub(crate) struct PathId<T>(pub(crate) T);

impl<T: FromStr, S: Send + Sync> FromRequestParts<S> for PathId<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let unknown = || ApiError::not_found("id");
        let Path(text) = parts.extract::<Path<String>>().await.map_err(|_| unknown())?;
        text.parse().map(Self).map_err(|_| unknown())
    }
}

/// Two ids in the path, in the order in which they stand there. Text that cannot be one is an unknown id.
pub(crate) struct PathIds<A, B>(pub(crate) A, pub(crate) B);

impl<A: FromStr, B: FromStr, S: Send + Sync> FromRequestParts<S> for PathIds<A, B> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let unknown = || ApiError::not_found("id");
        let Path((first, second)) = parts.extract::<Path<(String, String)>>().await.map_err(|_| unknown())?;
        match (first.parse::<A>(), second.parse::<B>()) {
            (Ok(first), Ok(second)) => Ok(Self(first, second)),
            (Err(_), _) | (_, Err(_)) => Err(unknown()),
        }
    }
}

/// A query parameter; the first one, if there are several.
pub(crate) fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let query = uri.query()?;
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

/// The caller's agent that the query names with `agentId`, if it names one. Not found, for an agent that is not the caller's.
pub(crate) struct QueriedAgent(pub(crate) Option<AgentId>);

impl<S: Send + Sync> FromRequestParts<S> for QueriedAgent
where
    Authenticator: FromRef<S>,
    AgentService: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let Some(text) = parameter(&parts.uri, "agentId") else { return Ok(Self(None)) };
        let agent = text.parse().map_err(|_| ApiError::not_found("agent"))?;
        AgentService::from_ref(state).owned(&caller.actor(), agent).await.map(|id| Self(Some(id)))
    }
}

/// Who sends a body, and what they have to be allowed for it. Services decide on that when they are called, which a body that is wrong
/// prevents: whoever may not do a thing at all is told so, and not how.
pub(crate) struct BodySender {
    /// None for strangers, and for those who ask agents, which everybody may who is known.
    actor: Option<Arc<Actor>>,
    /// The workspace that the path is about, if it is about one.
    workspace: Option<WorkspaceId>,
    permission: Option<Permission>,
}

impl BodySender {
    /// The sender of a request, whose credential was looked at before.
    pub(crate) fn of(request: &Request) -> Self {
        let caller = request.extensions().get::<Caller>();
        let is_admin = caller.is_some_and(|caller| caller.user.is_admin);
        let route = request.extensions().get::<MatchedPath>();
        Self {
            actor: caller.map(Caller::actor),
            workspace: path_workspace(request.uri()).and_then(|id| id.parse().ok()),
            permission: route.and_then(|route| needed(request.method(), route.as_str(), is_admin)),
        }
    }

    /// What is told of a body that is wrong.
    pub(crate) async fn refusal(&self, workspaces: &WorkspaceService, wrong: ApiError) -> ApiError {
        let (Some(actor), Some(permission)) = (&self.actor, self.permission) else { return wrong };
        let allowed = match self.workspace {
            Some(id) => workspaces.enter(actor, id).await.and_then(|(there, _)| there.may(permission)),
            None => actor.may(permission),
        };
        allowed.err().unwrap_or(wrong)
    }
}

/// The id of the workspace that a path of the JSON interface is about, if it is about one. Handlers see what of a path is behind
/// `/api/v1`.
pub(crate) fn path_workspace(uri: &Uri) -> Option<&str> {
    uri.path().strip_prefix("/workspaces/")?.split('/').next()
}

/// What a route asks of whoever sends a body to it, as far as that is more than to be known, and not up to the body: an admin may change
/// what a workspace may hold without a role in it, and not its name.
fn needed(method: &Method, route: &str, is_admin: bool) -> Option<Permission> {
    let parts: Vec<&str> = route.split('/').skip(1).collect();
    if let ["api", "v1", "agents", _, "predict"] = parts.as_slice() {
        return None;
    }
    match parts.as_slice() {
        ["v1", "embeddings" | "vector_stores", ..] => Some(Permission::EditDocuments),
        ["api", "v1", parts @ ..] => match parts {
            ["documents" | "collections" | "tags" | "sources" | "search", ..] => {
                Some(Permission::EditDocuments)
            }
            ["agents" | "prompts" | "tools" | "api-tokens" | "evaluations" | "webhooks", ..]
            | ["agent-documents" | "agent-collections" | "agent-tools", ..]
            | ["traces", _, "cases"] => Some(Permission::BuildAgents),
            ["workspaces", _] if *method == Method::DELETE || !is_admin => Some(Permission::ManageWorkspace),
            ["workspaces", _, "members" | "invitations", ..] => Some(Permission::ManageWorkspace),
            _ => None,
        },
        _ => None,
    }
}

/// A valid JSON body.
pub(crate) struct ValidJson<T>(pub(crate) T);

impl<T: FromFields + Send + 'static, S: Send + Sync> FromRequest<S> for ValidJson<T>
where
    BodyReader: FromRef<S>,
    WorkspaceService: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let (bodies, sender) = (BodyReader::from_ref(state), BodySender::of(&request));
        let read = bodies.read_as(request, T::SENDER, |body| validate(&body.value)).await;
        match read.and_then(|read| read) {
            Ok(body) => Ok(Self(body)),
            Err(wrong) => Err(sender.refusal(&WorkspaceService::from_ref(state), wrong).await),
        }
    }
}

/// A valid JSON body, or nothing at all, which says as much as an empty object.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: FromFields + Send + 'static, S: Send + Sync> FromRequest<S> for OptionalJson<T>
where
    BodyReader: FromRef<S>,
    WorkspaceService: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        if request.body().is_end_stream() {
            return validate(&json!({})).map(Self);
        }
        ValidJson::from_request(request, state).await.map(|ValidJson(body)| Self(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_says_what_a_body_is_for() {
        for (method, route, permission) in [
            (Method::POST, "/api/v1/documents", Some(Permission::EditDocuments)),
            (Method::PATCH, "/api/v1/documents/{id}", Some(Permission::EditDocuments)),
            (Method::POST, "/v1/vector_stores/{id}/files", Some(Permission::EditDocuments)),
            (Method::POST, "/v1/chat/completions", None),
            (Method::POST, "/api/v1/agents", Some(Permission::BuildAgents)),
            (Method::POST, "/api/v1/agents/{id}/predict", None),
            (Method::POST, "/api/v1/traces/{id}/cases", Some(Permission::BuildAgents)),
            (Method::POST, "/api/v1/traces/{id}/feedback", None),
            (Method::POST, "/api/v1/workspaces", None),
            (Method::PATCH, "/api/v1/workspaces/{id}", Some(Permission::ManageWorkspace)),
            (Method::DELETE, "/api/v1/workspaces/{id}", Some(Permission::ManageWorkspace)),
            (Method::PATCH, "/api/v1/workspaces/{id}/members/{userId}", Some(Permission::ManageWorkspace)),
            (Method::PATCH, "/api/v1/users/me", None),
            (Method::POST, "/admin/jobs/retry", None),
        ] {
            assert_eq!(needed(&method, route, false), permission, "{method} {route}");
        }
        let workspace = "/api/v1/workspaces/{id}";
        assert_eq!(needed(&Method::PATCH, workspace, true), None, "an admin may set what it may hold");
        assert_eq!(needed(&Method::DELETE, workspace, true), Some(Permission::ManageWorkspace));
    }

    #[test]
    fn the_workspace_of_a_path_is_found_where_handlers_see_it() {
        for (path, workspace) in [
            ("/workspaces/1/invitations", Some("1")),
            ("/workspaces/1", Some("1")),
            ("/workspaces", None),
            ("/documents/workspaces/1", None),
        ] {
            assert_eq!(path_workspace(&path.parse().unwrap()), workspace, "{path}");
        }
    }
}
