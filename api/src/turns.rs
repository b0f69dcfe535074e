//! Turns at work that anybody may ask for: few at once, and fair between those who ask. Each asker has a queue of its
//! own, of a bounded length, and no more than a few of one asker's stand in the common queue. So a flood of one asker waits for
//! itself, and another's turn comes after one round of the askers, not after the flood. Where there can be a flood of askers too, some
//! turns are reserved for those of whom more is known.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Weak},
    time::Duration,
};

use lectern_shared::compute::ComputeStopped;
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};

/// How many have a turn, and how many may wait for one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SemaphoreLimits {
    /// Turns at once.
    pub(crate) at_once: usize,
    /// Turns besides, for [`PermitLane::Reserved`].
    pub(crate) reserved: usize,
    /// Of them, those of one asker.
    pub(crate) of_one: usize,
    /// Further ones of one asker that may wait.
    pub(crate) waiting: usize,
    /// How long one waits at most.
    pub(crate) patience: Duration,
}

/// In which queue one waits for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermitLane {
    /// That of all.
    Common,
    /// That of all, and at the same time the one for the reserved turns.
    Reserved,
}

/// Why there is no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PermitError {
    /// As many of this asker's wait as may.
    #[error("too many of one asker wait")]
    QueueFull,
    /// It has waited for as long as it may.
    #[error("no turn came in time")]
    Late,
}

/// The turns. Cheap to clone; clones share them.
#[derive(Clone)]
pub(crate) struct FairSemaphore<K> {
    bounds: SemaphoreLimits,
    all: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    askers: Arc<Mutex<HashMap<K, Weak<KeySemaphores>>>>,
}

/// One asker, for as long as it has or awaits a turn.
struct KeySemaphores {
    turns: Arc<Semaphore>,
    /// A place for each that has a turn or waits for one.
    places: Arc<Semaphore>,
    /// Places that are free when every turn is taken and nobody waits.
    waiting: usize,
}

/// A place among those of an asker who have or await a turn. It is free again when this is dropped, or the turn that came of it.
pub(crate) struct PermitSlot {
    all: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    patience: Duration,
    place: OwnedSemaphorePermit,
    asker: Arc<KeySemaphores>,
}

/// A turn. It ends when this is dropped.
pub(crate) struct FairPermit {
    _lane: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
    /// Remembered until its last turn has ended.
    asker: Arc<KeySemaphores>,
}

impl<K: Eq + Hash> FairSemaphore<K> {
    /// Turns within these bounds.
    pub(crate) fn new(bounds: SemaphoreLimits) -> Self {
        let (all, reserved) = (semaphore(bounds.at_once), semaphore(bounds.reserved));
        Self { bounds, all, reserved, askers: Arc::default() }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// When too many of this asker wait already, or when it takes too long.
    pub(crate) async fn acquire(&self, asker: K) -> Result<FairPermit, PermitError> {
        self.reserve_slot(asker)?.turn(PermitLane::Common).await
    }

    /// Takes a place, in which one may find out what decides about the lane. How many find out is so bounded too.
    ///
    /// # Errors
    /// When too many of this asker wait already.
    pub(crate) fn reserve_slot(&self, asker: K) -> Result<PermitSlot, PermitError> {
        let asker = self.asker(asker);
        let place = Arc::clone(&asker.places).try_acquire_owned().map_err(|_| PermitError::QueueFull)?;
        let (all, reserved) = (Arc::clone(&self.all), Arc::clone(&self.reserved));
        Ok(PermitSlot { all, reserved, patience: self.bounds.patience, place, asker })
    }

    fn asker(&self, key: K) -> Arc<KeySemaphores> {
        let mut askers = self.askers.lock();
        if let Some(asker) = askers.get(&key).and_then(Weak::upgrade) {
            return asker;
        }
        // Nobody who has no turn and awaits none is remembered; looked through as seldom as the map grows, so that a crowd of askers
        // does not pay for each other.
        if askers.len() == askers.capacity() {
            askers.retain(|_, asker| asker.strong_count() > 0);
        }
        let SemaphoreLimits { of_one, waiting, .. } = self.bounds;
        let (turns, places) = (semaphore(of_one), semaphore(of_one.saturating_add(waiting)));
        let waiting = places.available_permits().saturating_sub(turns.available_permits());
        let asker = Arc::new(KeySemaphores { turns, places, waiting });
        askers.insert(key, Arc::downgrade(&asker));
        asker
    }
}

impl PermitSlot {
    /// Waits for a turn.
    ///
    /// # Errors
    /// When it takes too long.
    pub(crate) async fn turn(self, lane: PermitLane) -> Result<FairPermit, PermitError> {
        let turn = async {
            // In this order: whoever waits for the asker's own turn is not in the queue of all.
            let own = Arc::clone(&self.asker.turns).acquire_owned().await.ok()?;
            Some((own, self.of_lane(lane).await?))
        };
        let (own, lane) = timeout(self.patience, turn).await.ok().flatten().ok_or(PermitError::Late)?;
        Ok(FairPermit { _lane: lane, _own: own, _place: self.place, asker: self.asker })
    }

    async fn of_lane(&self, lane: PermitLane) -> Option<OwnedSemaphorePermit> {
        let common = Arc::clone(&self.all).acquire_owned();
        match lane {
            PermitLane::Common => common.await.ok(),
            PermitLane::Reserved => tokio::select! {
                biased;
                // First, so that what is reserved is left to those who need it.
                turn = common => turn.ok(),
                turn = Arc::clone(&self.reserved).acquire_owned() => turn.ok(),
            },
        }
    }
}

impl FairPermit {
    /// Whether further ones of its asker wait for a turn.
    pub(crate) fn is_awaited(&self) -> bool {
        self.asker.places.available_permits() < self.asker.waiting
    }

    /// Does blocking work. The turn goes with the work: a caller that goes away does not let another piece begin before this one
    /// ends.
    ///
    /// # Errors
    /// [`ComputeStopped`] when the work panicked.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ComputeStopped> {
        self.run_and_keep(work).await.map(|(_turn, done)| done)
    }

    /// The same, and gives the turn back for what follows.
    ///
    /// # Errors
    /// [`ComputeStopped`] when the work panicked.
    pub(crate) async fn run_and_keep<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(Self, T), ComputeStopped> {
        let done = spawn_blocking(move || {
            let done = work();
            (self, done)
        });
        done.await.map_err(|_| ComputeStopped)
    }
}

/// One at least.
fn semaphore(count: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)))
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, poll};

    use super::*;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_mins(1);

    fn turns(at_once: usize, of_one: usize, waiting: usize) -> FairSemaphore<&'static str> {
        FairSemaphore::new(SemaphoreLimits { at_once, reserved: 1, of_one, waiting, patience: LONG })
    }

    #[tokio::test]
    async fn the_flood_of_one_does_not_keep_another_waiting() {
        let turns = turns(1, 1, 1_000);
        let first = turns.acquire("flood").await.ok().unwrap();
        let mut flood: Vec<_> = (0..1_000).map(|_| Box::pin(turns.acquire("flood"))).collect();
        for waiting in &mut flood {
            assert!(poll!(waiting).is_pending());
        }
        let mut other = Box::pin(turns.acquire("other"));
        assert!(poll!(&mut other).is_pending());
        drop(first);
        assert!(poll!(&mut flood[0]).is_pending());
        let turn = other.now_or_never().expect("the other's turn").ok().unwrap();
        assert!(poll!(&mut flood[0]).is_pending());
        drop(turn);
        assert!(flood.remove(0).await.is_ok());
    }

    #[tokio::test]
    async fn a_queue_of_many_askers_does_not_keep_those_waiting_who_have_turns_of_their_own() {
        let turns = FairSemaphore::new(SemaphoreLimits {
            at_once: 1,
            reserved: 1,
            of_one: 1,
            waiting: 0,
            patience: LONG,
        });
        let first = turns.acquire(0).await.ok().unwrap();
        let mut crowd: Vec<_> = (1..50).map(|asker| Box::pin(turns.acquire(asker))).collect();
        for waiting in &mut crowd {
            assert!(poll!(waiting).is_pending());
        }
        let reserved = |asker| turns.reserve_slot(asker).ok().unwrap().turn(PermitLane::Reserved);
        let known = reserved(1_000).now_or_never().expect("a reserved turn").ok().unwrap();
        assert!(poll!(&mut crowd[0]).is_pending(), "it is not for everybody");

        let mut others = [Box::pin(reserved(1_001)), Box::pin(reserved(1_002))];
        for waiting in &mut others {
            assert!(poll!(waiting).is_pending(), "it is taken");
        }
        let [next, last] = others;
        drop(known);
        let next = next.now_or_never().expect("the reserved turn").ok().unwrap();
        // Whoever may have it stands in the common queue too.
        drop((crowd, first));
        assert!(last.now_or_never().expect("a common turn").is_ok());
        drop(next);
    }

    #[tokio::test]
    async fn a_place_is_taken_before_the_turn() {
        let turns = turns(2, 1, 1);
        let places = [turns.reserve_slot("one"), turns.reserve_slot("one")].map(|place| place.ok().unwrap());
        assert_eq!(turns.reserve_slot("one").err(), Some(PermitError::QueueFull));
        assert!(turns.reserve_slot("other").is_ok());
        let [first, second] = places;
        let turn = first.turn(PermitLane::Common).await.ok().unwrap();
        assert_eq!(turns.reserve_slot("one").err(), Some(PermitError::QueueFull), "a turn has a place too");
        drop((turn, second));
        assert!(turns.reserve_slot("one").is_ok());
    }

    #[tokio::test]
    async fn as_many_of_one_wait_as_may_and_others_may_still() {
        let turns = turns(2, 1, 2);
        let _turn = turns.acquire("one").await.ok().unwrap();
        let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(turns.acquire("one"))).collect();
        for one in &mut waiting {
            assert!(poll!(one).is_pending());
        }
        assert_eq!(turns.acquire("one").await.err(), Some(PermitError::QueueFull));
        assert!(turns.acquire("other").await.is_ok());
        // Whoever goes away leaves its place.
        drop(waiting.pop());
        assert!(poll!(Box::pin(turns.acquire("one"))).is_pending());
    }

    #[tokio::test]
    async fn a_turn_tells_whether_others_of_its_asker_wait() {
        let turns = turns(9, 2, 9);
        let [first, second] = [turns.acquire("one").await, turns.acquire("one").await];
        let [first, _second] = [first, second].map(|turn| turn.ok().unwrap());
        let other = turns.acquire("other").await.ok().unwrap();
        assert!(!first.is_awaited());
        let mut waiting = Box::pin(turns.acquire("one"));
        assert!(poll!(&mut waiting).is_pending());
        assert!(first.is_awaited() && !other.is_awaited());
        drop(waiting);
        assert!(!first.is_awaited(), "it has gone away");
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let bounds =
            SemaphoreLimits { at_once: 1, reserved: 1, of_one: 1, waiting: 9, patience: Duration::ZERO };
        let turns = FairSemaphore::new(bounds);
        let turn = turns.acquire("one").await.ok().unwrap();
        assert_eq!(turns.acquire("other").await.err(), Some(PermitError::Late));
        drop(turn);
        assert!(turns.acquire("other").await.is_ok());
    }

    #[tokio::test]
    async fn askers_who_are_gone_are_forgotten() {
        let turns = FairSemaphore::new(SemaphoreLimits {
            at_once: 1,
            reserved: 1,
            of_one: 1,
            waiting: 0,
            patience: LONG,
        });
        for asker in 0..10_000 {
            assert!(turns.acquire(asker).await.is_ok());
        }
        assert!(turns.askers.lock().capacity() < 100);
    }

    #[tokio::test]
    async fn a_turn_lasts_as_long_as_its_work_even_if_nobody_waits_for_that() {
        let turns = turns(1, 1, 1);
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (end, may_end) = std::sync::mpsc::channel::<()>();
        let turn = turns.acquire("one").await.ok().unwrap();
        let work = tokio::spawn(turn.run(move || {
            let _ = begun.send(());
            let _ = may_end.recv();
        }));
        tokio::task::spawn_blocking(move || has_begun.recv()).await.unwrap().unwrap();
        work.abort();
        let mut next = Box::pin(turns.acquire("other"));
        assert!(poll!(&mut next).is_pending());
        drop(end);
        assert!(next.await.is_ok());
    }

    #[tokio::test]
    async fn a_turn_that_is_kept_for_what_follows_the_work_ends_after_that() {
        let turns = turns(1, 1, 1);
        let turn = turns.acquire("one").await.ok().unwrap();
        let (turn, seven) = turn.run_and_keep(|| 7).await.unwrap();
        let mut next = Box::pin(turns.acquire("other"));
        assert!(poll!(&mut next).is_pending());
        drop(turn);
        assert!(next.await.is_ok());
        assert_eq!(seven, 7);
    }

    #[tokio::test]
    async fn a_panic_in_the_work_is_told_and_ends_the_turn() {
        let turns = turns(1, 1, 1);
        let turn = turns.acquire("one").await.ok().unwrap();
        assert_eq!(turn.run(|| panic!("as the test wants it")).await, Err::<(), _>(ComputeStopped));
        assert!(turns.acquire("one").await.is_ok());
    }
}
