//! What the system knows of this process, under the names that every client library of Prometheus gives it. Read from `/proc`;
//! where there is none, only the start time is known.

use std::{fs, sync::atomic::AtomicU64};

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::{Registry, Unit},
};
use rustix::{param, process};

use crate::clock::Timestamp;

/// The place of the first number that is read in `/proc/self/stat`, counted behind the name, which may hold anything.
const USER_TIME: usize = 11;
const SYSTEM_TIME: usize = 12;
const THREADS: usize = 17;

/// The metrics of the process.
#[derive(Debug)]
pub(super) struct ProcessMetrics {
    resident: Gauge,
    cpu: Counter<f64, AtomicU64>,
    /// What was counted of it.
    cpu_seconds: f64,
    open_fds: Gauge,
    max_fds: Gauge,
    threads: Gauge,
}

impl ProcessMetrics {
    pub(super) fn register(registry: &mut Registry, started: Timestamp) -> Self {
        let process = Self {
            resident: Gauge::default(),
            cpu: Counter::default(),
            cpu_seconds: 0.0,
            open_fds: Gauge::default(),
            max_fds: Gauge::default(),
            threads: Gauge::default(),
        };
        registry.register_with_unit(
            "resident_memory",
            "Resident memory",
            Unit::Bytes,
            process.resident.clone(),
        );
        registry.register_with_unit(
            "cpu",
            "Time of all cores that was used",
            Unit::Seconds,
            process.cpu.clone(),
        );
        registry.register("open_fds", "Open file descriptors", process.open_fds.clone());
        registry.register("max_fds", "The most file descriptors that may be open", process.max_fds.clone());
        registry.register("threads", "Threads", process.threads.clone());
        let start = Gauge::<f64, AtomicU64>::default();
        #[expect(clippy::cast_precision_loss, reason = "microseconds since 1970 have 51 bits")]
        start.set(started.as_micros() as f64 / 1e6);
        registry.register_with_unit("start_time", "When the process began, since 1970", Unit::Seconds, start);
        process
    }

    /// Asks the system.
    pub(super) fn read(&mut self) {
        let pages = fs::read_to_string("/proc/self/statm").ok();
        let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<usize>().ok());
        if let Some(bytes) = pages.and_then(|pages| i64::try_from(pages * param::page_size()).ok()) {
            self.resident.set(bytes);
        }
        if let Some(stat) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(ProcStat::parse) {
            self.threads.set(stat.threads);
            let seconds = stat.cpu_seconds;
            self.cpu.inc_by((seconds - self.cpu_seconds).max(0.0));
            self.cpu_seconds = self.cpu_seconds.max(seconds);
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // One of them is what reads.
            self.open_fds.set(i64::try_from(open.count()).unwrap_or(i64::MAX).saturating_sub(1));
        }
        let most = process::getrlimit(process::Resource::Nofile).current;
        self.max_fds.set(most.and_then(|most| i64::try_from(most).ok()).unwrap_or(i64::MAX));
    }
}

struct ProcStat {
    cpu_seconds: f64,
    threads: i64,
}

impl ProcStat {
    fn parse(text: &str) -> Option<Self> {
        let (_, numbers) = text.rsplit_once(')')?;
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        let ticks = |at: usize| numbers.get(at)?.parse::<u32>().ok().map(f64::from);
        #[expect(clippy::cast_precision_loss, reason = "it is 100")]
        let second = param::clock_ticks_per_second() as f64;
        Some(Self {
            cpu_seconds: (ticks(USER_TIME)? + ticks(SYSTEM_TIME)?) / second,
            threads: numbers.get(THREADS)?.parse().ok()?,
        })
    }
}
