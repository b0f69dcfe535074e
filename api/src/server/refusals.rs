//! Answers to requests that were at fault are held back when one client has too many of them. A client that repeats what is
//! refused, as fast as it is told, costs others more than whoever asks for something: held back, it costs next to nothing.

use std::{net::IpAddr, num::NonZeroUsize, sync::Arc, time::Duration};

use axum::http::StatusCode;
use lectern_shared::{
    clock::{Clock, Timestamp},
    config::rate::RequestRate,
};
use lru::LruCache;
use parking_lot::Mutex;

use crate::client_address::network;

/// The longest that an answer is held back. A client waits longer for an answer before it gives up.
const LONGEST: Duration = Duration::from_secs(2);
/// So many bytes of a refused request count as one refusal more: they had to be read, and often parsed.
const BYTES_A_UNIT: u64 = 64 << 10;
/// Clients that are remembered; those not met for longest are forgotten first.
const REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(49_999);

/// How long answers to refused requests are held back. Cheap to clone; clones count together.
#[derive(Clone)]
pub(crate) struct RefusalPacer(Option<Arc<PacerState>>);

struct PacerState {
    rate: RequestRate,
    longest: Duration,
    clock: Clock,
    /// The moment of each client, as [`RequestRate::charge`] has it.
    clients: Mutex<LruCache<IpAddr, Timestamp>>,
}

impl RefusalPacer {
    /// Refusals of one client beyond this rate are held back; none are without one.
    pub(crate) fn new(rate: Option<RequestRate>, clock: Clock) -> Self {
        Self::holding_for(LONGEST, rate, clock)
    }

    pub(super) fn holding_for(longest: Duration, rate: Option<RequestRate>, clock: Clock) -> Self {
        let clients = || Mutex::new(LruCache::new(REMEMBERED));
        Self(rate.map(|rate| Arc::new(PacerState { rate, longest, clock, clients: clients() })))
    }

    /// Counts an answer to a request of so many bytes, if it refuses it; how long it is to be held back.
    pub(super) fn hold(&self, client: IpAddr, status: StatusCode, received: u64) -> Duration {
        let Some(state) = self.0.as_ref().filter(|_| is_refusal(status)) else { return Duration::ZERO };
        let units = u32::try_from(received / BYTES_A_UNIT).unwrap_or(u32::MAX).saturating_add(1);
        let (client, now) = (network(client), state.clock.now());
        let mut clients = state.clients.lock();
        let before = clients.get(&client).copied().unwrap_or(now);
        let (next, wait) = state.rate.charge(before, now, units, state.longest);
        clients.put(client, next);
        wait
    }
}

/// Whether it says that the client should not have asked. What the service is too busy for is no fault of whoever asks.
fn is_refusal(status: StatusCode) -> bool {
    status.is_client_error() || status == StatusCode::INSUFFICIENT_STORAGE
}

#[cfg(test)]
mod tests {
    use lectern_shared::config::rate::parse_rate;

    use super::*;

    const ADA: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const GRACE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
    const WRONG: StatusCode = StatusCode::BAD_REQUEST;

    fn pacer(rate: &str) -> (RefusalPacer, Clock) {
        let clock = Clock::manual(Timestamp::from_micros(1_800_000_000_000_000));
        (RefusalPacer::new(parse_rate(rate).unwrap(), clock.clone()), clock)
    }

    #[test]
    fn a_burst_is_answered_at_once_and_what_follows_at_the_rate() {
        let (pacer, clock) = pacer("10/s burst 3");
        let hold = |client| pacer.hold(client, WRONG, 100).as_millis();
        assert_eq!([(); 6].map(|()| hold(ADA)), [0, 0, 0, 100, 200, 300]);
        assert_eq!(hold(GRACE), 0, "another client has nothing to do with it");
        clock.advance(Duration::from_millis(300));
        assert_eq!(hold(ADA), 100);
        clock.advance(Duration::from_hours(1));
        assert_eq!([(); 4].map(|()| hold(ADA)), [0, 0, 0, 100], "a long rest earns one burst");
    }

    #[test]
    fn no_answer_is_held_back_for_longer_than_the_longest_time_nor_remembered() {
        let (pacer, clock) = pacer("1/h burst 1");
        let holds = [(); 4].map(|()| pacer.hold(ADA, WRONG, u64::MAX));
        assert_eq!(holds, [LONGEST; 4]);
        clock.advance(LONGEST + Duration::from_hours(1));
        assert_eq!(pacer.hold(ADA, WRONG, 0), Duration::ZERO);
    }

    #[test]
    fn large_requests_count_for_more() {
        let (pacer, _) = pacer("10/s burst 10");
        assert_eq!(pacer.hold(ADA, WRONG, 12 * BYTES_A_UNIT).as_millis(), 300);
    }

    #[test]
    fn only_refusals_count() {
        let (pacer, _) = pacer("1/h burst 1");
        for status in [200, 202, 303, 304, 500, 503] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!([(); 3].map(|()| pacer.hold(ADA, status, 0)), [Duration::ZERO; 3], "{status}");
        }
        assert_eq!(pacer.hold(ADA, StatusCode::INSUFFICIENT_STORAGE, 0), Duration::ZERO);
        for status in [400, 401, 404, 413, 429, 507] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(pacer.hold(ADA, status, 0), LONGEST, "{status}");
        }
        let (without, _) = self::pacer("off");
        assert_eq!([(); 3].map(|()| without.hold(ADA, WRONG, u64::MAX)), [Duration::ZERO; 3]);
    }
}
