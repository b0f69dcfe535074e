//! TTML, called DFXP before: paragraphs and spans with times, whatever the prefixes.

use std::collections::BTreeMap;

use super::{
    FoundCues, RawCue,
    clock::clock,
    markup::{self, CaptionLines},
    xml::{CaptionElement, XmlPiece, walk},
};

/// How the document counts time.
struct TtmlRates {
    frames: f64,
    ticks: f64,
}

/// An element that is open.
#[derive(Clone, Copy, Default)]
struct TtmlScope {
    /// When it begins, in milliseconds.
    begin: u32,
    end: Option<u32>,
    /// Whether it, or what it stands in, has a time at all.
    timed: bool,
    /// Its children come one after another, the next one from here.
    next: Option<u32>,
    role: TtmlRole,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum TtmlRole {
    /// Its text is none that is shown.
    #[default]
    Other,
    /// A paragraph, or a span in one.
    Words,
    /// A span or paragraph with times or a speaker of its own.
    Cue,
    /// Metadata, annotations, and all in them.
    Hidden,
    /// A person in the head.
    Agent,
    /// What that person is called.
    Name,
}

struct TtmlDocument {
    found: FoundCues,
    rates: TtmlRates,
    scopes: Vec<TtmlScope>,
    /// Who the open cues' elements say that speaks.
    speakers: Vec<Option<String>>,
    said: CaptionLines,
    names: BTreeMap<String, String>,
    agent: String,
}

/// Reads all cues.
pub(super) fn read(text: &str) -> FoundCues {
    let mut document = TtmlDocument {
        found: FoundCues::default(),
        rates: TtmlRates { frames: 30.0, ticks: 1.0 },
        scopes: Vec::new(),
        speakers: Vec::new(),
        said: CaptionLines::default(),
        names: BTreeMap::new(),
        agent: String::new(),
    };
    let is_whole = walk(text, |piece| match piece {
        XmlPiece::Start(element) => document.start(&element),
        XmlPiece::End => document.end(),
        XmlPiece::Text(text) => document.text(&text),
    });
    document.found.is_cut_off = !is_whole;
    document.found
}

impl TtmlDocument {
    fn start(&mut self, element: &CaptionElement<'_>) {
        let parent = self.scopes.last().copied().unwrap_or_default();
        if element.is("tt") {
            self.rates = TtmlRates::of(element);
        }
        let mut scope = TtmlScope { next: None, role: TtmlRole::Other, ..parent };
        let is_ruby = || element.attribute("ruby").is_some_and(|ruby| ruby.starts_with("text"));
        if parent.role == TtmlRole::Hidden || element.is("metadata") || is_ruby() {
            scope.role = TtmlRole::Hidden;
        } else if element.is("agent") {
            scope.role = TtmlRole::Agent;
            self.agent = element.attribute("id").unwrap_or_default();
        } else if element.is("name") && parent.role == TtmlRole::Agent {
            scope.role = TtmlRole::Name;
        } else if matches!(parent.role, TtmlRole::Words | TtmlRole::Cue) && element.is("br") {
            self.said.add("\n");
            scope.role = TtmlRole::Words;
        } else if element.is("p") || element.is("span") || element.is("div") || element.is("body") {
            self.timed(element, parent, &mut scope);
        }
        self.scopes.push(scope);
    }

    /// An element that may have times.
    fn timed(&mut self, element: &CaptionElement<'_>, parent: TtmlScope, scope: &mut TtmlScope) {
        let time = |name| element.attribute(name).and_then(|text| self.rates.time(&text));
        let (begin, end, length) = (time("begin"), time("end"), time("dur"));
        let has_times = begin.is_some() || end.is_some() || length.is_some();
        // Some write the times of spans, too, from the beginning of the document.
        let base = match (parent.next, begin, parent.end) {
            (Some(next), ..) => next,
            (None, Some(begin), Some(end))
                if parent.begin > 0 && begin >= parent.begin && parent.begin.saturating_add(begin) >= end =>
            {
                0
            }
            _ => parent.begin,
        };
        if has_times {
            scope.timed = true;
            scope.begin = base.saturating_add(begin.unwrap_or(0));
            let by_length = length.map(|length| scope.begin.saturating_add(length));
            let by_end = end.map(|end| base.saturating_add(end));
            scope.end = by_end.into_iter().chain(by_length).min().or(parent.end);
        }
        if element.attribute("timeContainer").is_some_and(|kind| kind == "seq") {
            scope.next = Some(scope.begin);
        }
        let is_inside = matches!(parent.role, TtmlRole::Words | TtmlRole::Cue);
        if element.is("p") || (element.is("span") && is_inside) {
            let speaker = element.attribute("agent");
            if element.is("p") || has_times || speaker.is_some() {
                self.close_cue(parent);
                scope.role = TtmlRole::Cue;
                let speaker = speaker.and_then(|agents| {
                    agents.split_whitespace().find_map(|agent| self.names.get(agent).cloned())
                });
                self.speakers.push(speaker.or_else(|| self.speakers.last().cloned().flatten()));
            } else {
                scope.role = TtmlRole::Words;
            }
        }
    }

    fn text(&mut self, text: &str) {
        match self.scopes.last().map(|scope| scope.role) {
            Some(TtmlRole::Words | TtmlRole::Cue) => {
                // Ends of lines are nothing but blanks here.
                let mut lines = text.split(['\n', '\r']);
                self.said.add(lines.next().unwrap_or_default());
                for line in lines {
                    self.said.add(" ");
                    self.said.add(line);
                }
            }
            Some(TtmlRole::Name) => {
                let name = self.names.entry(self.agent.clone()).or_default();
                *name = markup::line(&format!("{name} {text}"));
            }
            Some(TtmlRole::Other | TtmlRole::Hidden | TtmlRole::Agent) | None => {}
        }
    }

    fn end(&mut self) {
        let Some(scope) = self.scopes.pop() else { return };
        if scope.role == TtmlRole::Cue {
            self.close_cue(scope);
            self.speakers.pop();
        }
        if let Some(next) = self.scopes.last_mut().and_then(|parent| parent.next.as_mut()) {
            *next = scope.end.unwrap_or(*next).max(*next);
        }
    }

    /// What was said so far belongs to this element.
    fn close_cue(&mut self, scope: TtmlScope) {
        let text = std::mem::take(&mut self.said).finish();
        if text.is_empty() {
            return;
        }
        self.found.unreadable_times += u64::from(!scope.timed);
        self.found.cues.push(RawCue {
            start: scope.timed.then_some(scope.begin),
            end: scope.end,
            text,
            speaker: self.speakers.last().cloned().flatten(),
        });
    }
}

impl TtmlRates {
    fn of(tt: &CaptionElement<'_>) -> Self {
        let number = |name| {
            let number: f64 = tt.attribute(name)?.parse().ok()?;
            (number.is_finite() && number > 0.0).then_some(number)
        };
        let multiplier = tt.attribute("frameRateMultiplier").and_then(|text| {
            let (above, below) = text.split_once([' ', ':', '/'])?;
            let (above, below): (f64, f64) = (above.trim().parse().ok()?, below.trim().parse().ok()?);
            let multiplier = above / below;
            (multiplier.is_finite() && multiplier > 0.0).then_some(multiplier)
        });
        let frame_rate = number("frameRate");
        let frames = frame_rate.unwrap_or(30.0) * multiplier.unwrap_or(1.0);
        let sub_frames = number("subFrameRate").unwrap_or(1.0);
        let ticks = number("tickRate").or(frame_rate.map(|_| frames * sub_frames)).unwrap_or(1.0);
        Self { frames, ticks }
    }

    /// A time of the clock, with frames perhaps, or a number with its unit.
    fn time(&self, text: &str) -> Option<u32> {
        let text = text.trim();
        let colons = text.matches(':').count();
        if colons == 3 {
            let (time, frames) = text.rsplit_once(':')?;
            return clock(time)?.checked_add(decimal(frames, 1_000.0 / self.frames)?);
        }
        if colons > 0 {
            return clock(text);
        }
        let unit =
            text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | ' '));
        let number = text.strip_suffix(unit)?;
        let scale = match unit {
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" | "" => 1_000.0,
            "ms" => 1.0,
            "f" => 1_000.0 / self.frames,
            "t" => 1_000.0 / self.ticks,
            _ => return None,
        };
        decimal(number, scale)
    }
}

/// A decimal number of something that is `scale` milliseconds long. Before the beginning is the beginning.
pub(super) fn decimal(text: &str, scale: f64) -> Option<u32> {
    let text = text.trim();
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
    if text.len() > 40 || !text.chars().all(is_number) {
        return None;
    }
    let number: f64 = text.replace(',', ".").parse().ok()?;
    let time = (number * scale).round().max(0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within the range")]
    (time <= f64::from(u32::MAX)).then_some(time as u32)
}
