//! What is left of deleted accounts, and where accounts were signed in to.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    db::{
        Db, Tx, accounts,
        accounts::leftovers,
        chunks, documents, execute, generations, index_segments, known_addresses, on,
        testing::{at, both, commit, finished_or_blocked, published, user},
    },
    ids::{DocumentId, UserId},
};

/// Every table that says whose its rows are.
async fn tables(db: &Db) -> Vec<String> {
    let tables = match db {
        Db::Postgres { .. } => {
            "SELECT CAST(table_name AS TEXT) FROM information_schema.columns
             WHERE column_name = 'user_id' AND table_schema = current_schema()"
        }
        Db::Sqlite { .. } => {
            "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c
             WHERE m.type = 'table' AND c.name = 'user_id'"
        }
    };
    on!(db, |c| sqlx::query_scalar(tables).fetch_all(c)).unwrap()
}

/// Those of all tables in which the user has rows, sorted.
async fn tables_with_rows_of(db: &Db, user: UserId) -> Vec<String> {
    let mut having = Vec::new();
    for table in tables(db).await {
        let count: i64 = on!(db, |c| sqlx::query_scalar(AssertSqlSafe(format!(
            "SELECT COUNT(*) FROM {table} WHERE user_id = $1"
        )))
        .bind(user)
        .fetch_one(c))
        .unwrap();
        if count > 0 {
            having.push(table);
        }
    }
    having.sort();
    having
}

/// Adds a row to each table that points to an account, as requests do that had begun before it was deleted.
async fn add_everything(tx: &mut Tx, user: UserId) -> DocumentId {
    let [agent, thing, document] = std::array::from_fn(|_| Uuid::now_v7());
    for (statement, id) in [
        (
            "INSERT INTO agents (id, user_id, type, name, description, llm, has_memory, version, created_at, updated_at)
             VALUES ($2, $1, 'REACT', '', '', '{}', TRUE, 1, 0, 0)",
            agent,
        ),
        (
            "INSERT INTO documents (id, user_id, type, name, description, url, revision, created_at, updated_at)
             VALUES ($2, $1, 'TXT', '', '', '', 0, 0, 0)",
            document,
        ),
        ("INSERT INTO tags (id, user_id, name, color, created_at, updated_at) VALUES ($2, $1, '', '', 0, 0)", thing),
        (
            "INSERT INTO prompts (id, user_id, name, template, input_variables, created_at, updated_at)
             VALUES ($2, $1, '', '', '[]', 0, 0)",
            thing,
        ),
        (
            "INSERT INTO tools (id, user_id, type, name, description, metadata, return_direct, created_at, updated_at)
             VALUES ($2, $1, 'SEARCH', '', '', '{}', FALSE, 0, 0)",
            thing,
        ),
    ] {
        execute!(tx, sqlx::query(statement).bind(user).bind(id)).unwrap();
    }
    for (statement, other) in [
        ("INSERT INTO agent_tags (agent_id, tag_id, user_id, position) VALUES ($2, $3, $1, 0)", thing),
        (
            "INSERT INTO agent_tools (id, user_id, agent_id, tool_id, created_at) VALUES ($3, $1, $2, $3, 0)",
            thing,
        ),
        (
            "INSERT INTO agent_documents (id, user_id, agent_id, document_id, created_at) VALUES ($3, $1, $2, $3, 0)",
            document,
        ),
        (
            "INSERT INTO agent_memory (id, user_id, agent_id, session, question, answer, tokens, created_at)
             VALUES ($3, $1, $2, '', '', '', 0, 0)",
            thing,
        ),
        (
            "INSERT INTO traces (id, user_id, agent_id, created_at, expires_at, complete, body)
             VALUES ($3, $1, $2, 0, 0, TRUE, '{}')",
            thing,
        ),
    ] {
        execute!(tx, sqlx::query(statement).bind(user).bind(agent).bind(other)).unwrap();
    }
    for statement in [
        "INSERT INTO cached_answers (user_id, trace_id, answer_key, created_at) VALUES ($1, $2, $3, 0)",
        "INSERT INTO api_tokens (id, user_id, description, token_hash, token_sealed, created_at)
         VALUES ($2, $1, '', $3, $3, 0)",
    ] {
        execute!(tx, sqlx::query(statement).bind(user).bind(thing).bind(&b"bytes"[..])).unwrap();
    }
    for statement in [
        "INSERT INTO idempotency (user_id, request_key, answer_sealed, expires_at) VALUES ($1, 'key', $2, 0)",
        "INSERT INTO known_addresses (user_id, address_hash, seen_at) VALUES ($1, $2, 0)",
    ] {
        execute!(tx, sqlx::query(statement).bind(user).bind(&b"bytes"[..])).unwrap();
    }
    document.into()
}

/// What the sweeper does with what was deleted.
async fn sweep(db: &Db, now: Timestamp) {
    for generation in generations::purgeable(db, now, 100).await.unwrap() {
        commit!(db, |tx| index_segments::delete(tx, generation.retired));
        while commit!(db, |tx| chunks::purge_some(tx, generation.retired)) {}
        commit!(db, |tx| generations::delete(tx, generation.retired));
    }
    for document in documents::tombstones(db, now, 100).await.unwrap() {
        commit!(db, |tx| documents::drop_tombstone(tx, document));
    }
}

async fn is_there(db: &Db, user: UserId) -> bool {
    let rows: i64 =
        on!(db, |c| sqlx::query_scalar("SELECT COUNT(*) FROM users WHERE id = $1").bind(user).fetch_one(c))
            .unwrap();
    rows == 1
}

#[tokio::test]
async fn what_is_added_to_a_deleted_account_does_not_stay_and_in_the_end_nothing_can_be_added() {
    for t in &both().await {
        let (gone, kept) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let (_, generation) = published(&t.db, gone, "d", &["text"], at(1)).await;
        commit!(t.db, |tx| index_segments::insert(tx, gone, generation, 0, 1, b"segment"));
        commit!(t.db, |tx| accounts::delete(tx, gone, at(2)));

        let mut tx = t.db.begin().await.unwrap();
        let raced = add_everything(&mut tx, gone).await;
        known_addresses::remember(&mut tx, kept, b"home", at(0), 20).await.unwrap();
        tx.commit().await.unwrap();
        let mut all = tables(&t.db).await;
        all.sort();
        let with_rows = tables_with_rows_of(&t.db, gone).await;
        assert_eq!(
            with_rows, all,
            "{}: a new table has no row here, and perhaps nobody removes its rows",
            t.name
        );
        let before = tables_with_rows_of(&t.db, kept).await;

        assert!(!commit!(t.db, |tx| leftovers::purge(tx, gone, at(3), at(9))), "{}: not all is gone", t.name);
        assert!(documents::find(&t.db, gone, raced).await.unwrap().is_none(), "{}", t.name);
        sweep(&t.db, at(3)).await;
        assert_eq!(tables_with_rows_of(&t.db, gone).await, [""; 0], "{}", t.name);

        assert!(!commit!(t.db, |tx| leftovers::purge(tx, gone, at(4), at(2))), "{}: too early", t.name);
        assert!(is_there(&t.db, gone).await, "{}", t.name);
        assert!(commit!(t.db, |tx| leftovers::purge(tx, gone, at(4), at(3))), "{}", t.name);
        assert!(!is_there(&t.db, gone).await, "{}", t.name);
        let mut tx = t.db.begin().await.unwrap();
        let late = execute!(
            tx,
            sqlx::query("INSERT INTO known_addresses (user_id, address_hash, seen_at) VALUES ($1, $2, 0)")
                .bind(gone)
                .bind(b"late".as_slice())
        );
        assert!(late.is_err(), "{}: what points to an account that is gone is refused", t.name);
        drop(tx);

        assert!(!commit!(t.db, |tx| leftovers::purge(tx, kept, at(4), at(9))), "{}", t.name);
        assert_eq!(tables_with_rows_of(&t.db, kept).await, before, "{}: another's stays", t.name);
    }
}

#[tokio::test]
async fn an_account_that_was_closed_and_not_deleted_opens_nothing_and_is_deleted_later() {
    for t in &both().await {
        let (gone, kept) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let email = accounts::find(&t.db, gone).await.unwrap().unwrap().email;
        let (document, _) = published(&t.db, gone, "d", &["text"], at(1)).await;
        commit!(t.db, |tx| accounts::close(tx, gone, at(2)));
        assert!(accounts::find(&t.db, gone).await.unwrap().is_none(), "{}", t.name);
        assert!(!commit!(t.db, |tx| accounts::is_active(tx, gone)), "{}", t.name);
        assert!(accounts::find(&t.db, kept).await.unwrap().is_some(), "{}", t.name);

        assert!(
            !commit!(t.db, |tx| leftovers::purge(tx, gone, at(3), at(9))),
            "{}: documents are left",
            t.name
        );
        assert!(documents::find(&t.db, gone, document).await.unwrap().is_none(), "{}", t.name);
        sweep(&t.db, at(3)).await;
        let again = accounts::NewUser {
            id: UserId::generate(),
            email: &email,
            email_key: &email,
            name: "somebody else",
            password_hash: "hash",
            is_admin: false,
        };
        commit!(t.db, |tx| accounts::insert(tx, &again, at(4)));
        assert!(commit!(t.db, |tx| leftovers::purge(tx, gone, at(4), at(9))), "{}", t.name);
        assert!(!is_there(&t.db, gone).await, "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_account_is_closed_while_something_is_being_added_to_it() {
    for t in both().await.iter().filter(|t| t.name == "PostgreSQL") {
        let gone = user(&t.db, at(0)).await;
        let mut adding = t.db.begin().await.unwrap();
        known_addresses::remember(&mut adding, gone, b"home", at(1), 20).await.unwrap();
        // It does not wait, or a stream of additions would keep it waiting for ever.
        commit!(t.db, |tx| accounts::close(tx, gone, at(1)));
        assert!(!accounts::is_active(&mut adding, gone).await.unwrap(), "and those who are adding notice");
    }
}

#[tokio::test]
async fn deleted_accounts_are_listed_page_by_page_and_no_others() {
    for t in &both().await {
        let mut gone = Vec::new();
        for _ in 0..3 {
            let id = user(&t.db, at(0)).await;
            user(&t.db, at(0)).await;
            commit!(t.db, |tx| accounts::delete(tx, id, at(1)));
            gone.push(id);
        }
        let beginning = UserId::from(Uuid::nil());
        assert_eq!(leftovers::deleted(&t.db, beginning, 2).await.unwrap(), gone[..2], "{}", t.name);
        assert_eq!(leftovers::deleted(&t.db, gone[1], 2).await.unwrap(), gone[2..], "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_added_while_the_account_is_deleted_is_noticed_before_it_is_there() {
    for t in &both().await {
        let gone = user(&t.db, at(0)).await;
        let mut deleting = t.db.begin().await.unwrap();
        accounts::delete(&mut deleting, gone, at(1)).await.unwrap();
        let adding = tokio::spawn({
            let db = t.db.clone();
            async move {
                let mut tx = db.begin().await.unwrap();
                known_addresses::remember(&mut tx, gone, b"home", at(1), 20).await.unwrap();
                accounts::is_active(&mut tx, gone).await.unwrap()
            }
        });
        finished_or_blocked(&t.db, &adding).await;
        deleting.commit().await.unwrap();
        assert!(!adding.await.unwrap(), "{}", t.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_added_before_the_account_is_deleted_goes_with_it() {
    for t in &both().await {
        let gone = user(&t.db, at(0)).await;
        let mut adding = t.db.begin().await.unwrap();
        known_addresses::remember(&mut adding, gone, b"home", at(1), 20).await.unwrap();
        assert!(accounts::is_active(&mut adding, gone).await.unwrap(), "{}", t.name);
        let deleting = tokio::spawn({
            let db = t.db.clone();
            async move { commit!(db, |tx| accounts::delete(tx, gone, at(1))) }
        });
        finished_or_blocked(&t.db, &deleting).await;
        adding.commit().await.unwrap();
        deleting.await.unwrap();
        assert_eq!(tables_with_rows_of(&t.db, gone).await, [""; 0], "{}", t.name);
    }
}

#[tokio::test]
async fn a_sign_in_tells_whether_the_account_was_signed_in_to_from_there() {
    for t in &both().await {
        let (ada, grace) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let seen = async |user: UserId, hash: &[u8]| {
            let email = format!("{user}@example.com");
            let found = accounts::find_for_sign_in(&t.db, &email, hash).await.unwrap().unwrap();
            assert_eq!(found.credentials.user.id, user, "{}", t.name);
            assert_eq!(found.credentials.password_hash, "hash", "{}", t.name);
            found.seen_there_at
        };
        assert_eq!(seen(ada, b"home").await, None, "{}", t.name);
        commit!(t.db, |tx| known_addresses::remember(tx, ada, b"home", at(1), 2));
        assert_eq!((seen(ada, b"home").await, seen(grace, b"home").await), (Some(at(1)), None), "{}", t.name);
        commit!(t.db, |tx| known_addresses::remember(tx, ada, b"work", at(2), 2));
        commit!(t.db, |tx| known_addresses::remember(tx, ada, b"home", at(3), 2));
        commit!(t.db, |tx| known_addresses::remember(tx, grace, b"home", at(3), 2));
        // Of more than are kept, the one that was not met for longest goes.
        commit!(t.db, |tx| known_addresses::remember(tx, ada, b"train", at(4), 2));
        assert_eq!(seen(ada, b"home").await, Some(at(3)), "{}", t.name);
        assert_eq!(seen(ada, b"train").await, Some(at(4)), "{}", t.name);
        assert_eq!(seen(ada, b"work").await, None, "{}", t.name);

        assert_eq!(commit!(t.db, |tx| known_addresses::expire(tx, at(4), 1)), 1, "{}", t.name);
        assert_eq!(commit!(t.db, |tx| known_addresses::expire(tx, at(4), 9)), 1, "{}", t.name);
        assert_eq!((seen(ada, b"home").await, seen(grace, b"home").await), (None, None), "{}", t.name);
        assert_eq!(seen(ada, b"train").await, Some(at(4)), "{}", t.name);
        assert!(accounts::find_for_sign_in(&t.db, "nobody", b"home").await.unwrap().is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn credentials_that_are_in_force_are_told_from_those_that_have_ended() {
    for t in &both().await {
        let (ada, gone) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        commit!(t.db, |tx| accounts::end_sessions(tx, ada));
        commit!(t.db, |tx| accounts::delete(tx, gone, at(1)));
        let nobody = UserId::generate();
        let versions = accounts::token_versions(&t.db, &[ada, gone, nobody]).await.unwrap();
        assert_eq!(versions, [(ada, 1)], "{}", t.name);

        let tokens: Vec<_> = [(ada, b"a"), (ada, b"b"), (gone, b"c")]
            .map(|(user, hash)| (user, hash, crate::ids::ApiTokenId::generate()))
            .into();
        for (user_id, hash, id) in &tokens {
            let token = crate::model::user::ApiToken {
                id: *id,
                user_id: *user_id,
                description: String::new(),
                token_sealed: Vec::new(),
                created_at: at(2),
                last_used_at: None,
            };
            commit!(t.db, |tx| accounts::insert_token(tx, &token, hash.as_slice()));
        }
        let ids: Vec<_> = tokens.iter().map(|(_, _, id)| *id).collect();
        commit!(t.db, |tx| accounts::delete_token(tx, ada, ids[1]));
        assert_eq!(accounts::tokens_in_force(&t.db, &ids).await.unwrap(), [ids[0]], "{}", t.name);
    }
}
