//! Faults of the network between the parts under load: nothing that was accepted is lost, nothing gets stuck, and soon after the
//! fault everything is as before.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use tokio::{sync::watch, time::Instant};

use super::{assert_all_searchable, outages::under_load, post, wait_until_idle, wait_until_tidy};
use crate::{
    attacks::network::upload,
    support::{
        client::{Client, id, send},
        db::Database,
        process::POLL,
        proxy::{Proxy, Way},
        qdrant::QdrantServer,
        redis,
        s3::S3Server,
        service::{Mode, Service, Setup},
    },
};

/// How long after a fault the service may take to be as before.
const BACK: Duration = Duration::from_secs(10);

/// A fault, and how long it lasts.
type Fault = (&'static str, fn(&Proxy), Duration);

const FAULTS: [Fault; 7] = [
    ("latency of 50 ms", |proxy| proxy.delay(Duration::from_millis(50)), Duration::from_secs(5)),
    ("cut every 20 kB on the way there", |proxy| proxy.cut_every(Way::There, 20_000), Duration::from_secs(5)),
    ("cut every 20 kB on the way back", |proxy| proxy.cut_every(Way::Back, 20_000), Duration::from_secs(5)),
    ("stalled", Proxy::stall, Duration::from_secs(5)),
    ("cut off", Proxy::cut, Duration::from_secs(5)),
    ("half-open, new ones too", Proxy::lose, Duration::from_secs(5)),
    ("half-open", Proxy::lose_present, Duration::from_secs(1)),
];

/// Goes through all faults of one line while documents are posted. Returns what could not be done.
async fn go_through(part: &str, proxy: &Proxy, client: &Client, allowed: &[&str]) -> super::Accepted {
    let (accepted, errors) = under_load(client, async || {
        for (name, begin, duration) in FAULTS {
            begin(proxy);
            tokio::time::sleep(duration).await;
            proxy.mend();
            let back = until_normal(client).await;
            eprintln!("{part}, {name}: back to normal after {:.1} s", back.as_secs_f64());
            assert!(back <= BACK, "{part}, {name}: {back:?}");
        }
    })
    .await;
    wait_until_idle(client).await;
    assert_all_searchable(client, &accepted).await;
    eprintln!("{part}: {} documents accepted, {} refused", accepted.len(), errors.len());
    for error in &errors {
        assert!(allowed.iter().any(|allowed| error.starts_with(allowed)), "a caller was told {error}");
    }
    accepted
}

/// Waits until the service is ready and a new document becomes searchable; how long that took.
async fn until_normal(client: &Client) -> Duration {
    let began = Instant::now();
    while !client.is_ready().await {
        tokio::time::sleep(POLL).await;
    }
    loop {
        if let Ok((document, _)) = post(client, "newcomer", 5).await {
            client.wait_until_ingested(&document).await;
            return began.elapsed();
        }
        tokio::time::sleep(POLL).await;
    }
}

/// A cluster in which what a fault costs is soon seen.
fn cluster(database: &str) -> Setup {
    Service::in_mode(Mode::Cluster)
        .database_url(database)
        .workers(2)
        .env("LECTERN_JOB_LEASE", "5s")
        .env("LECTERN_INDEX_GRACE", "1s")
        .env("LECTERN_JOB_MAX_ATTEMPTS", "50")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh"]
async fn the_way_to_postgresql_has_every_fault() {
    let database = Database::fresh().await;
    let (proxy, url) = Proxy::in_front_of(database.url(), 5432).await;
    let service = cluster(&url).start().await;
    let client = service.signed_up("ada@example.com").await;
    go_through("PostgreSQL", &proxy, &client, &["503"]).await;
    wait_until_tidy(database.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh"]
async fn the_way_to_redis_has_every_fault_and_nobody_notices() {
    let database = Database::fresh().await;
    let (proxy, url) = Proxy::in_front_of(&redis::shared_url(), 6379).await;
    let service = cluster(database.url()).redis_url(&url).start().await;
    let client = service.signed_up("ada@example.com").await;
    go_through("Redis", &proxy, &client, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh"]
async fn the_way_to_qdrant_has_every_fault_and_documents_wait() {
    let Some(qdrant) = QdrantServer::named() else { return };
    let database = Database::fresh().await;
    let (proxy, url) = qdrant.behind_a_proxy().await;
    let setup = cluster(database.url()).env("LECTERN_QDRANT_TIMEOUT", "2s");
    let service = qdrant.used_by(setup, &url).start().await;
    let client = service.signed_up("ada@example.com").await;
    go_through("Qdrant", &proxy, &client, &[]).await;
    qdrant.forget(&service).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh"]
async fn the_way_to_s3_has_every_fault_and_what_needs_no_file_goes_on() {
    let database = Database::fresh().await;
    let store = S3Server::start().await;
    let proxy = Proxy::to(store.address()).await;
    let setup = S3Server::used_by(cluster(database.url()), &proxy.address().to_string());
    let service = setup.start().await;
    let client = service.signed_up("ada@example.com").await;
    let (stop, stopped) = watch::channel(false);
    let uploader = tokio::spawn(upload_steadily(client.clone(), stopped));
    go_through("S3", &proxy, &client, &[]).await;
    stop.send_replace(true);
    let (uploaded, refused) = uploader.await.expect("the uploader does not panic");
    eprintln!("S3: {} files accepted, {refused} refused", uploaded.len());
    for (document, content) in &uploaded {
        let ended = client.wait_until_ingested(document).await;
        assert_eq!(ended["ingestion"]["status"], "SUCCEEDED", "{ended:#}");
        let file = send(client.request(Method::GET, &format!("/documents/{document}/source"))).await;
        assert_eq!(&file.text().await.expect("the file"), content);
    }
}

/// Uploads files until told to stop: those accepted, and how many were refused.
async fn upload_steadily(client: Client, stop: watch::Receiver<bool>) -> (super::Accepted, usize) {
    let (mut accepted, mut refused, mut number) = (super::Accepted::new(), 0, 0);
    while !*stop.borrow() {
        number += 1;
        let content = super::text(&format!("file {number}"), 400);
        let (status, answer) = upload(&client, &format!("file {number}"), &content).await;
        if status.is_success() {
            accepted.insert(id(&answer["data"]).to_owned(), content);
        } else {
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer:#}");
            refused += 1;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    (accepted, refused)
}
