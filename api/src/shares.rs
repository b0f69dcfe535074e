//! Shares of something of which there is only so much: memory for bodies, connections. While there is enough, one client may have
//! all of it. When it runs out, whoever has the most gives way, so that a flood from a few addresses keeps nobody else out.

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
pub(crate) struct Shares(Arc<Mutex<Table>>);

/// The bounds of what is shared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// All there is.
    pub(crate) whole: usize,
    /// The most that one holder may have.
    pub(crate) of_one: usize,
    /// When all is taken, a share that is older than this gives way, whoever holds it.
    pub(crate) stale: Option<Duration>,
}

struct Table {
    bounds: Bounds,
    taken: usize,
    next: u64,
    /// By number, so the oldest first.
    shares: BTreeMap<u64, Entry>,
    holders: HashMap<IpAddr, usize>,
}

struct Entry {
    holder: Option<IpAddr>,
    size: usize,
    since: Instant,
    over: Arc<Notify>,
}

/// Why a share cannot grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// Its holder has as much as one may have.
    One,
    /// All is taken by others, who have no more than this holder.
    Whole,
}

/// A share, which ends when this is dropped.
pub(crate) struct Share {
    shares: Shares,
    number: u64,
    over: Arc<Notify>,
}

impl Shares {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let (shares, holders) = (BTreeMap::new(), HashMap::new());
        Self(Arc::new(Mutex::new(Table { bounds, taken: 0, next: 0, shares, holders })))
    }

    /// Begins a share of nothing yet. Without a holder it counts against the whole only, and never has to give way.
    pub(crate) fn begin(&self, holder: Option<IpAddr>) -> Share {
        let over = Arc::<Notify>::default();
        let mut table = self.0.lock();
        let number = table.next;
        table.next += 1;
        table
            .shares
            .insert(number, Entry { holder, size: 0, since: Instant::now(), over: Arc::clone(&over) });
        Share { shares: self.clone(), number, over }
    }
}

impl Share {
    /// Takes some more, from others if need be.
    pub(crate) fn grow(&self, by: usize) -> Result<(), Full> {
        self.shares.0.lock().grow(self.number, by)
    }

    /// Waits until this share has been given to others.
    pub(crate) async fn given_up(&self) {
        self.over.notified().await;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.0.lock().end(self.number);
    }
}

impl Table {
    fn grow(&mut self, number: u64, by: usize) -> Result<(), Full> {
        // One that has been given to others is not there any more.
        let holder = self.shares.get(&number).ok_or(Full::Whole)?.holder;
        let own = holder.and_then(|holder| self.holders.get(&holder)).copied().unwrap_or(0);
        if holder.is_some() && own + by > self.bounds.of_one {
            return Err(Full::One);
        }
        while self.taken + by > self.bounds.whole {
            let other = self.who_gives_way(number, holder, own + by).ok_or(Full::Whole)?;
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

    /// The share that ends for another one, whose holder would have `wanted` in all.
    fn who_gives_way(&self, number: u64, holder: Option<IpAddr>, wanted: usize) -> Option<u64> {
        let others = || {
            let others = self.shares.iter().filter(|(other, entry)| **other != number && entry.size > 0);
            others.filter_map(|(other, entry)| Some((*other, entry.holder?, entry.since)))
        };
        let most = self.holders.iter().max_by_key(|(_, size)| **size);
        if let Some((most, size)) = most
            && Some(*most) != holder
            && *size > wanted
        {
            return others().find(|(_, holder, _)| holder == most).map(|(other, ..)| other);
        }
        let stale = self.bounds.stale?;
        others().next().filter(|(.., since)| since.elapsed() >= stale).map(|(other, ..)| other)
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

    fn shares(of_one: usize, stale: Option<Duration>) -> Shares {
        Shares::new(Bounds { whole: 10, of_one, stale })
    }

    fn taken(shares: &Shares, holder: Option<IpAddr>, size: usize) -> Share {
        let share = shares.begin(holder);
        share.grow(size).unwrap();
        share
    }

    fn is_given_up(share: &Share) -> bool {
        futures::FutureExt::now_or_never(share.given_up()).is_some()
    }

    #[test]
    fn one_holder_may_have_all_of_it_and_no_more() {
        let shares = shares(usize::MAX, None);
        let first = taken(&shares, ADA, 6);
        let second = taken(&shares, ADA, 4);
        assert_eq!(second.grow(1), Err(Full::Whole));
        assert!(!is_given_up(&first));
        drop(first);
        assert_eq!(second.grow(6), Ok(()));
    }

    #[test]
    fn the_oldest_share_of_whoever_has_the_most_gives_way_to_whoever_has_less() {
        let shares = shares(usize::MAX, None);
        let [oldest, newer] = [5, 5].map(|size| taken(&shares, ADA, size));
        let small = taken(&shares, GRACE, 3);
        assert!(is_given_up(&oldest) && !is_given_up(&newer));
        assert_eq!(oldest.grow(1), Err(Full::Whole), "what was given up stays so");
        assert_eq!(small.grow(2), Ok(()), "there is room for it now");
        assert_eq!(small.grow(1), Err(Full::Whole), "both have as much");
        assert!(!is_given_up(&newer));
    }

    #[test]
    fn one_holder_has_no_more_than_one_may_have_whatever_is_free() {
        let shares = shares(2, None);
        let _own = taken(&shares, ADA, 2);
        assert_eq!(shares.begin(ADA).grow(1), Err(Full::One));
        assert_eq!(shares.begin(GRACE).grow(1), Ok(()));
    }

    #[test]
    fn what_is_nobodys_is_bounded_by_the_whole_only_and_never_gives_way() {
        let shares = shares(2, Some(Duration::ZERO));
        let proxy = taken(&shares, None, 9);
        let ada = taken(&shares, ADA, 1);
        let _more = taken(&shares, None, 1);
        assert!(is_given_up(&ada) && !is_given_up(&proxy));
        assert_eq!(shares.begin(GRACE).grow(1), Err(Full::Whole));
    }

    #[test]
    fn a_stale_share_gives_way_to_anybody() {
        let shares = shares(usize::MAX, Some(Duration::ZERO));
        let [oldest, newer] = [5, 5].map(|size| taken(&shares, ADA, size));
        let _next = taken(&shares, ADA, 1);
        assert!(is_given_up(&oldest) && !is_given_up(&newer));
    }

    #[test]
    fn nothing_is_remembered_of_what_has_ended() {
        let shares = shares(usize::MAX, None);
        for size in 1..=10 {
            drop(taken(&shares, ADA, size));
        }
        let table = shares.0.lock();
        assert_eq!((table.taken, table.shares.len(), table.holders.len()), (0, 0, 0));
    }
}
