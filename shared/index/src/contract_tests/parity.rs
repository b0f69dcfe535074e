//! What is asked of one index and of another is answered alike.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use uuid::Uuid;

use super::{
    super::{IndexCandidates, IndexEntry, IndexQuery, SearchCandidate},
    backends, vector,
};

#[tokio::test]
async fn every_index_ranks_the_same_passages_alike() {
    let corpus = [
        "Penguins are birds that cannot fly. They live almost entirely in the southern hemisphere.",
        "The emperor penguin is the tallest and heaviest of all living penguins and breeds in the Antarctic winter.",
        "Ostriches are the largest living birds; they cannot fly either, but they run faster than any other bird.",
        "The albatross glides for hours over the southern oceans without moving its wings.",
        "A volcano is a rupture in the crust of a planet that allows hot lava and gases to escape.",
        "Mount Erebus is the southernmost active volcano on Earth, and stands on Ross Island in Antarctica.",
        "The ice sheet of Antarctica holds most of the fresh water of the planet.",
        "Fresh water is also found in rivers, lakes and in the ground; most of it cannot be seen at all.",
        "Winter in the Antarctic lasts from March to October, and for weeks the sun does not rise.",
        "The sun is a star; it rises in the east because the Earth turns.",
        "Running shoes wear out faster on the road than on grass, and heavy runners should replace them often.",
        "RFC-9110 describes the semantics of HTTP: methods, status codes, header fields and caching.",
    ];
    let questions = [
        ("Which penguin is the tallest?", 1),
        ("birds that cannot fly", 2),
        ("southernmost volcano", 5),
        ("how much of the fresh water is in the ice", 6),
        ("How long is the Antarctic winter?", 8),
        ("running faster", 2),
        ("http status code", 11),
        ("why does the sun rise in the east", 9),
    ];
    let backends = backends().await;
    let mut lists = Vec::new();
    for b in &backends.all {
        let claim = b.claim().await;
        let generation = b.indexed(&claim, &corpus).await;
        for (number, (question, best)) in questions.iter().enumerate() {
            let candidates = b.search(b.query(claim.workspace_id, &[generation], question)).await.lexical;
            assert_eq!(candidates.first().map(|c| c.ordinal), Some(*best), "{}: {question}", b.name);
            let ranked: Vec<_> = candidates.iter().map(|c| (c.ordinal, c.score)).collect();
            // The same with all others: this index holds nothing else, so even its frequencies are the same.
            let Some(expected) = lists.get(number) else {
                lists.push(ranked);
                continue;
            };
            assert_eq!(ranked.len(), expected.len(), "{}: {question}", b.name);
            for ((ordinal, score), (same, close)) in ranked.iter().zip(expected) {
                assert_eq!(ordinal, same, "{}: {question}", b.name);
                assert!((score - close).abs() < 1e-3, "{}: {question}: {score} {close}", b.name);
            }
        }
    }
}

/// The best ten of each, of which those with the same score may stand in either order; at the end of the list others with
/// that score may be in their place.
fn assert_alike(one: &[SearchCandidate], other: &[SearchCandidate], tolerance: f32, on: &str) {
    let close = |a: f32, b: f32| (a - b).abs() <= tolerance;
    assert_eq!(one.len(), other.len(), "{on}");
    let last = one.last().map_or(0.0, |candidate| candidate.score);
    for (a, b) in one.iter().zip(other) {
        assert!(close(a.score, b.score), "{on}: {} {}", a.score, b.score);
        let same = |c: &&SearchCandidate| c.ordinal == a.ordinal;
        match other.iter().find(same) {
            Some(there) => assert!(close(there.score, a.score), "{on}: {} {}", there.score, a.score),
            None => assert!(close(a.score, last), "{on}: {} is missing", a.ordinal),
        }
    }
}

#[tokio::test]
async fn every_index_returns_the_same_ten_best_by_words_and_by_meaning() {
    let nouns =
        ["house", "river", "contract", "penguin", "engine", "teacher", "village", "letter", "mountain"];
    let verbs = ["crossed", "described", "remembered", "followed", "repaired", "visited", "signed"];
    let adjectives = ["old", "heavy", "quiet", "frozen", "broken", "famous"];
    let mut random = StdRng::seed_from_u64(11);
    let mut pick = |from: &[&'static str]| from[random.random_range(0..from.len())];
    let texts: Vec<String> = (0..400)
        .map(|_| {
            let mut clause = || {
                format!("the {} {} {} the {}", pick(&adjectives), pick(&nouns), pick(&verbs), pick(&nouns))
            };
            format!("It is said that {}, and that {} when it was in the other town.", clause(), clause())
        })
        .collect();
    let questions: Vec<String> = (0..12)
        .map(|_| format!("Which {} {} {} a {}?", pick(&adjectives), pick(&nouns), pick(&verbs), pick(&nouns)))
        .collect();
    let mut random_vector = || {
        let vector: Vec<f32> = (0..32).map(|_| random.random_range(-1.0..1.0)).collect();
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        vector.into_iter().map(|number| number / length).collect::<Vec<f32>>()
    };
    let rows: Vec<Vec<f32>> = (0..400).map(|_| random_vector()).collect();
    let vectors: Vec<Vec<f32>> = (0..12).map(|_| random_vector()).collect();
    let backends = backends().await;
    let mut lists: Vec<IndexCandidates> = Vec::new();
    for b in &backends.all {
        let claim = b.claim().await;
        // A space of its own: a collection that nothing else is in.
        let space = Uuid::from_u128(7);
        let entries = texts
            .iter()
            .zip(&rows)
            .map(|(text, row)| IndexEntry { text: text.clone(), vector: Some(row.clone()) });
        let generation = b.add(&claim, Some((space, 32)), entries.collect()).await;
        for (number, (question, row)) in questions.iter().zip(&vectors).enumerate() {
            let query = IndexQuery {
                vectors: vec![vector(space, row)],
                ..b.query(claim.workspace_id, &[generation], question)
            };
            let found = b.search(query).await;
            assert_eq!((found.lexical.len(), found.dense[0].len()), (10, 10), "{}: {question}", b.name);
            let Some(expected) = lists.get(number) else {
                lists.push(found);
                continue;
            };
            let on = format!("{}: {question}", b.name);
            assert_alike(&found.lexical, &expected.lexical, 1e-3, &on);
            assert_alike(&found.dense[0], &expected.dense[0], 1e-5, &on);
        }
    }
}
