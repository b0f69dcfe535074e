//! What stands around every page of somebody who is signed in: who that is, which workspace it is about, and where one can go.

use axum::{
    extract::{FromRef, FromRequest, FromRequestParts, Request},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, request::Parts},
    response::{IntoResponse, Response},
};
use lectern_shared::{ids::WorkspaceId, model::workspace::Role};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    choices::{ListPlace, told_apart},
    cookies::CookieNames,
    said::{counted_notice, notice, problem},
    text::{Notice, for_people},
};
use crate::{
    auth::Caller,
    body::BodyReader,
    error::{ApiError, ApiErrorKind},
    extract::parameter,
    fields::{FromFields, validate},
    public_address::PublicAddress,
    services::{
        accounts::{AccountService, SignUpOffer},
        actor::Actor,
        creation::IdempotentRequest,
        workspaces::WorkspaceService,
    },
    state::AppState,
};

/// Workspaces that can be chosen on a page, the newest ones; further ones are opened by links to what is in them.
const CHOICES: u32 = 50;
/// The input that tells one form from the same one sent again.
pub(super) const NONCE: &str = "nonce";
/// The input that says what the form was made from.
pub(super) const SEEN: &str = "seen";
/// The parameter by which what a page sends names the page's workspace. It stands in the address and not among the fields, so that it
/// is known before anything of a body is read, which may be a file.
pub(super) const PAGE_WORKSPACE: &str = "page-workspace";

/// Somebody who is signed in and looks at a page.
pub(super) struct Visitor {
    pub(super) caller: Caller,
    pub(super) frame: Frame,
    /// The request comes from a script of the page, which takes the answer as JSON.
    wants_json: bool,
}

/// What the layout shows around a page.
pub(super) struct Frame {
    /// The way from the page's folder to the root, under whatever path a proxy has put that.
    pub(super) root: String,
    /// The page's path from the root, without what is below its first folder.
    section: String,
    pub(super) person: String,
    pub(super) email: String,
    pub(super) workspace: String,
    pub(super) workspace_id: WorkspaceId,
    pub(super) workspaces: Vec<WorkspaceChoice>,
    /// The person is in others besides.
    pub(super) more_workspaces: bool,
    pub(super) role: Role,
    pub(super) is_admin: bool,
    /// What was done just now, or that there was nothing to do.
    pub(super) notice: Option<Notice>,
    /// Why nothing was done just now.
    pub(super) problem: Option<&'static str>,
    /// Goes with each form of the page.
    pub(super) nonce: String,
}

pub(super) struct WorkspaceChoice {
    pub(super) id: WorkspaceId,
    pub(super) name: String,
    pub(super) is_chosen: bool,
}

/// A link of the navigation.
pub(super) struct NavigationLink {
    pub(super) path: &'static str,
    pub(super) label: &'static str,
    pub(super) is_current: bool,
}

impl Frame {
    /// What stands behind `?` in the address of each form that changes something of the workspace: sent after another workspace was
    /// chosen in another tab, it changes nothing there.
    pub(super) fn stamp(&self) -> String {
        format!("{PAGE_WORKSPACE}={}", self.workspace_id)
    }

    pub(super) fn may_edit(&self) -> bool {
        self.role.includes(Role::Editor)
    }

    pub(super) fn may_build(&self) -> bool {
        self.role.includes(Role::Builder)
    }

    pub(super) fn is_owner(&self) -> bool {
        self.role.includes(Role::Owner)
    }

    /// Where this person can go, for what their role is for.
    pub(super) fn links(&self) -> Vec<NavigationLink> {
        let everybody = [("", "Home"), ("agents", "Agents")];
        let editors = [
            ("documents", "Documents"),
            ("collections", "Collections"),
            ("sources", "Sources"),
            ("search", "Search"),
        ];
        // To those who only ask, their own.
        let answers = [("traces", "Answers")];
        let builders = [("evaluations", "Evaluations"), ("tokens", "API tokens"), ("webhooks", "Webhooks")];
        let owners = [("members", "Members"), ("usage", "Usage"), ("audit", "Audit")];
        let admins = [("jobs", "Jobs")];
        let groups = [
            (true, &everybody[..]),
            (self.may_edit(), &editors),
            (true, &answers),
            (self.may_build(), &builders),
            (self.is_owner(), &owners),
            (self.is_admin, &admins),
        ];
        let shown = groups.into_iter().filter(|(is_shown, _)| *is_shown).flat_map(|(_, links)| links);
        let link = |(path, label): &(&'static str, &'static str)| NavigationLink {
            path,
            label,
            is_current: *path == self.section,
        };
        shown.map(link).collect()
    }
}

impl Visitor {
    pub(super) fn actor(&self) -> std::sync::Arc<Actor> {
        self.caller.actor()
    }

    /// Whether a script of the page asks, which shows itself what becomes of it.
    pub(super) fn is_script(&self) -> bool {
        self.wants_json
    }

    /// Sends the browser on to a path from the root, after something was done.
    pub(super) fn go(&self, path: &str) -> Response {
        see_other(&format!("{}{path}", self.frame.root), self.wants_json)
    }

    /// Sends the browser back to the page of a list that a form was on, whose address names it as that of the page does.
    pub(super) fn go_to_list(&self, list: &str, said: &str, form: &Uri) -> Response {
        let place = ListPlace::of(form).query();
        let place = if place.is_empty() { place } else { format!("&{place}") };
        self.go(&format!("{list}?said={said}{place}"))
    }

    /// Sends the browser on, and has it keep a cookie.
    pub(super) fn go_with(&self, path: &str, cookies: impl IntoIterator<Item = HeaderValue>) -> Response {
        let mut response = self.go(path);
        for cookie in cookies {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }
}

/// Sends a browser to another page. A script is told where to go, since it cannot see where a redirect leads.
pub(super) fn see_other(location: &str, wants_json: bool) -> Response {
    // So it is a path below this one, and no host's name, whatever it begins with.
    let below = if location.starts_with("../") { "" } else { "./" };
    let location = format!("{below}{location}");
    if wants_json {
        return axum::Json(json!({"next": location})).into_response();
    }
    match HeaderValue::try_from(location) {
        Ok(location) => (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response(),
        Err(error) => {
            tracing::error!(%error, "an address cannot be written into a header");
            ApiError::internal().into_response()
        }
    }
}

/// Whether it is a script of a page that asks, and no person.
pub(crate) fn wants_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.contains("application/json") && !accepted.contains("text/html")
}

/// Whether it is a browser that goes to an address.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// The way from a path's folder to the root.
pub(super) fn root_of(path: &str) -> String {
    "../".repeat(path.matches('/').count().saturating_sub(1))
}

/// A path of this service to come back to, if it is one: an address of elsewhere is not followed.
pub(super) fn own_path(given: Option<String>) -> String {
    // Browsers leave out what cannot be seen, and take one slash for the other.
    let is_own = |path: &str| {
        let before_query = path.split('?').next().unwrap_or_default();
        !path.contains(|character: char| character.is_control() || character == '\\')
            && !before_query.contains(':')
    };
    let given = given.unwrap_or_default();
    let path = given.trim_start_matches(|character: char| character == '/' || character.is_whitespace());
    if is_own(path) { path.to_owned() } else { String::new() }
}

impl FromRequestParts<AppState> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Response> {
        let wants_json = wants_json(&parts.headers);
        let found = async {
            let caller = Caller::from_request_parts(parts, state).await?;
            let actor = caller.actor();
            actor.signed_in()?;
            let workspaces = WorkspaceService::from_ref(state);
            let mut joined = workspaces.list(&actor, Uuid::max(), CHOICES + 1).await?;
            let has_more = joined.len() > CHOICES as usize;
            joined.truncate(CHOICES as usize);
            // However many there are: the one that the page is about, and the account's own to come back to.
            for id in [actor.named_workspace(), caller.user.id.into()] {
                if has_more && joined.iter().all(|joined| joined.workspace.id != id) {
                    joined.push(workspaces.find(&actor, id).await?);
                }
            }
            Ok::<_, ApiError>((caller, joined, has_more))
        };
        let (caller, joined, more_workspaces) = match found.await {
            Ok(found) => found,
            Err(error) if wants_json => return Err(refused(error).into_response()),
            Err(error) => return Err(turned_away(error, parts, state).await),
        };
        let actor = caller.actor();
        let workspace_id = actor.named_workspace();
        let chosen = joined.iter().find(|joined| joined.workspace.id == workspace_id);
        let workspace = chosen.map_or_else(String::new, |joined| joined.workspace.name.clone());
        let choices =
            told_apart(joined.into_iter().map(|joined| (joined.workspace.id, joined.workspace.name)));
        let choices = choices.into_iter().map(|(id, name)| {
            let is_chosen = id == workspace_id;
            WorkspaceChoice { id, name, is_chosen }
        });
        let path = parts.uri.path();
        let said = parameter(&parts.uri, "said").unwrap_or_default();
        let frame = Frame {
            root: root_of(path),
            section: path.trim_start_matches('/').split('/').next().unwrap_or_default().to_owned(),
            person: caller.user.name.clone(),
            email: caller.user.email.clone(),
            workspace,
            workspace_id,
            workspaces: choices.collect(),
            more_workspaces,
            role: actor.role(),
            is_admin: caller.user.is_admin,
            notice: counted_notice(&said, &parts.uri).or_else(|| notice(&said)),
            problem: problem(&said),
            nonce: Uuid::new_v4().to_string(),
        };
        Ok(Self { caller, frame, wants_json })
    }
}

/// What is said where the workspace that somebody has chosen is none of theirs any more, whether it is there still or not.
const WORKSPACE_GONE: &str =
    "The workspace that this page is of is not there any more, or you are no member of it any more.";

/// What a script of a page shows of a refusal: its reader knows no headers.
fn refused(error: ApiError) -> ApiError {
    match error.kind {
        ApiErrorKind::Unauthenticated => ApiError::unauthorized(
            "Your sign-in has ended. Sign in again in another tab, and repeat it here.",
        ),
        ApiErrorKind::NotFound => ApiError { message: WORKSPACE_GONE.to_owned(), ..error },
        _ => error,
    }
}

/// A page's address from the root, without what was said on it once.
pub(super) fn here(uri: &Uri) -> String {
    let path = uri.path().trim_start_matches('/');
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let query: String = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs.filter(|(name, _)| name != "said" && name != "count"))
        .finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// The page from the root that somebody goes on to who sent something to a path, which may show nothing itself: the list that it is
/// about, where there is one.
pub(super) fn list_of(path: &str) -> String {
    let mut folders = path.trim_start_matches('/').split('/');
    match folders.next().unwrap_or_default() {
        "feedback" | "workspace" | "workspaces" => String::new(),
        // A published page, whose name comes second.
        "ask" => format!("ask/{}", folders.next().unwrap_or_default()),
        first => first.to_owned(),
    }
}

/// Whether nobody has an account yet, and whoever comes first makes one here.
async fn is_new(state: &AppState) -> bool {
    let offer = AccountService::from_ref(state).sign_up_offer().await;
    offer.is_ok_and(|offer| offer == SignUpOffer::FirstAccount) && state.runtime.settings.oidc.is_none()
}

/// What becomes of a person whom the service does not know, or not in the workspace that they chose once.
async fn turned_away(error: ApiError, parts: &mut Parts, state: &AppState) -> Response {
    let root = root_of(parts.uri.path());
    let cookies = match PublicAddress::from_request_parts(parts, state).await {
        Ok(address) => CookieNames::at(&address),
    };
    let (location, cookies) = match error.kind {
        ApiErrorKind::Unauthenticated => {
            let (next, said) = match parts.method {
                Method::GET | Method::HEAD => (here(&parts.uri), ""),
                // What was sent is gone by the time that somebody is known again.
                _ => (list_of(parts.uri.path()), "&said=undone"),
            };
            let next: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
            let page = if parts.uri.path() == "/" && is_new(state).await { "sign-up" } else { "sign-in" };
            (format!("{root}{page}?next={next}{said}"), Vec::new())
        }
        ApiErrorKind::NotFound => {
            (format!("{root}?said=workspace-gone"), cookies.choose(None).into_iter().collect())
        }
        _ => return error.into_response(),
    };
    let mut response = see_other(&location, false);
    for cookie in cookies {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// A form that somebody has sent who is signed in. One whose button brings a question was confirmed.
pub(super) struct SubmittedForm<T> {
    pub(super) visitor: Visitor,
    pub(super) body: T,
    /// Sent twice, by an impatient finger, it makes one thing.
    pub(super) once: IdempotentRequest,
}

/// A form of somebody whom nobody knows yet.
pub(super) struct StrangersForm<T> {
    pub(super) body: T,
    pub(super) redirect: SignInRedirect,
}

/// Where a browser goes on to when somebody is known.
pub(super) struct SignInRedirect {
    /// The way to the root.
    root: String,
    /// The path from there.
    next: String,
    wants_json: bool,
}

impl SignInRedirect {
    /// Sends the browser on, with what it is to keep.
    pub(super) fn go_with(&self, cookies: impl IntoIterator<Item = HeaderValue>) -> Response {
        let mut response = see_other(&format!("{}{}", self.root, self.next), self.wants_json);
        for cookie in cookies {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }
}

impl<T: FromFields + Send> FromRequest<AppState> for StrangersForm<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let (wants_json, root) = (wants_json(request.headers()), root_of(request.uri().path()));
        let sent = BodyReader::from_ref(state).read_form(request, T::SENDER).await;
        let mut sent = sent.map_err(for_people)?;
        let next = sent.value.as_object_mut().and_then(|fields| fields.remove("next"));
        let next = own_path(next.as_ref().and_then(Value::as_str).map(str::to_owned));
        Ok(Self { body: validate(&sent.value)?, redirect: SignInRedirect { root, next, wants_json } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_comes_back_to_this_service_alone() {
        for (given, followed) in [
            ("documents?state=dead", "documents?state=dead"),
            ("/documents", "documents"),
            ("//evil.example/x", "evil.example/x"),
            ("https://evil.example", ""),
            ("javascript:alert(1)", ""),
            ("\\\\evil.example", ""),
            ("documents?next=https://a.example", "documents?next=https://a.example"),
            ("a\r\nb", ""),
            (" //evil.example", "evil.example"),
            ("/ //evil.example", "evil.example"),
            ("\t//evil.example", "evil.example"),
            ("a/\t/evil.example", ""),
        ] {
            assert_eq!(own_path(Some(given.to_owned())), followed, "{given}");
        }
        assert_eq!(own_path(None), "");
        for (location, written) in [
            ("", "./"),
            ("?said=saved", "./?said=saved"),
            ("//evil.example", ".///evil.example"),
            ("../x", "../x"),
        ] {
            assert_eq!(see_other(location, false).headers()[header::LOCATION], written);
        }
    }

    #[test]
    fn every_folder_knows_its_way_to_the_root() {
        for (path, root) in [("/", ""), ("/documents", ""), ("/documents/1", "../"), ("/a/b/c", "../../")] {
            assert_eq!(root_of(path), root, "{path}");
        }
        let uri: Uri = "/documents?said=deleted&count=2&name=a%26b".parse().unwrap();
        assert_eq!(here(&uri), "documents?name=a%26b");
    }

    #[test]
    fn whoever_sent_something_goes_on_to_a_page() {
        for (path, list) in [
            ("/documents", "documents"),
            ("/documents/1/delete", "documents"),
            ("/workspace", ""),
            ("/feedback/1", ""),
            ("/ask/help/feedback/1", "ask/help"),
            ("/", ""),
        ] {
            assert_eq!(list_of(path), list, "{path}");
        }
    }
}
