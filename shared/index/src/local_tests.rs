//! What is the embedded index's own, over both engines: segments, the cache, and its refusal of writers without a claim. What
//! every index must do is in `contract_tests`.

use lectern_db::{
    Db,
    generations::{self, RetiredGeneration},
    index_segments, jobs,
    testing::{TestDb, at, both, claimed, commit, damage_segment, staged, workspace},
};
use lectern_shared::{
    ids::{GenerationId, WorkspaceId},
    model::{job::JobClaim, language::Language},
};
use uuid::Uuid;

use super::{
    IndexCandidates, IndexEntry, IndexError, IndexQuery, IndexTarget, LocalIndex, SearchIndex, SpaceVector,
    segment::MAX_CHUNKS,
};

/// More than any test stores.
const LARGE: u64 = 64 << 20;

const SPACE: Uuid = Uuid::from_u128(1);

fn words(texts: &[&str]) -> Vec<IndexEntry> {
    texts.iter().map(|text| IndexEntry { text: (*text).to_owned(), vector: None }).collect()
}

/// Adds a generation to the index, and returns it with how many entries the index says it has.
async fn add(
    db: &Db,
    index: &LocalIndex,
    claim: &JobClaim,
    space: Option<(Uuid, usize)>,
    entries: Vec<IndexEntry>,
) -> (GenerationId, u64) {
    let generation = staged(db, claim, &[], at(0)).await;
    let mut writer = index.writer(IndexTarget { claim, generation, space }).unwrap();
    writer.add(entries).await.unwrap();
    (generation, writer.finish().await.unwrap().entries)
}

async fn indexed(db: &Db, index: &LocalIndex, claim: &JobClaim, texts: &[&str]) -> GenerationId {
    add(db, index, claim, None, words(texts)).await.0
}

/// A number as a word of its own, without digits, which are searched by themselves too.
fn spelt(number: usize) -> String {
    let letter = |digit: u8| char::from(b"bcdfghjklm"[usize::from(digit - b'0')]);
    format!("x{}", number.to_string().bytes().map(letter).collect::<String>())
}

fn query(workspace: WorkspaceId, generations: &[GenerationId], text: &str) -> IndexQuery {
    IndexQuery {
        workspace,
        generations: generations.to_vec(),
        others: Vec::new(),
        languages: Vec::new(),
        text: text.to_owned(),
        vectors: Vec::new(),
        depth: 10,
    }
}

/// What is found by words, best first.
async fn found(
    index: &LocalIndex,
    workspace: WorkspaceId,
    generations: &[GenerationId],
    text: &str,
) -> Vec<(GenerationId, u32)> {
    let candidates = index.search(query(workspace, generations, text)).await.unwrap();
    candidates.lexical.iter().map(|candidate| (candidate.generation, candidate.ordinal)).collect()
}

async fn new(t: &TestDb, cache: u64) -> (LocalIndex, JobClaim) {
    let workspace = workspace(&t.db, at(0)).await;
    (LocalIndex::new(t.db.clone(), cache), claimed(&t.db, workspace, "one", at(0)).await)
}

#[tokio::test]
async fn a_generation_of_several_parts_is_found_in_all_of_them() {
    for t in &both().await {
        let (index, claim) = new(t, LARGE).await;
        let generation = staged(&t.db, &claim, &[], at(0)).await;
        let texts: Vec<String> = (0..2 * MAX_CHUNKS + 100).map(|n| format!("{} common", spelt(n))).collect();
        let mut writer = index.writer(IndexTarget { claim: &claim, generation, space: None }).unwrap();
        // Batches that end before, on and after the end of a part.
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (first, rest) = texts.split_at(MAX_CHUNKS - 1);
        let (second, third) = rest.split_at(1);
        for batch in [first, second, third] {
            writer.add(words(batch)).await.unwrap();
        }
        assert_eq!(writer.finish().await.unwrap().entries, texts.len() as u64, "{}", t.name);
        let parts = index_segments::fetch(&t.db, claim.workspace_id, &[generation]).await.unwrap();
        assert_eq!(parts.iter().map(|part| part.part).collect::<Vec<_>>(), [0, 1, 2], "{}", t.name);
        for ordinal in [0, MAX_CHUNKS - 1, MAX_CHUNKS, 2 * MAX_CHUNKS - 1, 2 * MAX_CHUNKS, texts.len() - 1] {
            let hits = found(&index, claim.workspace_id, &[generation], &spelt(ordinal)).await;
            assert_eq!(hits, [(generation, u32::try_from(ordinal).unwrap())], "{}", t.name);
        }
        assert_eq!(
            found(&index, claim.workspace_id, &[generation], "common").await.len(),
            10,
            "{}: the depth",
            t.name
        );
    }
}

#[tokio::test]
async fn frequencies_are_counted_over_exactly_the_named_generations() {
    for t in &both().await {
        let (index, claim) = new(t, LARGE).await;
        let workspace = claim.workspace_id;
        let small = indexed(&t.db, &index, &claim, &["kiwi mango", "kiwi papaya", "papaya"]).await;
        let score = async |generations: &[GenerationId]| {
            let candidates = index.search(query(workspace, generations, "papaya")).await.unwrap();
            candidates.lexical.iter().find(|c| c.generation == small).unwrap().score
        };
        let alone = score(&[small]).await;
        // Here nearly every passage has the word.
        let common = indexed(&t.db, &index, &claim, &["papaya"; 30]).await;
        assert_eq!(score(&[small]).await.to_bits(), alone.to_bits(), "{}: it was not named", t.name);
        assert!(score(&[small, common]).await < alone, "{}: the word is worth less there", t.name);
        // Here no other passage has it.
        let rare = indexed(&t.db, &index, &claim, &["kiwi"; 30]).await;
        assert!(score(&[small, rare]).await > alone, "{}: the word is worth more there", t.name);
    }
}

fn assert_same(a: &IndexCandidates, b: &IndexCandidates, on: &str) {
    assert_eq!(a.lexical, b.lexical, "{on}");
    assert_eq!(a.dense, b.dense, "{on}");
}

#[tokio::test]
async fn a_cache_of_any_size_gives_the_same_hits() {
    for t in &both().await {
        let (index, claim) = new(t, LARGE).await;
        let mut generations = Vec::new();
        for n in 0..6_u8 {
            let entries = (0..40_u8)
                .map(|m| {
                    let angle = f32::from(n) + f32::from(m) / 7.0;
                    let text = format!("word{} word{} shared", m % 7, (m + n) % 5);
                    IndexEntry { text, vector: Some(vec![angle.cos(), angle.sin()]) }
                })
                .collect();
            generations.push(add(&t.db, &index, &claim, Some((SPACE, 2)), entries).await.0);
        }
        let sizes = index_segments::sizes(&t.db, claim.workspace_id, &generations).await.unwrap();
        let total = u64::try_from(sizes.iter().map(|(_, size)| size).sum::<i64>()).unwrap();
        let question = |generations: &[GenerationId]| IndexQuery {
            vectors: vec![SpaceVector { space: SPACE, vector: vec![1.0, 0.0] }],
            depth: 50,
            ..query(claim.workspace_id, generations, "word3 word4 shared")
        };
        let expected = index.search(question(&generations)).await.unwrap();
        let expected_of_two = index.search(question(&generations[2..4])).await.unwrap();
        assert_eq!((expected.lexical.len(), expected.dense[0].len()), (50, 50), "{}", t.name);
        for capacity in [0, 1, total / 6, total / 2, total, 3 * total, LARGE] {
            let index = LocalIndex::new(t.db.clone(), capacity);
            for turn in 0..2 {
                let on = format!("{} {capacity} of {total} turn {turn}", t.name);
                assert_same(&index.search(question(&generations)).await.unwrap(), &expected, &on);
                // Some of them may be cached now and others not.
                assert_same(
                    &index.search(question(&generations[2..4])).await.unwrap(),
                    &expected_of_two,
                    &on,
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn searches_at_the_same_time_do_not_disturb_each_other() {
    for t in &both().await {
        let (index, claim) = new(t, LARGE).await;
        let workspace = claim.workspace_id;
        let mut generations = Vec::new();
        for n in 0..8 {
            generations.push(indexed(&t.db, &index, &claim, &["shared", &format!("only{n}")]).await);
        }
        for capacity in [0, 2_000, LARGE] {
            let index = LocalIndex::new(t.db.clone(), capacity);
            let tasks: Vec<_> = (0..32)
                .map(|n| {
                    let (index, generations) = (index.clone(), generations.clone());
                    tokio::spawn(async move {
                        found(&index, workspace, &generations, &format!("only{}", n % 8)).await
                    })
                })
                .collect();
            for (n, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await.unwrap(), [(generations[n % 8], 1)], "{} {capacity}", t.name);
            }
        }
    }
}

#[tokio::test]
async fn a_generation_that_is_removed_is_not_found_any_more_and_others_are() {
    for t in &both().await {
        for capacity in [0, LARGE] {
            let (index, claim) = new(t, capacity).await;
            let gone = indexed(&t.db, &index, &claim, &["apple"]).await;
            let kept = indexed(&t.db, &index, &claim, &["apple"]).await;
            let workspace = claim.workspace_id;
            assert_eq!(found(&index, workspace, &[gone, kept], "apple").await.len(), 2, "{}", t.name);
            for _ in 0..2 {
                index.remove(RetiredGeneration::assumed(workspace, gone)).await.unwrap();
                assert_eq!(found(&index, workspace, &[gone, kept], "apple").await, [(kept, 0)], "{}", t.name);
            }
            index.remove(RetiredGeneration::assumed(workspace, GenerationId::generate())).await.unwrap();
            assert_eq!(index_segments::count(&t.db, gone).await.unwrap(), 0, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn a_damaged_part_is_not_found_and_keeps_nothing_else_from_being_found() {
    for t in &both().await {
        let (index, claim) = new(t, LARGE).await;
        let workspace = claim.workspace_id;
        let sound = indexed(&t.db, &index, &claim, &["apple"]).await;
        let mut texts = vec!["pear"; MAX_CHUNKS];
        texts.push("apple");
        let damaged = indexed(&t.db, &index, &claim, &texts).await;
        let last_part = u32::try_from(MAX_CHUNKS).unwrap();
        assert_eq!(
            found(&index, workspace, &[sound, damaged], "apple").await,
            [(sound, 0), (damaged, last_part)]
        );
        let blob = index_segments::fetch(&t.db, workspace, &[damaged]).await.unwrap().remove(0).data;
        let end = blob.len() - 1;
        let mut flipped = blob.clone();
        flipped[end] ^= 1;
        let mut newer = blob.clone();
        newer[4] = 0xff;
        for bytes in [&flipped, &newer, &blob[..end], b"rubbish", b""] {
            commit!(t.db, |tx| damage_segment(tx, damaged, bytes));
            for capacity in [0, LARGE] {
                let on = format!("{} {} bytes, cache {capacity}", t.name, bytes.len());
                let index = LocalIndex::new(t.db.clone(), capacity);
                for _ in 0..2 {
                    let hits = found(&index, workspace, &[sound, damaged], "apple").await;
                    assert_eq!(hits, [(sound, 0), (damaged, last_part)], "{on}");
                    assert!(found(&index, workspace, &[sound, damaged], "pear").await.is_empty(), "{on}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_writer_whose_claim_is_gone_writes_nothing_more() {
    for t in &both().await {
        // With nothing written yet, and with one part written.
        for parts in [0, 1] {
            let written = MAX_CHUNKS * parts;
            let (index, claim) = new(t, LARGE).await;
            let generation = staged(&t.db, &claim, &[], at(0)).await;
            let mut writer = index.writer(IndexTarget { claim: &claim, generation, space: None }).unwrap();
            writer.add(words(&vec!["text"; written])).await.unwrap();
            let stored = index_segments::count(&t.db, generation).await.unwrap();
            assert_eq!(usize::try_from(stored), Ok(written), "{}", t.name);
            commit!(t.db, |tx| jobs::cancel(tx, claim.workspace_id, claim.document_id, at(1)));
            assert!(!commit!(t.db, |tx| generations::may_write(tx, &claim, generation)), "{}", t.name);

            let full = writer.add(words(&vec!["text"; MAX_CHUNKS])).await;
            assert!(matches!(full, Err(IndexError::ClaimLost)), "{}: {full:?}", t.name);
            drop(writer);
            let mut writer = index.writer(IndexTarget { claim: &claim, generation, space: None }).unwrap();
            writer.add(words(&["text"])).await.unwrap();
            let finished = writer.finish().await;
            assert!(matches!(finished, Err(IndexError::ClaimLost)), "{}: {finished:?}", t.name);
            let stored = index_segments::count(&t.db, generation).await.unwrap();
            assert_eq!(usize::try_from(stored), Ok(written), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn the_cache_shows_a_generation_to_its_owner_only() {
    for t in &both().await {
        for stranger_first in [false, true] {
            let (index, claim) = new(t, LARGE).await;
            let (owner, stranger) = (claim.workspace_id, workspace(&t.db, at(0)).await);
            let generation = indexed(&t.db, &index, &claim, &["apple"]).await;
            for workspace in if stranger_first { [stranger, owner] } else { [owner, stranger] } {
                let expected = if workspace == owner { vec![(generation, 0)] } else { vec![] };
                let seen = found(&index, workspace, &[generation], "apple").await;
                assert_eq!(seen, expected, "{} {stranger_first}", t.name);
            }
        }
    }
}

#[tokio::test]
async fn a_writer_tells_how_many_entries_are_in_segments_of_each_language() {
    for t in &both().await {
        let (index, claim) = new(t, LARGE).await;
        let german = "Die Verträge wurden von beiden Parteien unterschrieben und sind für alle bindend.";
        let english = "The contracts were signed by both of the parties, and they bind everybody involved.";
        let mut texts = vec![english; MAX_CHUNKS];
        texts.extend([german; 3]);
        let generation = staged(&t.db, &claim, &[], at(0)).await;
        let mut writer = index.writer(IndexTarget { claim: &claim, generation, space: None }).unwrap();
        writer.add(words(&texts)).await.unwrap();
        let indexed = writer.finish().await.unwrap();
        let expected = [(Language::English, MAX_CHUNKS as u64), (Language::German, 3)];
        assert_eq!(indexed.languages, expected, "{}", t.name);
    }
}
