//! The 21 operations of the interface that the service was ordered to have, by their numbers there: each is asked as it is
//! written down, and answers with exactly the fields that it names and those that are known to be added.

mod fields;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use self::fields::{
    AGENT, AGENT_DOCUMENT, AGENT_TOOL, API_TOKEN, DOCUMENT, Kind, NEW_AGENT, NEW_AGENT_DOCUMENT, PROMPT,
    SESSION, TAG, TOOL,
};
use crate::{
    bodies::NOWHERE,
    support::{
        client::{Client, PASSWORD, data, envelope, id, send},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(
    every_operation_is_as_it_is_written_down,
    every_operation_takes_the_usual_spelling_of_each_header,
    a_client_that_sends_an_api_token_with_every_call_works,
    pages_are_numbers_or_digits_in_a_string,
);

// --- what is asked ---------------------------------------------------------------------------------------------------

/// Whose credentials an operation takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Auth {
    None,
    Bearer,
    ApiToken,
}

struct Operation {
    number: usize,
    method: Method,
    path: String,
    auth: Auth,
    body: Option<Value>,
    data: Kind,
    /// Fields of the answer that repeat what was sent.
    repeats: &'static [&'static str],
}

/// Things that exist before the operations are tried.
struct World {
    agent: String,
    document: String,
    prompt: Value,
    tags: [Value; 2],
    api_token: String,
    agent_documents: [String; 2],
    agent_tools: [String; 2],
}

impl World {
    async fn of(owner: &Client) -> Self {
        let own = |thing: Value| id(&thing).to_owned();
        let agent =
            async |name: &str| own(owner.create_agent(&json!({ "name": name, "type": "CHATVENDOR" })).await);
        let document = async |text: &str| {
            let body = json!({ "name": text, "type": "TXT", "url": format!("{NOWHERE}/{text}") });
            own(owner.create_document(&body).await)
        };
        let tool = async |name: &str| {
            let metadata = json!({ "automation_nla_api_key": "nla-key-1234" });
            let body = json!({ "name": name, "type": "AUTOMATION_NLA", "metadata": metadata });
            own(owner.create("/tools", &body).await)
        };
        let tag =
            async |name: &str| owner.create("/tags", &json!({ "name": name, "color": "#0e8a16" })).await;
        let prompt =
            json!({ "name": "Curt", "template": "Answer in a word: {input}", "input_variables": ["input"] });
        let (clerk, archivist) = (agent("Clerk").await, agent("Archivist").await);
        let linked = document("linked").await;
        let (kept_tool, lost_tool) = (tool("kept").await, tool("lost").await);
        let link_tool = async |tool: &str| {
            own(owner.create("/agent-tools", &json!({ "agentId": clerk, "toolId": tool })).await)
        };
        Self {
            document: document("to be linked").await,
            prompt: owner.create("/prompts", &prompt).await,
            tags: [tag("urgent").await, tag("later").await],
            api_token: own(owner.create("/api-tokens", &json!({ "description": "lost" })).await),
            agent_documents: [
                own(owner.link(&clerk, &linked).await),
                own(owner.link(&archivist, &linked).await),
            ],
            agent_tools: [link_tool(&kept_tool).await, link_tool(&lost_tool).await],
            agent: clerk,
        }
    }

    /// Every operation, as the interface writes it. The agents are read after the last of them is linked: an agent without a
    /// document has no `documentId` to show.
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn operations(&self, email: &str) -> Vec<Operation> {
        let Self { agent, document, prompt, tags, api_token, .. } = self;
        let ([kept_document, lost_document], [kept_tool, lost_tool]) =
            (&self.agent_documents, &self.agent_tools);
        let operation = |number, method: Method, path: &str, body, data| Operation {
            number,
            method,
            path: path.to_owned(),
            auth: Auth::Bearer,
            body,
            data,
            repeats: &[],
        };
        let get = |number, path: &str, data| operation(number, Method::GET, path, None, data);
        let post = |number, path: &str, body, data, repeats| Operation {
            repeats,
            ..operation(number, Method::POST, path, Some(body), data)
        };
        let delete = |number, path: &str, data| operation(number, Method::DELETE, path, None, data);
        vec![
            Operation {
                auth: Auth::None,
                ..post(
                    1,
                    "/auth/sign-in",
                    json!({ "email": email, "password": PASSWORD }),
                    Kind::Thing(&SESSION),
                    &[],
                )
            },
            post(
                2,
                "/documents",
                json!({
                    "name": "Handbook", "type": "PDF", "url": NOWHERE, "from_page": 1, "to_page": "3",
                    "authorization": null, "splitter": null, "metadata": { "team": "people" },
                }),
                Kind::Thing(&DOCUMENT),
                &["name", "type", "url", "metadata"],
            ),
            get(3, "/documents", Kind::ListOf(&Kind::Thing(&DOCUMENT))),
            post(
                4,
                "/api-tokens",
                json!({ "description": "for the build" }),
                Kind::Thing(&API_TOKEN),
                &["description"],
            ),
            get(5, "/api-tokens", Kind::ListOf(&Kind::Thing(&API_TOKEN))),
            delete(6, &format!("/api-tokens/{api_token}"), Kind::Thing(&API_TOKEN)),
            post(
                7,
                "/agents",
                json!({
                    "name": "Judge", "type": "REACT", "llm": { "model": "any-model", "provider": "openai-chat" },
                    "hasMemory": true, "promptId": id(prompt), "tags": tags,
                }),
                Kind::Thing(&NEW_AGENT),
                &["name", "type", "llm", "hasMemory", "promptId", "tags"],
            ),
            get(9, &format!("/agents/{agent}"), Kind::Thing(&AGENT)),
            Operation {
                auth: Auth::ApiToken,
                ..post(
                    10,
                    &format!("/agents/{agent}/predict"),
                    json!({ "input": { "input": "When does the gate open?" }, "has_streaming": false }),
                    Kind::Text,
                    &[],
                )
            },
            post(
                11,
                "/tools",
                json!({
                    "name": "Robot", "type": "AUTOMATION_NLA",
                    "metadata": { "automation_nla_api_key": "nla-key-5678" },
                }),
                Kind::Thing(&TOOL),
                &["name", "type"],
            ),
            get(12, "/tools", Kind::ListOf(&Kind::Thing(&TOOL))),
            post(
                13,
                "/agent-documents",
                json!({ "agentId": agent, "documentId": document }),
                Kind::Thing(&NEW_AGENT_DOCUMENT),
                &["agentId", "documentId"],
            ),
            get(14, &format!("/agent-documents/{kept_document}"), Kind::Thing(&AGENT_DOCUMENT)),
            delete(15, &format!("/agent-documents/{lost_document}"), Kind::Null),
            get(16, &format!("/agent-tools/{kept_tool}"), Kind::Thing(&AGENT_TOOL)),
            delete(17, &format!("/agent-tools/{lost_tool}"), Kind::Null),
            get(18, "/tags", Kind::ListOf(&Kind::Thing(&TAG))),
            Operation {
                repeats: &["name", "color"],
                ..operation(
                    19,
                    Method::PATCH,
                    &format!("/tags/{}", id(&tags[0])),
                    Some(json!({ "name": "very urgent", "color": "#D73A4A" })),
                    Kind::Thing(&TAG),
                )
            },
            get(20, "/prompts", Kind::ListOf(&Kind::Thing(&PROMPT))),
            get(21, &format!("/prompts/{}", id(prompt)), Kind::Thing(&PROMPT)),
        ]
    }
}

impl Operation {
    /// Makes the request with these headers and checks the answer; returns its `data`.
    async fn try_out(&self, client: &Client, headers: &[(&str, String)]) -> Value {
        let about = format!("{}. {} {}", self.number, self.method, self.path);
        let path = format!("/api/v1{}", self.path);
        let mut request = client.request_outside(self.method.clone(), &path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        if let Some(body) = &self.body {
            request = request.json(body);
        }
        let (status, answer) = envelope(send(request).await).await;
        assert_eq!(status, StatusCode::OK, "{about}: {answer:#}");
        let mut fields: Vec<_> = answer.as_object().expect("an envelope").keys().collect();
        fields.sort_unstable();
        if self.auth == Auth::ApiToken {
            assert_eq!(fields, ["data", "success", "trace"], "{about}");
            Kind::Object.check(&format!("{about}: trace"), &answer["trace"]);
        } else {
            assert_eq!(fields, ["data", "success"], "{about}");
        }
        self.data.check(&about, &answer["data"]);
        for name in self.repeats {
            let sent = &self.body.as_ref().expect("a body")[*name];
            // A tag that was changed meanwhile is shown as it is.
            assert_eq!(&answer["data"][*name], sent, "{about}: {name}");
        }
        data((status, answer))
    }
}

/// What is sent with every request, by the kind of credentials that it wants.
struct Credentials<'a> {
    none: &'a [(&'a str, String)],
    bearer: &'a [(&'a str, String)],
    api_token: &'a [(&'a str, String)],
}

async fn try_all(client: &Client, credentials: &Credentials<'_>) {
    let world = World::of(client).await;
    let email = client.user()["email"].as_str().expect("an e-mail");
    let mut tried = Vec::new();
    for operation in world.operations(email) {
        let headers = match operation.auth {
            Auth::None => credentials.none,
            Auth::Bearer => credentials.bearer,
            Auth::ApiToken => credentials.api_token,
        };
        let answer = operation.try_out(client, headers).await;
        let is_list = matches!(operation.data, Kind::ListOf(_));
        assert!(!is_list || !answer.as_array().is_some_and(Vec::is_empty), "{} is empty", operation.path);
        tried.push(operation.number);
    }
    // The list, of those agents that have a document, as in the interface's samples.
    let agents = Operation {
        number: 8,
        method: Method::GET,
        path: "/agents".to_owned(),
        auth: Auth::Bearer,
        body: None,
        data: Kind::ListOf(&Kind::Object),
        repeats: &[],
    };
    let agents = agents.try_out(client, credentials.bearer).await;
    let (linked, bare): (Vec<&Value>, Vec<&Value>) =
        agents.as_array().expect("a list").iter().partition(|agent| agent["documentId"] != "");
    assert!(!linked.is_empty() && !bare.is_empty(), "{agents:#}");
    for agent in linked {
        AGENT.check("8. GET /agents", agent);
    }
    for agent in bare {
        let mut agent = agent.clone();
        // The rest of it is as of any other.
        agent["documentId"] = json!(world.document);
        AGENT.check("8. GET /agents", &agent);
    }
    tried.push(8);
    tried.sort_unstable();
    assert!(tried.into_iter().eq(1..=21), "all of them are tried");
}

async fn every_operation_is_as_it_is_written_down(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let token = ada.create("/api-tokens", &json!({ "description": "for predict" })).await;
    let token = token["token"].as_str().expect("a value").to_owned();
    let credentials = Credentials {
        none: &[],
        bearer: &[("Autorization", format!("Bearer {}", ada.token()))],
        api_token: &[("X_SERVICE_API_KEY", token)],
    };
    try_all(&ada, &credentials).await;
}

async fn every_operation_takes_the_usual_spelling_of_each_header(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let token = ada.create("/api-tokens", &json!({ "description": "for predict" })).await;
    let token = token["token"].as_str().expect("a value").to_owned();
    let credentials = Credentials {
        none: &[],
        bearer: &[("Authorization", format!("Bearer {}", ada.token()))],
        api_token: &[("X-Service-Api-Key", token)],
    };
    try_all(&ada, &credentials).await;
}

/// What clients do that were generated from a description with one kind of credentials: the same header always, whether it
/// is asked for or not.
async fn a_client_that_sends_an_api_token_with_every_call_works(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let token = ada.create("/api-tokens", &json!({ "description": "for everything" })).await;
    let always = [("Authorization", format!("Bearer {}", token["token"].as_str().expect("a value")))];
    try_all(&ada, &Credentials { none: &always, bearer: &always, api_token: &always }).await;
}

async fn pages_are_numbers_or_digits_in_a_string(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    for (from, to) in
        [(json!(2), json!(12)), (json!(2), json!("12")), (json!("2"), json!(12)), (json!("2"), json!("12"))]
    {
        let body =
            json!({ "name": "Report", "type": "PDF", "url": NOWHERE, "from_page": from, "to_page": to });
        let document = ada.create_document(&body).await;
        assert_eq!((&document["from_page"], &document["to_page"]), (&json!(2), &json!(12)), "{body}");
        let path = format!("/documents/{}", id(&document));
        let changed = data(ada.patch(&path, &json!({ "from_page": to, "to_page": "13" })).await);
        assert_eq!((&changed["from_page"], &changed["to_page"]), (&json!(12), &json!(13)), "{body}");
    }
}
