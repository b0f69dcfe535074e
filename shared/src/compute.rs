//! Blocking work off the async threads, a bounded number of pieces at once.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// From how many bytes on something is parsed off the async threads.
const LARGE: usize = 32 * 1024;

/// The work panicked, or the process is ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a computation was stopped")]
pub struct ComputeStopped;

/// Runs blocking work. Cheap to clone; clones share the bound.
#[derive(Clone, Debug)]
pub struct ComputePool {
    slots: Arc<Semaphore>,
}

impl ComputePool {
    /// As many pieces of work at once as there are cores.
    pub fn per_core() -> Self {
        Self::new(std::thread::available_parallelism().map_or(2, std::num::NonZero::get))
    }

    /// At most so many pieces of work at once, and at least one.
    pub fn new(slots: usize) -> Self {
        Self { slots: Arc::new(Semaphore::new(slots.max(1))) }
    }

    /// Runs `work` when a slot is free. The slot goes with the work: a caller that goes away does not let another piece
    /// begin before this one ends.
    ///
    /// # Errors
    /// [`ComputeStopped`] when the work panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ComputeStopped> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| ComputeStopped)?;
        let done = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            work()
        });
        done.await.map_err(|_| ComputeStopped)
    }

    /// What `read` makes of some bytes: at once when they are few, else as [`run`](Self::run) has it done. None also when it panicked
    /// there.
    pub async fn parse<B, T>(
        &self,
        bytes: B,
        read: impl FnOnce(&[u8]) -> Option<T> + Send + 'static,
    ) -> Option<T>
    where
        B: AsRef<[u8]> + Send + 'static,
        T: Send + 'static,
    {
        if bytes.as_ref().len() < LARGE {
            return read(bytes.as_ref());
        }
        self.run(move || read(bytes.as_ref())).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_whose_caller_is_gone_keeps_its_slot_until_it_ends() {
        let pool = ComputePool::new(1);
        let (begun, has_begun) = oneshot::channel();
        let (end, ending) = mpsc::channel::<()>();
        let caller = tokio::spawn({
            let pool = pool.clone();
            async move {
                let work = move || {
                    let _ = begun.send(());
                    let _ = ending.recv();
                };
                pool.run(work).await
            }
        });
        has_begun.await.unwrap();
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        assert_eq!(pool.slots.available_permits(), 0, "it goes on");
        drop(end);
        assert_eq!(pool.run(|| 7).await, Ok(7));
    }
}
