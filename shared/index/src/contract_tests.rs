//! What every search index must do, asked of the embedded one over both engines, and of Qdrant when there is one.

mod parity;

use std::collections::BTreeMap;

use lectern_db::{
    Db,
    generations::RetiredGeneration,
    testing::{TestDb, at, both, claimed, staged, workspace},
};
use lectern_shared::{
    ids::{GenerationId, WorkspaceId},
    model::{job::JobClaim, language::Language},
};
use parking_lot::Mutex;
use uuid::Uuid;

use super::{
    IndexCandidates, IndexEntry, IndexError, IndexQuery, IndexTarget, IndexedGeneration, LocalIndex,
    SearchIndex, SpaceVector,
    qdrant::testing::{self, TestQdrant},
};

const SPACE: Uuid = Uuid::from_u128(1);
const OTHER_SPACE: Uuid = Uuid::from_u128(2);

/// An index under test.
struct Backend {
    name: String,
    /// Where its claims come from.
    db: Db,
    index: Box<dyn SearchIndex>,
    /// What its writers have said of the languages, of all workspaces.
    languages: Mutex<BTreeMap<Language, u64>>,
}

/// Every index there is, empty.
struct Backends {
    all: Vec<Backend>,
    /// Dropped after them.
    _databases: Vec<TestDb>,
    _qdrant: Option<TestQdrant>,
}

async fn backends() -> Backends {
    let databases = both().await;
    let backend = |name: String, db: &Db, index: Box<dyn SearchIndex>| Backend {
        name,
        db: db.clone(),
        index,
        languages: Mutex::default(),
    };
    let mut all = Vec::new();
    for t in &databases {
        let index = LocalIndex::new(t.db.clone(), 64 << 20);
        all.push(backend(format!("embedded, {}", t.name), &t.db, Box::new(index)));
    }
    let qdrant = testing::index().await;
    if let Some(qdrant) = &qdrant {
        all.push(backend("Qdrant".to_owned(), &databases[0].db, Box::new(qdrant.index.clone())));
    }
    Backends { all, _databases: databases, _qdrant: qdrant }
}

impl Backend {
    /// A new workspace's claim.
    async fn claim(&self) -> JobClaim {
        claimed(&self.db, workspace(&self.db, at(0)).await, "one", at(0)).await
    }

    /// Adds a generation, some entries at a time.
    async fn add_in(
        &self,
        claim: &JobClaim,
        space: Option<(Uuid, usize)>,
        batches: Vec<Vec<IndexEntry>>,
    ) -> (GenerationId, IndexedGeneration) {
        let generation = staged(&self.db, claim, &[], at(0)).await;
        let mut writer = self.index.writer(IndexTarget { claim, generation, space }).unwrap();
        for batch in batches {
            writer.add(batch).await.unwrap();
        }
        let indexed = writer.finish().await.unwrap();
        for (language, count) in &indexed.languages {
            *self.languages.lock().entry(*language).or_default() += count;
        }
        (generation, indexed)
    }

    async fn add(
        &self,
        claim: &JobClaim,
        space: Option<(Uuid, usize)>,
        entries: Vec<IndexEntry>,
    ) -> GenerationId {
        self.add_in(claim, space, vec![entries]).await.0
    }

    async fn indexed(&self, claim: &JobClaim, texts: &[&str]) -> GenerationId {
        self.add(claim, None, words(texts)).await
    }

    /// A question about these generations, which are all that the workspace can see.
    fn query(&self, workspace: WorkspaceId, generations: &[GenerationId], text: &str) -> IndexQuery {
        let mut languages: Vec<_> = self.languages.lock().iter().map(|(l, count)| (*count, *l)).collect();
        languages.sort_unstable_by(|a, b| b.cmp(a));
        IndexQuery {
            workspace,
            generations: generations.to_vec(),
            others: Vec::new(),
            languages: languages.into_iter().map(|(_, language)| language).collect(),
            text: text.to_owned(),
            vectors: Vec::new(),
            depth: 10,
        }
    }

    async fn search(&self, query: IndexQuery) -> IndexCandidates {
        self.index.search(query).await.unwrap()
    }

    /// What is found by words, best first.
    async fn found(
        &self,
        workspace: WorkspaceId,
        generations: &[GenerationId],
        text: &str,
    ) -> Vec<(GenerationId, u32)> {
        names(&self.search(self.query(workspace, generations, text)).await.lexical)
    }

    async fn count(&self, workspace: WorkspaceId, generation: GenerationId) -> u64 {
        self.index.count(workspace, generation).await.unwrap()
    }
}

fn names(list: &[super::SearchCandidate]) -> Vec<(GenerationId, u32)> {
    list.iter().map(|candidate| (candidate.generation, candidate.ordinal)).collect()
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

fn words(texts: &[&str]) -> Vec<IndexEntry> {
    texts.iter().map(|text| IndexEntry { text: (*text).to_owned(), vector: None }).collect()
}

fn vectors(rows: &[[f32; 2]]) -> Vec<IndexEntry> {
    rows.iter().map(|row| IndexEntry { text: "text".to_owned(), vector: Some(row.to_vec()) }).collect()
}

fn vector(space: Uuid, vector: &[f32]) -> SpaceVector {
    SpaceVector { space, vector: vector.to_vec() }
}

/// A number as a word of its own, without digits, which are searched by themselves too.
fn spelt(number: usize) -> String {
    let letter = |digit: u8| char::from(b"bcdfghjklm"[usize::from(digit - b'0')]);
    format!("x{}", number.to_string().bytes().map(letter).collect::<String>())
}

#[tokio::test]
async fn the_writer_counts_what_the_index_holds() {
    let backends = backends().await;
    for b in &backends.all {
        let claim = b.claim().await;
        for texts in [&[][..], &["one"], &["one", "", "three"]] {
            let (generation, indexed) = b.add_in(&claim, None, vec![words(texts)]).await;
            assert_eq!(indexed.entries, texts.len() as u64, "{}", b.name);
            assert_eq!(b.count(claim.workspace_id, generation).await, texts.len() as u64, "{}", b.name);
        }
        assert_eq!(b.count(claim.workspace_id, GenerationId::generate()).await, 0, "{}", b.name);
    }
}

#[tokio::test]
async fn an_index_that_is_there_says_what_it_is() {
    let backends = backends().await;
    for b in &backends.all {
        let status = b.index.ping().await.unwrap();
        let engine = status.kind == "qdrant";
        assert_eq!(engine, b.name == "Qdrant");
        assert_eq!(status.version.is_some(), engine, "{}", b.name);
        assert_eq!(b.index.late_write_window().is_some(), engine, "{}", b.name);
    }
}

#[tokio::test]
async fn entries_are_numbered_in_the_order_in_which_they_are_added() {
    let backends = backends().await;
    for b in &backends.all {
        let claim = b.claim().await;
        let texts: Vec<String> = (0..600).map(|n| format!("{} common", spelt(n))).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let batches = vec![words(&texts[..1]), words(&texts[1..300]), Vec::new(), words(&texts[300..])];
        let (generation, indexed) = b.add_in(&claim, None, batches).await;
        assert_eq!(indexed.entries, 600, "{}", b.name);
        for ordinal in [0, 1, 255, 256, 257, 299, 300, 555, 556, 599] {
            let hits = b.found(claim.workspace_id, &[generation], &spelt(ordinal)).await;
            assert_eq!(hits, [(generation, u32::try_from(ordinal).unwrap())], "{}", b.name);
        }
        let hits = b.found(claim.workspace_id, &[generation], "common").await;
        assert_eq!(hits.len(), 10, "{}: the depth", b.name);
    }
}

#[tokio::test]
async fn a_search_returns_passages_of_the_named_generations_only() {
    let backends = backends().await;
    for b in &backends.all {
        let claim = b.claim().await;
        let one = b.indexed(&claim, &["nothing", "red apple"]).await;
        let two = b.indexed(&claim, &["green apple"]).await;
        let workspace = claim.workspace_id;
        for (generations, expected) in [
            (&[one][..], vec![(one, 1)]),
            (&[two], vec![(two, 0)]),
            (&[], vec![]),
            (&[GenerationId::generate()], vec![]),
        ] {
            assert_eq!(b.found(workspace, generations, "apple").await, expected, "{}", b.name);
        }
        assert_eq!(
            sorted(b.found(workspace, &[one, two], "apple").await),
            [(one, 1), (two, 0)],
            "{}",
            b.name
        );
        for nothing in ["pear", "", "   ", "?!"] {
            assert!(b.found(workspace, &[one, two], nothing).await.is_empty(), "{} {nothing:?}", b.name);
        }
        let none = IndexQuery { depth: 0, ..b.query(workspace, &[one], "apple") };
        assert!(b.search(none).await.lexical.is_empty(), "{}", b.name);
    }
}

#[tokio::test]
async fn naming_what_is_searched_and_naming_what_is_not_find_the_same() {
    let backends = backends().await;
    for b in &backends.all {
        let claim = b.claim().await;
        let mut all = Vec::new();
        for n in 0..6_u8 {
            let entries = (0..20_u8)
                .map(|m| {
                    let angle = f32::from(n) + f32::from(m) / 7.0;
                    let text = format!("word{} word{} shared", m % 7, (m + n) % 5);
                    IndexEntry { text, vector: Some(vec![angle.cos(), angle.sin()]) }
                })
                .collect();
            all.push(b.add(&claim, Some((SPACE, 2)), entries).await);
        }
        let (searched, left_out) = all.split_at(4);
        let mut found = Vec::new();
        // Fewer than those searched, and more.
        for strangers in [0, 20] {
            let strangers = (0..strangers).map(|_| GenerationId::generate());
            let query = IndexQuery {
                others: left_out.iter().copied().chain(strangers).collect(),
                vectors: vec![vector(SPACE, &[1.0, 0.0])],
                depth: 30,
                ..b.query(claim.workspace_id, searched, "word3 word4 shared")
            };
            let candidates = b.search(query).await;
            assert_eq!((candidates.lexical.len(), candidates.dense[0].len()), (30, 30), "{}", b.name);
            for (generation, _) in names(&candidates.lexical).iter().chain(&names(&candidates.dense[0])) {
                assert!(searched.contains(generation), "{}", b.name);
            }
            let scores = |list: &[super::SearchCandidate]| list.iter().map(|c| c.score).collect::<Vec<_>>();
            found.push((scores(&candidates.lexical), scores(&candidates.dense[0])));
        }
        assert_eq!(found[0], found[1], "{}", b.name);
    }
}

#[tokio::test]
async fn thousands_of_generations_are_searched_or_left_out() {
    let backends = backends().await;
    for b in &backends.all {
        let claim = b.claim().await;
        let wanted = b.indexed(&claim, &["red apple"]).await;
        let left_out = b.indexed(&claim, &["green apple"]).await;
        let gone: Vec<_> = (0..7_000).map(|_| GenerationId::generate()).collect();
        let (searched, others) = gone.split_at(3_000);
        let searched = [searched, &[wanted]].concat();
        // Fewer than those searched, and more.
        for others in [&others[..2_500], others] {
            let query = IndexQuery {
                others: [others, &[left_out]].concat(),
                ..b.query(claim.workspace_id, &searched, "apple")
            };
            assert_eq!(names(&b.search(query).await.lexical), [(wanted, 0)], "{}", b.name);
        }
    }
}

#[tokio::test]
async fn a_list_is_full_however_much_that_is_not_searched_matches_better() {
    let backends = backends().await;
    for b in &backends.all {
        let claim = b.claim().await;
        let entry =
            |text: &str, vector: [f32; 2]| IndexEntry { text: text.to_owned(), vector: Some(vector.into()) };
        let space = Some((SPACE, 2));
        let wanted = (0..12).map(|_| entry("an apple among many other things that are said", [0.6, 0.8]));
        let wanted = b.add(&claim, space, wanted.collect()).await;
        // It is neither searched nor known to be there: it is just being written, or removed.
        for entries in [15, 300] {
            b.add(&claim, space, (0..entries).map(|_| entry("apple apple", [1.0, 0.0])).collect()).await;
            let query = IndexQuery {
                vectors: vec![vector(SPACE, &[1.0, 0.0]), vector(SPACE, &[0.0, 1.0])],
                ..b.query(claim.workspace_id, &[wanted], "apple")
            };
            let candidates = b.search(query).await;
            for list in [&candidates.lexical, &candidates.dense[0], &candidates.dense[1]] {
                assert_eq!(list.len(), 10, "{} {entries}", b.name);
                assert!(list.iter().all(|c| c.generation == wanted), "{} {entries}", b.name);
            }
        }
    }
}

#[tokio::test]
async fn nobody_finds_passages_of_another_workspace_not_even_by_name() {
    let backends = backends().await;
    for b in &backends.all {
        let (owner, stranger) = (b.claim().await, b.claim().await);
        let theirs = b.add(&owner, Some((SPACE, 2)), vectors(&[[1.0, 0.0]])).await;
        let own = b.add(&stranger, Some((SPACE, 2)), vectors(&[[0.0, 1.0]])).await;
        let others: Vec<_> = (0..3).map(|_| GenerationId::generate()).collect();
        // By inclusion and by exclusion.
        for others in [&[][..], &others] {
            let query = IndexQuery {
                others: others.to_vec(),
                vectors: vec![vector(SPACE, &[1.0, 0.0])],
                ..b.query(stranger.workspace_id, &[theirs, own], "text")
            };
            let candidates = b.search(query).await;
            assert_eq!(names(&candidates.lexical), [(own, 0)], "{}", b.name);
            assert_eq!(names(&candidates.dense[0]), [(own, 0)], "{}", b.name);
        }
        assert_eq!(b.found(owner.workspace_id, &[theirs], "text").await, [(theirs, 0)], "{}", b.name);
    }
}

#[tokio::test]
async fn vectors_are_compared_within_their_space_only() {
    let backends = backends().await;
    for b in &backends.all {
        let claim = b.claim().await;
        let one = b.add(&claim, Some((SPACE, 2)), vectors(&[[1.0, 0.0], [0.0, 1.0]])).await;
        let two = b.add(&claim, Some((OTHER_SPACE, 2)), vectors(&[[0.6, 0.8]])).await;
        let three = b.indexed(&claim, &["no vectors"]).await;
        let query = IndexQuery {
            vectors: vec![
                vector(OTHER_SPACE, &[1.0, 0.0]),
                vector(SPACE, &[0.0, 1.0]),
                vector(Uuid::from_u128(3), &[0.0, 1.0]),
                vector(SPACE, &[1.0]),
                vector(SPACE, &[1.0, 0.0]),
            ],
            ..b.query(claim.workspace_id, &[one, two, three], "")
        };
        let dense = b.search(query).await.dense;
        let seen: Vec<_> = dense.iter().map(|list| names(list)).collect();
        let expected = [vec![(two, 0)], vec![(one, 1), (one, 0)], vec![], vec![], vec![(one, 0), (one, 1)]];
        assert_eq!(seen, expected, "{}: in the query's order", b.name);
        let close = |score: f32, to: f32| (score - to).abs() < 1e-6;
        assert!(close(dense[0][0].score, 0.6) && close(dense[1][0].score, 1.0), "{}", b.name);
        assert!(close(dense[1][1].score, 0.0), "{}", b.name);
    }
}

#[tokio::test]
async fn an_entry_without_the_vector_of_its_space_is_rejected() {
    let backends = backends().await;
    for b in &backends.all {
        let claim = b.claim().await;
        let bad = |vector: Option<Vec<f32>>| vec![IndexEntry { text: "text".to_owned(), vector }];
        for (space, entries) in [
            (None, bad(Some(vec![1.0]))),
            (Some((SPACE, 2)), bad(None)),
            (Some((SPACE, 2)), bad(Some(vec![1.0]))),
            (Some((SPACE, 2)), bad(Some(vec![1.0, f32::NAN]))),
        ] {
            let generation = staged(&b.db, &claim, &[], at(0)).await;
            let mut writer = b.index.writer(IndexTarget { claim: &claim, generation, space }).unwrap();
            let added = writer.add(entries).await;
            assert!(matches!(added, Err(IndexError::Rejected(_))), "{}: {added:?}", b.name);
            drop(writer);
            assert_eq!(b.count(claim.workspace_id, generation).await, 0, "{}", b.name);
        }
        for dimension in [0, 1 << 20] {
            let generation = staged(&b.db, &claim, &[], at(0)).await;
            let target = IndexTarget { claim: &claim, generation, space: Some((SPACE, dimension)) };
            assert!(matches!(b.index.writer(target), Err(IndexError::Rejected(_))), "{}", b.name);
        }
    }
}

#[tokio::test]
async fn an_entry_without_words_is_counted_and_found_by_its_vector() {
    let backends = backends().await;
    for b in &backends.all {
        let claim = b.claim().await;
        let texts = ["", "?!", "apple", "  "];
        let entries =
            texts.iter().map(|text| IndexEntry { text: (*text).to_owned(), vector: Some(vec![0.0, 1.0]) });
        let (generation, indexed) = b.add_in(&claim, Some((SPACE, 2)), vec![entries.collect()]).await;
        assert_eq!(indexed.entries, 4, "{}", b.name);
        let query = IndexQuery {
            vectors: vec![vector(SPACE, &[0.0, 1.0])],
            ..b.query(claim.workspace_id, &[generation], "apple")
        };
        let candidates = b.search(query).await;
        assert_eq!(names(&candidates.lexical), [(generation, 2)], "{}", b.name);
        let all: Vec<_> = (0..4).map(|ordinal| (generation, ordinal)).collect();
        assert_eq!(names(&candidates.dense[0]), all, "{}: of equals the first", b.name);
    }
}

#[tokio::test]
async fn all_of_a_generation_is_removed_and_nothing_else() {
    let backends = backends().await;
    for b in &backends.all {
        let (claim, stranger) = (b.claim().await, b.claim().await);
        let rows = vectors(&[[1.0, 0.0], [0.0, 1.0]]);
        let gone = b.add(&claim, Some((SPACE, 2)), rows.clone()).await;
        let kept = b.add(&claim, Some((SPACE, 2)), rows.clone()).await;
        let theirs = b.add(&stranger, Some((SPACE, 2)), rows).await;
        let counted = b.count(claim.workspace_id, kept).await;
        assert_eq!(b.count(claim.workspace_id, gone).await, counted, "{}", b.name);
        for _ in 0..2 {
            b.index.remove(RetiredGeneration::assumed(claim.workspace_id, gone)).await.unwrap();
            assert_eq!(b.count(claim.workspace_id, gone).await, 0, "{}", b.name);
            assert_eq!(b.count(claim.workspace_id, kept).await, counted, "{}", b.name);
            assert_eq!(b.count(stranger.workspace_id, theirs).await, counted, "{}", b.name);
            let query = IndexQuery {
                vectors: vec![vector(SPACE, &[1.0, 0.0])],
                ..b.query(claim.workspace_id, &[gone, kept], "text")
            };
            let candidates = b.search(query).await;
            assert_eq!(sorted(names(&candidates.lexical)), [(kept, 0), (kept, 1)], "{}", b.name);
            assert_eq!(names(&candidates.dense[0]), [(kept, 0), (kept, 1)], "{}", b.name);
        }
        b.index
            .remove(RetiredGeneration::assumed(claim.workspace_id, GenerationId::generate()))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_question_finds_inflected_words_in_every_language_of_the_passages() {
    let backends = backends().await;
    for b in &backends.all {
        let claim = b.claim().await;
        let german =
            "Die Verträge wurden von beiden Parteien unterschrieben und sind für alle Beteiligten bindend.";
        let english =
            "The contracts were signed by both of the parties, and they are binding for everybody involved.";
        let german = b.indexed(&claim, &[german]).await;
        let english = b.indexed(&claim, &[english]).await;
        let all = [german, english];
        for (question, expected) in
            [("Vertrag", german), ("vertrage", german), ("contract", english), ("party", english)]
        {
            let hits = b.found(claim.workspace_id, &all, question).await;
            assert_eq!(hits, [(expected, 0)], "{} {question}", b.name);
            // An index that nobody has told the languages finds it, too.
            let query = IndexQuery { languages: Vec::new(), ..b.query(claim.workspace_id, &all, question) };
            assert_eq!(names(&b.search(query).await.lexical), [(expected, 0)], "{} {question}", b.name);
        }
    }
}
