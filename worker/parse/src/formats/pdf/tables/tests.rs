use super::super::{fragment::TextFragment, layout};

const SIZE: f32 = 10.0;

/// A piece of text, half a size to a character.
fn piece(text: &str, left: f32, base: f32) -> TextFragment {
    let width = f32::from(u16::try_from(text.chars().count()).unwrap()) * SIZE * 0.5;
    TextFragment::new(text, left, left + width, base, SIZE).unwrap()
}

/// A number that ends at a place, as columns of numbers do.
fn number(text: &str, right: f32, base: f32) -> TextFragment {
    let width = f32::from(u16::try_from(text.chars().count()).unwrap()) * SIZE * 0.5;
    TextFragment::new(text, right - width, right, base, SIZE).unwrap()
}

/// The rows of a statement: a label, and numbers for two years; with signs of a currency in the first row.
fn statement() -> Vec<TextFragment> {
    let mut page = vec![
        piece("Year ended December 31,", 300.0, 700.0),
        piece("2025", 310.0, 688.0),
        piece("2024", 400.0, 688.0),
    ];
    for (at, (label, first, second)) in [
        ("Revenue", "1,234", "987"),
        ("Cost of revenue", "(456)", "(321)"),
        ("Gross profit", "778", "666"),
        ("Other income", "12", "—"),
    ]
    .into_iter()
    .enumerate()
    {
        let base = 676.0 - 12.0 * f32::from(u8::try_from(at).unwrap());
        page.push(piece(label, 50.0, base));
        if at == 0 {
            page.extend([piece("$", 295.0, base), piece("$", 385.0, base)]);
        }
        page.extend([number(first, 340.0, base), number(second, 430.0, base)]);
    }
    page
}

#[test]
fn a_statement_is_a_table_whose_header_stands_over_its_numbers() {
    let text = layout::read(statement());
    assert_eq!(
        text,
        "|| Year ended December 31, 2025 | Year ended December 31, 2024 |\n| --- | --- | --- |\n| Revenue | $1,234 | $987 |\n\
         | Cost of revenue | (456) | (321) |\n| Gross profit | 778 | 666 |\n| Other income | 12 | — |"
            .replace("||", "| |")
    );
}

#[test]
fn text_before_and_after_a_table_stays_text() {
    let mut page =
        vec![piece("The following table shows what was earned in both of the years.", 50.0, 740.0)];
    page.extend(statement());
    page.push(piece("See the notes to these numbers on the pages that follow them.", 50.0, 600.0));
    let text = layout::read(page);
    assert!(text.starts_with("The following table shows"), "{text}");
    assert!(text.contains("years.\n\n|") && text.contains("— |\n\nSee the notes"), "{text}");
}

#[test]
fn a_long_table_says_its_header_again() {
    let mut page =
        vec![piece("Town", 50.0, 780.0), piece("People", 200.0, 780.0), piece("Area", 300.0, 780.0)];
    for row in 0..60_u8 {
        let base = 768.0 - 12.0 * f32::from(row);
        page.push(piece(&format!("A town with number {row}"), 50.0, base));
        page.push(number(&format!("{}", 1_000 + u32::from(row)), 230.0, base));
        page.push(number(&format!("{row}.5"), 320.0, base));
    }
    let text = layout::read(page);
    let blocks: Vec<&str> = text.split("\n\n").collect();
    assert!(blocks.len() > 2, "{text}");
    assert!(blocks.iter().all(|block| block.starts_with("| Town | People | Area |\n| --- |")), "{text}");
    assert_eq!(text.matches("A town with number").count(), 60);
}

#[test]
fn a_label_that_goes_on_below_is_one_and_headings_of_groups_are_rows() {
    let mut page = vec![piece("Item", 50.0, 700.0), piece("2025", 300.0, 700.0), piece("2024", 400.0, 700.0)];
    page.push(piece("Current assets:", 50.0, 688.0));
    page.extend([piece("Cash", 50.0, 676.0), number("17", 320.0, 676.0), number("15", 420.0, 676.0)]);
    page.push(piece("Net cash provided by", 50.0, 664.0));
    page.extend([
        piece("operating activities", 50.0, 652.0),
        number("9", 320.0, 652.0),
        number("8", 420.0, 652.0),
    ]);
    page.extend([piece("Inventory", 50.0, 640.0), number("3", 320.0, 640.0), number("4", 420.0, 640.0)]);
    let text = layout::read(page);
    assert!(text.contains("| Current assets: | | |"), "{text}");
    assert!(text.contains("| Net cash provided by operating activities | 9 | 8 |"), "{text}");
}

#[test]
fn dots_that_lead_to_several_numbers_are_no_part_of_a_statement() {
    let mut page =
        vec![piece("Item", 50.0, 712.0), number("2025", 360.0, 712.0), number("2024", 440.0, 712.0)];
    for (at, label) in ["Revenue ........", "Expenses .......", "Profit . . . . . ."].into_iter().enumerate()
    {
        let base = 700.0 - 12.0 * f32::from(u8::try_from(at).unwrap());
        page.push(piece(label, 50.0, base));
        page.extend([number(&format!("{at}00"), 360.0, base), number(&format!("{at}50"), 440.0, base)]);
    }
    let text = layout::read(page);
    assert_eq!(
        text,
        "| Item | 2025 | 2024 |\n| --- | --- | --- |\n| Revenue | 000 | 050 |\n| Expenses | 100 | 150 |\n| Profit | 200 | 250 |"
    );
}

#[test]
fn contents_lists_and_running_text_are_no_tables() {
    let mut contents = Vec::new();
    let mut list = Vec::new();
    let mut remarks = Vec::new();
    for row in 0..8_u8 {
        let base = 700.0 - 12.0 * f32::from(row);
        contents.push(piece(&format!("Chapter {row} .............."), 50.0, base));
        contents.push(number(&row.to_string(), 400.0, base));
        list.push(piece("•", 50.0, base));
        list.push(piece("something that is said in a whole line of text", 75.0, base));
        remarks.push(piece("a name", 50.0, base));
        remarks.push(piece("what is said of it", 200.0, base));
    }
    for page in [contents, list, remarks] {
        let text = layout::read(page);
        assert!(!text.contains('|'), "{text}");
    }
}

#[test]
fn no_word_is_lost_or_said_twice() {
    // Rows of cells at places that are never quite the same, some over several columns, some empty.
    let mut random = 7_u32;
    let mut next = |below: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u8::try_from((random >> 16) % below).unwrap()
    };
    for _ in 0..200 {
        let mut page = Vec::new();
        let mut words = Vec::new();
        for row in 0..4 + next(12) {
            let base = 700.0 - 12.0 * f32::from(row);
            let mut left = 40.0 + f32::from(next(30));
            for cell in 0..=next(6) {
                let word = format!("w{row}x{cell}x{}", next(250));
                let wide = f32::from(u8::try_from(word.len()).unwrap()) * SIZE * 0.5;
                page.push(piece(&word, left, base));
                left += wide + 2.0 + f32::from(next(60));
                words.push(word);
            }
        }
        let text = layout::read(page);
        let said: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        for word in &words {
            assert_eq!(said.iter().filter(|said| *said == word).count(), 1, "{word} in {text}");
        }
    }
}
