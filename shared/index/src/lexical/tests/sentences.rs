use super::*;

fn split(text: &str) -> Vec<&str> {
    sentences(text).map(|(start, end)| &text[start..end]).collect()
}

#[test]
fn sentences_end_where_a_reader_would_end_them() {
    assert_eq!(split("One. Two! Three?  "), ["One.", "Two!", "Three?"]);
    assert_eq!(
        split("Dr. Smith met J. Doe, e.g. at 3.5 km. They left."),
        ["Dr. Smith met J. Doe, e.g. at 3.5 km.", "They left."]
    );
    assert_eq!(split("Das gilt z.B. Dienstags. Ende."), ["Das gilt z.B. Dienstags.", "Ende."]);
    assert_eq!(split("猫がいる。犬もいる！"), ["猫がいる。", "犬もいる！"]);
    assert!(split(" \n\n ").is_empty());
}

#[test]
fn a_line_break_inside_a_paragraph_ends_no_sentence() {
    assert_eq!(
        split("This sentence was broken\r\nby a PDF. The next\none too."),
        ["This sentence was broken\r\nby a PDF.", "The next\none too."]
    );
    assert_eq!(split("# Title\nBody text\n\nOther"), ["# Title", "Body text", "Other"]);
    assert_eq!(split("Items:\n- first thing\n- second thing"), ["Items:", "- first thing", "- second thing"]);
    assert_eq!(
        split("Scope\nThis document describes the interface."),
        ["Scope", "This document describes the interface."]
    );
}

#[test]
fn a_sentence_without_an_end_is_cut_between_words() {
    let long = "word ".repeat(300);
    let pieces = split(&long);
    assert!(pieces.len() >= 4);
    assert!(
        pieces.iter().all(|piece| piece.chars().count() <= MAX_SENTENCE_CHARS && piece.ends_with("word"))
    );
    let unbroken = "字".repeat(1_000);
    assert_eq!(split(&unbroken).concat(), unbroken);
    assert!(split(&unbroken).iter().all(|piece| piece.chars().count() <= MAX_SENTENCE_CHARS));
    assert_eq!(split(&"x".repeat(1_000)).concat().len(), 1_000);
}

#[test]
fn the_best_sentence_is_the_one_that_answers() {
    let text =
        "Lectern is a service. Lectern listens on port 8080 by default. Lectern stores its data in SQLite.";
    let best = |query| best_sentence(query, text).map(|range| &text[range]);
    assert_eq!(best("Which port does Lectern listen on?"), Some("Lectern listens on port 8080 by default."));
    assert_eq!(best("where is the data stored"), Some("Lectern stores its data in SQLite."));
    assert_eq!(best("what is quantum gravity"), None);
    assert_eq!(best(""), None);
    let text = "東京は日本の首都である。富士山の高さは3776メートルである。";
    assert_eq!(
        best_sentence("富士山の高さは？", text).map(|range| &text[range]),
        Some("富士山の高さは3776メートルである。")
    );
}

#[test]
fn what_a_heading_or_a_question_introduces_is_the_best_sentence() {
    for (query, text, best) in [
        (
            "How do I reset my password?",
            "## How do I reset my password?\n\nOpen the sign-in page and choose Forgot.",
            "Open the sign-in page and choose Forgot.",
        ),
        (
            "When are the quiet hours?",
            "# House rules\n\n## Quiet hours\n\n---\n\nQuiet time is from ten to six. Be kind.",
            "Quiet time is from ten to six.",
        ),
        (
            "How do I reset it?",
            "question: How do I reset it?\nanswer: Click the link.",
            "answer: Click the link.",
        ),
        (
            "Where do I park?",
            "Where do I park? Behind the house. Where do I sleep? Upstairs.",
            "Behind the house.",
        ),
        // Of a heading in two sentences, too.
        ("How does the pump start?", "# 2. The pump's start\n\nPull the lever.", "Pull the lever."),
        // What introduces nothing is the best there is.
        ("Where do I park?", "Dogs are allowed. Where do I park?", "Where do I park?"),
        ("parking", "## Parking\n\n## Pets\n\nDogs are allowed.", "## Parking"),
        ("ticket 4711", "#4711 is the ticket. It is closed.", "#4711 is the ticket."),
    ] {
        assert_eq!(best_sentence(query, text).map(|range| &text[range]), Some(best), "{query} in {text}");
    }
}

#[test]
fn of_a_table_the_row_that_is_asked_for_is_the_best_sentence() {
    let text = "These are our goods, when you will have them, and what we want for them.\n\n\
                | Product | Delivery time | Price |\n|---|:-:|--:|\n| A100 | 3 days | 10 euros |\n\
                | B200 | 9 days | 20 euros |\n\n| Product | Weight |\n|---|---|\n| B200 | 5 kg |\n";
    let best = |query| best_sentence(query, text).map(|range| &text[range]);
    assert_eq!(best("What is the delivery time of product B200?"), Some("| B200 | 9 days | 20 euros |"));
    assert_eq!(best("What is the delivery time of product A100?"), Some("| A100 | 3 days | 10 euros |"));
    assert_eq!(best("What is the weight of product B200?"), Some("| B200 | 5 kg |"));
    assert_eq!(best("which products and prices are there"), Some("| Product | Delivery time | Price |"));
    // As Markdown has it too.
    let text =
        "Product | Delivery time\n--- | ---\nDesk | 3 weeks\nLamp | 2 days\nWe deliver on working days.";
    let best = |query| best_sentence(query, text).map(|range| &text[range]);
    assert_eq!(best("What is the delivery time of the desk?"), Some("Desk | 3 weeks"));
    assert_eq!(best("Delivery time lamp"), Some("Lamp | 2 days"));
    assert_eq!(best("On which days do you deliver?"), Some("We deliver on working days."));
}
