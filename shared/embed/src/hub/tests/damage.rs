//! What arrives is not what was announced.

use super::*;

/// The end of a pull from a hub that answers so for the weights, always.
async fn with_weights(
    reply: impl Fn(&ScriptedRequest) -> ScriptedReply + Send + Sync + 'static,
) -> (HubError, TempDir) {
    let (server, cache) = hub_but(move |request, _| (request.path == WEIGHTS).then(|| reply(request))).await;
    let hub = open(&server, &cache);
    let error = pull(&hub).await.unwrap_err();
    assert_eq!(hub.cached(&model()).unwrap(), None);
    (error, cache)
}

#[tokio::test]
async fn a_file_with_another_hash_is_thrown_away_and_the_model_is_not_used() {
    let (error, cache) = with_weights(|_| {
        let mut changed = weights();
        changed[7] ^= 1;
        ScriptedReply::ok(changed)
    })
    .await;
    assert!(matches!(error, HubError::Damaged { .. }) && !error.is_retryable());
    assert!(error.to_string().contains("model.safetensors of owner/encoder arrived damaged"), "{error}");
    assert!(partials(&cache.path().join("owner/encoder/main")).is_empty());
}

#[tokio::test]
async fn small_files_are_checked_as_well() {
    let (server, cache) = hub_but(|request, _| {
        request.path.ends_with("/tokenizer.json").then(|| ScriptedReply::ok(r#"{"version":"6.6"}"#))
    })
    .await;
    let error = pull(&open(&server, &cache)).await.unwrap_err();
    assert!(error.to_string().contains("tokenizer.json of owner/encoder arrived damaged"), "{error}");
}

#[tokio::test]
async fn a_beginning_that_was_damaged_on_disk_is_fetched_anew() {
    let (server, cache) = hub_but(|_, _| None).await;
    let folder = cache.path().join("owner/encoder/main");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("model.safetensors.0123456789ab.partial"), [7; 500]).unwrap();
    assert_whole(&pull(&open(&server, &cache)).await.unwrap());
    let ranges: Vec<_> = server.requests_for(WEIGHTS).iter().map(|r| r.header("range").is_some()).collect();
    assert_eq!(ranges, [true, false]);
}

#[tokio::test]
async fn a_beginning_that_is_longer_than_the_file_and_one_of_another_commit_do_not_matter() {
    let (server, cache) = hub_but(|_, _| None).await;
    let folder = cache.path().join("owner/encoder/main");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("model.safetensors.0123456789ab.partial"), vec![7; 300_000]).unwrap();
    std::fs::write(folder.join("model.safetensors.ffffffffffff.partial"), [7; 500]).unwrap();
    assert_whole(&pull(&open(&server, &cache)).await.unwrap());
    assert_eq!(server.requests_for(WEIGHTS).len(), 1);
}

#[tokio::test]
async fn a_copy_whose_files_have_changed_in_size_is_repaired_at_its_commit() {
    let (server, cache) = hub_but(|request, before| {
        let main = request.path.ends_with("/revision/main");
        (main && before == 1).then(|| ScriptedReply::new(404, ""))
    })
    .await;
    let hub = open(&server, &cache);
    let folder = pull(&hub).await.unwrap();
    std::fs::write(folder.join("model.safetensors"), b"short").unwrap();
    assert_eq!(hub.cached(&model()).unwrap(), None);
    assert_whole(&pull(&hub).await.unwrap());
    std::fs::write(folder.join("manifest.json"), b"{").unwrap();
    assert_eq!(hub.cached(&model()).unwrap(), None);
    assert!(pull(&hub).await.unwrap_err().to_string().contains("no such model"));
    assert_whole(&pull(&hub).await.unwrap());
    assert_eq!(server.requests_for(WEIGHTS).len(), 2);
}

#[tokio::test]
async fn a_file_that_does_not_end_is_not_followed() {
    let (error, cache) = with_weights(|_| ScriptedReply::ok(weights()).endless()).await;
    assert!(error.to_string().contains("longer than the hub lists"), "{error}");
    assert!(partials(&cache.path().join("owner/encoder/main")).is_empty());
}

#[tokio::test]
async fn a_file_of_another_announced_size_is_not_fetched() {
    let (error, _cache) =
        with_weights(|_| ScriptedReply::ok("version https://git-lfs.github.com/spec/v1")).await;
    assert!(error.to_string().contains("another size than the hub lists"), "{error}");
}

#[tokio::test]
async fn a_file_without_a_length_that_ends_early_is_gone_on_with() {
    let (server, cache) = hub_but(|request, before| {
        (request.path == WEIGHTS && before == 0)
            .then(|| content(&weights(), request).without_length().cut(1_000))
    })
    .await;
    assert_whole(&pull(&open(&server, &cache)).await.unwrap());
    assert_eq!(server.requests_for(WEIGHTS)[1].header("range"), Some("bytes=1000-"));
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_named() {
    let (server, cache) = hub_but(|_, _| None).await;
    std::fs::write(cache.path().join("owner"), b"a file").unwrap();
    let error = pull(&open(&server, &cache)).await.unwrap_err();
    assert!(matches!(error, HubError::Disk { .. }) && error.to_string().contains("owner/encoder"), "{error}");
    let full = HubError::disk(cache.path(), io::ErrorKind::StorageFull.into());
    assert!(full.to_string().starts_with("no space is left for models in "), "{full}");
}
