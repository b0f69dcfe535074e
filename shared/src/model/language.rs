//! The languages that texts are written in.

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

    /// Whether Latin words in such a text are foreign, and then most likely English.
    pub const fn is_written_in_another_script(self) -> bool {
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
