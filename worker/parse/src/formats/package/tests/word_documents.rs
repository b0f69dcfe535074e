//! DOCX.

use super::*;
use crate::protocol::{MAX_TITLE, TextMarkup};

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

#[test]
fn each_row_of_a_word_table_says_what_the_cell_says_that_it_shares() {
    let cell = |properties: &str, text: &str| {
        format!("<w:tc><w:tcPr>{properties}</w:tcPr>{}</w:tc>", paragraph("", text))
    };
    let row = |cells: &[String]| format!("<w:tr>{}</w:tr>", cells.concat());
    let (first, next) = (r#"<w:vMerge w:val="restart"/>"#, "<w:vMerge/>");
    // It was merged once, and is not any more.
    let former = "<w:tcPrChange><w:tcPr><w:vMerge/></w:tcPr></w:tcPrChange>";
    let later = r#"<w:gridSpan w:val="2"/><w:vMerge w:val="continue"/>"#;
    let table = [
        row(&[cell("", "Group"), cell("", "Item"), cell("", "Price")]),
        row(&[cell(first, "Fruit"), cell("", "Apple"), cell(former, "1")]),
        row(&[cell(next, ""), cell("", "Pear"), cell("", "")]),
        format!(r#"<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>{}</w:tr>"#, cell("", "Plum")),
        row(&[cell(&format!(r#"<w:gridSpan w:val="2"/>{first}"#), "Nothing else"), cell("", "4")]),
        row(&[cell(later, ""), cell("", "5")]),
    ];
    assert_eq!(
        text_of_word(&format!("<w:tbl>{}</w:tbl>", table.concat())),
        "| Group | Item | Price |\n| --- | --- | --- |\n| Fruit | Apple | 1 |\n| Fruit | Pear | |\n| | Plum | |\n\
         | Nothing else | | 4 |\n| Nothing else | | 5 |"
    );
    let long = "x".repeat(300);
    let table = [row(&[cell(first, &long), cell("", "1")]), row(&[cell(next, ""), cell("", "2")])];
    assert_eq!(text_of_word(&format!("<w:tbl>{}</w:tbl>", table.concat())).matches(&long).count(), 1);
}

#[test]
fn what_a_chart_of_a_word_document_names_follows_its_paragraph() {
    let drawing = |id: &str| format!(r#"<w:r><w:drawing><c:chart r:id="{id}"/></w:drawing></w:r>"#);
    let body = format!(
        "<w:p>{}<w:r><w:t>As shown.</w:t></w:r></w:p><w:p>{}</w:p>{}",
        drawing("9"),
        drawing("9"),
        paragraph("", "Text.")
    );
    let mut files = word(&body);
    let related = files.iter_mut().find(|file| file.0 == "word/_rels/document.xml.rels").unwrap();
    related.1 = relations(&[("9", "chart", "charts/chart1.xml"), ("8", "chart", "charts/none.xml")]);
    files.push(("word/charts/chart1.xml", chart()));
    assert_eq!(read(zip(files)).unwrap().text, format!("As shown.\n\n{CHART_SAYS}\n\nText."));
}
