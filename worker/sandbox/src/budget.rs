//! The processor time that one document may take: of the processes that parse it, and of the thread that cuts it into passages.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// What is left is as good as nothing: the kernel counts in ticks of a hundredth of a second.
const NOTHING: Duration = Duration::from_millis(50);
/// Bytes that are worked on before a thread's clock is read again: reading it is a call of the kernel.
const READ_EVERY: usize = 64 << 10;
/// What every call costs, however few bytes it is for.
const CALL: usize = 64;

/// What a document may take in all. Clones share it.
#[derive(Clone, Debug)]
pub struct CpuBudget {
    limit: Duration,
    /// In microseconds.
    used: Arc<AtomicU64>,
}

/// Nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetExhausted;

impl CpuBudget {
    /// A budget of which nothing has been used.
    pub fn new(limit: Duration) -> Self {
        Self { limit, used: Arc::default() }
    }

    /// What it was at first.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// What may still be used.
    pub fn left(&self) -> Duration {
        self.limit.saturating_sub(Duration::from_micros(self.used.load(Ordering::Relaxed)))
    }

    /// Whether so little is left that nothing can be done with it.
    pub fn is_spent(&self) -> bool {
        self.left() <= NOTHING
    }

    /// Takes so much away; it may be more than is left.
    pub fn spend(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.used.fetch_add(micros, Ordering::Relaxed);
    }
}

/// Spends a budget for the work of one thread.
pub struct CpuMeter {
    budget: CpuBudget,
    /// The thread's time up to which it has been counted.
    counted: Cell<Duration>,
    /// Bytes that were worked on since.
    bytes: Cell<usize>,
}

impl CpuMeter {
    /// Counts what the calling thread does from now on. It must stay on it.
    pub fn start(budget: CpuBudget) -> Self {
        Self { budget, counted: Cell::new(thread_time()), bytes: Cell::new(0) }
    }

    /// To be called before so many bytes are worked on.
    ///
    /// # Errors
    /// When nothing is left.
    pub fn go_on(&self, bytes: usize) -> Result<(), BudgetExhausted> {
        let bytes = self.bytes.get().saturating_add(bytes).saturating_add(CALL);
        if bytes < READ_EVERY {
            self.bytes.set(bytes);
            return Ok(());
        }
        self.bytes.set(0);
        let now = thread_time();
        self.budget.spend(now.saturating_sub(self.counted.replace(now)));
        if self.budget.is_spent() { Err(BudgetExhausted) } else { Ok(()) }
    }
}

/// The processor time of this thread so far.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    u64::try_from(time.tv_sec).map_or(Duration::ZERO, |seconds| Duration::new(seconds, nanos))
}

/// The processor time that a process has taken so far, also when it has ended and nobody has asked how.
#[cfg(target_os = "linux")]
pub fn process_time(id: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before it may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
    let hundredths = (ticks(11)? + ticks(12)?).saturating_mul(100) / rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis(hundredths.saturating_mul(10)))
}

/// Other systems do not tell; the limit of the process itself holds.
#[cfg(not(target_os = "linux"))]
pub fn process_time(_id: u32) -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_a_thread_is_counted_until_nothing_is_left() {
        let budget = CpuBudget::new(Duration::from_millis(200));
        let meter = CpuMeter::start(budget.clone());
        let mut sum = 0_u64;
        while meter.go_on(READ_EVERY).is_ok() {
            sum = (0..10_000).fold(sum, |sum, n| std::hint::black_box(sum ^ n));
        }
        assert!(budget.is_spent());
        assert!(meter.go_on(READ_EVERY).is_err(), "it stays spent");
    }

    #[test]
    fn waiting_costs_nothing() {
        let budget = CpuBudget::new(Duration::from_secs(1));
        let meter = CpuMeter::start(budget.clone());
        std::thread::spawn(|| (0..1_000_000).fold(0_u64, |sum, n| std::hint::black_box(sum ^ n)))
            .join()
            .unwrap();
        let before = thread_time();
        meter.go_on(READ_EVERY).unwrap();
        assert!(budget.limit().saturating_sub(budget.left()) <= before + Duration::from_millis(100));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_has_ended_is_still_told_of_until_it_is_asked() {
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        assert!(process_time(child.id()).is_some());
        child.wait().unwrap();
        assert_eq!(process_time(child.id()), None);
    }
}
