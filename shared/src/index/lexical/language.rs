//! The language that a segment is stemmed in.

use rust_stemmers::Algorithm;
use whatlang::{Lang, Script};

use super::{
    stop_words::{self, StopLanguages},
    tokenize::{GramScript, Mode, tokenize},
};

/// The most bytes that detection looks at: more does not change its answer, only its time.
const SAMPLE_BYTES: usize = 16 * 1024;

/// A language with rules of its own; any other is [`Language::Other`]. The numbers are stored in segments
/// and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "languages need no explanation")]
pub enum Language {
    /// A language without a stemmer: its words are matched as they are.
    Other = 0,
    Arabic = 1,
    Danish = 2,
    Dutch = 3,
    English = 4,
    Finnish = 5,
    French = 6,
    German = 7,
    Greek = 8,
    Hungarian = 9,
    Italian = 10,
    Norwegian = 11,
    Portuguese = 12,
    Romanian = 13,
    Russian = 14,
    Spanish = 15,
    Swedish = 16,
    Tamil = 17,
    Turkish = 18,
    Chinese = 19,
    Japanese = 20,
    Korean = 21,
}

impl Language {
    /// Every language, by its number.
    pub const ALL: [Self; 22] = [
        Self::Other,
        Self::Arabic,
        Self::Danish,
        Self::Dutch,
        Self::English,
        Self::Finnish,
        Self::French,
        Self::German,
        Self::Greek,
        Self::Hungarian,
        Self::Italian,
        Self::Norwegian,
        Self::Portuguese,
        Self::Romanian,
        Self::Russian,
        Self::Spanish,
        Self::Swedish,
        Self::Tamil,
        Self::Turkish,
        Self::Chinese,
        Self::Japanese,
        Self::Korean,
    ];

    /// The stored number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The language of a stored number, if there is one.
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// The language of an ISO 639-1 code, `other` for all without rules of their own.
    pub fn from_iso(code: &str) -> Option<Self> {
        Some(match code {
            "other" => Self::Other,
            "ar" => Self::Arabic,
            "da" => Self::Danish,
            "nl" => Self::Dutch,
            "en" => Self::English,
            "fi" => Self::Finnish,
            "fr" => Self::French,
            "de" => Self::German,
            "el" => Self::Greek,
            "hu" => Self::Hungarian,
            "it" => Self::Italian,
            "no" | "nb" | "nn" => Self::Norwegian,
            "pt" => Self::Portuguese,
            "ro" => Self::Romanian,
            "ru" => Self::Russian,
            "es" => Self::Spanish,
            "sv" => Self::Swedish,
            "ta" => Self::Tamil,
            "tr" => Self::Turkish,
            "zh" => Self::Chinese,
            "ja" => Self::Japanese,
            "ko" => Self::Korean,
            _ => return None,
        })
    }

    /// The language of a text.
    ///
    /// Trigram statistics are sure only of longer texts. A short Latin text is judged by its function
    /// words, and without any it counts as English: that stemmer mostly drops plurals, and it drops them from
    /// questions in the same way.
    pub fn detect(text: &str) -> Self {
        Self::told(text, None).unwrap_or(Self::English)
    }

    /// The language of a question to texts in the `searched` languages, the most frequent first. Where the question does not
    /// tell, it is asked in the language of most texts.
    pub fn of_question(text: &str, searched: &[Self]) -> Self {
        let usual = searched.first().copied();
        // A Latin text tells that it is in none of the others.
        let latin = usual.filter(|usual| !usual.is_written_in_another_script()).unwrap_or(Self::English);
        if text.contains(char::is_alphabetic) {
            Self::told(text, usual).unwrap_or(latin)
        } else {
            usual.unwrap_or(Self::Other)
        }
    }

    /// The language of a text, unless it is a short Latin one without a function word. The `usual` one wins ties.
    fn told(text: &str, usual: Option<Self>) -> Option<Self> {
        let sample = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
        let Some(info) = whatlang::detect(sample) else { return Some(Self::Other) };
        if info.script() != Script::Latin {
            return Some(Self::of(info.lang()));
        }
        if let Some(other) = beside_latin(sample) {
            return Some(other);
        }
        if info.is_reliable() {
            return Some(Self::of(info.lang()));
        }
        let mut hits = stop_words::Votes::default();
        tokenize(sample, Mode::Query, &mut |token| hits.add(StopLanguages::of(token.text)));
        hits.best(usual, 1)
    }

    const fn of(lang: Lang) -> Self {
        match lang {
            Lang::Ara => Self::Arabic,
            Lang::Dan => Self::Danish,
            Lang::Nld => Self::Dutch,
            Lang::Eng => Self::English,
            Lang::Fin => Self::Finnish,
            Lang::Fra => Self::French,
            Lang::Deu => Self::German,
            Lang::Ell => Self::Greek,
            Lang::Hun => Self::Hungarian,
            Lang::Ita => Self::Italian,
            Lang::Nob => Self::Norwegian,
            Lang::Por => Self::Portuguese,
            Lang::Ron => Self::Romanian,
            Lang::Rus => Self::Russian,
            Lang::Spa => Self::Spanish,
            Lang::Swe => Self::Swedish,
            Lang::Tam => Self::Tamil,
            Lang::Tur => Self::Turkish,
            Lang::Cmn => Self::Chinese,
            Lang::Jpn => Self::Japanese,
            Lang::Kor => Self::Korean,
            _ => Self::Other,
        }
    }

    /// The stemmer of the language.
    pub(super) const fn algorithm(self) -> Option<Algorithm> {
        Some(match self {
            Self::Arabic => Algorithm::Arabic,
            Self::Danish => Algorithm::Danish,
            Self::Dutch => Algorithm::Dutch,
            Self::English => Algorithm::English,
            Self::Finnish => Algorithm::Finnish,
            Self::French => Algorithm::French,
            Self::German => Algorithm::German,
            Self::Greek => Algorithm::Greek,
            Self::Hungarian => Algorithm::Hungarian,
            Self::Italian => Algorithm::Italian,
            Self::Norwegian => Algorithm::Norwegian,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Romanian => Algorithm::Romanian,
            Self::Russian => Algorithm::Russian,
            Self::Spanish => Algorithm::Spanish,
            Self::Swedish => Algorithm::Swedish,
            Self::Tamil => Algorithm::Tamil,
            Self::Turkish => Algorithm::Turkish,
            Self::Other | Self::Chinese | Self::Japanese | Self::Korean => return None,
        })
    }

    /// Whether Latin words in such a text are foreign, and then most likely English.
    pub(super) const fn is_written_in_another_script(self) -> bool {
        matches!(
            self,
            Self::Arabic
                | Self::Greek
                | Self::Russian
                | Self::Tamil
                | Self::Chinese
                | Self::Japanese
                | Self::Korean
        )
    }
}

/// The language of the words in other scripts, when a text of mostly Latin letters has as many of them as Latin ones: names and
/// terms are often left in Latin letters, and few of the other scripts' characters make a word.
fn beside_latin(text: &str) -> Option<Language> {
    if text.is_ascii() {
        return None;
    }
    let is_latin =
        |c: char| c.is_ascii_alphabetic() || matches!(c, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}');
    // In halves of a word.
    let (mut latin, mut other, mut before) = (0_u32, 0_u32, ' ');
    for c in text.chars() {
        if is_latin(c) {
            latin += if is_latin(before) { 0 } else { 2 };
        } else if GramScript::of(c).is_some() {
            other += 1;
        } else if c.is_alphabetic() {
            other += if before.is_alphabetic() && !is_latin(before) { 0 } else { 2 };
        }
        before = c;
    }
    if other == 0 || other < latin {
        return None;
    }
    let rest: String = text.chars().map(|c| if is_latin(c) { ' ' } else { c }).collect();
    whatlang::detect(&rest).map(|info| Language::of(info.lang()))
}
