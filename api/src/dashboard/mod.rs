//! Pages for people, which the service renders itself. The templates are in `api/templates`, and what users wrote reaches HTML
//! through their escaping alone. All that is a link or a form works without script; the scripts in `assets` add progress, streams
//! and drag and drop. A handler calls the functions of `services`; the router and [`crate::http`] call what is here.

mod account;
mod agents;
mod answer;
mod ask;
mod askers;
mod building;
mod choices;
mod cited;
mod collections;
mod confirm;
mod conversation;
mod cookies;
mod documents;
mod edits;
mod elsewhere;
mod evaluations;
mod failure;
mod feedback;
mod frame;
mod home;
mod labels;
mod markdown;
mod members;
mod overview;
mod published;
mod said;
mod search;
pub(crate) mod session;
mod sign_in;
mod sources;
mod text;
mod tokens;
mod told;
mod traces;
mod values;
mod webhooks;

use askama::Template;
use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse},
    routing::{get, post},
};

pub(crate) use self::{
    failure::{FailureFrame, error_response},
    frame::{wants_json, wants_page},
};
use crate::{error::ApiError, response::ApiResult, state::AppState, static_file::StaticFile};

/// What a page may load, run and ask for, and in whose frames it stands. Nothing of it stands in the page itself: no script, no style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PagePolicy {
    /// Shows something and does nothing.
    Static,
    /// Runs this service's scripts, and sends forms to it.
    Own,
    /// The same, in frames of pages of these origins.
    Framed(Vec<String>),
}

impl PagePolicy {
    fn header(&self) -> Result<HeaderValue, ApiError> {
        const ALL: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'";
        const OWN: &str = "script-src 'self'; connect-src 'self'; form-action 'self'";
        let text = match self {
            Self::Static => format!("{ALL}; form-action 'none'; frame-ancestors 'none'"),
            Self::Own => format!("{ALL}; {OWN}; frame-ancestors 'none'"),
            // They were read as origins, so that nothing else can stand in them.
            Self::Framed(origins) => format!("{ALL}; {OWN}; frame-ancestors {}", origins.join(" ")),
        };
        HeaderValue::try_from(text).map_err(|_| ApiError::internal())
    }
}

const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// The first folders of the pages of those who are signed in, or want to be.
const PAGES: [&str; 26] = [
    "",
    "account",
    "agents",
    "ask",
    "audit",
    "collections",
    "documents",
    "embed",
    "evaluations",
    "feedback",
    "invitations",
    "jobs",
    "members",
    "prompts",
    "search",
    "sign-in",
    "sign-out",
    "sign-up",
    "sources",
    "tokens",
    "tools",
    "traces",
    "usage",
    "webhooks",
    "workspace",
    "workspaces",
];

/// The roles, and what they are for.
const ROLES: [(&str, &str); 4] = [
    ("asker", "asks agents"),
    ("editor", "asks, and keeps documents"),
    ("builder", "asks, keeps documents, and builds agents"),
    ("owner", "may everything"),
];

/// Whether it is the path of a page that knows browsers by their cookie.
pub(crate) fn is_page(path: &str) -> bool {
    let first = path.strip_prefix('/').and_then(|rest| rest.split('/').next());
    first.is_some_and(|first| PAGES.contains(&first))
}

/// What is said for every link that opens nothing, so that nobody learns why.
const NOTHING_HERE: (&str, &str) = (
    "There is nothing here",
    "The link is not complete, or its time is over, or what it led to was deleted, or it is not yours to see.",
);

/// A file that pages load.
macro_rules! asset {
    ($name:literal, $content_type:literal) => {
        (
            concat!("/assets/", $name),
            StaticFile::new($content_type, Bytes::from_static(include_bytes!(concat!("assets/", $name)))),
        )
    };
}

/// The paths of the pages. They are for people, and no part of the interface for programs.
#[expect(clippy::disallowed_methods, reason = "the document describes what programs use")]
pub(crate) fn router() -> Router<AppState> {
    let assets = [
        asset!("style.css", "text/css; charset=utf-8"),
        asset!("app.js", "text/javascript; charset=utf-8"),
        asset!("ask.js", "text/javascript; charset=utf-8"),
        asset!("upload.js", "text/javascript; charset=utf-8"),
        asset!("icon.svg", "image/svg+xml"),
    ];
    let mut router = Router::new()
        .route("/", get(home::show))
        .route("/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route("/sign-in/code", post(sign_in::redeem))
        .route("/sign-up", get(sign_in::show_sign_up).post(sign_in::sign_up))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/workspace", post(sign_in::choose))
        .route("/workspace/delete", post(members::delete_workspace))
        .route("/workspaces", post(members::create_workspace))
        .route("/invitations", get(members::show_invitation).post(members::accept))
        .route("/invitations/look", get(members::show_invitation).post(members::look_at_invitation))
        .route("/members", get(members::show).post(members::invite))
        .route("/members/{id}", post(members::change))
        .route("/members/{id}/remove", post(members::remove))
        .route("/members/invitations/{id}/withdraw", post(members::withdraw))
        .route("/account", get(account::show).post(account::change))
        .route("/account/sign-out-everywhere", post(account::sign_out_everywhere))
        .route("/account/delete", post(account::delete))
        .merge(documents::router())
        .route("/collections", get(collections::list).post(collections::create))
        .route("/collections/{id}", get(collections::show).post(collections::change))
        .route("/collections/{id}/delete", post(collections::delete))
        .route("/collections/{id}/take-out", post(collections::take_out))
        .merge(sources::router())
        .merge(evaluations::router())
        .route("/search", get(search::show))
        .merge(agents::router())
        .route("/prompts", get(building::prompts).post(building::create_prompt))
        .route("/prompts/{id}", post(building::change_prompt))
        .route("/prompts/{id}/delete", post(building::delete_prompt))
        .route("/tools", get(building::tools).post(building::create_tool))
        .route("/tools/{id}", post(building::change_tool))
        .route("/tools/{id}/delete", post(building::delete_tool))
        .route("/traces", get(traces::list))
        .route("/traces/delete", get(traces::list).post(askers::erase))
        .route("/traces/{id}", get(traces::show))
        .route("/traces/{id}/delete", post(traces::delete))
        // What forms are answered with stays at their addresses. Followed or opened anew, these show the page without what was done.
        .route("/traces/{id}/replay", get(traces::show).post(traces::replay))
        .route("/traces/{id}/again", get(traces::show).post(traces::ask_again))
        .route("/feedback/{id}", post(feedback::of_answer))
        .route("/feedback/trace/{id}", post(feedback::of_trace))
        .route("/feedback/then/{now}/{id}", post(feedback::of_then))
        .route("/feedback/now/{then}/{id}", post(feedback::of_now))
        .route("/tokens", get(tokens::show).post(tokens::create))
        .route("/tokens/{id}/delete", post(tokens::delete))
        .route("/webhooks", get(webhooks::list).post(webhooks::create))
        .route("/webhooks/{id}", get(webhooks::show).post(webhooks::change))
        .route("/webhooks/{id}/rotate", get(webhooks::show).post(webhooks::rotate))
        .route("/webhooks/{id}/test", post(webhooks::test))
        .route("/webhooks/{id}/deliveries/{delivery}/replay", post(webhooks::replay))
        .route("/webhooks/{id}/delete", post(webhooks::delete))
        .route("/usage", get(overview::usage))
        .route("/audit", get(overview::audit))
        .route("/jobs", get(overview::jobs))
        .route("/jobs/{id}/retry", post(overview::retry))
        .merge(published::router())
        .route("/cite/{token}", get(cited::show))
        .route("/cite/{token}/page.png", get(cited::page));
    let embed = StaticFile::new(
        "text/javascript; charset=utf-8",
        Bytes::from_static(include_bytes!("assets/embed.js")),
    );
    // Browsers ask for it by themselves where nothing names an icon: where something is shown that is no page.
    let (_, icon) = asset!("icon.svg", "image/svg+xml");
    for (path, file) in assets.into_iter().chain([("/embed.js", embed), ("/favicon.ico", icon)]) {
        router = router.route(path, get(async move |headers: HeaderMap| file.answer(&headers)));
    }
    router
}

/// A page as browsers get it. It may be for one person alone, so nobody in between keeps it, and its address goes to no other site.
fn html(policy: &PagePolicy, status: StatusCode, page: &impl Template) -> ApiResult {
    let text = page.render().map_err(|error| {
        tracing::error!(%error, "a page could not be rendered");
        ApiError::internal()
    })?;
    // Forms say where they come from, which `no-referrer` would have browsers leave out.
    let referrer = if *policy == PagePolicy::Static { "no-referrer" } else { "same-origin" };
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy.header()?),
        (header::REFERRER_POLICY, HeaderValue::from_static(referrer)),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-store")),
        (ROBOTS, HeaderValue::from_static("noindex")),
    ];
    Ok((status, headers, Html(text)).into_response())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_form_that_changes_something_names_the_workspace_of_its_page() {
        // Those of an account, of nobody yet, and of which workspace it is; and those whose addresses no template writes.
        const OTHERS: [&str; 12] = [
            "workspace",
            "workspaces",
            "invitations",
            "account",
            "account/sign-out-everywhere",
            "account/delete",
            "sign-out",
            "sign-in",
            "sign-in/code",
            "sign-up",
            "{{ panel.action }}",
            "{{ feedback }}",
        ];
        let mut named = 0;
        for (path, text) in templates() {
            for form in text.split("<form ").skip(1).map(|rest| rest.split('>').next().unwrap()) {
                if !form.contains("method=\"post\"") {
                    continue;
                }
                let action = form.split("action=\"").nth(1).unwrap().split('"').next().unwrap();
                if OTHERS.contains(&action.trim_start_matches("{{ frame.root }}")) {
                    continue;
                }
                assert!(action.contains("?{{ frame.stamp() }}"), "{path}: {form}");
                named += 1;
            }
        }
        assert!(named > 60, "{named} forms were looked at");
    }

    #[test]
    fn every_field_of_a_form_that_changes_something_has_a_name_for_people() {
        let mut named = 0;
        for (path, text) in templates() {
            let mut forms = text.split("<form ");
            // The fields of a part stand in whichever form has it.
            let outside = forms.next().filter(|_| path.contains("/parts/"));
            let posted = forms.filter(|form| form.split('>').next().unwrap().contains("method=\"post\""));
            for tag in posted.chain(outside).flat_map(|form| form.split('<')) {
                let is_field = ["input ", "select ", "textarea "].iter().any(|kind| tag.starts_with(kind));
                let is_written =
                    !["type=\"hidden\"", "type=\"checkbox\""].iter().any(|kind| tag.contains(kind));
                let name = tag.split(" name=\"").nth(1).and_then(|rest| rest.split(['"', ':', '{']).next());
                let Some(name) = name.filter(|name| is_field && is_written && !name.is_empty()) else {
                    continue;
                };
                let is_value = name.starts_with("values.");
                assert!(is_value || super::labels::field_label(name) != name, "{path}: {name}");
                named += 1;
            }
        }
        assert!(named > 60, "{named} fields were looked at");
    }

    #[test]
    fn every_button_that_asks_brings_its_question_for_those_without_scripts() {
        let mut asked = 0;
        for (path, text) in templates() {
            let buttons = text.split("<button").skip(1).map(|rest| rest.split("</button>").next().unwrap());
            for button in buttons.filter(|button| button.contains("data-confirm")) {
                // What is done to a selection is asked about by its handler, which counts it.
                let is_bulk = button.contains("data-confirm-all");
                assert!(is_bulk || button.contains(" name=\"confirm\" value=\""), "{path}: {button}");
                asked += 1;
            }
        }
        assert!(asked > 20, "{asked} buttons were looked at");
    }

    /// The templates, by name.
    fn templates() -> Vec<(String, String)> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
        let mut all = Vec::new();
        for folder in [folder.join("parts"), folder] {
            let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            for path in files.filter(|path| path.is_file()) {
                all.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
        all
    }

    #[test]
    fn each_value_of_a_table_that_is_stacked_on_phones_names_its_column() {
        let mut named = 0;
        for (path, text) in templates() {
            for table in text.split("<table class=\"stacks\"").skip(1) {
                let table = table.split("</table>").next().unwrap();
                if table.contains("<tbody></tbody>") {
                    // A script fills it.
                    continue;
                }
                for heading in table.split("<th scope=\"col\"").skip(1) {
                    let heading = heading.split_once('>').and_then(|(_, rest)| rest.split("</th>").next());
                    // Columns of buttons have names that nobody sees.
                    let Some(heading) = heading.filter(|heading| !heading.contains('<')) else { continue };
                    assert!(table.contains(&format!("<td data-label=\"{heading}\"")), "{path}: {heading}");
                    named += 1;
                }
            }
        }
        assert!(named > 50, "{named} columns were looked at");
    }

    #[test]
    fn the_style_loads_nothing() {
        let style = include_str!("assets/style.css");
        assert!(!style.contains("url(") && !style.contains("@import"), "{style}");
    }
}
