//! What holds wherever it is counted: one suite over the counters of the process and those in Redis. And what happens when
//! Redis goes away and comes back.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use lectern_shared::{clock::Clock, config::rate::parse_rate};
use secrecy::{ExposeSecret, SecretString};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use super::*;

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_mins(1);
/// Slow enough that nothing is earned during a test.
const SLOW: &str = "1/h burst 5";

pub(super) fn server() -> Option<SecretString> {
    #[expect(clippy::disallowed_methods, reason = "the test command passes the server's address this way")]
    let server = std::env::var("TEST_REDIS_URL").ok().map(SecretString::from);
    if server.is_none() {
        eprintln!(
            "SKIPPED over Redis: TEST_REDIS_URL is not set; scripts/test.sh starts a server for the tests"
        );
    }
    server
}

/// An installation of the test's own.
pub(super) fn redis(url: &SecretString) -> Redis {
    Redis::new(url, &uuid::Uuid::now_v7().to_string()).unwrap()
}

/// Counters in Redis that wait for it as long as its own client does: a busy machine is no reason to count elsewhere.
pub(super) fn patient(redis: Redis) -> RedisCounters {
    RedisCounters::new(redis, DEADLINE)
}

/// Each place to count in, with its name.
fn everywhere(rate: &str, rule: FailureRule) -> Vec<(&'static str, RateLimiter)> {
    let rate = parse_rate(rate).unwrap();
    let mut places = vec![("in the process", RateLimiter::counted_in(None, rate, rule))];
    if let Some(url) = server() {
        places.push(("in Redis", RateLimiter::counted_in(Some(patient(redis(&url))), rate, rule)));
    }
    places
}

fn everywhere_at(rate: &str) -> Vec<(&'static str, RateLimiter)> {
    everywhere(rate, FailureRule::SIGN_IN)
}

fn everywhere_for_sign_ins() -> Vec<(&'static str, RateLimiter)> {
    everywhere("off", FailureRule::SIGN_IN)
}

pub(super) fn now() -> Timestamp {
    Clock::system().now()
}

fn account(name: &str) -> LimitKey {
    LimitKey::account(name)
}

fn address(text: &str) -> LimitKey {
    LimitKey::address(text.parse().unwrap())
}

pub(super) async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < DEADLINE, "gave up waiting for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// From anywhere.
fn at(name: &str) -> AttemptKeys {
    AttemptKeys::at(account(name))
}

/// From an address where nobody has signed in to the account.
fn from(name: &str, text: &str) -> AttemptKeys {
    AttemptKeys::for_unknown_address(account(name), address(text))
}

/// From an address where its owner has signed in.
fn from_home(name: &str, text: &str) -> AttemptKeys {
    AttemptKeys::for_known_address(account(name), address(text))
}

async fn fail(limits: &RateLimiter, guess: AttemptKeys) {
    limits.begin(guess, now()).await.unwrap().failed();
}

async fn may_try(limits: &RateLimiter, guess: AttemptKeys) -> bool {
    limits.begin(guess, now()).await.is_ok()
}

// --- requests --------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn after_its_burst_a_key_must_wait_and_no_other_key_does() {
    for (place, limits) in everywhere_at(SLOW) {
        for request in 1..=5 {
            assert_eq!(limits.admit(&[account("ada")], now()).await, Ok(()), "{request} {place}");
        }
        let wait = limits.admit(&[account("ada")], now()).await.unwrap_err().seconds();
        assert!((1..=3_600).contains(&wait), "{wait} s {place}");
        limits.admit(&[account("bob")], now()).await.unwrap();
    }
}

#[tokio::test]
async fn a_key_that_has_waited_is_admitted_again() {
    for (place, limits) in everywhere_at("10/s burst 1") {
        limits.admit(&[account("ada")], now()).await.unwrap();
        until(place, async || limits.admit(&[account("ada")], now()).await.is_err()).await;
        until(place, async || limits.admit(&[account("ada")], now()).await.is_ok()).await;
    }
}

#[tokio::test]
async fn every_key_of_a_request_is_charged_and_none_when_one_must_wait() {
    for (place, limits) in everywhere_at(SLOW) {
        let (here, elsewhere) = (address("192.0.2.1"), address("192.0.2.2"));
        for _ in 0..5 {
            limits.admit(&[account("ada"), here], now()).await.unwrap();
        }
        assert!(limits.admit(&[account("bob"), here], now()).await.is_err(), "the address must wait {place}");
        assert!(limits.admit(&[account("ada"), elsewhere], now()).await.is_err(), "ada must wait {place}");
        for _ in 0..5 {
            limits.admit(&[account("bob"), elsewhere], now()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_key_named_twice_is_charged_once() {
    for (place, limits) in everywhere_at(SLOW) {
        for request in 1..=5 {
            assert_eq!(
                limits.admit(&[account("ada"), account("ada")], now()).await,
                Ok(()),
                "{request} {place}"
            );
        }
        assert!(limits.admit(&[account("ada")], now()).await.is_err(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_requests_at_once_no_more_than_the_burst_pass() {
    for (place, limits) in everywhere_at(SLOW) {
        let mut requests = JoinSet::new();
        for _ in 0..100 {
            let limits = limits.clone();
            requests.spawn(async move { limits.admit(&[account("ada")], now()).await.is_ok() });
        }
        let passed = requests.join_all().await.into_iter().filter(|passed| *passed).count();
        assert_eq!(passed, 5, "{place}");
    }
}

#[tokio::test]
async fn without_a_rate_nothing_is_limited() {
    for (place, limits) in everywhere_at("off") {
        assert!(!limits.limits_requests());
        for request in 1..=3_000 {
            assert_eq!(limits.admit(&[account("ada")], now()).await, Ok(()), "{request} {place}");
        }
    }
}

#[test]
fn keys_of_one_network_are_one_and_keys_of_different_kinds_never_are() {
    assert!(address("2001:db8:1:2::1") == address("2001:db8:1:2:ffff::9"));
    assert!(address("2001:db8:1:2::1") != address("2001:db8:1:3::1"));
    assert!(address("192.0.2.1") == address("::ffff:192.0.2.1"));
    assert!(address("192.0.2.1") != address("192.0.2.2"));
    assert!(LimitKey::account("ada") != LimitKey::credential("ada"));
}

#[test]
fn a_wait_is_told_in_whole_seconds_and_never_as_none() {
    for (wait, seconds) in [(1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2), (600_000_000, 600)] {
        assert_eq!(RetryAfter(Duration::from_micros(wait)).seconds(), seconds);
    }
}

// --- sign-ins --------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn after_ten_failures_an_account_must_wait_and_a_success_clears_it() {
    for (place, limits) in everywhere_for_sign_ins() {
        for _ in 0..9 {
            fail(&limits, at("ada")).await;
        }
        limits.begin(at("ada"), now()).await.unwrap().succeeded().wait().await;
        for _ in 0..10 {
            fail(&limits, at("ada")).await;
        }
        let wait = limits.begin(at("ada"), now()).await.err().unwrap().seconds();
        assert!((1..=600).contains(&wait), "{wait} s {place}");
        assert!(may_try(&limits, at("bob")).await, "{place}");
    }
}

/// Begins fifty guesses at once, and leaves them undecided.
async fn undecided(limits: &RateLimiter, guess: impl Fn(usize) -> AttemptKeys) -> Vec<PasswordAttempt> {
    let mut guesses = JoinSet::new();
    for number in 0..50 {
        let (limits, guess) = (limits.clone(), guess(number));
        guesses.spawn(async move { limits.begin(guess, now()).await.ok() });
    }
    guesses.join_all().await.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_guesses_at_once_do_not_slip_through_together() {
    for (place, limits) in everywhere_for_sign_ins() {
        let let_in = undecided(&limits, |_| at("ada")).await;
        assert_eq!(let_in.len(), 10, "{place}");
        // None of them was decided, so none of them counts.
        drop(let_in);
        until(place, async || may_try(&limits, at("ada")).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_guesses_at_many_accounts_at_once_do_not_slip_past_their_address() {
    for (place, limits) in everywhere_for_sign_ins() {
        let let_in =
            undecided(&limits, |number| from(&format!("account {number}"), &format!("2001:db8::{number}")))
                .await;
        assert_eq!(let_in.len(), 10, "{place}");
        for attempt in let_in {
            attempt.failed();
        }
        assert!(!may_try(&limits, from("another", "2001:db8::ffff")).await, "{place}");
        assert!(may_try(&limits, from("another", "2001:db8:1::1")).await, "{place}");
    }
}

#[tokio::test]
async fn an_address_is_blocked_by_failures_only_and_an_ipv6_network_counts_as_one() {
    for (place, limits) in everywhere_for_sign_ins() {
        for person in 0..30 {
            let guess = from(&format!("person {person}"), "192.0.2.1");
            limits.begin(guess, now()).await.unwrap().succeeded().wait().await;
        }
        for guess in 0..10 {
            fail(&limits, from(&format!("account {guess}"), &format!("2001:db8:1:2::{guess}"))).await;
        }
        assert!(!may_try(&limits, from("another", "2001:db8:1:2:ffff::1")).await, "{place}");
        assert!(may_try(&limits, from("another", "2001:db8:1:3::1")).await, "{place}");
    }
}

#[tokio::test]
async fn a_success_of_ones_own_does_not_clear_the_failures_of_its_address() {
    for (place, limits) in everywhere_for_sign_ins() {
        for guess in 0..10 {
            fail(&limits, from(&format!("account {guess}"), "192.0.2.1")).await;
            if guess < 9 {
                let own = limits.begin(from("mallory", "192.0.2.1"), now()).await.unwrap();
                own.succeeded().wait().await;
            }
        }
        assert!(!may_try(&limits, from("another", "192.0.2.1")).await, "{place}");
    }
}

#[tokio::test]
async fn the_guesses_of_strangers_do_not_keep_an_owner_out_who_is_at_home() {
    for (place, limits) in everywhere_for_sign_ins() {
        for stranger in 0..10 {
            fail(&limits, from("ada", &format!("198.51.100.{stranger}"))).await;
        }
        assert!(!may_try(&limits, from("ada", "203.0.113.1")).await, "a stranger has to wait {place}");
        let home = limits.begin(from_home("ada", "192.0.2.1"), now()).await.unwrap();
        home.succeeded().wait().await;
        assert!(
            !may_try(&limits, from("ada", "203.0.113.1")).await,
            "the owner's success gives strangers no further guesses {place}"
        );
    }
}

#[tokio::test]
async fn guesses_from_the_owners_own_address_have_an_end_too_and_count_for_the_account() {
    for (place, limits) in everywhere_for_sign_ins() {
        for _ in 0..10 {
            fail(&limits, from_home("ada", "192.0.2.1")).await;
        }
        assert!(!may_try(&limits, from_home("ada", "192.0.2.1")).await, "{place}");
        assert!(!may_try(&limits, from("ada", "203.0.113.1")).await, "{place}");
        assert!(may_try(&limits, from_home("ada", "192.0.2.2")).await, "another of the owner's {place}");
    }
}

#[tokio::test]
async fn failures_are_forgotten_with_time() {
    let rule = FailureRule { within: Duration::from_millis(300), ..FailureRule::SIGN_IN };
    for (place, limits) in everywhere("off", rule) {
        until(place, async || match limits.begin(at("ada"), now()).await {
            Ok(attempt) => {
                attempt.failed();
                false
            }
            Err(_) => true,
        })
        .await;
        until(place, async || may_try(&limits, at("ada")).await).await;
    }
}

// --- Redis -----------------------------------------------------------------------------------------------------------

/// A way to the test's Redis server that the test can block.
struct Way {
    url: SecretString,
    state: watch::Sender<State>,
    _accepting: JoinSet<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Connections stay, and nothing gets through for the time being.
    Silent,
    /// Connections break, old and new.
    Broken,
}

impl Way {
    async fn to(server: &SecretString) -> Self {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let mut url = url::Url::parse(server.expose_secret()).unwrap();
        let host = url.host_str().unwrap().to_owned();
        let target = (host, url.port().unwrap_or(6379));
        let here: SocketAddr = listener.local_addr().unwrap();
        url.set_ip_host(here.ip()).unwrap();
        url.set_port(Some(here.port())).unwrap();
        let (sender, state) = watch::channel(State::Open);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(carry(client, target.clone(), state.clone()));
            }
        });
        Self { url: SecretString::from(url.to_string()), state: sender, _accepting: accepting }
    }

    fn set(&self, state: State) {
        self.state.send_replace(state);
    }
}

async fn carry(mut client: TcpStream, target: (String, u16), mut state: watch::Receiver<State>) {
    let mut server = TcpStream::connect((target.0.as_str(), target.1)).await.unwrap();
    let mut carried = std::pin::pin!(tokio::io::copy_bidirectional(&mut client, &mut server));
    loop {
        // What is not polled stands still, and goes on later where it stopped.
        let now = *state.wait_for(|state| *state != State::Silent).await.unwrap();
        if now == State::Broken {
            return;
        }
        tokio::select! {
            _ = &mut carried => return,
            changed = state.changed() => changed.unwrap(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_count_together_over_redis() {
    let Some(url) = server() else { return };
    let (redis, rate) = (redis(&url), parse_rate(SLOW).unwrap());
    let [one, other] = [redis.clone(), redis]
        .map(|redis| RateLimiter::counted_in(Some(patient(redis)), rate, FailureRule::SIGN_IN));
    for _ in 0..2 {
        one.admit(&[account("ada")], now()).await.unwrap();
        other.admit(&[account("ada")], now()).await.unwrap();
    }
    one.admit(&[account("ada")], now()).await.unwrap();
    assert!(other.admit(&[account("ada")], now()).await.is_err());
    for _ in 0..5 {
        fail(&one, at("ada")).await;
        fail(&other, at("ada")).await;
    }
    assert!(!may_try(&one, at("ada")).await);
    assert!(!may_try(&other, at("ada")).await);
}

#[tokio::test]
async fn an_address_that_has_to_wait_is_known_without_asking_redis() {
    let Some(url) = server() else { return };
    let limits = RateLimiter::new(None, Some(redis(&url)));
    for number in 0..10 {
        assert_eq!(limits.may_guess(&address("192.0.2.7"), now()), Ok(()), "{number}");
        fail(&limits, from(&format!("victim {number}"), "192.0.2.7")).await;
    }
    assert!(limits.may_guess(&address("192.0.2.7"), now()).is_err());
    assert_eq!(limits.may_guess(&address("192.0.2.8"), now()), Ok(()));
}

#[tokio::test]
async fn what_is_in_redis_is_hashed_belongs_to_the_installation_and_expires() {
    let Some(url) = server() else { return };
    let redis = redis(&url);
    let shared = Some(patient(redis.clone()));
    let limits = RateLimiter::counted_in(shared, parse_rate(SLOW).unwrap(), FailureRule::SIGN_IN);
    limits.admit(&[LimitKey::credential("lec_secret"), address("192.0.2.77")], now()).await.unwrap();
    fail(&limits, from_home("ada@example.com", "192.0.2.77")).await;
    let pattern = format!("{}:*", redis.prefix());
    let keys: Vec<String> =
        ::redis::cmd("KEYS").arg(pattern).query_async(&mut redis.connection()).await.unwrap();
    assert_eq!(keys.len(), 5, "{keys:?}");
    for key in keys {
        let digits = key.rsplit(':').next().unwrap();
        assert!(digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
        let left: i64 = ::redis::cmd("PTTL").arg(&key).query_async(&mut redis.connection()).await.unwrap();
        assert!(left > 0, "{key} has {left} ms to live");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_go_on_when_redis_goes_away_and_return_to_it_when_it_is_back() {
    let Some(url) = server() else { return };
    for trouble in [State::Broken, State::Silent] {
        let way = Way::to(&url).await;
        let (direct, detour) = {
            let instance = uuid::Uuid::now_v7().to_string();
            (Redis::new(&url, &instance).unwrap(), Redis::new(&way.url, &instance).unwrap())
        };
        let rate = parse_rate(SLOW).unwrap();
        let [witness, limits] = [direct, detour].map(|redis| RateLimiter::new(rate, Some(redis)));
        let is_shared = async |key: LimitKey| {
            // A charge that only one of the two sees does not fill the burst of the other.
            let mut passed = 0;
            while limits.admit(&[key], now()).await.is_ok() {
                passed += 1;
            }
            assert!(passed > 0, "the test names a fresh key");
            witness.admit(&[key], now()).await.is_err()
        };
        let mut fresh = {
            let mut number = 0;
            move || {
                number += 1;
                account(&format!("fresh {number}"))
            }
        };
        until("Redis to be used", || is_shared(fresh())).await;

        let undecided = limits.begin(from("grace", "192.0.2.9"), now()).await.unwrap();
        way.set(trouble);
        for request in 1..=5 {
            assert_eq!(limits.admit(&[account("bob")], now()).await, Ok(()), "{request}");
        }
        assert!(limits.admit(&[account("bob")], now()).await.is_err(), "the process counts by itself");
        undecided.failed();
        for _ in 0..9 {
            fail(&limits, at("grace")).await;
        }
        assert!(
            !may_try(&limits, at("grace")).await,
            "a failure that Redis cannot count any more counts in the process"
        );

        way.set(State::Open);
        until("Redis to be used again", || is_shared(fresh())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_was_never_there_fails_nothing() {
    let unused = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let url = SecretString::from(format!("redis://127.0.0.1:{port}"));
    let limits = RateLimiter::new(parse_rate(SLOW).unwrap(), Some(redis(&url)));
    for request in 1..=5 {
        assert_eq!(limits.admit(&[account("ada")], now()).await, Ok(()), "{request}");
    }
    assert!(limits.admit(&[account("ada")], now()).await.is_err());
    for _ in 0..10 {
        fail(&limits, at("ada")).await;
    }
    assert!(!may_try(&limits, at("ada")).await);
}
