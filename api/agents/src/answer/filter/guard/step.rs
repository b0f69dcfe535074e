//! What the guard does with what it looks at.

/// What stands where a foreign address stood.
pub(super) const REMOVED: &str = "(link removed)";

/// What is to be done with the beginning of a text.
#[derive(Debug)]
pub(super) enum GuardStep {
    /// Nothing, until one of these comes, or anything at all if there are none.
    More(&'static [char]),
    /// So many bytes pass.
    Keep(usize),
    /// So many bytes go.
    Replace {
        length: usize,
        /// What comes instead of them, as it is.
        with: &'static str,
        /// What comes after that, and is looked at like anything else.
        then: String,
    },
    /// One byte passes, and a blank after it, so that it does not belong to what follows.
    Break,
    /// So many bytes are code, whatever comes after them.
    Code(usize),
    /// An address begins that goes, to its end. So many bytes of it are seen to be its own.
    Swallow(usize),
}
