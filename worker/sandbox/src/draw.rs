//! Drawing one page of a PDF in a child.

use lectern_parse::protocol::{
    self, DRAW_COMMAND, DrawError, DrawMessage, DrawRequest, ImageFormat, MessageDecoder, PageDrawing,
    TextToMark,
};
use lectern_shared::model::page::RecognisedWord;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::ChildStdout,
};

use super::{Sandbox, SandboxError};

/// What is to be drawn; the sandbox adds the limits.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawOrder {
    /// The page, counted from 1.
    pub page: u32,
    /// Pixels from left to right.
    pub width: u32,
    /// How the image is written.
    pub format: ImageFormat,
    /// Texts that are to be marked.
    pub marks: Vec<TextToMark>,
    /// The words that were recognised on the page, if it is a scan.
    pub words: Vec<RecognisedWord>,
}

/// Why there is no drawing.
#[derive(Debug, thiserror::Error)]
pub enum DrawFailure {
    /// The page cannot be drawn, and never will be.
    #[error(transparent)]
    Page(#[from] DrawError),
    /// It took longer than a drawing may.
    #[error("the page takes longer to draw than is allowed")]
    TooSlow,
    /// The child ended without an answer that can be believed: mostly it had too little memory.
    #[error("the page needs more than is allowed to be drawn")]
    Crashed,
    /// The drawing could not be made at all; the page may be fine.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl Sandbox {
    /// Waits for a turn, and has a page of the PDF in `source` drawn. Dropping the future kills the child.
    ///
    /// The child is killed when the thread that called this ends, so call it on the runtime's own threads.
    pub async fn draw<R>(&self, order: DrawOrder, source: &mut R) -> Result<PageDrawing, DrawFailure>
    where
        R: AsyncRead + Unpin,
    {
        let config = &self.config;
        let DrawOrder { page, width, format, marks, words } = order;
        let request = DrawRequest {
            page,
            width,
            format,
            marks,
            words,
            memory_bytes: config.memory_bytes,
            cpu_seconds: config.cpu_seconds,
        };
        let header = protocol::encode(&request).map_err(|_| SandboxError::Request)?;
        let most = config.max_output_bytes;
        let message = self
            .exchange(DRAW_COMMAND, &header, source, config.total_wall, |stdout| answer(stdout, most))
            .await?;
        match message.ok_or(DrawFailure::TooSlow)? {
            Some(DrawMessage::Drawn(drawing)) if drawing.answers(&request) => Ok(drawing),
            Some(DrawMessage::Failed(error)) => Err(error.into()),
            Some(DrawMessage::Drawn(_)) | None => Err(DrawFailure::Crashed),
        }
    }
}

/// The one message of a child; none when it says something else, or nothing.
async fn answer(mut stdout: ChildStdout, most: u64) -> Option<DrawMessage> {
    let mut inbox = MessageDecoder::default();
    let mut left = most;
    loop {
        if let Some((message, _)) = inbox.take::<DrawMessage>().ok()? {
            return Some(message);
        }
        let read = stdout.read_buf(inbox.buffer()).await.ok()?;
        left = left.checked_sub(u64::try_from(read).ok()?)?;
        if read == 0 {
            return None;
        }
    }
}
