use std::fmt::Write as _;

use std::io::Write;

use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;
use crate::protocol::{MAX_TITLE, MarkKind, ParseFrame};

/// What a reader gets: the text, what is marked in it with the line that begins there, and the codes of warnings.
#[derive(Debug, Default)]
struct WorkbookOutcome {
    text: String,
    rows: Vec<(u64, String)>,
    headings: Vec<(String, String)>,
    warnings: Vec<String>,
}

impl WorkbookOutcome {
    fn rows(&self) -> Vec<(u64, &str)> {
        self.rows.iter().map(|(number, line)| (*number, line.as_str())).collect()
    }
}

fn load(bytes: Vec<u8>) -> Result<WorkbookOutcome, ParseAbort> {
    let (mut outcome, mut marks, mut length) = (WorkbookOutcome::default(), Vec::new(), 0);
    let mut emit = |frame| {
        match frame {
            ParseFrame::Part(part) => {
                outcome.text.push_str(&part.text);
                marks.extend(part.marks.into_iter().map(|mark| (length + mark.at, mark.what)));
                length += part.text.chars().count() as u64;
            }
            ParseFrame::Warning(warning) => outcome.warnings.push(warning.code),
            other => panic!("{other:?}"),
        }
        Ok(())
    };
    let options = ParseOptions::default();
    parse(bytes, &options, &mut ParserOutput::new(&mut emit, options.max_chars))?;
    for (at, what) in marks {
        let rest: String = outcome.text.chars().skip(usize::try_from(at).unwrap()).collect();
        let line = rest.lines().next().unwrap().to_owned();
        match what {
            MarkKind::Row(number) => outcome.rows.push((number, line)),
            MarkKind::Heading { level: 1, title } => outcome.headings.push((title, line)),
            other => panic!("{other:?}"),
        }
    }
    Ok(outcome)
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// A workbook of sheets with a name, a state and the XML of their rows.
fn xlsx(sheets: &[(&str, &str, &str)]) -> Vec<u8> {
    let (mut listed, mut related, mut parts) = (String::new(), String::new(), Vec::new());
    for (number, (name, state, rows)) in sheets.iter().enumerate() {
        let _ = write!(
            listed,
            r#"<sheet name="{name}" sheetId="{number}" state="{state}" r:id="rId{number}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"/>"#
        );
        let _ = write!(
            related,
            r#"<Relationship Id="rId{number}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet{number}.xml"/>"#
        );
        let sheet = format!(
            r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{rows}</sheetData></worksheet>"#
        );
        parts.push((format!("xl/worksheets/sheet{number}.xml"), sheet));
    }
    let workbook = format!(
        r#"<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheets>{listed}</sheets></workbook>"#
    );
    let related = format!(
        r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{related}</Relationships>"#
    );
    let mut files = vec![
        (
            "_rels/.rels",
            r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#,
        ),
        ("xl/workbook.xml", workbook.as_str()),
        ("xl/_rels/workbook.xml.rels", related.as_str()),
        (
            "xl/styles.xml",
            r#"<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts count="1"><numFmt numFmtId="170" formatCode="00000"/></numFmts><cellXfs count="4"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="9"/><xf numFmtId="170"/></cellXfs></styleSheet>"#,
        ),
    ];
    files.extend(parts.iter().map(|(name, sheet)| (name.as_str(), sheet.as_str())));
    archive(&files)
}

/// The XML of rows; a value that is not a number is a string, and a blank one no cell at all.
fn rows(rows: &[(u32, &[&str])]) -> String {
    let mut xml = String::new();
    for (number, cells) in rows {
        let _ = write!(xml, r#"<row r="{number}">"#);
        for (column, value) in ('A'..='Z').zip(*cells).filter(|(_, value)| !value.is_empty()) {
            let _ = match value.parse::<f64>() {
                Ok(_) => write!(xml, r#"<c r="{column}{number}"><v>{value}</v></c>"#),
                Err(_) => write!(xml, r#"<c r="{column}{number}" t="inlineStr"><is><t>{value}</t></is></c>"#),
            };
        }
        xml += "</row>";
    }
    xml
}

#[test]
fn the_name_of_a_sheet_that_goes_on_and_on_is_cut() {
    let sheet = rows(&[(1, &["region", "units"]), (2, &["North", "3"])]);
    let outcome = load(xlsx(&[(&"s".repeat(MAX_TITLE * 2), "visible", &sheet)])).unwrap();
    assert_eq!(outcome.headings.len(), 1);
    assert_eq!(outcome.headings[0].0, "s".repeat(MAX_TITLE));
}

#[test]
fn each_row_says_what_the_cell_says_that_it_shares() {
    let sheet = rows(&[
        (1, &["group", "item", "price"]),
        (2, &["Fruit", "Apple", "1"]),
        (3, &["", "Pear", "2"]),
        (5, &["", "Plum", "3"]),
        (6, &["", "Leek", "4"]),
    ]);
    let load = |merged: &str| {
        let sheet = format!("{sheet}</sheetData><mergeCells>{merged}</mergeCells><sheetData>");
        load(xlsx(&[("Sales", "visible", &sheet)])).unwrap()
    };
    let outcome = load(r#"<mergeCell ref="B1:C1"/><mergeCell ref="A2:A5"/><mergeCell ref="C6:C1048576"/>"#);
    assert_eq!(
        outcome.text,
        "group: Fruit\nitem: Apple\nprice: 1\n\ngroup: Fruit\nitem: Pear\nprice: 2\n\n\
         group: Fruit\nitem: Plum\nprice: 3\n\nitem: Leek\nprice: 4"
    );
    let numbers: Vec<_> = outcome.rows().into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [1, 2, 4, 5], "no row is made of it alone");
    let broken = load(r#"<mergeCell ref="nowhere"/><mergeCell ref="A2:A5"/>"#);
    assert!(broken.text.contains("\n\nitem: Pear\nprice: 2\n\n"), "{}", broken.text);
}

#[test]
fn rows_are_found_below_titles_and_blank_rows_by_the_number_that_the_sheet_shows() {
    let sheet = rows(&[
        (2, &["", "Sales of 2024"]),
        (4, &["", "region", "units", ""]),
        (5, &["", "North", "3"]),
        (8, &["", "South", "0.30000000000000004", "late"]),
    ]);
    let outcome = load(xlsx(&[("Sales", "visible", &sheet)])).unwrap();
    assert_eq!(
        outcome.text,
        "Sales of 2024\n\nregion: North\nunits: 3\n\nregion: South\nunits: 0.3\ncolumn_4: late"
    );
    assert_eq!(outcome.rows(), [(1, "region: North"), (4, "region: South")]);
    assert_eq!(outcome.headings, [("Sales".to_owned(), "Sales of 2024".to_owned())]);
    assert!(outcome.warnings.is_empty());
}

#[test]
fn every_sheet_is_a_section_with_rows_of_its_own() {
    let (first, second) = (
        rows(&[(1, &["a", "b"]), (2, &["1", "x"])]),
        rows(&[(1, &["c", "d"]), (2, &["2", "y"]), (3, &["3", "z"])]),
    );
    let sheets = [("First", "visible", &*first), ("Empty", "visible", ""), ("Second", "hidden", &*second)];
    let outcome = load(xlsx(&sheets)).unwrap();
    assert_eq!(outcome.text, "First\n\na: 1\nb: x\n\nSecond\n\nc: 2\nd: y\n\nc: 3\nd: z");
    let heading = |title: &str| (title.to_owned(), title.to_owned());
    assert_eq!(outcome.headings, [heading("First"), heading("Second")]);
    // The title belongs to the first row of its sheet, not to the last one of the sheet before.
    assert_eq!(outcome.rows(), [(1, "First"), (1, "Second"), (2, "c: 3")]);
    assert_eq!(outcome.warnings, ["hidden_sheets"]);
}

#[test]
fn dates_shares_codes_truth_values_formulas_and_errors_read_as_people_see_them() {
    let sheet = r#"<row r="1"><c r="A1" t="str"><v>when</v></c><c r="B1" t="str"><v>share</v></c><c r="C1" t="str"><v>code</v></c><c r="D1" t="str"><v>done</v></c><c r="E1" t="str"><v>sum</v></c><c r="F1" t="str"><v>ratio</v></c></row>
        <row r="2"><c r="A2" s="1"><v>45413</v></c><c r="B2" s="2"><v>0.07</v></c><c r="C2" s="3"><v>8123</v></c><c r="D2" t="b"><v>1</v></c><c r="E2"><f>1+1</f><v>2</v></c><c r="F2" t="e"><v>#DIV/0!</v></c></row>
        <row r="3"><c r="A3" t="e"><v>#UNHEARD!</v></c><c r="B3"><v>5</v></c></row>"#;
    let outcome = load(xlsx(&[("Sheet", "visible", sheet)])).unwrap();
    assert_eq!(
        outcome.text,
        "when: 2024-05-01\nshare: 7%\ncode: 08123\ndone: TRUE\nsum: 2\nratio: #DIV/0!\n\nshare: 5"
    );
    assert_eq!(outcome.warnings, ["unreadable_cells"]);
}

#[test]
fn a_cell_at_the_far_end_of_a_sheet_takes_no_room_for_those_before_it() {
    let sheet =
        r#"<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>"#;
    let outcome = load(xlsx(&[("Sheet", "visible", sheet)])).unwrap();
    assert_eq!(outcome.text, "column_1: 1\n\ncolumn_16384: 2");
    assert_eq!(outcome.rows(), [(1, "column_1: 1"), (1_048_576, "column_16384: 2")]);
}

#[test]
fn a_cell_in_a_column_that_no_sheet_has_is_left_out() {
    let cell = |at: &str, text: &str| format!("<c r=\"{at}\" t=\"str\"><v>{text}</v></c>");
    let row = [cell("A1", "here"), cell("XFD1", "last"), cell("XFE1", "beyond"), cell("ZZZZZZ1", "nowhere")];
    let sheet = format!("<row r=\"1\">{}</row>", row.concat());
    let outcome = load(xlsx(&[("Sheet", "visible", &sheet)])).unwrap();
    assert!(outcome.text.contains("here") && outcome.text.contains("last"), "{}", outcome.text);
    assert!(!outcome.text.contains("beyond") && !outcome.text.contains("nowhere"), "{}", outcome.text);
    assert_eq!(outcome.warnings, ["unreadable_cells"]);
}

#[test]
fn an_open_document_is_read_like_the_others() {
    let content = r#"<office:document-content xmlns:office="o" xmlns:table="t" xmlns:text="x"><office:body><office:spreadsheet><table:table table:name="Sheet"><table:table-row><table:table-cell office:value-type="string"><text:p>name</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>day</text:p></table:table-cell></table:table-row><table:table-row table:number-rows-repeated="2"><table:table-cell/></table:table-row><table:table-row><table:table-cell office:value-type="string"><text:p>Ann</text:p></table:table-cell><table:table-cell office:value-type="date" office:date-value="2024-05-01"><text:p>1 May</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet></office:body></office:document-content>"#;
    let outcome = load(archive(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("META-INF/manifest.xml", "<manifest:manifest xmlns:manifest=\"m\"/>"),
        ("content.xml", content),
    ]))
    .unwrap();
    assert_eq!(outcome.text, "name: Ann\nday: 2024-05-01");
    assert_eq!(outcome.rows(), [(3, "name: Ann")]);
}

#[test]
fn encrypted_damaged_and_empty_files_each_say_so() {
    let mut encrypted = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    encrypted.create_stream("/EncryptedPackage").unwrap().write_all(&[7; 5_000]).unwrap();
    encrypted.create_stream("/EncryptionInfo").unwrap().write_all(&[7; 5_000]).unwrap();
    let encrypted = encrypted.into_inner().into_inner();
    let whole = xlsx(&[("Sheet", "visible", &rows(&[(1, &["a"]), (2, &["1"])]))]);
    let cut = whole[..whole.len() / 2].to_vec();
    let broken = xlsx(&[("Sheet", "visible", "<row r=\"1\"><c r=\"A1\"><v>1</v></c></row><row")]);
    let boastful = |beginning: &str| {
        let mut archive = ZipWriter::new_append(Cursor::new(whole.clone())).unwrap();
        archive.start_file("xl/sharedStrings.xml", SimpleFileOptions::default()).unwrap();
        write!(archive, "{beginning}<si><t>a</t></si></sst>").unwrap();
        archive.finish().unwrap().into_inner()
    };
    let open_document = |manifest: &str, content: &str| {
        archive(&[
            ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
            ("META-INF/manifest.xml", manifest),
            ("content.xml", content),
        ])
    };
    let table = "<o xmlns:table=\"t\"><table:table table:name=\"Sheet\"><table:table-row><table:table-cell>";
    let unfinished = open_document("<manifest:manifest xmlns:manifest=\"m\"/>", table);
    let locked = "<manifest:manifest xmlns:manifest=\"m\"><manifest:encryption-data/></manifest:manifest>";
    let locked = open_document(locked, "\u{7}\u{1}<");
    for (bytes, error) in [
        (encrypted, ParseError::PasswordRequired),
        (cut, ParseError::Damaged),
        (broken, ParseError::Damaged),
        (boastful("<sst uniqueCount=\"4294967295\">"), ParseError::Damaged),
        (boastful("<sst uniqueCount=\"4294967295\"/>"), ParseError::Damaged),
        (boastful("</a><sst uniqueCount = '4294967295'>"), ParseError::Damaged),
        (boastful("<sst a=\"b<c d=\"e\" count=\"2\" uniqueCount=\"24294967295\">"), ParseError::Damaged),
        (unfinished, ParseError::Damaged),
        (locked, ParseError::PasswordRequired),
        (OLE2.repeat(100), ParseError::Damaged),
        (Vec::new(), ParseError::Empty),
    ] {
        match load(bytes) {
            Err(ParseAbort::Document(found)) => assert_eq!(found, error),
            other => panic!("{error:?}: {other:?}"),
        }
    }
}

#[test]
fn a_workbook_without_cells_has_no_text() {
    let blank = rows(&[(1, &["", " "])]);
    let sheets = [("Empty", "visible", ""), ("Blank", "visible", &*blank)];
    for sheets in [&sheets[..1], &sheets[..]] {
        let outcome = load(xlsx(sheets)).unwrap();
        assert!(outcome.text.is_empty() && outcome.headings.is_empty(), "{outcome:?}");
    }
}

#[test]
fn a_workbook_that_unpacks_to_more_than_fits_is_too_large_before_it_is_unpacked() {
    let mut bytes = xlsx(&[("Sheet", "visible", &rows(&[(1, &["a"]), (2, &["1"])]))]);
    // The directory at the end of the archive says how large each part is; this one says it of the styles.
    let name = bytes.windows(13).rposition(|window| window == b"xl/styles.xml").unwrap();
    bytes[name - 22..name - 18].copy_from_slice(&(300_u32 << 20).to_le_bytes());
    assert!(matches!(load(bytes), Err(ParseAbort::Document(ParseError::UnpacksTooFar))));
}
