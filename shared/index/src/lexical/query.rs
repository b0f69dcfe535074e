//! A question, ready to be put to segments of any language.

use std::{collections::HashMap, ops::Range};

use lectern_shared::model::language::Language;

use super::{
    LexicalToken, TermId, TermStemmer, TokenKind, TokenizeMode,
    fold::{fold_accents, has_accents},
    others::AskedThing,
    script::GramScript,
    stop_words::{LanguageVotes, StopLanguages},
    tokenize,
};

/// The most different words of a question that count. Longer questions are pasted documents.
const MAX_SLOTS: usize = 256;

/// The most bytes of a question that are read.
const MAX_BYTES: usize = 32 * 1024;

/// The weight of Japanese endings and particles beside words.
const WEAK: f32 = 0.3;

/// The weight of a single character beside the bigrams that contain it, and of a part of a number beside the number.
const SINGLE: f32 = 0.5;

/// How many words a code such as `A-102` counts for in the share of a question that a text has: what is asked about is that, and not
/// another thing of which the same is told.
const CODE: f32 = 2.0;

/// How many times a word that stands nowhere counts in the share of a question that a text has: what is asked about is most likely that,
/// and not what the other words have in common with it ("sick leave", "paternity leave").
const UNKNOWN: f32 = 2.0;

/// The most letters that a code begins with.
const CODE_LETTERS: usize = 4;

/// The fewest digits of a number that tells one thing from another: with fewer it is mostly an amount ("two dogs").
const MIN_DIGITS: usize = 2;

/// What Chinese asks with: a pair of characters with one of these says how something is asked, and not what about.
const ASKING: &str = "谁誰什甚么麼吗嗎呢哪怎几幾多少些是有的了请請";

/// What French puts behind a hyphen to ask, or to point: "est-elle" asks no more than "est" and "elle".
const BEHIND_HYPHENS: [&str; 13] =
    ["je", "tu", "il", "elle", "on", "nous", "vous", "ils", "elles", "ce", "moi", "ci", "là"];

/// One distinct word of a question.
#[derive(Debug)]
struct QueryWord {
    word: String,
    /// Its frequency in the question times the weight of its kind.
    weight: f32,
    /// The compound or word that it is a part of.
    unit: u32,
    whole: bool,
    /// It is a pair of characters or a single one, of a script without blanks.
    is_gram: bool,
    /// How many words its compound counts for in the share of a question that a text has.
    share: f32,
    stop: StopLanguages,
    capitals: bool,
}

impl QueryWord {
    /// Whether it is a function word of this language.
    fn is_stop(&self, language: Option<Language>) -> bool {
        !self.capitals && language.is_some_and(|language| self.stop.contains(language))
    }
}

/// A question cut into distinct words ("slots"), which each language turns into terms of its own.
#[derive(Debug)]
pub struct LexicalQuery {
    slots: Vec<QueryWord>,
    /// The function words of each language among the distinct words, and how many of them would make the
    /// question one in a language that few of the texts are in.
    votes: LanguageVotes,
    convincing: u32,
    /// How many of the distinct words, which are the first, are the question's own, if it goes on from another one.
    own: Option<usize>,
}

impl LexicalQuery {
    /// Analyses a question. Of a very long one the beginning counts.
    pub fn new(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(MAX_BYTES)];
        let shouted = !text.contains(char::is_lowercase);
        // Japanese words have some of the same characters.
        let may_ask = !text.chars().any(|c| GramScript::of(c) == Some(GramScript::Hiragana));
        let mut slots = Vec::<QueryWord>::new();
        let mut known = HashMap::<(String, bool), usize>::new();
        let mut inversions = FrenchInversions::default();
        tokenize(text, TokenizeMode::Query, &mut |token| {
            let stop = if token.kind == TokenKind::Word {
                StopLanguages::of(token.text)
            } else {
                StopLanguages::default()
            };
            inversions.add(&token, stop);
            let weight = match token.kind {
                TokenKind::Word | TokenKind::Whole | TokenKind::Number | TokenKind::Bigram => 1.0,
                TokenKind::WeakBigram => WEAK,
                TokenKind::Single | TokenKind::Group => SINGLE,
            };
            let capitals = token.capitals && !shouted;
            let mut add = |word: String, weight: f32, is_copy: bool| {
                if let Some(slot) = known.get(&(word.clone(), is_copy)).and_then(|at| slots.get_mut(*at)) {
                    // The zeros of a million say no more of it than those of a thousand.
                    if token.kind != TokenKind::Group || slot.unit != token.unit {
                        slot.weight += weight;
                    }
                    slot.capitals |= capitals;
                } else if slots.len() < MAX_SLOTS {
                    known.insert((word.clone(), is_copy), slots.len());
                    let whole = matches!(token.kind, TokenKind::Whole | TokenKind::Number);
                    let is_gram =
                        matches!(token.kind, TokenKind::Bigram | TokenKind::WeakBigram | TokenKind::Single);
                    let share = share_of(token.kind, &word, may_ask);
                    let unit = token.unit;
                    slots.push(QueryWord { word, weight, unit, whole, is_gram, share, stop, capitals });
                }
            };
            if has_accents(token.text) {
                // Texts written without accents are found too: half of the word's weight is on its plain
                // form, which accented words are also indexed under, so that a full match has full weight.
                let mut unaccented = String::new();
                fold_accents(token.text, &mut unaccented);
                add(token.text.to_owned(), weight / 2.0, false);
                add(unaccented, weight / 2.0, true);
            } else {
                add(token.text.to_owned(), weight, false);
            }
        });
        inversions.mark(&mut slots);
        let mut votes = LanguageVotes::default();
        for slot in &slots {
            votes.add(slot.stop);
        }
        let convincing = u32::try_from(slots.len() * 2 / 5).unwrap_or(u32::MAX).max(2);
        Self { slots, votes, convincing, own: None }
    }

    /// A question together with the one that it goes on from ("And of pumps?"): what answers has a word of its own, unless those are all
    /// function words ("Why?").
    pub fn going_on(question: &str, before: &str) -> Self {
        let own = Self::new(question);
        let own = Some(own.len()).filter(|_| own.content_words() > 0);
        Self { own, ..Self::new(&format!("{question}\n{before}")) }
    }

    /// Whether there is no word in it.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many distinct words it has.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many words it has that are no function words of the language that most of those are of; the parts of one count once.
    pub fn content_words(&self) -> usize {
        let language = self.votes.best(None, 1);
        let content = self.slots.iter().filter(|slot| !slot.is_stop(language));
        let mut units: Vec<u32> = content.map(|slot| slot.unit).collect();
        units.dedup();
        units.len()
    }

    /// The term of each word in `language`, in the order of [`LexicalQuery::weights`].
    pub fn terms(&self, language: Language) -> Vec<TermId> {
        let mut terms = TermStemmer::new(language);
        self.slots.iter().map(|slot| terms.of(&slot.word)).collect()
    }

    /// The weight of each word: 0 for stop words, unless there is nothing else. `searched` are the languages
    /// of the texts, the most frequent first.
    ///
    /// Which words those are is decided by the question's own function words. One is enough for the language
    /// of most texts; another language needs several, since "dog" and "die" are function words somewhere.
    /// A word in capitals, such as IT or WHO, is a name.
    pub fn weights(&self, searched: &[Language]) -> Vec<f32> {
        let language = self.votes.best(searched.first().copied(), self.convincing);
        let only_stop_words = self.slots.iter().all(|slot| slot.is_stop(language));
        self.slots
            .iter()
            .map(|slot| if slot.is_stop(language) && !only_stop_words { 0.0 } else { slot.weight })
            .collect()
    }

    /// The distinct terms in every one of these languages with their weights, by ascending term: the question
    /// as one sparse vector, for an index that cannot tell the languages of its passages apart.
    pub fn sparse(&self, searched: &[Language]) -> Vec<(TermId, f32)> {
        let weights = self.weights(searched);
        let mut all = HashMap::<TermId, f32>::new();
        for language in searched {
            let mut own = HashMap::<TermId, f32>::new();
            for (term, weight) in self.terms(*language).into_iter().zip(&weights) {
                if *weight > 0.0 {
                    *own.entry(term).or_default() += weight;
                }
            }
            for (term, weight) in own {
                let known = all.entry(term).or_default();
                *known = known.max(weight);
            }
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_unstable_by_key(|(term, _)| *term);
        all
    }

    /// How many of its words, the first ones, are its own: all, unless it goes on from another one.
    pub(super) fn own_words(&self) -> usize {
        self.own.unwrap_or(self.slots.len())
    }

    /// Whether any word that has weight is `present`, told for each word; of a code all of it, since its parts are in others too.
    pub(super) fn has_any(&self, weights: &[f32], present: impl Fn(usize) -> bool) -> bool {
        self.units().any(|unit| self.is_there(unit, weights, &present))
    }

    /// The share of the question's weight that is `present`, told for each word. A compound that is there as a
    /// whole is there, otherwise its parts count; each compound weighs as much as a word, and a code as two, or nothing where not all of
    /// it is there. What only asks weighs nothing, if there is anything else, and what is not `known`, [`UNKNOWN`] times as much.
    pub(super) fn coverage(
        &self,
        weights: &[f32],
        present: impl Fn(usize) -> bool,
        known: impl Fn(usize) -> bool,
    ) -> f32 {
        let weight = |at: usize| weights.get(at).copied().unwrap_or(0.0);
        let only_asks = self.slots.iter().zip(weights).all(|(slot, weight)| slot.share * *weight <= 0.0);
        let (mut covered, mut total) = (0.0, 0.0);
        for unit in self.units() {
            let sum: f32 = unit.clone().map(weight).sum();
            if sum <= 0.0 {
                continue;
            }
            let share = self.share(unit.clone());
            let is_known = self.is_gram(unit.clone()) || self.is_there(unit.clone(), weights, &known);
            let rarity = if is_known { 1.0 } else { UNKNOWN };
            let heaviest =
                unit.clone().map(weight).fold(0.0, f32::max) * rarity * if only_asks { 1.0 } else { share };
            let found: f32 = unit.clone().filter(|at| present(*at)).map(weight).sum();
            let is_whole = |at: usize| self.slots[at].whole && weight(at) > 0.0 && present(at);
            let part = if unit.clone().any(is_whole) {
                1.0
            } else if share > 1.0 {
                f32::from(u8::from(self.is_there(unit, weights, &present)))
            } else {
                found / sum
            };
            total += heaviest;
            covered += heaviest * part;
        }
        if total > 0.0 { covered / total } else { 0.0 }
    }

    /// The weights of the words that are codes or numbers of two digits and more, and 0 for all others.
    pub(super) fn of_numbers(&self, weights: &[f32]) -> Vec<f32> {
        let digits = |word: &str| word.chars().filter(|c| c.is_numeric()).count();
        let is_number = |slot: &QueryWord| slot.share > 1.0 || digits(&slot.word) >= MIN_DIGITS;
        let words = self.slots.iter().zip(weights);
        words.map(|(slot, weight)| if is_number(slot) { *weight } else { 0.0 }).collect()
    }

    /// The words of its own that have weight, stand by themselves and are not `known`: no function words, abbreviations, codes or
    /// numbers, and nothing of scripts without blanks.
    pub(super) fn unknown_words<'q>(
        &'q self,
        weights: &'q [f32],
        known: impl Fn(usize) -> bool + 'q,
    ) -> impl Iterator<Item = &'q str> {
        let own = self.own_words();
        self.units().filter_map(move |unit| {
            let word = self.slots.get(unit.start)?;
            let is_alone = unit.len() == 1 || (unit.len() == 2 && has_accents(&word.word));
            let is_word = is_alone && !word.whole && !word.capitals && word.stop == StopLanguages::default();
            let is_unknown = unit.start < own
                && !self.is_gram(unit.clone())
                && weights.get(unit.start).is_some_and(|weight| *weight > 0.0)
                && !unit.clone().any(&known);
            let is_letters = word.word.chars().all(char::is_alphabetic);
            (is_word && is_unknown && is_letters).then_some(word.word.as_str())
        })
    }

    /// The codes and years among its own words, unless one of them is `present`.
    pub(super) fn missing_things(
        &self,
        weights: &[f32],
        present: impl Fn(usize) -> bool,
    ) -> Vec<AskedThing<'_>> {
        let mut missing = Vec::new();
        for unit in self.units().filter(|unit| unit.start < self.own_words()) {
            let words = &self.slots[unit.clone()];
            let word = if self.share(unit.clone()) > 1.0 {
                words.iter().find(|slot| slot.whole)
            } else {
                words.first().filter(|_| words.len() == 1)
            };
            let Some(thing) = word.and_then(|slot| AskedThing::of(&slot.word)) else { continue };
            if self.is_there(unit, weights, &present) {
                return Vec::new();
            }
            missing.push(thing);
        }
        missing
    }

    /// Whether any of a compound is of a script without blanks.
    fn is_gram(&self, unit: Range<usize>) -> bool {
        self.slots[unit].iter().any(|slot| slot.is_gram)
    }

    /// Whether a compound that counts is there: any of its words that do, but of a code a whole, or all parts. Those are needed whether they
    /// count or not: `B-102` is not `A-102`, although an "a" says nothing by itself.
    fn is_there(&self, unit: Range<usize>, weights: &[f32], present: &impl Fn(usize) -> bool) -> bool {
        let counts = |at: &usize| weights.get(*at).is_some_and(|weight| *weight > 0.0);
        let mut counted = unit.clone().filter(counts).peekable();
        if self.share(unit.clone()) <= 1.0 || counted.peek().is_none() {
            return counted.any(present);
        }
        let (wholes, parts): (Vec<usize>, Vec<usize>) = unit.partition(|at| self.slots[*at].whole);
        wholes.into_iter().any(present) || (!parts.is_empty() && parts.into_iter().all(present))
    }

    /// How many words a compound counts for.
    fn share(&self, unit: Range<usize>) -> f32 {
        self.slots[unit].iter().map(|slot| slot.share).fold(0.0, f32::max)
    }

    /// The places of the words of each compound.
    fn units(&self) -> impl Iterator<Item = Range<usize>> {
        let mut end = 0;
        self.slots.chunk_by(|one, other| one.unit == other.unit).map(move |unit| {
            let start = end;
            end += unit.len();
            start..end
        })
    }
}

/// The compounds of a question that French asks with: of nothing but function words, or with the "t" of an inversion.
#[derive(Default)]
struct FrenchInversions {
    /// By the number of the compound: whether its parts so far ask, and whether the last one may stand behind a hyphen.
    parts: HashMap<u32, (bool, bool)>,
}

impl FrenchInversions {
    /// Adds a part of a compound.
    fn add(&mut self, token: &LexicalToken<'_>, stop: StopLanguages) {
        if token.kind == TokenKind::Whole {
            return;
        }
        let (is_function, ends) = (stop.contains(Language::French), BEHIND_HYPHENS.contains(&token.text));
        let parts = self.parts.entry(token.unit).or_insert((true, false));
        // A "t" stands between a verb and what it is asked of alone: "ferme-t-elle".
        *parts = ((parts.0 && is_function) || token.text == "t", ends);
    }

    /// Makes function words of them.
    fn mark(&self, slots: &mut [QueryWord]) {
        for slot in slots.iter_mut().filter(|slot| slot.whole) {
            let is_inversion = self.parts.get(&slot.unit) == Some(&(true, true));
            if is_inversion && slot.word.chars().all(char::is_alphabetic) {
                slot.stop = StopLanguages::only(Language::French);
            }
        }
    }
}

/// How many words the compound of a token counts for in the share of a question that a text has.
fn share_of(kind: TokenKind, word: &str, may_ask: bool) -> f32 {
    // What begins with a number is an amount ("10am"), and a word with one may stand without it, too ("COVID-19").
    let letters = word.chars().take_while(|c| c.is_alphabetic()).count();
    let is_code =
        kind == TokenKind::Whole && (1..=CODE_LETTERS).contains(&letters) && word.contains(char::is_numeric);
    let asks = may_ask && kind == TokenKind::Bigram && word.contains(|c: char| ASKING.contains(c));
    if is_code {
        CODE
    } else if asks {
        0.0
    } else {
        1.0
    }
}
