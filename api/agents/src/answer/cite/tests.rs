//! Citations of ordinary and of hostile answers.

use std::{cell::RefCell, ops::Range};

use super::{AnswerCitation, AnswerMarker, AnswerQuotations, CitableSource, cite};

const SKY: &str = "It is known that the sky is blue at noon. Grass is green.";
const SEA: &str = "The sea is deep and wide.";

fn first_sentence(_: &str, text: &str) -> Option<Range<usize>> {
    text.find('.').map(|end| 0..end + 1)
}

fn source(n: usize, text: &str) -> CitableSource<'_> {
    CitableSource { n, text, best: 0 }
}

fn check(answer: &str) -> Vec<AnswerCitation> {
    cite("", answer, &[source(1, SKY), source(2, SEA)], &first_sentence)
}

fn list(answer: &str) -> Vec<(usize, String, bool)> {
    check(answer).into_iter().map(|cited| (cited.n, cited.quote, cited.verified)).collect()
}

#[test]
fn a_quotation_that_the_source_holds_is_verified_with_its_place() {
    let cited = check("As they write, “the sky is blue at noon” [1].").remove(0);
    assert!(cited.verified);
    assert_eq!(&SKY[cited.range.unwrap()], "the sky is blue at noon");
    for answer in [
        "\"the sky is blue at noon.\" [1]",
        "„the sky is blue at noon“ [1]",
        "«the sky is blue at noon»【1】",
        "»the sky is blue at noon« [1]",
        "”the sky is blue at noon” [1]",
        "“the sky is blue at noon”. [1]",
        "“the sky is blue at noon [1]”",
        "“**the sky is blue at noon**” [1]",
        "“the sky is *blue* at __noon__” [1]",
    ] {
        assert!(list(answer)[0].2, "{answer}");
    }
}

#[test]
fn marks_of_emphasis_in_a_quotation_are_the_models_own_unless_the_source_has_them() {
    let of = |answer: &str, text: &str| {
        let cited = cite("", answer, &[source(1, text)], &first_sentence).remove(0);
        (cited.quote, cited.verified)
    };
    let plain = "Bicycles belong in the cellar.";
    assert_eq!(of("\"**in the cellar**\" [1]", plain), ("in the cellar".to_owned(), true));
    let marked = "Bicycles belong **in the cellar**.";
    assert_eq!(of("\"belong **in the cellar**\" [1]", marked), ("belong **in the cellar**".to_owned(), true));
    for (answer, text) in [
        ("\"6 * 3 and 2 * 9 are\" [1]", "6 3 and 2 9 are"),
        ("\"call snake_case_name here\" [1]", "call snakecasename here"),
        ("\"the *last word of it\" [1]", "the last word of it"),
        ("\"**on the roof top**\" [1]", plain),
    ] {
        assert!(!of(answer, text).1, "{answer}");
    }
}

#[test]
fn of_a_quotation_that_is_adapted_to_the_answer_the_passages_own_words_are_told() {
    let text = "It’s the keeper’s lamp. The gate opens at six, and the lamp is lit at dusk.";
    for (answer, quote) in [
        ("\"It's the keeper's lamp\" [1]", "It’s the keeper’s lamp"),
        ("As they say, “the gate opens at six” [1].", "The gate opens at six"),
        ("“The lamp is lit at dusk.” [1]", "the lamp is lit at dusk."),
        ("“**The lamp is lit at dusk.**” [1]", "the lamp is lit at dusk."),
    ] {
        let cited = cite("", answer, &[source(1, text)], &first_sentence).remove(0);
        assert_eq!((cited.quote.as_str(), cited.verified), (quote, true), "{answer}");
        assert_eq!(cited.range.map(|range| &text[range]), Some(quote), "{answer}");
    }
    let both = "“The gate opens at six” [1]. So “the gate opens at six” [1].";
    assert_eq!(cite("", both, &[source(1, text)], &first_sentence).len(), 1);
}

#[test]
fn a_citation_knows_each_of_the_markers_that_stand_for_it() {
    let written = |answer: &str| -> Vec<(usize, Vec<String>)> {
        let text = |markers: &[Range<usize>]| markers.iter().map(|m| answer[m.clone()].to_owned()).collect();
        check(answer).iter().map(|cited| (cited.n, text(&cited.markers))).collect()
    };
    let (one, two) =
        (|m: &[&str]| (1, m.iter().map(|m| (*m).to_owned()).collect()), |m: &str| (2, vec![m.to_owned()]));
    // The same words twice are one citation of two places.
    let twice = "“the sky is blue at noon” [1]. Again: “the sky is blue at noon” 【1】.";
    assert_eq!(written(twice), [one(&["[1]", "【1】"])]);
    assert_eq!(written("Sky 🌊é [1, 2] and `[1]` in code."), [one(&["[1, 2]"]), two("[1, 2]")]);
    assert_eq!(written("“the sky is blue at noon” [1][2]"), [one(&["[1]"]), two("[2]")]);
    // Two wordings of one quote stand at one place.
    let same = "The rule “the sky is blue at noon” means “the sky is blue at noon” [1].";
    assert_eq!(written(same), [one(&["[1]"])]);
}

#[test]
fn of_markers_without_end_few_are_told() {
    let marked = |answer: &str| -> usize { check(answer).iter().map(|cited| cited.markers.len()).sum() };
    assert_eq!(marked(&format!("“the sky is blue at noon” {}", "[1]".repeat(100_000))), 1);
    assert_eq!(marked(&"“the sky is blue at noon” [1][2]. ".repeat(10_000)), super::MAX_MARKED);
}

#[test]
fn a_quotation_that_the_source_does_not_hold_stays_and_is_not_verified() {
    let cited = check("“the sky is red at noon” [1]").remove(0);
    assert_eq!((cited.quote.as_str(), cited.verified, cited.range), ("the sky is red at noon", false, None));
}

#[test]
fn the_words_of_a_citation_that_was_not_verified_are_told_apart_by_the_answer() {
    for (answer, is_quoted) in [
        ("“the sky is red at noon” [1]", true),
        ("It says \"Bicycles belong on the roof top\" [1].", true),
        ("“the sky is red [1] at noon” and more [1]", true),
        ("The “sky” is blue [1].", false),
        ("The sky is blue at noon [1].", false),
        ("`“the sky is red at noon”` [1]", false),
    ] {
        let quoted = AnswerQuotations::of(answer);
        for cited in check(answer) {
            assert_eq!(quoted.holds(&cited.quote), is_quoted, "{answer}: {cited:?}");
        }
    }
}

#[test]
fn without_a_quotation_the_best_sentence_is_given_unverified() {
    assert_eq!(list("The sea is deep [2]."), [(2, SEA.to_owned(), false)]);
    assert_eq!(list("The “sea” is deep [2]."), [(2, SEA.to_owned(), false)]);
}

#[test]
fn the_claim_is_the_sentence_without_its_markers() {
    let claims = parking_lot::Mutex::new(Vec::new());
    let note = |claim: &str, _: &str| {
        claims.lock().push(claim.to_owned());
        None
    };
    let answer = "First one. Dr. No says [1] it is so [2]. Third.[1]";
    cite("Who says so?", answer, &[source(1, SKY), source(2, SEA)], &note);
    // What finds nothing is looked for in other words, the question once for each passage.
    let said = [
        "Dr. No says",
        "Dr. No says it is so.",
        "Who says so?",
        "Dr. No says it is so",
        "Who says so?",
        "Third.",
    ];
    assert_eq!(*claims.lock(), said);
}

#[test]
fn a_citation_of_a_passage_with_text_shows_some_of_it() {
    let rules = "# House rules\n\nBicycles belong in the cellar. Prams may stand in the hall.";
    let of = |question: &str, answer: &str| {
        let words = |claim: &str, passage: &str| {
            let word = claim.split_whitespace().find(|word| word.len() > 3 && passage.contains(*word))?;
            let at = passage.find(word)?;
            let start = passage[..at].rfind(['.', '\n']).map_or(0, |end| end + 1);
            let end = passage[at..].find('.').map_or(passage.len(), |end| at + end + 1);
            Some(start..end)
        };
        let cited = cite(question, answer, &[source(1, rules)], &words).remove(0);
        assert!(!cited.verified, "{answer}");
        assert_eq!(cited.range.map(|range| &rules[range]), Some(cited.quote.as_str()), "{answer}");
        cited.quote.trim().to_owned()
    };
    let (cellar, hall) = ("Bicycles belong in the cellar.", "Prams may stand in the hall.");
    assert_eq!(of("", "According to [1], bicycles belong in the cellar."), cellar);
    assert_eq!(of("", "[1] Bicycles belong below."), cellar);
    assert_eq!(of("", "They say:\n[1] Bicycles belong below."), cellar);
    assert_eq!(of("", "- [1] Bicycles belong below."), cellar);
    assert_eq!(of("", "So it is. [1] Bicycles are no matter."), "# House rules", "that is the next sentence");
    assert_eq!(of("Where may Prams stand?", "Les poussettes vont dans le couloir [1]."), hall);
    assert_eq!(of("どこですか", "自転車は地下室に置きます[1]。"), "# House rules");
}

#[test]
fn of_a_passage_that_nothing_points_into_the_part_that_was_found_is_shown() {
    let text = "A sentence before. The one that was found. And more.";
    let best = text.find("The one").unwrap();
    for (best, shown) in
        [(best, "The one that was found."), (0, "A sentence before."), (1_000, "A sentence before.")]
    {
        let cited = cite("", "Nope [1].", &[CitableSource { n: 1, text, best }], &|_, _| None).remove(0);
        assert_eq!(cited.quote, shown);
    }
    for (text, shown) in [(" \n***\n", "***"), (" \n", ""), ("", ""), ("…\n\n the end", "the end")] {
        let cited = cite("", "Nope [1].", &[source(1, text)], &|_, _| None).remove(0);
        assert_eq!((cited.quote.as_str(), cited.verified), (shown, false), "{text:?}");
    }
    let long = "é".repeat(5_000);
    let cited = cite("", "Nope [1].", &[source(1, &long)], &|_, _| None).remove(0);
    assert_eq!(cited.quote, "é".repeat(1_000));
}

#[test]
fn a_quotation_belongs_to_its_own_sentence_and_marker() {
    assert_eq!(
        list("“the sky is blue at noon” [1] and the sea is deep [2]."),
        [(1, "the sky is blue at noon".to_owned(), true), (2, SEA.to_owned(), false)]
    );
    assert_eq!(
        list("They said “the sky is blue at noon”. The sea is deep [2]."),
        [(2, SEA.to_owned(), false)]
    );
    let both = list("“the sky is blue at noon” [1][2]");
    assert_eq!(both.iter().map(|cited| (cited.0, cited.2)).collect::<Vec<_>>(), [(1, true), (2, false)]);
}

#[test]
fn every_quotation_that_a_marker_stands_for_is_looked_up() {
    let of = |answer: &str| {
        let seen = list(answer).into_iter().map(|(n, quote, verified)| (n, quote.len(), verified));
        seen.collect::<Vec<_>>()
    };
    assert_eq!(
        list("They say “profits grew tenfold” and “the sky is blue at noon” [1]."),
        [(1, "the sky is blue at noon".to_owned(), true), (1, "profits grew tenfold".to_owned(), false)]
    );
    // Of several sources, each one is cited for what it holds.
    assert_eq!(
        of("“the sky is blue at noon” and “sea is deep and wide” [1, 2]."),
        [(1, 23, true), (2, 20, true)]
    );
    assert_eq!(
        of("“the sky is red at noon” and “Grass is blue.” [1][2]."),
        [(1, 14, false), (1, 22, false), (2, 14, false), (2, 22, false)]
    );
    assert_eq!(of("“the sky is blue at noon” is “sky” for short [1]."), [(1, 23, true)]);
    let many = (0..50).fold(String::new(), |text, k| text + &format!("“number {k} of many”, "));
    assert_eq!(list(&format!("{many} all of it [1].")).len(), 8);
}

#[test]
fn what_looks_like_a_marker_may_be_the_sources_own() {
    let source = [source(1, "It was shown before [2] that moss grows.")];
    for answer in ["“shown before [2] that moss grows” [1]", "“It was shown before [2] that moss”, [1]"]
    {
        let cited = cite("", answer, &source, &first_sentence);
        assert!(
            cited.iter().any(|cited| cited.verified && cited.quote.contains("[2]")),
            "{answer}: {cited:?}"
        );
    }
    let cited = cite("", "“shown before that moss grows” [1]", &source, &first_sentence);
    assert!(!cited[0].verified, "{cited:?}");
}

#[test]
fn citations_come_in_order_of_first_use_and_only_once() {
    let numbers: Vec<usize> =
        list("a [2]. b [1]. c [2]. d [1, 2]. e [1-2].").iter().map(|cited| cited.0).collect();
    assert_eq!(numbers, [2, 1]);
}

#[test]
fn numbers_that_name_no_source_cite_nothing() {
    let numbers = |answer| list(answer).iter().map(|cited| cited.0).collect::<Vec<_>>();
    for (answer, cited) in [
        ("Blue [9].", vec![]),
        ("Blue [1, 9, 2].", vec![1, 2]),
        ("Blue【9】, sea【2】", vec![2]),
        ("Blue [1-3].", vec![1, 2]),
        ("Blue [0][3].", vec![]),
        ("in [2024], [a], [1a], [], [-1], [1-", vec![]),
    ] {
        assert_eq!(numbers(answer), cited, "{answer}");
    }
}

#[test]
fn code_and_links_are_left_alone() {
    for answer in [
        "`a[1]` and ``b ` [1]``",
        "```rust\nx[1]\n```\n",
        "~~~\nx[1]\n```\n[1]",
        "see [1](https://example.org/a) and [1](https://example.org \"title\")",
        "[1]: https://example.org",
        "\\[1]",
    ] {
        assert_eq!(check(answer), [], "{answer}");
    }
    let numbers = |answer| list(answer).iter().map(|cited| cited.0).collect::<Vec<_>>();
    assert_eq!(numbers("`open [1] and\n\nclosed` [2]"), [1, 2]);
    assert_eq!(numbers("```\n[1]\n```\n[2] after [1](see there)"), [2, 1]);
}

#[test]
fn whoever_shows_an_answer_is_told_where_each_marker_stands_and_what_it_stands_for() {
    let answer = "Über [1], 【2】 and [3,\n1-2]; `[1]`, [1](https://a.example), [2024] \\[1] [9].";
    let told: Vec<_> =
        AnswerMarker::all(answer).into_iter().map(|marker| (&answer[marker.bytes], marker.numbers)).collect();
    let expected = [("[1]", vec![1]), ("【2】", vec![2]), ("[3,\n1-2]", vec![3, 1, 2]), ("[9]", vec![9])];
    assert_eq!(told, expected);
    let many = AnswerMarker::all(&"[1-50]".repeat(100));
    assert_eq!(many.len() * 50, AnswerMarker::MOST_NUMBERS);
    let long = format!("[1] {} [2]", "so ".repeat(100_000));
    assert_eq!(AnswerMarker::all(&long).len(), 1, "nobody reads to its end");
}

#[test]
fn odd_input_never_panics() {
    let alphabet = [
        "[", "]", "1", "2", "9", "【", "】", "`", "```", "\n", " ", "“", "”", "\"", ".", "é", "中", "(", ")",
        "-", ",", "~~~", "word ", "\u{301}",
    ];
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut answer = String::new();
        for _ in 0..30 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            answer.push_str(alphabet[usize::try_from(state >> 33).unwrap() % alphabet.len()]);
        }
        let once = check(&answer);
        assert!(once.iter().all(|cited| (1..=2).contains(&cited.n)), "{answer:?}");
    }
}

/// The claims that are looked up in passages, for sources 1 to `count` that know no good sentence.
fn looks(answer: &str, count: usize) -> (Vec<String>, Vec<AnswerCitation>) {
    let sources: Vec<_> = (1..=count).map(|n| source(n, SKY)).collect();
    let claims = RefCell::new(Vec::new());
    let cited = cite("", answer, &sources, &|claim, _| {
        claims.borrow_mut().push(claim.to_owned());
        None
    });
    (claims.into_inner(), cited)
}

#[test]
fn the_same_claim_is_looked_up_once_in_each_passage() {
    assert_eq!(looks("Blue [1]. Blue [1, 2][1]. Blue [2].", 2).0, ["Blue", "Blue"]);
    let flood = "[1-12]".repeat(100_000);
    let (claims, cited) = looks(&flood, 12);
    assert_eq!((claims.len(), cited.len()), (0, 12), "there are no words to look for");
}

#[test]
fn a_flood_of_different_claims_is_looked_up_two_hundred_times() {
    let flood: String = (0..50_000).fold(String::new(), |text, k| text + &format!("Fact {k} [1-12]. "));
    let (claims, _) = looks(&format!("{flood}Blue [13, 2] [99]."), 12);
    assert_eq!(claims.len(), 200);
    assert_eq!(claims.last().unwrap(), "Fact 16");
}

#[test]
fn two_hundred_citations_of_an_answer_are_all_worked_out() {
    let answer =
        (0..200).fold(String::new(), |text, k| text + &format!("The value “number {k} of many” [1]. "));
    assert_eq!(list(&answer).len(), 200);
}

#[test]
fn quotations_that_repeat_or_never_end_are_looked_up_once() {
    let (_, cited) = looks(&"“the sky is blue at noon” [1]. ".repeat(30_000), 1);
    assert_eq!(cited.len(), 1);
    assert!(cited[0].verified);
    let (claims, cited) =
        looks(&format!("Say “{}” {}", "many words ".repeat(45_000), "[1-50]".repeat(20_000)), 50);
    assert_eq!(claims.len(), 50);
    assert!(cited.iter().all(|cited| SKY.starts_with(&cited.quote) && !cited.verified));
}

#[test]
fn of_an_endless_sentence_the_end_is_the_claim() {
    // Each of them once by itself, and once with what follows it.
    let (claims, _) = looks(&format!("{}[1, 2] the end [1].", "é[1, 2]".repeat(150_000)), 1);
    assert_eq!(claims.len(), 400);
    assert!(claims.iter().all(|claim| claim.len() <= 2 * 2_000 + 1));
    let (claims, _) = looks(&format!("{}x[9, 8] the end [1].", "é".repeat(500_000)), 1);
    assert!(claims[0].ends_with("éx the end"), "{}", claims[0]);
    assert!((1_900..=2_000).contains(&claims[0].len()));
    let (claims, _) = looks(&format!("{}[1, 2]{} [3].", "a".repeat(500_000), "b".repeat(1_997)), 3);
    assert_eq!(claims.last().unwrap(), &"b".repeat(1_997), "a marker that is cut is not part of the claim");
}

#[test]
fn hostile_answers_are_read_in_one_go() {
    const LENGTH: usize = 1 << 18;
    let full = |part: &str| part.repeat(LENGTH / part.len());
    let half = |part: &str| part.repeat(LENGTH / 2 / part.len());
    let mut answers: Vec<String> = [
        "[",
        "【",
        "]",
        "[1",
        "[1](",
        "[1](a",
        "x[1]",
        "x.[1]",
        "x[9]",
        "x. [1] ",
        "[1]:",
        "[1]\n",
        "“",
        "“x[1]",
        "\"",
        "“a b c”[1]",
        "`",
        "`\n",
        "``a` ",
        "```a`\n",
        "~~~\n",
        "\n",
        " ",
        ".",
        ".)",
        ". [",
        "[1-50]",
        "[1-50,51-99,100-149,150-199]",
        "[ ",
        "\\",
        "x",
        "中[1]。",
    ]
    .map(full)
    .to_vec();
    for (first, second) in
        [(" ", "[1]"), ("\t", "[9]"), ("x", "[1] x"), ("“x ", "[1]"), ("x[1]", "”"), ("x", "[1]y ")]
    {
        answers.push(half(first) + &half(second));
    }
    answers.push(format!("“{}”{}", half("some words "), half("[1]")));
    for answer in answers {
        let (claims, _) = looks(&answer, 12);
        let shown: String = answer.chars().take(20).collect();
        assert!(claims.len() <= 400, "{shown}");
    }
}

#[test]
fn a_best_sentence_out_of_bounds_is_ignored() {
    let cited = cite("", "Blue [1].", &[source(1, "é")], &|_, _| Some(1..9)).remove(0);
    assert_eq!((cited.quote.as_str(), cited.range), ("é", Some(0..2)));
}
