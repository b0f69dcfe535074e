//! Shares of something of which there is only so much: memory for bodies, connections. While there is enough, one client may have
//! all of it. When it runs out, whoever has the most gives way, so that a flood from a few addresses keeps nobody else out; and so
//! does whoever has kept a share waiting for long, so that a flood from many addresses does not either.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// What is shared. Cheap to clone; clones share the same.
#[derive(Clone)]
pub(crate) struct ResourcePool(Arc<Mutex<ShareTable>>);

/// The bounds of what is shared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolLimits {
    /// All there is.
    pub(crate) whole: usize,
    /// The most that one holder may have.
    pub(crate) of_one: usize,
    /// When all is taken, a share whose holder has been waited for as long as this gives way, whoever that is.
    pub(crate) stale: Duration,
}

struct ShareTable {
    bounds: PoolLimits,
    taken: usize,
    next: u64,
    /// By number, so the oldest first.
    shares: BTreeMap<u64, ShareEntry>,
    holders: HashMap<IpAddr, usize>,
}

struct ShareEntry {
    holder: Option<IpAddr>,
    size: usize,
    state: ShareState,
    over: Arc<Notify>,
}

/// What happens with a share, and so to whom it gives way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShareState {
    /// Its holder has been waited for since then. It gives way to whoever has less, and when that is long ago, to anybody.
    Waiting(Instant),
    /// Something is being done for its holder. It gives way to whoever has less, when nothing else does.
    Busy,
    /// It gives way to nobody.
    Kept,
}

impl ShareState {
    fn is_waiting(self) -> bool {
        matches!(self, Self::Waiting(_))
    }
}

/// Why a share cannot grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolExhausted {
    /// Its holder has as much as one may have.
    One,
    /// All is taken by others, who have no more than this holder.
    Whole,
}

/// A share, which ends when this is dropped.
pub(crate) struct ResourceShare {
    shares: ResourcePool,
    number: u64,
    over: Arc<Notify>,
}

impl ResourcePool {
    pub(crate) fn new(bounds: PoolLimits) -> Self {
        let (shares, holders) = (BTreeMap::new(), HashMap::new());
        Self(Arc::new(Mutex::new(ShareTable { bounds, taken: 0, next: 0, shares, holders })))
    }

    /// Begins a share of nothing yet, which waits for its holder. Without one it counts against the whole only, and never has to give
    /// way.
    pub(crate) fn begin(&self, holder: Option<IpAddr>) -> ResourceShare {
        let over = Arc::<Notify>::default();
        let mut table = self.0.lock();
        let number = table.next;
        table.next += 1;
        let state = ShareState::Waiting(Instant::now());
        table.shares.insert(number, ShareEntry { holder, size: 0, state, over: Arc::clone(&over) });
        ResourceShare { shares: self.clone(), number, over }
    }
}

impl ResourceShare {
    /// Takes some more, from others if need be.
    pub(crate) fn grow(&self, by: usize) -> Result<(), PoolExhausted> {
        self.shares.0.lock().grow(self.number, by)
    }

    /// Something is being done for the holder from now on.
    pub(crate) fn busy(&self) {
        self.shares.0.lock().set_state(self.number, |_| ShareState::Busy);
    }

    /// The holder is waited for: from now on, or for as long as it is already.
    pub(crate) fn waits(&self) {
        self.shares.0.lock().set_state(self.number, |state| match state {
            ShareState::Waiting(_) => state,
            ShareState::Busy | ShareState::Kept => ShareState::Waiting(Instant::now()),
        });
    }

    /// It is not given to others from now on, until it is dropped: what it stands for cannot be taken back any more.
    ///
    /// # Errors
    /// When it has been given to others already.
    pub(crate) fn keep(&self) -> Result<(), PoolExhausted> {
        let is_there = self.shares.0.lock().set_state(self.number, |_| ShareState::Kept);
        is_there.then_some(()).ok_or(PoolExhausted::Whole)
    }

    /// Waits until this share has been given to others.
    pub(crate) async fn evicted(&self) {
        self.over.notified().await;
    }
}

impl Drop for ResourceShare {
    fn drop(&mut self) {
        self.shares.0.lock().end(self.number);
    }
}

impl ShareTable {
    fn grow(&mut self, number: u64, by: usize) -> Result<(), PoolExhausted> {
        // One that has been given to others is not there any more.
        let holder = self.shares.get(&number).ok_or(PoolExhausted::Whole)?.holder;
        let own = holder.and_then(|holder| self.holders.get(&holder)).copied().unwrap_or(0);
        if holder.is_some() && own + by > self.bounds.of_one {
            return Err(PoolExhausted::One);
        }
        while self.taken + by > self.bounds.whole {
            let other = self.choose_victim(number, holder, own + by).ok_or(PoolExhausted::Whole)?;
            self.end(other);
        }
        self.taken += by;
        if let Some(entry) = self.shares.get_mut(&number) {
            entry.size += by;
        }
        if let Some(holder) = holder {
            *self.holders.entry(holder).or_default() += by;
        }
        Ok(())
    }

    /// Puts a share into its next state; false when it has been given to others.
    fn set_state(&mut self, number: u64, next: impl FnOnce(ShareState) -> ShareState) -> bool {
        let Some(entry) = self.shares.get_mut(&number) else { return false };
        entry.state = next(entry.state);
        true
    }

    /// The share that ends for another one, whose holder would have `wanted` in all. One that is waited for goes before one for which
    /// something is done, whosever they are.
    fn choose_victim(&self, number: u64, holder: Option<IpAddr>, wanted: usize) -> Option<u64> {
        let most = self.who_has_more(holder, wanted);
        self.oldest_of(most, number, ShareState::is_waiting)
            .or_else(|| self.longest_waiting(number))
            .or_else(|| self.oldest_of(most, number, |state| state == ShareState::Busy))
    }

    /// Whoever has the most, if that is another holder, and more than is `wanted`.
    fn who_has_more(&self, holder: Option<IpAddr>, wanted: usize) -> Option<IpAddr> {
        let (most, size) = self.holders.iter().max_by_key(|(_, size)| **size)?;
        (Some(*most) != holder && *size > wanted).then_some(*most)
    }

    /// The oldest share of a holder in such a state.
    fn oldest_of(
        &self,
        holder: Option<IpAddr>,
        number: u64,
        is_meant: fn(ShareState) -> bool,
    ) -> Option<u64> {
        let holder = holder?;
        let is_one = |entry: &ShareEntry| entry.holder == Some(holder) && is_meant(entry.state);
        self.others(number).find(|(_, entry)| is_one(entry)).map(|(other, _)| other)
    }

    /// The share that has been waiting for longest, if that is long.
    fn longest_waiting(&self, number: u64) -> Option<u64> {
        let waiting = self.others(number).filter_map(|(other, entry)| match entry.state {
            ShareState::Waiting(since) => Some((since, other)),
            ShareState::Busy | ShareState::Kept => None,
        });
        let (since, other) = waiting.min()?;
        (since.elapsed() >= self.bounds.stale).then_some(other)
    }

    /// The shares that something could be had of but this one, the oldest first.
    fn others(&self, number: u64) -> impl Iterator<Item = (u64, &ShareEntry)> {
        let others = self.shares.iter().map(|(other, entry)| (*other, entry));
        others.filter(move |(other, entry)| *other != number && entry.size > 0 && entry.holder.is_some())
    }

    fn end(&mut self, number: u64) {
        let Some(entry) = self.shares.remove(&number) else { return };
        self.taken -= entry.size;
        if let Some(holder) = entry.holder
            && let Some(size) = self.holders.get_mut(&holder)
        {
            *size -= entry.size;
            if *size == 0 {
                self.holders.remove(&holder);
            }
        }
        entry.over.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)));
    const GRACE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)));
    const NEVER: Duration = Duration::MAX;

    fn shares(of_one: usize, stale: Duration) -> ResourcePool {
        ResourcePool::new(PoolLimits { whole: 10, of_one, stale })
    }

    fn taken(shares: &ResourcePool, holder: Option<IpAddr>, size: usize) -> ResourceShare {
        let share = shares.begin(holder);
        share.grow(size).unwrap();
        share
    }

    fn is_given_up(share: &ResourceShare) -> bool {
        futures::FutureExt::now_or_never(share.evicted()).is_some()
    }

    #[test]
    fn one_holder_may_have_all_of_it_and_no_more() {
        let shares = shares(usize::MAX, NEVER);
        let first = taken(&shares, ADA, 6);
        let second = taken(&shares, ADA, 4);
        assert_eq!(second.grow(1), Err(PoolExhausted::Whole));
        assert!(!is_given_up(&first));
        drop(first);
        assert_eq!(second.grow(6), Ok(()));
    }

    #[test]
    fn the_oldest_share_of_whoever_has_the_most_gives_way_to_whoever_has_less() {
        let shares = shares(usize::MAX, NEVER);
        let [oldest, newer] = [5, 5].map(|size| taken(&shares, ADA, size));
        let small = taken(&shares, GRACE, 3);
        assert!(is_given_up(&oldest) && !is_given_up(&newer));
        assert_eq!(oldest.grow(1), Err(PoolExhausted::Whole), "what was given up stays so");
        assert_eq!(small.grow(2), Ok(()), "there is room for it now");
        assert_eq!(small.grow(1), Err(PoolExhausted::Whole), "both have as much");
        assert!(!is_given_up(&newer));
    }

    #[test]
    fn one_holder_has_no_more_than_one_may_have_whatever_is_free() {
        let shares = shares(2, NEVER);
        let _own = taken(&shares, ADA, 2);
        assert_eq!(shares.begin(ADA).grow(1), Err(PoolExhausted::One));
        assert_eq!(shares.begin(GRACE).grow(1), Ok(()));
    }

    #[test]
    fn what_is_nobodys_is_bounded_by_the_whole_only_and_never_gives_way() {
        let shares = shares(2, Duration::ZERO);
        let proxy = taken(&shares, None, 9);
        let ada = taken(&shares, ADA, 1);
        let _more = taken(&shares, None, 1);
        assert!(is_given_up(&ada) && !is_given_up(&proxy));
        assert_eq!(shares.begin(GRACE).grow(1), Err(PoolExhausted::Whole));
    }

    #[test]
    fn a_stale_share_gives_way_to_anybody() {
        let shares = shares(usize::MAX, Duration::ZERO);
        let [oldest, newer] = [5, 5].map(|size| taken(&shares, ADA, size));
        let _next = taken(&shares, ADA, 1);
        assert!(is_given_up(&oldest) && !is_given_up(&newer));
    }

    #[test]
    fn of_stale_shares_the_one_that_was_waited_for_longest_gives_way() {
        let shares = shares(usize::MAX, Duration::ZERO);
        let [served, idle, newer] = [3, 3, 4].map(|size| taken(&shares, ADA, size));
        let begun = Instant::now();
        while begun.elapsed().is_zero() {}
        // It is waited for only since now.
        served.busy();
        served.waits();
        idle.waits();
        let _next = taken(&shares, ADA, 3);
        assert!(is_given_up(&idle), "it is as old as it was");
        assert!(!is_given_up(&served) && !is_given_up(&newer));
    }

    #[test]
    fn a_busy_share_gives_way_to_whoever_has_less_and_only_when_none_waits() {
        let shares = shares(usize::MAX, Duration::ZERO);
        let busy = [2, 2, 2].map(|size| taken(&shares, ADA, size));
        busy.iter().for_each(ResourceShare::busy);
        let proxy = taken(&shares, None, 1);
        let idle = taken(&shares, GRACE, 3);
        let small = taken(&shares, GRACE, 1);
        assert!(is_given_up(&idle), "an idle one of whoever has less goes first");
        assert!(!busy.iter().any(is_given_up));
        small.busy();
        assert_eq!(small.grow(2), Ok(()));
        assert_eq!(small.grow(1), Ok(()));
        assert!(is_given_up(&busy[0]) && !is_given_up(&busy[1]), "nothing else was left");
        assert!(!is_given_up(&proxy), "what is nobody's never gives way");
    }

    #[test]
    fn a_share_that_is_kept_gives_way_to_nobody() {
        let shares = shares(usize::MAX, Duration::ZERO);
        let [kept, other] = [6, 4].map(|size| taken(&shares, ADA, size));
        assert_eq!(kept.keep(), Ok(()));
        let small = taken(&shares, GRACE, 1);
        assert!(is_given_up(&other) && !is_given_up(&kept));
        assert_eq!(small.grow(4), Err(PoolExhausted::Whole));
        assert_eq!(other.keep(), Err(PoolExhausted::Whole), "it was given up");
        drop(kept);
        assert_eq!(small.grow(4), Ok(()));
    }

    #[test]
    fn nothing_is_remembered_of_what_has_ended() {
        let shares = shares(usize::MAX, NEVER);
        for size in 1..=10 {
            drop(taken(&shares, ADA, size));
        }
        let table = shares.0.lock();
        assert_eq!((table.taken, table.shares.len(), table.holders.len()), (0, 0, 0));
    }
}
