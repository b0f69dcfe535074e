//! Packages as the usual programs write them, and as nobody should.

use std::io::{Cursor, Write};

use lectern_shared::model::job::IngestionWarning;
use zip::{ZipWriter, write::SimpleFileOptions};

use super::parse;
use crate::{
    output::ParserOutput,
    protocol::{
        MAX_TITLE, MarkKind, ParseAbort, ParseError, ParseFrame, ParseOptions, ParsedPart, SourceMetadata,
        TextMarkup,
    },
};

const WORD: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main""#;
const DRAWING: &str = r#"xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;

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

fn styled(style: &str, text: &str) -> String {
    paragraph(&format!(r#"<w:pStyle w:val="{style}"/>"#), text)
}

fn text_of_word(body: &str) -> String {
    read(zip(word(body))).unwrap().text
}

#[test]
fn headings_of_a_word_document_have_their_numbers_and_lists_their_depths() {
    let item = |list: u8, level: u8, text: &str| {
        paragraph(&format!(r#"<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list}"/></w:numPr>"#), text)
    };
    let body = [
        styled("TOC1", "Scope 3"),
        styled("berschrift1", "Terms"),
        styled("Mine", "Scope"),
        styled("Heading2", "In general"),
        item(1, 2, "first &amp; foremost"),
        item(1, 2, "second"),
        item(2, 0, "bullet"),
        styled("Heading2", "In particular"),
        paragraph(r#"<w:outlineLvl w:val="2"/>"#, "Deep"),
        paragraph("", "Text."),
    ];
    let read = read(zip(word(&body.concat()))).unwrap();
    assert_eq!(read.about.title.as_deref(), Some("The title"));
    assert_eq!(read.about.structure, TextMarkup::Markdown);
    assert_eq!(
        read.text,
        "# 1. Terms\n\n# 2. Scope\n\n## 2.1 In general\n\n- (a) first & foremost\n- (b) second\n- bullet\n\n\
         ## 2.2 In particular\n\n### Deep\n\nText."
    );
}

#[test]
fn a_title_that_goes_on_and_on_is_cut() {
    let mut files = word(&paragraph("", "Text."));
    let core = files.iter_mut().find(|file| file.0 == "docProps/core.xml").unwrap();
    core.1 =
        format!("<c:coreProperties><dc:title>{}</dc:title></c:coreProperties>", "ä".repeat(MAX_TITLE * 2));
    let title = read(zip(files)).unwrap().about.title.unwrap();
    assert_eq!(title, "ä".repeat(MAX_TITLE));
}

#[test]
fn a_word_document_reads_as_if_its_changes_were_accepted_and_what_is_hidden_stays_hidden() {
    let body = r#"<w:p><w:r><w:t xml:space="preserve">The fee is </w:t></w:r><w:del w:id="1"><w:r><w:delText>5</w:delText></w:r></w:del><w:ins w:id="2"><w:r><w:t>6</w:t></w:r></w:ins><w:r><w:t> eu</w:t><w:softHyphen/><w:t>ros</w:t></w:r><w:moveFrom w:id="3"><w:r><w:t>GONE</w:t></w:r></w:moveFrom><w:r><w:rPr><w:vanish/></w:rPr><w:t>HIDDEN</w:t></w:r><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>.</w:t></w:r></w:p>
        <w:p><w:pPr><w:rPr><w:del w:id="4"/></w:rPr></w:pPr><w:r><w:t xml:space="preserve">Joined </w:t></w:r></w:p><w:p><w:r><w:t>here.</w:t></w:r></w:p>
        <w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGEREF x</w:instrText></w:r><w:r><w:t>see 7</w:t><w:tab/><w:t>up</w:t><w:br w:type="page"/><w:t>next</w:t></w:r><w:hyperlink r:id="x"><w:r><w:t> page</w:t></w:r></w:hyperlink></w:p>"#;
    assert_eq!(text_of_word(body), "The fee is 6 euros.\n\nJoined here.\n\nsee 7 up\nnext page");
}

#[test]
fn footnotes_and_text_boxes_of_a_word_document_follow_their_paragraph() {
    let body = r#"<w:p><w:r><w:t>Why</w:t><w:footnoteReference w:id="7"/><w:t>?</w:t></w:r><w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>Box</w:t></w:r></w:p></w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent><w:p><w:r><w:t>Box</w:t></w:r></w:p></w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p><w:p><w:r><w:t>After</w:t></w:r></w:p>"#;
    assert_eq!(text_of_word(body), "Why[^1]?\n\n[^1]: The reason.\n\nBox\n\nAfter");
}

#[test]
fn a_word_document_whose_footnotes_are_broken_is_read_without_them() {
    let reference = r#"<w:p><w:r><w:t>Why</w:t><w:footnoteReference w:id="7"/><w:t>?</w:t></w:r></w:p><w:p><w:r><w:t>So.</w:t></w:r></w:p>"#;
    let half = r#"<w:footnote w:id="7"><w:p><w:r><w:t>Half of a"#;
    let crossed = r#"<w:footnote w:id="7"><w:tbl><w:tr></w:footnote></w:footnotes>"#;
    for broken in [half, crossed, "<"] {
        let mut files = word(reference);
        files.iter_mut().find(|file| file.0 == "word/footnotes.xml").unwrap().1 =
            format!("<w:footnotes {WORD}>{broken}");
        let read = read(zip(files)).unwrap();
        assert_eq!(read.text, "Why?\n\nSo.", "{broken}");
        let warnings: Vec<_> = read.warnings.iter().map(|w| (w.code.as_str(), w.count)).collect();
        assert_eq!(warnings, [("unreadable_notes", 1)], "{broken}");
    }
}

#[test]
fn tables_of_a_word_document_are_tables_with_their_merged_and_nested_cells() {
    let cell = |properties: &str, text: &str| {
        format!("<w:tc><w:tcPr>{properties}</w:tcPr>{}</w:tc>", paragraph("", text))
    };
    let row = |cells: &[String]| format!("<w:tr>{}</w:tr>", cells.concat());
    let inner = format!("<w:tc><w:tbl>{}</w:tbl><w:p/></w:tc>", row(&[cell("", "x"), cell("", "y")]));
    let deleted = format!(r#"<w:tr><w:trPr><w:del w:id="1"/></w:trPr>{}</w:tr>"#, cell("", "GONE"));
    let table = [
        row(&[cell(r#"<w:gridSpan w:val="2"/>"#, "Both"), cell("", "a|b")]),
        deleted,
        row(&[cell("", "1"), cell("", "2"), inner]),
    ];
    assert_eq!(
        text_of_word(&format!("<w:tbl>{}</w:tbl>", table.concat())),
        "| Both | | a\\|b |\n| --- | --- | --- |\n| 1 | 2 | x, y |"
    );
    // A span of a billion columns takes no memory to speak of.
    let wide = row(&[cell(r#"<w:gridSpan w:val="1000000000"/>"#, "wide")]);
    assert!(text_of_word(&format!("<w:tbl>{wide}</w:tbl>")).len() < 2_000);
}

fn slide(shapes: &str) -> String {
    format!("<p:sld {DRAWING}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>")
}

fn shape(placeholder: &str, paragraphs: &[&str]) -> String {
    let paragraphs = paragraphs.iter().map(|text| format!("<a:p>{text}</a:p>")).collect::<Vec<_>>().concat();
    format!("<p:sp><p:nvPr>{placeholder}</p:nvPr><p:txBody>{paragraphs}</p:txBody></p:sp>")
}

fn run(text: &str) -> String {
    format!("<a:r><a:t>{text}</a:t></a:r>")
}

#[test]
fn slides_are_pages_in_the_order_of_the_show_with_title_first_and_notes_last() {
    let main = "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml";
    let table = format!(
        "<p:graphicFrame><a:tbl><a:tr><a:tc><a:p>{}</a:p></a:tc><a:tc><a:p>{}</a:p></a:tc></a:tr></a:tbl></p:graphicFrame>",
        run("k"),
        run("v")
    );
    let first = slide(
        &[
            shape(
                r#"<p:ph idx="1"/>"#,
                &[&run("Point"), &format!(r#"<a:pPr lvl="1"/>{}"#, run("Detail")), ""],
            ),
            shape(r#"<p:ph type="title"/>"#, &[&format!("{}<a:br/>{}", run("The"), run("plan"))]),
            shape(r#"<p:ph type="sldNum"/>"#, &[&run("99")]),
            shape("", &[&format!(r"<a:pPr><a:buAutoNum/></a:pPr>{}", run("step")), &run("Free")]),
            table,
        ]
        .concat(),
    );
    let notes = format!(
        "<p:notes {DRAWING}>{}{}</p:notes>",
        shape(r#"<p:ph type="sldNum"/>"#, &[&run("99")]),
        shape(r#"<p:ph type="body"/>"#, &[&run("Smile.")])
    );
    let files = [
        ("[Content_Types].xml", types("/ppt/presentation.xml", main)),
        (
            "ppt/presentation.xml",
            format!(
                r#"<p:presentation {DRAWING}><p:sldIdLst><p:sldId id="300" r:id="rId9"/><p:sldId id="256" r:id="rId1"/></p:sldIdLst></p:presentation>"#
            ),
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            relations(&[("rId1", "slide", "slides/slide1.xml"), ("rId9", "slide", "slides/slide2.xml")]),
        ),
        ("ppt/slides/slide1.xml", slide(&shape(r#"<p:ph type="ctrTitle"/>"#, &[&run("Last")]))),
        ("ppt/slides/slide2.xml", first),
        (
            "ppt/slides/_rels/slide2.xml.rels",
            relations(&[("r", "notesSlide", "../notesSlides/notesSlide1.xml")]),
        ),
        ("ppt/notesSlides/notesSlide1.xml", notes),
    ];
    let read = read(zip(files)).unwrap();
    assert_eq!(read.about.pages, Some(2));
    assert_eq!(
        read.text,
        "## The plan\n\n- Point\n    - Detail\n1. step\n\nFree\n\n| k | v |\n| --- | --- |\n\nSpeaker notes:\n\nSmile.\n\n## Last"
    );
    assert_eq!(read.pages, [(1, "## The plan".to_owned()), (2, "## Last".to_owned())]);
}

/// A presentation of one slide.
fn text_of_slide(shapes: &[String]) -> String {
    let main = "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml";
    let list = r#"<p:sldIdLst><p:sldId id="256" r:id="rId1"/></p:sldIdLst>"#;
    let files = [
        ("[Content_Types].xml", types("/ppt/presentation.xml", main)),
        ("ppt/presentation.xml", format!("<p:presentation {DRAWING}>{list}</p:presentation>")),
        ("ppt/_rels/presentation.xml.rels", relations(&[("rId1", "slide", "slides/slide1.xml")])),
        ("ppt/slides/slide1.xml", slide(&shapes.concat())),
    ];
    read(zip(files)).unwrap().text
}

#[test]
fn numbers_on_slides_begin_where_they_say_and_anew_behind_what_has_none() {
    let numbered = |level: u8, start: &str, text: &str| {
        format!(r#"<a:pPr lvl="{level}"><a:buAutoNum type="arabicPeriod"{start}/></a:pPr>{}"#, run(text))
    };
    let third = r#" startAt="3""#;
    let paragraphs = [
        numbered(0, "", "a"),
        numbered(1, third, "deep"),
        numbered(0, "", "b"),
        run("Between"),
        numbered(0, third, "c"),
        numbered(0, third, "d"),
        run("Behind"),
        numbered(0, "", "e"),
        numbered(0, r#" startAt="4294967295""#, "f"),
        numbered(0, r#" startAt="4294967295""#, "g"),
    ];
    let text = text_of_slide(&[shape("", &paragraphs.each_ref().map(String::as_str))]);
    let (lists, last) = text.split_once("\n\nBehind\n\n").unwrap();
    assert_eq!(lists, "1. a\n    3. deep\n2. b\n\nBetween\n\n3. c\n4. d");
    assert_eq!(last, "1. e\n- 4294967295. f\n- 4294967295. g");
}

#[test]
fn a_text_box_behind_a_picture_in_a_placeholder_has_no_bullets() {
    let picture = r#"<p:pic><p:nvPicPr><p:nvPr><p:ph idx="1"/></p:nvPr></p:nvPicPr></p:pic>"#;
    let shapes = [picture.to_owned(), shape("", &[&run("Free"), &run("Text")])];
    assert_eq!(text_of_slide(&shapes), "Free\n\nText");
    let shapes = [picture.to_owned(), shape(r#"<p:ph idx="2"/>"#, &[&run("Point")])];
    assert_eq!(text_of_slide(&shapes), "- Point");
}

fn open_document(kind: &str, content: &str, manifest: &str) -> Vec<u8> {
    zip([
        ("mimetype", format!("application/vnd.oasis.opendocument.{kind}")),
        ("META-INF/manifest.xml", manifest.to_owned()),
        ("meta.xml", "<m><dc:title>Mine</dc:title></m>".to_owned()),
        ("content.xml", format!("<office:document-content>{content}</office:document-content>")),
    ])
}

#[test]
fn an_open_document_keeps_headings_lists_tables_and_notes_and_leaves_out_deleted_text() {
    let content = r#"<office:automatic-styles><text:list-style style:name="L1"><text:list-level-style-bullet text:level="1"/><text:list-level-style-number text:level="2" style:num-format="1"/></text:list-style></office:automatic-styles>
        <office:body><office:text><text:tracked-changes><text:p>GONE</text:p></text:tracked-changes>
        <text:h text:outline-level="2">Part</text:h>
        <text:p>One <text:span>two</text:span><text:s text:c="900000000"/>three
          four<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Why.</text:p></text:note-body></text:note>.<office:annotation><text:p>GONE</text:p></office:annotation></text:p>
        <text:list text:style-name="L1"><text:list-item><text:p>a</text:p><text:list><text:list-item><text:p>b</text:p></text:list-item><text:list-item><text:p>c</text:p><text:p>d</text:p></text:list-item></text:list></text:list-item></text:list>
        <table:table><table:table-row><table:table-cell table:number-columns-repeated="900000000"/><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row></table:table>
        </office:text></office:body>"#;
    let read = read(open_document("text", content, "<m/>")).unwrap();
    assert_eq!(read.about.title.as_deref(), Some("Mine"));
    let (before, table) = read.text.split_once("\n\n|").unwrap();
    assert_eq!(before, "## Part\n\nOne two three four[^1].\n\n[^1]: Why.\n\n- a\n    1. b\n    2. c\n\nd");
    assert!(table.contains(" x |") && table.len() < 3_000);
}

#[test]
fn what_stands_around_a_shape_of_an_open_document_is_kept_and_what_the_shape_says_follows_it() {
    let content = r#"<text:p>I went<draw:line> <text:p/> </draw:line> and <draw:custom-shape>
            <text:list><text:list-item><text:p>Stop</text:p></text:list-item></text:list>
        </draw:custom-shape>they <draw:frame><draw:image><text:p/></draw:image></draw:frame>said<draw:measure><text:p><text:measure text:kind="value">5</text:measure> cm</text:p></draw:measure> no.</text:p>
        <text:list><text:list-item><text:p>Item<draw:rect><text:p>Box</text:p></draw:rect></text:p></text:list-item></text:list>
        <draw:g><draw:ellipse><text:p>Round</text:p></draw:ellipse></draw:g><text:p>After</text:p>"#;
    assert_eq!(
        read(open_document("text", content, "<m/>")).unwrap().text,
        "I went and they said no.\n\n- Stop\n\n5 cm\n\n- Item\n\nBox\n\nRound\n\nAfter"
    );
}

#[test]
fn lists_of_an_open_document_go_on_and_begin_where_they_say() {
    let styles = r#"<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1"/><text:list-level-style-number text:level="2" style:num-format="1" text:start-value="5"/></text:list-style>"#;
    let list = |attributes: &str, items: &[String]| {
        format!(r#"<text:list text:style-name="L1" {attributes}>{}</text:list>"#, items.concat())
    };
    let item = |text: &str| format!("<text:list-item><text:p>{text}</text:p></text:list-item>");
    let sublist = |attributes: &str, text: &str| {
        format!("<text:list-item><text:list {attributes}>{}</text:list></text:list-item>", item(text))
    };
    let goes_on = r#"text:continue-numbering="true""#;
    let ninth = r#"<text:list-item text:start-value="9"><text:p>h</text:p></text:list-item>"#.to_owned();
    let header = "<text:list-header><text:p>Head</text:p></text:list-header>".to_owned();
    let content = [
        styles.to_owned(),
        list(r#"xml:id="one""#, &[item("a"), item("b")]),
        "<text:p>Between</text:p>".to_owned(),
        list(goes_on, &[item("c"), sublist("", "deep"), item("d")]),
        "<text:p>Between</text:p>".to_owned(),
        list(goes_on, &[sublist(goes_on, "deeper"), item("e")]),
        "<text:p>Between</text:p>".to_owned(),
        list("", &[sublist("", "under the first"), item("f")]),
        "<text:p>Between</text:p>".to_owned(),
        list(r#"text:continue-list="one""#, &[header, item(""), item("g"), ninth, item("i")]),
    ];
    let text = read(open_document("text", &content.concat(), "<m/>")).unwrap().text;
    let lists: Vec<_> = text.split("\n\nBetween\n\n").collect();
    assert_eq!(
        lists,
        [
            "1. a\n2. b",
            "3. c\n    5. deep\n4. d",
            "6. deeper\n5. e",
            "5. under the first\n2. f",
            "Head\n\n4. g\n9. h\n10. i"
        ]
    );
}

#[test]
fn slides_of_an_open_presentation_are_pages() {
    let frame = |class: &str, text: &str| {
        format!(
            r#"<draw:frame presentation:class="{class}"><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"#
        )
    };
    let notes = format!("<presentation:notes>{}</presentation:notes>", frame("notes", "Smile."));
    let content = format!(
        "<draw:page>{}{}{notes}</draw:page><draw:page>{}</draw:page>",
        frame("outline", "Body"),
        frame("title", "First"),
        frame("title", "Second")
    );
    let read = read(open_document("presentation", &content, "<m/>")).unwrap();
    assert_eq!(read.about.pages, Some(2));
    assert_eq!(read.text, "## First\n\nBody\n\nSpeaker notes:\n\nSmile.\n\n## Second");
    assert_eq!(read.pages, [(1, "## First".to_owned()), (2, "## Second".to_owned())]);
}

#[test]
fn an_encrypted_open_document_asks_for_its_password() {
    let manifest = r#"<m><file-entry full-path="content.xml"><encryption-data/></file-entry></m>"#;
    assert_eq!(read(open_document("text", "", manifest)).unwrap_err(), ParseError::PasswordRequired);
}

fn book(encryption: &str) -> Vec<u8> {
    let opf = r#"<package><metadata><dc:title>A book</dc:title></metadata><manifest><item id="n" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/><item id="a" href="text/a%20b.xhtml" media-type="application/xhtml+xml"/><item id="b" href="text/c.xhtml" media-type="application/xhtml+xml"/><item id="m" href="no.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="n"/><itemref idref="b"/><itemref idref="a"/><itemref idref="m"/></spine></package>"#;
    zip([
        ("mimetype", "application/epub+zip"),
        ("META-INF/container.xml", r#"<c><rootfile full-path="OEBPS/book.opf"/></c>"#),
        ("META-INF/encryption.xml", encryption),
        ("OEBPS/book.opf", opf),
        ("OEBPS/nav.xhtml", "<html><body><p>Contents</p></body></html>"),
        ("OEBPS/text/a b.xhtml", "<html><body><h1>Second</h1><p>It ends.</p></body></html>"),
        ("OEBPS/text/c.xhtml", "<html><body><h1>First</h1><p>It begins.</p></body></html>"),
    ])
}

fn encrypted(algorithm: &str, file: &str) -> String {
    format!(
        r#"<encryption><EncryptedData><EncryptionMethod Algorithm="{algorithm}"/><CipherData><CipherReference URI="{file}"/></CipherData></EncryptedData></encryption>"#
    )
}

#[test]
fn a_book_is_read_in_its_order_and_says_which_chapters_are_missing() {
    let read = read(book("<encryption/>")).unwrap();
    assert_eq!(read.about.title.as_deref(), Some("A book"));
    let places = ["First", "It begins.", "Second", "It ends."].map(|words| read.text.find(words).unwrap());
    assert!(places.is_sorted() && !read.text.contains("Contents"), "{}", read.text);
    assert_eq!(
        read.warnings.iter().map(|w| (w.code.as_str(), w.count)).collect::<Vec<_>>(),
        [("missing_chapter", 1)]
    );
}

#[test]
fn a_book_that_only_its_seller_can_open_is_told_from_one_with_protected_fonts() {
    let locked = encrypted("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "OEBPS/text/c.xhtml");
    assert_eq!(read(book(&locked)).unwrap_err(), ParseError::PasswordRequired);
    let font = encrypted("http://www.idpf.org/2008/embedding", "OEBPS/text/c.xhtml");
    assert!(read(book(&font)).is_ok());
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
    assert_eq!(read(zip(word(&paragraph("", &blanks)))).unwrap_err(), ParseError::Damaged);
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
