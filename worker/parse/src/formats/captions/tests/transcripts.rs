//! Cues as a text.

use super::*;

#[test]
fn lines_that_roll_are_said_once_with_the_time_of_their_coming() {
    let text = "WEBVTT\nKind: captions\nLanguage: en\n\n\
        00:00:00.160 --> 00:00:02.070 align:start position:0%\n \nhello<00:00:00.480><c> everyone</c><00:00:00.880><c> and</c>\n\n\
        00:00:02.070 --> 00:00:02.080 align:start position:0%\nhello everyone and\n \n\n\
        00:00:02.080 --> 00:00:04.000 align:start position:0%\nhello everyone and\nwelcome<00:00:02.500><c> to</c><00:00:03.000><c> the</c>\n\n\
        00:00:04.000 --> 00:00:04.010 align:start position:0%\nwelcome to the\n \n\n\
        00:00:04.010 --> 00:00:06.000 align:start position:0%\nwelcome to the\nshow<00:00:05.000><c> show</c>\n";
    let transcript = read(text);
    assert_eq!(transcript.text, "hello everyone and welcome to the show show");
    assert_eq!(
        timed(&transcript),
        ["0.16-2.07 hello everyone and", "2.08-4 welcome to the", "4.01-6 show show"]
    );
}

#[test]
fn cues_that_grow_by_words_are_said_once() {
    let growing = subrip(&[
        (0, 1, "I"),
        (1, 2, "I think"),
        (2, 3, "I think that,"),
        (3, 4, "I think that, maybe."),
        (4, 5, "Yes"),
        (5, 6, "Yes we can"),
    ]);
    let transcript = read(&growing);
    assert_eq!(transcript.text, "I think that, maybe. Yes we can");
    assert_eq!(
        timed(&transcript),
        ["0-1 I", "1-2 think", "2-3 that,", "3-4 maybe.", "4-5 Yes", "5-6 we can"]
    );
    let three = subrip(&[
        (0, 2, "a b\nc d\ne f"),
        (2, 4, "c d\ne f\ng h"),
        (4, 6, "e f\ng h\ni j"),
        (6, 8, "g h\ni j"),
    ]);
    assert_eq!(read(&three).text, "a b c d e f g h i j");
    let unspaced = subrip(&[(0, 1, "今日は"), (1, 2, "今日は天気が"), (2, 3, "今日は天気がいい")]);
    assert_eq!(read(&unspaced).text, "今日は天気がいい");
}

#[test]
fn a_line_that_moves_up_when_another_one_comes_is_said_once_wherever_that_happens() {
    let plain = [
        (10, 12, "Much else"),
        (12, 14, "is said"),
        (14, 16, "in between,"),
        (16, 18, "for a"),
        (18, 20, "long while,"),
        (20, 22, "by many"),
        (22, 24, "people,"),
        (24, 26, "as it is."),
    ];
    let with = |cues: &[(u32, u32, &'static str)]| subrip(&[cues, &plain[..]].concat());
    let lifted = with(&[(0, 2, "The ferry leaves"), (2, 4, "The ferry leaves\nat nine.")]);
    assert_eq!(
        read(&lifted).text,
        "The ferry leaves at nine.\n\nMuch else is said in between, for a long while, by many people, as it is."
    );
    let word = with(&[(0, 1, "So"), (1, 2, "So today"), (2, 4, "So today\nwe sail")]);
    assert_eq!(timed(&read(&word))[..3], ["0-1 So", "1-2 today", "2-4 we sail"]);
    let growing = with(&[(0, 1, "I"), (1, 2, "I think"), (2, 4, "I think that")]);
    assert!(read(&growing).text.starts_with("I think that Much else"), "{}", read(&growing).text);
    assert_eq!(read(&subrip(&[(0, 2, "Well"), (2, 4, "Well now\nwe sail")])).text, "Well now we sail");
    assert_eq!(read(&subrip(&[(0, 2, "Well"), (2, 4, "Well\nnow we sail")])).text, "Well now we sail");
}

#[test]
fn a_word_that_only_begins_like_the_one_before_is_another() {
    let text = subrip(&[
        (0, 1, "I"),
        (1, 2, "I'm here"),
        (2, 3, "re"),
        (3, 4, "re-read it"),
        (4, 5, "a"),
        (5, 6, "and"),
    ]);
    assert_eq!(read(&text).text, "I I'm here re re-read it a and");
}

#[test]
fn what_is_said_twice_stays_in_captions_that_do_not_roll() {
    let song = subrip(&[
        (0, 2, "We will rock you"),
        (2, 4, "We will rock you"),
        (4, 6, "Sing it"),
        (6, 8, "Buddy"),
        (8, 10, "you're a boy"),
        (10, 12, "make a noise"),
        (12, 14, "in the street"),
    ]);
    assert!(read(&song).text.starts_with("We will rock you We will rock you Sing it"));
    let words =
        subrip(&[(0, 2, "No"), (2, 4, "No one knows"), (4, 6, "what"), (6, 8, "it is"), (8, 9, "like")]);
    assert_eq!(read(&words).text, "No No one knows what it is like");
}

#[test]
fn layers_of_one_cue_are_said_once() {
    let text = subrip(&[(0, 2, "Hello"), (0, 2, "Hello"), (2, 4, "you"), (4, 6, "you")]);
    assert_eq!(read(&text).text, "Hello you you");
}

#[test]
fn lines_that_linger_end_when_the_next_one_comes() {
    let json = |events: &[(u32, u32, &str)]| {
        let event = |(start, length, text): &(u32, u32, &str)| {
            format!(r#"{{"tStartMs":{start},"dDurationMs":{length},"segs":[{{"utf8":"{text}"}}]}}"#)
        };
        format!("{{\"events\":[{}]}}", events.iter().map(event).collect::<Vec<_>>().join(","))
    };
    let text = json(&[(0, 4_000, "a"), (2_000, 4_000, "b"), (4_000, 4_000, "c"), (6_000, 1_500, "d")]);
    assert_eq!(timed(&read(&text)), ["0-2 a", "2-4 b", "4-6 c", "6-7.5 d"]);
}

#[test]
fn sentences_go_on_over_cues_and_pauses_make_paragraphs() {
    let text = subrip(&[
        (0, 2, "The cat"),
        (2, 4, "sat\non the mat."),
        (5, 6, "It slept."),
        (20, 22, "Then a dog"),
        (27, 28, "came."),
    ]);
    assert_eq!(read(&text).text, "The cat sat on the mat. It slept.\n\nThen a dog came.");
    let unpunctuated = subrip(&[(0, 2, "the cat"), (2, 4, "sat"), (9, 10, "it slept")]);
    assert_eq!(read(&unpunctuated).text, "the cat sat\n\nit slept", "there are no sentences to go by");
    let japanese = subrip(&[(0, 2, "今日は\n天気が"), (2, 4, "いいです。"), (4, 6, "ABCです")]);
    assert_eq!(read(&japanese).text, "今日は天気がいいです。 ABCです");
}

#[test]
fn long_paragraphs_end_with_a_sentence() {
    let said: Vec<_> = (0..60).map(|n| (n * 2, n * 2 + 2, "Somebody says something here.")).collect();
    let transcript = read(&subrip(&said));
    let lengths: Vec<_> = transcript.text.split("\n\n").map(|paragraph| paragraph.chars().count()).collect();
    assert!(lengths.len() >= 2 && lengths.iter().all(|length| *length < 700), "{lengths:?}");
    assert!(transcript.text.split("\n\n").all(|paragraph| paragraph.ends_with('.')));
}

#[test]
fn speakers_begin_paragraphs_and_are_named() {
    let text = "WEBVTT\n\n00:00.000 --> 00:02.000\n<v Ann>Hello.\n\n00:02.000 --> 00:04.000\n<v Ann>How are you?\n\n00:04.000 --> 00:06.000\n<v Tom>Tom: Fine.\n\n00:06.000 --> 00:08.000\nMusic plays.";
    let transcript = read(text);
    assert_eq!(transcript.text, "Ann: Hello. How are you?\n\nTom: Fine.\n\nMusic plays.");
    assert_eq!(timed(&transcript)[0], "0-2 Ann: Hello.", "the name belongs to the cue");
    let chevrons =
        subrip(&[(0, 2, ">> ANN: Hi. >> TOM: Ho."), (2, 4, "I say"), (4, 6, ">>> News: x >> 2 is y.")]);
    assert_eq!(read(&chevrons).text, "ANN: Hi.\n\nTOM: Ho. I say\n\nNews: x >> 2 is y.");
    let dashes = subrip(&[(0, 2, "- Tea?\n- No."), (2, 4, "- It is\nwarm."), (4, 6, "-5 degrees")]);
    assert_eq!(read(&dashes).text, "- Tea?\n- No.\n- It is warm. -5 degrees");
}

#[test]
fn what_is_heard_is_left_out_and_what_is_said_stays() {
    for (said, expected) in [
        ("[Music]", ""),
        ("(applause)", ""),
        ("[upbeat\nmusic]", ""),
        ("♪♪", ""),
        (">> [Laughter]", ""),
        ("[Music] [Applause]", ""),
        ("[Music] so today", "so today"),
        ("so [Applause] today", "so today"),
        ("♪ We are the champions ♪", "We are the champions"),
        ("(door slams)\nWho is there?", "Who is there?"),
        ("he said [sic] so", "he said [sic] so"),
        ("f(x) and a[0]", "f(x) and a[0]"),
        ("(see the next 3 chapters)", "(see the next 3 chapters)"),
        ("[this is a longer remark]", "[this is a longer remark]"),
        ("what the [ __ ]", "what the [ __ ]"),
        ("[unclosed", "[unclosed"),
    ] {
        let transcript = read(&subrip(&[(0, 2, said)]));
        assert_eq!(transcript.text, expected, "{said:?}");
        assert_eq!(transcript.marks.is_empty(), expected.is_empty());
    }
}

#[test]
fn every_character_stands_under_the_time_of_its_cue() {
    let said: Vec<_> = (0..200_u32)
        .map(|n| (n, format!("Wörter 東京 {n} é\u{1f600}{}", if n % 7 == 0 { "." } else { "" })))
        .collect();
    let cues: Vec<_> = said.iter().map(|(n, text)| (n * 3, n * 3 + 2, text.as_str())).collect();
    let transcript = read(&subrip(&cues));
    let expected: Vec<_> = said.iter().map(|(n, text)| format!("{}-{} {text}", n * 3, n * 3 + 2)).collect();
    assert_eq!(timed(&transcript), expected);
    assert_eq!(transcript.marks[0].at, 0);
    assert!(transcript.marks.windows(2).all(|pair| pair[0].at < pair[1].at));
}

#[test]
fn parts_of_a_recording_keep_their_order() {
    let text = "1\n00:10:00,000 --> 00:10:02,000\nEnd of one.\n\n1\n00:00:01,000 --> 00:00:02,000\nBeginning of two.\n";
    assert_eq!(read(text).text, "End of one.\n\nBeginning of two.");
}

#[test]
fn captions_without_words_are_an_empty_transcript_and_other_texts_are_none() {
    assert_eq!(read("WEBVTT\n\n00:01.000 --> 00:02.000\n[Music]\n"), TimedTranscript::default());
    assert_eq!(parse("A transcript that somebody wrote by hand."), None);
    assert_eq!(parse(""), None);
}

#[test]
fn texts_made_to_be_slow_are_not() {
    let cue = |text: String| format!("WEBVTT\n\n00:01.000 --> 00:02.000\n{text}\n");
    for unit in [
        "<", "{", "&", "[", "(", ">>", "<v a", "[(", "-\n", "1\n", "a\n", "<c>", "{\\", "♪", "[a](b)",
        ">> a ",
    ] {
        let text = cue(unit.repeat(30_000));
        let _ = read(&text);
    }
    let _ = read(&"00:01.000 --> 00:02.000\na\n".repeat(5_000));
    let _ = read(&format!("<transcript>{}", "<text start=\"1\" dur=\"1\">&".repeat(5_000)));
    let _ = read(&format!("WEBVTT\n\n{}", "00:01.000 --> \na\n".repeat(5_000)));
}
