//! The embedded index against plain loops over everything that is stored, and what its cache promises.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use lectern_db::{
    Db,
    generations::RetiredGeneration,
    index_segments,
    testing::{TestDb, at, both, claimed, staged, workspace},
};
use lectern_shared::{
    cache_budget::CacheBudget,
    compute::ComputePool,
    ids::{GenerationId, WorkspaceId},
    metrics::CacheState,
    model::{job::JobClaim, language::Language},
};
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use uuid::Uuid;

use super::{IndexCache, LocalIndex, LocalIndexState};
use crate::{
    EntryMismatch, ExpectedEntries, IndexCandidates, IndexEntry, IndexQuery, IndexTarget, SearchCandidate,
    SearchIndex, SpaceVector, SpillSpace,
    lexical::{LexicalQuery, idf},
    segment::Segment,
};

mod spill;

/// More than any test stores.
const LARGE: u64 = 256 << 20;
const SPACES: [(Uuid, usize); 2] = [(Uuid::from_u128(1), 19), (Uuid::from_u128(2), 8)];

fn index(db: &Db, capacity: u64, threads: usize) -> LocalIndex {
    spilling(db, capacity, threads, None)
}

fn spilling(db: &Db, capacity: u64, threads: usize, spill: Option<SpillSpace>) -> LocalIndex {
    let inner = LocalIndexState {
        db: db.clone(),
        cache: Arc::new(IndexCache::new(CacheBudget::new(capacity), spill)),
        compute: ComputePool::per_core(),
        threads,
        read: tokio::sync::Mutex::new(()),
    };
    LocalIndex { inner: Arc::new(inner) }
}

async fn sqlite() -> (TestDb, JobClaim) {
    let t = both().await.remove(0);
    let workspace = workspace(&t.db, at(0)).await;
    let claim = claimed(&t.db, workspace, "one", at(0)).await;
    (t, claim)
}

async fn add(
    db: &Db,
    index: &LocalIndex,
    claim: &JobClaim,
    space: Option<(Uuid, usize)>,
    entries: Vec<IndexEntry>,
) -> GenerationId {
    let generation = staged(db, claim, &[], at(0)).await;
    let mut writer = index.writer(IndexTarget { claim, generation, space }).unwrap();
    writer.add(entries).await.unwrap();
    writer.finish().await.unwrap();
    generation
}

fn random_vector(random: &mut StdRng, dimension: usize) -> Vec<f32> {
    let vector: Vec<f32> = (0..dimension).map(|_| random.random_range(-1.0..1.0)).collect();
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.into_iter().map(|number| number / length).collect()
}

const WORDS: [&[&str]; 3] = [
    &[
        "the", "house", "houses", "running", "of", "winter", "RFC-9110", "v1.2.3", "birds", "and", "cannot",
        "fly",
    ],
    &[
        "die",
        "Häuser",
        "Haus",
        "und",
        "Verträge",
        "der",
        "Winter",
        "unterschrieben",
        "alte",
        "RFC-9110",
        "nicht",
    ],
    &["東京は", "日本の首都です。", "富士山", "高い", "京都は", "古い都です。", "RFC-9110", "犬と猫"],
];

fn random_text(random: &mut StdRng, language: usize) -> String {
    let words = WORDS[language % WORDS.len()];
    // Frequent words and rare ones.
    let word = |random: &mut StdRng| {
        words[random.random_range(0..words.len()).min(random.random_range(0..words.len()))]
    };
    (0..random.random_range(0..30)).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

type Found = (GenerationId, u32, f64);

/// What a search must find, by plain loops over what is stored, all of it, best first.
async fn naive(db: &Db, query: &IndexQuery) -> (Vec<Found>, Vec<Vec<Found>>) {
    let mut segments = Vec::new();
    let named: HashSet<_> = query.generations.iter().copied().collect();
    for generation in named {
        for stored in index_segments::fetch(db, query.workspace, &[generation]).await.unwrap() {
            segments.push((generation, Segment::from_bytes(stored.data).unwrap()));
        }
    }
    let question = LexicalQuery::new(&query.text);
    let (mut passages, mut languages) = (0, BTreeMap::<Language, u64>::new());
    let mut frequencies = vec![0_u64; question.len()];
    for (_, segment) in &segments {
        passages += u64::from(segment.chunk_count());
        *languages.entry(segment.language()).or_default() += u64::from(segment.chunk_count());
        for (frequency, term) in frequencies.iter_mut().zip(question.terms(segment.language())) {
            *frequency += u64::from(segment.document_frequency(term));
        }
    }
    let mut languages: Vec<_> = Language::ALL.map(|l| (l, languages.get(&l).copied().unwrap_or(0))).into();
    languages.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let languages: Vec<_> = languages.into_iter().map(|(language, _)| language).collect();
    let weights = question.weights(&languages);
    let mut lexical = BTreeMap::<(GenerationId, u32), f64>::new();
    let mut dense = vec![Vec::new(); query.vectors.len()];
    for (generation, segment) in &segments {
        for ((term, weight), frequency) in
            question.terms(segment.language()).into_iter().zip(&weights).zip(&frequencies)
        {
            for (ordinal, stored) in
                segment.postings(term).into_iter().flat_map(crate::segment::TermPostings::iter)
            {
                let score = f64::from(*weight) * f64::from(idf(passages, *frequency)) * f64::from(stored);
                if score > 0.0 {
                    *lexical
                        .entry((*generation, segment.first_ordinal() + u32::from(ordinal)))
                        .or_default() += score;
                }
            }
        }
        for (list, SpaceVector { space, vector }) in dense.iter_mut().zip(&query.vectors) {
            let Some(stored) =
                segment.dense().filter(|d| (d.space(), d.dimension()) == (*space, vector.len()))
            else {
                continue;
            };
            for (ordinal, row) in (segment.first_ordinal()..).zip(stored.rows()) {
                let score = row.iter().zip(vector).map(|(a, b)| f64::from(a) * f64::from(*b)).sum();
                list.push((*generation, ordinal, score));
            }
        }
    }
    let mut lexical: Vec<Found> =
        lexical.into_iter().map(|((g, ordinal), score)| (g, ordinal, score)).collect();
    for list in std::iter::once(&mut lexical).chain(&mut dense) {
        list.sort_by(|a, b| b.2.total_cmp(&a.2));
    }
    (lexical, dense)
}

/// The same passages with the same scores; which of two that are as good as equal comes first, or is the last that gets
/// in, is open.
fn assert_exact(found: &[SearchCandidate], naive: &[Found], depth: usize, on: &str) {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-5 * (1.0 + b.abs());
    assert_eq!(found.len(), naive.len().min(depth), "{on}");
    let scores: HashMap<_, _> = naive.iter().map(|(g, ordinal, score)| ((*g, *ordinal), *score)).collect();
    let mut seen = HashSet::new();
    for (candidate, (_, _, best)) in found.iter().zip(naive) {
        let key = (candidate.generation, candidate.ordinal);
        let score = f64::from(candidate.score);
        assert!(seen.insert(key), "{on}: {key:?} twice");
        assert!(close(score, scores[&key]), "{on}: {score} instead of {}", scores[&key]);
        assert!(close(score, *best), "{on}: {score} where {best} should be");
    }
    assert!(found.is_sorted_by(|a, b| a.score >= b.score), "{on}");
}

async fn assert_found_is_exact(index: &LocalIndex, query: &IndexQuery, on: &str) -> IndexCandidates {
    let found = index.search(query.clone()).await.unwrap();
    let (lexical, dense) = naive(&index.inner.db, query).await;
    assert_exact(&found.lexical, &lexical, query.depth, on);
    assert_eq!(found.dense.len(), dense.len(), "{on}");
    for (found, naive) in found.dense.iter().zip(&dense) {
        assert_exact(found, naive, query.depth, on);
    }
    found
}

fn assert_equal(a: &IndexCandidates, b: &IndexCandidates, on: &str) {
    assert_eq!(a.lexical, b.lexical, "{on}");
    assert_eq!(a.dense, b.dense, "{on}");
}

/// Generations of all sizes and languages, some with vectors of either space.
async fn random_generations(t: &TestDb, claim: &JobClaim, random: &mut StdRng) -> Vec<GenerationId> {
    let writer = index(&t.db, 0, 1);
    let mut generations = Vec::new();
    for number in 0..48_usize {
        let space = [Some(SPACES[0]), Some(SPACES[1]), None, Some(SPACES[0])][random.random_range(0..4)];
        let entries = (0..[0, 1, 3, 40][random.random_range(0..4)])
            .map(|_| IndexEntry {
                text: random_text(random, number),
                vector: space.map(|(_, dimension)| random_vector(random, dimension)),
            })
            .collect();
        generations.push(add(&t.db, &writer, claim, space, entries).await);
    }
    generations
}

fn random_query(random: &mut StdRng, workspace: WorkspaceId, generations: &[GenerationId]) -> IndexQuery {
    let mut searched = generations.to_vec();
    searched.shuffle(random);
    searched.truncate([1, 2, 10, 48][random.random_range(0..4)]);
    // Some that never were, and one that is named twice.
    searched.extend((0..random.random_range(0..3)).map(|_| GenerationId::generate()));
    searched.push(searched[0]);
    let text: Vec<_> = (0..3).map(|language| random_text(random, language)).collect();
    let text: Vec<_> = text.iter().flat_map(|text| text.split(' ').take(2)).collect();
    let vectors =
        SPACES.map(|(space, dimension)| SpaceVector { space, vector: random_vector(random, dimension) });
    IndexQuery {
        workspace,
        generations: searched,
        others: Vec::new(),
        languages: Vec::new(),
        text: text.join(" "),
        vectors: vectors.into(),
        depth: [0, 1, 7, 100, 10_000][random.random_range(0..5)],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_asked_of_whatever_is_stored_is_answered_as_by_plain_loops() {
    for seed in 0..3 {
        let mut random = StdRng::seed_from_u64(seed);
        let (t, claim) = sqlite().await;
        let generations = random_generations(&t, &claim, &mut random).await;
        let stored = index_segments::sizes(&t.db, claim.workspace_id, &generations).await.unwrap();
        let stored = u64::try_from(stored.iter().map(|(_, size)| size).sum::<i64>()).unwrap();
        // Those that keep everything, some of it, and nothing; on the disk too.
        let capacities = [LARGE, stored / 2, stored / 8, 0];
        let mut indexes: Vec<_> = capacities.map(|capacity| index(&t.db, capacity, 2)).into();
        let folder = tempfile::tempdir().unwrap();
        for (capacity, on_disk) in [(stored / 2, LARGE), (stored / 4, LARGE), (stored / 4, stored / 2)] {
            let spill = SpillSpace::of_blocks_from(folder.path().to_owned(), on_disk, 1, u64::MAX);
            indexes.push(spilling(&t.db, capacity, 2, Some(spill)));
        }
        for number in 0..25 {
            let query = random_query(&mut random, claim.workspace_id, &generations);
            let on = format!("seed {seed}, query {number}");
            let expected = assert_found_is_exact(&indexes[0], &query, &on).await;
            for index in &indexes {
                let on = format!("{on}, cache of {} for {stored}", index.inner.cache.capacity());
                assert_equal(&index.search(query.clone()).await.unwrap(), &expected, &on);
                assert!(index.cached_bytes() <= index.inner.cache.capacity(), "{on}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_threads_changes_nothing() {
    let mut random = StdRng::seed_from_u64(7);
    let (t, claim) = sqlite().await;
    let space = (Uuid::from_u128(1), 1_024);
    let mut generations = Vec::new();
    // More than one thread is given at a time, in parts of several sizes; many vectors are equal.
    let rows: Vec<_> = (0..300).map(|_| random_vector(&mut random, space.1)).collect();
    for count in [2_500, 1, 700, 2_000, 30] {
        let entry = |n: usize| IndexEntry {
            text: format!("word{} word{}", n % 7, n % 50),
            vector: Some(rows[n % 300].clone()),
        };
        generations.push(
            add(&t.db, &index(&t.db, 0, 1), &claim, Some(space), (0..count).map(entry).collect()).await,
        );
    }
    let query = IndexQuery {
        workspace: claim.workspace_id,
        generations,
        others: Vec::new(),
        languages: Vec::new(),
        text: "word3 word8 word14".to_owned(),
        vectors: vec![SpaceVector { space: space.0, vector: random_vector(&mut random, space.1) }; 2],
        depth: 60,
    };
    let single = index(&t.db, LARGE, 1);
    let expected = assert_found_is_exact(&single, &query, "one thread").await;
    for threads in [1, 2, 5] {
        for capacity in [LARGE, 20 << 20, 0] {
            let index = index(&t.db, capacity, threads);
            for turn in 0..3 {
                let on = format!("{threads} threads, cache of {capacity}, turn {turn}");
                assert_equal(&index.search(query.clone()).await.unwrap(), &expected, &on);
            }
        }
    }
    // All at the same time, more than there are slots.
    let index = index(&t.db, LARGE, 5);
    let searches = (0..12).map(|_| index.search(query.clone()));
    for found in futures::future::join_all(searches).await {
        assert_equal(&found.unwrap(), &expected, "together");
    }
}

#[tokio::test]
async fn documents_that_come_one_by_one_are_merged_and_stay_within_the_cache() {
    let (t, claim) = sqlite().await;
    let index_of_all = index(&t.db, LARGE, 2);
    let mut random = StdRng::seed_from_u64(3);
    let mut generations = Vec::new();
    let query = |generations: &[GenerationId]| IndexQuery {
        workspace: claim.workspace_id,
        generations: generations.to_vec(),
        others: Vec::new(),
        languages: Vec::new(),
        text: "houses in the winter".to_owned(),
        vectors: vec![SpaceVector { space: SPACES[0].0, vector: vec![0.1; SPACES[0].1] }],
        depth: 1_000,
    };
    for _ in 0..120 {
        let vector = Some(random_vector(&mut random, SPACES[0].1));
        let entry =
            IndexEntry { text: format!("the house in winter and {}", random_text(&mut random, 0)), vector };
        generations.push(add(&t.db, &index_of_all, &claim, Some(SPACES[0]), vec![entry]).await);
        let found = index_of_all.search(query(&generations)).await.unwrap();
        assert_eq!((found.lexical.len(), found.dense[0].len()), (generations.len(), generations.len()));
    }
    let workspace = claim.workspace_id;
    let searched: Arc<[GenerationId]> = generations.clone().into();
    let blocks = index_of_all.inner.cache.resolve(workspace, &searched).selections.len();
    assert!(blocks < 8, "{blocks} blocks");
    let capacity = index_of_all.cached_bytes() / 3;
    let small = index(&t.db, capacity, 2);
    for some in generations.chunks(20).cycle().take(20) {
        let found = assert_found_is_exact(&small, &query(some), "a part").await;
        assert_eq!(found.lexical.len(), some.len());
        assert!(small.cached_bytes() <= capacity, "{} of {capacity}", small.cached_bytes());
    }
    // Of what is gone nothing is kept, of what is left everything.
    let (gone, left) = generations.split_at(100);
    for generation in gone {
        index_of_all.remove(RetiredGeneration::assumed(workspace, *generation)).await.unwrap();
    }
    assert_found_is_exact(&index_of_all, &query(&generations), "after removals").await;
    let before = index_of_all.cached_bytes();
    let entry = IndexEntry { text: "one more".to_owned(), vector: Some(vec![0.0; SPACES[0].1]) };
    let more = add(&t.db, &index_of_all, &claim, Some(SPACES[0]), vec![entry]).await;
    let all: Vec<_> = left.iter().copied().chain([more]).collect();
    assert_found_is_exact(&index_of_all, &query(&all), "after one more").await;
    assert!(index_of_all.cached_bytes() < before, "blocks that are mostly gone are made smaller");
    for generation in generations.iter().chain([&more]) {
        index_of_all.remove(RetiredGeneration::assumed(workspace, *generation)).await.unwrap();
    }
    assert_eq!(index_of_all.cached_bytes(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn generations_that_replace_one_another_are_each_found_as_long_as_they_are_there() {
    let folder = tempfile::tempdir().unwrap();
    for (capacity, on_disk) in [(0, 0), (3_000, 0), (LARGE, 0), (3_000, LARGE), (3_000, 3_000)] {
        let (t, claim) = sqlite().await;
        let workspace = claim.workspace_id;
        let spill = SpillSpace::of_blocks_from(folder.path().to_owned(), on_disk, 1, u64::MAX);
        let index = spilling(&t.db, capacity, 2, Some(spill));
        let entries = |n: usize| {
            let text = |part: usize| format!("shared x{n} part{part}");
            (0..3)
                .map(|part| IndexEntry { text: text(part), vector: Some(vec![1.0, 0.0]) })
                .collect::<Vec<_>>()
        };
        let space = Some((Uuid::from_u128(1), 2));
        let mut first = Vec::new();
        for n in 0..12 {
            first.push(add(&t.db, &index, &claim, space, entries(n)).await);
        }
        let visible = Arc::new(Mutex::new(first));
        let over = Arc::new(AtomicBool::new(false));
        let searches: Vec<_> = (0..3)
            .map(|_| {
                let (index, visible, over) = (index.clone(), Arc::clone(&visible), Arc::clone(&over));
                tokio::spawn(async move {
                    let mut searches = 0;
                    while !over.load(Ordering::Relaxed) || searches < 5 {
                        let named = visible.lock().clone();
                        let query = IndexQuery {
                            workspace,
                            generations: named.clone(),
                            others: Vec::new(),
                            languages: Vec::new(),
                            text: "shared".to_owned(),
                            vectors: vec![SpaceVector { space: Uuid::from_u128(1), vector: vec![1.0, 0.0] }],
                            depth: 100,
                        };
                        let found = index.search(query).await.unwrap();
                        let still = visible.lock().clone();
                        for list in [&found.lexical, &found.dense[0]] {
                            assert!(list.iter().all(|candidate| named.contains(&candidate.generation)));
                            for generation in named.iter().filter(|g| still.contains(g)) {
                                let count = list.iter().filter(|c| c.generation == *generation).count();
                                assert_eq!(count, 3, "cache of {capacity}, {on_disk} on the disk");
                            }
                        }
                        searches += 1;
                    }
                })
            })
            .collect();
        let mut removed = Vec::new();
        for n in 0..60 {
            let new = add(&t.db, &index, &claim, space, entries(n)).await;
            let old = std::mem::replace(&mut visible.lock()[n % 12], new);
            index.remove(RetiredGeneration::assumed(workspace, old)).await.unwrap();
            removed.push(old);
        }
        over.store(true, Ordering::Relaxed);
        for search in searches {
            search.await.unwrap();
        }
        let visible = visible.lock().clone();
        let kept = removed.iter().filter(|g| index.inner.cache.missing(workspace, &[**g]).is_empty()).count();
        // A search that named one of them after it was gone has learnt that it has no passages, at most.
        let found = index.search(IndexQuery {
            workspace,
            generations: removed.clone(),
            others: Vec::new(),
            languages: Vec::new(),
            text: "shared".to_owned(),
            vectors: Vec::new(),
            depth: 100,
        });
        assert!(found.await.unwrap().lexical.is_empty(), "{kept} of {} came back", removed.len());
        let last = index.search(IndexQuery {
            workspace,
            generations: visible,
            others: Vec::new(),
            languages: Vec::new(),
            text: "shared".to_owned(),
            vectors: Vec::new(),
            depth: 100,
        });
        assert_eq!(last.await.unwrap().lexical.len(), 36);
    }
}

#[tokio::test]
async fn what_a_search_cannot_read_counts_as_missing() {
    for capacity in [0, LARGE] {
        let (t, claim) = sqlite().await;
        let workspace = claim.workspace_id;
        let index = index(&t.db, capacity, 1);
        let generation = staged(&t.db, &claim, &[], at(0)).await;
        let mut tx = t.db.begin().await.unwrap();
        index_segments::insert(&mut tx, workspace, generation, 0, 3, b"no segment").await.unwrap();
        tx.commit().await.unwrap();
        let expected = [ExpectedEntries { generation, entries: 3, space: None }];
        assert!(index.mismatched(&expected).await.unwrap().is_empty());
        let query = IndexQuery {
            workspace,
            generations: vec![generation],
            others: Vec::new(),
            languages: Vec::new(),
            text: "word".to_owned(),
            vectors: Vec::new(),
            depth: 10,
        };
        assert!(index.search(query).await.unwrap().lexical.is_empty());
        // It is asked twice.
        for _ in 0..2 {
            let missing = BTreeMap::from([(generation, EntryMismatch::Missing)]);
            assert_eq!(index.mismatched(&expected).await.unwrap(), missing, "cache of {capacity}");
        }
    }
}
