//! Which language a text is in, and how that is stemmed.

use std::sync::LazyLock;

use lectern_shared::model::language::Language;
use rust_stemmers::Algorithm;
use whatlang::{Detector, Lang, Script};

use super::{
    script::GramScript,
    stop_words::FunctionWords,
    tokenize::{TokenizeMode, tokenize},
};

/// The most bytes that detection looks at: more does not change its answer, only its time.
const SAMPLE_BYTES: usize = 16 * 1024;

/// Trigram statistics, without languages that hardly any document is in: what they are told from is mostly a list of names or of codes.
pub(super) static DETECTOR: LazyLock<Detector> = LazyLock::new(|| {
    Detector::with_denylist(vec![Lang::Aka, Lang::Epo, Lang::Jav, Lang::Lat, Lang::Sna, Lang::Zul])
});

/// The language of a text.
///
/// Trigram statistics are sure only of longer texts. A short Latin text is judged by its function
/// words, and where these do not tell another language, it counts as English: that stemmer mostly drops plurals, and it drops them from
/// questions in the same way.
pub fn detect_language(text: &str) -> Language {
    told_language(text, None).unwrap_or(Language::English)
}

/// The language of a question to texts in the `searched` languages, the most frequent first. Where the question does not
/// tell, it is asked in the language of most texts.
pub fn question_language(text: &str, searched: &[Language]) -> Language {
    let usual = searched.first().copied();
    // A Latin text tells that it is in none of the others.
    let latin = usual.filter(|usual| !usual.is_written_in_another_script()).unwrap_or(Language::English);
    if text.contains(char::is_alphabetic) {
        told_language(text, usual).unwrap_or(latin)
    } else {
        usual.unwrap_or(Language::Other)
    }
}

/// The language of a text, unless it is a short Latin one whose function words do not tell. The `usual` one needs fewer of them.
fn told_language(text: &str, usual: Option<Language>) -> Option<Language> {
    let sample = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
    let Some(info) = DETECTOR.detect(sample) else { return Some(Language::Other) };
    if info.script() != Script::Latin {
        return Some(language_of(info.lang()));
    }
    if let Some(other) = beside_latin(sample) {
        return Some(other);
    }
    if info.is_reliable() {
        return Some(language_of(info.lang()));
    }
    let mut words = FunctionWords::default();
    tokenize(sample, TokenizeMode::Query, &mut |token| {
        if token.kind.is_counted() {
            words.add(token.text);
        }
    });
    words.language(usual.unwrap_or(Language::English), language_of(info.lang()))
}

pub(super) const fn language_of(lang: Lang) -> Language {
    match lang {
        Lang::Ara => Language::Arabic,
        Lang::Dan => Language::Danish,
        Lang::Nld => Language::Dutch,
        Lang::Eng => Language::English,
        Lang::Fin => Language::Finnish,
        Lang::Fra => Language::French,
        Lang::Deu => Language::German,
        Lang::Ell => Language::Greek,
        Lang::Hun => Language::Hungarian,
        Lang::Ita => Language::Italian,
        Lang::Nob => Language::Norwegian,
        Lang::Por => Language::Portuguese,
        Lang::Ron => Language::Romanian,
        Lang::Rus => Language::Russian,
        Lang::Spa => Language::Spanish,
        Lang::Swe => Language::Swedish,
        Lang::Tam => Language::Tamil,
        Lang::Tur => Language::Turkish,
        Lang::Cmn => Language::Chinese,
        Lang::Jpn => Language::Japanese,
        Lang::Kor => Language::Korean,
        _ => Language::Other,
    }
}

/// The stemmer of the language.
pub(super) const fn stemmer(language: Language) -> Option<Algorithm> {
    Some(match language {
        Language::Arabic => Algorithm::Arabic,
        Language::Danish => Algorithm::Danish,
        Language::Dutch => Algorithm::Dutch,
        Language::English => Algorithm::English,
        Language::Finnish => Algorithm::Finnish,
        Language::French => Algorithm::French,
        Language::German => Algorithm::German,
        Language::Greek => Algorithm::Greek,
        Language::Hungarian => Algorithm::Hungarian,
        Language::Italian => Algorithm::Italian,
        Language::Norwegian => Algorithm::Norwegian,
        Language::Portuguese => Algorithm::Portuguese,
        Language::Romanian => Algorithm::Romanian,
        Language::Russian => Algorithm::Russian,
        Language::Spanish => Algorithm::Spanish,
        Language::Swedish => Algorithm::Swedish,
        Language::Tamil => Algorithm::Tamil,
        Language::Turkish => Algorithm::Turkish,
        Language::Other | Language::Chinese | Language::Japanese | Language::Korean => return None,
    })
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
    DETECTOR.detect(&rest).map(|info| language_of(info.lang()))
}
