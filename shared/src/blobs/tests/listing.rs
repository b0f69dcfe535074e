//! Looking at what a store holds, on a folder and on S3.

use super::*;

async fn listed(blobs: &BlobStore) -> Vec<ListedBlob> {
    let mut all = Vec::new();
    let visit = async |some: Vec<ListedBlob>| {
        assert!(!some.is_empty() && some.len() <= LISTED);
        all.extend(some);
        Ok::<(), BlobError>(())
    };
    blobs.list(visit).await.unwrap();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    all
}

#[tokio::test]
async fn blobs_are_listed_with_their_sizes_and_nothing_else_is() {
    for place in Place::each().await {
        let before = crate::clock::Clock::system().now().minus(Duration::from_mins(5));
        place.blobs.claim("here").await.unwrap();
        assert!(listed(&place.blobs).await.is_empty());
        let (one, other) = (DocumentId::generate(), DocumentId::generate());
        let first = place.blobs.put(one, parts(&[b"first"]), 100).await.unwrap();
        let second = place.blobs.put(other, parts(&[b"the ", b"second"]), 100).await.unwrap();
        let mut wanted = vec![(first.key.clone(), one, 5), (second.key.clone(), other, 10)];
        wanted.sort();
        let found = listed(&place.blobs).await;
        let shown: Vec<_> = found.iter().map(|blob| (blob.key.clone(), blob.document, blob.bytes)).collect();
        assert_eq!(shown, wanted);
        assert!(found.iter().all(|blob| blob.modified > before), "{found:?}");
        assert_eq!(place.blobs.size(&second.key).await.unwrap(), Some(10));

        place.blobs.remove(&first.key).await.unwrap();
        place.blobs.remove(&first.key).await.unwrap();
        assert_eq!(place.blobs.size(&first.key).await.unwrap(), None);
        assert_eq!(listed(&place.blobs).await.len(), 1);
        for nothing in ["", "instance", "../instance", &format!("{one}/../../instance")] {
            assert_eq!(place.blobs.size(nothing).await.unwrap(), None, "{nothing:?}");
            place.blobs.remove(nothing).await.unwrap();
        }
        assert_eq!(place.blobs.owner().await.unwrap().as_deref(), Some("here"));
    }
}

#[tokio::test]
async fn a_blob_moves_to_another_store_under_its_key() {
    for place in Place::each().await {
        let document = DocumentId::generate();
        let key = format!("{document}/0123abcd");
        let stored = place.blobs.put_as(&key, parts(&[b"as ", b"it was"]), 9).await.unwrap();
        assert_eq!((stored.key.as_str(), stored.bytes), (key.as_str(), 9));
        assert_eq!(text(&place.blobs, &key).await, "as it was");
        place.blobs.put_as(&key, parts(&[b"another"]), 9).await.unwrap();
        assert_eq!(text(&place.blobs, &key).await, "another");
        let wrong = place.blobs.put_as("../outside", parts(&[b"x"]), 9).await;
        assert!(matches!(wrong, Err(BlobError::NotFound)));
    }
}

#[tokio::test]
async fn a_folder_that_is_only_read_is_left_as_it_is() {
    let place = Place::folder().await;
    let stored = place.blobs.put(DocumentId::generate(), parts(&[b"x"]), 100).await.unwrap();
    let root = place.dir.path().join("blobs");
    std::fs::remove_dir_all(root.join("incoming")).unwrap();
    let read = BlobStore::open_read_only(&root);
    assert_eq!(text(&read, &stored.key).await, "x");
    assert_eq!(listed(&read).await.len(), 1);
    assert!(!root.join("incoming").exists());
    assert!(listed(&BlobStore::open_read_only(&root.join("nowhere"))).await.is_empty());
}
