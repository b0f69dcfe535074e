//! The parent's end of a running parse: frames out, limits kept, the child reaped.

use std::{process::ExitStatus, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, ChildStderr, ChildStdout},
    sync::OwnedSemaphorePermit,
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use super::{
    Crash, Frame, ParseError,
    frame::{Inbox, Message},
    kill,
};
use crate::loaders::pdf::PdfOptions;

/// Bytes of a child's stderr that are kept, the last ones.
const STDERR_TAIL: usize = 2 * 1024;

/// Bytes read from a child at a time.
const READ_SIZE: usize = 64 * 1024;

/// How long a child that has said its last word, or closed its output, may take to exit.
const EXIT_PATIENCE: Duration = Duration::from_secs(1);

/// What a stream is made of.
pub(super) struct Parts {
    pub(super) child: Child,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
    pub(super) permit: Option<OwnedSemaphorePermit>,
    pub(super) directory: TempDir,
    pub(super) options: PdfOptions,
    pub(super) deadline: Instant,
    pub(super) page_wall: Duration,
    pub(super) max_output_bytes: u64,
}

/// The frames of one parse, one after another as the child finds them. Dropping it kills the child.
#[derive(Debug)]
pub struct PageStream {
    /// `None` once the child has been seen out.
    running: Option<Running>,
    /// How the stream has ended, once it has.
    outcome: Option<Result<(), ParseError>>,
    inbox: Inbox,
    order: Order,
    page_wall: Duration,
    deadline: Instant,
    silent_since: Instant,
    /// When the last frame was handed out, until the next one is asked for.
    handed_out: Option<Instant>,
    output_left: u64,
}

/// What goes away when the stream ends. The order matters: the child dies before its directory and its place go.
#[derive(Debug)]
struct Running {
    child: Child,
    stdout: ChildStdout,
    stderr: StderrTail,
    _directory: TempDir,
    _permit: Option<OwnedSemaphorePermit>,
}

impl PageStream {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            running: Some(Running {
                child: parts.child,
                stdout: parts.stdout,
                stderr: StderrTail::drain(parts.stderr),
                _directory: parts.directory,
                _permit: parts.permit,
            }),
            outcome: None,
            inbox: Inbox::default(),
            order: Order::new(&parts.options),
            page_wall: parts.page_wall,
            deadline: parts.deadline,
            silent_since: Instant::now(),
            handed_out: None,
            output_left: parts.max_output_bytes,
        }
    }

    /// The next frame, or `None` after the last one. Once it has failed it fails again in the same way. Cancel-safe: a
    /// dropped call loses nothing.
    pub async fn next(&mut self) -> Result<Option<Frame>, ParseError> {
        if let Some(handed_out) = self.handed_out.take() {
            // The total is the child's time, not its reader's. Silence needs no such care: a child that is held up by
            // a slow reader has bytes waiting.
            self.deadline += handed_out.elapsed();
        }
        let outcome = match &self.outcome {
            Some(outcome) => outcome.clone(),
            None => match self.receive().await {
                Ok(Some(frame)) => {
                    self.silent_since = Instant::now();
                    self.handed_out = Some(self.silent_since);
                    return Ok(Some(frame));
                }
                Ok(None) => self.outcome.insert(Ok(())).clone(),
                Err(error) => self.outcome.insert(Err(error)).clone(),
            },
        };
        self.see_out(outcome.as_ref().err()).await;
        outcome.map(|()| None)
    }

    /// Ends the stream before the child has said anything.
    pub(super) fn give_up(&mut self, crash: Crash) {
        self.outcome = Some(Err(ParseError::Crashed(crash)));
    }

    async fn receive(&mut self) -> Result<Option<Frame>, ParseError> {
        loop {
            let message = self.inbox.take::<Message>().map_err(|_| ParseError::Crashed(Crash::BadOutput))?;
            if let Some((message, size)) = message {
                let size = u64::try_from(size).unwrap_or(u64::MAX);
                self.output_left =
                    self.output_left.checked_sub(size).ok_or(ParseError::Crashed(Crash::BadOutput))?;
                return self.order.admit(message);
            }
            let Some(running) = &mut self.running else { return Ok(None) };
            let buffer = self.inbox.buffer();
            buffer.reserve(READ_SIZE);
            let until = self.deadline.min(self.silent_since + self.page_wall);
            match timeout_at(until, running.stdout.read_buf(buffer)).await {
                Err(_) => return Err(ParseError::Crashed(Crash::TooSlow)),
                Ok(Ok(0) | Err(_)) => return Err(ParseError::Crashed(Crash::Died)),
                Ok(Ok(_)) => {}
            }
        }
    }

    /// Sees the child out and logs how it went. Never the document's text: stderr carries places in the code only.
    async fn see_out(&mut self, error: Option<&ParseError>) {
        let Some(mut running) = self.running.take() else { return };
        let exited = match error {
            Some(ParseError::Crashed(Crash::TooSlow | Crash::BadOutput)) => None,
            _ => timeout(EXIT_PATIENCE, running.child.wait()).await.ok().and_then(Result::ok),
        };
        if exited.is_none() {
            kill(&mut running.child).await;
        }
        if let Some(error) = error {
            let status = exited.as_ref().map(ExitStatus::to_string);
            let stderr = running.stderr.text().await;
            let cut_off = self.inbox.is_mid_message();
            tracing::debug!(code = error.code(), reason = ?error, status, cut_off, stderr, "a parse failed");
        }
    }
}

/// What the child may still send. A child that was taken over must not be able to send pages out of order, more text
/// than was asked for, or text that the store refuses.
#[derive(Debug)]
struct Order {
    expected: Expected,
    max_pages: u32,
    max_chars: u64,
    chars: u64,
}

#[derive(Debug, Clone, Copy)]
enum Expected {
    Start,
    Page { next: u32, last: u32 },
    Done,
}

impl Order {
    fn new(options: &PdfOptions) -> Self {
        Self {
            expected: Expected::Start,
            max_pages: options.max_pages,
            max_chars: options.max_chars,
            chars: 0,
        }
    }

    fn admit(&mut self, message: Message) -> Result<Option<Frame>, ParseError> {
        let refused = Err(ParseError::Crashed(Crash::BadOutput));
        match (message, self.expected) {
            (Message::Failed(error), _) => Err(error),
            (Message::Done, Expected::Done) => Ok(None),
            (Message::Frame(frame), expected) => match (&frame, expected) {
                (Frame::Start { pages_total, first, last, title }, Expected::Start)
                    if (1..=*last).contains(first)
                        && last <= pages_total
                        && last - first < self.max_pages
                        && !title.as_ref().is_some_and(|title| title.contains('\0')) =>
                {
                    self.expected = Expected::Page { next: *first, last: *last };
                    Ok(Some(frame))
                }
                (Frame::Page { number, text, .. }, Expected::Page { next, last })
                    if *number == next && !text.contains('\0') =>
                {
                    self.chars += u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
                    if self.chars > self.max_chars {
                        return Err(ParseError::TooLarge { limit: self.max_chars });
                    }
                    self.expected =
                        if next == last { Expected::Done } else { Expected::Page { next: next + 1, last } };
                    Ok(Some(frame))
                }
                (Frame::Start { .. } | Frame::Page { .. }, _) => refused,
            },
            (Message::Done, Expected::Start | Expected::Page { .. }) => refused,
        }
    }
}

/// The last bytes of a child's stderr. Everything is read, so that the child never blocks on it.
#[derive(Debug)]
struct StderrTail {
    kept: Arc<Mutex<Vec<u8>>>,
    drain: JoinHandle<()>,
}

impl StderrTail {
    fn drain(mut stderr: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&kept);
        let drain = tokio::spawn(async move {
            let mut buffer = [0; STDERR_TAIL];
            while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
                let mut kept = into.lock();
                kept.extend_from_slice(buffer.get(..length).unwrap_or_default());
                let excess = kept.len().saturating_sub(STDERR_TAIL);
                kept.drain(..excess);
            }
        });
        Self { kept, drain }
    }

    /// What is kept, once the child is gone.
    async fn text(&mut self) -> String {
        // A grandchild could hold the pipe open; there should be none, and its words are not worth waiting for.
        let _ended = timeout(EXIT_PATIENCE, &mut self.drain).await;
        String::from_utf8_lossy(&self.kept.lock()).into_owned()
    }
}

impl Drop for StderrTail {
    fn drop(&mut self) {
        self.drain.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(first: u32, last: u32) -> Message {
        Message::Frame(Frame::Start { pages_total: 9, first, last, title: None })
    }

    fn page(number: u32, text: &str) -> Message {
        Message::Frame(Frame::Page { number, text: text.to_owned(), warning: None })
    }

    fn order(max_pages: u32, max_chars: u64) -> Order {
        Order::new(&PdfOptions { max_pages, max_chars, ..PdfOptions::default() })
    }

    fn code(answer: Result<Option<Frame>, ParseError>) -> &'static str {
        answer.unwrap_err().code()
    }

    #[test]
    fn pages_in_order_are_admitted_up_to_the_end() {
        let mut order = order(10, 100);
        assert!(order.admit(start(2, 3)).unwrap().is_some());
        assert!(order.admit(page(2, "a")).unwrap().is_some());
        assert!(order.admit(page(3, "b")).unwrap().is_some());
        assert!(order.admit(Message::Done).unwrap().is_none());
    }

    #[test]
    fn a_page_before_the_start_is_a_crash() {
        assert_eq!(code(order(10, 100).admit(page(1, "a"))), "parser_crashed");
    }

    #[test]
    fn a_page_that_was_not_announced_is_a_crash() {
        let mut order = order(10, 100);
        order.admit(start(1, 1)).unwrap();
        order.admit(page(1, "a")).unwrap();
        assert_eq!(code(order.admit(page(2, "b"))), "parser_crashed");
    }

    #[test]
    fn an_end_with_pages_missing_is_a_crash() {
        let mut order = order(10, 100);
        order.admit(start(1, 2)).unwrap();
        order.admit(page(1, "a")).unwrap();
        assert_eq!(code(order.admit(Message::Done)), "parser_crashed");
    }

    #[test]
    fn a_range_outside_the_document_or_above_the_limit_is_a_crash() {
        assert_eq!(code(order(10, 100).admit(start(0, 2))), "parser_crashed");
        assert_eq!(code(order(10, 100).admit(start(3, 2))), "parser_crashed");
        assert_eq!(code(order(10, 100).admit(start(8, 10))), "parser_crashed");
        assert_eq!(code(order(2, 100).admit(start(1, 3))), "parser_crashed");
    }

    #[test]
    fn text_with_nul_is_a_crash() {
        let mut order = order(10, 100);
        order.admit(start(1, 1)).unwrap();
        assert_eq!(code(order.admit(page(1, "a\0b"))), "parser_crashed");
    }

    #[test]
    fn text_above_the_limit_is_refused_even_if_the_child_did_not_count() {
        let mut order = order(10, 3);
        order.admit(start(1, 2)).unwrap();
        order.admit(page(1, "äöü")).unwrap();
        assert_eq!(code(order.admit(page(2, "x"))), "too_large");
    }

    #[tokio::test]
    async fn only_the_end_of_stderr_is_kept() {
        let noise = [b"x".repeat(10_000), b"the end".to_vec()].concat();
        let mut tail = StderrTail::drain(std::io::Cursor::new(noise));
        let text = tail.text().await;
        assert_eq!(text.len(), STDERR_TAIL);
        assert!(text.ends_with("the end"));
    }
}
