//! What counts as a quotation, and what does not.

use super::{find_quote, quoted_spans, verify_quote};

fn found<'a>(quote: &str, text: &'a str) -> Option<&'a str> {
    verify_quote(quote, text).map(|range| &text[range])
}

#[test]
fn a_quotation_is_found_over_line_breaks_and_runs_of_blanks() {
    let text = "Intro.  The quick\n brown\u{A0}fox\tjumps. End";
    assert_eq!(found("The quick brown fox jumps.", text), Some("The quick\n brown\u{A0}fox\tjumps."));
    assert_eq!(found("  The   quick brown ", text), Some("The quick\n brown"));
}

#[test]
fn a_line_that_ends_after_a_hyphen_is_white_space_and_the_hyphen_is_a_hyphen() {
    let text = "a well-\n known state-of-the-art exam-\nple";
    assert_eq!(found("a well-known state", text), Some("a well-\n known state"));
    assert_eq!(found("a well-\nknown state", text), Some("a well-\n known state"));
    assert!(found("state-of-the-art", text).is_some());
    assert!(found("stateoftheart", text).is_none());
    // It may as well be the word's own: to re-sign is not to resign.
    assert!(found("an example", "an exam-\nple").is_none());
    assert!(found("They resign today", "They re-\nsign today").is_none());
    assert!(found("an exam-\nple", "an example here").is_none());
    assert!(found("pre- and post-war", "pre-\nand post-war").is_some());
    assert!(found("pre- and well-known", "pre-\nand well-\nknown").is_some());
    assert!(found("from 19901995 on", "from 1990-\n1995 on").is_none());
    assert!(found("from 1990-1995 on", "from 1990-\n1995 on").is_some());
    assert!(found("a - b", "a -b").is_none());
}

#[test]
fn marks_of_where_lines_may_break_are_not_read() {
    assert_eq!(found("the software is", "the soft\u{AD}ware is"), Some("the soft\u{AD}ware is"));
    assert!(found("the software is", "the soft\u{AD}\n ware is").is_some());
    assert!(found("the soft\u{AD}ware is", "the software is").is_some());
    assert!(found("a long/path", "a long/\u{200B}path").is_some());
    assert!(found("\u{FEFF}first line", "first line").is_some());
    assert!(found("soft ware", "soft\u{AD}ware").is_none());
    assert!(found("longpath", "long\u{200B} path").is_none());
}

#[test]
fn ligatures_and_decomposed_accents_are_the_same_letters() {
    assert_eq!(found("an efficient office", "an eﬃcient oﬃce"), Some("an eﬃcient oﬃce"));
    assert_eq!(found("an eﬃcient office", "an efficient office"), Some("an efficient office"));
    assert_eq!(found("the café is", "the cafe\u{301} is"), Some("the cafe\u{301} is"));
    assert!(found("the cafe", "the café").is_none());
    assert!(found("the cafe", "the cafe\u{301}").is_none());
    // The marks of a letter in another order.
    assert_eq!(found("Việt Nam", "Vie\u{302}\u{323}t Nam"), Some("Vie\u{302}\u{323}t Nam"));
    assert_eq!(found("của Việ", "của Vie\u{302}\u{323}"), Some("của Vie\u{302}\u{323}"));
    // Letters that only look alike are others.
    for (quote, text) in
        [("Æsop wrote", "Aesop wrote"), ("the œuvre", "the oeuvre"), ("a p\u{430}ypal", "a paypal")]
    {
        assert!(found(quote, text).is_none(), "{quote}");
    }
}

#[test]
fn parts_around_an_ellipsis_must_stand_in_order() {
    let text = "One two three, at last. Four five six. Seven eight nine.";
    for ellipsis in ["…", "...", "[...]", "(…)", ". . .", "....", "⋯", "……"] {
        let quote = format!("One two three {ellipsis} Four five six");
        assert_eq!(found(&quote, text), Some("One two three, at last. Four five six"), "{quote}");
    }
    assert_eq!(found("…Four five…", text), Some("Four five"));
    for quote in [
        "Seven eight nine … One two three",
        "One two three … seven eight nine",
        "One two three … five six four",
        "One two three … two three, at",
        "One two three … Four five six seven",
        "One two t… Four five six",
        "One two three … our five six",
        "One two three .. Four five six",
        "One two three [..] Four five six",
        "One two three . . Four five six",
        "One two three Four five six",
        "…",
        "… …",
        "[…]",
        ". . .",
        "",
    ] {
        assert!(found(quote, text).is_none(), "{quote}");
    }
    assert_eq!(found("wait… what", "wait… what"), Some("wait… what"));
    assert!(found("wait what", "wait… what").is_none(), "what was left out is said to be");
}

#[test]
fn an_ellipsis_joins_no_scraps_and_nothing_that_stands_far_apart() {
    let rules = "Bicycles belong in the cellar, never in the stairwell.";
    for quote in [
        "Bicycles belong ... in the stairwell",
        "Bicycles ... belong ... in the stairwell",
        "Bicycles belong in the cellar … stairwell",
    ] {
        assert!(found(quote, rules).is_none(), "{quote}");
    }
    assert!(found("Bicycles belong in … never in the stairwell.", rules).is_some());
    let apart = |characters: usize| {
        format!("The gate opens at six. {} The cellar is locked at night.", "x".repeat(characters))
    };
    let quote = "The gate opens at six. … The cellar is locked at night.";
    assert!(found(quote, &apart(140)).is_some());
    assert!(found(quote, &apart(160)).is_none());
    // The beginning may stand somewhere else as well.
    let twice = format!("The gate opens at six. {}", apart(160) + &apart(20));
    assert!(found(quote, &twice).is_some());
    assert_eq!(
        found("東京は日本の…人口が最も多い", "東京は日本の首都であり、人口が最も多い都市です。"),
        Some("東京は日本の首都であり、人口が最も多い")
    );
    assert!(found("東京は…都市です", "東京は日本の首都であり、人口が最も多い都市です。").is_none());
}

#[test]
fn a_quotation_with_an_ellipsis_is_looked_for_at_once_in_a_repetitive_text() {
    let text = "ab ab ab ".repeat(100_000);
    let quote = format!("ab ab ab … {}x", "ab ".repeat(3_000));
    assert!(verify_quote(&quote, &text).is_none());
}

#[test]
fn other_words_case_and_punctuation_are_not_tolerated() {
    let text = "The sky is blue, she said: “it’s late” – always.";
    for quote in ["the Sky is blue", "The sky is blue.", "it s late", "late” — always", "The sky was blue"]
    {
        assert!(found(quote, text).is_none(), "{quote}");
    }
    assert!(found("x2 plus one", "x² plus one").is_none());
    let text = "In 2023 the company paid 4.2 million euros to its 150 employees, who did not strike.";
    for quote in [
        "In 2024 the company paid",
        "paid 4.3 million",
        "paid 42 million",
        "paid 4,2 million",
        "paid 4.2 billion",
        "paid 4.2 million to its",
        "paid its 150 employees 4.2 million euros",
        "its 150 staff",
        "who did strike",
        "who did not not strike",
        "In 2023, the company",
        "in 2023 The company",
        "IN 2023 THE COMPANY",
        "the com pany",
        "thecompany",
        "its 15O employees",
        "[I]n 2023 the company",
        "In 2023 the [company]",
    ] {
        assert!(found(quote, text).is_none(), "{quote}");
    }
    assert!(found("In 2023 the company paid 4.2 million euros", text).is_some());
}

#[test]
fn signs_of_another_form_are_the_same_and_what_the_text_has_literally_comes_first() {
    let text = "She said: “it’s late” – always. A well\u{2011}known rule of 1990–1995.";
    for quote in ["“it's late”", "\"it’s late\" - always", "A well-known rule", "rule of 1990-1995"] {
        let found = find_quote(quote, text).unwrap_or_else(|| panic!("{quote}"));
        assert!(!found.is_literal, "{quote}");
    }
    assert_eq!(found("\"it's late\" - always", text), Some("“it’s late” – always"));
    assert!(find_quote("“it’s late” –", text).is_some_and(|found| found.is_literal));
    let twice = "It’s very late. It's very late.";
    assert_eq!(find_quote("It's very late", twice).map(|found| found.range.start), twice.find("It's"));
    // A sign is no other one.
    for quote in ["1990—1995", "5 degrees in May", "-5 degrees in June"] {
        assert!(found(quote, "1990–1995: −5 degrees in May, 5 degrees in June").is_none(), "{quote}");
    }
    assert!(found("-5 degrees in May", "It was −5 degrees in May").is_some());
}

#[test]
fn the_case_of_the_first_letter_is_the_sentences_and_no_names() {
    let text = "The pump has to be primed. Before that, the valve is closed.\n\nPolish workers did it.\n- Élan counts.";
    for (quote, stored) in [
        ("the pump has to be", "The pump has to be"),
        ("The valve is closed", "the valve is closed"),
        ("polish workers did it", "Polish workers did it"),
        ("élan counts", "Élan counts"),
        ("the pump has to be … Before that, the valve", "The pump has to be primed. Before that, the valve"),
    ] {
        assert_eq!(found(quote, text), Some(stored), "{quote}");
        assert!(find_quote(quote, text).is_some_and(|found| !found.is_literal), "{quote}");
    }
    for (quote, text) in [
        ("polish workers did it", "They say that Polish workers did it."),
        ("polish workers did it", "They say that\nPolish workers did it."),
        ("us and them alone", "For US and them alone."),
        ("the Pump has to be", "The pump has to be primed."),
        ("The pump Has to be", "the pump has to be primed."),
        ("he pump has to be", "The pump has to be primed."),
        ("ß is a letter of it", "SS is a letter of it."),
        ("the pump is … Before that, The valve", "The pump is primed. Before that, the valve is closed."),
    ] {
        assert!(found(quote, text).is_none(), "{quote}");
    }
    // A place that no sentence begins at is passed over.
    let twice = "The Polish workers left. Polish workers left.";
    assert_eq!(find_quote("polish workers left", twice).map(|found| found.range.start), Some(25));
}

#[test]
fn a_match_does_not_begin_or_end_inside_a_word_or_number() {
    assert!(found("it rose to 10", "it rose to 100").is_none());
    assert!(found("it rose to 1", "it rose to 1.5").is_none());
    assert!(found("500 people came", "1,500 people came").is_none());
    assert!(found("ice cream is good", "nice cream is good").is_none());
    assert_eq!(found("it rose to 1", "it rose to 1.5; later it rose to 1."), Some("it rose to 1"));
    assert_eq!(found("known for it", "well-known for it"), Some("known for it"));
    for (quote, text) in [
        ("5 degrees in March", "It was -5 degrees in March."),
        ("5 degrees in March", "It was (−5 degrees in March)."),
        ("500 people came", "1\u{A0}500 people came"),
        ("it cost 1", "it cost 1\u{202F}500 euros"),
        ("2 cups of rice", "1/2 cups of rice"),
        ("at 10", "at 10:30 in the morning"),
        ("about 10", "about 10^6 of them"),
        ("上升到１０", "上升到１００"),
        ("０００人参加", "１，０００人参加"),
        ("三十", "百分之三十五"),
        ("๑๐", "๑๐๐ บาท"),
    ] {
        assert!(found(quote, text).is_none(), "{quote}");
    }
    assert!(found("1995 was", "1990-1995 was").is_some());
    assert!(found("500 people came", "In 2020 500 people came").is_some());
}

#[test]
fn scripts_without_blanks_match_anywhere_and_over_line_breaks() {
    assert_eq!(found("東京は日本の首都", "今日、東京は日本\nの首都です。"), Some("東京は日本\nの首都"));
    assert_eq!(found("使用 Rust 语言写成", "本程序使用Rust\n语言写成。"), Some("使用Rust\n语言写成"));
    assert!(found("約100万円", "約 100 万円").is_some());
    assert!(found("１ ２", "１２").is_none());
    assert!(found("東京は日本の首部", "東京は日本の首都").is_none());
    assert!(found("日本は東京の首都", "東京は日本の首都").is_none());
}

#[test]
fn odd_input_never_panics_and_ranges_are_slices() {
    let alphabet = [
        'a',
        ' ',
        '\n',
        '-',
        '…',
        '.',
        '[',
        ']',
        'ﬃ',
        '\u{301}',
        'é',
        '한',
        '中',
        '\u{200B}',
        '🏽',
        '\u{10FFFF}',
        '"',
        '“',
        '”',
    ];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = |most: u64| -> String {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        (0..next() % most).map(|_| alphabet[usize::try_from(next()).unwrap() % alphabet.len()]).collect()
    };
    for _ in 0..20_000 {
        let (text, quote) = (draw(40), draw(6));
        if let Some(range) = verify_quote(&quote, &text) {
            assert!(text.get(range.clone()).is_some_and(|slice| !slice.is_empty()), "{text:?} {quote:?}");
        }
        for span in quoted_spans(&text, &|_| false) {
            assert!(text.get(span.inner).is_some() && text.get(span.outer).is_some());
        }
    }
}

#[test]
fn a_text_without_ellipses_or_half_words_quotes_itself() {
    for text in
        ["Ünïcode “quotes” – dashes.", "한국어 문장입니다.", "עברית כאן", "a\r\nb-\r\nc", "นี่คือภาษาไทย"]
    {
        assert_eq!(verify_quote(text, text), Some(0..text.len()), "{text}");
    }
}

#[test]
fn a_long_repetitive_text_is_searched_at_once() {
    let text = "ab ".repeat(200_000);
    assert!(verify_quote(&format!("{}x", "ab ".repeat(50_000)), &text).is_none());
    assert!(verify_quote(&"ab ".repeat(100_000), &text).is_some());
}

#[test]
fn a_repetitive_text_with_a_hyphen_is_searched_in_one_go() {
    let quote = format!("{}-中", "中".repeat(20_000));
    assert!(verify_quote(&quote, &"中".repeat(300_000)).is_none());
    assert_eq!(found("中中-中", "中中中中 中中-中中"), Some("中中-中"));
}

#[test]
fn a_quotation_of_nothing_but_signs_is_read_in_one_go() {
    for sign in
        ["[", "[ ", "[…", "[...", "( ", ".", "..[", "-", "a-", "a- ", "a-\n", "\u{AD}", "“", "\u{301}"]
    {
        let quote = sign.repeat(200_000 / sign.len());
        assert!(verify_quote(&quote, "A short text.").is_none(), "{sign:?}");
        assert!(verify_quote("other words", &quote).is_none(), "{sign:?}");
    }
}

#[test]
fn quoted_spans_know_many_marks_and_stop_at_paragraphs() {
    let inner = |text: &str| -> Vec<String> {
        quoted_spans(text, &|_| false).into_iter().map(|span| text[span.inner].to_owned()).collect()
    };
    assert_eq!(
        inner("“a” „b“ «c» ‹d› 「e」 『f』 \"g\" “h ‘i’ j”"),
        ["a", "b", "c", "d", "e", "f", "g", "h ‘i’ j"]
    );
    assert_eq!(inner("a 5\" pipe and \"real words\" here"), ["real words"]);
    assert!(inner("“never closed\n\nnext” one").is_empty());
    assert_eq!(inner("“over\na line”"), ["over\na line"]);
    // With the marks turned round, as in German, Danish and Swedish books.
    assert_eq!(
        inner("»Der Himmel ist blau.« [1]. Außerdem …: »Das Meer ›hier‹ ist tief« [2]."),
        ["Der Himmel ist blau.", "Das Meer ›hier‹ ist tief"]
    );
    assert_eq!(inner("(»a«) ›b‹ – ”c” *”d”* »… e«"), ["a", "b", "c", "d", "… e"]);
    assert_eq!(inner("« un mot », d’« un autre » et («trois»)."), [" un mot ", " un autre ", "trois"]);
    assert_eq!(inner("«a»,«b», »c«,»d«: »e«"), ["a", "b", "c", "d", "e"]);
    for text in ["Menu » Datei » Neu", "« a\n\nb » [1] et c » [2]", "a» b»c «", "a.” [1] b” c"] {
        assert!(inner(text).is_empty(), "{text}: {:?}", inner(text));
    }
}
