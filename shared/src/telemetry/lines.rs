//! Where log lines go at last.

use std::{
    io::{self, Write},
    sync::atomic::{AtomicU64, Ordering},
};

/// Writes lines one by one, and counts those that it cannot write: whoever takes them from the queue does not tell of them.
pub(super) struct CountingWriter<W> {
    to: W,
    failed: &'static AtomicU64,
}

impl<W> CountingWriter<W> {
    pub(super) fn new(to: W, failed: &'static AtomicU64) -> Self {
        Self { to, failed }
    }
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, some: &[u8]) -> io::Result<usize> {
        self.to.write(some)
    }

    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        self.to.write_all(line).inspect_err(|_| {
            self.failed.fetch_add(1, Ordering::Relaxed);
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use tracing_appender::non_blocking::NonBlockingBuilder;

    use super::*;

    /// A file on a full disk.
    struct FullDisk;

    impl Write for FullDisk {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        static FAILED: AtomicU64 = AtomicU64::new(0);
        let lines = NonBlockingBuilder::default();
        let (mut writer, guard) = lines.finish(CountingWriter::new(FullDisk, &FAILED));
        for line in ["one\n", "two\n"] {
            writer.write_all(line.as_bytes()).expect("room in the queue");
        }
        // Waits until the queue is empty.
        drop(guard);
        assert_eq!(FAILED.load(Ordering::Relaxed), 2);
    }
}
