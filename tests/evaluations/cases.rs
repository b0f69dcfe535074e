//! Cases, one by one, from files, and from answers.

use std::io::Write;

use reqwest::{Method, StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::{case, document, evaluation, result, run, signed_up};
use crate::support::{
    client::{Client, data, envelope, id, send},
    in_both_modes,
    model::{Model, Reply},
    service::Mode,
};

in_both_modes!(
    cases_come_and_go_in_files,
    a_collection_of_others_is_taken_as_far_as_its_documents_are_here,
    an_answer_becomes_a_case_by_one_request,
    of_several_words_under_one_number_those_that_the_document_has_become_a_case,
    what_cannot_be_a_case_is_refused_with_what_to_change
);

async fn import(client: &Client, evaluation: &str, name: &str, bytes: &[u8]) -> (StatusCode, Value) {
    const BOUNDARY: &str = "----a-file-with-cases";
    let mut body =
        format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n")
            .into_bytes();
    body.extend_from_slice(bytes);
    body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    let request = client.request(Method::POST, &format!("/evaluations/{evaluation}/import"));
    let request = request.header(CONTENT_TYPE, format!("multipart/form-data; boundary={BOUNDARY}"));
    envelope(send(request.body(body)).await).await
}

async fn cases(client: &Client, evaluation: &str) -> Vec<Value> {
    client.read(&format!("/evaluations/{evaluation}/cases")).await.as_array().expect("a list").clone()
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
    assert_eq!(imported, json!({"added": 2, "skipped": 0}));
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
    assert_eq!(imported, json!({"added": 1, "skipped": 1}));
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
