use lectern_db::{
    agents, api_tokens, documents, idempotency, key_use, singletons,
    testing::{TestDb, at, both, commit, made_in, plain, user},
    tools, webhooks,
};
use lectern_shared::{
    ids::{AgentId, ApiTokenId},
    model::{
        agent::{Agent, AgentType, LlmConfig},
        tool::ToolType,
        user::ApiToken,
        webhook::{Webhook, WebhookAddress, WebhookEvent},
    },
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::*;

async fn run(db: &Db, keyring: &Keyring, stop: &CancellationToken) -> Result<ReencryptReport, DbError> {
    super::run(db, keyring, || at(10), stop).await
}

fn keyring(current: &str, previous: Option<&str>) -> Keyring {
    let secret = |text: &str| SecretString::from(text.repeat(32));
    Keyring::new(&secret(current), previous.map(secret).as_ref()).unwrap()
}

fn seal(keyring: &Keyring, place: CiphertextLocation<'_>, text: &str) -> Vec<u8> {
    keyring.encrypt(place, text.as_bytes()).unwrap()
}

/// What was stored of each kind.
struct Stored {
    user: UserId,
    token: Uuid,
    document: Uuid,
    agent: Uuid,
    tool: Uuid,
    key: String,
}

impl Stored {
    /// Stores one value of each kind, and the canary unless there is one, under the current key of `keyring`.
    async fn new(t: &TestDb, keyring: &Keyring) -> Self {
        let user = user(&t.db, at(0)).await;
        let id = ApiTokenId::generate();
        let token = ApiToken {
            id,
            owner: made_in(user.into()),
            description: String::new(),
            role: None,
            agent_id: None,
            origins: None,
            expires_at: None,
            rate_per_minute: None,
            token_sealed: seal(keyring, CiphertextLocation::api_token(id.as_uuid()), "token"),
            created_at: at(1),
            last_used_at: None,
        };
        commit!(t.db, |tx| api_tokens::insert(tx, &token, id.as_uuid().as_bytes()));
        let mut document = plain(user.into(), "closed");
        let document_id = *document.id.as_uuid();
        let authorization =
            seal(keyring, CiphertextLocation::document_authorization(&document_id), "authorization");
        document.authorization_sealed = Some(&authorization);
        commit!(t.db, |tx| documents::insert(tx, &document, at(1)));
        let id = AgentId::generate();
        let agent = Agent {
            id,
            owner: made_in(user.into()),
            r#type: AgentType::React,
            name: "agent".to_owned(),
            description: String::new(),
            llm: Json(LlmConfig::default()),
            llm_key_sealed: Some(seal(keyring, CiphertextLocation::agent_key(id.as_uuid()), "key")),
            has_memory: false,
            rerank: false,
            prompt_id: None,
            version: 1,
            created_at: at(1),
            updated_at: at(1),
            document_id: None,
        };
        commit!(t.db, |tx| agents::insert(tx, &agent));
        let id = ToolId::generate();
        let tool = Tool {
            id,
            owner: made_in(user.into()),
            r#type: ToolType::Search,
            name: "tool".to_owned(),
            description: String::new(),
            metadata: Json(serde_json::Map::new()),
            metadata_sealed: Some(seal(keyring, CiphertextLocation::tool_metadata(id.as_uuid()), "metadata")),
            calls_agent: None,
            return_direct: false,
            created_at: at(1),
            updated_at: at(1),
        };
        commit!(t.db, |tx| tools::insert(tx, &tool));
        let key = id.to_string();
        let answer =
            seal(keyring, CiphertextLocation::idempotent_answer(&idempotency_row(user, &key)), "answer");
        commit!(t.db, |tx| idempotency::insert(tx, user, &key, &answer, at(1), at(99)));
        let canary = hex(&seal(keyring, CiphertextLocation::canary(), CANARY));
        commit!(t.db, |tx| singletons::claim(tx, CANARY, &canary));
        Self {
            user,
            token: *token.id.as_uuid(),
            document: document_id,
            agent: *agent.id.as_uuid(),
            tool: *tool.id.as_uuid(),
            key,
        }
    }

    /// Everything as it is read with these keys.
    async fn read(&self, db: &Db, keyring: &Keyring) -> Vec<Result<String, SecretError>> {
        let open = |place, sealed: &[u8]| {
            keyring.decrypt_text(place, sealed).map(|text| text.expose_secret().to_owned())
        };
        let token = api_tokens::find(db, self.user.into(), self.token.into()).await.unwrap().unwrap();
        let source = documents::source(db, self.user.into(), self.document.into()).await.unwrap().unwrap();
        let agent = agents::find(db, self.user.into(), self.agent.into()).await.unwrap().unwrap();
        let tool = tools::find(db, self.user.into(), self.tool.into()).await.unwrap().unwrap();
        let answer = idempotency::find(db, self.user, &self.key, at(2)).await.unwrap().unwrap();
        let canary = singletons::get(db, CANARY).await.unwrap().unwrap();
        assert_eq!((agent.updated_at, tool.updated_at, agent.version), (at(1), at(1), 1));
        vec![
            open(CiphertextLocation::api_token(&self.token), &token.token_sealed),
            open(
                CiphertextLocation::document_authorization(&self.document),
                &source.authorization_sealed.unwrap(),
            ),
            open(CiphertextLocation::agent_key(&self.agent), &agent.llm_key_sealed.unwrap()),
            open(CiphertextLocation::tool_metadata(&self.tool), &tool.metadata_sealed.unwrap()),
            open(CiphertextLocation::idempotent_answer(&idempotency_row(self.user, &self.key)), &answer),
            open(CiphertextLocation::canary(), &unhex(&canary).unwrap()),
        ]
    }
}

fn all() -> Vec<Result<String, SecretError>> {
    ["token", "authorization", "key", "metadata", "answer", CANARY].map(|text| Ok(text.to_owned())).into()
}

#[tokio::test]
async fn afterwards_the_previous_key_is_needed_no_more_and_that_again_and_again() {
    for t in &both().await {
        let mut stored = Vec::new();
        for (previous, current) in [("a", "b"), ("b", "c"), ("c", "d")] {
            // More than one batch, in the first round.
            for _ in 0..if stored.is_empty() { BATCH + 3 } else { 1 } {
                stored.push(Stored::new(t, &keyring(previous, None)).await);
            }
            let both = keyring(current, Some(previous));
            let report = run(&t.db, &both, &CancellationToken::new()).await.unwrap();
            let renewed = stored.len() as u64 * 5 + 1;
            let expected = ReencryptReport {
                end: ReencryptOutcome::Complete,
                renewed,
                unreadable: 0,
                named: Vec::new(),
            };
            assert_eq!(report, expected, "{}", t.name);
            for one in &stored {
                assert_eq!(one.read(&t.db, &keyring(current, None)).await, all(), "{}", t.name);
            }
            let again = run(&t.db, &both, &CancellationToken::new()).await.unwrap();
            assert_eq!(again.renewed, 0, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn what_neither_key_opens_is_named_and_left_and_the_rest_is_done() {
    for t in &both().await {
        let lost = Stored::new(t, &keyring("lost", None)).await;
        let canary = singletons::get(&t.db, CANARY).await.unwrap().unwrap();
        let right =
            hex(&keyring("a", None).encrypt(CiphertextLocation::canary(), CANARY.as_bytes()).unwrap());
        assert!(commit!(t.db, |tx| singletons::replace(tx, CANARY, &canary, &right)));
        let good = Stored::new(t, &keyring("a", None)).await;
        for _ in 0..2 {
            let report = run(&t.db, &keyring("b", Some("a")), &CancellationToken::new()).await.unwrap();
            assert_eq!((report.end, report.unreadable), (ReencryptOutcome::Complete, 5), "{}", t.name);
            let named: Vec<_> = report.named.iter().map(|row| (row.table, row.id)).collect();
            let expected = [
                ("api_tokens", lost.token),
                ("documents", lost.document),
                ("agents", lost.agent),
                ("tools", lost.tool),
                ("idempotency", *lost.user.as_uuid()),
            ];
            assert_eq!(named, expected, "{}", t.name);
        }
        assert_eq!(good.read(&t.db, &keyring("b", None)).await, all(), "{}", t.name);
        assert_eq!(lost.read(&t.db, &keyring("lost", None)).await[..5], all()[..5], "{}", t.name);
    }
}

#[tokio::test]
async fn a_run_that_is_stopped_leaves_the_canary_and_the_next_one_goes_on() {
    for t in &both().await {
        let stored = Stored::new(t, &keyring("a", None)).await;
        let both = keyring("b", Some("a"));
        let stop = CancellationToken::new();
        stop.cancel();
        let report = run(&t.db, &both, &stop).await.unwrap();
        assert_eq!((report.end, report.renewed), (ReencryptOutcome::Stopped, 0), "{}", t.name);
        let kept = stored.read(&t.db, &keyring("a", None)).await;
        assert_eq!(kept, all(), "{}", t.name);
        let report = run(&t.db, &both, &CancellationToken::new()).await.unwrap();
        assert_eq!((report.end, report.renewed), (ReencryptOutcome::Complete, 6), "{}", t.name);
        assert_eq!(stored.read(&t.db, &keyring("b", None)).await, all(), "{}", t.name);
    }
}

#[tokio::test]
async fn two_runs_at_once_and_writes_meanwhile_harm_nothing() {
    for t in &both().await {
        let (old, both) = (keyring("a", None), keyring("b", Some("a")));
        let mut stored = Vec::new();
        for _ in 0..5 {
            stored.push(Stored::new(t, &old).await);
        }
        let other = t.reopen().await;
        let stop = CancellationToken::new();
        let write = async {
            let mut written = Vec::new();
            for _ in 0..5 {
                written.push(Stored::new(t, &both).await);
            }
            written
        };
        let (one, two, written) = tokio::join!(run(&t.db, &both, &stop), run(&other, &both, &stop), write);
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(
            (one.end, two.end),
            (ReencryptOutcome::Complete, ReencryptOutcome::Complete),
            "{}",
            t.name
        );
        assert_eq!(one.renewed + two.renewed, 26, "{}: each once", t.name);
        for one in stored.iter().chain(&written) {
            assert_eq!(one.read(&t.db, &keyring("b", None)).await, all(), "{}", t.name);
        }
        other.close().await;
    }
}

#[tokio::test]
async fn the_previous_key_may_not_go_while_a_process_encrypts_under_it() {
    for t in &both().await {
        let (old, both) = (keyring("a", None), keyring("b", Some("a")));
        let stored = Stored::new(t, &old).await;
        let (old_id, new_id) = (old.current_id(), both.current_id());
        let (behind, restarted, lost) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        for (key, process, until) in [(old_id, behind, 99), (new_id, restarted, 99), (old_id, lost, 9)] {
            commit!(t.db, |tx| key_use::note(tx, key, process, at(0), at(until)));
        }
        let report = run(&t.db, &both, &CancellationToken::new()).await.unwrap();
        assert_eq!((report.end, report.renewed), (ReencryptOutcome::WritersLeft(1), 0), "{}", t.name);
        assert_eq!(stored.read(&t.db, &old).await, all(), "{}: it may have no other key", t.name);
        // What it writes before it stops is done by the next run.
        let written = Stored::new(t, &old).await;
        commit!(t.db, |tx| key_use::withdraw(tx, old_id, behind));
        let report = run(&t.db, &both, &CancellationToken::new()).await.unwrap();
        assert_eq!((report.end, report.renewed), (ReencryptOutcome::Complete, 11), "{}", t.name);
        for one in [stored, written] {
            assert_eq!(one.read(&t.db, &keyring("b", None)).await, all(), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn addresses_that_were_stored_plainly_are_encrypted_whether_the_key_is_changed_or_not() {
    const URL: &str = "https://a.example/told?key=secret";
    for t in &both().await {
        let (keyring, owner) = (keyring("a", None), made_in(user(&t.db, at(0)).await.into()));
        // More than one batch.
        let mut ids = Vec::new();
        for _ in 0..BATCH + 3 {
            let id = WebhookId::generate();
            let webhook = Webhook {
                id,
                owner,
                address: WebhookAddress { url: URL.to_owned(), url_sealed: None },
                events: Json(vec![WebhookEvent::DocumentDeleted]),
                active: true,
                secret_sealed: seal(&keyring, CiphertextLocation::webhook_secret(id.as_uuid()), "secret"),
                disabled: None,
                vouched_by: None,
                created_at: at(1),
                updated_at: at(1),
            };
            commit!(t.db, |tx| webhooks::insert(tx, &webhook));
            ids.push(id);
        }
        for renewed in [u64::from(BATCH) + 3, 0] {
            let report = run(&t.db, &keyring, &CancellationToken::new()).await.unwrap();
            assert_eq!((report.end, report.renewed), (ReencryptOutcome::Complete, renewed), "{}", t.name);
        }
        for id in ids {
            let stored = webhooks::find(&t.db, owner.workspace_id, id).await.unwrap().unwrap();
            let read = stored.address.open(&keyring, id).unwrap();
            assert_eq!((read.as_str(), stored.address.url.as_str()), (URL, ""), "{}", t.name);
            assert!(stored.address.url_sealed.is_some() && stored.updated_at == at(1), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn the_address_of_a_tool_that_was_stored_plainly_is_encrypted_beside_its_secrets() {
    let whole = json!({"openApiUrl": "https://a.example/api.json?key=secret", "headers": {"X-Key": "k"}, "timeout": 3});
    let object = |value: &Value| value.as_object().unwrap().clone();
    for t in &both().await {
        let (old, both) = (keyring("a", None), keyring("b", Some("a")));
        let owner = made_in(user(&t.db, at(0)).await.into());
        let stored = |r#type, sealed: &str, open: &Value| {
            let id = ToolId::generate();
            Tool {
                id,
                owner,
                r#type,
                name: "tool".to_owned(),
                description: String::new(),
                metadata: Json(object(open)),
                metadata_sealed: Some(seal(&old, CiphertextLocation::tool_metadata(id.as_uuid()), sealed)),
                calls_agent: None,
                return_direct: false,
                created_at: at(1),
                updated_at: at(1),
            }
        };
        let open = json!({"openApiUrl": whole["openApiUrl"], "headers": {"X-Key": null}, "timeout": 3});
        let plain = stored(ToolType::OpenApi, r#"{"/headers/X-Key": "k"}"#, &open);
        let other = json!({"provider": "brave", "api_key": null});
        let other = stored(ToolType::Search, r#"{"/api_key": "k"}"#, &other);
        for tool in [&plain, &other] {
            commit!(t.db, |tx| tools::insert(tx, tool));
        }
        // The ciphertexts of both under the other key, and the address.
        for renewed in [3, 0] {
            let report = run(&t.db, &both, &CancellationToken::new()).await.unwrap();
            assert_eq!((report.end, report.renewed), (ReencryptOutcome::Complete, renewed), "{}", t.name);
        }
        let later = keyring("b", None);
        let read = async |id| tools::find(&t.db, owner.workspace_id, id).await.unwrap().unwrap();
        let tool = read(plain.id).await;
        assert_eq!(tool_secrets::reveal(&later, &tool).unwrap(), object(&whole), "{}", t.name);
        let left = json!({"openApiUrl": null, "headers": {"X-Key": null}, "timeout": 3});
        assert_eq!((tool.metadata.0, tool.updated_at), (object(&left), at(1)), "{}", t.name);
        let tool = read(other.id).await;
        let whole = json!({"provider": "brave", "api_key": "k"});
        assert_eq!(tool_secrets::reveal(&later, &tool).unwrap(), object(&whole), "{}", t.name);
    }
}
