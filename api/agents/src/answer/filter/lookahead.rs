//! How far a text can be looked at.

/// How a text that is looked at ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookaheadEnd {
    /// More will come.
    Open,
    /// More will come, but no more is waited for.
    Full,
    /// It is complete.
    Last,
}
