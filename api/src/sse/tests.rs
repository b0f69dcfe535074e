//! What a reader that follows the WHATWG text makes of the streams.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::json;

use super::{END, EventKind, KEEP_ALIVE, named, token};

#[derive(Debug, PartialEq, Eq)]
struct Event {
    name: String,
    data: String,
}

fn event(name: &str, data: &str) -> Event {
    Event { name: name.to_owned(), data: data.to_owned() }
}

/// The interpretation of an event stream as the standard has it (HTML, 9.2.6). Fails on fields that the service has
/// no use for.
fn read(stream: &[u8]) -> Vec<Event> {
    let text = String::from_utf8(stream.to_vec()).unwrap();
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    // What follows the last line end is no line yet.
    assert_eq!(lines.pop(), Some(""), "the stream ends inside a line");
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), String::new());
    for line in lines {
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                let name = if name.is_empty() { "message" } else { &name };
                events.push(event(name, &data));
            }
            name.clear();
            data.clear();
            continue;
        }
        if line.starts_with(':') {
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            other => panic!("unexpected field {other:?}"),
        }
    }
    assert!(data.is_empty() && name.is_empty(), "the stream ends inside an event");
    events
}

fn told(stream: &[u8]) -> String {
    read(stream).into_iter().map(|event| event.data).collect()
}

#[test]
fn a_token_comes_back_exactly() {
    for text in [
        "a",
        " a",
        "  a ",
        "\ta",
        "\n",
        "\n\n",
        "a\n",
        "\na",
        " \n ",
        "a\n\nb",
        ":",
        ": a",
        "data: a",
        "data: a\n\nevent: b",
        "\u{feff}",
        "\u{feff}a",
        "\0",
        "日本語\n🙂",
        "\u{2028}\u{85}",
        "[END] ",
        " [END]",
        "[END]\n",
        "[end]",
    ] {
        assert_eq!(read(&token(text)), [event("message", text)], "{text:?}");
    }
}

#[test]
fn an_empty_token_is_no_event() {
    assert!(token("").is_empty());
}

#[test]
fn a_carriage_return_is_a_line_feed() {
    assert_eq!(told(&token("a\r\nb\rc\r")), "a\nb\nc\n");
}

#[test]
fn a_token_that_looks_like_the_end_is_not_the_end() {
    assert_eq!(read(&token("[END]")), [event("message", "["), event("message", "END]")]);
    assert_eq!(read(END), [event("message", "[END]")]);
}

#[test]
fn a_named_event_is_one_line_of_json() {
    let data = json!({ "token": "a\n\r\n\u{2028}data: b\n\n", "n": 1 });
    let events = read(&named(EventKind::Token, &data));
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].name, "token");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&events[0].data).unwrap(), data);
}

#[test]
fn keeping_a_connection_open_changes_no_event_wherever_between_lines_it_happens() {
    assert!(read(KEEP_ALIVE).is_empty());
    let stream =
        [&token("a\n\n b")[..], &named(EventKind::Start, &json!({ "n": 1 })), &token("[END]"), END].concat();
    let events = read(&stream);
    let ends = stream.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    for at in std::iter::once(0).chain(ends) {
        let kept = [&stream[..at], KEEP_ALIVE, KEEP_ALIVE, &stream[at..]].concat();
        assert_eq!(read(&kept), events, "at {at}");
    }
}

#[test]
fn an_answer_cut_anywhere_comes_back_and_only_the_end_is_the_end() {
    const PARTS: [&str; 16] = [
        "[END]",
        "[",
        "END",
        "]",
        "\n",
        "\n",
        " ",
        "  ",
        "data:",
        "event: x",
        ":",
        "a",
        "日本",
        "🙂",
        "\u{feff}",
        "id: 1\n\n",
    ];
    for seed in 0..5_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let length = random.random_range(0..20);
        let text: String = (0..length).map(|_| PARTS[random.random_range(0..PARTS.len())]).collect();
        let mut stream = Vec::new();
        let mut sent = String::new();
        for character in text.chars() {
            sent.push(character);
            if random.random_range(0..6) == 0 {
                stream.extend_from_slice(&token(&std::mem::take(&mut sent)));
            }
            if random.random_range(0..10) == 0 {
                stream.extend_from_slice(KEEP_ALIVE);
            }
        }
        stream.extend_from_slice(&token(&sent));
        stream.extend_from_slice(END);
        let mut events = read(&stream);
        assert_eq!(events.pop(), Some(event("message", "[END]")), "{text:?}");
        assert!(events.iter().all(|event| event.data != "[END]" && event.name == "message"), "{text:?}");
        assert_eq!(events.into_iter().map(|event| event.data).collect::<String>(), text);
    }
}
