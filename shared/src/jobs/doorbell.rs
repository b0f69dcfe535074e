//! Waking workers.

use super::LocalDoorbell;

/// Says that there is work; never which. A ring may get lost: workers also look by themselves.
#[derive(Clone, Debug)]
pub enum Doorbell {
    /// Within this process.
    Local(LocalDoorbell),
}

impl Doorbell {
    /// Wakes up to `times` workers. Never waits and never fails.
    pub fn ring(&self, times: usize) {
        match self {
            Self::Local(bell) => bell.ring(times),
        }
    }
}
