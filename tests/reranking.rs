//! A better order for what was found: of a server and of a model in the process, in searches, answers and evaluations, and when it
//! fails.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    evaluations::{case, evaluation, metric, run},
    support::{
        client::{Client, id},
        in_both_modes,
        process::POLL,
        reranker::{RerankServer, RerankTrouble},
        service::{Mode, Service},
        setup::Setup,
        tiny_model, within_deadline,
    },
};

in_both_modes!(
    a_search_comes_in_a_better_order_when_it_asks_for_it,
    a_reranker_that_fails_or_is_silent_makes_no_search_fail_and_costs_no_more_than_its_budget,
    an_agent_answers_from_what_its_reranker_prefers,
    an_evaluation_tells_whether_it_helps,
    a_model_in_a_folder_reranks,
    without_a_reranker_searches_say_so_and_evaluations_refuse
);

/// By words alone, the one with the fewest other words comes first.
const NOTES: [&str; 3] = [
    "The harbour opens at six.",
    "The harbour ** opens at seven when the tide is low.",
    "The harbour *** opens at eight when the tide is low and the pilot is away.",
];
const QUESTION: &str = "When does the harbour open?";

fn with_server(mode: Mode, server: &RerankServer) -> Setup {
    Service::in_mode(mode)
        .env("LECTERN_RERANKER", "server")
        .env("LECTERN_RERANK_URL", &server.url())
        .env("LECTERN_RERANK_MODEL", "stars")
        .env("LECTERN_RERANK_API_KEY", RerankServer::KEY)
}

/// A service whose reranker is there, with the notes.
async fn started(setup: Setup) -> (Service, Client, Vec<String>) {
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    reranker_is_there(&service).await;
    let mut ids = Vec::new();
    for (number, content) in NOTES.iter().enumerate() {
        let note = json!({"name": format!("Note {number}"), "type": "TXT", "content": content});
        ids.push(id(&client.ingest(&note).await).to_owned());
    }
    (service, client, ids)
}

/// What `/health/ready` says of the reranker.
async fn health(service: &Service) -> Value {
    let url = format!("{}/health/ready", service.base_url());
    let answer: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
    answer["data"]["parts"]["reranker"].clone()
}

async fn reranker_is_there(service: &Service) {
    let there = async {
        while health(service).await["status"] != "up" {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the reranker", there).await;
}

/// The names of the documents that are found, and the whole answer.
async fn search(client: &Client, more: Value) -> (Vec<String>, Value) {
    let mut body = json!({"query": QUESTION});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = client.post("/search", &body).await;
    assert_eq!(status, StatusCode::OK, "{answer:#}");
    let names = answer["data"].as_array().unwrap().iter();
    (names.map(|passage| passage["documentName"].as_str().unwrap().to_owned()).collect(), answer)
}

async fn a_search_comes_in_a_better_order_when_it_asks_for_it(mode: Mode) {
    let server = RerankServer::start().await;
    let (service, client, _) = started(with_server(mode, &server)).await;
    assert_eq!(health(&service).await, json!({"status": "up", "model": "stars"}));

    let (names, answer) = search(&client, json!({})).await;
    assert_eq!(names, ["Note 0", "Note 1", "Note 2"]);
    assert_eq!((&answer["rerank"], &answer["data"][0]["scores"]["rerank"]), (&Value::Null, &Value::Null));
    assert!(server.requests().is_empty(), "nobody asked for it");

    let (names, answer) = search(&client, json!({"rerank": true})).await;
    assert_eq!(names, ["Note 2", "Note 1", "Note 0"]);
    let report = &answer["rerank"];
    assert_eq!((&report["model"], &report["problem"]), (&json!("stars"), &Value::Null), "{report}");
    assert_eq!((&report["candidates"], &report["scored"]), (&json!(3), &json!(3)), "{report}");
    let scores: Vec<&Value> =
        answer["data"].as_array().unwrap().iter().map(|p| &p["scores"]["rerank"]).collect();
    assert_eq!(scores, [&json!(3.0), &json!(2.0), &json!(0.0)]);
    let asked = &server.requests()[0];
    assert_eq!((&asked["model"], &asked["query"]), (&json!("stars"), &json!(QUESTION)));
    assert_eq!(asked["documents"][0], format!("Note 0\n{}", NOTES[0]), "read with what it is found by");

    // The best of more than are wanted.
    assert_eq!(search(&client, json!({"rerank": true, "limit": 1})).await.0, ["Note 2"]);
    let (status, refused) = client.post("/search", &json!({"query": "x", "rerank": "yes"})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:#}");
    service.assert_no_secret_in_logs(&[RerankServer::KEY]);
}

async fn a_reranker_that_fails_or_is_silent_makes_no_search_fail_and_costs_no_more_than_its_budget(
    mode: Mode,
) {
    let server = RerankServer::start().await;
    let (service, client, _) = started(with_server(mode, &server).env("LECTERN_RERANK_BUDGET", "2s")).await;
    let wish = json!({"rerank": true});
    for (status, words) in [(401, "LECTERN_RERANK_API_KEY"), (422, "reranking")] {
        server.trouble(Some(RerankTrouble::Status(status)));
        let asked_before = server.requests().len();
        let (names, answer) = search(&client, wish.clone()).await;
        assert_eq!(names, ["Note 0", "Note 1", "Note 2"], "{status}");
        let problem = answer["rerank"]["problem"].as_str().unwrap();
        // One that gave nothing is left alone for a while.
        if server.requests().len() > asked_before {
            assert!(problem.contains(words), "{status}: {problem}");
        } else {
            assert!(problem.contains("lately"), "{status}: {problem}");
        }
        assert_eq!(answer["rerank"]["scored"], 0, "{answer:#}");
    }
    server.trouble(Some(RerankTrouble::Silence));
    let asked_before = server.requests().len();
    let silent = async {
        loop {
            let (names, answer) = search(&client, wish.clone()).await;
            assert_eq!(names, ["Note 0", "Note 1", "Note 2"]);
            if server.requests().len() > asked_before {
                return answer;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    // It never answers, so a search that ends has not waited for it.
    let answer = within_deadline("the silent server to be asked", silent).await;
    assert!(answer["rerank"]["problem"].is_string(), "{answer:#}");
    // And again as soon as it answers.
    server.trouble(None);
    let well = async {
        while search(&client, wish.clone()).await.0 != ["Note 2", "Note 1", "Note 0"] {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the better order", well).await;
    service.assert_no_secret_in_logs(&[RerankServer::KEY]);
}

async fn an_agent_answers_from_what_its_reranker_prefers(mode: Mode) {
    let server = RerankServer::start().await;
    let (_service, client, documents) = started(with_server(mode, &server)).await;
    let agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": {"provider": "extractive", "model": "extractive"}});
    let agent = client.create_agent(&agent).await;
    assert_eq!(agent["rerank"], false, "{agent:#}");
    let agent = id(&agent).to_owned();
    for document in &documents {
        client.link(&agent, document).await;
    }
    let first_cited = async || {
        let (status, answer) = client.predict(&agent, QUESTION).await;
        assert_eq!(status, StatusCode::OK, "{answer:#}");
        answer["data"]["citations"][0]["documentName"].as_str().unwrap_or_default().to_owned()
    };
    first_cited().await;
    assert!(server.requests().is_empty(), "it is not set to");

    let (status, changed) = client.patch(&format!("/agents/{agent}"), &json!({"rerank": true})).await;
    assert_eq!((status, &changed["data"]["rerank"]), (StatusCode::OK, &json!(true)), "{changed:#}");
    first_cited().await;
    assert_eq!(server.requests().len(), 1, "it is set to now");
    // What it was can be had again, and tried.
    let versions = client.read(&format!("/agents/{agent}/versions")).await;
    assert_eq!(
        (&versions[0]["rerank"], &versions[1]["rerank"]),
        (&json!(true), &json!(false)),
        "{versions:#}"
    );
    let former = versions[1]["version"].clone();
    let (status, _) = client.ask(&agent, &json!({"input": {"input": QUESTION}, "version": former})).await;
    assert_eq!((status, server.requests().len()), (StatusCode::OK, 1));
    client.create(&format!("/agents/{agent}/versions/{former}/restore"), &json!({})).await;
    assert_eq!(client.read(&format!("/agents/{agent}")).await["rerank"], false);
}

async fn an_evaluation_tells_whether_it_helps(mode: Mode) {
    let server = RerankServer::start().await;
    let (_service, client, documents) = started(with_server(mode, &server)).await;
    let set = evaluation(&client, json!({})).await;
    case(&client, &set, QUESTION, json!([{"documentId": documents[2], "quote": "opens at eight"}])).await;
    let before = run(&client, &set, json!({"mode": "lexical"})).await;
    assert_eq!(before["rerank"], false);
    let after = run(&client, &set, json!({"mode": "lexical", "rerank": true})).await;
    assert_eq!(after["rerank"], true, "{after:#}");
    let of = |run| metric(run, "lexical", "mrr");
    assert!(
        (of(&before) - 1.0 / 3.0).abs() < 1e-9 && (of(&after) - 1.0).abs() < 1e-9,
        "{before:#} {after:#}"
    );
    let path = format!("/evaluations/{set}/runs/{}/compare/{}", id(&after), id(&before));
    let compared = client.read(&path).await;
    assert!(compared.to_string().contains("won"), "{compared:#}");
}

async fn a_model_in_a_folder_reranks(mode: Mode) {
    let setup = Service::in_mode(mode);
    let folder = setup.data_dir().join("model-folders").join("tiny-reranker");
    tiny_model::write_reranker(&folder, &["the", "harbour", "opens", "at"]);
    let setup = setup
        .env("LECTERN_RERANKER", "local")
        .env("LECTERN_RERANK_LANGUAGES", "all")
        .env("LECTERN_RERANK_BUDGET", "60s")
        .env("LECTERN_RERANK_MODEL_DIR", folder.to_str().unwrap());
    let (service, client, _) = started(setup).await;
    assert_eq!(health(&service).await["model"], "tiny-reranker");
    let (_, answer) = search(&client, json!({"rerank": true})).await;
    assert_eq!(answer["rerank"]["scored"], 3, "{answer:#}");
    let scores: Vec<f64> =
        answer["data"].as_array().unwrap().iter().map(|p| p["scores"]["rerank"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert!(scores[0] > scores[2], "{scores:?}");
    let (_, again) = search(&client, json!({"rerank": true})).await;
    assert_eq!(answer["data"], again["data"]);
}

async fn without_a_reranker_searches_say_so_and_evaluations_refuse(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let note = json!({"name": "Note 0", "type": "TXT", "content": NOTES[0]});
    let document = id(&client.ingest(&note).await).to_owned();
    assert_eq!(health(&service).await, Value::Null);
    let (names, answer) = search(&client, json!({"rerank": true})).await;
    assert_eq!(names, ["Note 0"]);
    assert!(answer["rerank"]["problem"].as_str().unwrap().contains("LECTERN_RERANKER"), "{answer:#}");
    let set = evaluation(&client, json!({})).await;
    case(&client, &set, QUESTION, json!([{"documentId": document}])).await;
    let (status, refused) = client.post(&format!("/evaluations/{set}/runs"), &json!({"rerank": true})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:#}");
    assert!(refused.to_string().contains("rerank"), "{refused:#}");
}
