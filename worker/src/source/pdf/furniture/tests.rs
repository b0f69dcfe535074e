use super::remove;

/// Ten lines of a story that says something else on every page.
fn story(page: u32) -> String {
    const WORDS: [&str; 7] = ["harbour", "lighthouse", "keeper", "storm", "ferry", "gull", "pier"];
    let line = |line: u32| {
        let word = |step: u32| WORDS[((page * 31 + line * 17 + step * (page + line)) % 7) as usize];
        format!("The {} saw the {} beside the {} of {}", word(1), word(2), word(3), page * 100 + line)
    };
    (0..10).map(line).collect::<Vec<_>>().join("\n")
}

fn cleaned(first: u32, pages: &[String]) -> Vec<String> {
    let mut pages: Vec<(u32, String)> = (first..).zip(pages.iter().cloned()).collect();
    remove(&mut pages);
    pages.into_iter().map(|(_, text)| text).collect()
}

/// Pages made by `dress` around the story, and what is left of them.
fn undressed(count: u32, dress: impl Fn(u32, String) -> String) -> Vec<String> {
    cleaned(1, &(1..=count).map(|page| dress(page, story(page))).collect::<Vec<_>>())
}

fn stories(count: u32) -> Vec<String> {
    (1..=count).map(story).collect()
}

/// What is left is what was there.
fn assert_untouched(pages: &[String]) {
    assert_eq!(cleaned(1, pages), pages);
}

#[test]
fn titles_and_page_numbers_go_however_they_are_written() {
    for number in [
        "{}",
        "- {} -",
        "Page {} of 9",
        "{}/9",
        "{} of 9",
        "[{}]",
        "Seite {}",
        "p. {}",
        "{} | Annual Report 2024",
    ] {
        let left = undressed(9, |page, text| {
            format!(
                "Annual Report 2024\nACME Corporation\n{text}\n{}",
                number.replace("{}", &page.to_string())
            )
        });
        assert_eq!(left, stories(9), "{number}");
    }
}

#[test]
fn blank_lines_between_paragraphs_stay_and_those_around_the_furniture_go() {
    let left = undressed(5, |page, text| {
        format!("Annual Report\n\n{text}\n\nA second paragraph of {page}00\n\n{page}")
    });
    let expected: Vec<String> =
        (1..=5).map(|page| format!("{}\n\nA second paragraph of {page}00", story(page))).collect();
    assert_eq!(left, expected);
}

#[test]
fn left_and_right_pages_may_say_different_things() {
    let left = undressed(12, |page, text| {
        if page % 2 == 0 {
            format!("{page}\tThe Old Harbour\n{text}")
        } else {
            format!("Ingrid Lind\t{page}\n{text}")
        }
    });
    assert_eq!(left, stories(12));
}

#[test]
fn a_gazette_counts_its_pages_among_other_numbers() {
    let left = undressed(12, |page, text| {
        let (issue, page) = ("Harbour Gazette / Vol. 85, No. 152 / Thursday, August 6, 2020", page + 47_697);
        if page % 2 == 0 { format!("{page} {issue}\n{text}") } else { format!("{issue} {page}\n{text}") }
    });
    assert_eq!(left, stories(12));
}

#[test]
fn the_first_pages_of_chapters_may_go_without() {
    let left = undressed(10, |page, text| match page {
        1 | 6 => text,
        _ => format!("The Old Harbour\n{text}\n{}", page + 12),
    });
    assert_eq!(left, stories(10));
}

#[test]
fn a_preface_may_be_numbered_by_itself() {
    let roman = ["i", "ii", "iii", "iv", "v", "vi"];
    let left = undressed(20, |page, text| match roman.get(page as usize - 1) {
        Some(number) => format!("{text}\n{number}"),
        None => format!("{text}\n{}", page - 6),
    });
    assert_eq!(left, stories(20));
}

#[test]
fn a_few_pages_are_too_few_to_tell() {
    let pages: Vec<_> = (1..=3).map(|page| format!("Annual Report\n{}\n{page}", story(page))).collect();
    assert_untouched(&pages);
}

#[test]
fn the_head_of_a_table_that_goes_on_stays_and_the_title_above_it_goes() {
    for (gap, head) in [("\t", "Name\tTown\tAge"), (" ", "Name Town Age")] {
        let rows = |page: u32| {
            let row = |row: u32| {
                let name = ["Ada", "Bo", "Cy", "Di", "Eve"][(row % 5) as usize];
                format!("{name}{row}{gap}T{}{gap}{}", page * 7 + row, page * 10 + row)
            };
            format!("{head}\n{}", (0..8).map(row).collect::<Vec<_>>().join("\n"))
        };
        let bare: Vec<String> = (1..=6).map(rows).collect();
        assert_untouched(&bare);
        let titled: Vec<String> = (1..=6)
            .map(|page| format!("Register of the harbour\n{}\nPage {page} of 6", rows(page)))
            .collect();
        assert_eq!(cleaned(1, &titled), bare);
    }
}

#[test]
fn a_table_stays_whole_with_what_is_said_of_it_and_the_title_above_it_goes() {
    let table = |page: u32| {
        let row = |row: u32| format!("| Town {row} | {} | {} |", page * 7 + row, page * 10 + row);
        let rows = (0..8).map(row).collect::<Vec<_>>().join("\n");
        format!("| Town | People | Area |\n| --- | --- | --- |\n{rows}\n| Sum | 5 | 7 |")
    };
    let bare: Vec<String> = (1..=6).map(table).collect();
    assert_untouched(&bare);
    let remarked: Vec<String> = bare.iter().map(|table| format!("(in thousands)\n\n{table}")).collect();
    assert_untouched(&remarked);
    let titled: Vec<String> = (1..=6)
        .zip(&bare)
        .map(|(page, table)| format!("Register of the harbour\n\n{table}\n\nPage {page} of 6"))
        .collect();
    assert_eq!(cleaned(1, &titled), bare);
}

#[test]
fn a_title_that_counts_with_the_pages_stays_where_the_pages_have_numbers_besides() {
    let left = undressed(9, |page, text| format!("Case Study {page}\n\n{text}\n{page}"));
    let expected: Vec<String> =
        (1..).zip(stories(9)).map(|(page, story)| format!("Case Study {page}\n\n{story}")).collect();
    assert_eq!(left, expected);
}

#[test]
fn what_is_said_on_one_page_only_stays_wherever_it_stands() {
    let left = undressed(9, |page, text| match page {
        4 => format!("Annual Report\nThe ferry is sold\n{text}\nSo says the keeper\n{page}"),
        _ => format!("Annual Report\n{text}\n{page}"),
    });
    let mut expected = stories(9);
    expected[3] = format!("The ferry is sold\n{}\nSo says the keeper", expected[3]);
    assert_eq!(left, expected);
}

#[test]
fn a_refrain_stays() {
    let stanza = |page: u32| story(page).replacen("\nThe", "\n\nThe", 4);
    let verses: Vec<_> =
        (1..=8).map(|page| format!("{}\nAnd miles to go before I sleep", stanza(page))).collect();
    assert_untouched(&verses);
    let spoken: Vec<_> =
        (1..=8).map(|page| format!("{}\nQuoth the raven: Nevermore!", story(page))).collect();
    assert_untouched(&spoken);
    let often: Vec<_> = (1..=8)
        .map(|page| format!("Row the boat\n{}\nRow the boat\n{}", story(page), story(page + 50)))
        .collect();
    assert_untouched(&often);
}

#[test]
fn short_pages_stay() {
    assert_untouched(
        &(1..=9).map(|page| format!("This page tells of the number {page}.")).collect::<Vec<_>>(),
    );
    assert_untouched(&(1..=9).map(|page| format!("Annual Report\n{page}")).collect::<Vec<_>>());
    assert_untouched(&vec!["All work and no play\nmakes Jack a dull boy".to_owned(); 9]);
}

#[test]
fn a_page_that_is_nothing_but_furniture_stays_as_it_is() {
    let left = undressed(9, |page, text| {
        let text = if page == 4 { String::new() } else { text + "\n" };
        format!("Annual Report\n{text}{page}")
    });
    assert_eq!(left[3], "Annual Report\n4");
    assert_eq!(left[4], story(5));
}

#[test]
fn copies_of_one_form_keep_its_labels() {
    let form = |page: u32| {
        format!(
            "Registration form\nName of the ship\nShip {}\nHome port\nPort {}\nSignature",
            page * 37,
            page * 91
        )
    };
    assert_untouched(&(1..=8).map(form).collect::<Vec<_>>());
}

#[test]
fn what_is_counted_by_pages_is_not_always_a_page() {
    for label in ["Question {}", "Invoice No. {}", "Report Nr. {}", "Harbour invoice {}"] {
        let pages: Vec<_> = (1..=9)
            .map(|page: u32| format!("{}\n{}", label.replace("{}", &(page + 1_000).to_string()), story(page)))
            .collect();
        assert_untouched(&pages);
    }
}

#[test]
fn numbers_that_do_not_count_with_the_pages_stay() {
    let pages: Vec<_> =
        (1..=9).map(|page: u32| format!("{}\n{}", story(page), page * page * 13 % 101)).collect();
    assert_untouched(&pages);
    let lines: Vec<_> = (1..=9).map(|page| vec![format!("Page {page} has its say"); 12].join("\n")).collect();
    assert_untouched(&lines);
}

#[test]
fn a_line_that_is_now_here_and_now_there_stays() {
    let pages: Vec<_> = (1..=9)
        .map(|page: u32| {
            let mut lines: Vec<String> = story(page).lines().map(str::to_owned).collect();
            lines.insert((page as usize * 4) % 10, "Silence fell".to_owned());
            lines.join("\n")
        })
        .collect();
    assert_untouched(&pages);
}

#[test]
fn a_selection_of_pages_is_judged_by_the_numbers_that_the_pages_have() {
    let pages: Vec<_> = (41..=47).map(|page| format!("{}\n{}", story(page), page - 8)).collect();
    assert_eq!(cleaned(41, &pages), (41..=47).map(story).collect::<Vec<_>>());
}

#[test]
fn a_footer_in_small_letters_is_not_taken_for_the_other_half_of_a_word() {
    let left = undressed(6, |page, text| format!("The Harbour\n{text}\na new st-\npage {page} of 6"));
    let expected: Vec<String> = (1..=6).map(|page| format!("{}\na new st-", story(page))).collect();
    assert_eq!(left, expected);
}
