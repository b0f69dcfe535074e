//! Pulling models from servers that play the hub.

mod damage;
mod refusal;

use std::{path::Path, sync::Arc, time::Duration};

use lectern_shared::{
    retry::RetryBackoff,
    secrets::{hex, sha256},
};
use parking_lot::Mutex;
use serde_json::json;
use sha1::{Digest, Sha1};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::{listing::PinnedModel, *};
use crate::scripted::{ScriptedReply, ScriptedRequest, ScriptedServer};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const WEIGHTS: &str = "/owner/encoder/resolve/0123456789abcdef0123456789abcdef01234567/model.safetensors";

/// Patient with servers, not with pauses.
fn quick() -> HubRetryPolicy {
    HubRetryPolicy {
        connect: Duration::from_secs(10),
        silence: Duration::from_secs(10),
        pauses: RetryBackoff { first: Duration::from_millis(1), longest: Duration::from_millis(5) },
        unreachable: Duration::from_millis(50),
        no_progress: Duration::from_secs(20),
    }
}

/// A file in a repository, and whether it is kept with the large ones.
#[derive(Clone)]
struct Content {
    path: &'static str,
    bytes: Vec<u8>,
    large: bool,
}

fn weights() -> Vec<u8> {
    (0..50_000_u32).flat_map(u32::to_le_bytes).collect()
}

fn repository() -> Vec<Content> {
    let small = |path, text: &str| Content { path, bytes: text.into(), large: false };
    vec![
        small("README.md", "# An encoder"),
        small("config.json", r#"{"model_type":"bert"}"#),
        small("1_Pooling/config.json", r#"{"pooling_mode_mean_tokens":true}"#),
        small("tokenizer.json", r#"{"version":"1.0"}"#),
        Content { path: "model.safetensors", bytes: weights(), large: true },
        Content { path: "pytorch_model.bin", bytes: vec![1; 10], large: true },
        small("onnx/config.json", "{}"),
    ]
}

fn tree(files: &[Content]) -> serde_json::Value {
    let mut entries =
        vec![json!({"type": "directory", "oid": "0".repeat(40), "size": 0, "path": "1_Pooling"})];
    for Content { path, bytes, large } in files {
        let blob = Sha1::new_with_prefix(format!("blob {}\0", bytes.len())).chain_update(bytes).finalize();
        let mut entry = json!({"type": "file", "oid": hex(&blob), "size": bytes.len(), "path": path});
        if *large {
            entry["oid"] = json!("f".repeat(40));
            entry["lfs"] = json!({"oid": hex(&sha256(bytes)), "size": bytes.len(), "pointerSize": 134});
        }
        entries.push(entry);
    }
    json!(entries)
}

/// What a good hub answers; ranges too.
fn honest(files: &[Content], request: &ScriptedRequest) -> ScriptedReply {
    let resolve = format!("/owner/encoder/resolve/{COMMIT}/");
    match request.path.as_str() {
        "/api/models/owner/encoder/revision/main" => {
            ScriptedReply::json(&json!({"id": "owner/encoder", "sha": COMMIT}))
        }
        path if path.starts_with(&format!("/api/models/owner/encoder/tree/{COMMIT}")) => {
            ScriptedReply::json(&tree(files))
        }
        path => {
            let found =
                path.strip_prefix(&resolve).and_then(|path| files.iter().find(|file| file.path == path));
            found.map_or_else(|| ScriptedReply::new(404, ""), |file| content(&file.bytes, request))
        }
    }
}

/// A file, or the part of it that was asked for.
fn content(bytes: &[u8], request: &ScriptedRequest) -> ScriptedReply {
    let from = request
        .header("range")
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let reply = match from {
        Some(from) => {
            let (from, last): (usize, _) = (from, bytes.len() - 1);
            ScriptedReply::new(206, &bytes[from..])
                .with("content-range", &format!("bytes {from}-{last}/{}", bytes.len()))
        }
        None => ScriptedReply::ok(bytes),
    };
    reply.with("etag", "\"v1\"").with("accept-ranges", "bytes")
}

/// A hub that is good but for what `first` answers; it is told how often the path was asked before.
async fn hub_but(
    first: impl Fn(&ScriptedRequest, usize) -> Option<ScriptedReply> + Send + Sync + 'static,
) -> (ScriptedServer, TempDir) {
    let asked = Mutex::new(Vec::<String>::new());
    let files = repository();
    let server = ScriptedServer::start(move |request| {
        let before = asked.lock().iter().filter(|path| **path == request.path).count();
        asked.lock().push(request.path.clone());
        first(request, before).unwrap_or_else(|| honest(&files, request))
    });
    (server.await, tempfile::tempdir().unwrap())
}

fn open(server: &ScriptedServer, cache: &TempDir) -> ModelHub {
    ModelHub::build(server.url.clone(), None, cache.path().to_owned(), quick(), Vec::new()).unwrap()
}

fn model() -> ModelId {
    "owner/encoder".parse().unwrap()
}

async fn pull(hub: &ModelHub) -> Result<PathBuf, HubError> {
    hub.pull(&model(), &|_| {}).await
}

fn assert_whole(folder: &Path) {
    for Content { path, bytes, .. } in repository() {
        let wanted = !matches!(path, "README.md" | "pytorch_model.bin" | "onnx/config.json");
        assert_eq!(std::fs::read(folder.join(path)).ok(), wanted.then_some(bytes), "{path}");
    }
    assert_eq!(partials(folder), Vec::<PathBuf>::new());
}

fn partials(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "partial")).collect()
}

#[tokio::test]
async fn a_model_is_fetched_once_and_then_found_without_the_hub() {
    let (server, cache) = hub_but(|_, _| None).await;
    let hub = open(&server, &cache);
    assert_eq!(hub.cached(&model()).unwrap(), None);
    let seen = Mutex::new(Vec::new());
    let folder = hub.pull(&model(), &|progress| seen.lock().push(progress)).await.unwrap();
    assert_whole(&folder);

    let seen = seen.into_inner();
    assert!(seen.is_sorted_by_key(|progress| progress.bytes), "{seen:?}");
    let total = seen[0].total;
    assert_eq!(seen.last(), Some(&PullProgress { file: "model.safetensors", bytes: total, total }));
    assert!(total > 200_000 && seen.iter().all(|progress| progress.total == total));

    let asked = server.requests().len();
    assert_eq!(pull(&hub).await.unwrap(), folder);
    assert_eq!(open(&server, &cache).cached(&model()).unwrap(), Some(folder.clone()));
    assert_eq!(server.requests().len(), asked);

    let listed = hub.list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].model.as_str(), listed[0].commit.as_deref()), ("owner/encoder@main", Some(COMMIT)));
    assert_eq!((listed[0].bytes, &listed[0].folder), (total, &folder));
}

#[tokio::test]
async fn a_hub_that_may_not_be_asked_is_not_and_what_is_kept_is_found() {
    let (server, cache) = hub_but(|_, _| None).await;
    let offline = open(&server, &cache).offline(true);
    let error = pull(&offline).await.unwrap_err();
    assert!(
        matches!(error, HubError::Offline { .. }) && error.to_string().contains("HF_HUB_OFFLINE"),
        "{error}"
    );
    assert!(server.requests().is_empty() && !error.is_retryable());
    let folder = pull(&open(&server, &cache)).await.unwrap();
    let asked = server.requests().len();
    assert_eq!(pull(&offline).await.unwrap(), folder);
    std::fs::remove_file(folder.join("config.json")).unwrap();
    assert!(pull(&offline).await.is_err());
    assert_eq!(server.requests().len(), asked);
}

#[tokio::test]
async fn a_connection_that_breaks_is_gone_on_with_where_it_broke() {
    let (server, cache) = hub_but(|request, before| {
        let reply = content(&weights(), request);
        match before {
            0 => (request.path == WEIGHTS).then(|| reply.cut(1_000)),
            1 => (request.path == WEIGHTS).then(|| reply.cut(2_000)),
            _ => None,
        }
    })
    .await;
    assert_whole(&pull(&open(&server, &cache)).await.unwrap());
    let asked = server.requests_for(WEIGHTS);
    let ranges: Vec<_> = asked.iter().map(|request| request.header("range")).collect();
    assert_eq!(ranges, [None, Some("bytes=1000-"), Some("bytes=3000-")]);
    assert_eq!(asked[1].header("if-range"), Some("\"v1\""));
}

#[tokio::test]
async fn a_server_that_falls_silent_is_asked_again() {
    let (server, cache) = hub_but(|request, before| {
        (request.path == WEIGHTS && before == 0).then(|| content(&weights(), request).stall(1_000))
    })
    .await;
    let patience = HubRetryPolicy { silence: Duration::from_secs(1), ..quick() };
    let hub =
        ModelHub::build(server.url.clone(), None, cache.path().to_owned(), patience, Vec::new()).unwrap();
    assert_whole(&pull(&hub).await.unwrap());
    assert_eq!(server.requests_for(WEIGHTS)[1].header("range"), Some("bytes=1000-"));
}

#[tokio::test]
async fn a_pull_that_was_stopped_is_gone_on_with_by_the_next_one() {
    let (server, cache) = hub_but(|request, before| {
        (request.path == WEIGHTS && before == 0).then(|| content(&weights(), request).stall(1_000))
    })
    .await;
    let hub = open(&server, &cache);
    let half = Arc::new(Notify::new());
    let seen = Arc::clone(&half);
    let started = tokio::spawn({
        let hub = hub.clone();
        async move {
            let report = |progress: PullProgress| {
                if progress.file == "model.safetensors" && progress.bytes >= 1_000 {
                    seen.notify_one();
                }
            };
            hub.pull(&model(), &report).await
        }
    });
    half.notified().await;
    started.abort();
    started.await.unwrap_err();
    let listed = hub.list().unwrap();
    assert_eq!((listed[0].model.as_str(), listed[0].commit.as_deref()), ("owner/encoder@main", None));

    assert_whole(&pull(&open(&server, &cache)).await.unwrap());
    assert_eq!(server.requests_for(WEIGHTS)[1].header("range"), Some("bytes=1000-"));
    let configs = server.requests_for(&WEIGHTS.replace("model.safetensors", "config.json"));
    assert_eq!(configs.len(), 1, "what was whole is not fetched again");
}

#[tokio::test]
async fn a_server_without_ranges_starts_over() {
    let (server, cache) = hub_but(|request, before| match (request.path == WEIGHTS, before) {
        (true, 0) => Some(content(&weights(), request).cut(1_000)),
        (true, _) => Some(ScriptedReply::ok(weights())),
        _ => None,
    })
    .await;
    assert_whole(&pull(&open(&server, &cache)).await.unwrap());
}

#[tokio::test]
async fn a_file_that_changed_between_two_parts_starts_over() {
    let (server, cache) = hub_but(|request, before| match (request.path == WEIGHTS, before) {
        (true, 0) => Some(content(&weights(), request).cut(1_000)),
        // It goes by `Range` alone, over another content.
        (true, 1) => {
            let last = weights().len() - 1;
            let range = format!("bytes 1000-{last}/{}", last + 1);
            Some(
                ScriptedReply::new(206, vec![0; last - 999])
                    .with("etag", "\"v2\"")
                    .with("content-range", &range),
            )
        }
        _ => None,
    })
    .await;
    assert_whole(&pull(&open(&server, &cache)).await.unwrap());
    assert_eq!(server.requests_for(WEIGHTS)[2].header("range"), None);
}

#[tokio::test]
async fn two_pulls_at_once_fetch_a_model_once() {
    let (server, cache) = hub_but(|_, _| None).await;
    // Each with a lock of its own, as two processes have.
    let (first, second) = (open(&server, &cache), open(&server, &cache));
    let (first, second) = tokio::join!(pull(&first), pull(&second));
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(server.requests_for(WEIGHTS).len(), 1);
}

#[tokio::test]
async fn a_model_stays_at_the_commit_that_it_was_pulled_at() {
    let moved = "89abcdef0123456789abcdef0123456789abcdef";
    let (server, cache) = hub_but(move |request, before| {
        let main = request.path.ends_with("/revision/main");
        (main && before > 0).then(|| ScriptedReply::json(&json!({ "sha": moved })))
    })
    .await;
    let hub = open(&server, &cache);
    let folder = pull(&hub).await.unwrap();
    assert_eq!(pull(&hub).await.unwrap(), folder);
    assert_eq!(hub.list().unwrap()[0].commit.as_deref(), Some(COMMIT));

    // A commit that is asked for by name is another copy, and needs no lookup.
    let named: ModelId = format!("owner/encoder@{COMMIT}").parse().unwrap();
    assert_ne!(hub.pull(&named, &|_| {}).await.unwrap(), folder);
    assert_eq!(server.requests_for("/api/models/owner/encoder/revision").len(), 1);
}

#[tokio::test]
async fn a_long_list_of_files_is_read_page_by_page() {
    let (server, cache) = hub_but(|request, _| {
        let path = request.path.strip_prefix(&format!("/api/models/owner/encoder/tree/{COMMIT}"))?;
        let files = repository();
        let (first, second) = files.split_at(4);
        Some(match path {
            "?recursive=true" => {
                let next = format!("</api/models/owner/encoder/tree/{COMMIT}?cursor=2>; rel=\"next\"");
                ScriptedReply::json(&tree(first)).with("link", &next)
            }
            _ => ScriptedReply::json(&tree(second)),
        })
    })
    .await;
    assert_whole(&pull(&open(&server, &cache)).await.unwrap());
}

#[tokio::test]
async fn the_token_goes_to_the_hub_and_not_to_where_it_redirects() {
    let elsewhere = ScriptedServer::start(|request| content(&weights(), request)).await;
    let files = elsewhere.url.clone();
    let (server, cache) = hub_but(move |request, _| {
        if request.path == WEIGHTS {
            return Some(ScriptedReply::redirect("/moved"));
        }
        (request.path == "/moved")
            .then(|| ScriptedReply::redirect(files.join("/bucket/key?signature=s").unwrap().as_str()))
    })
    .await;
    let token = SecretString::from("hf_hunter2");
    let cache_folder = cache.path().to_owned();
    let hub = ModelHub::build(server.url.clone(), Some(token), cache_folder, quick(), Vec::new()).unwrap();
    assert!(!format!("{hub:?}").contains("hunter2"));
    assert_whole(&pull(&hub).await.unwrap());
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer hf_hunter2"), "{}", request.path);
    }
    let asked = elsewhere.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("authorization"), None);
}

#[tokio::test]
async fn a_model_that_this_version_knows_is_fetched_at_the_revision_that_it_knows() {
    let (server, cache) = hub_but(|_, _| None).await;
    let pin = |commit: &str, hash: &[u8]| PinnedModel {
        owner: "owner".to_owned(),
        name: "encoder".to_owned(),
        commit: commit.to_owned(),
        files: vec![("model.safetensors", weights().len() as u64, hex(&sha256(hash)))],
    };
    let open = |pin| {
        let cache = cache.path().to_owned();
        ModelHub::build(server.url.clone(), None, cache, quick(), vec![pin]).unwrap()
    };
    let error = pull(&open(pin(COMMIT, b"something else"))).await.unwrap_err();
    assert!(error.to_string().contains("the hub lists another file"), "{error}");
    let folder = pull(&open(pin(COMMIT, &weights()))).await.unwrap();
    assert!(folder.ends_with(COMMIT));
    assert_whole(&folder);
    assert!(server.requests_for("/api/models/owner/encoder/revision").is_empty());
    // Whoever names another revision gets that.
    let main: ModelId = "owner/encoder@main".parse().unwrap();
    assert!(open(pin(COMMIT, &weights())).pull(&main, &|_| {}).await.unwrap().ends_with("main"));
}

#[test]
fn the_model_that_is_compiled_in_is_pinned_to_a_whole_commit() {
    let pins = PinnedModel::built_in();
    let model: ModelId = "sentence-transformers/all-MiniLM-L6-v2".parse().unwrap();
    let pin = pins.iter().find(|pin| pin.is_of(&model)).unwrap();
    assert!(model_id::is_commit(&pin.commit));
    assert!(pin.files.iter().all(|(_, size, hash)| *size > 0 && hash.len() == 64));
}
