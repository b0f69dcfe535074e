//! What a reader is given: passages that stand side by side in a document are read as one text, since the answer may well
//! begin in one and end in the next, and what they repeat of each other is said once.

use std::ops::Range;

use lectern_db::chunks::FetchedChunk;
use lectern_shared::model::document::Chunk;

use super::{PassageHit, PassageKey, PassageTexts};

/// Passages of one document that stand side by side, best one known.
#[derive(Clone, Debug)]
pub(crate) struct Excerpt {
    /// Their text; what two of them share is in it once.
    pub(crate) text: String,
    /// The passages in the order of the document; at least one.
    pub(crate) parts: Vec<ExcerptPart>,
    /// The place of the best among them.
    best: usize,
}

/// A passage of an excerpt.
#[derive(Clone, Debug)]
pub(crate) struct ExcerptPart {
    /// The passage.
    pub(crate) passage: PassageHit,
    /// Whether it was found; otherwise it stands beside one that was.
    pub(crate) found: bool,
    /// Its text in the excerpt's, in bytes.
    pub(crate) range: Range<usize>,
}

impl Excerpt {
    /// The passage that was found best.
    pub(crate) fn best(&self) -> &PassageHit {
        // There is always one.
        &self.parts[self.best].passage
    }
}

/// The places beside a passage's, the one behind it first.
pub(super) fn neighbours((generation, ordinal): PassageKey) -> impl Iterator<Item = PassageKey> {
    let places = [ordinal.checked_add(1), ordinal.checked_sub(1)];
    places.into_iter().flatten().map(move |place| (generation, place))
}

/// Reads passages, best first, within a budget of tokens, and as far as there is room, those of `texts` that stand beside these in the same
/// section. The best one is read even when it is larger than that.
pub(super) fn read(passages: Vec<PassageHit>, mut texts: PassageTexts, budget: i64) -> Vec<Excerpt> {
    let mut left = budget;
    let mut taken: Vec<(PassageHit, bool)> = Vec::new();
    for passage in passages {
        if !taken.is_empty() && passage.chunk.tokens > left {
            break;
        }
        left -= passage.chunk.tokens;
        taken.push((passage, true));
    }
    let key =
        |passage: &PassageHit| (passage.generation, u32::try_from(passage.chunk.ordinal).unwrap_or(u32::MAX));
    let beside: Vec<(usize, PassageKey)> = taken
        .iter()
        .enumerate()
        .flat_map(|(at, (passage, _))| neighbours(key(passage)).map(move |place| (at, place)))
        .collect();
    for (passage, _) in &taken {
        texts.remove(&key(passage));
    }
    for (at, key) in beside {
        let Some((passage, _)) = taken.get(at) else { continue };
        let fits =
            |chunk: &Chunk| chunk.tokens <= left && chunk.place.0.heading == passage.chunk.place.0.heading;
        if !texts.get(&key).is_some_and(|found| fits(&found.chunk)) {
            continue;
        }
        let Some(FetchedChunk { chunk, .. }) = texts.remove(&key) else { continue };
        left -= chunk.tokens;
        let neighbour = PassageHit {
            chunk,
            score: 0.0,
            lexical: None,
            dense: None,
            rerank: None,
            also_in: Vec::new(),
            ..passage.clone()
        };
        taken.push((neighbour, false));
    }
    excerpts(taken)
}

/// Reads passages, best first, as excerpts, best first. `found` tells those that were found from those that are added for what
/// they stand beside.
fn excerpts(passages: Vec<(PassageHit, bool)>) -> Vec<Excerpt> {
    let mut ranked: Vec<(usize, (PassageHit, bool))> = passages.into_iter().enumerate().collect();
    ranked.sort_by_key(|(_, (passage, _))| (passage.generation, passage.chunk.ordinal));
    let mut runs: Vec<Vec<(usize, (PassageHit, bool))>> = Vec::new();
    for item in ranked {
        let (_, (passage, _)) = &item;
        let follows = |(_, (last, _)): &(usize, (PassageHit, bool))| {
            last.generation == passage.generation && last.chunk.ordinal + 1 == passage.chunk.ordinal
        };
        match runs.last_mut().filter(|run| run.last().is_some_and(follows)) {
            Some(run) => run.push(item),
            None => runs.push(vec![item]),
        }
    }
    runs.sort_by_key(|run| run.iter().map(|(rank, _)| *rank).min());
    runs.into_iter().map(joined).collect()
}

/// Passages that follow each other, with their ranks, as one.
fn joined(run: Vec<(usize, (PassageHit, bool))>) -> Excerpt {
    let ranks = run.iter().map(|(rank, _)| *rank);
    let best = ranks.enumerate().min_by_key(|(_, rank)| *rank).map_or(0, |(at, _)| at);
    let mut text = String::new();
    let mut parts: Vec<ExcerptPart> = Vec::with_capacity(run.len());
    for (_, (passage, found)) in run {
        let own = &passage.chunk.text;
        let start = match parts.last() {
            None => 0,
            Some(before) => match shared_bytes(&before.passage, &passage) {
                Some(shared) => text.len() - shared,
                None => {
                    // What lies between two passages is white space, or the end of a page or of a sheet: an empty line, mostly.
                    text.push_str(if is_apart(&before.passage, &passage) { "\n\n" } else { "\n" });
                    text.len()
                }
            },
        };
        let said = text.len() - start;
        text.push_str(own.get(said..).unwrap_or_default());
        let range = start..start + own.len();
        parts.push(ExcerptPart { passage, found, range });
    }
    Excerpt { text, parts, best }
}

/// Whether more than one character lies between a passage and the next.
fn is_apart(before: &PassageHit, after: &PassageHit) -> bool {
    after.chunk.place.0.char_start > before.chunk.place.0.char_end + 1
}

/// How many bytes the end of a passage and the beginning of the next have in common, by their places; none when they do not
/// even touch.
fn shared_bytes(before: &PassageHit, after: &PassageHit) -> Option<usize> {
    let (end, start) = (before.chunk.place.0.char_end, after.chunk.place.0.char_start);
    let characters = usize::try_from(end.checked_sub(start)?).ok()?;
    let bytes: usize = after.chunk.text.chars().take(characters).map(char::len_utf8).sum();
    let is_shared = before.chunk.text.ends_with(after.chunk.text.get(..bytes)?);
    is_shared.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use lectern_shared::{
        ids::{ChunkId, DocumentId, GenerationId},
        model::{
            Json,
            document::{Chunk, DocumentType},
            place::SourceSpan,
        },
    };

    use super::*;

    const TEXT: &str = "Grün ist die Heide. Die Heide blüht im August.\n\nDann kommen die Bienen.";

    /// The passage of `TEXT` between two code points.
    fn passage(generation: GenerationId, ordinal: i64, from: u64, to: u64) -> PassageHit {
        let at = |place: u64| usize::try_from(place).unwrap();
        let text: String = TEXT.chars().skip(at(from)).take(at(to - from)).collect();
        let document = DocumentId::generate();
        PassageHit {
            document_name: "Heide".to_owned(),
            document_type: DocumentType::Txt,
            document_url: String::new(),
            chunk: Chunk {
                ordinal,
                chunk_id: ChunkId::derive(document, u32::try_from(ordinal).unwrap(), &text, "{}"),
                document_id: document,
                tokens: 5,
                place: Json(SourceSpan { char_start: from, char_end: to, ..SourceSpan::default() }),
                text,
            },
            generation,
            score: 1.0,
            lexical: None,
            dense: None,
            rerank: None,
            also_in: Vec::new(),
        }
    }

    #[test]
    fn passages_that_follow_each_other_are_one_text_with_what_they_share_said_once() {
        let one = GenerationId::generate();
        let found = vec![
            (passage(one, 1, 13, 46), true),
            (passage(GenerationId::generate(), 2, 0, 19), true),
            (passage(one, 0, 0, 19), true),
            (passage(one, 2, 48, 71), false),
        ];
        let ids: Vec<ChunkId> = found.iter().map(|(passage, _)| passage.chunk.chunk_id).collect();
        let excerpts = excerpts(found);
        assert_eq!(excerpts.len(), 2);
        let excerpt = &excerpts[0];
        assert_eq!(excerpt.text, TEXT, "what is apart in the document is apart here");
        assert_eq!(excerpt.best().chunk.chunk_id, ids[0]);
        for part in &excerpt.parts {
            assert_eq!(excerpt.text[part.range.clone()], part.passage.chunk.text);
        }
        assert_eq!(excerpt.parts.iter().map(|part| part.found).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(excerpts[1].text, excerpts[1].best().chunk.text);
    }

    #[test]
    fn passages_of_other_documents_or_further_on_stay_apart() {
        let one = GenerationId::generate();
        let apart = excerpts(vec![(passage(one, 2, 48, 71), true), (passage(one, 0, 0, 19), true)]);
        assert_eq!(apart.iter().map(|excerpt| excerpt.best().chunk.ordinal).collect::<Vec<_>>(), [2, 0]);
        let others = vec![
            (passage(GenerationId::generate(), 0, 0, 19), true),
            (passage(GenerationId::generate(), 1, 20, 46), true),
        ];
        assert_eq!(excerpts(others).len(), 2);
    }
}
