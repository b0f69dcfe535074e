//! Servers that are overloaded, set up wrongly, or not what they should be.

use super::*;

/// How a question ends at a server that answers everything so.
async fn question_to(reply: ScriptedReply) -> Result<Vec<f32>, EmbedError> {
    let server = server_but(move |_, _| Some(reply.clone())).await;
    embedder(&server).embed_question("the secret plan").await
}

/// Why it failed, for now; nothing of what was sent is in the words.
async fn away(reply: ScriptedReply) -> String {
    match question_to(reply).await {
        Err(EmbedError::Away(words)) => checked(words),
        other => panic!("{other:?}"),
    }
}

/// Why it failed, and will again.
async fn refused(reply: ScriptedReply) -> String {
    match question_to(reply).await {
        Err(EmbedError::Refused(words)) => checked(words),
        other => panic!("{other:?}"),
    }
}

fn checked(words: String) -> String {
    assert!(!words.contains("hunter2") && !words.contains("secret plan"), "{words}");
    words
}

#[tokio::test]
async fn a_server_that_fails_twice_is_asked_a_third_time() {
    let server = server_but(|_, before| (before < 2).then(|| ScriptedReply::new(500, "oops"))).await;
    embedder(&server).embed_question("x").await.unwrap();
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_server_says_when_it_wants_to_be_asked_again() {
    let server =
        server_but(|_, before| (before < 3).then(|| ScriptedReply::new(429, "").with("retry-after", "0")))
            .await;
    let texts = texts(3);
    assert_directions(&embedder(&server).embed_passages(texts.clone()).await.unwrap(), &texts);
    assert_eq!(server.requests().len(), 4);
    let words = away(ScriptedReply::new(429, "").with("retry-after", "3600")).await;
    assert!(words.contains("answers 429 and asks to come back in 3600 s"), "{words}");
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_not_waited_for() {
    let body = r#"{"error":{"message":"sk-hunter2","code":"insufficient_quota"}}"#;
    assert!(refused(ScriptedReply::new(429, body)).await.contains("quota is used up"));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_again() {
    let server =
        server_but(|request, before| (before == 0).then(|| ScriptedReply::json(&answer(request)).cut(20)))
            .await;
    embedder(&server).embed_question("x").await.unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn what_the_operator_has_to_change_is_said_without_what_the_server_says() {
    for (reply, words) in [
        (ScriptedReply::new(401, "Incorrect API key provided: sk-hunter2"), "key is not accepted (401)"),
        (ScriptedReply::new(403, "sk-hunter2"), "may not use this model (403)"),
        (ScriptedReply::new(404, "no model the secret plan"), "no such address or model (404)"),
        (ScriptedReply::redirect("https://elsewhere.example.com/hunter2"), "redirects (302)"),
        (ScriptedReply::new(501, "sk-hunter2"), "answers 501"),
    ] {
        let said = refused(reply).await;
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn what_is_no_answer_of_an_embedding_server_is_not_used() {
    let item = |numbers: &str| format!(r#"{{"index":0,"embedding":{numbers}}}"#);
    for (body, words) in [
        ("<html>the secret plan</html>".to_owned(), "does not answer as an embedding server does"),
        (r#"{"error":"sk-hunter2"}"#.to_owned(), "does not answer as an embedding server does"),
        (format!(r#"{{"data":[{},{}]}}"#, item("[1,0]"), item("[1,0]")), "2 vectors for 1 texts"),
        (r#"{"data":[]}"#.to_owned(), "0 vectors for 1 texts"),
        (format!(r#"{{"data":[{}]}}"#, item("[NaN,0]")), "does not answer as an embedding server does"),
        (format!(r#"{{"data":[{}]}}"#, item("[0,0]")), "no direction"),
        (format!(r#"{{"data":[{}]}}"#, item("[1e39,0]")), "no direction"),
    ] {
        let said = away(ScriptedReply::ok(body.clone())).await;
        assert!(said.contains(words), "{body}: {said}");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_left() {
    let said = away(ScriptedReply::ok(vec![b' '; 1 << 16]).endless()).await;
    assert!(said.contains("more than"), "{said}");
    let said = away(ScriptedReply::ok(vec![b' '; 1 << 20])).await;
    assert!(said.contains("more than"), "{said}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_away() {
    let silent = server_but(|_, _| Some(ScriptedReply::ok("{}").stall(1))).await;
    let patience = ServerRetryPolicy { question: Duration::from_millis(200), ..quick() };
    let embedder = OpenAiEmbedder::build(config(&silent), 2, patience).unwrap();
    let error = embedder.embed_question("x").await.unwrap_err();
    assert!(matches!(error, EmbedError::Away(_)));
    assert!(error.to_string().contains("does not answer in time"), "{error}");
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", closed.local_addr().unwrap()).parse().unwrap();
    drop(closed);
    let nobody = OpenAiConfig { url, ..config(&server_but(|_, _| None).await) };
    let patience = ServerRetryPolicy { opening: Duration::from_millis(100), ..quick() };
    let error = OpenAiEmbedder::connect_with(nobody, patience).await.unwrap_err();
    assert!(matches!(error, EmbedError::Away(_)));
    assert!(error.to_string().contains("no connection to it can be made"), "{error}");
}

#[tokio::test]
async fn a_text_that_is_too_long_for_the_server_is_cut_alone() {
    let server = server_but(|request, _| {
        let long = inputs(request).iter().any(|text| text.len() > 3_000);
        long.then(|| ScriptedReply::new(400, "maximum context length exceeded: the secret plan"))
    })
    .await;
    let embedder = embedder(&server);
    let mut passages = texts(9);
    passages[4] = "word ".repeat(1_000);
    let vectors = embedder.embed_passages(passages.clone()).await.unwrap();
    passages[4].truncate(500 * 5);
    assert_directions(&vectors, &passages);

    let never = refused(ScriptedReply::new(400, "the secret plan")).await;
    assert!(never.contains("does not take what it is sent (400)"), "{never}");
}

#[tokio::test]
async fn a_server_that_takes_few_texts_at_once_gets_few() {
    let server = server_but(|request, _| {
        (inputs(request).len() > 32)
            .then(|| ScriptedReply::new(422, "batch size 64 > maximum allowed batch size 32"))
    })
    .await;
    let embedder = embedder(&server);
    let texts = texts(64);
    assert_directions(&embedder.embed_passages(texts.clone()).await.unwrap(), &texts);
    let asked = server.requests().len();
    assert_eq!(asked, 3);
    assert_directions(&embedder.embed_passages(texts.clone()).await.unwrap(), &texts);
    assert_eq!(server.requests().len(), asked + 2, "it is remembered");
}

/// A server that does not take a text longer than this.
async fn server_up_to(bytes: usize, status: u16) -> Scripted {
    server_but(move |request, _| {
        let long = inputs(request).iter().any(|text| text.len() > bytes);
        long.then(|| ScriptedReply::new(status, "the secret plan"))
    })
    .await
}

#[tokio::test]
async fn a_text_is_cut_until_the_server_takes_it_and_the_length_is_remembered() {
    let server = server_up_to(700, 400).await;
    let embedder = embedder(&server);
    let long = vec!["word ".repeat(1_000)];
    // 1,000 tokens, 500, 250, 125.
    let taken = vec!["word ".repeat(125)];
    assert_directions(&embedder.embed_passages(long.clone()).await.unwrap(), &taken);
    assert_eq!(server.requests().len(), 4);
    assert_directions(&embedder.embed_passages(long.clone()).await.unwrap(), &taken);
    assert_directions(&[embedder.embed_question(&long[0]).await.unwrap()], &taken);
    assert_eq!(server.requests().len(), 6, "it is remembered");
}

#[tokio::test]
async fn one_text_that_is_not_taken_shortens_no_other() {
    let server = server_but(|request, _| {
        let odd = inputs(request).iter().any(|text| text.starts_with("odd") && text.len() > 700);
        odd.then(|| ScriptedReply::new(400, "the secret plan"))
    })
    .await;
    let embedder = embedder(&server);
    let usual = vec!["word ".repeat(500)];
    assert_directions(&embedder.embed_passages(usual.clone()).await.unwrap(), &usual);
    let odd = embedder.embed_passages(vec!["odd ".repeat(400)]).await.unwrap();
    assert_directions(&odd, &["odd ".repeat(100)]);
    assert_directions(&embedder.embed_passages(usual.clone()).await.unwrap(), &usual);
}

#[tokio::test]
async fn a_text_at_which_the_server_fails_is_cut_like_one_that_it_refuses() {
    let server = server_up_to(700, 500).await;
    let embedder = embedder(&server);
    let mut passages = texts(5);
    passages[2] = "word ".repeat(200);
    let vectors = embedder.embed_passages(passages.clone()).await.unwrap();
    passages[2].truncate(100 * 5);
    assert_directions(&vectors, &passages);

    let all = server_but(|request, _| {
        (inputs(request)[0] != FIRST_WORD).then(|| ScriptedReply::new(500, "the secret plan"))
    })
    .await;
    let error = super::embedder(&all).embed_passages(vec!["x".to_owned()]).await.unwrap_err();
    assert!(matches!(error, EmbedError::Refused(_)), "{error}");
}

#[tokio::test]
async fn what_a_server_fails_at_for_a_moment_is_neither_cut_then_nor_later() {
    let server = server_but(|_, before| (before < 3).then(|| ScriptedReply::new(500, "loading"))).await;
    let embedder = embedder(&server);
    let long = vec!["word ".repeat(500)];
    for _ in 0..2 {
        assert_directions(&embedder.embed_passages(long.clone()).await.unwrap(), &long);
    }
    assert_eq!(server.requests().len(), 6, "three that fail, the word, the text, and the text again");
}

#[tokio::test]
async fn a_server_that_fails_at_everything_is_away() {
    let words = away(ScriptedReply::new(500, "the secret plan")).await;
    assert!(words.contains("answers 500"), "{words}");
    let server = server_but(|_, _| Some(ScriptedReply::new(500, "oops"))).await;
    let error = embedder(&server).embed_passages(texts(64)).await.unwrap_err();
    assert!(matches!(error, EmbedError::Away(_)), "{error}");
    assert_eq!(server.requests().len(), 6, "nothing is halved");
}

#[tokio::test]
async fn passages_that_are_asked_for_again_later_keep_no_others_waiting() {
    let server = server_but(|request, _| {
        (inputs(request).len() > 1).then(|| ScriptedReply::new(429, "").with("retry-after", "600"))
    })
    .await;
    let hours = Duration::from_hours(1);
    let patience = ServerRetryPolicy { longest_wait: hours, passages: hours, ..quick() };
    let embedder = std::sync::Arc::new(OpenAiEmbedder::build(config(&server), 2, patience).unwrap());
    let pausing = tokio::spawn({
        let embedder = std::sync::Arc::clone(&embedder);
        async move { embedder.embed_passages(texts(64 * PASSAGES_AT_ONCE)).await }
    });
    while server.requests().len() < PASSAGES_AT_ONCE {
        tokio::task::yield_now().await;
    }
    let other = embedder.embed_passages(texts(1));
    let other = tokio::time::timeout(Duration::from_mins(1), other).await;
    assert_directions(&other.expect("it waits for no pause").unwrap(), &texts(1));
    pausing.abort();
}
