//! Why a parse could not be run: our trouble, worth trying again. What is wrong with the document itself is a
//! [`ParseError`](lectern_parse::protocol::ParseError).

/// The parse could not be run at all; the document may be fine.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The child process, or the folder that it works in, could not be made. That folder is where TMPDIR says, else in /tmp.
    #[error("the parser process could not be started: {0}")]
    Spawn(#[source] std::io::Error),
    /// The document's bytes could not be read from where they are kept.
    #[error("the document's bytes could not be read")]
    Source(#[source] std::io::Error),
    /// The request does not fit the wire.
    #[error("the parse request could not be encoded")]
    Request,
}
