//! PPTX.

use super::*;

const DRAWING: &str = r#"xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;

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
        "<p:graphicFrame><a:tbl><a:tr><a:tc rowSpan=\"2\"><a:p>{}</a:p></a:tc><a:tc><a:p>{}</a:p></a:tc></a:tr><a:tr><a:tc vMerge=\"1\"><a:p/></a:tc><a:tc><a:p>{}</a:p></a:tc></a:tr></a:tbl></p:graphicFrame>",
        run("k"),
        run("v"),
        run("w")
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
            relations(&[
                ("r", "notesSlide", "../notesSlides/notesSlide1.xml"),
                ("c", "chart", "../charts/chart1.xml"),
                ("d", "chart", "../charts/chart2.xml"),
            ]),
        ),
        ("ppt/charts/chart1.xml", chart()),
        // A broken chart is not worth the presentation.
        ("ppt/charts/chart2.xml", "<c:chartSpace><c:chart>".to_owned()),
        ("ppt/notesSlides/notesSlide1.xml", notes),
    ];
    let read = read(zip(files)).unwrap();
    assert_eq!(read.about.pages, Some(2));
    assert_eq!(
        read.text,
        format!(
            "## The plan\n\n- Point\n    - Detail\n1. step\n\nFree\n\n| k | v |\n| --- | --- |\n| k | w |\n\n{CHART_SAYS}\n\nSpeaker notes:\n\nSmile.\n\n## Last"
        )
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
