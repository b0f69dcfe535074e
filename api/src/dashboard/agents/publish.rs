//! Giving an agent a page of its own.

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_derive::handler;
use lectern_shared::{
    ids::AgentId,
    model::publication::{Publication, PublicationAccess},
};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::{
    dashboard::{
        PagePolicy,
        confirm::Confirmed,
        edits::{EditForm, ShownFields, was_made},
        frame::{Frame, Visitor},
        html,
        text::variables,
    },
    extract::PathId,
    public_address::PublicAddress,
    response::ApiResult,
    services::{
        asking::AskService,
        edits::EditBase,
        publications::{NewPublication, PublicationService},
    },
};

#[derive(Template)]
#[template(path = "publish.html")]
struct PublishPage {
    frame: Frame,
    id: AgentId,
    name: String,
    /// What the form is made from.
    seen: String,
    /// What its prompt takes besides the question, which published pages do not have.
    needed: String,
    /// The page's whole address; empty for an agent that is not published.
    url: String,
    /// The page does not answer any more.
    is_closed: bool,
    /// What a page of another site has in it to show the widget.
    embed: String,
    slug: String,
    access: &'static str,
    title: String,
    greeting: String,
    questions: String,
    accent: String,
    /// As it was saved; empty for a page that has none.
    rate: String,
    origins: String,
}

/// The address of a page as its builder wrote it.
fn written(page: &Publication) -> &str {
    match (page.access, page.slug.rsplit_once('-')) {
        (PublicationAccess::Link, Some((written, _))) => written,
        _ => &page.slug,
    }
}

/// What the form shows of an agent's page, which was never changed where there is none.
fn shown(page: Option<&Publication>, rate: Option<i64>) -> ShownFields {
    let Some(page) = page else { return ShownFields::of(EditBase::NEVER) };
    let rate = rate.map(|rate| rate.to_string()).unwrap_or_default();
    ShownFields::of(page.updated_at)
        .whole()
        .text("slug", "The last part of its address", written(page))
        .choice("access", "Who may open it", page.access.as_str(), &[])
        .text("title", "Title", &page.title)
        .text("greeting", "What is said before the first question", &page.greeting)
        .lines("questions", "Questions to choose from", &page.questions.0.join("\n"))
        .text("accent", "Colour of its buttons", &page.accent)
        .number("ratePerMinute", "Questions a minute", &rate)
        .lines("origins", "Sites that may show it in a frame", &page.origins.0.join("\n"))
}

/// How many may ask on a page without an account.
async fn rate_of(publications: &PublicationService, page: Option<&Publication>) -> ApiResult<Option<i64>> {
    match page {
        Some(page) => publications.rate_per_minute(page).await,
        None => Ok(None),
    }
}

/// Shows the form.
#[handler]
pub(super) async fn show(
    State(asking): State<AskService>,
    State(publications): State<PublicationService>,
    address: PublicAddress,
    visitor: Visitor,
    PathId(id): PathId<AgentId>,
) -> ApiResult {
    let actor = visitor.actor();
    let published = publications.find(&actor, id).await?;
    let agent = asking.find(&actor, id).await?;
    let name = agent.agent().name.clone();
    let page = published.as_ref();
    let is_closed = match page {
        Some(page) => !publications.is_answering(page).await?,
        None => false,
    };
    let rate = rate_of(&publications, page).await?;
    let lines = |texts: Option<&Vec<String>>| texts.map(|texts| texts.join("\n")).unwrap_or_default();
    let embed = |page: &Publication| {
        format!(r#"<script src="{}" data-page="{}" async></script>"#, address.link("/embed.js"), page.slug)
    };
    let page = PublishPage {
        id,
        seen: shown(page, rate).seen(),
        url: page.map(|page| address.link(&format!("/ask/{}", page.slug))).unwrap_or_default(),
        is_closed,
        embed: page.filter(|page| !page.origins.0.is_empty()).map(embed).unwrap_or_default(),
        slug: page.map_or_else(|| suggested(&name), |page| written(page).to_owned()),
        access: page.map_or(PublicationAccess::Members, |page| page.access).as_str(),
        title: page.map(|page| page.title.clone()).unwrap_or_default(),
        greeting: page.map(|page| page.greeting.clone()).unwrap_or_default(),
        questions: lines(page.map(|page| &page.questions.0)),
        accent: page.map(|page| page.accent.clone()).unwrap_or_default(),
        rate: rate.map(|rate| rate.to_string()).unwrap_or_default(),
        origins: lines(page.map(|page| &page.origins.0)),
        needed: variables(&asking.needed_values(&agent).await?),
        name,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// An address that is like a name.
fn suggested(name: &str) -> String {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' }
    };
    // A letter with a mark is told best by the one without.
    let letters = name.replace('ß', "ss");
    let text: String = letters.nfkd().filter(|letter| !is_combining_mark(*letter)).map(plain).collect();
    let words: Vec<&str> = text.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-").chars().take(60).collect()
}

/// Publishes it, or changes its page.
#[handler]
pub(super) async fn publish(
    State(publications): State<PublicationService>,
    PathId(id): PathId<AgentId>,
    EditForm { visitor, body, edit }: EditForm<NewPublication>,
) -> ApiResult {
    let actor = visitor.actor();
    if was_made(publications.put(&actor, id, body, edit.base()).await)? {
        return Ok(visitor.go(&format!("agents/{id}/publish?said=saved")));
    }
    let found = publications.find(&actor, id).await?;
    let rate = rate_of(&publications, found.as_ref()).await?;
    edit.outdated(visitor, &shown(found.as_ref(), rate), None, &format!("agents/{id}/publish"))
}

/// Takes the page away.
#[handler]
pub(super) async fn withdraw(
    State(publications): State<PublicationService>,
    PathId(id): PathId<AgentId>,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    publications.delete(&visitor.actor(), id).await?;
    Ok(visitor.go(&format!("agents/{id}?said=removed")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_suggested_that_the_service_takes() {
        for (name, slug) in [
            ("The Handbook", "the-handbook"),
            ("  Ask: us! ", "ask-us"),
            ("Ärzte & Maße", "arzte-masse"),
            ("日本", ""),
        ] {
            assert_eq!(suggested(name), slug);
        }
    }
}
