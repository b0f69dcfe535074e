//! The resolver inside the guarded client. The addresses that it hands out are the ones connected to, so there is no
//! gap between the check and the connection in which a name could change its answer.

use std::{
    hash::{BuildHasher as _, RandomState},
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::{
    net::lookup_host,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::address::AddressGuard;
use crate::turns::{FairTurn, FairTurns};

/// Lookups at once. Each holds a blocking thread for as long as the system's resolver takes, of which the runtime has
/// a few hundred for everything: names that never answer must not use them up.
const MAX_LOOKUPS: usize = 64;
/// Of these, lookups of names of one site: whoever has a site whose names never answer could make everybody else wait.
const OF_ONE_SITE: usize = 16;
/// Sites that are told apart, by their hashes: what is known of them takes no more memory however many there are.
const SITES: usize = 256;
/// Under which labels countries give sites out, as in `example.co.uk`. Else whoever has one there would keep all others waiting.
const OF_COUNTRIES: [&str; 10] = ["ac", "co", "com", "edu", "go", "gov", "ne", "net", "or", "org"];

/// Why a name gave no address to connect to.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResolveError {
    /// At least one of its addresses may not be connected to.
    #[error("the name resolves to an address that is refused")]
    Refused,
    /// No answer in time.
    #[error("the lookup took too long")]
    TimedOut,
    /// The system's resolver failed.
    #[error("the lookup failed")]
    Failed(#[source] io::Error),
}

/// Turns at looking names up, fair between sites. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
struct LookupTurns {
    turns: FairTurns<usize>,
    sites: Arc<[Arc<Semaphore>]>,
    hasher: RandomState,
}

/// A turn, until it is dropped.
struct LookupTurn {
    _turn: FairTurn<usize>,
    _of_site: OwnedSemaphorePermit,
}

impl LookupTurns {
    fn new() -> Self {
        let sites = (0..SITES).map(|_| Arc::new(Semaphore::new(OF_ONE_SITE))).collect();
        Self { turns: FairTurns::new(MAX_LOOKUPS), sites, hasher: RandomState::new() }
    }

    /// The number of the site that a name is of.
    fn site(&self, host: &str) -> usize {
        usize::try_from(self.hasher.hash_one(site_of(host)) % SITES as u64).unwrap_or(0)
    }

    /// Waits for a turn. Whoever stops waiting leaves the line.
    async fn take(&self, host: &str) -> io::Result<LookupTurn> {
        let site = self.site(host);
        let of_site = Arc::clone(&self.sites[site]).acquire_owned().await.map_err(io::Error::other)?;
        Ok(LookupTurn { _turn: self.turns.take(site).await, _of_site: of_site })
    }
}

/// The site that a name is of: without a list of public suffixes, its last two labels, or three below a country's own.
fn site_of(host: &str) -> &str {
    let host = host.strip_suffix('.').unwrap_or(host);
    let mut last = host.rsplit('.');
    let is_country = last.next().is_some_and(|label| label.len() == 2);
    let is_shared = is_country && last.next().is_some_and(|label| OF_COUNTRIES.contains(&label));
    let before = host.rmatch_indices('.').nth(if is_shared { 2 } else { 1 });
    before.and_then(|(at, _)| host.get(at + 1..)).unwrap_or(host)
}

/// Resolves names with the system's resolver and refuses those with an address that is not permitted.
#[derive(Debug)]
pub(super) struct GuardedResolver {
    guard: Arc<AddressGuard>,
    timeout: Duration,
    lookups: LookupTurns,
}

impl GuardedResolver {
    pub(super) fn new(guard: Arc<AddressGuard>, timeout: Duration) -> Self {
        Self { guard, timeout, lookups: LookupTurns::new() }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let guard = Arc::clone(&self.guard);
        let lookups = self.lookups.clone();
        let limit = self.timeout;
        Box::pin(async move {
            let found =
                timeout(limit, look_up(host.clone(), lookups)).await.map_err(|_| ResolveError::TimedOut)?;
            let addresses = found.map_err(ResolveError::Failed)?;
            permitted(&guard, &host, &addresses)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Refuses the name when any of its addresses is refused. Picking the others would let a name with one public and one
/// private address through, and which of the two answers is then a matter of timing.
pub(super) fn permitted(
    guard: &AddressGuard,
    host: &str,
    addresses: &[SocketAddr],
) -> Result<(), ResolveError> {
    match addresses.iter().find(|address| !guard.permits(address.ip())) {
        None => Ok(()),
        Some(refused) => {
            // The address goes to the operator's log only: users must not map the network by it.
            tracing::info!(%host, address = %refused.ip(), "outbound request refused: the address is not public");
            Err(ResolveError::Refused)
        }
    }
}

/// All addresses of `host`. The turn is held until the system's resolver is done, even when nobody waits any more.
async fn look_up(host: String, lookups: LookupTurns) -> io::Result<Vec<SocketAddr>> {
    let turn = lookups.take(&host).await?;
    let lookup = tokio::spawn(async move {
        let found = lookup_host((host.as_str(), 0)).await.map(Iterator::collect::<Vec<_>>);
        drop(turn);
        found
    });
    let addresses = lookup.await.map_err(io::Error::other)??;
    if addresses.is_empty() { Err(io::Error::from(io::ErrorKind::NotFound)) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_site_is_told_by_the_last_two_labels_or_three_where_countries_share_one() {
        for (name, site) in [
            ("slow.example", "slow.example"),
            ("1.slow.example.", "slow.example"),
            ("a.b.slow.example", "slow.example"),
            ("a.b.slow.de", "slow.de"),
            ("a.b.slow.co.uk", "slow.co.uk"),
            ("slow.com.br.", "slow.com.br"),
            ("co.uk", "co.uk"),
            ("a.b.co.example", "co.example"),
            ("localhost", "localhost"),
            ("", ""),
        ] {
            assert_eq!(site_of(name), site, "{name}");
        }
        let turns = LookupTurns::new();
        let hosts = (0..1_000).map(|number| turns.site(&format!("{number}.example")));
        assert!(hosts.collect::<std::collections::HashSet<_>>().len() > SITES / 2);
    }

    #[tokio::test]
    async fn names_of_one_site_that_never_answer_keep_nobody_else_from_being_looked_up() {
        let turns = LookupTurns::new();
        let mut slow = Vec::new();
        for number in 0..OF_ONE_SITE {
            slow.push(turns.take(&format!("{number}.slow.example")).await.unwrap());
        }
        assert!(turns.take("more.slow.example").now_or_never().is_none());
        let is_other = |name: &String| turns.site(name) != turns.site("slow.example");
        let other = (0..1_000).map(|number| format!("{number}.example")).find(is_other).unwrap();
        assert!(turns.take(&other).now_or_never().is_some());
        drop(slow.pop());
        assert!(turns.take("more.slow.example").now_or_never().is_some());
    }
}
