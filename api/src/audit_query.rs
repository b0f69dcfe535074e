//! Which lines of an audit log are asked for, in the names and forms that the interface and the page share.

use std::time::Duration;

use lectern_db::audit::AuditFilter;
use lectern_shared::clock::Timestamp;

use crate::error::{ApiError, FieldError};

const DAY: Duration = Duration::from_hours(24);
const BAD_TIME: &str = "must be a day in UTC such as 2026-01-31, or a time such as 2026-01-31T09:00:00Z";

/// Reads the filter from what was given under each name.
///
/// # Errors
/// When something of it is not what it has to be.
pub(crate) fn audit_filter(given: impl Fn(&str) -> Option<String>) -> Result<AuditFilter, ApiError> {
    let mut wrong = Vec::new();
    let filter = AuditFilter {
        actor: read(given("actor"), &mut wrong, "actor", "must be the id of an account", |text| {
            text.parse().ok()
        }),
        action: read(given("action"), &mut wrong, "action", "must be an action of the audit log", |text| {
            text.parse().ok()
        }),
        target: read(given("target"), &mut wrong, "target", "must be an id", |text| text.parse().ok()),
        since: read(given("since"), &mut wrong, "since", BAD_TIME, |text| moment(text, Duration::ZERO)),
        until: read(given("until"), &mut wrong, "until", BAD_TIME, |text| moment(text, DAY)),
    };
    if wrong.is_empty() { Ok(filter) } else { Err(ApiError::invalid(wrong)) }
}

fn read<T>(
    given: Option<String>,
    wrong: &mut Vec<FieldError>,
    name: &str,
    problem: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let parsed = parse(&given?);
    if parsed.is_none() {
        wrong.push(FieldError::new(name, problem));
    }
    parsed
}

/// A time as it is written; of a day, its first moment and so much later.
fn moment(text: &str, later: Duration) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let midnight: Timestamp = format!("{text}T00:00:00Z").parse().ok()?;
    Some(midnight.plus(later))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_asked_for_from_its_first_moment_to_its_last() {
        let day = |name: &str| ["since", "until"].contains(&name).then(|| "2026-01-31".to_owned());
        let filter = audit_filter(day).unwrap();
        let told = [filter.since, filter.until].map(|time| time.unwrap().to_string());
        assert_eq!(told, ["2026-01-31T00:00:00.000000+00:00", "2026-02-01T00:00:00.000000+00:00"]);
        assert_eq!(audit_filter(|_| None).unwrap(), AuditFilter::default());
        let nothing = audit_filter(|_| Some("yesterday".to_owned())).unwrap_err();
        assert_eq!(nothing.fields.len(), 5, "each is named that is wrong");
    }
}
