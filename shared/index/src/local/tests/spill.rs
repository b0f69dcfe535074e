//! What is kept on the disk.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::*;

/// So many passages in each generation, with vectors of the first space, and a search of all.
async fn ten_generations(t: &TestDb, claim: &JobClaim) -> IndexQuery {
    let mut random = StdRng::seed_from_u64(11);
    let writer = index(&t.db, 0, 1);
    let mut generations = Vec::new();
    for number in 0..10 {
        let entry = |_| IndexEntry {
            text: format!("the house number{number} and {}", random_text(&mut random, 0)),
            vector: Some(random_vector(&mut random, SPACES[0].1)),
        };
        let entries = (0..60).map(entry).collect();
        generations.push(add(&t.db, &writer, claim, Some(SPACES[0]), entries).await);
    }
    IndexQuery {
        workspace: claim.workspace_id,
        generations,
        others: Vec::new(),
        languages: Vec::new(),
        text: "houses number3 in the winter".to_owned(),
        vectors: vec![SpaceVector { space: SPACES[0].0, vector: random_vector(&mut random, SPACES[0].1) }],
        depth: 40,
    }
}

async fn stored(t: &TestDb, query: &IndexQuery) -> u64 {
    let sizes = index_segments::sizes(&t.db, query.workspace, &query.generations).await.unwrap();
    u64::try_from(sizes.iter().map(|(_, size)| size).sum::<i64>()).unwrap()
}

/// Searches of the first half of the generations, and of the others.
fn halves(query: &IndexQuery) -> [IndexQuery; 2] {
    let (first, second) = query.generations.split_at(query.generations.len() / 2);
    [first, second].map(|half| IndexQuery { generations: half.to_vec(), ..query.clone() })
}

fn space(folder: &Path) -> SpillSpace {
    SpillSpace::of_blocks_from(folder.to_owned(), LARGE, 1, u64::MAX)
}

/// Removes all segments from the store, so that nothing can be read there.
async fn empty_store(t: &TestDb, query: &IndexQuery) {
    for generation in &query.generations {
        let mut tx = t.db.begin().await.unwrap();
        index_segments::delete(&mut tx, RetiredGeneration::assumed(query.workspace, *generation))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn what_memory_has_no_room_for_is_read_from_the_store_once() {
    let (t, claim) = sqlite().await;
    let query = ten_generations(&t, &claim).await;
    let folder = tempfile::tempdir().unwrap();
    let room = space(folder.path());
    let capacity = stored(&t, &query).await / 4;
    // One thread: when a search ends none is left that has a file.
    let kept = spilling(&t.db, capacity, 1, Some(room.clone()));
    let not_kept = index(&t.db, capacity, 2);
    let expected = assert_found_is_exact(&kept, &query, "first").await;
    assert_equal(&not_kept.search(query.clone()).await.unwrap(), &expected, "without a disk");
    assert!(kept.cached_bytes() <= capacity, "{} of {capacity}", kept.cached_bytes());
    assert!(room.taken() > 0);
    let in_memory = CacheState { part: "index", bytes: kept.cached_bytes(), max: capacity };
    let in_files = CacheState { part: "files", bytes: room.taken(), max: LARGE };
    assert_eq!(kept.cached(), [in_memory, in_files]);
    assert!(not_kept.cached().iter().all(|cached| cached.part == "index"));
    empty_store(&t, &query).await;
    assert_equal(&kept.search(query.clone()).await.unwrap(), &expected, "again");
    assert!(not_kept.search(query.clone()).await.unwrap().lexical.is_empty());
    // A part of it, which is in the same files.
    let some = IndexQuery { generations: query.generations[2..4].to_vec(), ..query.clone() };
    let found = kept.search(some.clone()).await.unwrap();
    assert_eq!((found.lexical.len(), found.dense[0].len()), (40, 40));
    assert!(found.lexical.iter().all(|hit| some.generations.contains(&hit.generation)));
    // Of what is gone nothing is found, and its room is free again.
    for generation in &query.generations {
        kept.remove(RetiredGeneration::assumed(query.workspace, *generation)).await.unwrap();
    }
    assert!(kept.search(query).await.unwrap().lexical.is_empty());
    assert_eq!(room.taken(), 0);
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "files have no names");
}

#[tokio::test]
async fn a_search_that_fits_sends_what_others_searched_to_the_disk() {
    let (t, claim) = sqlite().await;
    let query = ten_generations(&t, &claim).await;
    let folder = tempfile::tempdir().unwrap();
    let room = space(folder.path());
    let index = spilling(&t.db, stored(&t, &query).await * 2 / 3, 2, Some(room.clone()));
    let halves = halves(&query);
    let mut expected = Vec::new();
    for half in &halves {
        expected.push(assert_found_is_exact(&index, half, "a half").await);
    }
    assert!(room.taken() > 0);
    empty_store(&t, &query).await;
    for (half, expected) in halves.iter().zip(&expected).cycle().take(6) {
        assert_equal(&index.search(half.clone()).await.unwrap(), expected, "in turns");
    }
}

#[tokio::test]
async fn what_is_searched_again_and_again_comes_back_into_memory() {
    let (t, claim) = sqlite().await;
    let query = ten_generations(&t, &claim).await;
    let folder = tempfile::tempdir().unwrap();
    // Memory has room for one half with its codes.
    let index = spilling(&t.db, stored(&t, &query).await, 1, Some(space(folder.path())));
    let [first, second] = halves(&query);
    let is_in_file = |half: &IndexQuery| {
        let resolved = index.inner.cache.resolve(half.workspace, &half.generations.clone().into());
        assert!(resolved.missing.is_empty());
        !resolved.spilled.is_empty()
    };
    let expected = assert_found_is_exact(&index, &first, "first").await;
    assert_found_is_exact(&index, &second, "second").await;
    assert_eq!([&first, &second].map(is_in_file), [true, false]);
    for half in [&first, &second].into_iter().cycle().take(240) {
        index.search(half.clone()).await.unwrap();
    }
    assert_eq!([&first, &second].map(is_in_file), [true, false], "both are searched");
    for _ in 0..240 {
        assert_equal(&index.search(first.clone()).await.unwrap(), &expected, "again");
    }
    assert_eq!([&first, &second].map(is_in_file), [false, true], "only the first is");
}

#[tokio::test]
async fn a_disk_that_cannot_be_used_changes_no_answer() {
    let (t, claim) = sqlite().await;
    let query = ten_generations(&t, &claim).await;
    let folder = tempfile::tempdir().unwrap();
    let capacity = stored(&t, &query).await / 4;
    let nowhere = space(&folder.path().join("not there"));
    let index_nowhere = spilling(&t.db, capacity, 2, Some(nowhere.clone()));
    let expected = assert_found_is_exact(&index_nowhere, &query, "nowhere").await;
    assert_eq!(nowhere.taken(), 0);
    assert_equal(&index_nowhere.search(query.clone()).await.unwrap(), &expected, "nowhere again");

    let room = space(folder.path());
    let index = spilling(&t.db, capacity, 1, Some(room.clone()));
    assert_equal(&index.search(query.clone()).await.unwrap(), &expected, "written");
    assert!(room.taken() > 0);
    lose_files(folder.path());
    assert_equal(&index.search(query.clone()).await.unwrap(), &expected, "lost");
    assert_eq!(room.taken(), 0, "a disk that has lost something is not used any more");
    assert!(index.cached().contains(&CacheState { part: "files", bytes: 0, max: 0 }));
    assert_equal(&index.search(query.clone()).await.unwrap(), &expected, "lost, again");
}

#[tokio::test]
async fn a_disk_that_takes_nothing_more_keeps_what_it_has() {
    let (t, claim) = sqlite().await;
    let query = ten_generations(&t, &claim).await;
    let folder = tempfile::tempdir().unwrap();
    let room = space(folder.path());
    let index = spilling(&t.db, stored(&t, &query).await / 8, 1, Some(room.clone()));
    let [first, second] = halves(&query);
    let expected = assert_found_is_exact(&index, &first, "written").await;
    let taken = room.taken();
    assert!(taken > 0);
    folder.close().unwrap();
    for on in ["refused", "refused again"] {
        assert_found_is_exact(&index, &second, on).await;
        assert_eq!(room.taken(), taken, "{on}");
    }
    empty_store(&t, &query).await;
    assert_equal(&index.search(first).await.unwrap(), &expected, "as it was");
}

#[tokio::test]
async fn there_are_no_more_files_than_may_be() {
    let (t, claim) = sqlite().await;
    let query = ten_generations(&t, &claim).await;
    let folder = tempfile::tempdir().unwrap();
    let room = SpillSpace::of_blocks_from(folder.path().to_owned(), LARGE, 1, 1);
    let index = spilling(&t.db, stored(&t, &query).await / 8, 1, Some(room.clone()));
    for half in halves(&query).iter().cycle().take(4) {
        assert_found_is_exact(&index, half, "a half").await;
        assert_eq!((files(folder.path()).len(), room.taken()), (1, LARGE));
    }
}

/// The files of a folder that are open in this process and have no names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten().map(|open| open.path());
    open.filter(|open| fs::read_link(open).is_ok_and(|file| file.starts_with(folder))).collect()
}

/// Truncates them.
fn lose_files(folder: &Path) {
    let files = files(folder);
    assert!(!files.is_empty());
    for file in files {
        fs::File::options().write(true).open(file).unwrap().set_len(0).unwrap();
    }
}
