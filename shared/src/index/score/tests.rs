use super::{
    super::{
        lexical::{AVG_LEN, B, K1},
        segment::SegmentBuilder,
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

fn found(query: &str, segments: &[&Segment]) -> Vec<(usize, u32)> {
    search_lexical(query, segments, 10).into_iter().map(|hit| (hit.segment, hit.ordinal)).collect()
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
    for (hit, (segment, ordinal, score)) in hits.iter().zip(expected) {
        assert_eq!((hit.segment, hit.ordinal), (segment, ordinal));
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

#[test]
fn lists_are_fused_by_the_distribution_of_their_scores() {
    let lexical = vec![("a", 12.0), ("b", 7.0), ("c", 5.0)];
    let dense = vec![("b", 0.9), ("a", 0.3), ("d", 0.3)];
    let fused = fuse_dbsf(&[lexical, dense], 10);
    // By hand: means 8 and 0.5, sample deviations √13 and √0.12.
    let scaled = |score: f32, mean: f32, deviation: f32| (score - mean) / (6.0 * deviation) + 0.5;
    let b = scaled(7.0, 8.0, 13_f32.sqrt()) + scaled(0.9, 0.5, 0.12_f32.sqrt());
    let a = scaled(12.0, 8.0, 13_f32.sqrt()) + scaled(0.3, 0.5, 0.12_f32.sqrt());
    let keys: Vec<&str> = fused.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, ["b", "a", "d", "c"]);
    assert!((fused[0].1 - b).abs() < 1e-5 && (fused[1].1 - a).abs() < 1e-5);
}

#[test]
fn lists_without_differences_do_not_divide_by_zero() {
    assert_eq!(fuse_dbsf(&[vec![("a", 3.0)]], 5), [("a", 0.5)]);
    assert_eq!(fuse_dbsf(&[vec![("b", 0.1), ("a", 0.1), ("c", 0.1)]], 2), [("b", 0.5), ("a", 0.5)]);
    assert_eq!(fuse_dbsf(&[vec![("a", 1.0)], vec![("b", 1.0), ("a", 1.0)]], 5), [("a", 1.0), ("b", 0.5)]);
    assert!(fuse_dbsf::<u8>(&[], 5).is_empty() && fuse_dbsf::<u8>(&[Vec::new()], 5).is_empty());
}

#[test]
fn scores_that_are_no_numbers_and_repeated_keys_are_passed_over() {
    let fused =
        fuse_dbsf(&[vec![("a", f32::NAN), ("b", 2.0), ("c", 1.0), ("c", 1.5), ("d", f32::INFINITY)]], 9);
    let keys: Vec<&str> = fused.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, ["b", "c"]);
    assert!(fused.iter().all(|(_, score)| (0.0..=1.0).contains(score)));
}

#[test]
fn an_outlier_is_cut_to_the_range() {
    let mut list = vec![(0, 1_000.0)];
    list.extend((1..100).map(|key| (key, 1.0)));
    assert_eq!(fuse_dbsf(&[list], 1), [(0, 1.0)]);
}
