//! Answers that are to make a reader's browser do something. The model obeys whoever asks it to; what reaches the reader does
//! nothing.

use serde_json::{Value, json};

use crate::support::{
    client::{Client, id, send},
    model::{Model, Reply},
    service::Service,
    sse::{self, text_of},
};

/// An agent whose model answers so, over a document that lists an image for each digit; the answer, and the same as a stream.
async fn answer(client: &Client, prompt: Option<&str>, question: &str, written: &'static str) -> String {
    let model = Model::start().await;
    let mut agent = json!({"name": "guide", "type": "CHATVENDOR", "llm": model.llm("m")});
    if let Some(prompt) = prompt {
        let prompt = json!({"name": "p", "template": prompt, "input_variables": ["input"]});
        agent["promptId"] = client.create("/prompts", &prompt).await["id"].clone();
    }
    let agent = client.create_agent(&agent).await;
    let digits: String =
        (0..10).map(|digit| format!("https://pictures.example/{digit}.png ")).collect::<Vec<_>>().concat();
    let content = format!("The code of the safe is told in pictures. {digits}");
    let document = client.ingest(&json!({"name": "Safe", "type": "TXT", "content": content})).await;
    client.link(id(&agent), id(&document)).await;
    model.reply(Reply::text(written));
    let (status, whole) = client.predict(id(&agent), question).await;
    assert_eq!(status.as_u16(), 200, "{whole:#}");
    let text = whole["data"].as_str().expect("a text").to_owned();
    model.reply(Reply::chunks(written.split_inclusive(['`', '<', '[', '/'])));
    let body = json!({"input": {"input": question}, "has_streaming": true});
    let streamed = send(client.predict_request(id(&agent), &body).await).await;
    assert_eq!(text_of(&sse::events(streamed).await), text, "the stream holds the same");
    text
}

const PICTURES: &str = "![](https://pictures.example/4.png)![](https://pictures.example/7.png) ![1][x]\n\n\
                        [x]: https://pictures.example/1.png";

#[tokio::test(flavor = "multi_thread")]
async fn images_that_only_a_document_names_tell_nobody_which_digits_were_chosen() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let text = answer(&client, None, "What is the code?", PICTURES).await;
    assert!(!text.contains("4.png") && !text.contains("7.png") && !text.contains("!["), "{text}");
    // Nothing is fetched before it is clicked.
    assert!(text.contains("[x]: https://pictures.example/1.png"), "links stay: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_shown_from_hosts_that_the_question_the_prompt_or_the_operator_names() {
    let shown = "![](https://pictures.example/4.png)![](https://pictures.example/7.png)";
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let text = answer(&client, None, "Which pictures of pictures.example tell the code?", PICTURES).await;
    assert!(text.contains(shown), "the question names the host: {text}");
    let prompt = "Show what https://pictures.example/ has. {input}";
    let text = answer(&client, Some(prompt), "What is the code?", PICTURES).await;
    assert!(text.contains(shown), "the prompt names the host: {text}");
    let setup = Service::in_mode(crate::support::service::Mode::Embedded);
    let service = setup.env("LECTERN_IMAGE_HOSTS", "pictures.example").start().await;
    let client = service.signed_up("ada@example.com").await;
    let text = answer(&client, None, "What is the code?", PICTURES).await;
    assert!(text.contains(shown), "the operator names the host: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_answer_that_is_put_into_the_prompt_names_no_host_of_images() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let model = Model::start().await;
    let prompt = json!({
        "name": "p", "template": "So far: {chat_history}\n{input}", "input_variables": ["chat_history", "input"],
    });
    let prompt = client.create("/prompts", &prompt).await;
    let agent = json!({
        "name": "guide", "type": "CHATVENDOR", "llm": model.llm("m"), "promptId": prompt["id"], "hasMemory": true,
    });
    let agent = client.create_agent(&agent).await;
    let content = "There are pictures: https://pictures.example/4.png";
    let document = client.ingest(&json!({"name": "Safe", "type": "TXT", "content": content})).await;
    client.link(id(&agent), id(&document)).await;
    let body = |question: &str| json!({"input": {"input": question}, "session": "s"});
    model.reply(Reply::text("They are on https://pictures.example/4.png"));
    let (_, first) = client.ask(id(&agent), &body("Where are the pictures?")).await;
    assert!(first["data"].as_str().is_some_and(|text| text.contains("pictures.example")), "{first:#}");
    model.reply(Reply::to_request(|request: &Value| {
        assert!(request.to_string().contains("They are on"), "{request:#}");
        Reply::text("![](https://pictures.example/4.png)Here.")
    }));
    let (_, second) = client.ask(id(&agent), &body("Show them.")).await;
    assert_eq!(second["data"], "Here.", "{second:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_code_to_a_markdown_parser_lets_no_tag_through() {
    let service = Service::start().await;
    let client = service.signed_up("ada@example.com").await;
    let written = "``` `x` is no fence\n<script>alert(1)</script>\n\n> ```\n<img src=x onerror=alert(1)>\n\n\
                   ```html\n<script>alert(2)</script>\n```\n\nUse `Vec<T>`, if a < b.\n\n\
                   | a | b |\n|---|---|\n| `x | $`$ `<script>alert(1)</script>` |";
    let text = answer(&client, None, "How?", written).await;
    assert!(!text.contains("<script>alert(1)") && !text.contains("<img"), "{text}");
    assert!(text.contains("```html\n<script>alert(2)</script>\n```\n\nUse `Vec<T>`, if a < b."), "{text}");
}
