//! The pages of published agents: for members, or for anybody, by themselves or in a frame of another site.

use askama::Template;
use axum::{
    Extension, Router,
    extract::{FromRef, Path, State, rejection::PathRejection},
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use lectern_agents::run::AgentQuestion;
use lectern_derive::{RequestBody, handler};
use lectern_shared::{ids::TraceId, model::publication::Publication, shutdown::Shutdown};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    PagePolicy,
    ask::AskPanel,
    conversation::ConversationTurn,
    frame::{StrangersForm, Visitor, root_of, see_other, wants_json},
    html,
    text::filters,
    told::{AnswerReader, PageEncoder, ToldAnswer, whole},
};
use crate::{
    auth::in_force::RequestCredential,
    error::{ApiError, ApiErrorKind},
    error_response::unknown_path,
    extract::parameter,
    response::ApiResult,
    run_stream::streamed,
    services::{
        actor::{Actor, RequestOrigin},
        asking::{AskService, AskableAgent},
        citations::CitationLinks,
        publications::{OpenPublication, PublicationService},
        traces::{TraceFeedback, TraceService, rating},
        workspaces::WorkspaceService,
    },
    state::AppState,
};

#[expect(clippy::disallowed_methods, reason = "the document describes what programs use")]
pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/ask/{slug}", get(show).post(answer))
        .route("/ask/{slug}/stream", post(stream))
        // The page with what was said of stays at its address. Opened anew, that shows the page as it is before anything is asked.
        .route("/ask/{slug}/feedback/{trace}", get(show_again).post(feedback))
        .route("/embed/{slug}", get(show_framed))
}

#[derive(Template)]
#[template(path = "published.html")]
struct PublishedPage {
    root: String,
    title: String,
    accent: String,
    framed: bool,
    /// Feedback was given just now.
    said: bool,
    /// Why nobody can ask on it; empty where they can.
    problem: &'static str,
    panel: AskPanel,
}

/// The most characters of a question by somebody whom nobody need know, as [`GuestQuestion`] has it.
const LONGEST_QUESTION: usize = 10_000;

/// Whose page it is that people without an account have. A tab keeps what they asked for itself.
const STRANGER: &str = "stranger";

/// What is said where nobody can ask, to whoever opened the page.
const CANNOT_ASK: &str = "Nobody can ask on this page: its agent needs more than a question, which the page does not ask for. Tell whoever gave you its address.";

/// A question of somebody whom nobody need know.
#[derive(RequestBody, ToSchema)]
#[body(stranger)]
pub(super) struct GuestQuestion {
    #[schema(min_length = 1, max_length = 10_000, pattern = r"\S")]
    question: String,
    #[schema(max_length = 200)]
    session: Option<String>,
}

/// What somebody says of an answer whom nobody need know.
#[derive(RequestBody, ToSchema)]
#[body(stranger)]
pub(super) struct GuestFeedback {
    #[schema(value_type = i32)]
    #[body(with = rating)]
    rating: i8,
    #[schema(max_length = 10_000)]
    text: Option<String>,
}

/// Who asks on a page, and what there is to ask.
struct Guest {
    page: Publication,
    actor: Actor,
    agent: AskableAgent,
    /// Has no account, as far as the page knows.
    is_stranger: bool,
}

/// What opens a page.
#[derive(Clone)]
struct PublishedServices {
    publications: PublicationService,
    workspaces: WorkspaceService,
    asking: AskService,
}

impl FromRef<AppState> for PublishedServices {
    fn from_ref(state: &AppState) -> Self {
        let services = &state.services;
        Self {
            publications: services.publications.clone(),
            workspaces: services.workspaces.clone(),
            asking: services.asking.clone(),
        }
    }
}

impl PublishedServices {
    /// # Errors
    /// A conflict, when nobody can ask on this page whatever they do. That is said before anything is tried, and not which values are
    /// missing: those are its builder's.
    async fn refuse_unaskable(&self, page: &Publication) -> ApiResult<()> {
        if self.asking.cannot_ask_on(page).await? {
            return Err(ApiError::new(ApiErrorKind::Conflict, "cannot_ask", CANNOT_ASK));
        }
        Ok(())
    }

    async fn open(&self, slug: &str) -> Result<OpenPublication, Response> {
        match self.publications.open(slug).await {
            Ok(Some(open)) => Ok(open),
            Ok(None) => Err(unknown_path().await.into_response()),
            Err(error) => Err(error.into_response()),
        }
    }

    /// Whoever asks on a page: a member, or somebody without an account.
    async fn enter(
        &self,
        slug: &str,
        origin: RequestOrigin,
        visitor: Result<Visitor, Response>,
        opened: &RequestCredential,
    ) -> Result<Guest, Response> {
        let open = self.open(slug).await?;
        let page = open.page.clone();
        let entered = async {
            let (actor, is_stranger) = match self.publications.guest(open, origin).await? {
                Some(guest) => {
                    // Whoever is signed in besides is let in by the page's token, and no longer than that.
                    opened.note(guest.credential);
                    (guest.actor, true)
                }
                None => match visitor {
                    Ok(visitor) => {
                        let workspace = page.owner.workspace_id;
                        let (actor, joined) = self.workspaces.enter(&visitor.actor(), workspace).await?;
                        opened.note_workspace(workspace, joined.role);
                        (actor, false)
                    }
                    Err(response) => return Ok(Err(response)),
                },
            };
            let agent = self.asking.find(&actor, page.agent_id).await?;
            ApiResult::Ok(Ok(Guest { page, actor, agent, is_stranger }))
        };
        match entered.await {
            Ok(entered) => entered,
            Err(error) => Err(error.into_response()),
        }
    }
}

type SlugPath = Result<Path<String>, PathRejection>;

fn slug_of(slug: SlugPath) -> String {
    // Bytes that are no text name nothing.
    slug.map(|Path(slug)| slug).unwrap_or_default()
}

/// For whom a page is written.
struct PageReader {
    framed: bool,
    /// The agent remembers what was said before.
    remembers: bool,
    /// Whose page it is, as [`AskPanel`] has it.
    reader: String,
}

impl PageReader {
    /// Of somebody who has asked on a page that is in no frame.
    fn of(guest: &Guest) -> Self {
        let reader = if guest.is_stranger { STRANGER.to_owned() } else { guest.actor.user.to_string() };
        Self { framed: false, remembers: guest.agent.agent().has_memory, reader }
    }
}

/// What a page shows before anything is asked, or with an answer.
fn page_of(
    page: &Publication,
    name: &str,
    uri: &Uri,
    to: PageReader,
    asked: Option<(GuestQuestion, String)>,
) -> PublishedPage {
    let root = root_of(uri.path());
    let PageReader { framed, remembers, reader } = to;
    let (session, turns) = match asked {
        Some((GuestQuestion { question, session }, html)) => {
            (session, vec![ConversationTurn { question, html }])
        }
        None => (None, Vec::new()),
    };
    let address = format!("{root}ask/{}", page.slug);
    PublishedPage {
        title: if page.title.is_empty() { name.to_owned() } else { page.title.clone() },
        accent: page.accent.clone(),
        framed,
        said: parameter(uri, "said").is_some(),
        problem: "",
        panel: AskPanel {
            stream: format!("{address}/stream"),
            action: address,
            session: session.unwrap_or_else(|| Uuid::new_v4().to_string()),
            // An agent that needs any is not asked here.
            values: Vec::new(),
            greeting: page.greeting.clone(),
            hints: page.questions.0.clone(),
            longest: LONGEST_QUESTION,
            turns,
            has_earlier: false,
            remembers,
            // Whoever had the address would have what was said.
            is_told: false,
            reader,
            anew: format!("{root}{}/{}", if framed { "embed" } else { "ask" }, page.slug),
        },
        root,
    }
}

/// What a guest is shown with an answer.
fn reader(links: CitationLinks, guest: &Guest, root: String) -> AnswerReader {
    AnswerReader {
        links,
        workspace: guest.page.owner.workspace_id,
        root,
        feedback: format!("ask/{}/feedback", guest.page.slug),
        // The page is of one workspace, whichever its reader has chosen.
        stamp: String::new(),
        sees_steps: false,
        sees_receipts: false,
        is_stranger: guest.is_stranger,
    }
}

/// Shows a published agent's page.
#[handler]
async fn show(
    State(services): State<PublishedServices>,
    slug: SlugPath,
    visitor: Result<Visitor, Response>,
    uri: Uri,
) -> Result<Response, Response> {
    view(&services, &slug_of(slug), visitor, &uri, false).await
}

/// Shows it in a frame of a site that may.
#[handler]
async fn show_framed(
    State(services): State<PublishedServices>,
    slug: SlugPath,
    visitor: Result<Visitor, Response>,
    uri: Uri,
) -> Result<Response, Response> {
    view(&services, &slug_of(slug), visitor, &uri, true).await
}

/// Shows it where something was said of an answer: who opens that address anew need not be whom the answer was given to.
#[handler]
async fn show_again(
    State(services): State<PublishedServices>,
    ids: Result<Path<(String, String)>, PathRejection>,
    visitor: Result<Visitor, Response>,
    uri: Uri,
) -> Result<Response, Response> {
    let slug = ids.map(|Path((slug, _))| slug).unwrap_or_default();
    view(&services, &slug, visitor, &uri, false).await
}

async fn view(
    services: &PublishedServices,
    slug: &str,
    visitor: Result<Visitor, Response>,
    uri: &Uri,
    framed: bool,
) -> Result<Response, Response> {
    let open = services.open(slug).await?;
    let reader = if open.takes_guests() {
        STRANGER.to_owned()
    } else {
        let visitor = visitor?;
        let workspace = open.page.owner.workspace_id;
        services.workspaces.enter(&visitor.actor(), workspace).await.map_err(IntoResponse::into_response)?;
        visitor.caller.user.id.to_string()
    };
    let shown = async {
        let page = &open.page;
        if framed && (page.origins.0.is_empty() || !open.takes_guests()) {
            return Err(unknown_path().await);
        }
        let name = if page.title.is_empty() {
            services.publications.agent_name(page).await?.ok_or_else(|| ApiError::not_found("agent"))?
        } else {
            String::new()
        };
        let policy = if framed { PagePolicy::Framed(page.origins.0.clone()) } else { PagePolicy::Own };
        let problem = if services.asking.cannot_ask_on(page).await? { CANNOT_ASK } else { "" };
        let remembers = services.asking.remembers_on(page).await?;
        let to = PageReader { framed, remembers, reader };
        let shown = PublishedPage { problem, ..page_of(page, &name, uri, to, None) };
        html(&policy, StatusCode::OK, &shown)
    };
    shown.await.map_err(IntoResponse::into_response)
}

fn question_of(guest: &Guest, form: &GuestQuestion) -> AgentQuestion {
    let session = form.session.clone().filter(|_| guest.agent.agent().has_memory);
    AgentQuestion { text: form.question.clone(), session, ..AgentQuestion::default() }
}

/// Answers in one piece.
#[expect(clippy::too_many_arguments, reason = "each is a part of the request")]
#[handler]
async fn answer(
    State(services): State<PublishedServices>,
    State(links): State<CitationLinks>,
    slug: SlugPath,
    visitor: Result<Visitor, Response>,
    origin: RequestOrigin,
    shutdown: Option<Extension<Shutdown>>,
    Extension(opened): Extension<RequestCredential>,
    uri: Uri,
    StrangersForm { body, .. }: StrangersForm<GuestQuestion>,
) -> Result<Response, Response> {
    let guest = services.enter(&slug_of(slug), origin, visitor, &opened).await?;
    let answered = async {
        services.refuse_unaskable(&guest.page).await?;
        let reader = reader(links, &guest, root_of(uri.path()));
        let question = question_of(&guest, &body);
        let to = PageReader::of(&guest);
        let Guest { page, actor, agent, .. } = guest;
        let name = agent.agent().name.clone();
        let running =
            services.asking.ask(&actor, agent, question).await.map_err(|error| reader.told(error))?;
        let shutdown = shutdown.map(|Extension(shutdown)| shutdown);
        let answer = whole(running, &reader, shutdown.as_ref()).await?;
        html(&PagePolicy::Own, StatusCode::OK, &page_of(&page, &name, &uri, to, Some((body, answer))))
    };
    answered.await.map_err(IntoResponse::into_response)
}

/// Answers as the answer comes.
#[expect(clippy::too_many_arguments, reason = "each is a part of the request")]
#[handler]
async fn stream(
    State(services): State<PublishedServices>,
    State(links): State<CitationLinks>,
    slug: SlugPath,
    visitor: Result<Visitor, Response>,
    origin: RequestOrigin,
    shutdown: Option<Extension<Shutdown>>,
    Extension(opened): Extension<RequestCredential>,
    StrangersForm { body, .. }: StrangersForm<GuestQuestion>,
) -> Result<Response, Response> {
    let guest = services.enter(&slug_of(slug), origin, visitor, &opened).await?;
    let answered = async {
        services.refuse_unaskable(&guest.page).await?;
        // The pages that show it, by themselves and in a frame, are one folder below the root.
        let reader = reader(links, &guest, "../".to_owned());
        let question = question_of(&guest, &body);
        let running = services.asking.ask(&guest.actor, guest.agent, question).await;
        let running = running.map_err(|error| reader.told(error))?;
        let shutdown = shutdown.map(|Extension(shutdown)| shutdown);
        opened.while_in_force(streamed(running, PageEncoder::new(reader), shutdown)).await
    };
    answered.await.map_err(IntoResponse::into_response)
}

/// Keeps what somebody says of an answer that they were given, and shows it to them again. It is shown as what comes of their form, and
/// at no address of its own, which would open it to whoever has that.
#[expect(clippy::too_many_arguments, reason = "each is a part of the request")]
#[handler]
async fn feedback(
    State(services): State<PublishedServices>,
    State(traces): State<TraceService>,
    State(links): State<CitationLinks>,
    ids: Result<Path<(String, String)>, PathRejection>,
    visitor: Result<Visitor, Response>,
    origin: RequestOrigin,
    headers: HeaderMap,
    uri: Uri,
    Extension(opened): Extension<RequestCredential>,
    StrangersForm { body, .. }: StrangersForm<GuestFeedback>,
) -> Result<Response, Response> {
    let Ok(Path((slug, trace))) = ids else { return Err(unknown_path().await.into_response()) };
    let guest = services.enter(&slug, origin, visitor, &opened).await?;
    let kept = async {
        let trace: TraceId = trace.parse().map_err(|_| ApiError::not_found("trace"))?;
        let given = TraceFeedback { rating: body.rating, text: body.text };
        traces.rate(&guest.actor, trace, given).await?;
        if wants_json(&headers) {
            return Ok(see_other(&format!("../../{}?said=thanks", guest.page.slug), true));
        }
        let told = traces.find_told(&guest.actor, trace).await?;
        let told = ToldAnswer::of(&told, &reader(links, &guest, root_of(uri.path()))).await?;
        let asked = GuestQuestion { question: told.question, session: told.session };
        let name = &guest.agent.agent().name;
        let page = page_of(&guest.page, name, &uri, PageReader::of(&guest), Some((asked, told.html)));
        html(&PagePolicy::Own, StatusCode::OK, &PublishedPage { said: true, ..page })
    };
    kept.await.map_err(IntoResponse::into_response)
}
