//! A program that runs, and what is said between it and its callers: a line for each message, and each answer to whoever
//! waits for it.

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use lectern_shared::{compute::ComputePool, config::McpProgram};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json, value::RawValue};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{Notify, mpsc, oneshot},
    time::{Instant, sleep_until},
};

use super::{
    super::configuration::failed,
    message::{self, McpFailure, McpRequest, McpRevision, RpcOutcome, ServerMessage},
};

/// Longest line, in bytes.
const LINE: usize = 1024 * 1024;
/// Bytes that are read at once.
const PIECE: usize = 16 * 1024;
/// Messages to a program that wait for it to read.
const WAITING: usize = 64;
/// A program of which nobody has wanted anything for so long is ended.
const IDLE: Duration = Duration::from_mins(10);
/// So is one that says nothing at all for so long after somebody has waited for it in vain.
const HUNG: Duration = Duration::from_secs(10);
/// Lines of complaint that go to the log, and the longest, in bytes.
const COMPLAINTS: usize = 1_000;
const COMPLAINT: usize = 2_048;

/// A program and its callers. It ends when this is dropped.
pub(super) struct RunningProgram {
    outgoing: mpsc::Sender<Bytes>,
    link: Arc<ProgramLink>,
    last_id: AtomicU64,
}

/// What its task and its callers share.
struct ProgramLink {
    /// None when the program has ended.
    calls: Mutex<Option<ProgramCalls>>,
    /// Told when the program may have to be ended earlier than it seemed.
    turned: Notify,
    changes: Arc<AtomicU64>,
}

/// What is wanted of a program.
struct ProgramCalls {
    /// Who waits for which answer.
    waiting: HashMap<u64, oneshot::Sender<RpcOutcome>>,
    /// When something was last waited for, or it was started.
    needed: Instant,
    /// When an answer was given up. Since then it has said nothing.
    doubted: Option<Instant>,
}

impl ProgramCalls {
    fn new() -> Self {
        Self { waiting: HashMap::new(), needed: Instant::now(), doubted: None }
    }

    /// Nobody waits for this answer any more.
    fn take(&mut self, id: u64) -> Option<oneshot::Sender<RpcOutcome>> {
        let taken = self.waiting.remove(&id)?;
        self.needed = Instant::now();
        Some(taken)
    }

    /// The same, because it took too long. Whether anybody had waited.
    fn give_up(&mut self, id: u64) -> bool {
        let is_unanswered = self.take(id).is_some();
        if is_unanswered {
            self.doubted.get_or_insert(self.needed);
        }
        is_unanswered
    }

    /// When the program is ended if nothing happens until then, and why.
    fn end(&self) -> Option<(Instant, &'static str)> {
        let hung = self.doubted.map(|since| (since + HUNG, "it does not answer, and says nothing at all"));
        let idle =
            self.waiting.is_empty().then(|| (self.needed + IDLE, "nothing was asked of it for a while"));
        hung.into_iter().chain(idle).min_by_key(|(at, _)| *at)
    }
}

impl RunningProgram {
    /// Starts it: without a shell, without the service's environment, and as the head of a group of processes of its own.
    pub(super) fn start(
        program: &McpProgram,
        compute: &ComputePool,
        changes: &Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let (file, arguments) = program.command.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut child = Command::new(file)
            .args(arguments)
            .env_clear()
            .envs(program.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = ProgramGroup(child);
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (outgoing, messages) = mpsc::channel(WAITING);
        let link = Arc::new(ProgramLink {
            calls: Mutex::new(Some(ProgramCalls::new())),
            turned: Notify::new(),
            changes: Arc::clone(changes),
        });
        let listener = ProgramListener {
            link: Arc::clone(&link),
            // It must not keep the program going when nobody else has it any more.
            replies: outgoing.downgrade(),
            compute: compute.clone(),
        };
        let name = program.name.clone();
        tokio::spawn(async move {
            let reason = tokio::select! {
                () = write(stdin, messages) => "it takes no more messages, or nobody needs it any more",
                reason = listener.listen(stdout) => reason,
                reason = listener.link.silence() => reason,
                never = complain(stderr, &name) => match never {},
            };
            tracing::info!(server = name, reason, "the program of an MCP server ends");
            // Whoever still waits hears of it.
            *listener.link.calls.lock() = None;
            drop(group);
        });
        Ok(Self { outgoing, link, last_id: AtomicU64::new(0) })
    }

    pub(super) fn is_alive(&self) -> bool {
        self.link.calls.lock().is_some()
    }

    /// Asks it, and waits for its answer. Dropping the future tells it that the answer is not needed any more.
    pub(super) async fn request(
        &self,
        revision: McpRevision,
        request: &McpRequest,
    ) -> Result<Box<RawValue>, McpFailure> {
        let ended = || McpFailure::Other(failed("The MCP server has ended before it answered."));
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (tell, answer) = oneshot::channel();
        match &mut *self.link.calls.lock() {
            Some(calls) => drop(calls.waiting.insert(id, tell)),
            None => return Err(ended()),
        }
        let _call = PendingCall { program: self, id };
        if self.outgoing.send(line(&request.message(id, revision))).await.is_err() {
            return Err(ended());
        }
        match answer.await {
            Ok(outcome) => outcome.map_err(McpFailure::Refused),
            Err(_) => Err(ended()),
        }
    }

    /// Tells it something.
    pub(super) async fn tell(&self, message: &Value) {
        // A program that has ended need not know.
        let _ended = self.outgoing.send(line(message)).await;
    }
}

fn line(message: &Value) -> Bytes {
    format!("{message}\n").into()
}

/// A call that is waited for.
struct PendingCall<'a> {
    program: &'a RunningProgram,
    id: u64,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        let link = &self.program.link;
        let is_unanswered = link.calls.lock().as_mut().is_some_and(|calls| calls.give_up(self.id));
        if is_unanswered {
            link.turned.notify_one();
            let cancelled = json!({"requestId": self.id, "reason": "it took too long"});
            let cancelled = message::notification("notifications/cancelled", &cancelled);
            // One that does not read its messages does not read this one either.
            let _unread = self.program.outgoing.try_send(line(&cancelled));
            // Whatever it answers to this, it is still there.
            let ping = json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"});
            let _unread = self.program.outgoing.try_send(line(&ping));
        }
    }
}

impl ProgramLink {
    /// Waits until it is to be ended, and says why.
    async fn silence(&self) -> &'static str {
        loop {
            let end = self.calls.lock().as_ref().and_then(ProgramCalls::end);
            match end {
                Some((at, reason)) if Instant::now() >= at => return reason,
                Some((at, _)) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.turned.notified() => {}
                },
                None => self.turned.notified().await,
            }
        }
    }

    /// It has said something.
    fn hear(&self) {
        if let Some(calls) = &mut *self.calls.lock() {
            calls.doubted = None;
        }
    }

    fn answer(&self, id: u64, outcome: RpcOutcome) {
        let waiting = self.calls.lock().as_mut().and_then(|calls| calls.take(id));
        if let Some(waiting) = waiting {
            self.turned.notify_one();
            // A caller that has just gone away does not mind.
            let _gone = waiting.send(outcome);
        }
    }
}

/// Bytes that become lines.
#[derive(Default)]
struct LineBuffer {
    buffer: BytesMut,
    /// How many of them hold no end of a line. They are not looked at again.
    searched: usize,
}

impl LineBuffer {
    /// The next whole line, with its end.
    fn next_line(&mut self) -> Option<Bytes> {
        let new = self.buffer.get(self.searched..).unwrap_or_default();
        match new.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                let line = self.buffer.split_to(self.searched + at + 1).freeze();
                self.searched = 0;
                Some(line)
            }
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }
}

/// Reads what a program says.
struct ProgramListener {
    link: Arc<ProgramLink>,
    replies: mpsc::WeakSender<Bytes>,
    compute: ComputePool,
}

impl ProgramListener {
    /// Reads until there is nothing more, and says why.
    async fn listen(&self, mut stdout: ChildStdout) -> &'static str {
        let mut lines = LineBuffer::default();
        loop {
            lines.buffer.reserve(PIECE);
            match stdout.read_buf(&mut lines.buffer).await {
                Ok(0) | Err(_) => return "it has ended",
                Ok(_) => self.link.hear(),
            }
            while let Some(line) = lines.next_line() {
                if line.len() > LINE {
                    return "it wrote a line that is too long";
                }
                // A line that is no message, such as a greeting, means nothing.
                let messages = self.compute.parse(line, ServerMessage::all).await;
                messages.into_iter().flatten().for_each(|message| self.take(message));
            }
            if lines.buffer.len() > LINE {
                return "it wrote a line that is too long";
            }
        }
    }

    fn take(&self, message: ServerMessage) {
        if message.changes_tools() {
            self.link.changes.fetch_add(1, Ordering::Relaxed);
        }
        match message {
            ServerMessage::Answer { id, outcome } => {
                if let Some(id) = id.as_u64() {
                    self.link.answer(id, outcome);
                }
            }
            ServerMessage::Request { id, method } => {
                if let Some(replies) = self.replies.upgrade() {
                    // One that asks faster than it reads gets no answers.
                    let _unread = replies.try_send(line(&message::reply(&id, &method)));
                }
            }
            ServerMessage::Notification { .. } => {}
        }
    }
}

/// Hands messages over until none can come any more, or none is taken.
async fn write(mut stdin: ChildStdin, mut messages: mpsc::Receiver<Bytes>) {
    while let Some(message) = messages.recv().await {
        if stdin.write_all(&message).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Puts the beginning of what a program complains about into the log, and reads the rest, so that it never blocks on it.
async fn complain(mut stderr: impl AsyncRead + Unpin, name: &str) -> Infallible {
    let mut buffer = BytesMut::new();
    let mut told = 0;
    while told < COMPLAINTS {
        buffer.reserve(COMPLAINT);
        let is_over = !matches!(stderr.read_buf(&mut buffer).await, Ok(1..));
        while let Some(end) = complaint_end(&buffer, is_over) {
            let complaint = buffer.split_to(end);
            told += 1;
            let complaint = String::from_utf8_lossy(&complaint);
            tracing::debug!(server = name, complaint = complaint.trim(), "an MCP server's program complains");
        }
        if is_over {
            return std::future::pending().await;
        }
    }
    let _unread = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
    std::future::pending().await
}

/// Where the first line of a complaint ends, if it is there, long enough, or the last.
fn complaint_end(buffer: &[u8], is_over: bool) -> Option<usize> {
    let end = buffer.iter().take(COMPLAINT).position(|byte| *byte == b'\n').map(|at| at + 1);
    let rest =
        (buffer.len() >= COMPLAINT || (is_over && !buffer.is_empty())).then(|| buffer.len().min(COMPLAINT));
    end.or(rest)
}

/// A program with whatever it has started. They end when this is dropped.
struct ProgramGroup(Child);

impl Drop for ProgramGroup {
    fn drop(&mut self) {
        // Only while it is not reaped: its number may be another's afterwards.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may have ended by itself.
            let _gone = rustix::process::kill_process_group(id, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(calls: &mut ProgramCalls, id: u64) {
        drop(calls.waiting.insert(id, oneshot::channel().0));
    }

    #[test]
    fn a_program_is_idle_from_the_last_moment_that_something_was_waited_for() {
        let mut calls = ProgramCalls::new();
        assert_eq!(calls.end(), Some((calls.needed + IDLE, "nothing was asked of it for a while")));
        asked(&mut calls, 1);
        asked(&mut calls, 2);
        assert_eq!(calls.end(), None, "a call is in flight, however long it takes");
        assert!(calls.take(1).is_some());
        assert_eq!(calls.end(), None);
        let before = Instant::now();
        assert!(calls.take(2).is_some());
        assert!(calls.end().is_some_and(|(at, _)| at >= before + IDLE));
    }

    #[test]
    fn a_program_that_says_nothing_after_a_call_was_given_up_is_ended() {
        let mut calls = ProgramCalls::new();
        assert!(!calls.give_up(7), "nobody waited");
        asked(&mut calls, 1);
        asked(&mut calls, 2);
        assert!(calls.give_up(1));
        let first = calls.end().unwrap();
        assert!(first.0 <= Instant::now() + HUNG);
        assert!(calls.give_up(2));
        assert_eq!(calls.end(), Some(first), "giving up again gives it no more time");
        let link =
            ProgramLink { calls: Mutex::new(Some(calls)), turned: Notify::new(), changes: Arc::default() };
        link.hear();
        let (at, _) = link.calls.lock().as_ref().and_then(ProgramCalls::end).unwrap();
        assert!(at > first.0, "it is there, and only idle");
    }

    #[test]
    fn lines_are_found_however_they_come_and_no_byte_is_searched_twice() {
        let text = b"one\n\ntwo three\nfour";
        for cut in 1..text.len() {
            let (mut lines, mut found) = (LineBuffer::default(), Vec::new());
            for piece in text.chunks(cut) {
                lines.buffer.extend_from_slice(piece);
                while let Some(line) = lines.next_line() {
                    found.push(line);
                }
                assert_eq!(lines.searched, lines.buffer.len());
            }
            assert_eq!(found, [&b"one\n"[..], b"\n", b"two three\n"]);
        }
    }
}
