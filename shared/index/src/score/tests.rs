use std::sync::Arc;

use lectern_shared::{ids::GenerationId, model::language::Language};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use uuid::Uuid;

use super::{
    super::{
        lexical::{AVG_LEN, B, K1, LexicalQuery},
        segment::{BlockKind, MergeSource, PostingsBlock, Segment, SegmentBuilder},
    },
    *,
};

const SPACE: Uuid = Uuid::from_u128(1);

fn segment(first: u32, texts: &[&str]) -> Segment {
    let mut builder = SegmentBuilder::new(first);
    for text in texts {
        builder.push(text, None).unwrap();
    }
    Segment::from_bytes(builder.finish()).unwrap()
}

fn dense(first: u32, space: Uuid, rows: &[&[f32]]) -> Segment {
    let mut builder = SegmentBuilder::with_space(first, space, rows[0].len()).unwrap();
    for row in rows {
        builder.push("text", Some(row)).unwrap();
    }
    Segment::from_bytes(builder.finish()).unwrap()
}

/// Each segment in a block of its own, its generation at the segment's place.
fn selections(segments: &[&Segment]) -> Vec<BlockSelection> {
    let one = |(place, segment): (u32, &&Segment)| {
        let source = MergeSource::Segment(GenerationId::generate(), segment);
        BlockSelection::all(Arc::new(PostingsBlock::merge(BlockKind::of(segment), &[source])), |_| place)
    };
    (0..).zip(segments).map(one).collect()
}

fn search_lexical(query: &str, segments: &[&Segment], limit: usize) -> Vec<ScoredHit> {
    let selections = selections(segments);
    let mut search = LexicalSearch::new(query);
    for selection in &selections {
        search.count(selection);
    }
    let mut scorer = search.score(limit);
    for selection in &selections {
        scorer.add(selection);
    }
    scorer.finish()
}

fn search_dense(space: Uuid, vector: &[f32], segments: &[&Segment], limit: usize) -> Vec<ScoredHit> {
    let mut search = DenseSearch::new(space, vector.to_vec(), limit);
    for selection in &selections(segments) {
        search.add(selection, 0..selection.block().row_count());
    }
    search.finish()
}

fn found(query: &str, segments: &[&Segment]) -> Vec<(u32, u32)> {
    search_lexical(query, segments, 10).into_iter().map(|hit| (hit.place, hit.ordinal)).collect()
}

/// BM25 as in the textbook, over words separated by spaces.
#[allow(clippy::cast_precision_loss)]
fn reference(query: &[&str], documents: &[Vec<&str>]) -> Vec<f32> {
    documents
        .iter()
        .map(|document| {
            query
                .iter()
                .map(|term| {
                    let n = documents.len() as f32;
                    let df = documents.iter().filter(|document| document.contains(term)).count() as f32;
                    let tf = document.iter().filter(|word| *word == term).count() as f32;
                    let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
                    idf * tf * (K1 + 1.0) / (tf + K1 * (1.0 - B + B * document.len() as f32 / AVG_LEN))
                })
                .sum()
        })
        .collect()
}

#[test]
fn scores_are_those_of_bm25_however_passages_are_spread_over_segments() {
    let vocabulary = ["qzk", "zqx", "kvq", "xzv", "vqk", "zkx"];
    let mut state = 3_u64;
    let texts: Vec<String> = (0..60)
        .map(|_| {
            let words: Vec<&str> = (0..12)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    vocabulary[usize::try_from(state >> 33).unwrap() % 6]
                })
                .collect();
            words.join(" ")
        })
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let documents: Vec<Vec<&str>> = texts.iter().map(|text| text.split(' ').collect()).collect();
    let expected = reference(&["zqx", "xzv", "zqx"], &documents);
    for pieces in [1, 7, 60] {
        let segments: Vec<Segment> = texts
            .chunks(texts.len().div_ceil(pieces))
            .scan(0, |first, texts| {
                let segment = segment(*first, texts);
                *first += u32::try_from(texts.len()).unwrap();
                Some(segment)
            })
            .collect();
        let hits = search_lexical("zqx xzv zqx", &segments.iter().collect::<Vec<_>>(), 60);
        assert_eq!(hits.len(), expected.iter().filter(|score| **score > 0.0).count());
        assert!(hits.is_sorted_by(|a, b| a > b));
        for hit in hits {
            assert!((hit.score - expected[hit.ordinal as usize]).abs() < 1e-4, "{pieces} {hit:?}");
        }
    }
}

#[test]
fn a_question_is_stemmed_in_the_language_of_each_segment() {
    let german =
        segment(0, &["Die Häuser in der Stadt sind alt und wurden vor langer Zeit von den Bürgern gebaut."]);
    let english =
        segment(0, &["The houses of the town are old and were built by the citizens a long time ago."]);
    assert_eq!((german.language(), english.language()), (Language::German, Language::English));
    assert_eq!(found("Haus", &[&english, &german]), [(1, 0)]);
    assert_eq!(found("house", &[&english, &german]), [(0, 0)]);
    assert_eq!(found("Hauser", &[&english, &german]), [(1, 0)]);
    assert_eq!(found("house Haus", &[&english, &german]).len(), 2);
}

#[test]
fn questions_in_japanese_and_chinese_find_their_passages_first() {
    let japanese =
        segment(0, &["東京は日本の首都です。", "富士山の高さは3776メートルです。", "京都は古い都です。"]);
    let chinese = segment(10, &["北京是中国的首都。", "数据库的配置方法如下。"]);
    assert_eq!(found("富士山はどのくらい高いですか", &[&japanese, &chinese])[0], (0, 1));
    assert_eq!(found("日本の首都はどこですか", &[&japanese, &chinese])[0], (0, 0));
    assert_eq!(found("如何配置数据库？", &[&japanese, &chinese])[0], (1, 11));
}

#[test]
fn a_question_of_stop_words_only_finds_something() {
    let texts =
        segment(0, &["The Who played in Leeds.", "Hamlet asks to be or not to be.", "Dogs bark loudly."]);
    assert_eq!(found("to be or not to be", &[&texts])[0], (0, 1));
    assert_eq!(found("The Who", &[&texts])[0], (0, 0));
    assert_eq!(found("do the dogs bark?", &[&texts]), [(0, 2)]);
    assert!(found("", &[&texts]).is_empty() && found("?!", &[&texts]).is_empty());
}

#[test]
fn codes_are_found_before_passages_that_have_a_part_of_them() {
    let texts = segment(0, &["RFC 2616 is obsolete", "see RFC-9110 for details", "room 9110"]);
    assert_eq!(found("rfc9110", &[&texts])[0], (0, 1));
    assert_eq!(found("RFC 9110", &[&texts])[0], (0, 1));
}

#[test]
fn equal_scores_are_ordered_by_segment_and_ordinal() {
    let a = segment(5, &["same words", "same words"]);
    let b = segment(0, &["same words"]);
    assert_eq!(found("words", &[&a, &b]), [(0, 5), (0, 6), (1, 0)]);
    assert_eq!(search_lexical("words", &[&a, &b], 2).len(), 2);
    assert_eq!(search_lexical("words", &[&a, &b], 2)[1].ordinal, 6);
    assert!(search_lexical("words", &[&a, &b], 0).is_empty());
    assert!(search_lexical("words", &[], 5).is_empty());
}

#[test]
fn dense_search_is_exact_and_passes_over_other_spaces() {
    let a = dense(0, SPACE, &[&[1.0, 0.0], &[0.6, 0.8]]);
    let b = dense(2, SPACE, &[&[0.0, 1.0], &[-1.0, 0.0]]);
    let other_space = dense(0, Uuid::from_u128(2), &[&[0.8, 0.6]]);
    let other_dimension = dense(0, SPACE, &[&[0.8, 0.6, 0.0]]);
    let lexical = segment(0, &["text"]);
    let hits = search_dense(SPACE, &[0.8, 0.6], &[&a, &other_space, &other_dimension, &lexical, &b], 3);
    let expected = [(0, 1, 0.96), (0, 0, 0.8), (4, 2, 0.6)];
    assert_eq!(hits.len(), 3);
    for (hit, (place, ordinal, score)) in hits.iter().zip(expected) {
        assert_eq!((hit.place, hit.ordinal), (place, ordinal));
        assert!((hit.score - score).abs() < 1e-6);
    }
}

#[test]
fn the_dot_product_counts_every_number_of_a_row() {
    for dimension in [1_u16, 15, 16, 17, 33, 384, 385] {
        let row: Vec<f32> = (0..dimension).map(|i| f32::from(i % 7) - 3.0).collect();
        let vector: Vec<f32> = (0..dimension).map(|i| f32::from(i % 5)).collect();
        let expected: f32 = row.iter().zip(&vector).map(|(a, b)| a * b).sum();
        let segment = dense(0, SPACE, &[&row]);
        let hit = search_dense(SPACE, &vector, &[&segment], 1)[0];
        assert!((hit.score - expected).abs() < 1e-3, "{dimension}");
    }
}

/// A block of many small parts.
fn parts(random: &mut StdRng) -> Arc<PostingsBlock> {
    let mut segments = Vec::new();
    let mut first = 0;
    for _ in 0..400 {
        let texts: Vec<String> = (0..random.random_range(1..5_u32))
            .map(|_| {
                let rare = random.random_range(0..300);
                let half = if random.random_bool(0.5) { "often" } else { "" };
                format!("always {half} word{rare}")
            })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        segments.push(segment(first, &texts));
        first += u32::try_from(texts.len()).unwrap();
    }
    let kind = BlockKind::of(&segments[0]);
    segments.retain(|segment| BlockKind::of(segment) == kind);
    let generation = GenerationId::generate();
    let sources: Vec<_> = segments.iter().map(|segment| MergeSource::Segment(generation, segment)).collect();
    Arc::new(PostingsBlock::merge(kind, &sources))
}

#[test]
fn of_a_block_exactly_what_is_selected_is_counted_and_scored() {
    let mut random = StdRng::seed_from_u64(1);
    let block = parts(&mut random);
    for share in [0.0, 0.003, 0.05, 0.5, 0.97, 1.0] {
        let mut places = vec![NOT_SEARCHED; block.parts().len()];
        for place in &mut places {
            if random.random_bool(share) {
                *place = 0;
            }
        }
        let selection = BlockSelection::new(Arc::clone(&block), places.clone());
        let rows: Vec<u32> = block
            .parts()
            .iter()
            .zip(&places)
            .filter(|(_, place)| **place == 0)
            .flat_map(|(part, _)| part.rows())
            .collect();
        assert_eq!(selection.row_count() as usize, rows.len(), "{share}");
        for word in ["always", "often", "word7", "word8", "never"] {
            let term = LexicalQuery::new(word).terms(block.kind().language())[0];
            let (with, _) = block.postings(term);
            let expected: Vec<u16> =
                with.iter().copied().filter(|row| rows.binary_search(&u32::from(*row)).is_ok()).collect();
            let mut seen = Vec::new();
            selection.each_posting(term, |row, _| seen.push(row));
            assert_eq!(seen, expected, "{share} {word}");
            assert_eq!(selection.frequency(term), expected.len() as u64, "{share} {word}");
        }
        let some: Vec<u32> = selection.runs_in(100..333).flatten().collect();
        let expected: Vec<u32> = rows.iter().copied().filter(|row| (100..333).contains(row)).collect();
        assert_eq!(some, expected, "{share}");
    }
}

#[test]
fn a_block_that_is_merged_again_holds_what_is_left_of_the_old_ones() {
    let mut random = StdRng::seed_from_u64(2);
    let (a, b) = (parts(&mut random), parts(&mut random));
    let live = |block: &PostingsBlock, random: &mut StdRng| -> Vec<bool> {
        block.parts().iter().map(|_| random.random_bool(0.4)).collect()
    };
    for (live_a, live_b) in [
        (live(&a, &mut random), live(&b, &mut random)),
        (vec![true; a.parts().len()], live(&b, &mut random)),
        (vec![false; a.parts().len()], vec![true; b.parts().len()]),
    ] {
        let merged = PostingsBlock::merge(
            a.kind(),
            &[MergeSource::Block(&a, &live_a), MergeSource::Block(&b, &live_b)],
        );
        let kept = [(&a, &live_a), (&b, &live_b)].map(|(block, live)| {
            block
                .parts()
                .iter()
                .zip(live)
                .filter(|(_, live)| **live)
                .map(|(part, _)| (part.rows(), part.first_ordinal))
        });
        let [of_a, of_b] = kept.map(Iterator::collect::<Vec<_>>);
        assert_eq!(merged.parts().len(), of_a.len() + of_b.len());
        for word in ["always", "often", "word7", "word8"] {
            let term = LexicalQuery::new(word).terms(a.kind().language())[0];
            let mut expected = Vec::new();
            let mut next = 0_u32;
            for (block, parts) in [(&a, &of_a), (&b, &of_b)] {
                let (rows, weights) = block.postings(term);
                for (part, _) in parts {
                    for (row, weight) in rows.iter().zip(weights) {
                        if part.contains(&u32::from(*row)) {
                            expected.push((next + u32::from(*row) - part.start, *weight));
                        }
                    }
                    next += part.end - part.start;
                }
            }
            let (rows, weights) = merged.postings(term);
            let found: Vec<_> = rows.iter().map(|row| u32::from(*row)).zip(weights.iter().copied()).collect();
            assert_eq!(found, expected, "{word}");
        }
    }
}

/// Vectors of every kind that a search by codes could get wrong.
fn vectors(random: &mut StdRng, dimension: usize) -> Vec<Vec<f32>> {
    let mut vectors: Vec<Vec<f32>> = Vec::new();
    let any = |random: &mut StdRng| -> Vec<f32> {
        (0..dimension).map(|_| random.random_range(-1.0..1.0)).collect()
    };
    let center = any(random);
    for _ in 0..300 {
        vectors.push(any(random));
        // Many that are so near to each other that their codes are the same.
        let near = center.iter().map(|number| number + random.random_range(-1e-4..1e-4)).collect();
        vectors.push(near);
    }
    vectors.push(vectors[7].clone());
    vectors.push(vectors[8].clone());
    vectors.push(vec![0.0; dimension]);
    for scale in [1e-44, 1e-30, 1e-11, 1e-3, 1e3, 1e11, 1e18] {
        vectors.push(any(random).into_iter().map(|number| number * scale).collect());
    }
    let mut one = vec![0.0; dimension];
    one[dimension - 1] = 1.0;
    vectors.push(one.clone());
    one[0] = f32::MAX;
    vectors.push(one);
    vectors
}

#[test]
fn a_search_finds_what_the_products_of_the_vectors_say() {
    let mut random = StdRng::seed_from_u64(4);
    for dimension in [1, 3, 16, 31, 63, 64, 65, 100, 384, 385] {
        let rows = vectors(&mut random, dimension);
        let segment = dense(0, SPACE, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let kind = BlockKind::of(&segment);
        let generation = GenerationId::generate();
        let block = PostingsBlock::merge(kind, &[MergeSource::Segment(generation, &segment)]);
        let again = PostingsBlock::merge(kind, &[MergeSource::Block(&block, &[true])]);
        let selections = [block, again].map(|block| BlockSelection::all(Arc::new(block), |_| 0));
        let mut questions = vectors(&mut random, dimension).split_off(590);
        questions.extend([rows[0].clone(), rows[1].clone()]);
        for question in questions {
            let product = dot::DotProduct::new(question.clone());
            let mut expected: Vec<ScoredHit> = (0..)
                .zip(&rows)
                .map(|(ordinal, row)| ScoredHit { place: 0, ordinal, score: product.with(row) })
                .filter(|hit| !hit.score.is_nan())
                .collect();
            expected.sort_unstable_by(|a, b| b.cmp(a));
            for limit in [0, 1, 10, 100, 1000] {
                for selection in &selections {
                    let mut search = DenseSearch::new(SPACE, question.clone(), limit);
                    search.add(selection, 0..selection.block().row_count());
                    let wanted = &expected[..limit.min(expected.len())];
                    assert_eq!(search.finish(), wanted, "{dimension} {limit}");
                }
            }
            for (row, hit) in rows[..8].iter().zip(0..) {
                let exact: f64 = row.iter().zip(&question).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                let score = f64::from(product.with(row));
                assert!((score - exact).abs() <= 1e-4 * exact.abs().max(1.0) || !score.is_finite(), "{hit}");
            }
        }
    }
}

#[test]
fn few_vectors_are_read_where_their_codes_say_enough() {
    let mut random = StdRng::seed_from_u64(6);
    let rows: Vec<Vec<f32>> =
        (0..4_000).map(|_| (0..384).map(|_| random.random_range(-1.0..1.0)).collect()).collect();
    let segment = dense(0, SPACE, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let block = PostingsBlock::merge(
        BlockKind::of(&segment),
        &[MergeSource::Segment(GenerationId::generate(), &segment)],
    );
    let product = dot::DotProduct::new(rows[17].clone());
    let bounds = bounds::ProductBounds::new(&rows[17]);
    let mut scores: Vec<f32> = rows.iter().map(|row| product.with(row)).collect();
    let mut above = 0;
    for start in (0..4_000).step_by(100) {
        let bounds = bounds.of(block.codes(start..start + 100));
        for (bound, score) in bounds.iter().zip(&scores[start as usize..]).take(100) {
            assert!(bound >= score);
        }
        above += bounds.iter().take(100).filter(|bound| **bound >= 0.0).count();
    }
    scores.sort_unstable_by(f32::total_cmp);
    let positive = 4_000 - scores.partition_point(|score| *score < 0.0);
    assert!(above < positive * 5 / 4, "{above} instead of {positive}");
}
