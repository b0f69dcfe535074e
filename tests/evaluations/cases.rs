//! Cases, one by one, from files, and from answers.

use std::io::Write;

use futures::{StreamExt, future::select_all, stream};
use reqwest::{
    Body, Method, RequestBuilder, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use serde_json::{Value, json};

use super::{case, document, evaluation, result, run, signed_up};
use crate::support::{
    client::{Client, data, envelope, id, send},
    in_both_modes,
    model::{Model, Reply},
    service::{Mode, Service},
    within_deadline,
};

in_both_modes!(
    cases_come_and_go_in_files,
    a_file_that_is_sent_again_under_one_key_adds_its_cases_once,
    what_an_evaluation_has_already_is_left_out_and_counted,
    a_file_is_refused_with_all_that_is_wrong_with_it,
    a_table_is_taken_in_the_encoding_in_which_a_spreadsheet_has_written_it,
    words_that_their_document_does_not_say_are_named_and_taken_all_the_same,
    a_collection_of_others_is_taken_as_far_as_its_documents_are_here,
    an_answer_becomes_a_case_by_one_request,
    of_several_words_under_one_number_those_that_the_document_has_become_a_case,
    what_cannot_be_a_case_is_refused_with_what_to_change,
    files_of_one_user_that_do_not_end_keep_nobody_else_waiting,
    of_two_changes_of_one_case_at_once_none_is_lost
);

const BOUNDARY: &str = "----a-file-with-cases";

/// What stands in a form before the file.
fn head(name: &str) -> String {
    format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n")
}

fn import_request(client: &Client, evaluation: &str, form: impl Into<Body>) -> RequestBuilder {
    let request = client.request(Method::POST, &format!("/evaluations/{evaluation}/import"));
    request.header(CONTENT_TYPE, format!("multipart/form-data; boundary={BOUNDARY}")).body(form)
}

async fn import(client: &Client, evaluation: &str, name: &str, bytes: &[u8]) -> (StatusCode, Value) {
    let form = [head(name).as_bytes(), bytes, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat();
    envelope(send(import_request(client, evaluation, form)).await).await
}

async fn cases(client: &Client, evaluation: &str) -> Vec<Value> {
    client.read(&format!("/evaluations/{evaluation}/cases")).await.as_array().expect("a list").clone()
}

async fn a_file_that_is_sent_again_under_one_key_adds_its_cases_once(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let set = evaluation(&client, json!({})).await;
    let import = async |key: &str, question: &str| {
        let line = json!({"question": question, "expect": "decline"});
        let form = format!("{}{line}\r\n--{BOUNDARY}--\r\n", head("cases.jsonl"));
        envelope(send(import_request(&client, &set, form).header("Idempotency-Key", key)).await).await
    };
    for _ in 0..2 {
        let told = json!({"added": 1, "skipped": 0, "warnings": []});
        assert_eq!(data(import("once", "Who?").await), told);
    }
    let all = cases(&client, &set).await;
    assert_eq!((all.len(), &all[0]["workspaceId"]), (1, &client.user()["id"]), "{all:#?}");
    let (status, answer) = import("once", "Why?").await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::CONFLICT, &json!("idempotency_key_reused")));
    data(import("twice", "Why?").await);
    assert_eq!(cases(&client, &set).await.len(), 2);
}

async fn what_an_evaluation_has_already_is_left_out_and_counted(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let warranty = document(&client, "warranty.txt", "The warranty lasts two years, for all parts.").await;
    let set = evaluation(&client, json!({})).await;
    let table = "question,document,quote,expect\nHow long?,warranty.txt,lasts two years,\n\
                 How long?,warranty.txt,for all parts,\nWho?,,,decline\n";
    let import = async |table: &str| {
        let told = data(import(&client, &set, "cases.csv", table.as_bytes()).await);
        (told["added"].as_u64(), told["skipped"].as_u64())
    };
    assert_eq!(import(table).await, (Some(2), Some(0)));
    assert_eq!(import(table).await, (Some(0), Some(2)));
    // The same in another order, by another name of the document, and something else.
    let other = format!(
        "question,documentId,quote,expect\nHow long?,{warranty},for all parts,\n\
         How long?,{warranty},lasts two years,\nHow short?,{warranty},lasts two years,\nWho?,{warranty},,\n"
    );
    assert_eq!(import(&other).await, (Some(2), Some(1)));
    assert_eq!(cases(&client, &set).await.len(), 4);
    // Twice in one file.
    let lines = "{\"question\": \"Why?\", \"expect\": \"decline\"}\n".repeat(3);
    assert_eq!(import(&lines).await, (Some(1), Some(2)));
    assert_eq!(cases(&client, &set).await.len(), 5);
}

async fn a_file_is_refused_with_all_that_is_wrong_with_it(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    document(&client, "warranty.txt", "The warranty lasts two years.").await;
    let set = evaluation(&client, json!({})).await;
    let table = "question,document,grade\nHow long?,nothing.txt,\nHow short?,warranty.txt,1\n,warranty.txt,\n\
                 How long?,nowhere.txt,500\nWho?,warranty.txt,best\n";
    let (status, body) = import(&client, &set, "bad.csv", table.as_bytes()).await;
    let fields = body["error"]["fields"].as_array().expect("a list").iter();
    let named: Vec<_> = fields.map(|field| (field["path"].as_str(), field["message"].as_str())).collect();
    let paths: Vec<_> = named.iter().map(|(path, _)| path.expect("a place")).collect();
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
    assert_eq!(paths, ["line 2", "line 4", "line 5", "line 5", "line 6"], "{body:#}");
    let said = |at: usize, words: &str| named[at].1.is_some_and(|message| message.contains(words));
    assert!(said(0, "nothing.txt") && said(1, "no question"), "{body:#}");
    assert!(said(2, "grade over 100") && said(3, "nowhere.txt") && said(4, "whole number"), "{body:#}");
    let many = "question,document\n,warranty.txt\n".to_owned() + &"Who?,nothing.txt\n".repeat(200);
    let (_, body) = import(&client, &set, "bad.csv", many.as_bytes()).await;
    assert_eq!(body["error"]["fields"].as_array().map(Vec::len), Some(100), "{body:#}");
    assert!(cases(&client, &set).await.is_empty());
}

async fn a_table_is_taken_in_the_encoding_in_which_a_spreadsheet_has_written_it(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let set = evaluation(&client, json!({})).await;
    let table = |question: &str| format!("question;expect\r\n{question};decline\r\n");
    let question = "Wann schließt die Tiefgarage für Gäste?";
    let latin1 = table(question);
    let latin1: Vec<u8> = latin1.chars().map(|c| u8::try_from(u32::from(c)).expect("of Latin-1")).collect();
    let utf16 = format!("\u{feff}{}", table("Wo ist die Tür?"));
    let utf16: Vec<u8> = utf16.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [latin1, utf16] {
        assert_eq!(data(import(&client, &set, "cases.csv", &bytes).await)["added"], 1);
    }
    let asked: Vec<Value> =
        cases(&client, &set).await.into_iter().map(|case| case["question"].clone()).collect();
    assert_eq!(asked, [json!("Wo ist die Tür?"), json!(question)]);
    let line = b"{\"question\": \"Caf\xe9?\", \"expect\": \"decline\"}";
    let (status, body) = import(&client, &set, "cases.jsonl", line).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
    assert!(body["error"]["fields"][0]["message"].as_str().is_some_and(|said| said.contains("UTF-8")));
}

async fn words_that_their_document_does_not_say_are_named_and_taken_all_the_same(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    document(&client, "warranty.txt", "The warranty lasts two years.").await;
    let set = evaluation(&client, json!({})).await;
    let table = "question,document,quote\nHow long?,warranty.txt,lasts two years\n\
                 How long?,warranty.txt,lasts ten years\nHow short?,warranty.txt,lasts three years\n";
    let imported = data(import(&client, &set, "cases.csv", table.as_bytes()).await);
    let message = "The document does not say what is quoted.";
    let warnings = json!([{"path": "line 3", "message": message}, {"path": "line 4", "message": message}]);
    assert_eq!(imported, json!({"added": 2, "skipped": 0, "warnings": warnings}));
    let done = run(&client, &set, json!({"mode": "lexical"})).await;
    // Nobody knows that it ever did.
    let lost = json!([{"state": "lost", "reason": "The document does not say it."}]);
    assert_eq!(result(&done, "How short?")["gold"], lost);
}

async fn cases_come_and_go_in_files(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let warranty = document(&client, "warranty.txt", "The warranty lasts two years.").await;
    let set = evaluation(&client, json!({})).await;
    let table = format!(
        "question,document,documentId,quote,expect,note\nHow long?,warranty.txt,,lasts two years,,the usual one\n\
         How long?,,{warranty},The warranty,,\nWho?,,,,decline,\n"
    );
    let imported = data(import(&client, &set, "cases.csv", table.as_bytes()).await);
    assert_eq!(imported, json!({"added": 2, "skipped": 0, "warnings": []}));
    let all = cases(&client, &set).await;
    assert_eq!((&all[0]["question"], &all[0]["expect"]), (&json!("Who?"), &json!("decline")));
    let gold = |quote: &str| json!({"documentId": warranty, "quote": quote});
    assert_eq!(all[1]["expect"], json!([gold("lasts two years"), gold("The warranty")]));
    assert_eq!(all[1]["note"], "the usual one");

    let exported = send(client.request(Method::GET, &format!("/evaluations/{set}/export"))).await;
    assert_eq!(exported.headers()[CONTENT_TYPE], "application/x-ndjson");
    let lines = exported.text().await.expect("lines");
    let again = evaluation(&client, json!({})).await;
    assert_eq!(data(import(&client, &again, "cases.jsonl", lines.as_bytes()).await)["added"], 2);
    let what = |case: &Value| (case["question"].clone(), case["expect"].clone(), case["note"].clone());
    let both = (cases(&client, &again).await, all);
    assert_eq!(both.0.iter().map(what).collect::<Vec<_>>(), both.1.iter().map(what).collect::<Vec<_>>());

    // All, or nothing.
    let table = "question,document\nHow long?,warranty.txt\nWhy?,nothing.txt\n";
    let (status, body) = import(&client, &again, "cases.csv", table.as_bytes()).await;
    assert_eq!((status.as_u16(), &body["error"]["fields"][0]["path"]), (422, &json!("line 3")), "{body:#}");
    assert!(body.to_string().contains("nothing.txt"), "{body:#}");
    let lines = format!(
        "{lines}{{\"question\": \"Why?\", \"expect\": [{{\"document\": \"warranty.txt\", \"grade\": \"best\"}}]}}\n"
    );
    let (status, body) = import(&client, &again, "cases.jsonl", lines.as_bytes()).await;
    let wrong = "`expect.0.grade` must be a whole number from 0 to 100 (here: \"best\")";
    assert_eq!(
        (status.as_u16(), &body["error"]["fields"]),
        (422, &json!([{"path": "line 3", "message": wrong}])),
        "{body:#}"
    );
    assert_eq!(cases(&client, &again).await.len(), 2);
    for garbage in [&b""[..], b"\x00\x01\x02", b"PK\x03\x04garbage", b"{\"question\": 1}", &[b'x'; 5000]] {
        let (status, _) = import(&client, &again, "x", garbage).await;
        assert_eq!(status.as_u16(), 422, "{garbage:?}");
    }
}

async fn a_collection_of_others_is_taken_as_far_as_its_documents_are_here(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    for (own, text) in [("d1", "Apples are red."), ("d2", "Pears are green."), ("d3", "Plums are blue.")] {
        let document = json!({"name": "Fruit", "type": "TXT", "content": text, "metadata": {"_id": own}});
        client.ingest(&document).await;
    }
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in [
        ("fruit/corpus.jsonl", "{\"_id\": \"d1\", \"title\": \"\", \"text\": \"Apples are red.\"}\n"),
        (
            "fruit/queries.jsonl",
            "{\"_id\": \"q1\", \"text\": \"Which are red?\"}\n{\"_id\": \"q2\", \"text\": \"Which are far away?\"}\n",
        ),
        ("fruit/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td9\t1\nq2\td9\t1\n"),
    ] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).expect("a file");
        zip.write_all(text.as_bytes()).expect("its text");
    }
    let bytes = zip.finish().expect("a ZIP file").into_inner();
    let set = evaluation(&client, json!({})).await;
    let imported = data(import(&client, &set, "fruit.zip", &bytes).await);
    assert_eq!(imported, json!({"added": 1, "skipped": 1, "warnings": []}));
    let done = run(&client, &set, json!({"mode": "lexical"})).await;
    assert_eq!(result(&done, "Which are red?")["retrieval"]["lexical"]["ranks"], json!([1]));

    let elsewhere = client.create("/workspaces", &json!({"name": "Elsewhere"})).await;
    let elsewhere = client.in_workspace(id(&elsewhere));
    let set = evaluation(&elsewhere, json!({})).await;
    let (status, body) = import(&elsewhere, &set, "fruit.zip", &bytes).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::CONFLICT, &json!("no_documents")));
}

async fn an_answer_becomes_a_case_by_one_request(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let warranty =
        document(&client, "Warranty", "The warranty lasts two years from the day of purchase.").await;
    let model = Model::scripted([Reply::text("It \"lasts two years from the day\" [1].")]).await;
    let agent =
        client.create_agent(&json!({"name": "clerk", "type": "CHATVENDOR", "llm": model.llm("m")})).await;
    client.link(id(&agent), &warranty).await;
    let (_, answer) = client.predict(id(&agent), "How long does the warranty last?").await;
    let trace = id(&answer["trace"]).to_owned();
    let set = evaluation(&client, json!({"agentId": id(&agent)})).await;
    let path = format!("/traces/{trace}/cases");
    let made = client.create(&path, &json!({"evaluationId": set, "citation": 1, "note": "good"})).await;
    let gold = json!([{"documentId": warranty, "quote": "lasts two years from the day"}]);
    assert_eq!((&made["question"], &made["expect"]), (&json!("How long does the warranty last?"), &gold));
    let declined = client.create(&path, &json!({"evaluationId": set})).await;
    assert_eq!(declined["expect"], "decline");
    let (status, body) = client.post(&path, &json!({"evaluationId": set, "citation": 2})).await;
    assert_eq!((status.as_u16(), &body["error"]["fields"][0]["path"]), (422, &json!("citation")));
    let (status, _) = client.post(&path, &json!({"evaluationId": trace})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

async fn of_several_words_under_one_number_those_that_the_document_has_become_a_case(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let warranty =
        document(&client, "Warranty", "The warranty lasts two years from the day of purchase.").await;
    let told = "It \"lasts two years from the day\" and is \"free of any charge\" [1].";
    let model = Model::scripted([Reply::text(told)]).await;
    let agent =
        client.create_agent(&json!({"name": "clerk", "type": "CHATVENDOR", "llm": model.llm("m")})).await;
    client.link(id(&agent), &warranty).await;
    let (_, answer) = client.predict(id(&agent), "How long does the warranty last?").await;
    let citations = answer["trace"]["citations"].as_array().expect("a list");
    let quoted: Vec<_> = citations.iter().map(|cited| (&cited["n"], &cited["verified"])).collect();
    assert_eq!(quoted, [(&json!(1), &json!(false)), (&json!(1), &json!(true))], "{answer:#}");
    let set = evaluation(&client, json!({"agentId": id(&agent)})).await;
    let path = format!("/traces/{}/cases", id(&answer["trace"]));
    let made = client.create(&path, &json!({"evaluationId": set, "citation": 1})).await;
    assert_eq!(made["expect"][0]["quote"], "lasts two years from the day", "{made:#}");
}

async fn what_cannot_be_a_case_is_refused_with_what_to_change(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let document = document(&client, "Note", "Some words.").await;
    let set = evaluation(&client, json!({})).await;
    let path = format!("/evaluations/{set}/cases");
    let gold = |more: Value| {
        let mut gold = json!({"documentId": document});
        gold.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"question": "Who?", "expect": [gold]})
    };
    for (body, field) in [
        (json!({"expect": "decline"}), "question"),
        (json!({"question": " ", "expect": "decline"}), "question"),
        (json!({"question": "Who?"}), "expect"),
        (json!({"question": "Who?", "expect": "refuse"}), "expect"),
        (json!({"question": "Who?", "expect": []}), "expect"),
        (json!({"question": "Who?", "expect": [7]}), "expect.0"),
        (gold(json!({"grade": -1})), "expect.0.grade"),
        (gold(json!({"quote": 7})), "expect.0.quote"),
        (gold(json!({"chunkId": "x"})), "expect.0.chunkId"),
        (json!({"cases": []}), "cases"),
        (json!({"cases": [{"question": "Who?"}]}), "cases.0.expect"),
    ] {
        let (status, answer) = client.post(&path, &body).await;
        assert_eq!(
            (status.as_u16(), &answer["error"]["fields"][0]["path"]),
            (422, &json!(field)),
            "{answer:#}"
        );
    }
    let unknown = json!({"question": "Who?", "expect": [{"documentId": set}]});
    assert_eq!(client.post(&path, &unknown).await.0, StatusCode::NOT_FOUND);
    let made =
        case(&client, &set, "Who?", json!([{"documentId": document, "quote": "words", "grade": 3}])).await;
    let one = format!("{path}/{made}");
    let changed = data(client.patch(&one, &json!({"question": "What?", "note": "n"})).await);
    assert_eq!((&changed["question"], &changed["expect"][0]["grade"]), (&json!("What?"), &json!(3)));
    assert_eq!(client.patch(&one, &unknown).await.0, StatusCode::NOT_FOUND);
    data(client.delete(&one).await);
    assert_eq!(client.delete(&one).await.0, StatusCode::NOT_FOUND);
}

async fn files_of_one_user_that_do_not_end_keep_nobody_else_waiting(mode: Mode) {
    let (service, ada) = signed_up(mode).await;
    let grace = service.signed_up("grace@example.com").await;
    let (slow, set) = (evaluation(&ada, json!({})).await, evaluation(&grace, json!({})).await);
    let unfinished = || {
        let begun = stream::once(async { Ok::<_, std::io::Error>(head("cases.csv")) });
        Box::pin(send(import_request(&ada, &slow, Body::wrap_stream(begun.chain(stream::pending())))))
    };
    // One has a turn and two wait for it: the fourth is told so when all of them are there.
    let (refused, _, others) =
        within_deadline("one to be refused", select_all((0..4).map(|_| unfinished()))).await;
    assert_eq!(refused.headers()[RETRY_AFTER], "10");
    let (status, body) = envelope(refused).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("too_many_imports"))
    );
    let imported = data(import(&grace, &set, "cases.csv", b"question,expect\nWho?,decline\n").await);
    assert_eq!(imported["added"], 1);
    drop(others);
}

async fn of_two_changes_of_one_case_at_once_none_is_lost(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let set = evaluation(&client, json!({})).await;
    let made = case(&client, &set, "Who?", json!("decline")).await;
    let one = format!("/evaluations/{set}/cases/{made}");
    for round in 0..20 {
        let (question, note) = (format!("Who is number {round}?"), format!("number {round}"));
        let (first, second) = (json!({"question": question}), json!({"note": note}));
        let (first, second) = tokio::join!(client.patch(&one, &first), client.patch(&one, &second));
        data(first);
        data(second);
        let now = cases(&client, &set).await.remove(0);
        assert_eq!((&now["question"], &now["note"]), (&json!(question), &json!(note)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_change_of_a_case_makes_a_set_larger_than_it_may_be() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let document = document(&client, "Note", "Some words.").await;
    let set = evaluation(&client, json!({})).await;
    let quotes = |count: usize| {
        let quote = json!({"documentId": document, "quote": "x".repeat(10_000)});
        json!(vec![quote; count])
    };
    // Of the 64 MiB that a set may have, 256 cases of nearly 256 KiB leave less than one more would take.
    let large = quotes(26);
    for file in 0..2 {
        let line =
            |number: usize| json!({"question": format!("{file}, {number}?"), "expect": large}).to_string();
        let lines: Vec<String> = (0..128).map(line).collect();
        let imported = import(&client, &set, "cases.jsonl", lines.join("\n").as_bytes()).await;
        assert_eq!(data(imported)["added"], 128);
    }
    let small = case(&client, &set, "Who?", json!("decline")).await;
    let one = format!("/evaluations/{set}/cases/{small}");
    let (status, body) = client.patch(&one, &json!({"expect": large})).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (StatusCode::CONFLICT, &json!("too_many_cases")),
        "{body:#}"
    );
    assert_eq!(client.read(&format!("/evaluations/{set}/cases?limit=1")).await[0]["expect"], "decline");
    let fits = data(client.patch(&one, &json!({"expect": quotes(1)})).await);
    assert_eq!(fits["expect"], quotes(1));
}
