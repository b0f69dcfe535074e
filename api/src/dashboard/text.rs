//! How pages say things: states, times, sizes, places, and what to do about a failure.

use std::{borrow::Cow, time::Duration};

use lectern_shared::{
    clock::Timestamp,
    model::{
        document::DocumentType,
        job::{IngestionStage, IngestionSummary, JobState, StageProgress},
        place::SourceSpan,
    },
};

use crate::error::{ApiError, ApiErrorKind};

/// What a page says of what happened just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) words: Cow<'static, str>,
    /// The class that colours it.
    pub(super) tone: &'static str,
}

impl Notice {
    /// Something was done.
    pub(super) const fn done(words: &'static str) -> Self {
        Self { words: Cow::Borrowed(words), tone: "" }
    }

    /// Nothing was done, which is no success and no failure.
    pub(super) const fn undone(words: &'static str) -> Self {
        Self { words: Cow::Borrowed(words), tone: "neutral" }
    }
}

/// A piece of what is said, and whether it is code.
pub(super) type TextSpan<'a> = (bool, &'a str);

/// The pieces of a text, in which code stands between backticks. A backtick without another one is itself.
pub(super) fn spans(text: &str) -> Vec<TextSpan<'_>> {
    let (mut spans, mut rest) = (Vec::new(), text);
    while let Some((before, behind)) = rest.split_once('`')
        && let Some((code, after)) = behind.split_once('`')
    {
        spans.extend([(false, before), (true, code)]);
        rest = after;
    }
    spans.push((false, rest));
    spans.retain(|(_, piece)| !piece.is_empty());
    spans
}

/// What was said of an answer; nothing while nobody has.
pub(super) fn rating_words(rating: Option<i64>) -> &'static str {
    match rating {
        None => "",
        Some(rating) if rating > 0 => "It helped",
        Some(_) => "It did not help",
    }
}

/// The variables of a prompt with these names, as they stand in it.
pub(super) fn variables(names: &[String]) -> String {
    names.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ")
}

/// Where an ingestion stands.
pub(super) struct IngestionState {
    pub(super) word: &'static str,
    /// The class that colours the word.
    pub(super) tone: &'static str,
    /// What it does at this moment.
    pub(super) detail: String,
    /// How much is done, and of how much.
    pub(super) progress: Option<(u64, u64)>,
    pub(super) is_busy: bool,
}

impl IngestionState {
    pub(super) fn of(ingestion: &IngestionSummary) -> Self {
        let (word, tone, is_busy) = match ingestion.state {
            JobState::Queued if ingestion.attempts > 0 => ("Waits to be tried again", "busy", true),
            JobState::Queued => ("Waits", "busy", true),
            JobState::Running => ("Is being read", "busy", true),
            JobState::Done => ("Ready", "good", false),
            JobState::Dead => ("Failed", "bad", false),
            JobState::Cancelled => ("Stopped", "", false),
        };
        let running = ingestion.state == JobState::Running;
        let progress = ingestion.progress.as_ref().map(|progress| &progress.0).filter(|_| running);
        let detail = match (ingestion.stage.filter(|_| running), progress) {
            (Some(stage), Some(progress)) => format!("{}: {}", stage_words(stage), progress_words(progress)),
            (Some(stage), None) => stage_words(stage).to_owned(),
            (None, _) if is_busy && ingestion.attempts > 0 => {
                let tries = counted(ingestion.attempts.unsigned_abs(), "try", "tries");
                match &ingestion.last_error {
                    Some(error) => format!("{tries} so far. {}", error.0.message),
                    None => format!("{tries} so far"),
                }
            }
            (None, _) if ingestion.state == JobState::Cancelled => {
                let error = ingestion.last_error.as_ref();
                error.map(|error| format!("The last try failed. {}", error.0.message)).unwrap_or_default()
            }
            (None, _) => String::new(),
        };
        let progress = progress.and_then(|progress| Some((progress.done, progress.total?)));
        Self { word, tone, detail, progress, is_busy }
    }
}

fn stage_words(stage: IngestionStage) -> &'static str {
    match stage {
        IngestionStage::Fetch => "Fetching the source",
        IngestionStage::Parse => "Reading its text",
        IngestionStage::Split => "Cutting it into passages",
        IngestionStage::Embed => "Making its passages comparable by meaning",
        IngestionStage::Index => "Making it searchable",
    }
}

fn progress_words(progress: &StageProgress) -> String {
    let StageProgress { done, total, unit } = progress;
    let of = |done: String, total: Option<String>| match total {
        Some(total) => format!("{done} of {total}"),
        None => done,
    };
    match unit.as_str() {
        "bytes" => of(size(*done), total.map(size)),
        "chunks" => format!("{} passages", of(done.to_string(), total.map(|total| total.to_string()))),
        unit => format!("{} {unit}", of(done.to_string(), total.map(|total| total.to_string()))),
    }
}

/// What a document is.
pub(super) const fn document_kind(kind: DocumentType) -> &'static str {
    match kind {
        DocumentType::Txt => "Text",
        DocumentType::Pdf => "PDF",
        DocumentType::Video => "Video",
        DocumentType::Csv => "Table",
        DocumentType::Url => "Web page",
    }
}

/// What to do about a failure, by its code and what the document is.
pub(super) fn remedy(code: &str, kind: DocumentType) -> &'static str {
    match code {
        "not_found" => "Correct the address, or upload the file instead.",
        "invalid_url" => "Correct the address; it begins with https:// or http://.",
        "refused_address" => "Use a public address, or upload the file instead.",
        "forbidden" => {
            "The server asks for credentials: give them under Access where the document is changed, or upload the file instead."
        }
        "invalid_authorization" => {
            "What was given under Access cannot be sent to a server. Give it again where the document is changed."
        }
        "unreachable" | "unavailable" | "interrupted" => "Wait a moment; trying again can help.",
        "tls_failed" => {
            "Tell the owner of the server that its certificate is not good, or upload the file instead."
        }
        "timeout" => "Try again; if that does not help, upload the file instead, or split it.",
        "too_many_redirects" | "refused_redirect" => "Give the address that the redirects should lead to.",
        "unexpected_status" | "bad_response" => {
            "Open the address in a browser to see what the server answers."
        }
        "too_large" | "parser_crashed" | "too_many_pages" if kind == DocumentType::Pdf => {
            "Split the document into smaller ones, or have fewer of its pages read."
        }
        "too_large" | "parser_crashed" | "too_many_pages" => "Split the document into smaller ones.",
        "quota_exceeded" => {
            "Delete documents that are not needed any more, or ask the operator for more room."
        }
        "unsupported_content_type" => "Convert it to a PDF, for instance, and add that.",
        "no_extractable_text" => no_text(kind),
        "password_required" => "Save it without its password, and add that.",
        "damaged" => "If it was downloaded, download it again first: it may have broken off.",
        "invalid_page_range" => "Correct the first and the last page.",
        "transcripts_disabled" => "The video has no captions. Add them as a text.",
        "internal" | "embedder_failed" => {
            "Try again; if that does not help, tell the operator the time of it."
        }
        _ => "Try again; if that does not help, add the document as a file or as a text.",
    }
}

/// What to do about a document without text.
fn no_text(kind: DocumentType) -> &'static str {
    match kind {
        DocumentType::Pdf => {
            "No text could be read in it. If it is a scan, a sharper one may help; ask the operator whether text recognition is installed, or run it before uploading."
        }
        DocumentType::Url => {
            "There is no text at the address. If scripts make the page, save it from a browser and upload the file."
        }
        DocumentType::Txt => {
            "There is no text in it. Check that it is the right one. A page that scripts make has its text only as a browser saves it."
        }
        DocumentType::Csv => "There is nothing in the table. Check that it is the right file.",
        DocumentType::Video => "Nothing is said in its captions. Add what is said as a text.",
    }
}

/// What is said of a form that is larger than what is taken, where programs are told so many bytes.
const TOO_LONG: &str = "What you wrote is too long to be sent. Make it shorter: letters with accents count for several, and those of \
                        other scripts too.";

/// What is wrong with a form and its fields, without the names that only programs know them by.
pub(super) fn for_people(mut error: ApiError) -> ApiError {
    const WORDS: [(&str, &str); 6] = [
        ("give them as authorization", "give them under Access"),
        ("must not be before from_page", "must not be before the first page"),
        ("host than that of the new url", "host than that of the new address"),
        ("must be a time such as 2026-01-31T08:00:00Z", "must be a day such as 2026-01-31"),
        ("must be a time that is to come", "must be today or a later day"),
        ("send it again, or null to do without", "give it again, or take it away"),
    ];
    if error.kind == ApiErrorKind::TooLarge {
        TOO_LONG.clone_into(&mut error.message);
    }
    for field in &mut error.fields {
        for (programs, people) in WORDS {
            field.message = field.message.replace(programs, people);
        }
    }
    error
}

/// The word by which a page is told whether something was stopped, or had ended before.
pub(super) const fn stop_word(is_stopped: bool) -> &'static str {
    if is_stopped { "stopped" } else { "ended" }
}

/// How long it is until something, as people say it.
pub(super) fn in_time(wait: Duration) -> String {
    let seconds = wait.as_secs().max(1);
    match seconds {
        0..120 => format!("in {}", counted(seconds, "second", "seconds")),
        120..7_200 => format!("in {} minutes", seconds / 60),
        7_200.. => format!("in {} hours", seconds / 3_600),
    }
}

/// A time of day, in UTC: scripts show it as people at the browser have it.
pub(super) fn moment(at: Timestamp) -> String {
    let text = at.to_string();
    let minute = text.get(..16).unwrap_or(&text).replace('T', " ");
    format!("{minute} UTC")
}

/// Bytes, as people say them.
#[expect(clippy::cast_precision_loss, reason = "it is rounded anyway")]
pub(super) fn size(bytes: u64) -> String {
    let units = ["bytes", "kB", "MB", "GB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1_000.0 && unit + 1 < units.len() {
        value /= 1_000.0;
        unit += 1;
    }
    let unit_name = units.get(unit).copied().unwrap_or_default();
    if unit == 0 || value >= 100.0 {
        format!("{value:.0} {unit_name}")
    } else {
        format!("{value:.1} {unit_name}")
    }
}

/// `1 page`, `2 pages`.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// How many documents there are; with `has_more`, more than that.
pub(super) fn documents_words(count: u64, has_more: bool) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let noun = if count == 1 { "document" } else { "documents" };
    let more = if has_more { "more than " } else { "" };
    format!("{more}{grouped} {noun}")
}

/// So many characters of a text from its beginning, and a sign of it where there are more.
pub(super) fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Milliseconds, as people say them.
#[expect(clippy::cast_precision_loss, reason = "it is rounded anyway")]
pub(super) fn duration(milliseconds: u64) -> String {
    if milliseconds < 1_000 {
        format!("{milliseconds} ms")
    } else {
        format!("{:.1} s", milliseconds as f64 / 1_000.0)
    }
}

/// Where a passage stands, as people say it; empty for a text that has no such places.
pub(super) fn place_words(place: &SourceSpan) -> String {
    let pages = place.page.map(|page| numbered("Page", page.into(), place.page_end.map(u64::from)));
    let rows = place.row.map(|row| numbered("Row", row, place.row_end));
    let moments = place.start.and_then(video_moment).map(|start| match place.end.and_then(video_moment) {
        Some(end) if end != start => format!("{start}–{end}"),
        Some(_) | None => start,
    });
    [pages, rows, moments].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// `Page 3`, or `Pages 3–4`.
fn numbered(noun: &str, first: u64, last: Option<u64>) -> String {
    match last {
        Some(last) if last > first => format!("{noun}s {first}–{last}"),
        Some(_) | None => format!("{noun} {first}"),
    }
}

/// A moment of a video, `1:23` or `1:02:03`.
fn video_moment(seconds: f64) -> Option<String> {
    let whole = Duration::try_from_secs_f64(seconds).ok()?.as_secs();
    let (hours, minutes, seconds) = (whole / 3_600, whole / 60 % 60, whole % 60);
    Some(match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    })
}

/// What templates call with `|`.
pub(super) mod filters {
    #![expect(
        unreachable_pub,
        clippy::inline_always,
        clippy::trivially_copy_pass_by_ref,
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "askama writes them so"
    )]

    use askama::Values;
    use lectern_index::lexical::language_tag;
    use lectern_shared::clock::Timestamp;

    /// The day of a time.
    #[askama::filter_fn]
    pub(in crate::dashboard) fn day(at: &Timestamp, _: &dyn Values) -> askama::Result<String> {
        let text = at.to_string();
        Ok(text.get(..10).unwrap_or(&text).to_owned())
    }

    /// A time of day.
    #[askama::filter_fn]
    pub(in crate::dashboard) fn moment(at: &Timestamp, _: &dyn Values) -> askama::Result<String> {
        Ok(super::moment(*at))
    }

    /// The language of a text, for the attribute that tells it: empty, and so not the page's, where it is not certain.
    #[askama::filter_fn]
    pub(in crate::dashboard) fn lang(text: &str, _: &dyn Values) -> askama::Result<&'static str> {
        Ok(language_tag(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_documents_are_counted_as_people_write_numbers() {
        for (count, has_more, words) in [
            (0, false, "0 documents"),
            (1, false, "1 document"),
            (999, false, "999 documents"),
            (1_100, false, "1,100 documents"),
            (10_000, true, "more than 10,000 documents"),
            (1_234_567, false, "1,234,567 documents"),
        ] {
            assert_eq!(documents_words(count, has_more), words);
        }
    }

    #[test]
    fn a_text_that_is_cut_says_so() {
        for (text, shown) in [("", ""), ("日本語", "日本語"), ("日本語で", "日本語…"), ("cafés", "caf…")]
        {
            assert_eq!(beginning(text, 3), shown);
        }
    }

    #[test]
    fn a_place_is_told_as_people_say_it() {
        let none = SourceSpan::default;
        for (place, words) in [
            (none(), ""),
            (SourceSpan { page: Some(3), page_end: Some(3), ..none() }, "Page 3"),
            (SourceSpan { page: Some(3), page_end: Some(5), ..none() }, "Pages 3–5"),
            (SourceSpan { row: Some(1), row_end: Some(9), ..none() }, "Rows 1–9"),
            (SourceSpan { row: Some(7), ..none() }, "Row 7"),
            (SourceSpan { start: Some(83.9), end: Some(90.0), ..none() }, "1:23–1:30"),
            (SourceSpan { start: Some(3_723.0), end: Some(3_723.4), ..none() }, "1:02:03"),
            (SourceSpan { start: Some(f64::NAN), ..none() }, ""),
            (SourceSpan { start: Some(-1.0), ..none() }, ""),
        ] {
            assert_eq!(place_words(&place), words);
        }
    }

    #[test]
    fn sizes_and_times_are_told_as_people_say_them() {
        for (bytes, words) in
            [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 kB"), (250_000, "250 kB"), (3 << 30, "3.2 GB")]
        {
            assert_eq!(size(bytes), words);
        }
        assert_eq!((duration(12), duration(1_240)), ("12 ms".to_owned(), "1.2 s".to_owned()));
        assert_eq!(moment(Timestamp::from_micros(0)), "1970-01-01 00:00 UTC");
        for (seconds, words) in
            [(0, "in 1 second"), (119, "in 119 seconds"), (150, "in 2 minutes"), (7_200, "in 2 hours")]
        {
            assert_eq!(in_time(Duration::from_secs(seconds)), words);
        }
    }

    #[test]
    fn code_is_told_from_what_is_said() {
        assert_eq!(spans("see `fields`."), [(false, "see "), (true, "fields"), (false, ".")]);
        assert_eq!(spans("`a`"), [(true, "a")]);
        assert_eq!(spans("5` of it"), [(false, "5` of it")]);
        assert!(spans("").is_empty());
    }

    #[test]
    fn every_failure_has_a_remedy() {
        let page = include_str!("../../../docs/documents.md");
        let codes = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .filter_map(|rest| rest.split('`').next());
        for code in codes {
            for kind in DocumentType::ALL {
                assert!(remedy(code, *kind).ends_with('.'), "{code} {kind}");
            }
        }
    }

    #[test]
    fn only_what_can_be_a_scan_is_taken_for_one() {
        for kind in DocumentType::ALL {
            let is_scan = remedy("no_extractable_text", *kind).contains("text recognition");
            assert_eq!(is_scan, *kind == DocumentType::Pdf, "{kind}");
        }
    }
}
