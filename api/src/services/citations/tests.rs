use lectern_shared::model::Json;
use secrecy::SecretString;

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn keyring(secret: &str) -> Keyring {
    Keyring::new(&SecretString::from(secret.repeat(8)), None).unwrap()
}

fn reference(quote: Option<Range<usize>>) -> PassageReference {
    let document = DocumentId::generate();
    PassageReference { document, chunk: ChunkId::derive(document, 1, "text", "{}"), quote }
}

fn link(quote: Option<Range<usize>>) -> SealedCitation {
    let ends_at = NOW.plus(Duration::from_mins(1)).as_secs();
    let workspace = WorkspaceId::generate();
    SealedCitation { workspace, passage: reference(quote), ends_at }
}

/// A passage that begins at this character.
fn chunk(text: &str, start: u64) -> Chunk {
    let document_id = DocumentId::generate();
    let char_end = start + text.chars().count() as u64;
    Chunk {
        ordinal: 0,
        chunk_id: ChunkId::derive(document_id, 0, text, "{}"),
        document_id,
        tokens: 1,
        place: Json(SourceSpan { char_start: start, char_end, ..SourceSpan::default() }),
        text: text.to_owned(),
    }
}

#[test]
fn a_link_opens_what_it_was_made_for_until_it_ends() {
    let keys = keyring("first");
    for quote in [None, Some(3..17), Some(0..70_000)] {
        let made = link(quote);
        let token = made.seal(&keys).unwrap();
        let is_url_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        assert!(token.bytes().all(is_url_safe) && token.len() < 160, "{token}");
        let open = |at| SealedCitation::open(&keys, &token, at);
        let opened = open(NOW.plus(Duration::from_secs(59))).unwrap();
        assert_eq!((opened.workspace, &opened.passage), (made.workspace, &made.passage));
        assert!(open(NOW.plus(Duration::from_mins(1))).is_none());
    }
}

#[test]
fn a_link_that_was_changed_or_is_anothers_opens_nothing() {
    let keys = keyring("first");
    let token = link(Some(3..17)).seal(&keys).unwrap();
    assert!(SealedCitation::open(&keyring("other"), &token, NOW).is_none());
    let padded = format!("{token}=");
    for wrong in ["", "x", "ä", &token[1..], &token[..token.len() - 4], &padded] {
        assert!(SealedCitation::open(&keys, wrong, NOW).is_none(), "{wrong}");
    }
    for at in 0..token.len() {
        let other = if token.as_bytes()[at] == b'A' { "B" } else { "A" };
        let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
        assert!(SealedCitation::open(&keys, &changed, NOW).is_none(), "{at}");
    }
    let elsewhere = keys.encrypt(CiphertextLocation::oidc_code(), &link(None).to_bytes()).unwrap();
    assert!(SealedCitation::open(&keys, &URL_SAFE_NO_PAD.encode(elsewhere), NOW).is_none());
}

#[test]
fn quoted_words_are_marked_where_they_stand_and_never_in_the_middle_of_a_character() {
    let text = "Täglich um halb sieben.";
    assert_eq!(marked(text, Some(0..8)), ("", "Täglich", " um halb sieben."));
    assert_eq!(marked(text, Some(9..900)), ("Täglich ", "um halb sieben.", ""), "it goes on in the next");
    for nowhere in [None, Some(2..8), Some(100..101)] {
        assert_eq!(marked(text, nowhere), (text, "", ""));
    }
}

#[test]
fn cited_words_are_found_again_however_their_lines_break_and_where_they_go_on() {
    let one = chunk("The gate opens\nat six. The cellar", 0);
    let two = chunk("The cellar is locked\nfrom ten on.", 23);
    let three = chunk("The key is with the porter.", 57);
    let all = [one, two, three];
    let marked = |at: usize, words: &str| {
        let range = quoted(&all, all[at].chunk_id, words)?;
        Some(super::marked(&all[at].text, Some(range)).1.to_owned())
    };
    for (at, words, expected) in [
        (0, "The gate opens at six.", "The gate opens\nat six."),
        (0, "The gate opens … six. The cellar", "The gate opens\nat six. The cellar"),
        (0, "at six. The cellar is locked from ten on.", "at six. The cellar"),
        (1, "locked from ten on. The key is with", "locked\nfrom ten on."),
        (2, "with the porter", "with the porter"),
    ] {
        assert_eq!(marked(at, words).as_deref(), Some(expected), "{words}");
    }
    for (at, words) in [(0, ""), (0, "from ten on"), (1, "The key is with"), (2, "at six")] {
        assert_eq!(marked(at, words), None, "{words}");
    }
    assert_eq!(quoted(&all, ChunkId::derive(DocumentId::generate(), 0, "", "{}"), "The gate opens"), None);
}

#[test]
fn neighbours_are_shown_without_what_the_passage_repeats_of_them() {
    let (one, two, three) = (chunk("Größe eins. Zwei.", 0), chunk("Zwei. Drei.", 12), chunk("Vier.", 24));
    assert_eq!(end_of(&one, &two), "Größe eins.");
    assert_eq!(beginning_of(&two, &one), "Drei.");
    assert_eq!((end_of(&two, &three), beginning_of(&three, &two)), ("Zwei. Drei.".into(), "Vier.".into()));
    let long = chunk(&"wort ".repeat(1_000), 0);
    let (before, after) = (end_of(&long, &chunk("x", 5_000)), beginning_of(&long, &chunk("", 0)));
    for (shown, is_cut) in [(&before, before.starts_with('…')), (&after, after.ends_with('…'))] {
        assert!(is_cut && (500..=CONTEXT + 2).contains(&shown.chars().count()), "{shown}");
    }
}

#[test]
fn what_stands_around_a_passage_begins_and_ends_with_whole_words() {
    // Of so many words of these letters, the place at which 600 characters begin or end is in the midst of one.
    for (word, blank) in [("Schraube", " "), ("Größe", ", "), ("สวัสดี", " "), ("東京", "、"), ("👩‍👩‍👧", "")]
    {
        let text = format!("{word}{blank}").repeat(CONTEXT);
        let length = text.chars().count() as u64;
        for shift in ["", "x ", "yy ", "zzz ", "vvvv "] {
            let before = end_of(&chunk(&format!("{text}{shift}"), 0), &chunk("x", length + 5));
            let after = beginning_of(&chunk(&format!("{shift}{text}"), 0), &chunk("", 0));
            let first = before.strip_prefix("… ").unwrap();
            let last = after.strip_suffix(" …").unwrap().trim_end_matches([',', '、']);
            assert!(first.starts_with(word) && last.ends_with(word), "{first} and {last}");
            assert!(first.chars().count() <= CONTEXT && last.chars().count() > CONTEXT / 2);
        }
    }
    let endless = chunk(&format!("x{}", "e\u{301}".repeat(2 * CONTEXT)), 0);
    let after = beginning_of(&endless, &chunk("", 0));
    assert!(after.trim_end_matches(" …").ends_with("e\u{301}"), "no accent is parted from its letter");
    assert!(end_of(&endless, &chunk("x", 5_000)).starts_with("… e\u{301}"));
}
