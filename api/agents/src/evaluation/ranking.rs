//! Where in a ranking stands what answers, and what that is worth.

use std::collections::HashSet;

use lectern_shared::{
    ids::{ChunkId, DocumentId},
    model::evaluation::{CaseRanking, GoldQuote, RankedPassage},
};

use super::gold::GoldPlace;
use crate::search::PassageHit;

/// Ranked passages that are told, of each search.
const TOLD: usize = 10;

/// What a passage counts as in a ranking.
#[derive(PartialEq, Eq, Hash)]
enum RankUnit {
    /// This one of the things that answer.
    Gold(usize),
    /// Nothing that answers.
    Passage(ChunkId),
    /// A document that does not answer, where whole documents are sought.
    Document(DocumentId),
}

/// Tells what a ranking holds of what answers. What holds the same thing again, or belongs to the same document where whole documents
/// are sought, has no rank of its own.
pub(super) fn ranking(hits: &[PassageHit], gold: &[GoldQuote], places: &[GoldPlace]) -> CaseRanking {
    let is_of_documents = !gold.is_empty() && gold.iter().all(|gold| gold.quote.is_none());
    let mut ranking = CaseRanking { ranks: vec![None; gold.len()], ..CaseRanking::default() };
    let mut seen = HashSet::new();
    let mut rank = 0;
    for hit in hits {
        let own = (hit.chunk.document_id, hit.chunk.chunk_id);
        let same: Vec<_> = std::iter::once(own).chain(hit.also_in.iter().copied()).collect();
        let held = || {
            let holds = |(at, (gold, place)): (usize, (&GoldQuote, &GoldPlace))| {
                let is_held = same.iter().any(|passage| holds(gold, place, *passage));
                is_held.then_some(at)
            };
            gold.iter().zip(places).enumerate().filter_map(holds)
        };
        let open = held().find(|at| !seen.contains(&RankUnit::Gold(*at)));
        let unit = match (open, held().next()) {
            (Some(open), _) => RankUnit::Gold(open),
            (None, Some(again)) => RankUnit::Gold(again),
            (None, None) if is_of_documents => RankUnit::Document(own.0),
            (None, None) => RankUnit::Passage(own.1),
        };
        let found = open;
        if !seen.insert(unit) {
            continue;
        }
        rank += 1;
        if let Some(place) = found.and_then(|found| ranking.ranks.get_mut(found)) {
            *place = Some(rank);
        }
        if ranking.retrieved.len() < TOLD {
            ranking.retrieved.push(RankedPassage { document_id: own.0, chunk_id: own.1, gold: found });
        }
    }
    ranking
}

/// Whether a passage holds something that answers.
fn holds(gold: &GoldQuote, place: &GoldPlace, (document, chunk): (DocumentId, ChunkId)) -> bool {
    gold.document_id == document && place.chunks.as_ref().is_none_or(|chunks| chunks.contains(&chunk))
}

/// Whether one of the cited passages is of a document that answers.
pub fn cites_gold(gold: &[GoldQuote], cited: impl IntoIterator<Item = DocumentId>) -> bool {
    cited.into_iter().any(|document| gold.iter().any(|gold| gold.document_id == document && gold.grade > 0))
}

/// What a ranking is worth, in the order of [`RETRIEVAL_METRICS`](super::RETRIEVAL_METRICS): whether something that answers is among
/// the first 1, 5 and 10, one over the rank of the first, the normalised discounted cumulative gain of the first 10 by the grades, and
/// the share of what answers among the first 10. As `trec_eval` defines them.
pub fn retrieval_values(gold: &[GoldQuote], ranks: &[Option<u32>]) -> [f64; 6] {
    let gain = |gold: &GoldQuote| f64::from(gold.grade);
    let discount = |rank: u32| 1.0 / (f64::from(rank) + 1.0).log2();
    let found: Vec<(f64, u32)> = gold
        .iter()
        .zip(ranks)
        .filter(|(gold, _)| gold.grade > 0)
        .filter_map(|(gold, rank)| Some((gain(gold), (*rank)?)))
        .collect();
    let first = found.iter().map(|(_, rank)| *rank).min();
    let hit = |within: u32| f64::from(u8::from(first.is_some_and(|first| first <= within)));
    let mut gains: Vec<f64> = gold.iter().map(gain).filter(|gain| *gain > 0.0).collect();
    let count = gains.len();
    gains.sort_by(|one, other| other.total_cmp(one));
    let ideal: f64 = gains.iter().zip(1..=10).map(|(gain, rank)| gain * discount(rank)).sum();
    let within_ten = || found.iter().filter(|(_, rank)| *rank <= 10);
    let gained: f64 = within_ten().map(|(gain, rank)| gain * discount(*rank)).sum();
    // The sum of nothing is minus zero, which nobody wants to read.
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole + 0.0 } else { 0.0 };
    let recall = share(within_ten().map(|_| 1.0).sum(), gains.iter().map(|_| 1.0).sum());
    debug_assert!(count >= found.len());
    [hit(1), hit(5), hit(10), first.map_or(0.0, |first| 1.0 / f64::from(first)), share(gained, ideal), recall]
}

#[cfg(test)]
mod tests {
    use lectern_shared::ids::GenerationId;
    use uuid::Uuid;

    use super::*;
    use lectern_shared::model::{
        document::{Chunk, DocumentType},
        evaluation::GoldState,
        place::SourceSpan,
    };

    fn document(number: u128) -> DocumentId {
        Uuid::from_u128(number).into()
    }

    fn chunk(number: u128) -> ChunkId {
        Uuid::from_u128(number).into()
    }

    fn hit(of: u128, passage: u128) -> PassageHit {
        PassageHit {
            document_name: String::new(),
            document_type: DocumentType::Txt,
            document_url: String::new(),
            chunk: Chunk {
                ordinal: 0,
                chunk_id: chunk(passage),
                document_id: document(of),
                tokens: 1,
                place: lectern_shared::model::Json(SourceSpan::default()),
                text: String::new(),
            },
            generation: GenerationId::generate(),
            score: 1.0,
            lexical: None,
            dense: None,
            rerank: None,
            also_in: Vec::new(),
        }
    }

    fn quote(of: u128, grade: u32) -> GoldQuote {
        GoldQuote { document_id: document(of), quote: Some("words".to_owned()), grade }
    }

    fn place(chunks: &[u128]) -> GoldPlace {
        let chunks = Some(chunks.iter().copied().map(chunk).collect());
        GoldPlace { state: GoldState::Found, chunks }
    }

    #[test]
    fn what_holds_the_same_words_again_takes_no_rank() {
        let gold = [quote(1, 1), quote(2, 1)];
        let places = [place(&[11, 12]), place(&[21])];
        let hits = [hit(1, 13), hit(1, 12), hit(1, 11), hit(3, 31), hit(2, 21)];
        let ranking = ranking(&hits, &gold, &places);
        assert_eq!(ranking.ranks, [Some(2), Some(4)]);
        let told: Vec<_> = ranking.retrieved.iter().map(|told| told.gold).collect();
        assert_eq!(told, [None, Some(0), None, Some(1)]);
    }

    #[test]
    fn where_documents_are_sought_each_has_one_rank() {
        let gold = [GoldQuote { quote: None, ..quote(2, 1) }];
        let places = [GoldPlace { state: GoldState::Found, chunks: None }];
        let hits = [hit(1, 11), hit(1, 12), hit(2, 21), hit(2, 22), hit(3, 31)];
        assert_eq!(ranking(&hits, &gold, &places).ranks, [Some(2)]);
    }

    #[test]
    fn what_says_the_same_elsewhere_counts() {
        let gold = [quote(2, 1)];
        let mut first = hit(1, 11);
        first.also_in.push((document(2), chunk(21)));
        assert_eq!(ranking(&[first], &gold, &[place(&[21])]).ranks, [Some(1)]);
    }

    #[test]
    fn values_are_those_of_the_textbook() {
        let gold = [quote(1, 2), quote(2, 1), quote(3, 1)];
        let ideal = 2.0 + 1.0 / 3f64.log2() + 0.5;
        let far = [0.0, 0.0, 0.0, 1.0 / 11.0, 0.0, 0.0];
        for (gold, ranks, expected) in [
            (
                &gold[..],
                &[Some(3), None, Some(1)][..],
                [1.0, 1.0, 1.0, 1.0, (1.0 + 2.0 * 0.5) / ideal, 2.0 / 3.0],
            ),
            (&gold[..], &[None, Some(11), None], far),
            (&[], &[], [0.0; 6]),
        ] {
            for (value, expected) in retrieval_values(gold, ranks).into_iter().zip(expected) {
                assert!((value - expected).abs() < 1e-12, "{ranks:?}: {value} {expected}");
                assert!(value.is_sign_positive(), "{ranks:?}: {value}");
            }
        }
    }

    #[test]
    fn citing_a_document_that_does_not_answer_counts_for_nothing() {
        let gold = [quote(1, 1), quote(2, 0)];
        assert!(cites_gold(&gold, [document(3), document(1)]));
        assert!(!cites_gold(&gold, [document(2)]));
    }
}
