//! What is gone from a source is deleted as long as the source is the same, and no longer.

use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::{counts, run, settled, setup, source, start_run};
use crate::support::{
    client::{data, id},
    db::{Database, waits_for_a_lock},
    service::Mode,
    web::Web,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_changed_while_its_run_deletes_keeps_the_rest() {
    let database = Database::fresh().await;
    let service = setup(Mode::Postgres).database_url(database.url()).start().await;
    let client = service.signed_up("ada@example.com").await;
    let web = Web::start().await;
    let pages = ["/docs/a", "/docs/b", "/docs/c", "/docs/d", "/docs/e", "/docs/f"];
    for page in pages {
        web.serve(page, "text/html", format!("<title>{page}</title><p>Page {page}.</p>"));
    }
    web.serve("/sitemap.xml", "text/plain", pages.map(|page| web.url(page)).join("\n"));
    let config = |include: &str| json!({"url": web.url("/"), "include": [include]});
    let site = source(&client, "site", config("/docs/*")).await;
    assert_eq!(counts(&run(&client, &site).await), [6, 0, 0, 0, 0]);
    let path = format!("/sources/{}", id(&site));
    let mistyped = json!({"config": config("/dcos/*"), "deleteLimit": 100});
    data(client.patch(&path, &mistyped).await);

    let mut holding = PgConnection::connect(database.url()).await.expect("the service's database");
    let mut beside = PgConnection::connect(database.url()).await.expect("the service's database");
    let mut held = holding.begin().await.expect("a transaction");
    sqlx::query("LOCK TABLE deletion_receipts IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *held)
        .await
        .expect("a lock");
    let deleting = start_run(&client, &site, json!({})).await;
    waits_for_a_lock(&mut beside, "WITH held AS").await;
    let right = json!({"config": config("/docs/*")});
    let (changed, ()) = tokio::join!(client.patch(&path, &right), async {
        waits_for_a_lock(&mut beside, "UPDATE workspaces SET fair_at = fair_at WHERE").await;
        held.rollback().await.expect("an end of it");
    });
    data(changed);
    let ended = settled(&client, &deleting).await;
    assert_eq!(ended["state"], "failed", "{ended:#}");
    assert!(ended["error"].as_str().expect("why").contains("changed meanwhile"), "{ended:#}");

    let runs = client.read(&format!("{path}/runs")).await;
    let second = settled(&client, &runs[0]).await;
    assert_eq!(second["state"], "succeeded", "{second:#}");
    // What was deleted before somebody could change the source is made again.
    let [added, _, unchanged, gone, _] = counts(&second);
    assert!((1..6).contains(&added), "{second:#}");
    assert_eq!((added + unchanged, gone), (6, 0), "{second:#}");
}
