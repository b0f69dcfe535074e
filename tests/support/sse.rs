//! Server-sent events, read as the WHATWG specification says and not a bit more kindly.

use reqwest::{Response, header::CONTENT_TYPE};
use serde_json::Value;

/// An event that was dispatched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// Its name; `message` for one without.
    pub name: String,
    /// Its data.
    pub data: String,
}

impl SseEvent {
    /// Its data as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The events of an answer that has to be a whole stream of them.
pub async fn events(answer: Response) -> Vec<SseEvent> {
    let status = answer.status();
    assert!(status.is_success(), "{status}: {:?}", answer.text().await);
    assert_eq!(answer.headers()[CONTENT_TYPE], "text/event-stream");
    let body = answer.bytes().await.expect("a stream that ends well");
    parse(std::str::from_utf8(&body).expect("UTF-8"))
}

/// The events of a stream. What stands after the last blank line is not dispatched.
pub fn parse(stream: &str) -> Vec<SseEvent> {
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream).replace("\r\n", "\n").replace('\r', "\n");
    let mut events = Vec::new();
    let (mut name, mut data) = (String::new(), String::new());
    let complete = stream.rfind('\n').map_or("", |end| &stream[..=end]);
    for line in complete.split_terminator('\n') {
        if line.is_empty() {
            let (name, mut data) = (std::mem::take(&mut name), std::mem::take(&mut data));
            if data.is_empty() {
                continue;
            }
            data.pop();
            events.push(SseEvent { name: if name.is_empty() { "message".to_owned() } else { name }, data });
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
            _ => {}
        }
    }
    events
}

/// The text of a stream of the default format, which has to end with `[END]` and have nothing after it.
pub fn text_of(events: &[SseEvent]) -> String {
    let (last, before) = events.split_last().expect("an event");
    assert_eq!((last.name.as_str(), last.data.as_str()), ("message", "[END]"), "{events:#?}");
    let ends = before.iter().filter(|event| event.data == "[END]").count();
    assert_eq!(ends, 0, "only the end is the end: {events:#?}");
    before.iter().filter(|event| event.name == "message").map(|event| event.data.as_str()).collect()
}
