//! The schema.

use crate::{
    db::{
        Db, DbError, agents, execute,
        migrate::{self, MigrationError},
        testing::{at, both, both_empty, commit, user},
        tests::agents::agent,
    },
    ids::{AgentId, UserId},
};

/// Whether a row that points nowhere is refused.
async fn assert_foreign_keys_are_enforced(db: &Db, on: &str) {
    let mut tx = db.begin().await.unwrap();
    let orphan = execute!(
        tx,
        sqlx::query("INSERT INTO tags (id, user_id, name, color, created_at, updated_at) VALUES ($1, $2, '', '', 0, 0)")
            .bind(*AgentId::generate().as_uuid())
            .bind(UserId::generate())
    );
    assert!(matches!(orphan, Err(DbError::Failed(_))), "{on}: {orphan:?}");
}

#[tokio::test]
async fn a_schema_that_is_up_to_date_stays_as_it_is() {
    for t in &both().await {
        let owner = user(&t.db, at(0)).await;
        let agent = agent(&t.db, owner, at(0)).await;
        for _ in 0..2 {
            migrate::run(&t.db).await.unwrap();
        }
        assert!(agents::find(&t.db, owner, agent).await.unwrap().is_some(), "{}", t.name);
        assert_foreign_keys_are_enforced(&t.db, t.name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_tasks_of_a_process_migrate_at_once() {
    for t in &both_empty().await {
        let tasks: Vec<_> = (0..6)
            .map(|_| {
                let db = t.db.clone();
                tokio::spawn(async move { migrate::run(&db).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap_or_else(|error| panic!("{}: {error}", t.name));
        }
        user(&t.db, at(0)).await;
        assert_foreign_keys_are_enforced(&t.db, t.name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_processes_migrate_at_once() {
    for t in &both_empty().await {
        let mut processes = Vec::new();
        for _ in 0..6 {
            processes.push(t.reopen().await);
        }
        let tasks: Vec<_> = processes
            .into_iter()
            .map(|db| tokio::spawn(async move { migrate::run(&db).await.map(|()| db) }))
            .collect();
        for task in tasks {
            let db = task.await.unwrap().unwrap_or_else(|error| panic!("{}: {error}", t.name));
            user(&db, at(0)).await;
            assert_foreign_keys_are_enforced(&db, t.name).await;
        }
    }
}

#[tokio::test]
async fn a_schema_of_a_newer_version_is_refused_and_foreign_keys_stay_on() {
    for t in &both().await {
        commit!(t.db, |tx| async {
            execute!(
                tx,
                sqlx::query(
                    "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                     VALUES (999, 'from the future', TRUE, $1, 0)"
                )
                .bind(b"sum".as_slice())
            )
        });
        let refused = migrate::run(&t.db).await;
        assert!(matches!(refused, Err(MigrationError::Failed(_))), "{}: {refused:?}", t.name);
        assert_foreign_keys_are_enforced(&t.db, t.name).await;
    }
}
