//! Reading what a source lists in a child: a feed, a sitemap or the links of a page.

use lectern_parse::protocol::{
    self, LIST_COMMAND, Listing, ListingCollector, ListingError, ListingKind, ListingMessage, ListingRequest,
    MAX_LISTED, MAX_MESSAGE, MessageDecoder,
};
use lectern_shared::ids::WorkspaceId;
use tokio::{io::AsyncReadExt, process::ChildStdout};
use url::Url;

use super::{Sandbox, SandboxError, stream::STARVED, whole_seconds};

/// Bytes that a child may send in all: what a list may have, each character of it written as long as JSON has it, and what stands between.
const OUTPUT: usize = 8 * MAX_MESSAGE;

/// What is to be read; the sandbox adds the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOrder {
    /// What the bytes are.
    pub kind: ListingKind,
    /// Where they came from.
    pub url: Url,
    /// The encoding that the server named.
    pub charset: Option<String>,
    /// Whether what a feed says of its entries is wanted also of those that link to a page.
    pub texts: bool,
    /// The most entries that are wanted.
    pub max_entries: usize,
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum ListFailure {
    /// The bytes are something else, or the child says what it must not say.
    #[error(transparent)]
    Bytes(#[from] ListingError),
    /// It took longer than it may.
    #[error("it takes longer to read than is allowed")]
    TooSlow,
    /// The child ended without an answer: mostly it had too little memory or time.
    #[error("it needs more than is allowed to be read")]
    Crashed,
    /// It could not be read at all; the bytes may be fine.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl Sandbox {
    /// The same sandbox for work on a workspace's behalf, which has its turns.
    #[must_use]
    pub fn for_workspace(&self, workspace: WorkspaceId) -> Self {
        Self { workspace: Some(workspace), ..self.clone() }
    }

    /// Waits for a turn, and has a list read. It may take as long as the longest silence of a parser, and as much memory. Dropping the
    /// future kills the child.
    ///
    /// The child is killed when the thread that called this ends, so call it on the runtime's own threads.
    pub async fn list(&self, order: ListOrder, mut bytes: &[u8]) -> Result<Listing, ListFailure> {
        let config = &self.config;
        let ListOrder { kind, url, charset, texts, max_entries } = order;
        let request = ListingRequest {
            kind,
            url,
            charset,
            texts,
            max_entries: max_entries.min(MAX_LISTED),
            memory_bytes: config.memory_bytes,
            cpu_seconds: self.cpu_seconds().min(whole_seconds(config.page_wall)).max(1),
        };
        let header = protocol::encode(&request).map_err(|_| SandboxError::Request)?;
        let within = config.page_wall.saturating_mul(STARVED);
        let listed = self
            .exchange(LIST_COMMAND, &header, &mut bytes, within, |stdout| {
                answer(stdout, ListingCollector::new(request))
            })
            .await?;
        listed.ok_or(ListFailure::TooSlow)?
    }
}

/// The list that a child answers.
async fn answer(mut stdout: ChildStdout, mut collector: ListingCollector) -> Result<Listing, ListFailure> {
    let mut inbox = MessageDecoder::default();
    let mut left = OUTPUT;
    loop {
        while let Some((message, _)) = inbox.take::<ListingMessage>().map_err(|_| ListingError::BadOutput)? {
            if let Some(listing) = collector.admit(message)? {
                return Ok(listing);
            }
            // What is at hand is taken in without a pause otherwise.
            tokio::task::consume_budget().await;
        }
        let read = stdout.read_buf(inbox.buffer()).await.map_err(|_| ListFailure::Crashed)?;
        left = left.checked_sub(read).ok_or(ListingError::BadOutput)?;
        if read == 0 {
            return Err(ListFailure::Crashed);
        }
    }
}
