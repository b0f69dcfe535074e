//! The search by words.

use std::{cmp::Reverse, io};

use lectern_shared::model::language::Language;

use super::{
    super::lexical::{LexicalQuery, TermId, idf},
    BlockSelection, ScoredHit, SpilledSelection, TopHits,
};

/// The BM25 search of a question over blocks that are visited twice: first every one is counted, then every one is scored.
/// Both may come in any order, so that not all need be in memory at once.
#[derive(Debug)]
pub struct LexicalSearch {
    query: LexicalQuery,
    /// The question's terms in each language met, by the language's number.
    terms: [Option<Vec<TermId>>; Language::ALL.len()],
    /// How many passages are in each language.
    passages: [u64; Language::ALL.len()],
    frequencies: Vec<u64>,
}

impl LexicalSearch {
    /// Analyses a question.
    pub fn new(query: &str) -> Self {
        let query = LexicalQuery::new(query);
        let frequencies = vec![0; query.len()];
        Self { query, terms: Default::default(), passages: [0; Language::ALL.len()], frequencies }
    }

    /// Counts what is searched of a block towards the IDF.
    pub fn count(&mut self, selection: &BlockSelection) {
        let language = selection.block().kind().language();
        self.passages[usize::from(language.code())] += u64::from(selection.row_count());
        let Self { query, terms, frequencies, .. } = self;
        for (frequency, term) in frequencies.iter_mut().zip(question_terms(terms, query, language)) {
            *frequency += selection.frequency(*term);
        }
    }

    /// The same of a block in a file.
    pub(crate) fn count_spilled(&mut self, selection: &SpilledSelection) -> io::Result<()> {
        let language = selection.outline().block().kind().language();
        let read = selection.only(question_terms(&mut self.terms, &self.query, language))?;
        self.count(&read);
        Ok(())
    }

    /// The question's terms in the language of a block that was counted.
    pub fn terms(&self, selection: &BlockSelection) -> &[TermId] {
        let language = selection.block().kind().language();
        self.terms.get(usize::from(language.code())).and_then(Option::as_deref).unwrap_or_default()
    }

    /// Fixes the IDF to what was counted, to score the same for the best `limit` hits.
    pub fn score(self, limit: usize) -> LexicalScorer {
        let passages = self.passages.iter().sum();
        let mut languages = Language::ALL;
        languages.sort_by_key(|language| Reverse(self.passages[usize::from(language.code())]));
        let factors: Vec<f32> = self
            .query
            .weights(&languages)
            .into_iter()
            .zip(&self.frequencies)
            .map(|(weight, frequency)| if *frequency == 0 { 0.0 } else { weight * idf(passages, *frequency) })
            .collect();
        let terms = self.terms.map(|terms| {
            terms
                .into_iter()
                .flatten()
                .zip(&factors)
                .filter(|(_, factor)| **factor > 0.0)
                .map(|(term, factor)| (term, *factor))
                .collect()
        });
        LexicalScorer { terms, sums: Vec::new(), best: TopHits::new(limit) }
    }
}

/// The terms of a question in a language, made when they are first needed.
fn question_terms<'a>(
    known: &'a mut [Option<Vec<TermId>>],
    query: &LexicalQuery,
    language: Language,
) -> &'a [TermId] {
    known
        .get_mut(usize::from(language.code()))
        .map(|terms| terms.get_or_insert_with(|| query.terms(language)).as_slice())
        .unwrap_or_default()
}

/// The second visit of a [`LexicalSearch`].
#[derive(Debug)]
pub struct LexicalScorer {
    /// The terms that count in each language, with the question's weight times the IDF.
    terms: [Vec<(TermId, f32)>; Language::ALL.len()],
    /// The score of each row of the block at hand; all zero between blocks.
    sums: Vec<f32>,
    best: TopHits,
}

impl LexicalScorer {
    /// Scores what is searched of a block.
    pub fn add(&mut self, selection: &BlockSelection) {
        let block = selection.block();
        let Self { terms, sums, best } = self;
        let rows = block.row_count() as usize;
        if sums.len() < rows {
            sums.resize(rows, 0.0);
        }
        // Term by term in the question's order: a passage's score is the same whatever block it is in.
        for (term, factor) in &terms[usize::from(block.kind().language().code())] {
            selection.each_posting(*term, |row, weight| sums[usize::from(row)] += factor * weight);
        }
        for run in selection.runs_in(0..block.row_count()) {
            let scores = &mut sums[run.start as usize..run.end as usize];
            for (row, score) in run.zip(scores.iter()) {
                if *score > 0.0
                    && best.admits(*score)
                    && let Some((place, ordinal)) = selection.name(row)
                {
                    best.push(ScoredHit { place, ordinal, score: *score });
                }
            }
            scores.fill(0.0);
        }
    }

    /// Scores what is searched of a block in a file.
    pub(crate) fn add_spilled(&mut self, selection: &SpilledSelection) -> io::Result<()> {
        let language = selection.outline().block().kind().language();
        let terms: Vec<TermId> =
            self.terms[usize::from(language.code())].iter().map(|(term, _)| *term).collect();
        self.add(&selection.only(&terms)?);
        Ok(())
    }

    /// The hits, best first.
    pub fn finish(self) -> Vec<ScoredHit> {
        self.best.finish()
    }
}
