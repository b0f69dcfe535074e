//! What is said once on the pages of those who are signed in.

use axum::http::Uri;

use super::text::{Notice, documents_words};
use crate::extract::parameter;

/// What is said to those whose browser had a workspace open that is none of theirs now, whether it is there still or not.
const WORKSPACE_LEFT: &str = "The workspace that was open here is not there any more, or you are no member of it any more. You are in your own now.";

/// What is said on a page about what was done just now, by the word in its address: the text is never the address's own.
pub(super) fn notice(said: &str) -> Option<Notice> {
    let words = match said {
        "added" => "Added.",
        "saved" => "Saved.",
        "deleted" => "Deleted. Nothing finds it any more.",
        "token-deleted" => "Deleted. What uses the token is refused from now on.",
        "answer-deleted" => "Deleted. Nothing is kept of the answer any more.",
        "answers-deleted" => "Deleted. Nothing is kept of the answers any more, nor remembered of them.",
        "agent-deleted" => "Deleted. Nobody can ask the agent any more.",
        "workspace-deleted" => "The workspace is deleted, with all that was in it. You are in your own now.",
        "queued" => "Queued. It is read again from its source.",
        "job-queued" => "The job waits in the queue again. It is tried as soon as a worker is free.",
        "stopped" => "Stopped.",
        "sent" => "On its way.",
        "removed" => "Removed.",
        "left" => "You have left the workspace.",
        "joined" => "Welcome. You are a member of this workspace now.",
        "signed-out" => "You are signed out.",
        "thanks" => "Thank you. Your feedback is kept with the answer.",
        "ended" => return Some(Notice::undone("It had ended already, so nothing was stopped.")),
        "workspace-gone" => return Some(Notice::undone(WORKSPACE_LEFT)),
        "unmatched" => return Some(Notice::undone("No document matches, so nothing was done.")),
        _ => return None,
    };
    Some(Notice::done(words))
}

/// The same of what was done to so many documents, of which the address says nothing but the number.
pub(super) fn counted_notice(said: &str, uri: &Uri) -> Option<Notice> {
    let count = parameter(uri, "count")?.parse::<u64>().ok()?;
    let documents = documents_words(count, false);
    let words = match (said, count) {
        ("deleted", 1) => format!("Deleted {documents}. Nothing finds it any more."),
        ("deleted", _) => format!("Deleted {documents}. Nothing finds them any more."),
        ("queued", 1) => format!("Queued {documents}. It is read again from its source."),
        ("queued", _) => format!("Queued {documents}. They are read again from their sources."),
        ("added", _) => format!("Put {documents} into the collection."),
        _ => return None,
    };
    Some(Notice { words: words.into(), tone: "" })
}

/// What is said in the same way of what could not be done. The scripts of the pages say the same.
pub(super) fn problem(said: &str) -> Option<&'static str> {
    (said == "unselected").then_some("Select at least one document, or all that match.")
}
