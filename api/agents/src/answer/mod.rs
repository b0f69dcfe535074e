//! What makes an answer trustworthy: which of its markers, links and images may stand, what it cites, whether the passages
//! hold what it quotes, and where they can be opened. A run calls it with texts; it asks nothing, and knows nothing of runs.

pub(crate) mod cite;
pub(crate) mod filter;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod link;
pub(crate) mod markers;
pub(crate) mod quote;
pub(crate) mod redact;

pub use self::{
    cite::{AnswerMarker, AnswerQuotations},
    filter::markdown_steps,
    link::{passage_url, place_url},
    quote::verify_quote,
};
