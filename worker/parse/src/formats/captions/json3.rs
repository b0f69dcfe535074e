//! Timed text of video sites in JSON: events with segments of text.

use std::fmt;

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use super::{FoundCues, RawCue, markup};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json3Event {
    t_start_ms: Option<Value>,
    d_duration_ms: Option<Value>,
    #[serde(default)]
    segs: Vec<Json3Segment>,
}

#[derive(Deserialize)]
struct Json3Segment {
    #[serde(default)]
    utf8: String,
}

/// Reads all cues; of a text that breaks off, those before.
pub(super) fn read(text: &str) -> FoundCues {
    let mut found = FoundCues::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let outcome = Json3Document(&mut found).deserialize(&mut deserializer);
    found.is_cut_off = outcome.is_err();
    found
}

impl Json3Event {
    fn into_cue(self) -> Option<RawCue> {
        let said: String = self.segs.iter().map(|segment| segment.utf8.as_str()).collect();
        let text = markup::lines(&said);
        let start = self.t_start_ms.as_ref().and_then(milliseconds);
        let length = self.d_duration_ms.as_ref().and_then(milliseconds);
        let end = start.zip(length).map(|(start, length)| start.saturating_add(length));
        (!text.is_empty()).then_some(RawCue { start, end, text, speaker: None })
    }
}

fn milliseconds(value: &Value) -> Option<u32> {
    match value {
        Value::Number(number) => super::ttml::decimal(&number.to_string(), 1.0),
        Value::String(digits) => super::ttml::decimal(digits, 1.0),
        _ => None,
    }
}

/// The document, whose events are kept as they come.
struct Json3Document<'a>(&'a mut FoundCues);

impl<'de> DeserializeSeed<'de> for Json3Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Json3Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with events")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "events" {
                map.next_value_seed(Json3Events(&mut *self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Json3Events<'a>(&'a mut FoundCues);

impl<'de> DeserializeSeed<'de> for Json3Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Json3Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element::<Json3Event>()? {
            if let Some(cue) = event.into_cue() {
                self.0.unreadable_times += u64::from(cue.start.is_none());
                self.0.cues.push(cue);
            }
        }
        Ok(())
    }
}
