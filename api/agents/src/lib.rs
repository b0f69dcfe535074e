//! One run of an agent: it looks documents up, asks a model, calls tools, and checks what the answer cites.
//!
//! The crate above tells people of runs, over HTTP; nothing here knows that. [`run`] uses all the rest. `answer` says what of
//! a model's text may stand and what it cites, [`models`] speaks to providers, [`tools`] are what a model can call, and
//! [`search`] finds passages; none of these four knows of a run.

pub mod answer;
pub mod briefings;
mod error;
pub mod evaluation;
pub mod models;
pub mod prompt;
pub mod run;
pub mod search;
mod stamped_cache;
pub mod tools;

pub use self::error::{AgentError, RepeatRefusal};
