//! What is to be known of a run although it did not fail, in words.

use super::{context::Enumeration, record::RunRecorder};

/// What was left out of a source, and whether that is why nothing can be said of what is gone; none when there is nothing to say.
pub(super) fn of_reading(recorder: &RunRecorder<'_>, enumeration: &Enumeration) -> Option<String> {
    let (most, left_out) = (recorder.most(), recorder.left_out);
    let or_more = if recorder.may_leave_out_more || !enumeration.is_complete { " or more" } else { "" };
    let what = match (left_out, recorder.is_full()) {
        (0, _) if enumeration.is_complete => return None,
        (0, _) => "Not everything was looked at.".to_owned(),
        (_, true) => format!("The limit of {most} documents is reached: {left_out}{or_more} left out."),
        (_, false) => format!(
            "As many new things could not be had as there may be documents ({most}): {left_out}{or_more} left out."
        ),
    };
    let deletions = if enumeration.is_complete { "" } else { " Deletions are not followed." };
    Some(format!("{what}{deletions}"))
}

/// How much of what somebody said may be deleted stays; none when nothing does.
pub(super) fn of_return(asked: i64, gone: i64, is_complete: bool) -> Option<String> {
    let returned = asked - gone;
    let why = if is_complete { "are there again, and stay" } else { "are there again or may be, and stay" };
    (returned > 0).then(|| format!("{returned} of the {asked} documents that were gone {why}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_how_much_is_there_again() {
        assert_eq!(of_return(3, 3, true), None);
        let told = "2 of the 3 documents that were gone are there again, and stay.";
        assert_eq!(of_return(3, 1, true).as_deref(), Some(told));
        assert!(of_return(3, 1, false).is_some_and(|told| told.contains("or may be")));
    }
}
