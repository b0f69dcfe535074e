//! Answers without a model: the sentences that match the question best, quoted and cited, or a plain refusal.

use std::{fmt::Write, ops::Range};

use lectern_index::lexical::{
    LexicalQuery, PassageMatch, TypedWord, WordCoverage, detect_language, put_right,
};
use lectern_shared::{
    compute::ComputePool,
    model::{language::Language, run::TerminationReason},
};

use super::{
    agent_run::AgentRun,
    follow_up::goes_on_from,
    setup::RunSetup,
    sources::{ExcerptPassage, NumberedSource},
    trace::RunAnswer,
};
use crate::{
    AgentError,
    answer::{cite::AnswerCitation, quote::is_unspaced},
};

/// Passages that are quoted.
const QUOTED: usize = 3;
/// Rows of a table that are quoted, if all of them answer.
const ROWS: usize = 5;
/// The share of the question's words that a passage must hold to answer it: of two words one, if another passage has the other.
const THRESHOLD: f32 = 0.34;
/// A passage that holds much less of the question than the best one adds nothing.
const OF_BEST: f32 = 0.6;

/// The most words of a question that are put right.
const PUT_RIGHT: usize = 3;

/// The most bytes of the names of a table's columns that are told with a row.
const MAX_COLUMNS: usize = 200;

/// A passage with what it has of the question.
struct MatchedSource<'a> {
    source: &'a NumberedSource,
    matched: PassageMatch<'a>,
    /// Which words of the question it has.
    present: Vec<bool>,
}

impl<'a> MatchedSource<'a> {
    fn all(asked: &'a LexicalQuery, sources: &'a [NumberedSource]) -> Vec<Self> {
        let matched = |source: &'a NumberedSource| {
            let matched = asked.matched(&source.found.text).of_document(source.document_name());
            let matched = matched.under(source.headings());
            let present = matched.present();
            Self { source, matched, present }
        };
        sources.iter().map(matched).collect()
    }

    /// Which words of the question any of these has.
    fn known(matches: &[Self]) -> Vec<bool> {
        let words = matches.first().map_or(0, |first| first.present.len());
        let is_known = |word: usize| matches.iter().any(|found| found.present.get(word) == Some(&true));
        (0..words).map(is_known).collect()
    }
}

/// An answer that is made of quotations.
struct ExtractiveAnswer {
    /// The text.
    text: String,
    /// Why it ended.
    finish_reason: TerminationReason,
    /// What it quotes.
    citations: Vec<AnswerCitation>,
}

/// Answers from what was found for the question.
pub(super) async fn answer(run: &mut AgentRun<'_>) -> Result<RunAnswer, AgentError> {
    let setup = run.setup;
    let mut composed = compose(&run.compute, setup, run.sources.all().to_vec()).await?;
    // What the question before is about may have left no room for what this one is about.
    if composed.citations.is_empty() && goes_on_from(setup).is_some() {
        run.retrieve(&setup.question).await?;
        composed = compose(&run.compute, setup, run.sources.all().to_vec()).await?;
    }
    run.emitter.text(&composed.text).await;
    run.emitter.end_text().await;
    find_markers(run.emitter.answer(), &mut composed.citations);
    Ok(run.ended(composed.finish_reason, &composed.citations).await)
}

/// Composes an answer from the passages.
async fn compose(
    compute: &ComputePool,
    setup: &RunSetup,
    sources: Vec<NumberedSource>,
) -> Result<ExtractiveAnswer, AgentError> {
    let (question, before) = (setup.question.clone(), goes_on_from(setup).map(str::to_owned));
    let compose = move || answer_from(&question, before.as_deref(), &sources);
    Ok(compute.run(compose).await?)
}

/// Answers a question, which may go on from the one before, from the passages. A word that stands in none of them is read as the one that
/// it was most likely meant to be, and the answer says so.
fn answer_from(question: &str, before: Option<&str>, sources: &[NumberedSource]) -> ExtractiveAnswer {
    let as_query = |question: &str| match before {
        Some(before) => LexicalQuery::going_on(question, before),
        None => LexicalQuery::new(question),
    };
    let asked = as_query(question);
    let matches = MatchedSource::all(&asked, sources);
    let slips = slips(question, &matches);
    if slips.is_empty() {
        return quote_best(&matches, "From the linked documents:");
    }
    let asked = as_query(&put_right(question, &slips));
    let read: Vec<String> =
        slips.iter().map(|(typed, meant)| format!("“{typed}” read as “{meant}”")).collect();
    let introduction = format!("From the linked documents, with {}:", read.join(", "));
    quote_best(&MatchedSource::all(&asked, sources), &introduction)
}

/// The words of the question that hold a typing error, as typed and as meant.
fn slips(question: &str, matches: &[MatchedSource<'_>]) -> Vec<(String, String)> {
    let Some(first) = matches.first() else { return Vec::new() };
    let mut typed = first.matched.typed_words(&MatchedSource::known(matches));
    typed.retain(|word| may_hold_slip(word.typed(), question));
    if typed.is_empty() {
        return Vec::new();
    }
    for found in matches {
        found.matched.compare(&mut typed);
    }
    let slip = |word: &TypedWord| Some((word.typed().to_owned(), word.meant()?.to_owned()));
    typed.iter().filter_map(slip).take(PUT_RIGHT).collect()
}

/// Whether a word, in lower case, stands in the question as one that may hold a typing error, and not as a name, of which another spelling
/// is another name: behind the first word a name begins with a capital. In German all nouns do.
fn may_hold_slip(word: &str, question: &str) -> bool {
    let runs = question.split(|c: char| !c.is_alphabetic()).filter(|run| !run.is_empty());
    let mut places = runs.enumerate().filter(|(_, run)| run.to_lowercase() == word).peekable();
    let is_name = |(at, run): (usize, &str)| at > 0 && run.starts_with(char::is_uppercase);
    places.peek().is_some() && (!places.any(is_name) || detect_language(question) == Language::German)
}

/// Quotes what answers best, behind an introduction.
fn quote_best(found: &[MatchedSource<'_>], introduction: &str) -> ExtractiveAnswer {
    let known = MatchedSource::known(found);
    let matches: Vec<(&MatchedSource<'_>, WordCoverage)> = found
        .iter()
        .map(|found| (found, found.matched.coverage(&found.present, &known)))
        .filter(|(_, covered)| covered.own >= THRESHOLD)
        .collect();
    // What is told of module 92 answers nothing about module 93 where something tells of that.
    let is_of_another = |covered: &WordCoverage| {
        matches.iter().any(|(_, other)| other.numbers > covered.numbers && other.all >= covered.all)
    };
    let needed = matches.iter().map(|(_, covered)| covered.all).fold(0.0, f32::max) * OF_BEST;
    let (mut citations, mut quoted) = (Vec::new(), 0);
    let mut text = introduction.to_owned();
    for (found, covered) in &matches {
        if covered.all < needed || quoted == QUOTED || is_of_another(covered) {
            continue;
        }
        let mut ranges = found.matched.best_sentences();
        ranges.truncate(ROWS);
        // What E-01 means is no answer for who asks about E-05, although it has the other words.
        if found.matched.tells_of_others(&found.present, &ranges) {
            continue;
        }
        let before = citations.len();
        for range in ranges {
            quote(found.source, range, &mut text, &mut citations);
        }
        quoted += usize::from(citations.len() > before);
    }
    if citations.is_empty() {
        let text = "Nothing in the linked documents answers this question.".to_owned();
        return ExtractiveAnswer { text, finish_reason: TerminationReason::Declined, citations };
    }
    ExtractiveAnswer { text, finish_reason: TerminationReason::Extractive, citations }
}

/// Adds a quotation to an answer, unless it has it already: overlapping passages share sentences.
fn quote(
    source: &NumberedSource,
    range: Range<usize>,
    text: &mut String,
    citations: &mut Vec<AnswerCitation>,
) {
    let Some(said) = source.found.text.get(range.clone()) else { return };
    let quote = in_one_line(said);
    if citations.iter().any(|earlier| earlier.quote == quote) {
        return;
    }
    // The same words may stand in other places of the passage, too.
    let of_part = |part| origin(part, source.page(part, Some(&range)));
    let mut origin = source.part(Some(&range)).map(of_part).unwrap_or_default();
    // Of several rows of a table the first tells.
    let columns = columns(&source.found.text, range.start);
    if let Some(columns) = columns.filter(|columns| !text.contains(&format!("{columns})"))) {
        origin.push_str(&columns);
    }
    // Writing to a string cannot fail.
    let _ = write!(text, "\n\n“{quote}{}{origin})", behind_quote(source.n));
    citations.push(AnswerCitation {
        n: source.n,
        verified: true,
        range: Some(range),
        quote,
        markers: Vec::new(),
    });
}

/// What the columns of a row of a Markdown table are called, for people: without it amounts beside each other say little. Nothing for what
/// is no row, or has no header above it.
fn columns(text: &str, start: usize) -> Option<String> {
    let (above, row) = text.split_at_checked(start)?;
    let is_rule = |line: &str| line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
    let lines = above.lines().rev().map(str::trim).take_while(|line| line.starts_with('|'));
    let table: Vec<&str> = lines.collect();
    // A row with nothing but dashes for what is not there looks like the line below a header, too.
    let [.., rule, header] = table[..] else { return None };
    if !row.starts_with('|') || !is_rule(rule) {
        return None;
    }
    // Brackets would look like the marker of a source.
    let header = header.replace('[', "(").replace(']', ")");
    let names: Vec<&str> = header.split('|').map(str::trim).filter(|name| !name.is_empty()).collect();
    let told = format!("; columns: {}", names.join(", "));
    (names.len() > 1 && told.len() <= MAX_COLUMNS).then_some(told)
}

/// A text of several lines in one. In scripts without blanks between words a line ends in the middle of one.
fn in_one_line(text: &str) -> String {
    let (mut whole, mut is_apart) = (String::with_capacity(text.len()), false);
    for line in text.lines() {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() {
            is_apart = true;
            continue;
        }
        let goes_on = !is_apart && whole.ends_with(is_unspaced) && words.starts_with(is_unspaced);
        if !whole.is_empty() && !goes_on {
            whole.push(' ');
        }
        whole.push_str(&words);
        is_apart = false;
    }
    whole
}

/// What stands between a quote and its origin.
fn behind_quote(n: usize) -> String {
    format!("” [{n}] (")
}

/// Finds the markers in the answer as it went out: quotes may have lost something on the way.
fn find_markers(answer: &str, citations: &mut [AnswerCitation]) {
    let mut from = 0;
    for citation in citations {
        let behind = behind_quote(citation.n);
        let Some(at) = answer.get(from..).and_then(|rest| rest.find(&behind)) else { continue };
        let marker = behind.find('[').zip(behind.find(']')).map(|(open, close)| (open, close + 1));
        citation.markers.extend(marker.map(|(start, end)| from + at + start..from + at + end));
        from += at + behind.len();
    }
}

/// The document's name and the place in it of words that begin on this page, for people.
fn origin(passage: &ExcerptPassage, page: Option<u32>) -> String {
    let place = passage.place.cited_on(page);
    let name = &passage.document_name;
    match (place.page, place.page_end) {
        (Some(first), Some(last)) if first < last => format!("{name}, pages {first}–{last}"),
        (Some(page), _) => format!("{name}, page {page}"),
        (None, _) => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::{ids::DocumentId, model::place::SourceSpan};

    use super::*;
    use crate::run::sources::RetrievedExcerpt;

    #[test]
    fn words_that_a_line_ends_in_are_put_together_where_no_blank_would_stand() {
        for (text, line) in [
            ("上司に届け出\nなければならない。", "上司に届け出なければならない。"),
            ("就業規則\n\n第一条　従業員は", "就業規則 第一条 従業員は"),
            ("データ\nbase を\n使う", "データ base を使う"),
            ("  a word\nand\r\nanother ", "a word and another"),
        ] {
            assert_eq!(in_one_line(text), line);
        }
    }

    #[test]
    fn the_first_row_of_a_table_tells_what_its_columns_are() {
        let rates = "# Rates\n\n| Country | Day [2] | Night |\n| --- | --- | --- |\n| France | 53 | 159 |\n| Japan | 52 | 190 |\n";
        let answer = |question| {
            let found =
                RetrievedExcerpt::whole(DocumentId::generate(), "rates.docx", SourceSpan::default(), rates);
            answer_from(question, None, &[NumberedSource { n: 1, found }])
        };
        let japan = answer("What is the rate for Japan?");
        assert_eq!(
            japan.text,
            "From the linked documents:\n\n“| Japan | 52 | 190 |” [1] (rates.docx; columns: Country, Day (2), Night)"
        );
        assert_eq!(japan.citations[0].quote, "| Japan | 52 | 190 |");
        let found =
            RetrievedExcerpt::whole(DocumentId::generate(), "rates.docx", SourceSpan::default(), rates);
        let source = NumberedSource { n: 2, found };
        // One more column of another table does not stand for this one.
        let mut text = "“| Austria | 50 |” [1] (a.docx; columns: Country, Day (2), Night, Week)".to_owned();
        let mut citations = Vec::new();
        for row in ["| France | 53 | 159 |", "| Japan | 52 | 190 |"] {
            let at = rates.find(row).expect("a row");
            quote(&source, at..at + row.len(), &mut text, &mut citations);
        }
        assert_eq!(citations.len(), 2);
        assert_eq!(text.matches("; columns: Country, Day (2), Night)").count(), 1, "{text}");
        let dashes = "| a | b |\n| --- | --- |\n| - | - |\n| 1 | 2 |\n";
        assert_eq!(columns(dashes, 34).as_deref(), Some("; columns: a, b"));
        assert_eq!(columns("| 1 | 2 |\n| 3 | 4 |\n", 10), None, "there is no header");
        assert_eq!(columns("| a | b |\n| --- | --- |\nWords.", 24), None, "it is no row");
    }

    #[test]
    fn a_quotation_stands_where_it_answers_and_not_where_the_same_words_are_first() {
        let text = "## Office\n\nIt opens at nine. Closed on Tuesday ... and on Friday.\n\n\
                    ## Workshop\n\nIt opens at eight. Closed on Tuesday ... and on Friday.\n";
        let found = RetrievedExcerpt::whole(DocumentId::generate(), "hours.md", SourceSpan::default(), text);
        let sources = [NumberedSource { n: 1, found }];
        let answer = answer_from("Is the workshop closed on Tuesday?", None, &sources);
        let [citation] = answer.citations.as_slice() else { panic!("{}", answer.text) };
        assert_eq!(citation.quote, "Closed on Tuesday ... and on Friday.");
        let start = text.rfind("Closed").unwrap();
        assert_eq!(citation.range, Some(start..start + citation.quote.len()));
        assert!(citation.verified);
    }

    /// The quotes of an answer from texts, and what stands before them.
    fn told(question: &str, texts: &[&str]) -> (Vec<String>, String) {
        let source = |(at, text): (usize, &&str)| {
            let place = SourceSpan::default();
            let found = RetrievedExcerpt::whole(DocumentId::generate(), "note", place, text);
            NumberedSource { n: at + 1, found }
        };
        let sources: Vec<_> = texts.iter().enumerate().map(source).collect();
        let answer = answer_from(question, None, &sources);
        let introduction = answer.text.split("\n\n").next().unwrap_or_default().to_owned();
        (answer.citations.into_iter().map(|citation| citation.quote).collect(), introduction)
    }

    const FLIGHTS: &str =
        "Economy class is for flights of up to six hours. Business class is for longer ones.";

    #[test]
    fn a_typing_error_is_read_as_what_was_meant_and_the_answer_says_so() {
        let (quotes, introduction) = told("How much is bussiness class?", &[FLIGHTS]);
        assert_eq!(quotes, ["Business class is for longer ones."]);
        assert_eq!(introduction, "From the linked documents, with “bussiness” read as “business”:");
        let (quotes, introduction) = told("When is business class for?", &[FLIGHTS]);
        assert_eq!(quotes, ["Business class is for longer ones."]);
        assert_eq!(introduction, "From the linked documents:");
        let (_, introduction) = told(
            "For colleagues, managers, visitors: is bussiness class for longer flights of six hours?",
            &[FLIGHTS],
        );
        assert!(
            introduction.contains("“bussiness”"),
            "other words that stand nowhere come first: {introduction}"
        );
        let german = "Die Waschküche ist von 7 Uhr bis 20 Uhr geöffnet.";
        let (quotes, introduction) = told("Wann ist die Waschkücke geöffnet?", &[german]);
        assert_eq!(quotes, [german]);
        assert!(introduction.contains("“waschkücke” read as “waschküche”"), "{introduction}");
        let (quotes, _) = told("What does Johnson earn?", &["Johnston and Meyer earn 5 euros."]);
        assert!(quotes.is_empty(), "another name is another person: {quotes:?}");
    }

    #[test]
    fn what_has_one_of_two_words_answers_only_where_the_other_stands_elsewhere() {
        let paternity = "Paternity leave is ten days.";
        assert!(told("What about maternity leave?", &[paternity]).0.is_empty());
        let notes = "Sick notes are handed in on the third day.";
        assert!(told("What about sick leave?", &[paternity]).0.is_empty());
        assert_eq!(told("What about sick leave?", &[paternity, notes]).0.len(), 2);
    }

    #[test]
    fn what_is_told_of_another_code_or_year_is_no_answer() {
        let codes = "E-04 means that the water of the dishwasher does not drain.";
        assert!(told("What does E-05 of the dishwasher mean, does the water drain?", &[codes]).0.is_empty());
        assert_eq!(told("What does the code E-04 of the dishwasher mean?", &[codes]).0, [codes]);
        let fees = "The annual fee is 480 euros in 2024 and 495 euros in 2025.";
        assert!(told("What is the annual fee in 2026?", &[fees]).0.is_empty());
        assert_eq!(told("What is the annual fee in 2025?", &[fees]).0, [fees]);
        let lasting = "From March 2024 on the annual fee is 480 euros.";
        assert_eq!(told("What is the annual fee in 2026?", &[lasting]).0, [lasting]);
    }
}
