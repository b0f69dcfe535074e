//! Packages as the usual programs write them, and as nobody should.

mod books;
mod open_documents;
mod presentations;
mod word_documents;

use std::io::{Cursor, Write};

use lectern_shared::model::job::IngestionWarning;
use zip::{ZipWriter, write::SimpleFileOptions};

use super::parse;
use crate::{
    output::ParserOutput,
    protocol::{MarkKind, ParseAbort, ParseError, ParseFrame, ParseOptions, ParsedPart, SourceMetadata},
};

const WORD: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main""#;

/// What comes of a document.
#[derive(Debug, Default)]
struct ReadPackage {
    about: SourceMetadata,
    text: String,
    /// Where slides begin, with the rest of the line there.
    pages: Vec<(u32, String)>,
    warnings: Vec<IngestionWarning>,
}

fn read(bytes: Vec<u8>) -> Result<ReadPackage, ParseError> {
    let mut read = ReadPackage::default();
    let mut emit = |frame| {
        match frame {
            ParseFrame::About(about) => read.about = about,
            ParseFrame::Part(ParsedPart { text, marks }) => {
                for mark in marks {
                    let MarkKind::Page(number) = mark.what else { panic!("{mark:?}") };
                    let line = text.lines().next().unwrap_or_default();
                    read.pages.push((number, line.chars().skip(mark.at.try_into().unwrap()).collect()));
                }
                read.text.push_str(&text);
            }
            ParseFrame::Warning(warning) => read.warnings.push(warning),
            other => panic!("{other:?}"),
        }
        Ok(())
    };
    let parsed = parse(bytes, &ParseOptions::default(), &mut ParserOutput::new(&mut emit, 1_000_000));
    match parsed {
        Ok(()) => Ok(read),
        Err(ParseAbort::Document(error)) => Err(error),
        Err(other) => panic!("{other:?}"),
    }
}

fn zip<N: AsRef<str>, T: AsRef<[u8]>>(files: impl IntoIterator<Item = (N, T)>) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(name.as_ref(), SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_ref()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn relations(relations: &[(&str, &str, &str)]) -> String {
    let one = |(id, kind, target): &(&str, &str, &str)| {
        format!(r#"<Relationship Id="{id}" Type="http://x/relationships/{kind}" Target="{target}"/>"#)
    };
    format!("<Relationships>{}</Relationships>", relations.iter().map(one).collect::<String>())
}

fn types(part: &str, r#type: &str) -> String {
    format!(r#"<Types><Override PartName="{part}" ContentType="{type}"/></Types>"#)
}

fn word(body: &str) -> Vec<(&'static str, String)> {
    let main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml";
    let level = |level: u8, format: &str, text: &str| {
        format!(
            r#"<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{format}"/><w:lvlText w:val="{text}"/></w:lvl>"#
        )
    };
    let style = |id: &str, name: &str, more: &str| {
        format!(r#"<w:style w:type="paragraph" w:styleId="{id}"><w:name w:val="{name}"/>{more}</w:style>"#)
    };
    let in_list = r#"<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>"#;
    vec![
        ("[Content_Types].xml", types("/word/document.xml", main)),
        (
            "docProps/core.xml",
            "<c:coreProperties><dc:title> The  title </dc:title></c:coreProperties>".to_owned(),
        ),
        (
            "word/_rels/document.xml.rels",
            relations(&[
                ("1", "styles", "styles.xml"),
                ("2", "numbering", "/word/numbering.xml"),
                ("3", "footnotes", "footnotes.xml"),
            ]),
        ),
        (
            "word/styles.xml",
            format!(
                "<w:styles {WORD}>{}{}{}{}</w:styles>",
                style("berschrift1", "heading 1", in_list),
                style("Mine", "Mine", r#"<w:basedOn w:val="berschrift1"/>"#),
                style("TOC1", "toc 1", ""),
                style(
                    "Heading2",
                    "heading 2",
                    r#"<w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr>"#
                ),
            ),
        ),
        (
            "word/numbering.xml",
            format!(
                r#"<w:numbering {WORD}><w:abstractNum w:abstractNumId="0">{}{}{}</w:abstractNum><w:abstractNum w:abstractNumId="1">{}</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num></w:numbering>"#,
                level(0, "decimal", "%1."),
                level(1, "decimal", "%1.%2"),
                level(2, "lowerLetter", "(%3)"),
                level(0, "bullet", "\u{f0b7}"),
            ),
        ),
        (
            "word/footnotes.xml",
            format!(
                r#"<w:footnotes {WORD}><w:footnote w:type="separator" w:id="0"><w:p><w:r><w:t>never</w:t></w:r></w:p></w:footnote><w:footnote w:id="7"><w:p><w:r><w:footnoteRef/></w:r><w:r><w:t xml:space="preserve"> The reason.</w:t></w:r></w:p></w:footnote></w:footnotes>"#
            ),
        ),
        ("word/document.xml", format!("<w:document {WORD}><w:body>{body}</w:body></w:document>")),
    ]
}

fn paragraph(properties: &str, text: &str) -> String {
    format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

/// A chart that names its series and categories in several ways, some of them more than once.
fn chart() -> String {
    let series = |name: &str, categories: &str| {
        format!(
            "<c:ser><c:tx><c:strRef><c:f>S!A1</c:f><c:strCache><c:pt idx=\"0\"><c:v>{name}</c:v></c:pt></c:strCache></c:strRef></c:tx><c:dLbls><c:dLbl><c:tx><c:rich><a:p><a:r><a:t>LABEL</a:t></a:r></a:p></c:rich></c:tx></c:dLbl></c:dLbls><c:cat>{categories}</c:cat><c:val><c:numRef><c:numCache><c:formatCode>General</c:formatCode><c:pt idx=\"0\"><c:v>4711</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser>"
        )
    };
    let numbers = |format: &str, number: &str| {
        format!(
            "<c:numRef><c:numCache><c:formatCode>{format}</c:formatCode><c:pt idx=\"0\"><c:v>{number}</c:v></c:pt></c:numCache></c:numRef>"
        )
    };
    let texts = "<c:strRef><c:strCache><c:pt idx=\"0\"><c:v>Spring</c:v></c:pt><c:pt idx=\"1\"><c:v>Autumn\nrain</c:v></c:pt></c:strCache></c:strRef>";
    let all = [
        series("North", texts),
        series("South &amp; East", texts),
        series("North", &numbers("d/m/yyyy", "45000")),
        series("North", &numbers("General", "2024")),
    ]
    .concat();
    let text = |text: &str| format!("<a:p><a:r><a:t>{text}</a:t></a:r></a:p>");
    let title = |text: &str| format!("<c:title><c:tx><c:rich>{text}</c:rich></c:tx></c:title>");
    format!(
        "<c:chartSpace xmlns:c=\"c\" xmlns:a=\"a\"><c:chart>{}<c:plotArea><c:barChart>{all}</c:barChart><c:valAx>{}</c:valAx></c:plotArea></c:chart></c:chartSpace>",
        title(&[text("Mills"), text("by the river")].concat()),
        title(&text("AXIS")),
    )
}

/// What that chart says.
const CHART_SAYS: &str =
    "Chart: Mills by the river\nSeries: North, South & East\nCategories: Spring, Autumn rain, 2024";

fn open_document(kind: &str, content: &str, manifest: &str) -> Vec<u8> {
    zip([
        ("mimetype", format!("application/vnd.oasis.opendocument.{kind}")),
        ("META-INF/manifest.xml", manifest.to_owned()),
        ("meta.xml", "<m><dc:title>Mine</dc:title></m>".to_owned()),
        ("content.xml", format!("<office:document-content>{content}</office:document-content>")),
    ])
}

#[test]
fn archives_and_older_files_that_are_no_documents_are_refused_with_advice() {
    let legacy = |stream: &str| {
        let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
        file.create_stream(stream).unwrap().write_all(b"x").unwrap();
        file.into_inner().into_inner()
    };
    for (bytes, advice) in [
        (zip([("a.txt", "x")]), "Unpack it"),
        (zip([("Index/Document.iwa", "x")]), "Pages"),
        (open_document("graphics", "", "<m/>"), "PDF"),
        (legacy("/WordDocument"), "DOCX"),
        (legacy("/PowerPoint Document"), "PPTX"),
    ] {
        match read(bytes).unwrap_err() {
            ParseError::Unsupported(message) => assert!(message.contains(advice), "{message}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(read(legacy("/EncryptedPackage")).unwrap_err(), ParseError::PasswordRequired);
}

#[test]
fn an_e_mail_of_outlook_is_read_out_of_the_container_of_older_files() {
    let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    let streams = [("/__properties_version1.0", ""), ("/__substg1.0_1000001E", "The weir leaks.")];
    for (stream, content) in streams {
        file.create_stream(stream).unwrap().write_all(content.as_bytes()).unwrap();
    }
    assert_eq!(read(file.into_inner().into_inner()).unwrap().text, "The weir leaks.");
}

#[test]
fn broken_packages_are_damaged_at_whatever_byte_they_end() {
    let whole = zip(word(&paragraph("", "text")));
    assert_eq!(read(Vec::new()).unwrap_err(), ParseError::Empty);
    for length in (1..whole.len()).step_by(7) {
        assert_eq!(read(whole[..length].to_vec()).unwrap_err(), ParseError::Damaged, "{length}");
    }
    for place in (0..whole.len()).step_by(11) {
        let mut garbled = whole.clone();
        garbled[place] ^= 0x5a;
        // Whatever comes of it, it comes without a panic.
        let _ = read(garbled);
    }
    assert_eq!(read(zip(word("<w:p><w:r>"))).unwrap_err(), ParseError::Damaged);
}

#[test]
fn bombs_end_before_they_take_much() {
    let nested = |depth: usize| text_of_depth(depth, "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>");
    assert!(read(nested(50)).is_ok());
    assert_eq!(read(nested(20_000)).unwrap_err(), ParseError::Damaged);
    let blanks = " ".repeat(16 << 20);
    assert_eq!(read(zip(word(&paragraph("", &blanks)))).unwrap_err(), ParseError::UnpacksTooFar);
    let many = (0..10_001).map(|number| (format!("{number}"), ""));
    assert!(matches!(read(zip(many)), Err(ParseError::Unsupported(_))));
    // Entities that stand for entities stand for nothing here.
    let mut laughs = word("");
    let entity =
        r#"<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY x SYSTEM "file:///etc/hostname">]>"#;
    let body = paragraph("", "one&b;&x;two");
    laughs.last_mut().unwrap().1 = format!("{entity}<w:document {WORD}><w:body>{body}</w:body></w:document>");
    assert_eq!(read(zip(laughs)).unwrap().text, "onetwo");
}

fn text_of_depth(depth: usize, open: &str, close: &str) -> Vec<u8> {
    zip(word(&format!("{}<w:p/>{}", open.repeat(depth), close.repeat(depth))))
}
