use super::*;
use crate::protocol::{MarkKind, ParseFrame, TextMark};

/// What a reader gets: the text, each row's number with how its block begins, and the warnings with their counts.
#[derive(Debug, Default)]
struct TableOutcome {
    text: String,
    rows: Vec<(u64, String)>,
    warnings: Vec<(String, u64)>,
    longest: usize,
}

impl TableOutcome {
    fn rows(&self) -> Vec<(u64, &str)> {
        self.rows.iter().map(|(number, line)| (*number, line.as_str())).collect()
    }

    fn warnings(&self) -> Vec<(&str, u64)> {
        self.warnings.iter().map(|(code, count)| (code.as_str(), *count)).collect()
    }
}

fn try_load(bytes: &[u8], options: &ParseOptions) -> Result<TableOutcome, ParseAbort> {
    let (mut outcome, mut marks, mut length) = (TableOutcome::default(), Vec::new(), 0);
    let mut emit = |frame| {
        match frame {
            ParseFrame::Part(part) => {
                outcome.longest = outcome.longest.max(part.text.len());
                outcome.text.push_str(&part.text);
                marks.extend(part.marks.into_iter().map(|mark| TextMark { at: length + mark.at, ..mark }));
                length += part.text.chars().count() as u64;
            }
            ParseFrame::Warning(warning) => outcome.warnings.push((warning.code, warning.count)),
            other => panic!("{other:?}"),
        }
        Ok(())
    };
    parse(bytes.to_vec(), options, &mut ParserOutput::new(&mut emit, options.max_chars))?;
    // The marks of a large text are looked up by bytes.
    let (mut at, mut byte) = (0, 0);
    for mark in marks {
        let MarkKind::Row(number) = mark.what else { panic!("{mark:?}") };
        let step = usize::try_from(mark.at - at).unwrap();
        byte += outcome.text[byte..].char_indices().nth(step).map_or(0, |(byte, _)| byte);
        at = mark.at;
        let line = outcome.text[byte..].lines().next().unwrap();
        outcome.rows.push((number, line.to_owned()));
    }
    Ok(outcome)
}

fn load(text: &str) -> TableOutcome {
    try_load(text.as_bytes(), &ParseOptions::default()).unwrap()
}

#[test]
fn every_row_is_a_block_of_named_values_and_marked_with_its_number() {
    let outcome = load("name,city,age\nAnn,\"Rome, Italy\",35\nBob,,28\n");
    assert_eq!(outcome.text, "name: Ann\ncity: Rome, Italy\nage: 35\n\nname: Bob\nage: 28");
    assert_eq!(outcome.rows(), [(1, "name: Ann"), (2, "name: Bob")]);
    assert_eq!(outcome.warnings(), []);
}

#[test]
fn line_ends_within_values_neither_part_rows_nor_count_as_rows() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ["a,b", "1,\"Once upon ", "", " ", "a time\"", "2,x", ""].join(end);
        let outcome = load(&text);
        assert_eq!(outcome.text, "a: 1\nb: Once upon\na time\n\na: 2\nb: x", "{end:?}");
        assert_eq!(outcome.rows(), [(1, "a: 1"), (2, "a: 2")]);
    }
}

#[test]
fn rows_are_numbered_as_a_spreadsheet_program_shows_them_below_the_header() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ["", "a,b", "1,2", "", ",", "3,4", "", ""].join(end);
        assert_eq!(load(&text).rows(), [(1, "a: 1"), (4, "a: 3")], "{end:?}");
    }
    assert_eq!(load("1,2\n\n3,4\n").rows(), [(1, "column_1: 1"), (3, "column_1: 3")]);
}

#[test]
fn a_title_above_the_table_is_kept_and_is_no_row() {
    let outcome = load("Sales of 2024\n\nregion,units,price\nNorth,3,1.5\nSouth,4,2.5\n");
    assert!(outcome.text.starts_with("Sales of 2024\n\nregion: North\nunits: 3"), "{}", outcome.text);
    assert_eq!(outcome.rows(), [(1, "region: North"), (2, "region: South")]);
}

#[test]
fn a_header_alone_is_a_line_of_names_and_no_row() {
    for text in
        ["name,city,age\n", "name,city,age", "name;city;age\r\n;;\r\n", "\n\"name\",\"city\",\"age\"\n"]
    {
        let outcome = load(text);
        assert_eq!(outcome.text, "name, city, age", "{text:?}");
        assert_eq!(outcome.rows(), []);
        assert_eq!(outcome.warnings(), []);
    }
    assert_eq!(load("Sales of 2024,,\nregion,units,price\n").text, "Sales of 2024\n\nregion, units, price");
    assert_eq!(load("Ann,Rome,35\n").text, "column_1: Ann\ncolumn_2: Rome\ncolumn_3: 35");
}

#[test]
fn uneven_rows_are_kept_and_counted() {
    let outcome = load("a,b,c\n1,2,3\n4,5\n6,7,8,9\n1,1,1,,,\n");
    assert!(outcome.text.contains("a: 4\nb: 5\n\na: 6\nb: 7\nc: 8\ncolumn_4: 9"), "{}", outcome.text);
    assert_eq!(outcome.warnings(), [("uneven_rows", 2)]);
}

#[test]
fn a_quotation_mark_that_nothing_closes_swallows_only_its_own_line() {
    let outcome = load("a,b\n1,x\n2,\"y\n3,z\n4,\"w, v\"\n");
    assert_eq!(outcome.text, "a: 1\nb: x\n\na: 2\nb: \"y\n\na: 3\nb: z\n\na: 4\nb: w, v");
    assert_eq!(outcome.warnings(), [("unclosed_quotes", 1)]);
}

#[test]
fn many_quotation_marks_that_nothing_closes_are_read_in_one_go() {
    let mut text = "a,b\n".to_owned();
    text.push_str(&"x,\"\"\"y\n\"\"\"\"z,1\n".repeat(200_000));
    text.push_str("last,\"one");
    assert!(load(&text).text.contains("a: last"));
}

#[test]
fn the_line_with_which_excel_names_the_delimiter_is_honoured() {
    let outcome = load("sep=;\r\nname;note\r\nAnn;a, b, c\r\n");
    assert_eq!(outcome.text, "name: Ann\nnote: a, b, c");
}

#[test]
fn without_names_of_columns_rows_count_from_the_first_line_of_the_file() {
    assert_eq!(load("1,2,3\n4,5,6\n").rows(), [(1, "column_1: 1"), (2, "column_1: 4")]);
    assert_eq!(load(",,\n1,2,3\n").rows(), [(2, "column_1: 1")], "a blank one counts");
    assert_eq!(load("a,b,c\n,,\n1,2,3\n").rows(), [(2, "a: 1")]);
}

#[test]
fn a_file_of_tabs_by_its_name_is_parted_by_tabs() {
    let options = ParseOptions { name: Some("Data.TSV".to_owned()), ..ParseOptions::default() };
    let outcome = try_load(b"a,x\tb,y\n1,2\t3,4\n", &options).unwrap();
    assert_eq!(outcome.text, "a,x: 1,2\nb,y: 3,4");
}

#[test]
fn bytes_in_other_encodings_are_read_and_invalid_ones_counted() {
    let outcome = try_load(b"stra\xdfe;zahl\nBaumstra\xdfe;1\nGr\xfcner Weg;2\n", &ParseOptions::default());
    assert_eq!(outcome.unwrap().text, "straße: Baumstraße\nzahl: 1\n\nstraße: Grüner Weg\nzahl: 2");
    let options = ParseOptions { charset: Some("utf-16le".to_owned()), ..ParseOptions::default() };
    let wide: Vec<u8> = "a,b\nx,é\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(try_load(&wide, &options).unwrap().text, "a: x\nb: é");
    let options = ParseOptions { charset: Some("shift_jis".to_owned()), ..ParseOptions::default() };
    let outcome = try_load(b"a,b\n1,\xff\xff\n", &options).unwrap();
    assert_eq!(outcome.warnings(), [("undecodable_bytes", 2)]);
    let broken = ["straße;zahl\nBaumstraße;1\nGrüner Weg;2\nMühlgasse;".as_bytes(), b"\xff3\n"].concat();
    let outcome = try_load(&broken, &ParseOptions::default()).unwrap();
    assert_eq!(outcome.rows()[1], (2, "straße: Grüner Weg"));
    assert_eq!(outcome.warnings(), [("undecodable_bytes", 1)]);
}

#[test]
fn zero_bytes_and_byte_order_marks_leave_nothing() {
    assert_eq!(load("\u{feff}a,b\n1,\0x\0\n").text, "a: 1\nb: x");
}

#[test]
fn what_is_no_table_keeps_its_text() {
    for text in [
        "Dear all,\n\nI hope that you are well, and that the week was good.\nWe meet on Monday, as always.",
        "Only one sentence, with a comma in it.",
        "word",
        "{\"name\": \"Ann\", \"cities\": [\"Rome\", \"Oslo\"]}",
        "{\"a\": 1, \"b\": 2}\n{\"a\": 3, \"b\": 4}",
        "[\n  {\"a\": 1},\n  {\"a\": 2}\n]",
    ] {
        let outcome = load(&format!("{text}\n"));
        assert_eq!(outcome.text, text);
        assert_eq!(outcome.warnings(), [("not_a_table", 1)], "{text}");
        assert_eq!(outcome.rows(), []);
    }
}

#[test]
fn tables_with_sentences_or_json_in_them_are_tables() {
    for text in [
        "id,remark\n1,\"We met, as you know, on Monday.\"\n2,\"It was good, was it not.\"\n",
        "id,point\n1,\"{\"\"x\"\": 1, \"\"y\"\": 2}\"\n",
        "name\nAnn\nBob\n",
        "first, last\nAnn, Lee\nBob, Ray\n",
    ] {
        assert_eq!(load(text).warnings(), [], "{text}");
    }
    assert_eq!(load("id,point\n1,\"{\"\"x\"\": 1}\"\n").text, "id: 1\npoint: {\"x\": 1}");
}

#[test]
fn a_row_of_any_length_is_handed_on_in_parts() {
    let text = "value,".repeat(600_000);
    let outcome = load(&text);
    assert!(outcome.text.ends_with("column_600000: value"));
    assert!(outcome.longest <= 1 << 20);
    assert_eq!(outcome.rows(), [(1, "column_1: value")]);
    let long = format!("a,b\n1,{}\n", "é".repeat(2 << 20));
    let outcome = load(&long);
    assert!(outcome.longest <= 1 << 20);
    assert_eq!(outcome.text.chars().count(), "a: 1\nb: ".len() + (2 << 20));
}

#[test]
fn a_table_that_is_too_large_ends_with_the_limit() {
    let options = ParseOptions { max_chars: 1_000, ..ParseOptions::default() };
    let outcome = try_load("a,b\n1,2\n".repeat(1_000).as_bytes(), &options);
    assert!(matches!(outcome, Err(ParseAbort::Document(ParseError::TooLarge { limit: 1_000 }))));
}

#[test]
fn a_file_without_a_byte_is_empty_and_one_of_blanks_has_no_text() {
    let outcome = try_load(b"", &ParseOptions::default());
    assert!(matches!(outcome, Err(ParseAbort::Document(ParseError::Empty))), "{outcome:?}");
    for text in ["\n\n", " , \n,\n", "\u{feff}"] {
        let outcome = load(text);
        assert_eq!((outcome.text.as_str(), outcome.rows()), ("", Vec::new()), "{text:?}");
    }
}

#[test]
fn the_same_bytes_give_the_same_text_on_every_thread() {
    let text = "name;price;remark\nsalt;1,20;white\nrice;3,40;\"long; dry\"\n";
    let first = load(text);
    let second = std::thread::spawn(move || load(text)).join().unwrap();
    assert_eq!(first.text, second.text);
}
