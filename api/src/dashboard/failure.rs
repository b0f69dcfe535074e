//! The page of what failed: what is said of it, and the menu around it where it is known who looks at it.

use std::{borrow::Cow, sync::Arc, time::Duration};

use askama::Template;
use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};

use super::{
    NOTHING_HERE, PagePolicy,
    frame::{Frame, NavigationLink},
    html,
    labels::field_label,
    text::{self, TextSpan},
};
use crate::{
    error::{ApiError, ApiErrorKind},
    error_response::status_of,
};

/// What stands above a failure.
const DID_NOT_WORK: &str = "That did not work";
/// What is said to a tab that is opened anew where a form was sent to, and nothing is shown.
const NOTHING_SHOWN: (&str, &str) = (
    "There is nothing to see here",
    "Something was done from this address, and it shows nothing by itself. Go back in your browser, or on to a page.",
);
/// What is said where something was to be done with what is not there; the same to those who may not see it.
const GONE: (&str, &str) = (
    "It is not there any more",
    "Nothing was done: what this was about was deleted, taken back or used since, or it is not yours to see.",
);
/// What is said above the fields of a form that are wrong. The scripts of the pages say the same.
const WRONG_FIELDS: &str = "Some fields need another value; see below.";

/// What stands around the page of a failure. It goes with the answer of whoever is signed in, up to where its page is written.
#[derive(Clone)]
pub(crate) struct FailureFrame {
    frame: Arc<Frame>,
    /// Something was to be done, and not only to be seen.
    was_sent: bool,
}

impl FailureFrame {
    pub(super) fn new(frame: Frame, was_sent: bool) -> Self {
        Self { frame: Arc::new(frame), was_sent }
    }
}

/// What is said of a failure, and of each field of a form that is wrong.
pub(super) struct FailureWords<'a> {
    pub(super) message: Vec<TextSpan<'a>>,
    /// What each is called, and what would be right.
    pub(super) fields: Vec<(Cow<'a, str>, Vec<TextSpan<'a>>)>,
}

impl<'a> FailureWords<'a> {
    pub(super) fn of(error: &'a ApiError) -> Self {
        // Programs are told where the fields are named; here they stand below.
        let message = if error.fields.is_empty() { error.message.as_str() } else { WRONG_FIELDS };
        let fields = error.fields.iter();
        let fields = fields.map(|field| (field_label(&field.path), text::spans(&field.message)));
        Self { message: text::spans(message), fields: fields.collect() }
    }
}

/// The least seconds until something may work that are worth being said.
const WORTH_WAITING: u64 = 60;

/// A failure with when to try again, where that is known and not at once.
pub(super) fn with_wait(mut error: ApiError) -> ApiError {
    const AGAIN: &str = "Try again";
    let Some(seconds) = error.retry_after.filter(|seconds| *seconds >= WORTH_WAITING) else { return error };
    // Not earlier than that, as it is rounded.
    let unit = match seconds {
        0..120 => 1,
        120..7_200 => 60,
        7_200.. => 3_600,
    };
    let wait = text::in_time(Duration::from_secs(seconds.div_ceil(unit).saturating_mul(unit)));
    if let Some(at) = error.message.find(AGAIN) {
        error.message.truncate(at);
    }
    error.message = format!("{} {AGAIN} {wait}.", error.message.trim_end());
    error
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    title: &'a str,
    failure: FailureWords<'a>,
    request_id: &'a str,
    /// How to go on from here; empty when there is nothing to say.
    hint: &'a str,
    /// The way from the page's folder to the root, under whatever path a proxy has put that.
    root: &'a str,
}

/// The same with the menu around it.
#[derive(Template)]
#[template(path = "error_framed.html")]
struct FramedErrorPage<'a> {
    frame: &'a Frame,
    title: &'a str,
    failure: FailureWords<'a>,
    request_id: &'a str,
    hint: &'a str,
    /// The list that has what was looked for, or had it.
    list: Option<NavigationLink>,
}

/// The answer to a person's request that failed, for a path that is so many folders below the root.
pub(crate) fn error_response(
    error: &ApiError,
    request_id: &str,
    depth: usize,
    frame: Option<&FailureFrame>,
) -> Response {
    let error = &with_wait(error.clone());
    let without_fields = |words| FailureWords { message: text::spans(words), fields: Vec::new() };
    let was_sent = frame.is_some_and(|frame| frame.was_sent);
    let (title, failure) = match error.kind {
        ApiErrorKind::NotFound if was_sent => (GONE.0, without_fields(GONE.1)),
        ApiErrorKind::NotFound => (NOTHING_HERE.0, without_fields(NOTHING_HERE.1)),
        ApiErrorKind::MethodNotAllowed => (NOTHING_SHOWN.0, without_fields(NOTHING_SHOWN.1)),
        _ => (DID_NOT_WORK, FailureWords::of(error)),
    };
    let hint = match (failure.fields.is_empty(), error.code) {
        (false, _) | (true, "too_large") => {
            "Go back in your browser to change it: what you wrote is still there."
        }
        (true, "other_workspace") => {
            "Go back in your browser to send it again: what you wrote is still there."
        }
        (true, _) => "",
    };
    let status = status_of(error);
    let page = match frame {
        Some(FailureFrame { frame, .. }) => {
            let frame: &Frame = frame;
            let is_missing = matches!(error.kind, ApiErrorKind::NotFound | ApiErrorKind::MethodNotAllowed);
            let list = frame.links().into_iter().find(|link| is_missing && link.is_current);
            let page = FramedErrorPage { frame, title, failure, request_id, hint, list };
            html(&PagePolicy::Own, status, &page)
        }
        None => {
            let root = "../".repeat(depth);
            html(&PagePolicy::Static, status, &ErrorPage { title, failure, request_id, hint, root: &root })
        }
    };
    page.unwrap_or_else(|_| plain(status))
}

/// What is left to say where not even the page can be written.
fn plain(status: StatusCode) -> Response {
    (status, DID_NOT_WORK).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;

    async fn page_of(error: &ApiError, depth: usize) -> String {
        let answer = error_response(error, "r-1", depth, None);
        assert_eq!(answer.status(), status_of(error));
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
        let page = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(page.to_vec()).unwrap()
    }

    #[test]
    fn a_failure_says_when_to_try_again_once_and_not_too_early() {
        let told = |message: &str, retry_after| {
            let error = ApiError::new(ApiErrorKind::Unavailable, "busy", message);
            with_wait(ApiError { retry_after, ..error })
        };
        for (message, seconds, words) in [
            ("It is busy.", Some(3_600), "It is busy. Try again in 60 minutes."),
            ("It is busy.", Some(61), "It is busy. Try again in 61 seconds."),
            ("It is busy.", Some(3_541), "It is busy. Try again in 60 minutes."),
            ("It is busy.", Some(7_201), "It is busy. Try again in 3 hours."),
            ("It is busy. Try again later.", Some(120), "It is busy. Try again in 2 minutes."),
            ("It is busy. Try again later.", Some(59), "It is busy. Try again later."),
            ("It is busy.", None, "It is busy."),
        ] {
            let once = told(message, seconds);
            assert_eq!(once.message, words);
            assert_eq!(with_wait(once.clone()), once);
        }
    }

    #[tokio::test]
    async fn a_failure_is_a_page_that_repeats_nothing_as_html() {
        let message = "<b>\"away\" & so on</b>, see `<i>there</i>`";
        let error = ApiError::new(ApiErrorKind::Unavailable, "unavailable", message);
        let page = page_of(&error, 1).await;
        assert!(!page.contains("<b>") && !page.contains("<i>") && page.contains("away"), "{page}");
        assert!(page.contains("r-1") && page.contains("<code>") && !page.contains('`'), "{page}");
    }

    #[tokio::test]
    async fn wrong_fields_of_a_form_are_told_in_words_for_people() {
        let page = page_of(&ApiError::invalid_field("name", "must not be `blank`"), 1).await;
        let told = "<strong>Name</strong> must not be <code>blank</code></li>";
        assert!(page.contains(WRONG_FIELDS) && page.contains(told), "{page}");
        assert!(!page.contains("fields`"), "{page}");
        assert!(include_str!("assets/app.js").contains(WRONG_FIELDS), "scripts say the same");
    }

    #[tokio::test]
    async fn an_address_that_shows_nothing_is_told_of_without_words_of_programs() {
        let page = page_of(&crate::error_response::method_not_allowed().await, 2).await;
        assert!(page.contains("shows nothing by itself") && !page.contains("method"), "{page}");
    }

    #[tokio::test]
    async fn a_page_names_its_style_and_its_icon_from_its_own_folder() {
        for (depth, root) in [(0, ""), (2, "../../")] {
            let page = page_of(&ApiError::internal(), depth).await;
            for file in ["style.css", "icon.svg"] {
                assert!(page.contains(&format!("href=\"{root}assets/{file}\"")), "{page}");
            }
        }
    }
}
