//! Finding quotations again in documents, whose passages may be cut otherwise than when they were quoted.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    num::NonZeroUsize,
    ops::Range,
    sync::Arc,
};

use lectern_db::{self as db, Db, DbError};
use lectern_shared::{
    compute::{ComputePool, ComputeStopped},
    ids::{ChunkId, DocumentId, WorkspaceId},
    model::{
        document::Chunk,
        evaluation::{GoldQuote, GoldState},
    },
};
use lru::LruCache;
use unicode_normalization::UnicodeNormalization;

use crate::answer::quote::{find_in_order, is_unspaced};

/// Documents whose passages are remembered, and bytes of them, at most.
const DOCUMENTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);
const BYTES: usize = 32 << 20;
/// Passages that are read at a time.
const PAGE: u32 = 500;

/// Why a quotation could not be looked for.
#[derive(Debug, thiserror::Error)]
pub enum GoldError {
    /// The relational store failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The process is ending.
    #[error(transparent)]
    Stopped(#[from] ComputeStopped),
}

/// Where something stands that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldPlace {
    /// Whether it was found.
    pub state: GoldState,
    /// The passages that hold it; none of them for all of the document.
    pub(super) chunks: Option<HashSet<ChunkId>>,
}

impl GoldPlace {
    fn lost(why: &str) -> Self {
        Self { state: GoldState::Lost(why.to_owned()), chunks: Some(HashSet::new()) }
    }
}

/// A passage as it is looked through.
struct IndexedPassage {
    id: ChunkId,
    text: String,
    words: Vec<u64>,
}

/// The passages of a document.
struct IndexedDocument {
    passages: Vec<IndexedPassage>,
    bytes: usize,
}

/// Finds quotations in the documents of a workspace as they are now.
pub struct GoldFinder {
    db: Db,
    workspace: WorkspaceId,
    compute: ComputePool,
    hasher: RandomState,
    known: LruCache<DocumentId, Arc<IndexedDocument>>,
    bytes: usize,
}

impl GoldFinder {
    /// For the documents of this workspace.
    pub fn new(db: Db, workspace: WorkspaceId, compute: ComputePool) -> Self {
        let known = LruCache::new(DOCUMENTS);
        Self { db, workspace, compute, hasher: RandomState::new(), known, bytes: 0 }
    }

    /// Where each of these stands, in the same order.
    ///
    /// # Errors
    /// When the documents cannot be read.
    pub async fn find(&mut self, gold: &[GoldQuote]) -> Result<Vec<GoldPlace>, GoldError> {
        let whole = gold.iter().filter(|gold| gold.quote.is_none());
        let whole: Vec<DocumentId> = whole.map(|gold| gold.document_id).collect();
        let there = db::documents::searchable(&self.db, self.workspace, &whole).await?;
        let mut places = Vec::with_capacity(gold.len());
        for GoldQuote { document_id, quote, .. } in gold {
            places.push(match quote {
                Some(quote) => self.find_quote(*document_id, quote).await?,
                None if there.contains(document_id) => GoldPlace { state: GoldState::Found, chunks: None },
                None => GoldPlace::lost(GONE),
            });
        }
        Ok(places)
    }

    /// Whether a document says this as it is now; none when it cannot be searched.
    ///
    /// # Errors
    /// When the document cannot be read.
    pub async fn says(&mut self, id: DocumentId, quote: &str) -> Result<Option<bool>, GoldError> {
        let place = self.place_of(id, quote).await?;
        Ok(place.map(|place| !matches!(place.state, GoldState::Lost(_))))
    }

    async fn find_quote(&mut self, id: DocumentId, quote: &str) -> Result<GoldPlace, GoldError> {
        Ok(self.place_of(id, quote).await?.unwrap_or_else(|| GoldPlace::lost(GONE)))
    }

    /// Where a quotation stands in a document; none when that cannot be searched.
    async fn place_of(&mut self, id: DocumentId, quote: &str) -> Result<Option<GoldPlace>, GoldError> {
        let document = self.document(id).await?;
        if document.passages.is_empty() {
            return Ok(None);
        }
        let (quote, hasher) = (quote.to_owned(), self.hasher.clone());
        Ok(Some(self.compute.run(move || place(&quote, &document, &hasher)).await?))
    }

    /// The passages of a document; none when it is not there, or cannot be searched.
    async fn document(&mut self, id: DocumentId) -> Result<Arc<IndexedDocument>, GoldError> {
        if let Some(known) = self.known.get(&id) {
            return Ok(Arc::clone(known));
        }
        let mut chunks: Vec<Chunk> = Vec::new();
        loop {
            let from = chunks.last().map_or(0, |last| last.ordinal + 1);
            let page = db::chunks::list(&self.db, self.workspace, id, from, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            chunks.extend(page);
            if is_last {
                break;
            }
        }
        let hasher = self.hasher.clone();
        let read = self.compute.run(move || IndexedDocument::of(chunks, &hasher)).await?;
        let read = Arc::new(read);
        self.bytes += read.bytes;
        if let Some((_, former)) = self.known.push(id, Arc::clone(&read)) {
            self.bytes -= former.bytes;
        }
        while self.bytes > BYTES
            && let Some((_, former)) = self.known.pop_lru()
        {
            self.bytes -= former.bytes;
        }
        Ok(read)
    }
}

const GONE: &str = "The document is not there any more, or cannot be searched.";
/// It may have said so when it was quoted, or never.
const NOT_THERE: &str = "The document does not say it.";

impl IndexedDocument {
    fn of(chunks: Vec<Chunk>, hasher: &RandomState) -> Self {
        let passage = |chunk: Chunk| {
            let words = words(&chunk.text).map(|word| hasher.hash_one(word)).collect();
            IndexedPassage { id: chunk.chunk_id, text: chunk.text, words }
        };
        let passages: Vec<_> = chunks.into_iter().map(passage).collect();
        let bytes = passages.iter().map(|passage| passage.text.len() + 8 * passage.words.len()).sum();
        Self { passages, bytes }
    }
}

/// The words of a text, without case, punctuation and form; of scripts without blanks, the characters.
fn words(text: &str) -> impl Iterator<Item = String> {
    let folded: String = text.nfkd().flat_map(char::to_lowercase).collect();
    let mut words = Vec::new();
    for word in folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let mut plain = String::new();
        for character in word.chars() {
            if is_unspaced(character) {
                words.extend((!plain.is_empty()).then(|| std::mem::take(&mut plain)));
                words.push(character.to_string());
            } else {
                plain.push(character);
            }
        }
        words.extend((!plain.is_empty()).then_some(plain));
    }
    words.into_iter()
}

/// Where a quotation stands in a document.
fn place(quote: &str, document: &IndexedDocument, hasher: &RandomState) -> GoldPlace {
    let sought: Vec<u64> = words(quote).map(|word| hasher.hash_one(word)).collect();
    let passages = &document.passages;
    let within = |passage: &&IndexedPassage| {
        // A quotation that leaves something out does not stand anywhere in one piece.
        passage.words.windows(sought.len().max(1)).any(|window| window == sought) || has_ellipsis(quote)
    };
    let similar: Vec<&IndexedPassage> =
        if sought.is_empty() { Vec::new() } else { passages.iter().filter(within).collect() };
    let exact = similar.iter().filter(|passage| find_in_order(quote, &passage.text).is_some());
    let exact: HashSet<ChunkId> = exact.map(|passage| passage.id).collect();
    if !exact.is_empty() {
        return GoldPlace { state: GoldState::Found, chunks: Some(exact) };
    }
    if !similar.is_empty() && !has_ellipsis(quote) {
        let chunks = similar.iter().map(|passage| passage.id).collect();
        return GoldPlace { state: GoldState::Similar, chunks: Some(chunks) };
    }
    match across(&sought, passages) {
        Some(chunks) => GoldPlace { state: GoldState::Similar, chunks: Some(chunks) },
        None => GoldPlace::lost(NOT_THERE),
    }
}

fn has_ellipsis(quote: &str) -> bool {
    quote.contains('…') || quote.contains("...") || quote.contains(". . .")
}

/// The passages over which a quotation goes that is in none of them whole: those that hold at least half of it, or all of them when
/// none does. Passages may repeat the end of the one before.
fn across(sought: &[u64], passages: &[IndexedPassage]) -> Option<HashSet<ChunkId>> {
    for at in 0..passages.len() {
        let Some(chain) = chain_from(sought, &passages[at..]) else { continue };
        let holds_half = |(_, part): &&(ChunkId, Range<usize>)| part.len() * 2 >= sought.len();
        let halves: HashSet<ChunkId> = chain.iter().filter(holds_half).map(|(id, _)| *id).collect();
        let all = || chain.iter().map(|(id, _)| *id).collect();
        return Some(if halves.is_empty() { all() } else { halves });
    }
    None
}

/// The passages, from the first of these on, over which a quotation goes that begins in it, and what part of it each holds.
fn chain_from(sought: &[u64], passages: &[IndexedPassage]) -> Option<Vec<(ChunkId, Range<usize>)>> {
    let first = passages.first()?;
    let begins = (1..sought.len()).rev().find(|length| first.words.ends_with(&sought[..*length]))?;
    let mut chain = vec![(first.id, 0..begins)];
    let mut covered = begins;
    for passage in passages.iter().skip(1) {
        // What the passage before ended with may come again.
        let next = (0..=covered).rev().find_map(|from| {
            let rest = &sought[from..];
            if passage.words.starts_with(rest) {
                return Some(from..sought.len());
            }
            let end = from + passage.words.len();
            let is_inside = end > covered && rest.starts_with(&passage.words);
            is_inside.then_some(from..end)
        })?;
        covered = next.end;
        chain.push((passage.id, next));
        if covered == sought.len() {
            return Some(chain);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn found(quote: &str, passages: &[&str]) -> (GoldState, Vec<usize>) {
        let hasher = RandomState::new();
        let id = |at: usize| ChunkId::from(Uuid::from_u128(at as u128));
        let passage = |(at, text): (usize, &&str)| IndexedPassage {
            id: id(at),
            text: (*text).to_owned(),
            words: words(text).map(|word| hasher.hash_one(word)).collect(),
        };
        let document =
            IndexedDocument { passages: passages.iter().enumerate().map(passage).collect(), bytes: 0 };
        let GoldPlace { state, chunks } = place(quote, &document, &hasher);
        let chunks = chunks.unwrap();
        (state, (0..passages.len()).filter(|at| chunks.contains(&id(*at))).collect())
    }

    #[test]
    fn a_quotation_is_found_however_the_document_is_cut() {
        let whole =
            ["Nothing here.", "The warranty lasts two years from the day of purchase. It ends early."];
        let quote = "The warranty lasts two years from the day of purchase";
        assert_eq!(found(quote, &whole), (GoldState::Found, vec![1]));
        let set_otherwise = ["The warranty lasts\n  two years from the day\u{a0}of purchase."];
        assert_eq!(found(quote, &set_otherwise), (GoldState::Found, vec![0]));
        let twice = ["The warranty lasts two years from the day of purchase.", "x", whole[1]];
        assert_eq!(found(quote, &twice), (GoldState::Found, vec![0, 2]));
        let cut = ["Long ago. The warranty lasts two years from the", "day of purchase. It ends early."];
        assert_eq!(found(quote, &cut), (GoldState::Similar, vec![0]), "the greater part");
        let overlapping = ["A. The warranty lasts two years", "lasts two years from the day of purchase. B."];
        assert_eq!(found(quote, &overlapping), (GoldState::Similar, vec![0, 1]));
        let small = ["The warranty lasts", "two years from", "the day of", "purchase"];
        assert_eq!(found(quote, &small), (GoldState::Similar, vec![0, 1, 2, 3]));
        let other_case = ["THE WARRANTY: lasts two years (from the day of purchase)!"];
        assert_eq!(found(quote, &other_case), (GoldState::Similar, vec![0]));
    }

    #[test]
    fn what_is_not_said_is_lost() {
        for (quote, passages) in [
            ("The warranty lasts two years", &["The warranty lasts three years."][..]),
            ("The warranty lasts two years", &["The warranty lasts", "three years"]),
            ("The warranty lasts two years", &["The warranty lasts two"]),
            ("!?", &["!?"]),
        ] {
            assert!(
                matches!(found(quote, passages), (GoldState::Lost(_), chunks) if chunks.is_empty()),
                "{quote}"
            );
        }
    }

    #[test]
    fn what_leaves_something_out_is_found_where_its_parts_stand_in_order() {
        let passages = ["Two years, said the seller, from the day of purchase.", "From the day of purchase."];
        assert_eq!(found("Two years … from the day", &passages), (GoldState::Found, vec![0]));
        assert!(matches!(found("from the day … Two years", &passages).0, GoldState::Lost(_)));
    }

    #[test]
    fn scripts_without_blanks_are_cut_anywhere() {
        let cut = ["保証期間は購入日", "から二年間です。"];
        assert_eq!(found("購入日から二年間", &cut), (GoldState::Similar, vec![1]));
    }
}
