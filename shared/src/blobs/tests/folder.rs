//! Blobs in a folder.

use std::fs::{File, FileTimes};

use super::*;

#[tokio::test]
async fn uploads_of_other_processes_are_left_alone_until_they_are_old() {
    let place = Place::folder().await;
    place.blobs.claim("here").await.unwrap();
    let stored = place.blobs.put(DocumentId::generate(), parts(&[b"x"]), 100).await.unwrap();
    let incoming = place.dir.path().join("blobs/incoming");
    let (young, old) = (incoming.join("young"), incoming.join("old"));
    File::create(&young).unwrap();
    let day = Duration::from_hours(24);
    let before = std::fs::metadata(&young).unwrap().modified().unwrap() - 2 * day;
    File::create(&old).unwrap().set_times(FileTimes::new().set_modified(before)).unwrap();
    BlobStore::open(&place.location).await.unwrap();
    assert!(young.exists() && old.exists(), "opening the folder removes nothing");
    place.blobs.forget_unfinished(day).await.unwrap();
    assert!(young.exists() && !old.exists());
    assert_eq!(text(&place.blobs, &stored.key).await, "x");
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named_with_its_setting() {
    let dir = tempfile::tempdir().unwrap();
    File::create(dir.path().join("file")).unwrap();
    let location = BlobLocation::Folder(dir.path().join("file/blobs"));
    let error = BlobStore::open(&location).await.unwrap_err();
    let message = error.to_string();
    assert!(message.contains(&location.to_string()) && message.contains("LECTERN_BLOBS"), "{message}");
    let kept = matches!(&error, BlobError::Io(cause) if cause.kind() == io::ErrorKind::NotADirectory);
    assert!(kept, "{error:?}");
}

#[tokio::test]
async fn a_folder_that_is_gone_is_noticed() {
    let place = Place::folder().await;
    place.blobs.claim("here").await.unwrap();
    std::fs::remove_dir_all(place.dir.path().join("blobs")).unwrap();
    let error = place.blobs.ping().await.unwrap_err();
    assert!(error.to_string().contains(&place.location.to_string()), "{error}");
}

#[tokio::test]
async fn a_marker_written_by_hand_may_end_in_a_newline() {
    let place = Place::folder().await;
    std::fs::write(place.dir.path().join("blobs/instance"), "here\n").unwrap();
    place.blobs.claim("here").await.unwrap();
}
