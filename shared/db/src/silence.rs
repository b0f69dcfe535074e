//! Connections to PostgreSQL whose other end is gone without a word: what is sent seems to arrive, and nothing comes back. The
//! driver would wait for ever, and its pool would keep the place.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sqlx::{Connection as _, PgConnection, pool::PoolConnectionMetadata};
use tokio::time::timeout;

/// A connection that was used so recently is taken for a living one.
const UNTESTED: Duration = Duration::from_secs(1);
/// How long a connection may take to show that it lives.
const ALIVE: Duration = Duration::from_secs(3);
/// The server ends a statement that takes too long; this is for its word of that to come.
const ON_ITS_WAY: Duration = Duration::from_secs(15);
/// For so long after a silence no connection is kept that was open then.
const DOUBT: Duration = Duration::from_mins(2);

/// How often a statement that takes long looks whether another connection was found silent.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// For how long a statement goes on after that.
const AS_SILENT: Duration = Duration::from_secs(3);

/// How many turns a statement takes that has a connection and waits for its answer, at most; what waits for a large answer takes more.
const OFTEN: u32 = 16;
/// How many steps of its work a statement does in each turn after those.
const STEPS: u32 = 64;

/// When a connection was last found silent. One for the process, as its store is.
static SILENT: Mutex<Option<Instant>> = Mutex::new(None);
/// The longest that a statement may take, in milliseconds.
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// From now on statements may take so long, as the server is told too.
pub(super) fn allow(statement: Duration) {
    let longest = u64::try_from((statement + ON_ITS_WAY).as_millis()).unwrap_or(u64::MAX);
    LONGEST.fetch_max(longest, Ordering::Relaxed);
}

/// Goes on with a statement; from its turn [`OFTEN`] on by several steps before everything else runs again.
///
/// A statement may have to open a connection first, and for that the driver hashes the password some thousand times and lets
/// everything else run after every fifth. Each of these turns is short to a process that is idle; in a busy one they all together
/// take longer than a request waits.
fn take_turn<F: Future>(
    mut work: Pin<&mut F>,
    turns: &mut u32,
    context: &mut Context<'_>,
) -> Poll<F::Output> {
    *turns = turns.saturating_add(1);
    let steps = if *turns > OFTEN { STEPS } else { 1 };
    for _ in 0..steps {
        if let Poll::Ready(answer) = work.as_mut().poll(context) {
            return Poll::Ready(answer);
        }
    }
    Poll::Pending
}

/// Waits for the server's answer, but not for ever: for as long as a statement may take, and not much longer than another
/// connection that was open at the same time is known to be silent.
pub(crate) async fn answered<T, E: From<sqlx::Error>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let (mut work, mut turns) = (pin!(work), 0);
    let mut work = poll_fn(|context| take_turn(work.as_mut(), &mut turns, context));
    let longest = LONGEST.load(Ordering::Relaxed);
    if longest == 0 {
        return work.await;
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(longest) {
        if let Ok(answer) = timeout(LOOK_EVERY, &mut work).await {
            return answer;
        }
        // A statement that the server works on is given up with those that it never got: nobody can tell them apart, and
        // whoever asked asks again.
        let is_known_silent =
            SILENT.lock().is_some_and(|silent| silent + AS_SILENT >= begun && silent.elapsed() >= AS_SILENT);
        if is_known_silent {
            return Err(silent().into());
        }
    }
    note();
    Err(silent().into())
}

/// Whether an idle connection can be used.
pub(super) async fn is_alive(
    connection: &mut PgConnection,
    about: PoolConnectionMetadata,
) -> Result<bool, sqlx::Error> {
    if about.idle_for <= UNTESTED {
        return Ok(true);
    }
    // Others are gone with the one that was found so, and asking each of them would take as long.
    if is_doubtful(Instant::now().checked_sub(about.idle_for)) {
        return Ok(false);
    }
    if let Ok(answer) = timeout(ALIVE, connection.ping()).await {
        return answer.map(|()| true);
    }
    note();
    Err(silent())
}

/// Whether a connection that is given back goes back into the pool, which asks it first whether it lives, and waits for that
/// without end.
pub(super) fn may_return(about: &PoolConnectionMetadata) -> bool {
    let is_recent = SILENT.lock().is_some_and(|silent| silent.elapsed() < DOUBT);
    !(is_recent && is_doubtful(Instant::now().checked_sub(about.age)))
}

/// Whether a connection was last known to live before the last silence.
fn is_doubtful(alive_at: Option<Instant>) -> bool {
    SILENT.lock().is_some_and(|silent| alive_at.is_none_or(|alive_at| alive_at < silent))
}

fn note() {
    *SILENT.lock() = Some(Instant::now());
}

fn silent() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "the database does not answer"))
}
