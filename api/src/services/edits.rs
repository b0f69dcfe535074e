//! Changes that are made from what somebody was shown, such as the form of a page: they undo nothing that was changed meanwhile.

use lectern_shared::clock::Timestamp;

use crate::error::{ApiError, ApiErrorKind};

/// What a change begins from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditBase {
    /// What is there, whatever it is: programs say what is to be different, and nothing else.
    Present,
    /// What was there when it had been changed last at this time.
    Shown(Timestamp),
}

impl EditBase {
    /// When something was changed last that is not there.
    pub(crate) const NEVER: Timestamp = Timestamp::from_micros(0);
    /// What is said by a code when something else is there by now.
    pub(crate) const CHANGED: &str = "changed_meanwhile";

    /// Whether what is there, and stays as it is until the change is made, is what the change begins from.
    ///
    /// # Errors
    /// A conflict, when it was changed since.
    pub(crate) fn check(self, changed_last: Timestamp) -> Result<(), ApiError> {
        match self {
            Self::Shown(shown) if shown != changed_last => {
                let message = "This was changed meanwhile, so nothing was saved.";
                Err(ApiError::new(ApiErrorKind::Conflict, "changed_meanwhile", message))
            }
            Self::Shown(_) | Self::Present => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_what_was_shown_is_refused_when_it_is_something_else_by_now() {
        let [before, now] = [1, 2].map(Timestamp::from_micros);
        assert_eq!(EditBase::Shown(now).check(now), Ok(()));
        assert_eq!(EditBase::Present.check(now), Ok(()));
        let refused = EditBase::Shown(before).check(now).unwrap_err();
        assert_eq!((refused.kind, refused.code), (ApiErrorKind::Conflict, EditBase::CHANGED));
    }
}
