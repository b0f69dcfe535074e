//! The resolver inside the guarded client. The addresses that it hands out are the ones connected to, so there is no
//! gap between the check and the connection in which a name could change its answer.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::{net::lookup_host, sync::Semaphore, time::timeout};

use super::address::AddressGuard;

/// Lookups at once. Each holds a blocking thread for as long as the system's resolver takes, of which the runtime has
/// a few hundred for everything: names that never answer must not use them up.
const MAX_LOOKUPS: usize = 64;

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

/// Resolves names with the system's resolver and refuses those with an address that is not permitted.
#[derive(Debug)]
pub(super) struct GuardedResolver {
    guard: Arc<AddressGuard>,
    timeout: Duration,
    lookups: Arc<Semaphore>,
}

impl GuardedResolver {
    pub(super) fn new(guard: Arc<AddressGuard>, timeout: Duration) -> Self {
        Self { guard, timeout, lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let guard = Arc::clone(&self.guard);
        let lookups = Arc::clone(&self.lookups);
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

/// All addresses of `host`. The slot is held until the system's resolver is done, even when nobody waits any more.
async fn look_up(host: String, lookups: Arc<Semaphore>) -> io::Result<Vec<SocketAddr>> {
    let slot = lookups.acquire_owned().await.map_err(io::Error::other)?;
    let lookup = tokio::spawn(async move {
        let found = lookup_host((host.as_str(), 0)).await.map(Iterator::collect::<Vec<_>>);
        drop(slot);
        found
    });
    let addresses = lookup.await.map_err(io::Error::other)??;
    if addresses.is_empty() { Err(io::Error::from(io::ErrorKind::NotFound)) } else { Ok(addresses) }
}
