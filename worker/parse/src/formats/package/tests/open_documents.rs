//! ODT and ODP.

use super::*;

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
fn each_row_of_an_open_document_says_what_the_cell_says_that_it_shares() {
    let cell = |attributes: &str, text: &str| {
        format!("<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>")
    };
    let covered = "<table:covered-table-cell/>".to_owned();
    let row = |cells: &[String]| format!("<table:table-row>{}</table:table-row>", cells.concat());
    let (rows, columns) = (r#"table:number-rows-spanned="2""#, r#"table:number-columns-spanned="2""#);
    let two = r#"<table:covered-table-cell table:number-columns-repeated="2"/>"#.to_owned();
    let table = [
        row(&[cell(rows, "Group"), cell(columns, "Year"), covered.clone()]),
        row(&[covered.clone(), cell("", "H1"), cell("", "H2")]),
        row(&[cell(&format!("{rows} {columns}"), "Fruit"), covered, cell("", "1")]),
        row(&[two, cell("", "2")]),
    ];
    let content = format!("<table:table>{}</table:table>", table.concat());
    assert_eq!(
        read(open_document("text", &content, "<m/>")).unwrap().text,
        "| Group | Year | |\n| --- | --- | --- |\n| Group | H1 | H2 |\n| Fruit | | 1 |\n| Fruit | | 2 |"
    );
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
