//! From a lower-case word to its term in a language.

use std::borrow::Cow;

use lectern_shared::model::language::Language;
use rust_stemmers::{Algorithm, Stemmer};

use super::{
    TermId,
    fold::{fold_accents, has_accents},
    language::stemmer,
    script::GramScript,
};

/// The scripts that stemmers exist for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StemmerScript {
    Latin,
    Greek,
    Cyrillic,
    Arabic,
    Tamil,
}

impl StemmerScript {
    const fn of(c: char) -> Option<Self> {
        Some(match c {
            'a'..='z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Self::Latin,
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Self::Greek,
            '\u{400}'..='\u{52f}' => Self::Cyrillic,
            '\u{620}'..='\u{65f}' | '\u{670}'..='\u{6d3}' => Self::Arabic,
            '\u{b80}'..='\u{bff}' => Self::Tamil,
            _ => return None,
        })
    }
}

/// What stands before "zu" in a German verb of two parts, as in "einzureichen".
const SEPARABLE: [&str; 38] = [
    "ab", "an", "auf", "aus", "bei", "bekannt", "bereit", "dar", "durch", "ein", "entgegen", "fest", "fort",
    "frei", "heraus", "her", "hervor", "hinzu", "hin", "hoch", "los", "mit", "nach", "nieder", "sicher",
    "statt", "teil", "um", "vor", "voraus", "weg", "weiter", "wieder", "zu", "zurecht", "zurück", "zusammen",
    "über",
];

/// The fewest bytes of a verb behind "zu".
const MIN_VERB: usize = 4;

/// The infinitive of a German verb with "zu" in it: "einreichen" of "einzureichen".
fn without_zu(word: &str) -> Option<String> {
    let ends = word.ends_with("en") || word.ends_with("ern") || word.ends_with("eln");
    if !ends || !word.contains("zu") {
        return None;
    }
    let verb = |first: &&str| {
        let verb = word.strip_prefix(*first)?.strip_prefix("zu")?;
        (verb.len() >= MIN_VERB).then(|| format!("{first}{verb}"))
    };
    SEPARABLE.iter().find_map(verb)
}

/// Turns words into terms by the rules of one language.
pub(crate) struct TermStemmer {
    script: StemmerScript,
    native: Option<Stemmer>,
    foreign: Option<Stemmer>,
    is_german: bool,
    folded: String,
    scratch: String,
}

impl TermStemmer {
    /// The rules of `language`.
    pub(crate) fn new(language: Language) -> Self {
        let script = match language {
            Language::Greek => StemmerScript::Greek,
            Language::Russian => StemmerScript::Cyrillic,
            Language::Arabic => StemmerScript::Arabic,
            Language::Tamil => StemmerScript::Tamil,
            _ => StemmerScript::Latin,
        };
        // Latin words among another script are most likely English.
        let latin = language.is_written_in_another_script().then_some(Algorithm::English);
        let native = stemmer(language).or(latin);
        Self {
            script,
            native: native.map(Stemmer::create),
            foreign: latin.map(Stemmer::create),
            is_german: language == Language::German,
            folded: String::new(),
            scratch: String::new(),
        }
    }

    /// The term of a word as written: stemmed with its accents, which the stemmers know, then folded.
    pub(crate) fn of(&mut self, word: &str) -> TermId {
        if word.chars().next().and_then(GramScript::of).is_some() {
            return TermId::of(word);
        }
        let stem = self.stem(word);
        if stem.is_ascii() {
            return TermId::of(&stem);
        }
        let mut folded = std::mem::take(&mut self.scratch);
        folded.clear();
        fold_accents(&stem, &mut folded);
        let term = TermId::of(&folded);
        self.scratch = folded;
        term
    }

    /// The terms that a document's word is indexed under: its own and, where another, that of the word
    /// typed without accents (Spanish "administracion" keeps an ending that "administración" loses), or of a German verb without its "zu".
    pub(crate) fn of_document(&mut self, word: &str) -> (TermId, Option<TermId>) {
        let term = self.of(word);
        if self.is_german
            && let Some(verb) = without_zu(word)
        {
            return (term, Some(self.of(&verb)));
        }
        if !has_accents(word) {
            return (term, None);
        }
        let mut folded = std::mem::take(&mut self.folded);
        folded.clear();
        fold_accents(word, &mut folded);
        let unaccented = self.of(&folded);
        self.folded = folded;
        (term, (unaccented != term).then_some(unaccented))
    }

    /// The stem, if the word is all letters of a script that there is a stemmer for.
    fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        let Some(script) = word.chars().next().and_then(StemmerScript::of) else {
            return Cow::Borrowed(word);
        };
        let stemmer = if script == self.script { &self.native } else { &self.foreign };
        match stemmer {
            Some(stemmer)
                if (script == self.script || script == StemmerScript::Latin)
                    && word.chars().all(|c| StemmerScript::of(c) == Some(script)) =>
            {
                stemmer.stem(word)
            }
            _ => Cow::Borrowed(word),
        }
    }
}
