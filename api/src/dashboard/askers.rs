//! Who asked, as the lists of answers and the page of one tell it to those who build agents; and the deletion of all that is kept of one of
//! them: step by step, so that no request lasts long, and what was done stays done.

use std::collections::HashMap;

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_db::traces::ErasedRuns;
use lectern_derive::{RequestBody, handler};
use lectern_shared::ids::AskerId;
use utoipa::ToSchema;

use super::{
    PagePolicy,
    confirm::ConfirmedForm,
    frame::{Frame, SubmittedForm},
    html,
};
use crate::{
    error::ApiError,
    fields::GivenId,
    response::ApiResult,
    services::{
        actor::{Actor, Permission},
        traces::TraceService,
    },
};

/// What those are called whom nobody knows any more.
const GONE: &str = "somebody who is not here any more";

/// Somebody who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedAsker {
    pub(super) id: AskerId,
    pub(super) name: String,
}

/// What those are called who asked, for whoever sees everybody's answers; to others nobody is told.
pub(super) struct AskerNames(Option<HashMap<AskerId, String>>);

impl AskerNames {
    /// Those of these.
    pub(super) async fn of(
        traces: &TraceService,
        actor: &Actor,
        mut askers: Vec<AskerId>,
    ) -> ApiResult<Self> {
        if actor.may(Permission::BuildAgents).is_err() {
            return Ok(Self(None));
        }
        askers.sort_unstable();
        askers.dedup();
        Ok(Self(Some(traces.asker_names(actor, &askers).await?)))
    }

    /// One of them, as they are called.
    pub(super) fn named(&self, asker: Option<AskerId>) -> Option<NamedAsker> {
        let (names, id) = (self.0.as_ref()?, asker?);
        let name = names.get(&id).filter(|name| !name.trim().is_empty());
        Some(NamedAsker { id, name: name.cloned().unwrap_or_else(|| GONE.to_owned()) })
    }

    /// Of whom all answers can be deleted from a list: of the one that it was asked for, and, by those who see their own alone, of themselves.
    pub(super) fn erasable(&self, actor: &Actor, chosen: Option<AskerId>) -> Option<NamedAsker> {
        match self.0 {
            Some(_) => self.named(chosen),
            None => {
                let id = actor.sees_runs_of()?.asker();
                Some(NamedAsker { id, name: "you".to_owned() })
            }
        }
    }
}

/// Whose answers are deleted.
#[derive(RequestBody, ToSchema)]
pub(super) struct ErasureForm {
    #[schema(value_type = String)]
    asker: GivenId<AskerId>,
    /// Answers of earlier steps.
    #[schema(value_type = Option<String>, max_length = 20)]
    #[body(default)]
    done: String,
}

#[derive(Template)]
#[template(path = "answers_deleted.html")]
struct ErasurePage {
    frame: Frame,
    asker: AskerId,
    done: u64,
}

/// Deletes as many of one's answers as a request is for, and goes on with the next page where there are more.
#[handler]
pub(super) async fn erase(
    State(traces): State<TraceService>,
    ConfirmedForm(SubmittedForm { visitor, body, .. }): ConfirmedForm<ErasureForm>,
) -> ApiResult {
    let asker = body.asker.map_err(|_| ApiError::not_found("asker"))?;
    let earlier: u64 = match body.done.as_str() {
        "" => 0,
        done => done
            .parse()
            .map_err(|_| ApiError::invalid_field("done", "must be as an earlier step has left it"))?,
    };
    let erased = traces.delete_some_of(&visitor.actor(), asker).await?;
    let ErasedRuns { traces: count, has_more, .. } = erased;
    if !has_more {
        return Ok(visitor.go("traces?said=answers-deleted"));
    }
    let done = earlier.saturating_add(count);
    let page = ErasurePage { frame: visitor.frame, asker, done };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// What an address says of who asked: an id, or nothing.
pub(super) fn asker_of(text: &str) -> ApiResult<Option<AskerId>> {
    match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| ApiError::not_found("asker")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asked_is_told_by_name_and_who_is_gone_is_somebody() {
        let [known, gone, nameless] = [AskerId::generate(), AskerId::generate(), AskerId::generate()];
        let names = HashMap::from([(known, "ada@example.com".to_owned()), (nameless, " ".to_owned())]);
        let names = AskerNames(Some(names));
        let called = |asker| names.named(asker).map(|named| named.name);
        assert_eq!(called(Some(known)).as_deref(), Some("ada@example.com"));
        assert_eq!(called(Some(gone)).as_deref(), Some(GONE));
        assert_eq!(called(Some(nameless)).as_deref(), Some(GONE));
        assert_eq!(called(None), None);
        assert_eq!(AskerNames(None).named(Some(known)), None, "others are told of nobody");
    }

    #[test]
    fn an_address_names_one_who_asked_or_nobody() {
        let one = AskerId::generate();
        assert_eq!(asker_of("").unwrap(), None);
        assert_eq!(asker_of(&one.to_string()).unwrap(), Some(one));
        assert_eq!(asker_of("everybody").unwrap_err().code, "not_found");
    }
}
