//! What is stored encrypted, over all tables.

use lectern_shared::{
    ids::{AgentVersionId, SourceId, UserId, WebhookId, WorkspaceId},
    model::{
        Json,
        agent::{Agent, AgentConfig, AgentVersion},
        sync::{FolderConfig, PathFilter, SyncConfig, SyncSource},
        tool::Tool,
        user::ApiToken,
        webhook::{Webhook, WebhookAddress, WebhookEvent},
    },
};
use uuid::Uuid;

use super::{accounts as token_tests, agents as agent_tests, tools as tool_tests};
use crate::{
    Db, agent_versions, agents, api_tokens, documents, idempotency, on,
    sealed::{self, PlainAddress, SealedColumn, SealedValue},
    sync,
    testing::{at, both, commit, made_in, plain, user, workspace},
    tools, webhooks,
};

/// Adds a row with this ciphertext, and one without any where a column may be empty; the id of the first.
pub(super) async fn add(db: &Db, workspace: WorkspaceId, column: SealedColumn, value: &[u8]) -> Uuid {
    match column {
        SealedColumn::ApiToken => {
            let token = ApiToken {
                token_sealed: value.to_vec(),
                ..token_tests::new_token(made_in(workspace), at(0))
            };
            let hash = token.id.as_uuid().as_bytes();
            commit!(db, |tx| api_tokens::insert(tx, &token, hash));
            *token.id.as_uuid()
        }
        SealedColumn::DocumentAuthorization => {
            let (open, closed) = (plain(workspace, "open"), plain(workspace, "closed"));
            let closed = documents::NewDocumentRow { authorization_sealed: Some(value), ..closed };
            commit!(db, |tx| documents::insert(tx, &open, at(0)));
            commit!(db, |tx| documents::insert(tx, &closed, at(0)));
            *closed.id.as_uuid()
        }
        SealedColumn::AgentKey => {
            let keyless = Agent { llm_key_sealed: None, ..agent_tests::new(workspace, "keyless", at(0)) };
            let agent =
                Agent { llm_key_sealed: Some(value.to_vec()), ..agent_tests::new(workspace, "with", at(0)) };
            commit!(db, |tx| agents::insert(tx, &keyless));
            commit!(db, |tx| agents::insert(tx, &agent));
            *agent.id.as_uuid()
        }
        SealedColumn::AgentVersionKey => {
            let agent = agent_tests::new(workspace, "former", at(0));
            commit!(db, |tx| agents::insert(tx, &agent));
            let version = |number: i64, key: Option<&[u8]>| AgentVersion {
                id: AgentVersionId::generate(),
                workspace_id: workspace,
                agent_id: agent.id,
                version: number,
                config: Json(AgentConfig {
                    r#type: agent.r#type,
                    name: agent.name.clone(),
                    description: String::new(),
                    llm: agent.llm.0.clone(),
                    has_memory: false,
                    rerank: false,
                    prompt: None,
                }),
                llm_key_sealed: key.map(<[u8]>::to_vec),
                replaced_by: None,
                replaced_at: at(0),
            };
            let (open, closed) = (version(1, None), version(2, Some(value)));
            commit!(db, |tx| agent_versions::insert(tx, &open));
            commit!(db, |tx| agent_versions::insert(tx, &closed));
            *closed.id.as_uuid()
        }
        SealedColumn::ToolMetadata => {
            let open = Tool { metadata_sealed: None, ..tool_tests::new(workspace, at(0)) };
            let tool = Tool { metadata_sealed: Some(value.to_vec()), ..tool_tests::new(workspace, at(0)) };
            commit!(db, |tx| tools::insert(tx, &open));
            commit!(db, |tx| tools::insert(tx, &tool));
            *tool.id.as_uuid()
        }
        SealedColumn::WebhookSecret => {
            let webhook = Webhook { secret_sealed: value.to_vec(), ..webhook(workspace, None) };
            commit!(db, |tx| webhooks::insert(tx, &webhook));
            *webhook.id.as_uuid()
        }
        SealedColumn::WebhookUrl => {
            let (open, closed) = (webhook(workspace, None), webhook(workspace, Some(value)));
            commit!(db, |tx| webhooks::insert(tx, &open));
            commit!(db, |tx| webhooks::insert(tx, &closed));
            *closed.id.as_uuid()
        }
        SealedColumn::SourceSecret => {
            let (open, closed) = (source(workspace, None), source(workspace, Some(value.to_vec())));
            commit!(db, |tx| sync::insert(tx, &open));
            commit!(db, |tx| sync::insert(tx, &closed));
            *closed.id.as_uuid()
        }
    }
}

/// A webhook whose address is plain, or is this ciphertext.
pub(super) fn webhook(workspace: WorkspaceId, url_sealed: Option<&[u8]>) -> Webhook {
    let url = if url_sealed.is_some() { "" } else { "https://a.example" };
    Webhook {
        id: WebhookId::generate(),
        owner: made_in(workspace),
        address: WebhookAddress { url: url.to_owned(), url_sealed: url_sealed.map(<[u8]>::to_vec) },
        events: Json(vec![WebhookEvent::DocumentDeleted]),
        active: true,
        secret_sealed: b"sealed".to_vec(),
        disabled: None,
        vouched_by: None,
        created_at: at(0),
        updated_at: at(0),
    }
}

pub(super) fn source(workspace: WorkspaceId, secret_sealed: Option<Vec<u8>>) -> SyncSource {
    let folder = FolderConfig { path: "/srv".to_owned(), filter: PathFilter::default(), max_documents: 1 };
    SyncSource {
        id: SourceId::generate(),
        owner: made_in(workspace),
        name: "folder".to_owned(),
        collection_id: None,
        config: Json(SyncConfig::Folder(folder)),
        secret_sealed,
        every_seconds: None,
        delete_limit: 20,
        next_run_at: None,
        etag: None,
        last_modified: None,
        created_at: at(0),
        updated_at: at(0),
        documents: 0,
    }
}

#[tokio::test]
async fn what_begins_otherwise_is_found_page_by_page_and_replaced_if_it_is_still_so() {
    const HEAD: &[u8] = b"\x01new!";
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        for column in SealedColumn::ALL {
            let what = format!("{} {column:?}", t.name);
            let mut old = Vec::new();
            for value in [&b"\x01old!\x00\xff"[..], b"\x01new!\x00\xff", b"\x01ne", b""] {
                let id = add(&t.db, workspace, column, value).await;
                if !value.starts_with(HEAD) {
                    old.push(SealedValue { id, sealed: value.to_vec() });
                }
            }
            let found =
                async |after, limit| sealed::outdated(&t.db, column, HEAD, after, limit).await.unwrap();
            assert_eq!(found(Uuid::nil(), 100).await, old, "{what}");
            assert_eq!(found(old[0].id, 100).await, old[1..], "{what}");
            assert_eq!(found(old[2].id, 100).await, [], "{what}");
            assert_eq!(found(Uuid::nil(), 2).await, old[..2], "{what}");

            let other = SealedValue { sealed: b"other".to_vec(), ..old[0].clone() };
            assert!(!commit!(t.db, |tx| sealed::replace(tx, column, &other, b"\x01new!x")), "{what}");
            assert!(commit!(t.db, |tx| sealed::replace(tx, column, &old[0], b"\x01new!x")), "{what}");
            assert!(!commit!(t.db, |tx| sealed::replace(tx, column, &old[0], b"\x01new!y")), "{what}");
            assert_eq!(found(Uuid::nil(), 100).await, old[1..], "{what}");
        }
    }
}

#[tokio::test]
async fn addresses_that_are_plain_are_found_page_by_page_and_sealed_if_they_still_are_so() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let mut plain = Vec::new();
        for url_sealed in [None, Some(&b"sealed"[..]), None, None] {
            let webhook = webhook(workspace, url_sealed);
            commit!(t.db, |tx| webhooks::insert(tx, &webhook));
            if url_sealed.is_none() {
                plain.push(webhook.id);
            }
        }
        // An earlier build has given it another address, and left the ciphertext.
        let mut moved = webhook(workspace, Some(&b"sealed"[..]));
        moved.address.url = "https://a.example".to_owned();
        commit!(t.db, |tx| webhooks::insert(tx, &moved));
        plain.push(moved.id);
        let found =
            async |after: WebhookId, limit: u32| sealed::plain_addresses(&t.db, after, limit).await.unwrap();
        let ids = |found: Vec<PlainAddress>| found.into_iter().map(|one| one.id).collect::<Vec<_>>();
        let beginning = WebhookId::from(Uuid::nil());
        assert_eq!(ids(found(beginning, 100).await), plain, "{}", t.name);
        assert_eq!(ids(found(beginning, 2).await), plain[..2], "{}", t.name);
        assert_eq!(ids(found(plain[0], 100).await), plain[1..], "{}", t.name);

        let first = found(beginning, 1).await.remove(0);
        assert_eq!(first.url, "https://a.example", "{}", t.name);
        let other = PlainAddress { url: "https://b.example".to_owned(), ..first.clone() };
        assert!(!commit!(t.db, |tx| sealed::seal_address(tx, &other, b"new")), "{}", t.name);
        assert!(commit!(t.db, |tx| sealed::seal_address(tx, &first, b"new")), "{}", t.name);
        assert!(!commit!(t.db, |tx| sealed::seal_address(tx, &first, b"newer")), "{}", t.name);
        let stored = webhooks::find(&t.db, workspace, first.id).await.unwrap().unwrap();
        let expected = WebhookAddress { url: String::new(), url_sealed: Some(b"new".to_vec()) };
        assert!(stored.address == expected && stored.updated_at == at(0), "{}", t.name);
        assert_eq!(ids(found(beginning, 100).await), plain[1..], "{}", t.name);
    }
}

#[tokio::test]
async fn kept_answers_are_found_and_replaced_likewise() {
    const HEAD: &[u8] = b"\x01new!";
    for t in &both().await {
        let (ada, grace) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        for (user, key, value) in [
            (ada, "a", &b"\x01old!1"[..]),
            (ada, "b", b"\x01new!2"),
            (ada, "c", b"\x01old!3"),
            (grace, "a", b"\x01old!4"),
        ] {
            assert!(
                commit!(t.db, |tx| idempotency::insert(tx, user, key, value, at(0), at(9))),
                "{}",
                t.name
            );
        }
        let found = async |after, limit| sealed::outdated_answers(&t.db, HEAD, after, limit).await.unwrap();
        let all = found((UserId::from(Uuid::nil()), ""), 100).await;
        let keys: Vec<_> = all.iter().map(|one| (one.user_id, one.request_key.as_str())).collect();
        assert_eq!(keys, [(ada, "a"), (ada, "c"), (grace, "a")], "{}", t.name);
        assert_eq!(found((ada, "a"), 1).await, all[1..2], "{}", t.name);
        assert_eq!(found((ada, "c"), 9).await, all[2..], "{}", t.name);

        assert!(commit!(t.db, |tx| sealed::replace_answer(tx, &all[0], b"\x01new!5")), "{}", t.name);
        assert!(!commit!(t.db, |tx| sealed::replace_answer(tx, &all[0], b"\x01new!6")), "{}", t.name);
        let kept = idempotency::find(&t.db, ada, "a", at(1)).await.unwrap();
        assert_eq!(kept.as_deref(), Some(&b"\x01new!5"[..]), "{}", t.name);
        let others: i64 =
            on!(t.db, |c| sqlx::query_scalar("SELECT COUNT(*) FROM idempotency").fetch_one(c)).unwrap();
        assert_eq!(others, 4, "{}", t.name);
    }
}
