//! What runs in the sandboxed child, which reads strangers' bytes, and the protocol that it speaks.
//!
//! The worker (`lectern-worker`) starts the child, feeds it, and believes nothing that it says; a binary becomes one by
//! [`child::main`]. Code of the service has no business here: the child has no runtime, no settings, no log, no files and no
//! network.

pub mod charset;
pub mod child;
pub mod confine;
mod draw;
pub mod formats;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod listing;
mod output;
pub mod protocol;
mod raster;
