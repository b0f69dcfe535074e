use lectern_agents::{AgentError, run::RunOutcome};
use lectern_shared::{
    ids::{AgentId, TraceId},
    model::run::TerminationReason,
};

use super::*;
use crate::openai::{
    annotations::testing::{citation, linker},
    responses::answer::AgentResponse,
};

const ANSWER: &str = "Grüße 🚢 [1].";

fn start() -> RunEvent {
    RunEvent::Start { trace: TraceId::generate(), agent: AgentId::generate(), session: None }
}

fn retrieval() -> RunEvent {
    let found = json!({"documentId": "d", "documentName": "report.pdf", "score": null, "text": "Grüße."});
    RunEvent::Retrieval { query: "Who?".to_owned(), documents: vec![found] }
}

fn token(delta: &str) -> RunEvent {
    RunEvent::Token { delta: delta.to_owned() }
}

fn tool_call(name: &str) -> RunEvent {
    RunEvent::ToolCall {
        id: "call".to_owned(),
        name: name.to_owned(),
        input: json!({"query": "Why?"}),
        searches_documents: name.eq_ignore_ascii_case("search_documents"),
    }
}

fn tool_result(name: &str) -> RunEvent {
    let observation = "Nothing was found.".to_owned();
    let documents =
        vec![json!({"documentId": "d", "documentName": "notes", "score": 3.0, "text": "Why not."})];
    RunEvent::ToolResult {
        id: "call".to_owned(),
        name: name.to_owned(),
        observation,
        failed: false,
        documents,
    }
}

fn end(finish_reason: TerminationReason) -> RunEvent {
    let outcome = RunOutcome {
        trace: TraceId::generate(),
        finish_reason,
        is_withheld: false,
        input_tokens: 7,
        output_tokens: 5,
    };
    RunEvent::End { answer: ANSWER.to_owned(), outcome, trace: Value::Null }
}

fn stream() -> ResponseStream {
    let response = AgentResponse::begun("support".to_owned(), 1);
    ResponseStream::new(ResponseRun::new(response, linker(), true), None)
}

/// The data of the events of a run, each of which is named by its type and numbered.
fn told(events: &[RunEvent]) -> Vec<Value> {
    let mut stream = stream();
    let sent: Vec<u8> = events.iter().filter_map(|event| stream.encode(event)).flatten().collect();
    let sent = String::from_utf8(sent).unwrap();
    let read = |(at, event): (usize, &str)| {
        let (name, data) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!((data["type"].as_str(), data["sequence_number"].as_u64()), (Some(name), Some(at as u64)));
        data
    };
    sent.split_terminator("\n\n").enumerate().map(read).collect()
}

/// The types of events, and the places of the items that they are about.
fn types(told: &[Value]) -> Vec<(&str, Option<u64>)> {
    let of = |data: &Value| data["output_index"].as_u64();
    told.iter()
        .map(|data| (data["type"].as_str().unwrap().trim_start_matches("response."), of(data)))
        .collect()
}

#[test]
fn a_response_is_told_in_the_order_in_which_sdks_read_it() {
    let told = told(&[
        start(),
        retrieval(),
        token("Grüße "),
        token("🚢 [1]."),
        RunEvent::Citation(Box::new(citation(1, ANSWER))),
        end(TerminationReason::Stop),
    ]);
    let expected = [
        ("created", None),
        ("in_progress", None),
        ("output_item.added", Some(0)),
        ("file_search_call.in_progress", Some(0)),
        ("file_search_call.searching", Some(0)),
        ("file_search_call.completed", Some(0)),
        ("output_item.done", Some(0)),
        ("output_item.added", Some(1)),
        ("content_part.added", Some(1)),
        ("output_text.delta", Some(1)),
        ("output_text.delta", Some(1)),
        ("output_text.annotation.added", Some(1)),
        ("output_text.annotation.added", Some(1)),
        ("output_text.done", Some(1)),
        ("content_part.done", Some(1)),
        ("output_item.done", Some(1)),
        ("completed", None),
    ];
    assert_eq!(types(&told), expected);
    let text: String = told.iter().filter_map(|data| data["delta"].as_str()).collect();
    assert_eq!(text, ANSWER);
    assert_eq!(told[2]["item"]["status"], "in_progress");
    assert_eq!(told[6]["item"]["results"][0]["text"], "Grüße.");
    assert_eq!(told[6]["item"]["results"][0]["score"], 0.0);
    let mark = &told[11]["annotation"];
    assert_eq!(
        (&mark["type"], &mark["start_index"], &mark["end_index"]),
        (&json!("url_citation"), &json!(8), &json!(11))
    );
    assert_eq!(
        (&told[12]["annotation"]["type"], &told[12]["annotation"]["index"]),
        (&json!("file_citation"), &json!(8))
    );
    let last = &told[16]["response"];
    assert_eq!((&last["id"], &last["status"]), (&told[0]["response"]["id"], &json!("completed")));
    assert_eq!(last["output"], json!([told[6]["item"], told[15]["item"]]));
    assert_eq!(last["output"][1]["content"][0]["text"], ANSWER);
    assert_eq!(last["usage"]["total_tokens"], 12);
}

#[test]
fn a_search_of_the_models_own_stands_where_it_was_made_and_other_tools_are_not_told() {
    let told = told(&[
        start(),
        token("Let me see."),
        tool_call("calculator"),
        tool_result("calculator"),
        tool_call("search_documents"),
        tool_result("search_documents"),
        token(" No."),
        end(TerminationReason::MaxTokens),
    ]);
    let items: Vec<_> =
        types(&told).into_iter().filter(|(kind, _)| kind.starts_with("output_item")).collect();
    let expected = [
        ("output_item.added", Some(0)),
        ("output_item.added", Some(1)),
        ("output_item.done", Some(1)),
        ("output_item.done", Some(0)),
    ];
    assert_eq!(items, expected);
    let last = told.last().unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["status"]),
        (&json!("response.incomplete"), &json!("incomplete"))
    );
    assert_eq!(last["response"]["incomplete_details"]["reason"], "max_output_tokens");
    let output = &last["response"]["output"];
    assert_eq!(output[0]["content"][0]["text"], "Let me see. No.");
    assert_eq!((&output[1]["queries"], &output[1]["status"]), (&json!(["Why?"]), &json!("completed")));
}

#[test]
fn a_search_that_fails_is_told_as_such_however_the_model_spells_it() {
    let mut failed = tool_result("Search_Documents");
    if let RunEvent::ToolResult { failed, .. } = &mut failed {
        *failed = true;
    }
    let told =
        told(&[start(), tool_call("Search_Documents"), failed, token("No."), end(TerminationReason::Stop)]);
    let search = &told.last().unwrap()["response"]["output"][0];
    assert_eq!((&search["type"], &search["status"]), (&json!("file_search_call"), &json!("failed")));
    assert!(types(&told).iter().all(|(kind, _)| *kind != "file_search_call.completed"));
}

#[test]
fn an_answer_without_text_has_a_message_too() {
    let told = told(&[start(), end(TerminationReason::Declined)]);
    let last = told.last().unwrap();
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "");
    assert!(types(&told).iter().all(|(kind, _)| *kind != "output_text.delta"));
}

#[test]
fn a_run_that_fails_leaves_what_there_was_of_it() {
    let told = told(&[start(), token("Gr"), RunEvent::Failed(AgentError::StreamNotRead)]);
    let last = told.last().unwrap();
    assert_eq!(last["type"], "response.failed");
    let response = &last["response"];
    assert_eq!((&response["status"], &response["error"]["code"]), (&json!("failed"), &json!("server_error")));
    assert_eq!(response["output"][0]["content"][0]["text"], "Gr");
    assert_eq!(response["output"][0]["status"], "incomplete");
}

#[test]
fn what_fails_before_there_is_a_response_is_an_error_event() {
    let sent = stream().failure(&ApiError::credential_ended());
    let sent = String::from_utf8(sent.to_vec()).unwrap();
    let data = sent.strip_prefix("event: error\ndata: ").unwrap();
    let data: Value = serde_json::from_str(data.trim()).unwrap();
    assert_eq!((&data["type"], &data["code"]), (&json!("error"), &json!("invalid_api_key")));
}
