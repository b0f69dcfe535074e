//! Places in line, `fair_at` in the schema: of two jobs the one with the lower place is taken first. What a place is made of is
//! known here only.
//!
//! It is twice a number, which counts documents, and one more if others of its workspace were there before it: of the same number, the
//! only one of a workspace comes before those of a line.

/// The place of a job that waits for a later moment: none yet. It gets one when it is due, so that thousands that wait are not
/// gone past at each claim, and so that it goes behind what its workspace has queued meanwhile.
pub(super) const NONE_YET: i64 = i64::MAX;

/// The place of a workspace's only job, with this number.
pub(super) fn alone(number: i64) -> i64 {
    2 * number
}

/// The place of a job with this number that others of its workspace were there before.
pub(super) fn in_line(number: i64) -> i64 {
    2 * number + 1
}

/// The number of a place.
pub(super) fn number(place: i64) -> i64 {
    place / 2
}

/// [`NONE_YET`] as a literal, because an index over a part of the table is used for no other.
macro_rules! none_yet {
    () => {
        "9223372036854775807"
    };
}
pub(super) use none_yet;

/// [`in_line`] in a statement.
macro_rules! place_in_line {
    ($($number:expr),+) => {
        concat!("(2 * (", $($number),+, ") + 1)")
    };
}
pub(super) use place_in_line;

/// [`number`] in a statement.
macro_rules! number_of_place {
    ($place:literal) => {
        concat!("(", $place, " / 2)")
    };
}
pub(super) use number_of_place;
