//! The parent's end of a running parse: frames out, limits kept, the child reaped.

use std::{os::unix::process::ExitStatusExt as _, process::ExitStatus, sync::Arc, time::Duration};

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
    Crash, Frame, Kind, Mark, MarkKind, ParseError, ParseOptions,
    frame::{Inbox, Message},
    kill,
};
use crate::budget::{Budget, process_time};

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
    pub(super) kind: Kind,
    pub(super) options: ParseOptions,
    pub(super) deadline: Instant,
    pub(super) page_wall: Duration,
    pub(super) max_output_bytes: u64,
    pub(super) budget: Option<Budget>,
}

/// The frames of one parse, one after another as the child finds them. Dropping it kills the child.
#[derive(Debug)]
pub struct FrameStream {
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
    /// What the document may still take.
    budget: Option<Budget>,
    /// When the child began, and what was left of the budget then.
    began: Instant,
    allowed: Duration,
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

impl FrameStream {
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
            order: Order::new(parts.kind, &parts.options),
            page_wall: parts.page_wall,
            deadline: parts.deadline,
            silent_since: Instant::now(),
            handed_out: None,
            output_left: parts.max_output_bytes,
            began: Instant::now(),
            allowed: parts.budget.as_ref().map_or(Duration::MAX, Budget::left),
            budget: parts.budget,
        }
    }

    /// The next frame, or `None` after the last one. Once it has failed it fails again in the same way. Cancel-safe: a
    /// dropped call loses nothing.
    pub async fn next(&mut self) -> Result<Option<Frame>, ParseError> {
        if let Some(handed_out) = self.handed_out.take() {
            // Both limits are on the child's time, not on its reader's. A child that is held up by a slow reader has bytes
            // waiting, but of a long message it may have sent the beginning only.
            let held_up = handed_out.elapsed();
            self.deadline += held_up;
            self.silent_since += held_up;
        }
        let outcome = match &self.outcome {
            Some(outcome) => outcome.clone(),
            None => match self.receive().await {
                Ok(Some(frame)) => {
                    self.silent_since = Instant::now();
                    self.handed_out = Some(self.silent_since);
                    return Ok(Some(frame));
                }
                Ok(None) => {
                    self.charge();
                    self.outcome.insert(Ok(())).clone()
                }
                Err(error) => {
                    self.charge();
                    let error = self.out_of_time(&error, None).unwrap_or(error);
                    self.outcome.insert(Err(error)).clone()
                }
            },
        };
        let exited = self.see_out(outcome.as_ref().err()).await;
        let outcome = match outcome {
            // What it has used may not have been told yet when it was asked.
            Err(error) => match self.out_of_time(&error, exited) {
                Some(late) => self.outcome.insert(Err(late)).clone(),
                None => Err(error),
            },
            Ok(()) => Ok(()),
        };
        outcome.map(|()| None)
    }

    /// Ends the stream before the child has said anything.
    pub(super) fn give_up(&mut self, crash: Crash) {
        self.outcome = Some(Err(ParseError::Crashed(crash)));
    }

    /// Takes what the child has used from the document's budget, before it is seen out: nobody can tell afterwards.
    fn charge(&mut self) {
        let child = self.running.as_ref().and_then(|running| running.child.id());
        if let Some((budget, used)) = self.budget.as_ref().zip(child.and_then(process_time)) {
            budget.spend(used);
        }
    }

    /// What a child died of that has used up the document's time: as the system counted it, or as it was killed when it had been
    /// there for long enough.
    fn out_of_time(&self, error: &ParseError, exited: Option<ExitStatus>) -> Option<ParseError> {
        let budget = self.budget.as_ref()?;
        let was_killed = exited.is_some_and(|status| status.signal().is_some());
        let is_spent = budget.is_spent() || (was_killed && self.began.elapsed() >= self.allowed);
        let died = *error == ParseError::Crashed(Crash::Died);
        (died && is_spent).then(|| ParseError::OutOfTime { seconds: budget.limit().as_secs() })
    }

    async fn receive(&mut self) -> Result<Option<Frame>, ParseError> {
        loop {
            let message = self.inbox.take::<Message>().map_err(|_| ParseError::Crashed(Crash::BadOutput))?;
            if let Some((message, size)) = message {
                // Images are not kept; there is one for each page at most, and none is larger than a message.
                if !matches!(message, Message::Frame(Frame::Image { .. })) {
                    let size = u64::try_from(size).unwrap_or(u64::MAX);
                    self.output_left =
                        self.output_left.checked_sub(size).ok_or(ParseError::Crashed(Crash::BadOutput))?;
                }
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
    async fn see_out(&mut self, error: Option<&ParseError>) -> Option<ExitStatus> {
        let mut running = self.running.take()?;
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
        exited
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
    /// Whether images were asked for.
    images: bool,
    /// The page whose image came last.
    image_of: Option<u32>,
    /// Where the last heading of the whole text is.
    heading_at: u64,
}

#[derive(Debug, Clone, Copy)]
enum Expected {
    Start,
    Page {
        next: u32,
        last: u32,
    },
    Done,
    /// Anything that has no pages: what it says of itself, and then its parts.
    Parts {
        about: bool,
    },
}

impl Order {
    fn new(kind: Kind, options: &ParseOptions) -> Self {
        Self {
            expected: if kind == Kind::Pdf { Expected::Start } else { Expected::Parts { about: false } },
            max_pages: options.max_pages,
            max_chars: options.max_chars,
            chars: 0,
            images: options.images,
            image_of: None,
            heading_at: 0,
        }
    }

    fn admit(&mut self, message: Message) -> Result<Option<Frame>, ParseError> {
        let frame = match (message, self.expected) {
            (Message::Failed(error), _) => return Err(error),
            (Message::Done, Expected::Done | Expected::Parts { .. }) => return Ok(None),
            (Message::Done, Expected::Start | Expected::Page { .. }) => {
                return Err(ParseError::Crashed(Crash::BadOutput));
            }
            (Message::Frame(frame), _) => frame,
        };
        self.expected = self.after(&frame)?.ok_or(ParseError::Crashed(Crash::BadOutput))?;
        Ok(Some(frame))
    }

    /// What is expected after `frame`; none when it is not what was expected.
    fn after(&mut self, frame: &Frame) -> Result<Option<Expected>, ParseError> {
        Ok(match (frame, self.expected) {
            (Frame::Start { pages_total, first, last, title }, Expected::Start)
                if (1..=*last).contains(first)
                    && last <= pages_total
                    && last - first < self.max_pages
                    && is_clean(title.as_deref()) =>
            {
                Some(Expected::Page { next: *first, last: *last })
            }
            (Frame::Page { number, text, .. }, Expected::Page { next, last })
                if *number == next && is_clean(Some(text)) =>
            {
                self.count(text)?;
                Some(if next == last { Expected::Done } else { Expected::Page { next: next + 1, last } })
            }
            (Frame::Image { page, .. }, expected @ Expected::Page { next, .. })
                if self.images && *page == next && self.image_of != Some(next) =>
            {
                self.image_of = Some(next);
                Some(expected)
            }
            (Frame::About(about), Expected::Parts { about: false })
                if is_clean(about.title.as_deref()) && is_clean(about.canonical_url.as_deref()) =>
            {
                Some(Expected::Parts { about: true })
            }
            (Frame::Part(part), Expected::Parts { about }) if is_clean(Some(&part.text)) => {
                let length = self.count(&part.text)?;
                are_in_order(&part.marks, length).then_some(Expected::Parts { about })
            }
            (Frame::Headings(marks), expected @ Expected::Parts { .. })
                if are_in_order(marks, self.chars)
                    && marks.first().is_none_or(|mark| mark.at >= self.heading_at)
                    && marks.iter().all(|mark| matches!(mark.what, MarkKind::Heading { .. })) =>
            {
                self.heading_at = marks.last().map_or(self.heading_at, |mark| mark.at);
                Some(expected)
            }
            (Frame::Warning(warning), expected) if is_clean(Some(&warning.message)) => Some(expected),
            (
                Frame::Start { .. }
                | Frame::Image { .. }
                | Frame::Page { .. }
                | Frame::About(_)
                | Frame::Part(_)
                | Frame::Headings(_)
                | Frame::Warning(_),
                _,
            ) => None,
        })
    }

    /// Counts a text's characters against the limit.
    fn count(&mut self, text: &str) -> Result<u64, ParseError> {
        let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        self.chars = self.chars.saturating_add(length);
        if self.chars > self.max_chars {
            return Err(ParseError::TooLarge { limit: self.max_chars });
        }
        Ok(length)
    }
}

/// Without the one character that no store takes.
fn is_clean(text: Option<&str>) -> bool {
    !text.is_some_and(|text| text.contains('\0'))
}

/// Whether marks stand within a text of so many code points, one after another, and say something that can be shown.
fn are_in_order(marks: &[Mark], length: u64) -> bool {
    let sane = |mark: &Mark| match &mark.what {
        MarkKind::Page(number) => *number > 0,
        MarkKind::Row(number) => *number > 0,
        MarkKind::Heading { level, title } => *level > 0 && is_clean(Some(title)),
        MarkKind::Time { start, end } => start.is_finite() && end.is_finite(),
    };
    marks.iter().all(|mark| mark.at <= length && sane(mark)) && marks.is_sorted_by_key(|mark| mark.at)
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
    use super::{
        super::{About, Part},
        *,
    };

    fn start(first: u32, last: u32) -> Message {
        Message::Frame(Frame::Start { pages_total: 9, first, last, title: None })
    }

    fn page(number: u32, text: &str) -> Message {
        Message::Frame(Frame::Page { number, text: text.to_owned(), warning: None })
    }

    fn order(max_pages: u32, max_chars: u64) -> Order {
        Order::new(Kind::Pdf, &ParseOptions { max_pages, max_chars, ..ParseOptions::default() })
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
    fn a_page_has_one_image_at_most_right_before_it_and_only_when_asked_for() {
        let image = |page| Message::Frame(Frame::Image { page, png: vec![1, 2, 3] });
        let options = ParseOptions { images: true, ..ParseOptions::default() };
        let begun = || {
            let mut order = Order::new(Kind::Pdf, &options);
            order.admit(start(1, 2)).unwrap();
            order
        };
        let mut order = begun();
        assert!(order.admit(image(1)).unwrap().is_some());
        assert!(order.admit(page(1, "")).unwrap().is_some());
        assert!(order.admit(image(2)).unwrap().is_some());
        assert_eq!(code(order.admit(image(2))), "parser_crashed");
        assert_eq!(code(begun().admit(image(2))), "parser_crashed");
        let mut unasked = Order::new(Kind::Pdf, &ParseOptions::default());
        unasked.admit(start(1, 2)).unwrap();
        assert_eq!(code(unasked.admit(image(1))), "parser_crashed");
    }

    #[test]
    fn text_with_nul_is_a_crash() {
        let mut order = order(10, 100);
        order.admit(start(1, 1)).unwrap();
        assert_eq!(code(order.admit(page(1, "a\0b"))), "parser_crashed");
    }

    #[test]
    fn parts_are_admitted_without_pages_and_with_marks_inside_them_only() {
        let part = |text: &str, at: &[u64]| {
            let marks = at.iter().map(|at| Mark { at: *at, what: MarkKind::Row(at + 1) }).collect();
            Message::Frame(Frame::Part(Part { text: text.to_owned(), marks }))
        };
        let order = || Order::new(Kind::Table, &ParseOptions { max_chars: 9, ..ParseOptions::default() });
        let mut parts = order();
        assert!(parts.admit(Message::Frame(Frame::About(About::default()))).unwrap().is_some());
        assert!(parts.admit(part("äöü", &[0, 3])).unwrap().is_some());
        assert_eq!(code(order().admit(part("äöü", &[4]))), "parser_crashed");
        assert_eq!(code(order().admit(part("äöü", &[2, 1]))), "parser_crashed");
        assert_eq!(code(order().admit(page(1, "a"))), "parser_crashed");
        assert_eq!(code(parts.admit(part("seven c", &[]))), "too_large");
        assert!(parts.admit(Message::Done).unwrap().is_none());
        let again = parts.admit(Message::Frame(Frame::About(About::default())));
        assert_eq!(code(again), "parser_crashed");
    }

    #[test]
    fn headings_of_the_whole_text_are_admitted_in_order_and_within_it() {
        let heading = |at| Mark { at, what: MarkKind::Heading { level: 1, title: "T".to_owned() } };
        let headings =
            |at: &[u64]| Message::Frame(Frame::Headings(at.iter().copied().map(heading).collect()));
        let begun = || {
            let mut order = Order::new(Kind::Text, &ParseOptions::default());
            let text = "0123456789".to_owned();
            order.admit(Message::Frame(Frame::Part(Part { text, marks: Vec::new() }))).unwrap();
            order
        };
        let mut order = begun();
        assert!(order.admit(headings(&[0, 5])).unwrap().is_some());
        assert!(order.admit(headings(&[5, 9])).unwrap().is_some());
        assert_eq!(code(order.admit(headings(&[8]))), "parser_crashed");
        assert_eq!(code(begun().admit(headings(&[11]))), "parser_crashed");
        let row = Mark { at: 0, what: MarkKind::Row(1) };
        assert_eq!(code(begun().admit(Message::Frame(Frame::Headings(vec![row])))), "parser_crashed");
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
