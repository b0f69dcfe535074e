//! Things that are chosen by their names.

use std::collections::HashMap;

use axum::http::Uri;
use lectern_db::choices::NamedChoices;
use lectern_shared::ids::CollectionId;
use url::form_urlencoded::{self, Serializer};
use uuid::Uuid;

use crate::{
    error::ApiErrorKind,
    extract::{LONGEST_PART, parameter},
    response::ApiResult,
    services::{actor::Actor, collections::CollectionService},
};

/// Things of a kind that are offered at once, the newest ones; others are looked for by name.
pub(super) const OFFERED: u32 = 200;

/// What is chosen among all of its kind, which are only many at times.
#[derive(Clone, Copy)]
pub(super) enum ChoiceKind {
    Collection,
    Prompt,
    Tool,
}

impl ChoiceKind {
    /// What one is called in a sentence, and the name of the input.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Collection => "collection",
            Self::Prompt => "prompt",
            Self::Tool => "tool",
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Collection => "Collection",
            Self::Prompt => "Prompt",
            Self::Tool => "Tool",
        }
    }

    /// Several of them.
    pub(super) fn many(self) -> &'static str {
        match self {
            Self::Collection => "Collections",
            Self::Prompt => "Prompts",
            Self::Tool => "Tools",
        }
    }

    /// The part of a name that an address looks for.
    pub(super) fn looked_for(self, uri: &Uri) -> String {
        looked_for(uri, &format!("find-{}", self.name()))
    }
}

/// A part of a name that is looked for, as the address has it.
pub(super) fn looked_for(uri: &Uri, parameter_name: &str) -> String {
    let find = parameter(uri, parameter_name).unwrap_or_default().replace('\0', "");
    find.trim().chars().take(LONGEST_PART).collect()
}

/// What an address looks for in a list, and where the list goes on.
#[derive(Default)]
pub(super) struct ListPlace {
    /// What the names have somewhere; empty for all of them.
    pub(super) name: String,
    /// Behind which row it begins; none for its beginning.
    pub(super) after: Option<Uuid>,
}

impl ListPlace {
    pub(super) fn of(uri: &Uri) -> Self {
        let after = parameter(uri, "after").and_then(|after| after.parse().ok());
        Self { name: looked_for(uri, "name"), after }
    }

    /// The id that comes behind all rows of before.
    pub(super) fn before(&self) -> Uuid {
        self.after.unwrap_or_else(Uuid::max)
    }

    /// The query of this page of the list; empty for the beginning of all of it.
    pub(super) fn query(&self) -> String {
        let after = self.after.map(|after| after.to_string()).unwrap_or_default();
        let pairs = [("name", self.name.as_str()), ("after", &after)];
        let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        Serializer::new(String::new()).extend_pairs(given).finish()
    }

    /// The query of the first page.
    pub(super) fn first(&self) -> String {
        Self { name: self.name.clone(), after: None }.query()
    }

    /// The query of the page behind a row, if there is one.
    pub(super) fn next(&self, last: Option<Uuid>) -> Option<String> {
        last.map(|last| Self { name: self.name.clone(), after: Some(last) }.query())
    }
}

/// Things of one kind that can be chosen on a page.
pub(super) struct NameChoice {
    pub(super) kind: ChoiceKind,
    /// By id and name: the newest ones, and the one that is chosen.
    pub(super) offered: Vec<(String, String)>,
    /// How many of them are offered because they are the newest.
    pub(super) newest: usize,
    /// How many there are.
    pub(super) count: u64,
    /// What their names have somewhere.
    pub(super) find: String,
    /// What else the page's address says, which stays when others are looked for.
    pub(super) kept: Vec<(String, String)>,
    /// The part of the page that they are in; empty for its beginning.
    pub(super) part: &'static str,
}

impl NameChoice {
    /// On the page at an address, in this part of it.
    pub(super) fn of<I: ToString>(
        kind: ChoiceKind,
        choices: NamedChoices<I>,
        chosen: Option<(I, String)>,
        uri: &Uri,
        part: &'static str,
    ) -> Self {
        let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let own = format!("find-{}", kind.name());
        let kept = query.filter(|(name, _)| name != "said" && name != own.as_str());
        let newest = choices.newest.len();
        let all = choices.newest.into_iter().chain(chosen);
        Self {
            kind,
            offered: told_apart(all.map(|(id, name)| (id.to_string(), name))),
            newest,
            count: choices.count,
            find: kind.looked_for(uri),
            kept: kept.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
            part,
        }
    }

    /// Whether there are others than those that are offered.
    pub(super) fn has_more(&self) -> bool {
        self.count > self.newest as u64
    }

    /// None where there is nothing to choose from, and nothing was looked for.
    pub(super) fn shown(&self) -> Option<&Self> {
        (!self.offered.is_empty() || !self.find.is_empty()).then_some(self)
    }

    /// Takes out those that need not be offered.
    pub(super) fn leave_out(&mut self, is_needless: impl Fn(&str) -> bool) {
        let before = self.offered.len();
        self.offered.retain(|(id, _)| !is_needless(id));
        let left_out = before - self.offered.len();
        self.newest = self.newest.saturating_sub(left_out);
        self.count = self.count.saturating_sub(left_out as u64);
    }

    /// Where nothing is looked for, from the page itself.
    pub(super) fn everything(&self) -> String {
        let query = Serializer::new(String::new()).extend_pairs(&self.kept).finish();
        format!("?{query}#{}", self.part)
    }
}

/// The collections of the workspace that can be chosen on a page, and the one that is chosen.
pub(super) async fn collection_choice(
    collections: &CollectionService,
    actor: &Actor,
    chosen: Option<CollectionId>,
    uri: &Uri,
    part: &'static str,
) -> ApiResult<NameChoice> {
    let kind = ChoiceKind::Collection;
    let choices = collections.choices(actor, &kind.looked_for(uri), OFFERED).await?;
    let is_offered = |chosen: &CollectionId| choices.newest.iter().any(|(id, _)| id == chosen);
    // Without it a form would take it away.
    let chosen = match chosen.filter(|chosen| !is_offered(chosen)) {
        Some(chosen) => match collections.find(actor, chosen).await {
            Ok(found) => Some((found.id, found.name)),
            Err(error) if error.kind == ApiErrorKind::NotFound => None,
            Err(error) => return Err(error),
        },
        None => None,
    };
    Ok(NameChoice::of(kind, choices, chosen, uri, part))
}

/// Characters of an id that tell a thing from others of its name. They are its last ones: ids of one hour begin alike.
const END: usize = 6;

/// Choices by id and name, of which no two look the same: where one name is that of several, each has the end of its id behind it.
pub(super) fn told_apart<I: ToString>(choices: impl IntoIterator<Item = (I, String)>) -> Vec<(I, String)> {
    let mut choices: Vec<(I, String)> = choices.into_iter().collect();
    let mut named: HashMap<String, usize> = HashMap::new();
    for (_, name) in &choices {
        *named.entry(as_shown(name)).or_default() += 1;
    }
    for (id, name) in &mut choices {
        if named.get(&as_shown(name)).is_some_and(|count| *count > 1) {
            *name = format!("{name} (id …{})", end_of(&id.to_string()));
        }
    }
    choices
}

/// A name as browsers show it in a list: with one space wherever there are several.
fn as_shown(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn end_of(id: &str) -> &str {
    id.len().checked_sub(END).and_then(|from| id.get(from..)).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_of_one_name_have_the_end_of_their_ids_and_others_nothing() {
        let choices = [
            ("019a8f60-1b2c-7d3e-8f4a-5b6c7d8e9f01", "Guide"),
            ("019a8f60-1b2c-7d3e-8f4a-5b6c7daaaaaa", "Clerk"),
            ("019a8f60-1b2c-7d3e-8f4a-5b6c7d8e9f02", "Guide"),
            ("short", " Guide"),
            ("019a8f60-1b2c-7d3e-8f4a-5b6c7dbbbbbb", "guide"),
        ];
        let told = told_apart(choices.map(|(id, name)| (id, name.to_owned())));
        let names: Vec<_> = told.iter().map(|(_, name)| name.as_str()).collect();
        let expected = ["Guide (id …8e9f01)", "Clerk", "Guide (id …8e9f02)", " Guide (id …short)", "guide"];
        assert_eq!(names, expected);
        assert_eq!(told.iter().map(|(id, _)| *id).collect::<Vec<_>>(), choices.map(|(id, _)| id));
    }

    #[test]
    fn a_page_of_a_list_keeps_what_is_looked_for() {
        let place = ListPlace::of(&"/agents?name=+a%26%C3%A9%00+&after=x".parse().unwrap());
        assert_eq!((place.name.as_str(), place.after, place.before()), ("a&é", None, Uuid::max()));
        assert_eq!((place.query().as_str(), place.next(None)), ("name=a%26%C3%A9", None));
        let next = place.next(Some(Uuid::nil())).unwrap();
        assert_eq!(next, "name=a%26%C3%A9&after=00000000-0000-0000-0000-000000000000");
        let next = ListPlace::of(&format!("/agents?{next}").parse().unwrap());
        assert_eq!((next.after, next.first().as_str()), (Some(Uuid::nil()), "name=a%26%C3%A9"));
        let long = format!("/agents?name={}", "%C3%BC".repeat(LONGEST_PART + 1));
        assert_eq!(ListPlace::of(&long.parse().unwrap()).name.chars().count(), LONGEST_PART);
        assert_eq!(ListPlace::of(&"/agents".parse().unwrap()).query(), "");
    }

    #[test]
    fn a_choice_keeps_what_its_page_is_about_and_counts_what_it_offers() {
        let choices =
            NamedChoices { newest: vec![("c", "Shelf".to_owned()), ("b", "Box".to_owned())], count: 3 };
        let uri = "/documents?name=a%26b&find-collection=%00x+&said=saved&sort=name".parse().unwrap();
        let chosen = Some(("a", "Old".to_owned()));
        let mut choice = NameChoice::of(ChoiceKind::Collection, choices, chosen, &uri, "part");
        assert_eq!((choice.find.as_str(), choice.everything().as_str()), ("x", "?name=a%26b&sort=name#part"));
        let ids: Vec<_> = choice.offered.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!((ids, choice.newest, choice.count), (vec!["c", "b", "a"], 2, 3));
        assert!(choice.has_more());
        choice.leave_out(|id| id == "b");
        assert_eq!((choice.offered.len(), choice.newest, choice.count), (2, 1, 2));
    }
}
