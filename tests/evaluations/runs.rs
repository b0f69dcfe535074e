//! What runs tell, and what they make of changes.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use super::{case, document, ended, evaluation, metric, result, run, signed_up};
use crate::support::{
    client::{Client, data, envelope, id, send},
    command,
    db::Database,
    embeddings::Embeddings,
    in_both_modes,
    model::{Model, Reply},
    process::POLL,
    service::{Mode, Service},
    within_deadline,
};

in_both_modes!(
    what_answers_is_found_again_and_what_is_gone_is_lost,
    a_worse_splitter_loses_the_cases_that_it_hurts,
    a_worse_prompt_loses_the_cases_that_it_hurts,
    killed_in_the_middle_a_run_goes_on,
    a_run_and_its_traces_tell_which_version_was_asked,
    a_run_tells_where_its_results_go_on,
    what_cannot_be_run_is_refused,
    an_agent_whose_prompt_takes_values_is_not_asked_by_a_run,
    a_shell_command_fails_below_a_threshold,
    a_shell_command_does_not_wait_for_a_run_that_would_not_measure_what_has_to_be_enough,
    a_model_that_came_after_the_start_is_measured_too
);

const WARRANTY: &str = "The warranty lasts two years from the day of purchase.";
const RETURNS: &str = "Goods are taken back within thirty days, unopened.";

async fn compared(client: &Client, evaluation: &str, run: &Value, other: &Value) -> Value {
    let (run, other) = (id(run), id(other));
    client.read(&format!("/evaluations/{evaluation}/runs/{run}/compare/{other}")).await
}

/// The questions in which a run is worse than another one.
fn lost(comparison: &Value) -> Vec<&str> {
    let is_worse = |case: &&Value| {
        let differences = case["differences"].as_array().expect("a list");
        differences.iter().any(|one| one["value"].as_f64() < one["other"].as_f64())
    };
    let cases = comparison["cases"].as_array().expect("a list").iter().filter(is_worse);
    let mut questions: Vec<_> =
        cases.map(|case| case["this"]["question"].as_str().expect("a text")).collect();
    questions.sort_unstable();
    questions
}

async fn what_answers_is_found_again_and_what_is_gone_is_lost(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let warranty = document(&client, "Warranty", WARRANTY).await;
    let returns = document(&client, "Returns", RETURNS).await;
    document(&client, "Other", "A purchase of two goods in thirty years, of the warranty office.").await;
    let set = evaluation(&client, json!({})).await;
    let quoted = |document: &str, quote: &str| json!([{"documentId": document, "quote": quote}]);
    case(&client, &set, "How long does the warranty last?", quoted(&warranty, "lasts two years")).await;
    case(
        &client,
        &set,
        "Are goods taken back?",
        quoted(&returns, "GOODS ARE TAKEN BACK, within thirty days"),
    )
    .await;
    case(&client, &set, "Who founded the company?", json!("decline")).await;

    let first = run(&client, &set, json!({"mode": "lexical"})).await;
    assert_eq!((&first["done"], &first["answers"]), (&json!(3), &json!(false)), "{first:#}");
    let hit = &first["metrics"]["retrieval"]["lexical"]["hit@5"];
    assert_eq!(
        (&hit["value"], &hit["cases"]),
        (&json!(1.0), &json!(2)),
        "what is to be declined is not searched for"
    );
    let found = result(&first, "How long does the warranty last?");
    assert_eq!(found["gold"], json!([{"state": "found", "reason": null}]));
    assert_eq!(found["retrieval"]["lexical"]["ranks"], json!([1]));
    assert_eq!(found["retrieval"]["lexical"]["retrieved"][0]["documentId"], json!(warranty));
    assert_eq!(result(&first, "Are goods taken back?")["gold"][0]["state"], "similar");

    data(client.delete(&format!("/documents/{warranty}")).await);
    let second = run(&client, &set, json!({"mode": "lexical"})).await;
    assert_eq!(second["metrics"]["lost"], 1, "{second:#}");
    let gone = result(&second, "How long does the warranty last?");
    assert_eq!(
        (&gone["gold"][0]["state"], &gone["retrieval"]["lexical"]["ranks"]),
        (&json!("lost"), &json!([null]))
    );
    assert!((metric(&second, "lexical", "hit@5") - 0.5).abs() < 1e-9);
    let comparison = compared(&client, &set, &second, &first).await;
    assert_eq!(lost(&comparison), ["How long does the warranty last?"], "{comparison:#}");
    assert_eq!(comparison["differing"], 1);
    let back = compared(&client, &set, &first, &second).await;
    assert!(lost(&back).is_empty(), "{back:#}");
}

async fn a_worse_splitter_loses_the_cases_that_it_hurts(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let filler = "Nothing of note happened in that long chapter.\n\n".repeat(90);
    let text = format!("On Tuesdays the harbour master opens the lock at seven.\n\n{filler}");
    let manual = json!({
        "name": "Manual", "type": "TXT", "content": text, "splitter": {"type": "token", "chunk_size": 30, "chunk_overlap": 0},
    });
    let manual = id(&client.ingest(&manual).await).to_owned();
    document(&client, "Other", "The harbour master sleeps on Tuesdays.").await;
    let plain = document(&client, "Plain", "Tickets are sold at the pier.").await;
    let set = evaluation(&client, json!({})).await;
    let quote = "opens the lock at seven";
    let hurt = "When does the harbour master open the lock on Tuesdays?";
    case(&client, &set, hurt, json!([{"documentId": manual, "quote": quote}])).await;
    case(
        &client,
        &set,
        "Where are tickets sold?",
        json!([{"documentId": plain, "quote": "sold at the pier"}]),
    )
    .await;
    let before = run(&client, &set, json!({"mode": "lexical"})).await;
    assert!((metric(&before, "lexical", "hit@1") - 1.0).abs() < 1e-9, "{before:#}");

    // In one passage with everything else, what answers is hardly seen.
    let splitter = json!({"splitter": {"type": "token", "chunk_size": 1_000, "chunk_overlap": 0}});
    data(client.patch(&format!("/documents/{manual}"), &splitter).await);
    client.wait_until_ingested(&manual).await;
    let after = run(&client, &set, json!({"mode": "lexical"})).await;
    assert_eq!(
        result(&after, hurt)["gold"][0]["state"],
        "found",
        "it is found again in other passages: {after:#}"
    );
    let comparison = compared(&client, &set, &after, &before).await;
    assert_eq!(lost(&comparison), [hurt]);
    let told = comparison["cases"].as_array().expect("a list").iter();
    let told =
        told.map(|case| &case["other"]).find(|told| told["question"] == hurt).expect("what came of it");
    assert_eq!(told["expect"][0]["quote"], quote, "{comparison:#}");
    assert_eq!(told["retrieval"]["lexical"]["retrieved"][0]["documentId"], manual, "{comparison:#}");
}

async fn a_worse_prompt_loses_the_cases_that_it_hurts(mode: Mode) {
    // One after the other, so that the scripted answers come to the questions that they are for.
    let service = Service::in_mode(mode).env("LECTERN_EVALUATION_PARALLEL", "1").start().await;
    let client = service.signed_up("ada@example.com").await;
    let warranty = document(&client, "Warranty", WARRANTY).await;
    let model = Model::start().await;
    let prompt = json!({"name": "Librarian", "template": "Cite what you say.", "input_variables": []});
    let prompt = client.create("/prompts", &prompt).await;
    let agent =
        json!({"name": "clerk", "type": "CHATVENDOR", "llm": model.llm("m"), "promptId": id(&prompt)});
    let agent = client.create_agent(&agent).await;
    client.link(id(&agent), &warranty).await;
    let judge = json!({"name": "judge", "type": "CHATVENDOR", "llm": model.llm("judge")});
    let judge = client.create_agent(&judge).await;
    let set = evaluation(&client, json!({"agentId": id(&agent), "judgeAgentId": id(&judge)})).await;
    let quote = json!([{"documentId": warranty, "quote": "lasts two years"}]);
    case(&client, &set, "How long does the warranty last?", quote).await;
    case(&client, &set, "Who founded the company?", json!("decline")).await;

    let answer = |text: &str, verdict: &str| {
        model.reply(Reply::text(text));
        model.reply(Reply::text(verdict));
    };
    answer("It \"lasts two years from the day\" [1].", "Yes, it does.");
    answer("The documents do not say.", "yes");
    let first = run(&client, &set, json!({"mode": "lexical"})).await;
    let answers = &first["metrics"]["answers"];
    for name in ["verified", "cited", "declined", "right"] {
        assert_eq!(answers[name]["value"], 1.0, "{name}: {first:#}");
    }
    let first_answer = &result(&first, "How long does the warranty last?")["answer"];
    assert_eq!((&first_answer["citations"], &first_answer["verified"]), (&json!(1), &json!(1)));
    let trace = client.read(&format!("/traces/{}", first_answer["traceId"].as_str().expect("an id"))).await;
    assert_eq!(trace["agentId"], agent["id"]);
    let seen = model.bodies();
    let judged = seen.iter().find(|body| body["model"] == "judge").expect("a judgement").to_string();
    assert!(judged.contains("lasts two years") && judged.contains("[1]"), "{judged}");

    let worse = json!({"template": "Answer from memory."});
    data(client.patch(&format!("/prompts/{}", id(&prompt)), &worse).await);
    answer("Three years, I think.", "No.");
    answer("The documents do not say.", "yes");
    let second = run(&client, &set, json!({"mode": "lexical"})).await;
    let comparison = compared(&client, &set, &second, &first).await;
    assert_eq!(lost(&comparison), ["How long does the warranty last?"], "{comparison:#}");

    // The version before the change is asked as it was.
    answer("It \"lasts two years\" [1].", "yes");
    answer("The documents do not say.", "yes");
    let versions = client.read(&format!("/agents/{}/versions", id(&agent))).await;
    let former = &versions[1]["version"];
    let third = run(&client, &set, json!({"mode": "lexical", "agentVersion": former})).await;
    assert!(lost(&compared(&client, &set, &third, &first).await).is_empty());
    let asked: Vec<Value> = model.bodies().into_iter().filter(|body| body["model"] == "m").collect();
    let system = |at: usize| asked[at]["messages"][0]["content"].as_str().expect("a text").to_owned();
    assert!(system(0).starts_with("Cite what you say."));
    assert!(system(2).starts_with("Answer from memory."));
    assert!(system(4).starts_with("Cite what you say."), "{}", system(4));
}

async fn killed_in_the_middle_a_run_goes_on(mode: Mode) {
    let mut service = Service::in_mode(mode).env("LECTERN_JOB_LEASE", "3s").start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = document(&client, "Note", WARRANTY).await;
    let model = Model::start().await;
    model.always(Reply::text("It \"lasts two years\" [1]."));
    let agent = json!({"name": "clerk", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    client.link(id(&agent), &document).await;
    let set = evaluation(&client, json!({"agentId": id(&agent)})).await;
    let count = 120;
    let cases: Vec<Value> = (0..count)
        .map(|number| json!({"question": format!("How long, in case {number}?"), "expect": [{"documentId": document}]}))
        .collect();
    client.create(&format!("/evaluations/{set}/cases"), &json!({"cases": cases})).await;
    let started = client.create(&format!("/evaluations/{set}/runs"), &json!({"mode": "lexical"})).await;
    let path = format!("/evaluations/{set}/runs/{}", id(&started));
    let begun = async {
        while client.read(&path).await["done"] == 0 {
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the run to begin", begun).await;
    service.kill_api();
    service.restart_api().await;
    let ended = ended(&client, &set, &started).await;
    assert_eq!((&ended["state"], &ended["done"]), (&json!("succeeded"), &json!(count)), "{ended:#}");
    let results = client.read(&format!("{path}/results")).await;
    assert_eq!(results.as_array().expect("a list").len(), count, "each case once");
    assert_eq!(ended["metrics"]["answers"]["cited"]["cases"], count);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_statement_the_database_ends_rests_and_goes_on() {
    let database = Database::fresh().await;
    let service = Service::in_mode(Mode::Postgres).database_url(database.url()).start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = document(&client, "Warranty", WARRANTY).await;
    let set = evaluation(&client, json!({})).await;
    case(&client, &set, "How long does the warranty last?", json!([{"documentId": document}])).await;

    let mut holding = PgConnection::connect(database.url()).await.expect("the service's database");
    let mut held = holding.begin().await.expect("a transaction");
    sqlx::query("LOCK TABLE evaluation_results IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *held)
        .await
        .expect("a lock");
    let started = client.create(&format!("/evaluations/{set}/runs"), &json!({"mode": "lexical"})).await;
    let mut beside = PgConnection::connect(database.url()).await.expect("the service's database");
    let cancelling = async {
        loop {
            // As PostgreSQL does by itself after the time that a statement may take.
            let ended: i64 = sqlx::query_scalar(
                "SELECT COUNT(*) FILTER (WHERE pg_cancel_backend(pid)) FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock'
                   AND query LIKE 'SELECT case_id FROM evaluation_results%'",
            )
            .fetch_one(&mut beside)
            .await
            .expect("an answer");
            if ended > 0 {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("a statement of the run to be ended", cancelling).await;
    held.rollback().await.expect("an end of it");
    let ended = ended(&client, &set, &started).await;
    assert_eq!((&ended["state"], &ended["done"]), (&json!("succeeded"), &json!(1)), "{ended:#}");
    assert!(service.logs().contains("a run of an evaluation rests, since the database failed"));
}

async fn a_run_and_its_traces_tell_which_version_was_asked(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let warranty = document(&client, "Warranty", WARRANTY).await;
    let agent = client.create_agent(&json!({"name": "clerk", "type": "CHATVENDOR"})).await;
    client.link(id(&agent), &warranty).await;
    let set = evaluation(&client, json!({"agentId": id(&agent)})).await;
    let question = "How long does the warranty last?";
    case(&client, &set, question, json!([{"documentId": warranty}])).await;
    let mut asked = Vec::new();
    for name in ["mate", "captain"] {
        data(client.patch(&format!("/agents/{}", id(&agent)), &json!({ "name": name })).await);
        let versions = client.read(&format!("/agents/{}/versions", id(&agent))).await;
        let version = versions[0]["version"].clone();
        let done = run(&client, &set, json!({"mode": "lexical"})).await;
        assert_eq!(done["agentVersion"], version, "{done:#}");
        let trace = result(&done, question)["answer"]["traceId"].as_str().expect("an id").to_owned();
        let trace = client.read(&format!("/traces/{trace}")).await;
        assert_eq!(trace["trace"]["agentVersion"], version, "{trace:#}");
        asked.push(version);
    }
    assert_ne!(asked[0], asked[1]);
    let searched = run(&client, &set, json!({"mode": "lexical", "answers": false})).await;
    assert_eq!(searched["agentVersion"], Value::Null, "nobody was asked");
}

async fn a_run_tells_where_its_results_go_on(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let set = evaluation(&client, json!({})).await;
    let cases: Vec<Value> = (0..201)
        .map(|number| json!({"question": format!("Who is number {number}?"), "expect": "decline"}))
        .collect();
    client.create(&format!("/evaluations/{set}/cases"), &json!({"cases": cases})).await;
    let done = run(&client, &set, json!({"mode": "lexical"})).await;
    assert_eq!(done["results"].as_array().expect("a list").len(), 200);
    let cursor = done["nextCursor"].as_str().expect("there is one more");
    let rest = format!("/evaluations/{set}/runs/{}/results?limit=200&cursor={cursor}", id(&done));
    let rest = client.read(&rest).await;
    assert_eq!(rest.as_array().expect("a list").len(), 1);
    assert_eq!(rest[0]["question"], "Who is number 0?");
}

async fn an_agent_whose_prompt_takes_values_is_not_asked_by_a_run(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let model = Model::start().await;
    let prompt = json!({"name": "Waiter", "template": "Serve {who}.", "input_variables": ["who"]});
    let prompt = client.create("/prompts", &prompt).await;
    let agent =
        json!({"name": "waiter", "type": "CHATVENDOR", "llm": model.llm("m"), "promptId": id(&prompt)});
    let agent = client.create_agent(&agent).await;
    let set = evaluation(&client, json!({"agentId": id(&agent)})).await;
    case(&client, &set, "Who?", json!("decline")).await;
    let (status, answer) = client.post(&format!("/evaluations/{set}/runs"), &json!({})).await;
    let field = &answer["error"]["fields"][0];
    assert_eq!((status.as_u16(), &field["path"]), (422, &json!("answers")), "{answer:#}");
    assert!(field["message"].as_str().is_some_and(|message| message.contains("who")), "{answer:#}");
    run(&client, &set, json!({"mode": "lexical", "answers": false})).await;
}

async fn what_cannot_be_run_is_refused(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let set = evaluation(&client, json!({})).await;
    let runs = format!("/evaluations/{set}/runs");
    let (status, body) = client.post(&runs, &json!({})).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::CONFLICT, &json!("no_cases")));
    case(&client, &set, "Who?", json!("decline")).await;
    for (body, path) in [
        (json!({"mode": "guess"}), "mode"),
        (json!({"answers": true}), "answers"),
        (json!({"agentVersion": 1}), "agentVersion"),
    ] {
        let (status, answer) = client.post(&runs, &body).await;
        assert_eq!(
            (status.as_u16(), &answer["error"]["fields"][0]["path"]),
            (422, &json!(path)),
            "{answer:#}"
        );
    }
    let agent = client.create_agent(&json!({"name": "a", "type": "CHATVENDOR"})).await;
    data(client.patch(&format!("/evaluations/{set}"), &json!({"agentId": id(&agent)})).await);
    let (status, _) = client.post(&runs, &json!({"agentVersion": 99})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    // An agent that is deleted meanwhile is no reason to measure something else.
    data(client.delete(&format!("/agents/{}", id(&agent))).await);
    let plain = run(&client, &set, json!({"mode": "lexical"})).await;
    assert_eq!((&plain["answers"], &plain["metrics"]["retrieval"]), (&json!(false), &json!({})));
    // Another one's run is not this one's.
    let other = evaluation(&client, json!({})).await;
    let (status, _) = client.get(&format!("/evaluations/{other}/runs/{}", id(&plain))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let cancelled = send(client.request(Method::POST, &format!("{runs}/{}/cancel", id(&plain)))).await;
    let cancelled = data(envelope(cancelled).await);
    assert_eq!(cancelled["state"], "succeeded", "what has ended is left alone");
}

async fn a_shell_command_fails_below_a_threshold(mode: Mode) {
    let (service, client) = signed_up(mode).await;
    let document = document(&client, "Note", WARRANTY).await;
    let set = evaluation(&client, json!({})).await;
    case(
        &client,
        &set,
        "How long does the warranty last?",
        json!([{"documentId": document, "quote": "two years"}]),
    )
    .await;
    case(&client, &set, "What of the moon?", json!([{"documentId": document, "quote": "three years"}])).await;
    let token = client.create("/api-tokens", &json!({"description": "for checks"})).await;
    let setup = service.sibling().env("LECTERN_TOKEN", token["token"].as_str().expect("a token"));
    let base = service.base_url();
    let eval = |more: &[&str]| {
        command::lectern(&setup, &[&["eval", "--set", &set, "--server", &base], more].concat())
    };
    let enough = eval(&["--mode", "lexical", "--min", "hit@5=0.5"]).well();
    assert!(enough.out.contains("lexical  hit@5      0.5000"), "{}", enough.out);
    let too_little = eval(&["--mode", "lexical", "--min", "hit@5=0.6"]);
    assert_eq!(too_little.status.code(), Some(1));
    assert!(too_little.log.contains("at least 0.6"), "{too_little:#?}");
    let elsewhere = |server: &str| command::lectern(&setup, &["eval", "--set", &set, "--server", server]);
    let nobody = elsewhere("http://127.0.0.1:1");
    assert!(nobody.log.contains("refused"), "why nobody answers: {nobody:#?}");
    let bare = elsewhere("localhost:8080");
    assert!(bare.log.contains("http://"), "what an address begins with: {bare:#?}");
    let unknown = eval(&["--mode", "guess"]);
    assert!(!unknown.status.success() && unknown.log.contains("mode"), "{unknown:#?}");

    // What would not be measured, or compared, is told before anything is begun.
    let runs = format!("/evaluations/{set}/runs");
    let begun = client.read(&runs).await.as_array().expect("a list").len();
    for (more, why) in [
        (["--min", "hit@7=1"], "is no metric"),
        (["--min", "verified=1"], "has no agent"),
        (["--min", "dense.hit@5=1"], "has no embedding model"),
        (["--against", "019a8f40-9b1c-7d55-8e02-000000000000"], "no such run"),
    ] {
        let refused = eval(&more);
        assert!(refused.status.code() == Some(1) && refused.log.contains(why), "{refused:#?}");
    }
    assert_eq!(client.read(&runs).await.as_array().expect("a list").len(), begun);

    // An agent that does not answer is not good enough, unless so much may fail.
    let llm = json!({"provider": "openai-compatible", "model": "m", "base_url": "http://127.0.0.1:1", "api_key": "k"});
    let agent = client.create_agent(&json!({"name": "mute", "type": "CHATVENDOR", "llm": llm})).await;
    data(client.patch(&format!("/evaluations/{set}"), &json!({"agentId": id(&agent)})).await);
    let failed = eval(&["--mode", "lexical"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:#?}");
    assert!(failed.log.contains("2 cases failed, and at most 0 may"), "{failed:#?}");
    assert!(failed.out.contains("answers  cited      0.0000"), "{failed:#?}");
    eval(&["--mode", "lexical", "--allow-failed", "2"]).well();
}

async fn a_shell_command_does_not_wait_for_a_run_that_would_not_measure_what_has_to_be_enough(mode: Mode) {
    // A model is wanted, and not there yet.
    let empty = tempfile::tempdir().expect("a folder");
    let setup = Service::in_mode(mode).env("LECTERN_EMBEDDER", "local");
    let setup = setup.env("LECTERN_EMBEDDING_MODEL_DIR", empty.path().to_str().expect("text"));
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    model.always(Reply::hang());
    let agent = json!({"name": "clerk", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = client.create_agent(&agent).await;
    let document = document(&client, "Note", WARRANTY).await;
    client.link(id(&agent), &document).await;
    let set = evaluation(&client, json!({"agentId": id(&agent)})).await;
    case(&client, &set, "Who founded the company?", json!("decline")).await;
    let token = client.create("/api-tokens", &json!({"description": "for checks"})).await;
    let setup = service.sibling().env("LECTERN_TOKEN", token["token"].as_str().expect("a token"));
    let base = service.base_url();
    let refused = |least: &str, why: &str| {
        let ran = command::lectern(&setup, &["eval", "--set", &set, "--server", &base, "--min", least]);
        assert!(ran.status.code() == Some(1) && ran.log.contains(why), "{ran:#?}");
    };
    let runs = format!("/evaluations/{set}/runs");
    refused("hit@5=0.5", "all cases are to be declined");
    refused("cited=0.5", "all cases are to be declined");
    assert_eq!(client.read(&runs).await, json!([]));
    case(&client, &set, "How long does the warranty last?", json!([{"documentId": document}])).await;
    refused("dense.hit@5=0.5", "is not there yet; the run was cancelled");
    let begun = client.read(&runs).await;
    assert_eq!((&begun[0]["state"], &begun[1]), (&json!("cancelled"), &json!(null)), "{begun:#}");
}

async fn a_model_that_came_after_the_start_is_measured_too(mode: Mode) {
    let server = Embeddings::start().await;
    let (_service, client) = crate::embedding::start(mode, &server).await;
    let note = document(&client, "Garage", "The automobile needs new tyres.").await;
    let set = evaluation(&client, json!({})).await;
    case(&client, &set, "Whose car is it?", json!([{"documentId": note}])).await;
    let run = run(&client, &set, json!({})).await;
    assert_eq!(run["modes"], json!(["hybrid", "dense", "lexical"]), "{run:#}");
    assert!(metric(&run, "dense", "hit@1") > metric(&run, "lexical", "hit@1"), "{run:#}");
}
