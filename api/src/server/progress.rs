//! A connection that is given up when its client does not read. Answers are made as fast as they are read, so that a client
//! that reads nothing would hold its connection, and what stands behind it, for ever. When all is sent, the
//! connection's activity is told, and so it is of all that comes.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

use super::activity::ConnectionActivity;

/// Bytes that a client has to take in the time that it is given, unless there are fewer for it.
const LEAST: usize = 16 << 10;

/// What can be ended at once.
pub(super) trait AbortiveClose {
    /// What was not sent yet is thrown away when this is closed.
    fn abort(&self);
}

impl AbortiveClose for TcpStream {
    fn abort(&self) {
        // Otherwise the system would go on offering it to the client for minutes.
        let _ = self.set_zero_linger();
    }
}

/// A stream of which a write fails that waits for too long.
pub(super) struct WriteTimeoutStream<T> {
    io: T,
    within: Duration,
    /// There while the client does not take what is written.
    stalled: Option<StalledWrite>,
    activity: ConnectionActivity,
}

struct StalledWrite {
    until: Pin<Box<Sleep>>,
    written: usize,
}

impl<T: AbortiveClose + Unpin> WriteTimeoutStream<T> {
    /// Gives a client `within` to take something.
    pub(super) fn new(io: T, within: Duration, activity: ConnectionActivity) -> Self {
        Self { io, within, stalled: None, activity }
    }

    /// What happens on the connection.
    pub(super) fn activity(&self) -> &ConnectionActivity {
        &self.activity
    }

    fn judge(&mut self, cx: &mut Context<'_>, write: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match write {
            Poll::Ready(Ok(bytes)) => {
                if let Some(stalled) = &mut self.stalled {
                    stalled.written += bytes;
                }
                self.stalled.take_if(|stalled| stalled.written >= LEAST);
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let within = self.within;
                let begin = || StalledWrite { until: Box::pin(sleep(within)), written: 0 };
                ready!(self.stalled.get_or_insert_with(begin).until.as_mut().poll(cx));
                self.io.abort();
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        self.activity.received(buf.filled().len().saturating_sub(before));
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + AbortiveClose + Unpin> AsyncWrite for WriteTimeoutStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.io).poll_write(cx, buf);
        self.judge(cx, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.judge(cx, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        // Asked for when all is written.
        self.stalled = None;
        self.activity.sent();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;
    use crate::shares::{PoolLimits, ResourcePool};

    impl AbortiveClose for DuplexStream {
        fn abort(&self) {}
    }

    const WITHIN: Duration = Duration::from_millis(200);

    fn progress(io: DuplexStream) -> WriteTimeoutStream<DuplexStream> {
        let shares = ResourcePool::new(PoolLimits { whole: 1, of_one: 1, stale: Duration::MAX });
        WriteTimeoutStream::new(io, WITHIN, ConnectionActivity::new(shares.begin(None)))
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_given_up() {
        let (server, _client) = duplex(1_000);
        let written = progress(server).write_all(&[0; 2_000]).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_reads_next_to_nothing_is_given_up() {
        let (server, mut client) = duplex(1_000);
        tokio::spawn(async move {
            while client.read_u8().await.is_ok() {
                sleep(Duration::from_millis(1)).await;
            }
        });
        let written = progress(server).write_all(&vec![0; 1 << 20]).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_gets_all_of_it() {
        let (server, mut client) = duplex(LEAST);
        let reading = tokio::spawn(async move {
            let (mut read, mut piece) = (0, vec![0; LEAST]);
            while let Ok(bytes @ 1..) = client.read(&mut piece).await {
                read += bytes;
                sleep(WITHIN / 4).await;
            }
            read
        });
        let mut server = progress(server);
        server.write_all(&vec![0; 10 * LEAST]).await.unwrap();
        drop(server);
        assert_eq!(reading.await.unwrap(), 10 * LEAST);
    }

    #[tokio::test]
    async fn what_a_client_took_slowly_is_not_held_against_it_later() {
        let (server, mut client) = duplex(100);
        let mut server = progress(server);
        let mut both = [0; 200];
        for _ in 0..3 {
            let (wrote, read) = tokio::join!(
                async {
                    server.write_all(&[0; 200]).await?;
                    server.flush().await
                },
                client.read_exact(&mut both),
            );
            wrote.unwrap();
            read.unwrap();
            // The time of a stall that was over has passed.
            sleep(WITHIN * 2).await;
        }
    }
}
