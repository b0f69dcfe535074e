//! The parent's end of a running parse: frames out, limits kept, the child reaped.

use std::{os::unix::process::ExitStatusExt as _, process::ExitStatus, sync::Arc, time::Duration};

use lectern_parse::protocol::{
    ChildMessage, FrameOrder, MessageDecoder, ParseError, ParseFrame, ParseOptions, ParserCrash, SourceKind,
};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, ChildStderr, ChildStdout},
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use super::{WorkTurn, kill};
use crate::budget::{CpuBudget, process_time};

/// Bytes of a child's stderr that are kept, the last ones.
const STDERR_TAIL: usize = 2 * 1024;

/// Bytes read from a child at a time.
const READ_SIZE: usize = 64 * 1024;

/// How long a child that has said its last word, or closed its output, may take to exit.
const EXIT_PATIENCE: Duration = Duration::from_secs(1);

/// How often longer than its longest silence a child may be silent that does not get to work: on a machine with too much to do it
/// waits for its turns.
pub(super) const STARVED: u32 = 2;

/// What a stream is made of.
pub(super) struct StreamParts {
    pub(super) child: Child,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
    pub(super) turn: WorkTurn,
    pub(super) directory: TempDir,
    pub(super) kind: SourceKind,
    pub(super) options: ParseOptions,
    pub(super) deadline: Instant,
    pub(super) page_wall: Duration,
    pub(super) max_output_bytes: u64,
    pub(super) budget: Option<CpuBudget>,
}

/// The frames of one parse, one after another as the child finds them. Dropping it kills the child.
#[derive(Debug)]
pub struct FrameStream {
    /// `None` once the child has been seen out.
    running: Option<RunningChild>,
    /// How the stream has ended, once it has.
    outcome: Option<Result<(), ParseError>>,
    inbox: MessageDecoder,
    order: FrameOrder,
    silence: ChildSilence,
    deadline: Instant,
    /// When the last frame was handed out, until the next one is asked for.
    handed_out: Option<Instant>,
    output_left: u64,
    /// What the document may still take.
    budget: Option<CpuBudget>,
    /// When the child began, and what was left of the budget then.
    began: Instant,
    allowed: Duration,
}

/// What goes away when the stream ends. The order matters: the child dies before its directory and its turn go.
#[derive(Debug)]
struct RunningChild {
    child: Child,
    stdout: ChildStdout,
    stderr: StderrTail,
    _directory: TempDir,
    _turn: WorkTurn,
}

impl FrameStream {
    pub(super) fn new(parts: StreamParts) -> Self {
        let silence = ChildSilence::new(parts.page_wall, parts.child.id());
        Self {
            running: Some(RunningChild {
                child: parts.child,
                stdout: parts.stdout,
                stderr: StderrTail::drain(parts.stderr),
                _directory: parts.directory,
                _turn: parts.turn,
            }),
            outcome: None,
            inbox: MessageDecoder::default(),
            order: FrameOrder::new(parts.kind, &parts.options),
            silence,
            deadline: parts.deadline,
            handed_out: None,
            output_left: parts.max_output_bytes,
            began: Instant::now(),
            allowed: parts.budget.as_ref().map_or(Duration::MAX, CpuBudget::left),
            budget: parts.budget,
        }
    }

    /// The next frame, or `None` after the last one. Once it has failed it fails again in the same way. Cancel-safe: a
    /// dropped call loses nothing.
    pub async fn next(&mut self) -> Result<Option<ParseFrame>, ParseError> {
        self.exclude_reader_time();
        match self.receive_or_recall().await {
            Some(frame) => Ok(Some(frame)),
            None => self.finish_stream().await.map(|()| None),
        }
    }

    /// Moves both limits by the time that the reader of the last frame has taken: they are on the child's time. A child
    /// that is held up by a slow reader has bytes waiting, but of a long message it may have sent the beginning only.
    fn exclude_reader_time(&mut self) {
        if let Some(handed_out) = self.handed_out.take() {
            let held_up = handed_out.elapsed();
            self.deadline += held_up;
            self.silence.move_by(held_up);
        }
    }

    /// The next frame; none when the stream has ended, now or before, and `outcome` tells how.
    async fn receive_or_recall(&mut self) -> Option<ParseFrame> {
        if self.outcome.is_some() {
            return None;
        }
        match self.receive().await {
            Ok(Some(frame)) => {
                let now = Instant::now();
                self.silence.begin(now);
                self.handed_out = Some(now);
                Some(frame)
            }
            end => {
                self.charge();
                self.outcome = Some(end.map(drop));
                None
            }
        }
    }

    /// Sees the child out, unless it is gone already, and tells how the stream has ended. What a child has died of is known
    /// only now: what it has used may not have been told yet when it was asked.
    async fn finish_stream(&mut self) -> Result<(), ParseError> {
        let mut running = self.running.take();
        let exited = match &mut running {
            Some(running) => running.wait_or_kill(self.error()).await,
            None => None,
        };
        if let Some(late) = self.error().and_then(|error| self.out_of_time(error, exited)) {
            self.outcome = Some(Err(late));
        }
        if let Some((running, error)) = running.as_mut().zip(self.error()) {
            running.log(error, exited, self.inbox.is_mid_message()).await;
        }
        self.outcome.clone().unwrap_or(Ok(()))
    }

    /// Why the stream has ended, if it has failed.
    fn error(&self) -> Option<&ParseError> {
        self.outcome.as_ref()?.as_ref().err()
    }

    /// Ends the stream before the child has said anything.
    pub(super) fn fail_early(&mut self, crash: ParserCrash) {
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
        let died = *error == ParseError::Crashed(ParserCrash::Died);
        (died && is_spent).then(|| ParseError::OutOfTime { seconds: budget.limit().as_secs() })
    }

    async fn receive(&mut self) -> Result<Option<ParseFrame>, ParseError> {
        loop {
            let message =
                self.inbox.take::<ChildMessage>().map_err(|_| ParseError::Crashed(ParserCrash::BadOutput))?;
            if let Some((message, size)) = message {
                // Images are not kept; there is one for each page at most, and none is larger than a message.
                if !matches!(message, ChildMessage::Frame(ParseFrame::Image { .. })) {
                    let size = u64::try_from(size).unwrap_or(u64::MAX);
                    self.output_left = self
                        .output_left
                        .checked_sub(size)
                        .ok_or(ParseError::Crashed(ParserCrash::BadOutput))?;
                }
                return self.order.admit(message);
            }
            let Some(running) = &mut self.running else { return Ok(None) };
            let buffer = self.inbox.buffer();
            buffer.reserve(READ_SIZE);
            let until = self.deadline.min(self.silence.until);
            match timeout_at(until, running.stdout.read_buf(buffer)).await {
                Err(_) if until < self.deadline && self.silence.goes_on() => {}
                Err(_) => return Err(ParseError::Crashed(ParserCrash::TooSlow)),
                Ok(Ok(0) | Err(_)) => return Err(ParseError::Crashed(ParserCrash::Died)),
                Ok(Ok(_)) => {}
            }
        }
    }
}

/// How long a child has said nothing, by the processor time that it had: one that a busy machine keeps from its work is not taken for
/// one that makes no way.
#[derive(Debug)]
struct ChildSilence {
    /// What the child may work without a word.
    longest: Duration,
    child: Option<u32>,
    since: Instant,
    /// When the child is to be looked at.
    until: Instant,
    /// What the child had worked when it was last asked before the silence, and when that was.
    worked: Duration,
    asked: Instant,
}

impl ChildSilence {
    /// Of a child that has just started.
    fn new(longest: Duration, child: Option<u32>) -> Self {
        let now = Instant::now();
        Self { longest, child, since: now, until: now + longest, worked: Duration::ZERO, asked: now }
    }

    /// The child has said something, and is silent from now on. It is not asked each time: a page may take less than asking does.
    fn begin(&mut self, now: Instant) {
        self.since = now;
        self.until = now + self.longest;
        if now.duration_since(self.asked) >= self.longest / 8 {
            self.asked = now;
            self.worked = self.child.and_then(process_time).unwrap_or(self.worked);
        }
    }

    fn move_by(&mut self, time: Duration) {
        self.since += time;
        self.until += time;
    }

    /// Whether the child may be silent for longer, and then until when: it has not yet worked for as long as it may.
    fn goes_on(&mut self) -> bool {
        let Some(worked) = self.child.and_then(process_time) else { return false };
        let left = self.longest.saturating_sub(worked.saturating_sub(self.worked));
        let now = Instant::now();
        let last = self.since + self.longest.saturating_mul(STARVED);
        self.until = last.min(now + left);
        self.until > now
    }
}

impl RunningChild {
    /// Waits for the end of a child that may end by itself, and kills any other. How it has exited, if it did so by itself.
    async fn wait_or_kill(&mut self, error: Option<&ParseError>) -> Option<ExitStatus> {
        let exited = match error {
            Some(ParseError::Crashed(ParserCrash::TooSlow | ParserCrash::BadOutput)) => None,
            _ => timeout(EXIT_PATIENCE, self.child.wait()).await.ok().and_then(Result::ok),
        };
        if exited.is_none() {
            kill(&mut self.child).await;
        }
        exited
    }

    /// Logs how it went. Never the document's text: stderr carries places in the code only.
    async fn log(&mut self, error: &ParseError, exited: Option<ExitStatus>, cut_off: bool) {
        let status = exited.as_ref().map(ExitStatus::to_string);
        let stderr = self.stderr.text().await;
        tracing::debug!(code = error.code(), reason = ?error, status, cut_off, stderr, "a parse failed");
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

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_child_that_does_not_get_to_work_may_be_silent_for_longer_but_not_for_ever() {
        const LONGEST: Duration = Duration::from_secs(30);
        let mut idle = tokio::process::Command::new("sleep").arg("60").kill_on_drop(true).spawn().unwrap();
        let mut silence = ChildSilence::new(LONGEST, idle.id());
        let Some(before) = silence.since.checked_sub(LONGEST) else { return };
        silence.since = before;
        assert!(silence.goes_on());
        let Some(before) = silence.since.checked_sub(LONGEST * (STARVED - 1)) else { return };
        silence.since = before;
        assert!(!silence.goes_on());
        kill(&mut idle).await;
        silence.begin(Instant::now());
        assert!(!silence.goes_on(), "of one that is gone nothing more is to come");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_child_that_works_without_a_word_is_stopped_when_it_has_worked_for_long_enough() {
        const LONGEST: Duration = Duration::from_millis(100);
        let mut loops = tokio::process::Command::new("sh");
        let mut busy = loops.args(["-c", "while :; do :; done"]).kill_on_drop(true).spawn().unwrap();
        let mut silence = ChildSilence::new(LONGEST, busy.id());
        tokio::time::sleep_until(silence.until).await;
        while silence.goes_on() {
            tokio::time::sleep_until(silence.until).await;
        }
        let worked = busy.id().and_then(process_time).unwrap();
        let is_starved = silence.since.elapsed() >= LONGEST * STARVED;
        assert!(worked >= LONGEST || is_starved, "{worked:?}");
        kill(&mut busy).await;
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
