//! How well one passage answers a question: which of its words it has, and in which sentence.

use std::{collections::HashMap, ops::Range};

use lectern_shared::model::language::Language;

use super::{
    AVG_LEN, LexicalQuery, TermId, TermStemmer, TokenizeMode,
    counted::CountedSentence,
    idf,
    language::detect_language,
    lead_in::{HeadingsAbove, has_more, pass_on, raise},
    others::tell_of_others,
    reach::{quoted, with_title},
    sentences::placed_sentences,
    titles::is_lone_title,
    tokenize,
    typing::TypedWord,
    weight,
};

/// How much a word counts for a sentence that has it only from the heading of its section, further above: a sentence that says it goes
/// before a shorter one of that section.
const OF_SECTION: f32 = 0.8;

/// A question put to one passage. The question and the passage's language are made out once, whatever is asked of it.
#[derive(Debug)]
pub struct PassageMatch<'a> {
    query: &'a LexicalQuery,
    text: &'a str,
    language: Language,
    /// What each word of the question counts here.
    weights: Vec<f32>,
    /// The question's words by their terms in the passage's language.
    slots: HashMap<TermId, Vec<usize>>,
    /// How often the name of its document has each word of the question.
    name: Vec<u32>,
    /// What it stands under.
    above: Vec<HeadingsAbove<'a>>,
}

/// How much of a question a passage has: the shares of its content words that it contains, or the headings above it and the name of its
/// document if it contains any, from 0 to 1. Every word weighs the same, however rare. Of a question without words they are 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct WordCoverage {
    /// Of the question's own words.
    pub own: f32,
    /// Of these and those of the question that it goes on from, if it does.
    pub all: f32,
    /// Of the question's own words, only the codes and the numbers that tell one thing from another; 0 where it has none.
    pub numbers: f32,
}

impl LexicalQuery {
    /// Puts the question to a passage, by the same analysis as the index.
    pub fn matched<'a>(&'a self, text: &'a str) -> PassageMatch<'a> {
        let language = detect_language(text);
        let mut slots = HashMap::<TermId, Vec<usize>>::new();
        for (slot, term) in self.terms(language).into_iter().enumerate() {
            slots.entry(term).or_default().push(slot);
        }
        let weights = self.weights(&[language]);
        PassageMatch {
            query: self,
            text,
            language,
            weights,
            slots,
            name: vec![0; self.len()],
            above: Vec::new(),
        }
    }
}

impl<'a> PassageMatch<'a> {
    /// The same for a passage of a document with this name.
    #[must_use]
    pub fn of_document(mut self, name: &str) -> Self {
        (self.name, _) = self.frequencies(name, &mut TermStemmer::new(self.language));
        self
    }

    /// The same for a passage under headings, which its text has or not: those that hold from each of these bytes of it on, in order.
    #[must_use]
    pub fn under(mut self, headings: impl IntoIterator<Item = (usize, &'a [String])>) -> Self {
        let mut terms = TermStemmer::new(self.language);
        for (from, titles) in headings {
            let (frequencies, _) = self.frequencies(&titles.join("\n"), &mut terms);
            self.above.push(HeadingsAbove { from, titles, frequencies });
        }
        self
    }

    /// Which words of the question the passage has, or the headings above it and the name of its document, in the order of
    /// [`LexicalQuery::weights`]; none if it has no content word itself.
    pub fn present(&self) -> Vec<bool> {
        let (mut words, _) = self.frequencies(self.text, &mut TermStemmer::new(self.language));
        if !self.has_any(&words, self.query.len()) {
            return vec![false; words.len()];
        }
        raise(&mut words, &self.name);
        for above in &self.above {
            raise(&mut words, &above.frequencies);
        }
        words.into_iter().map(|frequency| frequency > 0).collect()
    }

    /// How much of the question the passage has, of which these words are [`PassageMatch::present`] in it, and these `known`: present in
    /// any of the passages that were found.
    pub fn coverage(&self, present: &[bool], known: &[bool]) -> WordCoverage {
        let own = self.own_weights();
        let covered = |weights: &[f32]| self.query.coverage(weights, told(present), told(known));
        let numbers = covered(&self.query.of_numbers(own));
        WordCoverage { own: covered(own), all: covered(&self.weights), numbers }
    }

    /// The question's own words that may hold a typing error: those that are not `known`.
    pub fn typed_words(&self, known: &[bool]) -> Vec<TypedWord> {
        let unknown = self.query.unknown_words(self.own_weights(), told(known));
        unknown.filter_map(TypedWord::new).collect()
    }

    /// Compares words that stand nowhere with all that stand here.
    pub fn compare(&self, typed: &mut [TypedWord]) {
        tokenize(self.text, TokenizeMode::Document, &mut |token| {
            for word in typed.iter_mut() {
                word.compare(token.text);
            }
        });
    }

    /// Whether these stretches of the passage tell of other codes or years than those that are asked for, of which none is `present`.
    pub fn tells_of_others(&self, present: &[bool], stretches: &[Range<usize>]) -> bool {
        let asked = self.query.missing_things(self.own_weights(), told(present));
        tell_of_others(&asked, stretches.iter().filter_map(|stretch| self.text.get(stretch.clone())))
    }

    /// The byte range of the sentence that matches the question best: BM25 among the sentences of the passage, so
    /// that words which every sentence has decide nothing. A heading, a question and the header of a table count for what they introduce, but
    /// where that has no word itself, not before what has all of these words and more. The first of equals; none if no content word occurs.
    pub fn best_sentence(&self) -> Option<Range<usize>> {
        let (sentences, containing) = self.counted();
        let best = self.best(&sentences, &containing)?;
        let row = sentences[best].row.as_ref();
        Some(row.map_or_else(|| with_title(self.text, &sentences, best), |row| row.line.clone()))
    }

    /// What answers the question best: [`PassageMatch::best_sentence`] with the list that it introduces, or the sentence beside it that has
    /// what it lacks of the question; of a table all rows that have the same words, in their order.
    pub fn best_sentences(&self) -> Vec<Range<usize>> {
        let (sentences, containing) = self.counted();
        let Some(at) = self.best(&sentences, &containing) else { return Vec::new() };
        let best = &sentences[at];
        let Some(row) = &best.row else {
            return vec![quoted(self.text, &sentences, at, self.own_weights())];
        };
        let is_alike = |other: &&CountedSentence| {
            !has_more(&other.frequencies, &best.frequencies, &self.weights)
                && !has_more(&best.frequencies, &other.frequencies, &self.weights)
        };
        let rows = sentences.iter().filter(is_alike).filter_map(|sentence| sentence.row.as_ref());
        let mut rows: Vec<_> =
            rows.filter(|other| other.table == row.table).map(|other| other.line.clone()).collect();
        rows.dedup();
        rows
    }

    /// What each of the question's own words counts here.
    fn own_weights(&self) -> &[f32] {
        self.weights.get(..self.query.own_words()).unwrap_or_default()
    }

    /// The sentences of the passage, and how many of them have each word of the question themselves.
    fn counted(&self) -> (Vec<CountedSentence>, Vec<u64>) {
        let mut terms = TermStemmer::new(self.language);
        let mut counted: Vec<CountedSentence> = Vec::new();
        let mut containing = vec![0_u64; self.query.len()];
        for sentence in placed_sentences(self.text, self.language) {
            let (frequencies, length) = self.frequencies(&self.text[sentence.range.clone()], &mut terms);
            for (total, frequency) in containing.iter_mut().zip(&frequencies) {
                *total += u64::from(*frequency > 0);
            }
            let sentence = CountedSentence::new(self.text, counted.last(), sentence, frequencies, length);
            counted.push(sentence);
        }
        pass_on(self.text, &self.weights, &self.name, &self.above, &mut counted);
        (counted, containing)
    }

    /// The place of the best of the sentences; `containing` is how many have each word of the question.
    fn best(&self, counted: &[CountedSentence], containing: &[u64]) -> Option<usize> {
        let total = counted.len() as u64;
        let words: f32 = counted.iter().map(|sentence| scaled(sentence.length)).sum();
        let mean = (words / scaled(u32::try_from(counted.len()).unwrap_or(u32::MAX))).max(1.0);
        let rarity: Vec<f32> = containing.iter().map(|containing| idf(total, *containing)).collect();
        let own = self.query.own_words();
        let is_about =
            |sentence: &CountedSentence| !sentence.is_passed_on && self.has_any(&sentence.frequencies, own);
        let scored = counted.iter().enumerate().filter(|(_, sentence)| is_about(sentence));
        let scored = scored.map(|(at, sentence)| (self.score(sentence, mean, &rarity), at));
        let scored: Vec<(f32, usize)> = scored.filter(|(score, _)| *score > 0.0).collect();
        let mut best = first_of_best(scored.iter().copied())?;
        let says_more = |at: usize, best: usize| self.says_more(&counted[at], &counted[best]);
        // A row, and what stands right below a heading, may have nothing of the question but the words above it.
        while !counted[best].has_own_words(&self.weights)
            && let Some(more) = first_of_best(scored.iter().filter(|(_, at)| says_more(*at, best)).copied())
        {
            best = more;
        }
        Some(self.below_title(counted, &scored, best).unwrap_or(best))
    }

    /// What answers instead of a line that may be no more than a title, as "Error codes" above a table without marks: the best of what
    /// stands below it and has a word of the question that it lacks.
    fn below_title(
        &self,
        counted: &[CountedSentence],
        scored: &[(f32, usize)],
        title: usize,
    ) -> Option<usize> {
        if !is_lone_title(self.text, &counted[title]) {
            return None;
        }
        let known = &counted[title].frequencies;
        let adds = |at: usize| at > title && has_more(&counted[at].own, known, &self.weights);
        first_of_best(scored.iter().filter(|(_, at)| adds(*at)).copied())
    }

    /// The BM25 score of a sentence, where sentences have `mean` words; `rarity` is that of the question's words.
    fn score(&self, sentence: &CountedSentence, mean: f32, rarity: &[f32]) -> f32 {
        // The constant average is that of passages, so a sentence's length is brought to the same scale.
        let length = rounded(scaled(sentence.length) * AVG_LEN / mean);
        let words = sentence.frequencies.iter().zip(&sentence.near).zip(self.weights.iter().zip(rarity));
        let words = words.filter(|((frequency, _), _)| **frequency > 0);
        let score = |((frequency, near), (factor, rarity)): ((&u32, &u32), (&f32, &f32))| {
            let share = if *near > 0 { 1.0 } else { OF_SECTION };
            share * factor * rarity * weight(*frequency, length)
        };
        words.map(score).sum()
    }

    /// Whether a sentence has all words of the question that another has, and more.
    fn says_more(&self, sentence: &CountedSentence, other: &CountedSentence) -> bool {
        has_more(&sentence.frequencies, &other.frequencies, &self.weights)
            && !has_more(&other.frequencies, &sentence.frequencies, &self.weights)
    }

    /// Whether any of the first so many words of the question counts, and is there.
    fn has_any(&self, frequencies: &[u32], first: usize) -> bool {
        let weights = self.weights.get(..first).unwrap_or_default();
        self.query.has_any(weights, |slot| frequencies.get(slot).is_some_and(|frequency| *frequency > 0))
    }

    /// How often a text has each word of the question, and how many words it has.
    fn frequencies(&self, text: &str, terms: &mut TermStemmer) -> (Vec<u32>, u32) {
        let mut frequencies = vec![0_u32; self.query.len()];
        let length = count(text, terms, |term| {
            for slot in self.slots.get(&term).into_iter().flatten() {
                frequencies[*slot] += 1;
            }
        });
        (frequencies, length)
    }
}

/// What is told of each word, by its place.
fn told(words: &[bool]) -> impl Fn(usize) -> bool {
    move |at| words.get(at).copied().unwrap_or(false)
}

/// [`PassageMatch::best_sentence`] of one passage that is asked nothing else.
pub fn best_sentence(query: &str, text: &str) -> Option<Range<usize>> {
    LexicalQuery::new(query).matched(text).best_sentence()
}

/// The place with the highest score, the first of equals.
fn first_of_best(scored: impl Iterator<Item = (f32, usize)>) -> Option<usize> {
    scored.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, at)| at)
}

#[allow(clippy::cast_precision_loss, reason = "word counts of a passage are far below 2^24")]
const fn scaled(count: u32) -> f32 {
    count as f32
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is meant"
)]
const fn rounded(length: f32) -> u32 {
    length as u32
}

/// Calls `found` for every term of a text and returns its length in words.
fn count(text: &str, terms: &mut TermStemmer, mut found: impl FnMut(TermId)) -> u32 {
    let mut length = 0;
    tokenize(text, TokenizeMode::Document, &mut |token| {
        length += u32::from(token.kind.is_counted());
        let (term, unaccented) = terms.of_document(token.text);
        found(term);
        if let Some(term) = unaccented {
            found(term);
        }
    });
    length
}
