//! Waits in front of PostgreSQL for the commit of one certain transaction, and lets something happen to it.
//!
//! It reads along what a client sends. A statement is told by its text also where only the name under which it was prepared
//! is sent.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::Proxy;
use crate::support::loopback::Gate;
use crate::support::within_deadline;

/// What happens to the commit.
#[derive(Clone, Debug)]
pub enum Fate {
    /// The connection breaks before the server has heard of it: the transaction is rolled back.
    NeverArrives,
    /// The connection breaks when the server answers: it has committed, and the client does not learn of it.
    AnswerIsLost,
    /// The server's answer waits at the gate, and so does whatever it sends on this connection after it.
    AnswerWaits(Gate),
}

/// A commit that is waited for.
pub struct Trap {
    /// The transaction is one in which every one of these was part of a statement.
    statements: Vec<String>,
    fate: Fate,
    left: usize,
    sprung: Arc<watch::Sender<usize>>,
}

/// Tells when the commit was caught.
pub struct Sprung(Arc<watch::Sender<usize>>);

impl Sprung {
    /// How often it was.
    pub fn times(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until it was.
    pub async fn wait(&self) {
        let mut sprung = self.0.subscribe();
        let once = sprung.wait_for(|sprung| *sprung > 0);
        within_deadline("the commit that was to be caught", once).await.expect("it holds the sender");
    }
}

impl Proxy {
    /// Catches the next commit of a transaction that has had statements with all these texts in them, and lets this happen to it.
    /// One trap at a time: a new one replaces it.
    pub fn catch_commit(&self, statements: &[&str], fate: Fate) -> Sprung {
        self.catch_commits(1, statements, fate)
    }

    /// The same for the next so many of them.
    pub fn catch_commits(&self, times: usize, statements: &[&str], fate: Fate) -> Sprung {
        let statements = statements.iter().map(ToString::to_string).collect();
        let sprung = Arc::new(watch::Sender::new(0));
        *self.line.trap.lock() = Some(Trap { statements, fate, left: times, sprung: Arc::clone(&sprung) });
        Sprung(sprung)
    }
}

/// What is to become of what the server sends next.
pub(super) enum Answer {
    Passes,
    Is(Gate),
    Lost,
}

/// Reads along what one client says.
#[derive(Default)]
pub(super) struct Ear {
    /// Whether it is a client of PostgreSQL: they begin with the length of a short message, and so with a zero.
    understands: Option<bool>,
    /// The beginning of a message.
    begun: Vec<u8>,
    /// The client has said who it is; before that, messages have no type.
    introduced: bool,
    prepared: HashMap<String, String>,
    /// The statements of the transaction so far.
    transaction: Vec<String>,
    answer: Option<Fate>,
}

/// The number that stands where the protocol's version does when a client asks for TLS.
const ASKS_FOR_TLS: usize = 80_877_103;

impl Ear {
    /// Listens to these bytes; returns what of them may reach the server: all, or what comes before the commit that is caught.
    pub(super) fn hear<'a>(&mut self, bytes: &'a [u8], trap: &Mutex<Option<Trap>>) -> &'a [u8] {
        if !*self.understands.get_or_insert(bytes.first() == Some(&0)) {
            return bytes;
        }
        for (at, byte) in bytes.iter().enumerate() {
            self.begun.push(*byte);
            if self.is_complete() {
                let message = std::mem::take(&mut self.begun);
                if self.is_caught(&message, trap) {
                    return &bytes[..(at + 1).saturating_sub(message.len())];
                }
            }
        }
        bytes
    }

    /// What is to become of what the server says now.
    pub(super) fn answer(&mut self) -> Answer {
        match self.answer.take() {
            None | Some(Fate::NeverArrives) => Answer::Passes,
            Some(Fate::AnswerWaits(gate)) => Answer::Is(gate),
            Some(Fate::AnswerIsLost) => Answer::Lost,
        }
    }

    fn is_complete(&self) -> bool {
        let head = usize::from(self.introduced);
        let length = self.begun.get(head..head + 4).map(number);
        length.is_some_and(|length| self.begun.len() >= head + length)
    }

    /// Whether this message may not pass.
    fn is_caught(&mut self, message: &[u8], trap: &Mutex<Option<Trap>>) -> bool {
        if !self.introduced {
            self.introduced = message.get(4..8).map(number) != Some(ASKS_FOR_TLS);
            return false;
        }
        let mut texts = message[5..].split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let mut next = || texts.next().unwrap_or_default().into_owned();
        match message[0] {
            b'P' => {
                let name = next();
                self.prepared.insert(name, next());
            }
            b'B' => {
                let (_portal, name) = (next(), next());
                let text = self.prepared.get(&name).cloned().unwrap_or_default();
                self.transaction.push(text);
            }
            b'Q' => return self.is_caught_commit(next(), trap),
            _ => {}
        }
        false
    }

    fn is_caught_commit(&mut self, text: String, trap: &Mutex<Option<Trap>>) -> bool {
        if text.starts_with("BEGIN") {
            self.transaction.clear();
        }
        if text != "COMMIT" {
            self.transaction.push(text);
            return false;
        }
        let statements = std::mem::take(&mut self.transaction);
        let mut trap = trap.lock();
        let is_wanted = |trap: &&mut Trap| {
            trap.statements.iter().all(|part| statements.iter().any(|statement| statement.contains(part)))
        };
        let Some(caught) = trap.as_mut().filter(is_wanted) else { return false };
        caught.sprung.send_modify(|sprung| *sprung += 1);
        caught.left -= 1;
        let fate = caught.fate.clone();
        if caught.left == 0 {
            *trap = None;
        }
        let never_arrives = matches!(fate, Fate::NeverArrives);
        self.answer = Some(fate);
        never_arrives
    }
}

/// A number as the protocol writes it.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
}
