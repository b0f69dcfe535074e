//! What an answer may cite: excerpts of documents, numbered over a whole run.

use std::{fmt::Write, ops::Range};

use lectern_shared::{
    ids::{ChunkId, DocumentId},
    model::place::SourceSpan,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::{
    answer::{cite::CitableSource, passage_url},
    search::{Excerpt, ExcerptPart},
};

/// An excerpt of a document that a search found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RetrievedExcerpt {
    /// Its text.
    pub(super) text: String,
    /// The passages that it is made of, in order; at least one.
    parts: Vec<ExcerptPassage>,
    /// Which of them was found best.
    best: usize,
}

/// A passage of an excerpt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ExcerptPassage {
    /// Its text in the excerpt's, in bytes.
    range: Range<usize>,
    /// Its document.
    pub(super) document_id: DocumentId,
    /// The document's name.
    pub(super) document_name: String,
    /// The passage's own id.
    pub(super) chunk_id: ChunkId,
    /// Where it stands in the document.
    pub(super) place: SourceSpan,
    /// Where it can be opened.
    pub(super) url: Option<String>,
    /// How well it matches; none for one that stands beside a passage that was found.
    score: Option<f32>,
}

impl ExcerptPassage {
    /// Where it can be opened at the page that words of it begin on.
    pub(super) fn url_on(&self, page: Option<u32>) -> Option<String> {
        let (Some(url), Some(page)) = (&self.url, page) else { return self.url.clone() };
        let mut url = Url::parse(url).ok()?;
        url.set_fragment(Some(&format!("page={page}")));
        Some(url.into())
    }

    /// The part of a stretch of the excerpt that stands in this passage, in bytes of the passage; none when it begins before.
    pub(super) fn own_range(&self, stretch: &Range<usize>) -> Option<Range<usize>> {
        let start = stretch.start.checked_sub(self.range.start)?;
        let end = stretch.end.min(self.range.end).checked_sub(self.range.start)?;
        (start < end).then_some(start..end)
    }
}

impl From<&Excerpt> for RetrievedExcerpt {
    fn from(excerpt: &Excerpt) -> Self {
        let part = |part: &ExcerptPart| {
            let passage = &part.passage;
            ExcerptPassage {
                range: part.range.clone(),
                document_id: passage.chunk.document_id,
                document_name: passage.document_name.clone(),
                chunk_id: passage.chunk.chunk_id,
                place: passage.chunk.place.0.clone(),
                url: passage_url(passage),
                score: part.found.then_some(passage.score),
            }
        };
        let best = excerpt.best().chunk.chunk_id;
        Self {
            text: excerpt.text.clone(),
            parts: excerpt.parts.iter().map(part).collect(),
            best: excerpt.parts.iter().position(|part| part.passage.chunk.chunk_id == best).unwrap_or(0),
        }
    }
}

#[cfg(test)]
impl RetrievedExcerpt {
    /// An excerpt that is one passage.
    pub(super) fn whole(document_id: DocumentId, document_name: &str, place: SourceSpan, text: &str) -> Self {
        let part = ExcerptPassage {
            range: 0..text.len(),
            document_id,
            document_name: document_name.to_owned(),
            chunk_id: ChunkId::derive(document_id, 0, text, "{}"),
            place,
            url: None,
            score: Some(1.0),
        };
        Self { text: text.to_owned(), parts: vec![part], best: 0 }
    }
}

/// A numbered excerpt.
#[derive(Clone, Debug)]
pub(super) struct NumberedSource {
    /// The number by which it is cited, from 1.
    pub(super) n: usize,
    /// What it is.
    pub(super) found: RetrievedExcerpt,
}

impl NumberedSource {
    /// As an answer cites it.
    pub(super) fn citable(&self) -> CitableSource<'_> {
        let best = self.found.parts.get(self.found.best).map_or(0, |part| part.range.start);
        CitableSource { n: self.n, text: &self.found.text, best }
    }

    /// The passage that this stretch of the text begins in, in bytes; of several, which overlap, the first that holds most of it. The best
    /// one when it begins in none.
    pub(super) fn part(&self, stretch: Option<&Range<usize>>) -> Option<&ExcerptPassage> {
        let best = self.found.parts.get(self.found.best);
        let Some(stretch) = stretch else { return best };
        let held = |part: &&ExcerptPassage| part.range.end.min(stretch.end);
        let begun = self.found.parts.iter().filter(|part| part.range.contains(&stretch.start));
        // Of equals it takes the last.
        begun.rev().max_by_key(held).or(best)
    }

    /// The page that a stretch of the text begins on, which this passage of it holds; without a stretch the one that the whole passage stands
    /// on. None when that is not known.
    pub(super) fn page(&self, passage: &ExcerptPassage, stretch: Option<&Range<usize>>) -> Option<u32> {
        let text = self.found.text.get(passage.range.clone()).unwrap_or_default();
        let own = stretch.and_then(|stretch| passage.own_range(stretch));
        let begins = own.and_then(|own| passage.place.page_at(text, own.start));
        begins.or_else(|| passage.place.only_page())
    }

    /// The name of its document.
    pub(super) fn document_name(&self) -> &str {
        self.found.parts.first().map_or("", |part| &part.document_name)
    }

    /// The headings that its passages stand under, each from where the passage begins in the text.
    pub(super) fn headings(&self) -> impl Iterator<Item = (usize, &[String])> {
        let parts = self.found.parts.iter();
        parts.filter_map(|part| Some((part.range.start, part.place.heading.as_deref()?)))
    }

    /// Its passages, as traces and events show them.
    fn describe(&self) -> impl Iterator<Item = Value> {
        self.found.parts.iter().map(|part| {
            json!({
                "n": self.n,
                "documentId": part.document_id,
                "documentName": part.document_name,
                "chunkId": part.chunk_id,
                "place": part.place,
                "score": part.score,
                "text": self.found.text.get(part.range.clone()).unwrap_or_default(),
            })
        })
    }

    /// As a model reads it: its number, what it is from, its text.
    fn write(&self, text: &mut String) {
        let name = self.document_name().replace(['\n', '\r'], " ");
        // Writing to a string cannot fail.
        let _ = write!(text, "[{}] {name}", self.n);
        if let Some(page) = self.found.parts.first().and_then(|part| part.place.page) {
            let _ = write!(text, ", page {page}");
        }
        let _ = write!(text, "\n{}", self.found.text);
    }
}

/// All sources of a run. A number stands for the same excerpt from its beginning to its end.
#[derive(Debug, Default)]
pub(super) struct SourceRegistry(Vec<NumberedSource>);

/// Numbers that a marker in an answer can hold.
const MOST: usize = 999;

impl SourceRegistry {
    /// Numbers what a search found; what is known already keeps its number. The numbers, in the order of the search.
    pub(super) fn add(&mut self, found: Vec<RetrievedExcerpt>) -> Vec<usize> {
        found.into_iter().filter_map(|found| self.add_one(found)).collect()
    }

    fn add_one(&mut self, found: RetrievedExcerpt) -> Option<usize> {
        let holds = |source: &NumberedSource| {
            found.parts.iter().all(|new| source.found.parts.iter().any(|old| old.chunk_id == new.chunk_id))
        };
        if let Some(known) = self.0.iter().find(|source| holds(source)) {
            return Some(known.n);
        }
        let n = self.0.len() + 1;
        if n > MOST {
            return None;
        }
        self.0.push(NumberedSource { n, found });
        Some(n)
    }

    /// All of them, by number.
    pub(super) fn all(&self) -> &[NumberedSource] {
        &self.0
    }

    /// The one with this number.
    pub(super) fn get(&self, n: usize) -> Option<&NumberedSource> {
        self.0.get(n.checked_sub(1)?)
    }

    fn these(&self, numbers: &[usize]) -> impl Iterator<Item = &NumberedSource> {
        numbers.iter().filter_map(|n| self.get(*n))
    }

    /// The passages of these, as traces and events show them.
    pub(super) fn describe(&self, numbers: &[usize]) -> Vec<Value> {
        self.these(numbers).flat_map(NumberedSource::describe).collect()
    }

    /// These as a model reads them.
    pub(super) fn as_text(&self, numbers: &[usize]) -> String {
        let mut text = String::new();
        for source in self.these(numbers) {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            source.write(&mut text);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An excerpt of passages of one document, each of which stands there in the text.
    fn source(text: &str, ranges: &[Range<usize>], best: usize) -> NumberedSource {
        let document_id = DocumentId::generate();
        let part = |(at, range): (usize, &Range<usize>)| ExcerptPassage {
            range: range.clone(),
            document_id,
            document_name: "Rules".to_owned(),
            chunk_id: ChunkId::derive(document_id, 0, &text[range.clone()], "{}"),
            place: SourceSpan { page: u32::try_from(at + 1).ok(), ..SourceSpan::default() },
            url: None,
            score: None,
        };
        let parts = ranges.iter().enumerate().map(part).collect();
        NumberedSource { n: 1, found: RetrievedExcerpt { text: text.to_owned(), parts, best } }
    }

    #[test]
    fn words_that_go_over_two_passages_are_of_the_one_that_they_begin_in() {
        let text = "The gate opens at six. The cellar is locked from ten on, and the key is with the porter.";
        let (gate, cellar, key) = (0..22, 15..56, 57..text.len());
        let source = source(text, &[gate.clone(), cellar.clone(), key.clone()], 2);
        let of = |words: &str| {
            let start = text.find(words).unwrap();
            let stretch = start..start + words.len();
            let part = source.part(Some(&stretch)).unwrap();
            (part.range.clone(), part.own_range(&stretch), source.page(part, Some(&stretch)))
        };
        assert_eq!(of("The gate opens"), (gate.clone(), Some(0..14), Some(1)));
        let all = "The gate opens at six. The cellar is locked from ten on";
        assert_eq!(of(all), (gate, Some(0..22), Some(1)), "most of it is in the next");
        assert_eq!(
            of("at six. The cellar"),
            (cellar.clone(), Some(0..18), Some(2)),
            "that one holds all of it"
        );
        assert_eq!(of("ten on, and the key is with"), (cellar, Some(34..41), Some(2)));
        let between = source.part(Some(&(56..60))).unwrap();
        assert_eq!(between.range, key, "the best one, where it begins in none");
    }
}
