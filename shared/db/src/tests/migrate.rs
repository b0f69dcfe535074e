//! The schema.

use futures::future::join_all;
use lectern_shared::ids::{AgentId, WorkspaceId};

use crate::{
    Db, DbError, agents, execute,
    migrate::{self, MigrationError},
    testing::{TestDb, at, both, both_empty, commit, workspace},
    tests::agents::agent,
};

/// Whether a row that points nowhere is refused.
async fn assert_foreign_keys_are_enforced(db: &Db, on: &str) {
    let mut tx = db.begin().await.unwrap();
    let orphan = execute!(
        tx,
        sqlx::query("INSERT INTO tags (id, workspace_id, name, color, created_at, updated_at) VALUES ($1, $2, '', '', 0, 0)")
            .bind(*AgentId::generate().as_uuid())
            .bind(WorkspaceId::generate())
    );
    assert!(matches!(orphan, Err(DbError::Failed(_))), "{on}: {orphan:?}");
}

#[tokio::test]
async fn a_schema_that_is_up_to_date_stays_as_it_is() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let agent = agent(&t.db, owner, at(0)).await;
        for _ in 0..2 {
            migrate::run(&t.db).await.unwrap();
        }
        assert!(agents::find(&t.db, owner, agent).await.unwrap().is_some(), "{}", t.name);
        assert_foreign_keys_are_enforced(&t.db, t.name).await;
    }
}

#[tokio::test]
async fn several_tasks_of_a_process_migrate_at_once() {
    for t in &both_empty().await {
        for migrated in join_all((0..6).map(|_| migrate::run(&t.db))).await {
            migrated.unwrap_or_else(|error| panic!("{}: {error}", t.name));
        }
        workspace(&t.db, at(0)).await;
        assert_foreign_keys_are_enforced(&t.db, t.name).await;
    }
}

/// Opens a store as several processes do, and migrates it in all of them.
async fn migrate_in_several_processes(t: &TestDb) {
    let processes = join_all((0..6).map(|_| t.reopen())).await;
    for migrated in join_all(processes.iter().map(migrate::run)).await {
        migrated.unwrap_or_else(|error| panic!("{}: {error}", t.name));
    }
    for db in &processes {
        workspace(db, at(0)).await;
        assert_foreign_keys_are_enforced(db, t.name).await;
    }
}

#[tokio::test]
async fn several_processes_migrate_at_once() {
    for t in both_empty().await.iter().filter(|t| t.name == "PostgreSQL") {
        migrate_in_several_processes(t).await;
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

#[tokio::test]
async fn a_schema_beside_this_one_is_another_installations() {
    use crate::migrate::{SchemaStatus, standing};
    for t in both_empty().await.iter().filter(|t| t.name == "PostgreSQL") {
        let mut tx = t.db.begin().await.unwrap();
        for statement in ["CREATE SCHEMA another", "CREATE TABLE another._sqlx_migrations (version BIGINT)"] {
            execute!(tx, sqlx::query(statement)).unwrap();
        }
        tx.commit().await.unwrap();
        assert_eq!(standing(&t.db).await.unwrap(), SchemaStatus::Empty);
        migrate::run(&t.db).await.unwrap();
        assert_eq!(standing(&t.db).await.unwrap(), SchemaStatus::Current);
    }
}

#[tokio::test]
async fn a_schema_of_another_version_or_making_is_told_from_this_one() {
    use crate::migrate::{SchemaStatus, standing, version};
    for t in &both_empty().await {
        assert_eq!(standing(&t.db).await.unwrap(), SchemaStatus::Empty, "{}", t.name);
        migrate::run(&t.db).await.unwrap();
        assert_eq!(standing(&t.db).await.unwrap(), SchemaStatus::Current, "{}", t.name);
        let change = async |statement: &'static str| {
            let mut tx = t.db.begin().await.unwrap();
            execute!(tx, sqlx::query(statement)).unwrap();
            tx.commit().await.unwrap();
            standing(&t.db).await.unwrap()
        };
        let later = change(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             SELECT 9999, 'later', success, checksum, 0 FROM _sqlx_migrations WHERE version = 1",
        );
        assert_eq!(later.await, SchemaStatus::Newer(9999), "{}", t.name);
        assert!(version() < 9999);
        let unfinished = change("UPDATE _sqlx_migrations SET success = FALSE WHERE version = 9999").await;
        assert_eq!(unfinished, SchemaStatus::Altered(9999), "{}", t.name);
        change("DELETE FROM _sqlx_migrations WHERE version = 9999").await;
        let edited = "UPDATE _sqlx_migrations SET checksum = $1";
        let mut tx = t.db.begin().await.unwrap();
        execute!(tx, sqlx::query(edited).bind(&b"another"[..])).unwrap();
        tx.commit().await.unwrap();
        assert_eq!(standing(&t.db).await.unwrap(), SchemaStatus::Altered(1), "{}", t.name);
    }
}
