//! Giving an agent a page of its own.

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_derive::handler;
use lectern_shared::{
    ids::AgentId,
    model::publication::{Publication, PublicationAccess},
};

use crate::{
    dashboard::{
        PagePolicy,
        confirm::Confirmed,
        frame::{Frame, SubmittedForm, Visitor},
        html,
        text::variables,
    },
    extract::PathId,
    public_address::PublicAddress,
    response::ApiResult,
    services::{
        asking::AskService,
        publications::{NewPublication, PublicationService},
    },
};

#[derive(Template)]
#[template(path = "publish.html")]
struct PublishPage {
    frame: Frame,
    id: AgentId,
    name: String,
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
    let rate = match page {
        Some(page) => publications.rate_per_minute(page).await?,
        None => None,
    };
    let lines = |texts: Option<&Vec<String>>| texts.map(|texts| texts.join("\n")).unwrap_or_default();
    let embed = |page: &Publication| {
        format!(r#"<script src="{}" data-page="{}" async></script>"#, address.link("/embed.js"), page.slug)
    };
    let page = PublishPage {
        id,
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
    let text: String = name.chars().map(plain).collect();
    let words: Vec<&str> = text.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-").chars().take(60).collect()
}

/// Publishes it, or changes its page.
#[handler]
pub(super) async fn publish(
    State(publications): State<PublicationService>,
    PathId(id): PathId<AgentId>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<NewPublication>,
) -> ApiResult {
    publications.put(&visitor.actor(), id, body).await?;
    Ok(visitor.go(&format!("agents/{id}/publish?said=saved")))
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
        for (name, slug) in
            [("The Handbook", "the-handbook"), ("  Ask: us! ", "ask-us"), ("Ärzte", "rzte"), ("日本", "")]
        {
            assert_eq!(suggested(name), slug);
        }
    }
}
