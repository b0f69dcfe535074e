//! The models of earlier settings that a process has opened, and those that it could not open.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use crate::Embedder;

/// How long a model that cannot be opened is not tried again, and one that was opened has its place.
const FORGET_AFTER: Duration = Duration::from_mins(10);
/// Models that are kept in memory.
const MODELS: usize = 3;
/// Models that could not be opened which are remembered.
const FAILURES: usize = 64;

/// What became of the models of earlier settings, by their spaces.
#[derive(Debug, Default)]
pub(super) struct EarlierModels {
    opened: HashMap<Uuid, OpenedModel>,
    /// When each was tried.
    failed: HashMap<Uuid, Instant>,
}

#[derive(Debug)]
struct OpenedModel {
    embedder: Arc<dyn Embedder>,
    /// When it was asked for last.
    used: Instant,
}

impl EarlierModels {
    /// What is known of the model of a space: none when it has to be opened first, and then none of it when it cannot be had.
    #[expect(clippy::option_option, reason = "whether it is known, and what")]
    pub(super) fn get(&mut self, space: Uuid, now: Instant) -> Option<Option<Arc<dyn Embedder>>> {
        if let Some(opened) = self.opened.get_mut(&space) {
            opened.used = now;
            return Some(Some(Arc::clone(&opened.embedder)));
        }
        let tried = self.failed.get(&space)?;
        (now.saturating_duration_since(*tried) < FORGET_AFTER).then_some(None)
    }

    /// Makes room for one more model. False when all that are there were asked for of late: models that take turns in one place would be
    /// opened by every search.
    pub(super) fn make_room(&mut self, now: Instant) -> bool {
        if self.opened.len() < MODELS {
            return true;
        }
        let Some((space, used)) = oldest(self.opened.iter().map(|(space, opened)| (*space, opened.used)))
        else {
            return true;
        };
        let is_idle = now.saturating_duration_since(used) >= FORGET_AFTER;
        if is_idle {
            self.opened.remove(&space);
        }
        is_idle
    }

    /// Notes a model that was opened.
    pub(super) fn opened(&mut self, space: Uuid, embedder: Arc<dyn Embedder>, now: Instant) {
        self.failed.remove(&space);
        self.opened.insert(space, OpenedModel { embedder, used: now });
    }

    /// Notes that a model could not be opened.
    pub(super) fn failed(&mut self, space: Uuid, now: Instant) {
        if self.failed.len() >= FAILURES
            && !self.failed.contains_key(&space)
            && let Some((oldest, _)) = oldest(self.failed.iter().map(|(space, tried)| (*space, *tried)))
        {
            self.failed.remove(&oldest);
        }
        self.failed.insert(space, now);
    }
}

fn oldest(all: impl Iterator<Item = (Uuid, Instant)>) -> Option<(Uuid, Instant)> {
    all.min_by_key(|(_, at)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Synonyms;

    fn space(n: usize) -> Uuid {
        Uuid::from_u128(n as u128)
    }

    fn model() -> Arc<dyn Embedder> {
        Arc::new(Synonyms::new("earlier"))
    }

    #[test]
    fn what_cannot_be_opened_takes_no_models_place() {
        let (mut earlier, now) = (EarlierModels::default(), Instant::now());
        for n in 0..MODELS {
            assert!(earlier.make_room(now));
            earlier.opened(space(n), model(), now);
        }
        for n in MODELS..MODELS + FAILURES {
            earlier.failed(space(n), now);
        }
        for n in 0..MODELS {
            assert!(matches!(earlier.get(space(n), now), Some(Some(_))), "{n}");
        }
        for n in MODELS..MODELS + FAILURES {
            assert!(matches!(earlier.get(space(n), now), Some(None)), "{n}");
        }
        earlier.failed(space(MODELS + FAILURES), now);
        assert_eq!(earlier.failed.len(), FAILURES);
        assert!(earlier.get(space(MODELS), now + FORGET_AFTER).is_none(), "it is tried again");
    }

    #[test]
    fn a_model_gives_way_only_when_nobody_has_asked_for_it_of_late() {
        let (mut earlier, now) = (EarlierModels::default(), Instant::now());
        for n in 0..MODELS {
            earlier.opened(space(n), model(), now);
        }
        assert!(!earlier.make_room(now));
        let later = now + FORGET_AFTER;
        for n in 1..MODELS {
            assert!(earlier.get(space(n), later).is_some(), "{n}");
        }
        assert!(earlier.make_room(later));
        assert!(earlier.get(space(0), later).is_none());
        assert!(earlier.get(space(1), later).is_some());
    }
}
