//! JSON in a column.

use lectern_shared::model::Json;
use serde_json::{Value, json};

use crate::{
    Db, DbError, execute, on,
    testing::{both, commit},
};

async fn store(db: &Db, name: &str, value: &Value) {
    commit!(db, |tx| async {
        execute!(
            tx,
            sqlx::query("INSERT INTO singletons (name, value) VALUES ($1, $2)").bind(name).bind(Json(value))
        )
    });
}

async fn load(db: &Db, name: &str) -> Result<Value, DbError> {
    let Json(value) = on!(db, |c| sqlx::query_scalar("SELECT value FROM singletons WHERE name = $1")
        .bind(name)
        .fetch_one(c))?;
    Ok(value)
}

#[tokio::test]
async fn every_value_comes_back_as_it_went() {
    for t in &both().await {
        for (n, value) in [
            json!("a\u{0}b"),
            json!({"\u{0}": "\u{0}\u{1f}"}),
            json!(123),
            json!("123"),
            json!(-0.5),
            json!(1e300),
            json!(u64::MAX),
            json!("1e5"),
            json!(""),
            json!(null),
            json!(true),
            json!([]),
            json!({}),
            json!([[1, {"a": [null, "ü 😀 \" \\ '"]}], {"deep": {"deeper": {"deepest": [1.5]}}}]),
        ]
        .iter()
        .enumerate()
        {
            let name = n.to_string();
            store(&t.db, &name, value).await;
            assert_eq!(load(&t.db, &name).await.unwrap(), *value, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn text_that_is_no_json_is_an_error() {
    for t in &both().await {
        commit!(t.db, |tx| crate::singletons::claim(tx, "broken", "{\"a\": "));
        let read = load(&t.db, "broken").await;
        assert!(matches!(read, Err(DbError::Unreadable(_))), "{}: {read:?}", t.name);
    }
}
