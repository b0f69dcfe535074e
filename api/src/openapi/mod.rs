//! What the interface says of itself: an OpenAPI 3.1 document, made from the handlers.
//!
//! A handler describes what is its own: its summary, its bodies, its examples, errors that only it has. What holds for every
//! operation of a kind is added by [`finish`], so that it is said once and forgotten nowhere.

mod failures;
mod finish;
mod router;

use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{
        Components, InfoBuilder, OpenApi, OpenApiBuilder,
        info::LicenseBuilder,
        security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
        tag::{Tag, TagBuilder},
    },
};

use finish::finish;
pub(crate) use router::{ApiDescription, ApiRouter, DescribedRoutes, routes};

/// An answer that is a success.
#[derive(Serialize, ToSchema)]
pub(crate) struct SuccessResponse<T> {
    /// True when the call succeeded.
    pub(crate) success: bool,
    /// What it gives.
    pub(crate) data: T,
}

/// The header `Authorization: Bearer …`.
const BEARER: &str = "bearer";
/// The same in the spelling that the interface was published with.
const AUTORIZATION: &str = "autorization";
/// The API token's own header.
const API_TOKEN: &str = "apiToken";

/// The groups of operations, in the order of the pages.
const TAGS: [(&str, &str); 21] = [
    ("Accounts", "Signing up, in and out, and the caller's own account."),
    (
        "Workspaces",
        "Whose things are: the people who share them, what each of them may do, and what was done.",
    ),
    ("API tokens", "Credentials for programs: they call agents, and do not expire until they are deleted."),
    ("Documents", "The sources that agents answer from, and their ingestion."),
    ("Collections", "Named sets of documents, which agents and searches can take as a whole."),
    ("Agents", "What is asked: a model, its prompt, and what is linked to it."),
    ("Agent documents", "Links: which documents an agent answers from."),
    ("Agent collections", "Links: which collections an agent answers from."),
    ("Tools", "What an agent can use besides its documents."),
    ("Agent tools", "Links: which tools an agent can use."),
    ("Tags", "Labels for agents."),
    ("Prompts", "Templates of what a model is told."),
    ("Search", "Finding passages of documents."),
    ("Predict", "Asking an agent."),
    ("Traces", "How answers came about."),
    (
        "Evaluations",
        "Sets of questions with what is to come of them, by which is measured how well is found and answered.",
    ),
    ("Sources", "Sites, feeds, buckets and folders whose documents are kept in step with what is there."),
    ("Webhooks", "Where events are told to, as Standard Webhooks has it."),
    (
        "OpenAI-compatible",
        "What clients of OpenAI's interface ask for, in its form: agents as models, documents as files, collections as vector stores. \
         Their base address is this service's with `/v1`, their key is an API token.",
    ),
    ("Operation", "What the operator sees and does, for accounts that are admins."),
    ("Service", "Whether the service lives and can do its work. No credentials are needed."),
];

/// The document before there are any operations in it.
fn base() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Lectern")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(include_str!("conventions.md")))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
        .build();
    let tag = |(name, description): (&str, &str)| -> Tag {
        TagBuilder::new().name(name).description(Some(description)).build()
    };
    let mut components = Components::new();
    let header = |name: &str, description: &str| {
        SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(name, description)))
    };
    let mut bearer = Http::new(HttpAuthScheme::Bearer);
    bearer.description =
        Some("The token of a sign-in, or an API token: `Authorization: Bearer <token>`.".to_owned());
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    components.add_security_scheme(
        AUTORIZATION,
        header(
            "Autorization",
            "The same with the header's name spelled as the interface was first published: `Autorization: Bearer <token>`.",
        ),
    );
    components.add_security_scheme(
        API_TOKEN,
        header("X_SERVICE_API_KEY", "The value of an API token. `X-Service-Api-Key` is read as well."),
    );
    failures::register(&mut components);
    OpenApiBuilder::new()
        .info(info)
        .tags(Some(TAGS.map(tag)))
        .components(Some(components))
        .security(Some([BEARER, AUTORIZATION].map(|name| SecurityRequirement::new(name, [""; 0]))))
        .build()
}
