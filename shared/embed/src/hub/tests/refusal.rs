//! A hub that does not give what it is asked for.

use super::*;

/// The end of a pull from a hub that answers everything so.
async fn from(reply: ScriptedReply, token: Option<&str>) -> HubError {
    let (server, cache) = hub_but(move |_, _| Some(reply.clone())).await;
    let token = token.map(SecretString::from);
    let patience = HubRetryPolicy { no_progress: Duration::from_millis(100), ..quick() };
    let cache_folder = cache.path().to_owned();
    let hub = ModelHub::build(server.url.clone(), token, cache_folder, patience, Vec::new()).unwrap();
    pull(&hub).await.unwrap_err()
}

#[tokio::test]
async fn what_is_not_there_and_what_is_not_given_out_are_told_apart() {
    let gated = |status| ScriptedReply::new(status, "token hf_hunter2").with("x-error-code", "GatedRepo");
    for (reply, token, words) in [
        (ScriptedReply::new(404, "").with("x-error-code", "RepoNotFound"), None, "no such model"),
        (
            ScriptedReply::new(401, "").with("x-error-code", "RepoNotFound"),
            None,
            "no such model, or it is private",
        ),
        (ScriptedReply::new(404, "").with("x-error-code", "RevisionNotFound"), None, "no such revision"),
        (ScriptedReply::new(404, ""), Some("hf_hunter2"), "no such model"),
        (gated(401), None, "agreement"),
        (gated(403), Some("hf_hunter2"), "agreement"),
        (ScriptedReply::new(401, "hf_hunter2"), Some("hf_hunter2"), "HF_TOKEN is not accepted"),
        (ScriptedReply::new(403, "hf_hunter2"), Some("hf_hunter2"), "access is forbidden"),
        (ScriptedReply::new(400, ""), None, "answers 400"),
    ] {
        let shown = format!("{reply:?}");
        let error = from(reply, token).await;
        assert!(error.to_string().contains(words), "{shown}: {error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        assert_eq!(error.is_retryable(), words.contains("400"), "{error}");
    }
}

#[tokio::test]
async fn a_hub_that_is_overloaded_is_asked_again_when_it_says() {
    let (server, cache) = hub_but(|request, before| match before {
        0 => Some(ScriptedReply::new(429, "").with("retry-after", "0")),
        1 => Some(ScriptedReply::new(503, "")),
        _ if request.path == WEIGHTS && before == 2 => Some(ScriptedReply::new(500, "")),
        _ => None,
    })
    .await;
    assert_whole(&pull(&open(&server, &cache)).await.unwrap());
    let error = from(ScriptedReply::new(429, "").with("retry-after", "3600"), None).await;
    assert!(error.to_string().contains("answers 429 and asks to come back in 3600 s"), "{error}");
    assert!(error.is_retryable());
    let error = from(ScriptedReply::new(502, "<html>"), None).await;
    assert!(matches!(error, HubError::Away { .. }) && error.to_string().contains("answers 502"), "{error}");
}

#[tokio::test]
async fn a_hub_that_cannot_be_reached_is_away() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap()).parse().unwrap();
    drop(closed);
    let cache = tempfile::tempdir().unwrap();
    let hub = ModelHub::build(address, None, cache.path().to_owned(), quick(), Vec::new()).unwrap();
    let error = pull(&hub).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("no connection to it can be made"), "{error}");
}

#[tokio::test]
async fn what_does_not_speak_as_a_hub_is_not_taken_for_one() {
    let moved = ScriptedServer::start(|_| ScriptedReply::ok("")).await;
    let away = format!("<{}>; rel=\"next\"", moved.url);
    for (reply, words) in [
        (ScriptedReply::ok("<html>Log in</html>"), "not what it should be"),
        (ScriptedReply::ok(r#"{"sha":"../../etc"}"#), "revision that is no commit"),
        (ScriptedReply::ok(r#"{"sha":5}"#), "not what it should be"),
        (ScriptedReply::ok(vec![b' '; 1 << 16]).endless(), "does not end"),
        (ScriptedReply::redirect("/again"), "redirects without end"),
        (ScriptedReply::redirect("ftp://files.example.com/"), "not https"),
        (ScriptedReply::new(302, ""), "redirects to nowhere"),
        (ScriptedReply::ok("{}").with("link", &away), "another host"),
    ] {
        let error = from(reply, None).await;
        assert!(matches!(error, HubError::NotAHub { .. }), "{words}: {error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
}

#[tokio::test]
async fn a_list_of_files_that_cannot_be_true_is_refused() {
    for (entry, words) in [
        (json!({"type": "file", "path": "config.json", "size": 5, "oid": "../x"}), "a hash that is none"),
        (json!({"type": "file", "path": "config.json", "size": -5}), "not what it should be"),
        (
            json!({"type": "file", "path": "config.json", "size": 1 << 30, "oid": "0".repeat(40)}),
            "more than the",
        ),
    ] {
        let (server, cache) = hub_but(move |request, _| {
            request.path.contains("/tree/").then(|| ScriptedReply::json(&json!([entry.clone()])))
        })
        .await;
        let error = pull(&open(&server, &cache)).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_model_without_the_files_of_an_encoder_is_named_with_what_is_missing() {
    for (missing, instead) in [
        ("model.safetensors", "its weights are published in other forms only"),
        ("tokenizer.json", "no sentence encoder"),
        ("config.json", "no sentence encoder"),
    ] {
        let (server, cache) = hub_but(move |request, _| {
            let files: Vec<_> = repository().into_iter().filter(|file| file.path != missing).collect();
            request.path.contains("/tree/").then(|| ScriptedReply::json(&tree(&files)))
        })
        .await;
        let error = pull(&open(&server, &cache)).await.unwrap_err();
        let words = error.to_string();
        assert!(words.contains(&format!("owner/encoder cannot be used: it has no {missing}")), "{words}");
        assert!(words.contains(instead) && !error.is_retryable(), "{words}");
        assert!(server.requests_for("/owner").is_empty(), "nothing was fetched");
        assert_eq!(open(&server, &cache).list().unwrap(), Vec::new(), "nothing is left behind");
    }
}

#[test]
fn an_address_or_token_that_cannot_be_used_is_refused_without_being_shown() {
    let open = |address: &str, token: &str| {
        ModelHub::new(address.parse().unwrap(), Some(SecretString::from(token)), "models".into()).unwrap_err()
    };
    for error in [
        open("ftp://hub.example.com", "hf_x"),
        open("https://me:hunter2@hub.example.com", "hf_x"),
        open("https://hub.example.com", "hunter2\nx"),
    ] {
        assert!(matches!(error, HubError::Settings(_)));
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}
