use std::io::{Cursor, Write};

use super::{
    beir::{FILES, ZIP_ENTRY},
    *,
};

/// The cases of a file in which nothing is wrong.
fn read_within(format: ImportFormat, bytes: &[u8], bounds: Bounds) -> Result<Vec<FileCase>, ApiError> {
    let ReadFile { cases, problems } = super::read_within(format, bytes, bounds)?;
    problems.end()?;
    Ok(cases)
}

fn read(format: ImportFormat, bytes: &[u8]) -> Result<Vec<FileCase>, ApiError> {
    read_within(format, bytes, Bounds::of_a_file())
}

fn gold(line: u64, document: &str, quote: Option<&str>, grade: u32) -> FileGold {
    let document = Some(document.to_owned());
    FileGold { line, document_id: None, document, quote: quote.map(str::to_owned), grade }
}

fn case(question: &str, gold: Vec<FileGold>) -> FileCase {
    FileCase { line: 1, question: question.to_owned(), expect: FileExpectation::Gold(gold), note: None }
}

#[test]
fn a_table_has_a_row_for_each_place_that_answers() {
    let table = "\u{feff}Question;Document;Quote;expect\nWho?;a.txt;\"Ada; of course\";\nWho?;b.txt;;\nWhy?;;;decline\n\n";
    let read = read(ImportFormat::of("cases.csv", table.as_bytes()), table.as_bytes()).unwrap();
    let why = FileCase { line: 4, question: "Why?".to_owned(), expect: FileExpectation::Decline, note: None };
    let who = vec![gold(2, "a.txt", Some("Ada; of course"), 1), gold(3, "b.txt", None, 1)];
    assert_eq!(read, [FileCase { line: 2, ..case("Who?", who) }, why]);
}

#[test]
fn what_is_wrong_is_named_by_its_line() {
    let table = "question,document,grade\nWho?,,\n,a.txt,\nWhy?,a.txt,best\n";
    let error = read(ImportFormat::Csv, table.as_bytes()).unwrap_err();
    let named: Vec<_> = error.fields.iter().map(|detail| detail.path.as_str()).collect();
    assert_eq!(named, ["line 2", "line 3", "line 4"]);
    for (format, text) in [
        (ImportFormat::Csv, "answer\nx\n"),
        (ImportFormat::Csv, "question\n"),
        (ImportFormat::JsonLines, "{}"),
        (ImportFormat::JsonLines, "{\"question\": \"Who?\", \"expect\": []}"),
        (ImportFormat::Beir, "PK\x03\x04 nothing"),
    ] {
        assert!(read(format, text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_case_is_told_with_what_cannot_be_read() {
    let table = format!(
        "question,document,quote,grade\nWho?,a.txt,,500\n,a.txt,,\nWho?,b.txt,{},best\n",
        "x".repeat(QUOTE + 1)
    );
    let ReadFile { cases, mut problems } = super::read(ImportFormat::Csv, table.as_bytes()).unwrap();
    for case in &cases {
        check(case, &mut problems);
    }
    let error = problems.end().unwrap_err();
    let named: Vec<_> =
        error.fields.iter().map(|field| (field.path.as_str(), field.message.as_str())).collect();
    let expected = [
        ("line 2", "has a grade over 100"),
        ("line 3", "has no question"),
        ("line 4", "has a grade that is no whole number"),
        ("line 4", "has a quote of more than 10,000 characters, or with U+0000"),
    ];
    assert_eq!(named, expected);
}

/// A text as UTF-16, with its mark.
fn utf16(text: &str) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

#[test]
fn a_table_is_read_in_the_encoding_that_it_was_written_in() {
    let table = "question;document;quote\nWann schließt die Tiefgarage?;Häuser.txt;um zwölf Uhr\n";
    let latin1: Vec<u8> = table.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let expected =
        case("Wann schließt die Tiefgarage?", vec![gold(2, "Häuser.txt", Some("um zwölf Uhr"), 1)]);
    let expected = [FileCase { line: 2, ..expected }];
    for bytes in [table.as_bytes().to_vec(), latin1, utf16(table)] {
        let format = ImportFormat::of("cases.csv", &bytes);
        assert_eq!(read(format, &bytes).unwrap(), expected, "{bytes:?}");
    }
    let damaged = [table.repeat(2).as_bytes(), b"Wer?;H\xc3user.txt;\n"].concat();
    let unmarked = utf16("question;expect\nWho?;decline\n").split_off(2);
    for (bytes, said) in [(damaged, "no characters of UTF-8"), (unmarked, "seems to be UTF-16")] {
        let (path, message) = refused(ImportFormat::Csv, &bytes, Bounds::of_a_file());
        assert_eq!(path, "file");
        assert!(message.contains(said) && message.contains("save it as UTF-8"), "{message}");
    }
}

#[test]
fn lines_of_json_have_to_be_utf8() {
    let lines = "{\"question\": \"Who?\", \"expect\": \"decline\"}\n";
    let latin1 = [lines.as_bytes(), b"{\"question\": \"Caf\xe9?\", \"expect\": \"decline\"}\n"].concat();
    for (bytes, path) in [(latin1, "line 2"), (utf16(lines), "file")] {
        let format = ImportFormat::of("cases.jsonl", &bytes);
        let (told, message) = refused(format, &bytes, Bounds::of_a_file());
        assert_eq!(told, path, "{message}");
        assert!(message.contains("UTF-8"), "{message}");
    }
}

#[test]
fn lines_of_json_are_read() {
    let lines = "{\"question\": \"Who?\", \"expect\": [{\"document\": \"a.txt\", \"quote\": \"Ada\", \"grade\": 2}]}\n\n\
                 {\"question\": \"Why?\", \"expect\": \"decline\", \"note\": \"n\"}\n";
    assert_eq!(ImportFormat::of("x", lines.as_bytes()), ImportFormat::JsonLines);
    let read = read(ImportFormat::JsonLines, lines.as_bytes()).unwrap();
    assert_eq!(read[0], case("Who?", vec![gold(1, "a.txt", Some("Ada"), 2)]));
    assert_eq!((&read[1].expect, read[1].note.as_deref()), (&FileExpectation::Decline, Some("n")));
}

fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(text).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn nothing_of_a_collection_is_passed_over() {
    let queries = b"{\"_id\": \"q1\", \"text\": \"Caf\xe9?\"}\n{\"_id\": \"q2\", \"text\": \"Why?\"}\n";
    let judged = b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t-1\nq2\td2\t1\n";
    let bytes = zipped(&[("queries.jsonl", queries), ("qrels/test.tsv", judged)]);
    let read_all = read(ImportFormat::Beir, &bytes).unwrap();
    let lines: Vec<u64> = read_all.iter().map(|case| case.line).collect();
    assert_eq!(lines, [1, 2], "a broken character breaks nothing else off");
    for (queries, judged) in [
        (&queries[..], &b"query-id\tcorpus-id\tscore\nq1\td1\tgood\n"[..]),
        (&queries[..], &b"query-id\tcorpus-id\tscore\nq1 d1 1\n"[..]),
        (&b"{\"_id\": \"q1\"}\n"[..], &judged[..]),
    ] {
        let bytes = zipped(&[("queries.jsonl", queries), ("qrels/test.tsv", judged)]);
        assert_eq!(read(ImportFormat::Beir, &bytes).unwrap_err().fields.len(), 1);
    }
}

#[test]
fn a_collection_is_read_by_its_judgements() {
    let bytes = zipped(&[
        (
            "nf/queries.jsonl",
            b"{\"_id\": \"q1\", \"text\": \"Who?\"}\n{\"_id\": \"q2\", \"text\": \"Why?\"}\n",
        ),
        ("nf/qrels/train.tsv", b"query-id\tcorpus-id\tscore\nq2\td9\t1\n"),
        ("nf/qrels/test.tsv", b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq1\td3\t1\n"),
    ]);
    let read = read(ImportFormat::of("nf.zip", &bytes), &bytes).unwrap();
    let judged = case("Who?", vec![gold(2, "d1", None, 2), gold(4, "d3", None, 1)]);
    assert_eq!(read, [FileCase { note: Some("q1".to_owned()), ..judged }]);
}

/// Bounds that a few lines go beyond.
const FEW: Bounds = Bounds { cases: 2, places: 3, line: 100 };

/// The one thing that is wrong with a file, and where.
fn refused(format: ImportFormat, bytes: &[u8], bounds: Bounds) -> (String, String) {
    let error = read_within(format, bytes, bounds).unwrap_err();
    assert_eq!(error.fields.len(), 1, "{:?}", error.fields);
    (error.fields[0].path.clone(), error.fields[0].message.clone())
}

fn collection(queries: &str, judged: &str) -> Vec<u8> {
    zipped(&[("queries.jsonl", queries.as_bytes()), ("qrels/test.tsv", judged.as_bytes())])
}

#[test]
fn nothing_is_read_behind_the_last_case() {
    let lines =
        "{\"question\": \"a\", \"expect\": \"decline\"}\n{\"question\": \"b\", \"expect\": \"decline\"}\n";
    let table = "question,expect\na,decline\nb,decline\n";
    let queries = "{\"_id\": 1, \"text\": \"a\"}\n{\"_id\": \"2\", \"text\": \"b\"}\n{\"_id\": \"unjudged\", \"text\": \"\"}\n";
    let judged = "1\td\t1\n2\td\t1\n3\td\t1\n";
    for (format, bytes, more) in [
        (ImportFormat::JsonLines, lines.as_bytes().to_vec(), format!("{lines}no JSON\n").into_bytes()),
        (
            ImportFormat::Csv,
            table.as_bytes().to_vec(),
            format!("{table}c,neither\n,of no question\n").into_bytes(),
        ),
        (
            ImportFormat::Beir,
            collection(queries, judged),
            collection(&format!("{queries}{{\"_id\": 3, \"text\": \"c\"}}\nno JSON\n"), judged),
        ),
    ] {
        assert_eq!(read_within(format, &bytes, FEW).unwrap().len(), 2, "{format:?}");
        let (path, message) = refused(format, &more, FEW);
        assert_eq!(path, "file", "{format:?}");
        assert!(message.starts_with("has more than 2 cases; an evaluation may have at most 2"), "{message}");
    }
}

#[test]
fn nothing_is_read_behind_the_last_place() {
    let place = |question: &str, places: usize| {
        let places = vec!["{\"document\": \"d\"}"; places].join(",");
        format!("{{\"question\": \"{question}\", \"expect\": [{places}]}}\n")
    };
    let query = "{\"_id\": \"q\", \"text\": \"a\"}\n";
    for (format, bytes, more, what) in [
        (
            ImportFormat::JsonLines,
            place("a", 3).into_bytes(),
            format!("{}{}no JSON", place("a", 3), place("b", 1)).into_bytes(),
            "places that answer",
        ),
        (
            ImportFormat::Csv,
            b"question,document\na,d\na,d\na,d\n".to_vec(),
            b"question,document\na,d\na,d\na,d\na,\n,d\n".to_vec(),
            "rows",
        ),
        (
            ImportFormat::Beir,
            collection(query, "query-id\tcorpus-id\tscore\nq\td\t1\nq\td\t0\nq\td\t1\n\n"),
            collection(query, "query-id\tcorpus-id\tscore\nq\td\t1\nq\td\t0\nq\td\t1\nno row\n"),
            "judgements in `qrels/test.tsv`",
        ),
    ] {
        let bounds = Bounds { line: 1_000, ..FEW };
        assert_eq!(read_within(format, &bytes, bounds).unwrap().len(), 1, "{format:?}");
        let (path, message) = refused(format, &more, bounds);
        assert_eq!(path, "file", "{format:?}");
        assert!(message.starts_with(&format!("has more than 3 {what}; ")), "{message}");
    }
}

#[test]
fn no_more_places_are_built_than_a_case_may_have() {
    let line = |places: &str| format!("{{\"question\": \"a\", \"expect\": [{places}]}}");
    let most = "{\"document\":\"d\"},".repeat(MOST_GOLD);
    let all = read(ImportFormat::JsonLines, line(most.trim_end_matches(',')).as_bytes()).unwrap();
    assert!(matches!(&all[0].expect, FileExpectation::Gold(gold) if gold.len() == MOST_GOLD));
    // What follows is no place at all.
    let more = line(&format!("{most}0,[{{}}]"));
    let of_a_file = Bounds::of_a_file();
    let (path, message) = refused(ImportFormat::JsonLines, more.as_bytes(), of_a_file);
    assert_eq!(path, "line 1");
    assert_eq!(message, format!("`expect` must have at most {MOST_GOLD} items (here: a list)"));
    for expect in ["{\"a\": []}", "1", "\"refuse\"", "[]"] {
        let line = format!("{{\"question\": \"a\", \"expect\": {expect}}}");
        let (path, message) = refused(ImportFormat::JsonLines, line.as_bytes(), of_a_file);
        assert_eq!(path, "line 1");
        assert!(message.starts_with("`expect` must be \"decline\""), "{expect}: {message}");
    }
}

#[test]
fn a_wrong_line_of_json_is_told_with_what_would_be_right_and_what_stands_there() {
    let gold = |place: &str| format!("{{\"question\": \"Who?\", \"expect\": [{place}]}}");
    let long = format!("{{\"question\": \"Who?\", \"expect\": \"{}\"}}", "x".repeat(100));
    for (line, said) in [
        ("{\"question\": \"Who?\",", "ends before its JSON does: all of it has to be in one line"),
        ("{\"question\": \"Who?\", expect: 1}", "expect: 1}`)"),
        ("{'question': 1}", "is not valid JSON (column 2, at `'question': 1}`)"),
        (
            "[{\"question\": \"Who?\"}]",
            "must be an object such as {\"question\": …, \"expect\": …} (here: a list)",
        ),
        ("\"Who?\"", "(here: \"Who?\")"),
        ("{\"question\": 7, \"expect\": \"decline\"}", "`question` must be a string (here: 7)"),
        (
            "{\"question\": \" \", \"expect\": \"decline\"}",
            "`question` must not be blanks only (here: \" \")",
        ),
        ("{\"expect\": \"decline\"}", "`question` is required"),
        ("{\"question\": \"Who?\"}", "`expect` is required: \"decline\", or a list of {documentId, quote}"),
        ("{\"question\": \"Who?\", \"expect\": null}", "{documentId, quote} (here: null)"),
        (long.as_str(), "xxx…)"),
        (
            "{\"question\": \"Who?\", \"expect\": \"decline\", \"answer\": \"Ada\"}",
            "`answer` cannot be set; these can: question, expect, note, id (here: \"Ada\")",
        ),
        (gold("0").as_str(), "`expect.0` must be an object (here: 0)"),
        (gold("[[]]").as_str(), "`expect.0` must be an object (here: a list)"),
        (
            gold("{\"document\": \"a.txt\", \"grade\": \"best\"}").as_str(),
            "`expect.0.grade` must be a whole number from 0 to 100 (here: \"best\")",
        ),
        (
            gold("{\"document\": {\"name\": \"a.txt\"}}").as_str(),
            "`expect.0.document` must be a string (here: an object)",
        ),
        (
            gold("{\"quote\": \"Ada\"}").as_str(),
            "`expect.0.documentId` is required, or the document's name as `document`",
        ),
        (gold("{\"document\": \"\\u0000\"}").as_str(), "must not contain the character U+0000"),
        ("{\"question\": 7, \"expect\": 8}", "(here: 7); `expect` must be"),
    ] {
        let (path, message) = refused(ImportFormat::JsonLines, line.as_bytes(), Bounds::of_a_file());
        assert_eq!(path, "line 1");
        assert!(message.contains(said), "{line}: {message}");
        assert!(!message.contains("at line") && !message.contains("invalid type"), "{line}: {message}");
    }
}

#[test]
fn a_question_is_called_by_a_text_or_a_number() {
    let judged = "7\td\t1\n-7\td\t1\n1.5\td\t1\n";
    let queries = "{\"_id\": 7, \"text\": \"a\", \"metadata\": {\"a\": [0]}}\n{\"_id\": -7, \"text\": \"b\"}\n{\"_id\": 1.5, \"text\": \"c\"}\n";
    assert_eq!(read(ImportFormat::Beir, &collection(queries, judged)).unwrap().len(), 3);
    // It is refused by its first character: what follows is not even JSON.
    for id in ["[0, no JSON", "{no JSON"] {
        let bytes = collection(&format!("{{\"_id\": {id}"), judged);
        let (path, message) = refused(ImportFormat::Beir, &bytes, Bounds::of_a_file());
        assert_eq!(path, "line 1");
        assert!(message.contains("`_id`, a text or a number"), "{message}");
    }
}

#[test]
fn long_lines_are_refused() {
    let long = "x".repeat(FEW.line);
    let query = "{\"_id\": \"q\", \"text\": \"a\"}\n";
    for (format, bytes) in [
        (ImportFormat::JsonLines, format!("\n{{{long}").into_bytes()),
        (ImportFormat::Csv, format!("question,document\r\na,{}", ",".repeat(FEW.line)).into_bytes()),
        (ImportFormat::Beir, collection(&format!("{query}{{{long}"), "q\td\t1\n")),
        (ImportFormat::Beir, collection(query, &format!("q\td\t1\nq\t{long}\t1\n"))),
    ] {
        let (path, message) = refused(format, &bytes, FEW);
        assert_eq!(path, "line 2", "{format:?}");
        assert!(message.contains("has more than 100 bytes"), "{message}");
    }
    // Several lines of a cell may be longer than one line.
    let cell = "x\n".repeat(FEW.line);
    let table = format!("question,document,quote\na,d,\"{cell}\"\n");
    assert_eq!(read_within(ImportFormat::Csv, table.as_bytes(), FEW).unwrap().len(), 1);
}

#[test]
fn no_more_is_read_than_is_named() {
    let lines = "{\"no\": 1}\n".repeat(2 * NAMED_ERRORS);
    let error = read(ImportFormat::JsonLines, lines.as_bytes()).unwrap_err();
    assert_eq!(error.fields.len(), NAMED_ERRORS);
    // What is wrong before a bound is told rather than the bound.
    let lines = "{\"question\": \"a\", \"expect\": \"decline\"}\n".repeat(FEW.cases + 1);
    let (path, _) = refused(ImportFormat::JsonLines, format!("no JSON\n{lines}").as_bytes(), FEW);
    assert_eq!(path, "line 1");
}

#[test]
fn a_collection_of_too_many_files_is_not_opened() {
    let bytes = [b"PK\x03\x04".to_vec(), ZIP_ENTRY.repeat(FILES + 1)].concat();
    let (path, message) = refused(ImportFormat::Beir, &bytes, Bounds::of_a_file());
    assert_eq!(path, "file");
    assert!(message.starts_with("has more than 10000 files in it"), "{message}");
}
