//! Pages of documents.

use lectern_shared::model::page::{PageBox, PageInfo, RecognisedWord};

use crate::{
    chunks, documents,
    generations::{self, RetiredGeneration},
    pages::{self, BATCH},
    storage,
    testing::{at, both, claimed, commit, published, staged, workspace},
};

/// A page of a scan that says one word.
fn page(number: u32) -> PageInfo {
    let place = PageBox { left: 10.0, top: 20.5, right: 30.0, bottom: 31.5 };
    let word = RecognisedWord { text: "Tromsø".to_owned(), place, confidence: 96 };
    PageInfo { number, width: 595.25, height: 842.0, chars: 6, words: vec![word] }
}

fn blank(number: u32) -> PageInfo {
    PageInfo { chars: 0, words: Vec::new(), ..page(number) }
}

#[tokio::test]
async fn pages_of_the_generation_that_answers_are_read_as_they_were_written_in_their_own_workspace() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let (document, generation) = published(&t.db, owner, "scan", &["Tromsø"], at(0)).await;
        let (another, _) = published(&t.db, owner, "note", &["text"], at(0)).await;
        commit!(t.db, |tx| pages::insert(tx, owner, generation, &[page(3), blank(2), page(7)]));
        let list = async |workspace, document, from, limit| -> Vec<u32> {
            let pages = pages::list(&t.db, workspace, document, from, limit).await.unwrap();
            assert!(pages.iter().all(|page| page.words.is_empty()), "{}: words are for one page", t.name);
            pages.iter().map(|page| page.number).collect()
        };
        assert_eq!(list(owner, document, 0, 9).await, [2, 3, 7], "{}", t.name);
        assert_eq!(list(owner, document, 3, 1).await, [3], "{}", t.name);
        assert!(list(other, document, 0, 9).await.is_empty(), "{}", t.name);
        assert!(list(owner, another, 0, 9).await.is_empty(), "{}", t.name);
        let get = async |workspace, number| pages::get(&t.db, workspace, document, number).await.unwrap();
        assert_eq!(get(owner, 7).await, Some(page(7)), "{}", t.name);
        assert_eq!(get(owner, 2).await, Some(blank(2)), "{}", t.name);
        assert_eq!((get(owner, 1).await, get(other, 7).await), (None, None), "{}", t.name);
        commit!(t.db, |tx| documents::delete(tx, owner, document, at(1), at(2)));
        assert_eq!(get(owner, 7).await, None, "{}: what was deleted", t.name);
    }
}

#[tokio::test]
async fn a_generation_of_the_same_passages_has_the_same_pages_and_takes_the_same_room() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, owner, "scan", at(0)).await;
        let former = staged(&t.db, &held, &["Tromsø"], at(0)).await;
        let new = staged(&t.db, &held, &["Tromsø"], at(0)).await;
        commit!(t.db, |tx| pages::insert(tx, owner, former, &[page(1), blank(2)]));
        let bytes = async |generation| storage::text_bytes(&t.db, owner, generation).await.unwrap();
        assert!(bytes(former).await > bytes(new).await, "{}: words count", t.name);
        commit!(t.db, |tx| pages::copy(tx, owner, former, new));
        assert_eq!(bytes(former).await, bytes(new).await, "{}", t.name);
    }
}

#[tokio::test]
async fn pages_are_purged_in_batches_and_no_generation_is_forgotten_before_them() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let held = claimed(&t.db, owner, "scan", at(0)).await;
        let gone = staged(&t.db, &held, &["text"], at(0)).await;
        let kept = staged(&t.db, &held, &["text"], at(0)).await;
        let numbers: Vec<_> = (1..).take(BATCH + 5).map(blank).collect();
        for batch in numbers.chunks(BATCH) {
            commit!(t.db, |tx| pages::insert(tx, owner, gone, batch));
        }
        commit!(t.db, |tx| pages::insert(tx, owner, kept, &[page(1)]));
        let before = storage::text_bytes(&t.db, owner, kept).await.unwrap();
        let retired = RetiredGeneration::assumed(owner, gone);
        while commit!(t.db, |tx| chunks::purge_some(tx, retired)) {}
        assert!(commit!(t.db, |tx| pages::purge_some(tx, retired)), "{}: five are left", t.name);
        assert!(!commit!(t.db, |tx| generations::delete(tx, retired)), "{}", t.name);
        assert!(!commit!(t.db, |tx| pages::purge_some(tx, retired)), "{}", t.name);
        assert!(commit!(t.db, |tx| generations::delete(tx, retired)), "{}", t.name);
        assert_eq!(storage::text_bytes(&t.db, owner, kept).await.unwrap(), before, "{}", t.name);
    }
}
