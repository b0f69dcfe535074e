//! What is done when a connection cannot be accepted, or is not wanted.

use std::{
    io::{self, ErrorKind},
    net::IpAddr,
    time::Duration,
};

use lectern_shared::retry::RetryBackoff;
use tokio::time::Instant;

use crate::shares::PoolExhausted;

/// The pauses after the system refused to accept a connection, for want of descriptors for instance.
const PAUSES: RetryBackoff =
    RetryBackoff { first: Duration::from_millis(10), longest: Duration::from_secs(1) };
/// Refusals are told of in the log so often, at most: a line for each would be one more way to fill the disk.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// Failures to accept in a row.
#[derive(Default)]
pub(super) struct AcceptBackoff {
    failures: u32,
}

impl AcceptBackoff {
    /// How long to wait before the next try.
    pub(super) fn pause(&mut self, error: &io::Error) -> Duration {
        // It was the one connection, which is gone.
        if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) {
            return Duration::ZERO;
        }
        if self.failures == 0 {
            tracing::warn!(%error, "connections cannot be accepted; trying on");
        }
        self.failures = self.failures.saturating_add(1);
        PAUSES.delay(self.failures)
    }

    /// One was accepted.
    pub(super) fn is_over(&mut self) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "connections are accepted again");
            self.failures = 0;
        }
    }
}

/// Connections that were closed at once.
#[derive(Default)]
pub(super) struct RefusedConnections {
    untold: u64,
    told: Option<Instant>,
}

impl RefusedConnections {
    pub(super) fn add(&mut self, client: IpAddr, full: PoolExhausted) {
        self.untold += 1;
        if self.told.is_some_and(|told| told.elapsed() < TOLD_EVERY) {
            return;
        }
        let refused = self.untold;
        match full {
            PoolExhausted::One => tracing::warn!(
                refused,
                %client,
                "connections are closed: an address has as many as LECTERN_MAX_CONNECTIONS lets it"
            ),
            PoolExhausted::Whole => {
                tracing::warn!(refused, %client, "connections are closed: there are as many as there may be");
            }
        }
        (self.untold, self.told) = (0, Some(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_that_refuses_is_asked_less_and_less_often_until_it_does_not() {
        let mut trouble = AcceptBackoff::default();
        let full = io::Error::from_raw_os_error(24);
        let pauses: Vec<_> = (0..100).map(|_| trouble.pause(&full)).collect();
        assert!(pauses.is_sorted() && pauses[0] > Duration::ZERO);
        assert_eq!(pauses[99], PAUSES.longest);
        trouble.is_over();
        assert_eq!(trouble.pause(&full), pauses[0]);
    }

    #[test]
    fn a_client_that_is_gone_already_delays_nobody() {
        let mut trouble = AcceptBackoff::default();
        assert_eq!(trouble.pause(&ErrorKind::ConnectionAborted.into()), Duration::ZERO);
        assert_eq!(trouble.failures, 0);
    }
}
