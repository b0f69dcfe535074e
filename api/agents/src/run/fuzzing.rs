//! What a model writes, as the target in `fuzz/` calls what reads it.

use super::react_text::{self, ReactDirective};

/// The reader of texts of thoughts and actions.
pub fn react(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    assert!(text.starts_with(react_text::cut_at_stop(&text)));
    let prose = react_text::prose(&text);
    assert_eq!(prose.trim(), prose);
    match react_text::parse(&text) {
        Ok(turn) => match turn.directive {
            ReactDirective::Call { tool, .. } => assert!(!tool.is_empty()),
            ReactDirective::Finish(answer) => assert!(!answer.trim().is_empty()),
        },
        Err(error) => assert!(!error.to_string().is_empty() && !error.code().is_empty()),
    }
}
