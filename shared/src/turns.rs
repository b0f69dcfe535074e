//! Turns at what only so many may do at once, fair between those on whose behalf it is done.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A bounded number of turns. One party, `K`, may have all of them while nobody else wants one; else the next goes to whoever has the fewest, of
/// these to whoever had one the longest ago, and last to whoever has waited longest. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct FairTurns<K: Copy + Eq + Hash> {
    queue: Arc<Mutex<TurnQueue<K>>>,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct FairTurn<K: Copy + Eq + Hash> {
    queue: Arc<Mutex<TurnQueue<K>>>,
    party: K,
}

#[derive(Debug)]
struct TurnQueue<K: Copy + Eq + Hash> {
    free: usize,
    /// Turns that were granted in all.
    granted: u64,
    /// Those who have turns or wait for one.
    parties: HashMap<K, PartyTurns>,
    /// Those who wait, the longest first.
    waiting: VecDeque<WaitingTurn<K>>,
}

/// What one party has of the turns.
#[derive(Debug, Default)]
struct PartyTurns {
    taken: usize,
    /// The number of its last one, or what stands for it.
    last: u64,
}

#[derive(Debug)]
struct WaitingTurn<K: Copy + Eq + Hash> {
    party: K,
    turn: oneshot::Sender<FairTurn<K>>,
}

impl<K: Copy + Eq + Hash> FairTurns<K> {
    /// So many turns at once, and one at least.
    pub fn new(at_once: usize) -> Self {
        let queue =
            TurnQueue { free: at_once.max(1), granted: 0, parties: HashMap::new(), waiting: VecDeque::new() };
        Self { queue: Arc::new(Mutex::new(queue)) }
    }

    /// Waits for a turn. Whoever stops waiting leaves the line.
    pub async fn take(&self, party: K) -> FairTurn<K> {
        loop {
            let waiting = {
                let mut queue = self.queue.lock();
                if queue.free > 0 {
                    return queue.grant(party, &self.queue);
                }
                let (turn, waiting) = oneshot::channel();
                queue.wait(party, turn);
                waiting
            };
            // Nobody gives up a place in the line without a turn; if so, it is taken anew.
            if let Ok(turn) = waiting.await {
                return turn;
            }
        }
    }
}

impl<K: Copy + Eq + Hash> TurnQueue<K> {
    fn grant(&mut self, party: K, queue: &Arc<Mutex<Self>>) -> FairTurn<K> {
        self.free -= 1;
        self.granted += 1;
        let turns = self.parties.entry(party).or_default();
        turns.taken += 1;
        turns.last = self.granted;
        FairTurn { queue: Arc::clone(queue), party }
    }

    /// Puts a party into the line. A newcomer counts as having had its last turn when those had who have waited longest for one: nobody who waits is
    /// overtaken again and again by others who come anew for each turn.
    fn wait(&mut self, party: K, turn: oneshot::Sender<FairTurn<K>>) {
        let earliest = self
            .waiting
            .iter()
            .filter_map(|waiting| self.parties.get(&waiting.party))
            .map(|turns| turns.last)
            .min();
        let last = earliest.unwrap_or(self.granted);
        self.parties.entry(party).or_insert(PartyTurns { taken: 0, last });
        self.waiting.push_back(WaitingTurn { party, turn });
    }

    /// Ends a turn of this party's.
    fn release(&mut self, party: K) {
        self.free += 1;
        if let Some(turns) = self.parties.get_mut(&party) {
            turns.taken -= 1;
        }
        // Who neither has one nor waits is forgotten.
        let Self { parties, waiting, .. } = self;
        waiting.retain(|waiting| !waiting.turn.is_closed());
        parties
            .retain(|party, turns| turns.taken > 0 || waiting.iter().any(|waiting| waiting.party == *party));
    }

    /// Whose turn is next.
    fn next(&mut self) -> Option<WaitingTurn<K>> {
        let claim = |waiting: &WaitingTurn<K>| {
            self.parties.get(&waiting.party).map_or((0, 0), |turns| (turns.taken, turns.last))
        };
        // The first of several that are alike.
        let (next, _) = self.waiting.iter().enumerate().min_by_key(|(_, waiting)| claim(waiting))?;
        self.waiting.remove(next)
    }
}

impl<K: Copy + Eq + Hash> Drop for FairTurn<K> {
    fn drop(&mut self) {
        let granted = {
            let mut queue = self.queue.lock();
            queue.release(self.party);
            queue.next().map(|next| (queue.grant(next.party, &self.queue), next.turn))
        };
        if let Some((turn, waiting)) = granted {
            // Whoever stopped waiting at this moment gives the turn on, as it is dropped here, without the lock.
            let _ = waiting.send(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn one_alone_has_all_turns_and_whoever_comes_has_the_next() {
        let (turns, one, other) = (FairTurns::new(2), "one", "other");
        let first = turns.take(one).now_or_never().unwrap();
        let second = turns.take(one).now_or_never().unwrap();
        let mut more: Vec<_> = (0..100).map(|_| Box::pin(turns.take(one))).collect();
        assert!(more.iter_mut().all(|turn| turn.now_or_never().is_none()));
        let mut newcomer = pin!(turns.take(other));
        assert!((&mut newcomer).now_or_never().is_none());
        drop(first);
        assert!(more[0].as_mut().now_or_never().is_none(), "others are before it");
        let newcomer = newcomer.now_or_never().expect("the turn that was given up");
        drop(second);
        let third = more.remove(0).now_or_never().expect("the longest of its own line");
        drop(newcomer);
        assert!(more.remove(0).now_or_never().is_some(), "nobody else waits");
        drop(third);
    }

    #[tokio::test]
    async fn those_who_want_more_than_there_is_take_turns() {
        let turns = FairTurns::new(1);
        let mut turn = turns.take("flood").now_or_never().unwrap();
        let take = |party| (party, Box::pin(turns.take(party)));
        let mut waiting = Vec::from(["flood", "flood", "flood", "other", "other", "third"].map(take));
        for (_, waiting) in &mut waiting {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        let mut order = Vec::new();
        while !waiting.is_empty() {
            drop(turn);
            let mut next = waiting.iter_mut().enumerate();
            let (at, granted) = next
                .find_map(|(at, (_, waiting))| waiting.as_mut().now_or_never().map(|turn| (at, turn)))
                .expect("somebody's turn");
            order.push(waiting.remove(at).0);
            turn = granted;
        }
        assert_eq!(order, ["flood", "other", "third", "flood", "other", "flood"]);
        drop(turn);
        assert!(turns.queue.lock().parties.is_empty(), "who is gone is forgotten");
    }

    #[tokio::test]
    async fn nobody_who_waits_is_overtaken_for_ever_by_others_who_come_anew() {
        let turns = FairTurns::new(1);
        let (mut turn, mut comes) = (turns.take("one").now_or_never().unwrap(), "other");
        let mut patient = pin!(turns.take("patient"));
        assert!((&mut patient).now_or_never().is_none());
        for _ in 0..3 {
            // Each is back before the other's turn ends.
            let mut next = Box::pin(turns.take(comes));
            assert!(next.as_mut().now_or_never().is_none());
            drop(turn);
            if (&mut patient).now_or_never().is_some() {
                return;
            }
            turn = next.now_or_never().expect("its turn");
            comes = if comes == "one" { "other" } else { "one" };
        }
        panic!("it was overtaken three times");
    }

    #[tokio::test]
    async fn whoever_stops_waiting_is_passed_over() {
        let (turns, one) = (FairTurns::new(1), "one");
        let first = turns.take(one).now_or_never().unwrap();
        let mut gone = Box::pin(turns.take("other"));
        let mut next = pin!(turns.take(one));
        assert!(gone.as_mut().now_or_never().is_none());
        assert!((&mut next).now_or_never().is_none());
        drop(gone);
        drop(first);
        drop(next.now_or_never().expect("the turn"));

        // A turn that was granted and never seen is free again, too.
        let first = turns.take(one).now_or_never().unwrap();
        let mut gone = Box::pin(turns.take(one));
        assert!(gone.as_mut().now_or_never().is_none());
        drop(first);
        drop(gone);
        assert!(turns.take("third").now_or_never().is_some());
    }
}
