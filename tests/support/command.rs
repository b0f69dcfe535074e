//! The operator's commands, run beside a service or without one, and a look into its database.

use std::process::{Command, ExitStatus};

use reqwest::{Method, StatusCode, header::CONTENT_TYPE};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};

use super::{
    client::{Client, data, envelope, send},
    service::{Mode, Service},
    setup::{Program, Setup},
};

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    /// What it was asked for.
    pub out: String,
    /// What it logged.
    pub log: String,
}

impl Ran {
    /// The same, of a command that has to succeed.
    pub fn well(self) -> Self {
        assert!(self.status.success(), "{self:#?}");
        self
    }
}

/// Runs `lectern` with these arguments and the settings of a service.
pub fn lectern(setup: &Setup, arguments: &[&str]) -> Ran {
    let output = Command::new(Program::Lectern.path())
        .args(arguments)
        .env_clear()
        .envs(setup.environment())
        .current_dir(setup.data_dir())
        .output()
        .expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { status: output.status, out: text(&output.stdout), log: text(&output.stderr) }
}

/// What `lectern doctor --json` says, and whether it finds nothing wrong.
pub fn doctor(setup: &Setup, arguments: &[&str]) -> (bool, Value) {
    let ran = lectern(setup, &[&["doctor", "--json"], arguments].concat());
    let report = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:#?}"));
    (ran.status.success(), report)
}

/// The finding with this code, if there is one.
pub fn finding<'a>(report: &'a Value, code: &str) -> Option<&'a Value> {
    report["findings"].as_array().expect("findings").iter().find(|finding| finding["code"] == code)
}

/// The ids that the finding with this code names, in order; none without one.
pub fn named(report: &Value, code: &str) -> Vec<String> {
    let ids =
        finding(report, code).and_then(|finding| finding["ids"].as_array().cloned()).unwrap_or_default();
    let mut ids: Vec<String> = ids.iter().map(|id| id.as_str().expect("an id").to_owned()).collect();
    ids.sort();
    ids
}

/// Runs a statement of the test's own on the database of a service, as somebody with a shell would. How many rows it touched.
pub async fn meddle(mode: Mode, setup: &Setup, statement: &str) -> u64 {
    let statement = AssertSqlSafe(statement.to_owned());
    if mode == Mode::Embedded {
        let url = format!("sqlite:{}", setup.data_dir().join("lectern.db").display());
        let mut connection = SqliteConnection::connect(&url).await.expect("the database's file");
        let done = connection.execute(statement).await.expect("a statement");
        connection.close().await.expect("it closes");
        done.rows_affected()
    } else {
        let url = setup.environment()["DATABASE_URL"].to_str().expect("an address");
        let mut connection = PgConnection::connect(url).await.expect("the database");
        let done = connection.execute(statement).await.expect("a statement");
        connection.close().await.expect("it closes");
        done.rows_affected()
    }
}

/// Uploads a file, and returns the document as the service does.
pub async fn upload(client: &Client, name: &str, bytes: &[u8]) -> Value {
    data(try_upload(client, name, bytes).await)
}

/// Uploads a file that may be refused: the status and the whole envelope.
pub async fn try_upload(client: &Client, name: &str, bytes: &[u8]) -> (StatusCode, Value) {
    send_file(client, Method::POST, "/documents/upload", name, bytes).await
}

/// Gives an uploaded document another file, and returns it.
pub async fn replace(client: &Client, document: &str, name: &str, bytes: &[u8]) -> Value {
    data(send_file(client, Method::PUT, &format!("/documents/{document}/file"), name, bytes).await)
}

async fn send_file(
    client: &Client,
    method: Method,
    path: &str,
    name: &str,
    bytes: &[u8],
) -> (StatusCode, Value) {
    const BOUNDARY: &str = "----a-boundary-of-these-tests";
    let mut form = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: text/plain\r\n\r\n"
    )
    .into_bytes();
    form.extend_from_slice(bytes);
    form.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let request = client.request(method, path).header(CONTENT_TYPE, kind).body(form);
    envelope(send(request).await).await
}

/// The file of an uploaded document, as it comes back.
pub async fn download(client: &Client, document: &str) -> Vec<u8> {
    let answer = send(client.request(Method::GET, &format!("/documents/{document}/source"))).await;
    assert!(answer.status().is_success(), "{}", answer.status());
    answer.bytes().await.expect("bytes").to_vec()
}

/// The mark of a service's blobs, and the folder that they are in.
pub fn blobs_of(service: &Service) -> (std::path::PathBuf, String) {
    let folder = service.data_dir().join("blobs");
    let mark = std::fs::read_to_string(folder.join("instance")).expect("a mark");
    (folder, mark)
}
