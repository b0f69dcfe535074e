use super::*;

const SIZE: f32 = 10.0;
const PAGE: (f32, f32) = (595.0, 842.0);

/// Glyphs of a line, each half a size wide.
fn line(text: &str, left: f32, base: f32) -> Vec<PageGlyph> {
    let glyph = |(at, c): (usize, char)| {
        let left = left + f32::from(u16::try_from(at).unwrap()) * 5.0;
        let place = PageBox { left, top: base - 7.5, right: left + 5.0, bottom: base + 2.2 };
        PageGlyph { text: c.to_string(), place, base, size: SIZE, turned: 0, vertical: false }
    };
    text.chars().enumerate().map(glyph).collect()
}

fn all_marked(glyphs: Vec<PageGlyph>, texts: &[TextToMark]) -> Vec<[i32; 4]> {
    let whole = |place: PageBox| {
        [place.left, place.top, place.right, place.bottom].map(|edge| {
            #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
            let edge = edge.round() as i32;
            edge
        })
    };
    let boxes = MarkedText::of_glyphs(glyphs).find_all(texts, PAGE);
    boxes.into_iter().map(whole).collect()
}

fn marked(glyphs: Vec<PageGlyph>, text: &str) -> Vec<[i32; 4]> {
    all_marked(glyphs, &[text.into()])
}

#[test]
fn a_text_over_two_lines_has_a_box_for_each_also_where_a_word_is_divided() {
    let mut page = line("An engine reads the syntac-", 50.0, 100.0);
    page.extend(line("tically familiar names. The rest", 50.0, 112.0));
    let boxes = marked(page, "reads the syntactically familiar names");
    // "reads" begins at the eleventh letter, "names" ends at the twenty-second.
    assert_eq!(boxes, [[99, 92, 186, 103], [49, 104, 161, 115]]);
}

#[test]
fn ligatures_accents_and_spaces_do_not_matter() {
    let mut page = line("the o", 50.0, 100.0);
    let mut ligature = line("f", 75.0, 100.0);
    ligature[0].text = "\u{fb03}".to_owned();
    page.extend(ligature);
    page.extend(line("ce of the cafe\u{301}", 80.0, 100.0));
    assert_eq!(marked(page, "The  office of\nthe café").len(), 1);
}

#[test]
fn a_row_of_a_table_is_found_though_the_page_is_written_column_by_column() {
    let mut page = line("Revenue", 50.0, 100.0);
    page.extend(line("Expenses", 50.0, 112.0));
    page.extend(line("1,234", 200.0, 100.0));
    page.extend(line("987", 200.0, 112.0));
    page.extend(line("1,100", 300.0, 100.0));
    page.extend(line("1,001", 300.0, 112.0));
    let boxes = marked(page, "| Expenses | 987 | 1,001 |");
    assert_eq!(boxes.len(), 3, "{boxes:?}");
    assert!(boxes.iter().all(|place| place[1] == 104), "{boxes:?}");
}

#[test]
fn what_a_passage_says_of_the_page_before_is_not_looked_for_here() {
    let page = line("and goes on over here until it ends.", 50.0, 100.0);
    let boxes = marked(page, "It begins on the page before and goes on over here until it ends.");
    assert_eq!(boxes, [[49, 92, 226, 103]]);
}

#[test]
fn a_phrase_of_the_page_before_that_stands_here_too_is_not_marked() {
    let mut page = line("The financial statements are audited.", 50.0, 100.0);
    for base in [112.0, 124.0, 136.0] {
        page.extend(line("Nothing of this line is quoted by anybody who writes of the page.", 50.0, base));
    }
    page.extend(line("carried over to this page and goes on until its very end.", 50.0, 200.0));
    let text =
        "Our financial statements of the year was carried over to this page and goes on until its very end.";
    assert_eq!(marked(page, text), [[49, 192, 331, 203]]);
}

#[test]
fn the_columns_of_a_page_are_marked_each() {
    let mut page = line("end of the left column", 50.0, 700.0);
    page.extend(line("begins the right column", 300.0, 100.0));
    assert_eq!(marked(page, "end of the left column begins the right column").len(), 2);
}

#[test]
fn a_hebrew_line_is_found_by_its_logical_order() {
    let visual: String = "שלום עולם טוב".chars().rev().collect();
    assert_eq!(marked(line(&visual, 50.0, 100.0), "שלום עולם טוב").len(), 1);
}

#[test]
fn nothing_is_marked_where_nothing_is_found() {
    assert_eq!(
        marked(line("some other text that is long", 50.0, 100.0), "words from elsewhere"),
        [[0; 4]; 0]
    );
    assert_eq!(marked(line("ab", 50.0, 100.0), ""), [[0; 4]; 0]);
    assert_eq!(marked(Vec::new(), "something that is long enough"), [[0; 4]; 0]);
}

/// A page that says a word in three places.
fn contract() -> Vec<PageGlyph> {
    let mut page = line("Agreement", 50.0, 100.0);
    page.extend(line("this Agreement is made between", 50.0, 112.0));
    page.extend(line("an end of the Agreement is told", 50.0, 124.0));
    page
}

#[test]
fn of_the_same_words_those_are_marked_that_stand_between_what_is_around_them() {
    let between = |before: &str, after: &str| TextToMark {
        text: "Agreement".to_owned(),
        before: before.to_owned(),
        after: after.to_owned(),
    };
    for (mark, place) in [
        (between("", "this Agreement is"), [49, 92, 96, 103]),
        (between("Agreement\nthis ", " is made between"), [74, 104, 121, 115]),
        (between("end of the ", ""), [119, 116, 166, 127]),
        // What is around it stands nowhere.
        (between("something else that", "was signed"), [49, 92, 96, 103]),
    ] {
        assert_eq!(all_marked(contract(), std::slice::from_ref(&mark)), [place], "{mark:?}");
    }
}

#[test]
fn what_two_texts_share_is_marked_once() {
    let texts = ["is made between", "Agreement is made"].map(TextToMark::from);
    // "is made between" begins at the sixteenth letter of its line, "Agreement" at the sixth.
    assert_eq!(all_marked(contract(), &texts), [[124, 104, 201, 115], [74, 104, 121, 115]]);
    let twice = ["is made between", "is made between"].map(TextToMark::from);
    assert_eq!(all_marked(contract(), &twice).len(), 1);
}

#[test]
fn words_that_were_recognised_are_found_like_letters() {
    let word = |text: &str, left: f32| RecognisedWord {
        text: text.to_owned(),
        place: PageBox { left, top: 100.0, right: left + 40.0, bottom: 110.0 },
        confidence: 90,
    };
    let words = [word("Invoice", 50.0), word("number", 95.0), word("4711", 140.0), word("paid", 190.0)];
    let boxes = MarkedText::of_words(&words).find_all(&["number 4711".into()], PAGE);
    assert_eq!(boxes, [PageBox { left: 94.0, top: 99.0, right: 181.0, bottom: 111.0 }]);
}

#[test]
fn a_page_of_one_repeated_letter_takes_no_time_to_speak_of() {
    let page: Vec<PageGlyph> =
        (0..200_u8).flat_map(|row| line(&"a".repeat(500), 0.0, f32::from(row))).collect();
    assert!(!marked(page, &"a".repeat(20_000)).is_empty());
}
