//! Models of earlier settings, at a server that plays the embedding server.

use lectern_db::testing::{at, both, commit};
use lectern_shared::config::{EmbeddingPrecision, ModelHubSettings};
use serde_json::json;

use super::*;
use crate::scripted::{ScriptedReply, ScriptedServer};

fn settings(scripted: &ScriptedServer) -> EmbeddingSettings {
    EmbeddingSettings {
        kind: EmbedderKind::OpenAiCompatible,
        model: "now".to_owned(),
        model_dir: None,
        hub: ModelHubSettings {
            scratch_dir: std::path::PathBuf::new(),
            address: scripted.url.clone(),
            token: None,
            offline: true,
            cache: std::path::PathBuf::new(),
        },
        url: Some(scripted.url.clone()),
        api_key: None,
        dimensions: None,
        max_tokens: 1_000,
        languages: None,
        threads: 1,
        precision: EmbeddingPrecision::Auto,
    }
}

#[tokio::test]
async fn a_model_that_gives_vectors_of_another_length_by_now_is_not_taken_for_an_earlier_one() {
    let scripted = ScriptedServer::start(|_| {
        ScriptedReply::json(&json!({"data": [{"index": 0, "embedding": [3.0, 4.0]}]}))
    })
    .await;
    let settings = settings(&scripted);
    let t = &both().await[0];
    let recorded = async |dimensions| {
        let config = server(&settings, "earlier".to_owned(), None).unwrap();
        let space = OpenAiEmbedder::with_dimensions(config, dimensions).unwrap().space().clone();
        commit!(t.db, |tx| db::vectors::record_space(tx, &space, at(0)));
        space.id
    };
    let same = recorded(2).await;
    assert_eq!(reopen(&settings, &t.db, same).await.unwrap().space().id, same);
    let other = recorded(3).await;
    let problem = reopen(&settings, &t.db, other).await.unwrap_err();
    assert!(problem.contains("vectors of 2 numbers"), "{problem}");
}
