//! Clients that mean to use up what the service has: its memory, its connections, its descriptors.

use std::{
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr},
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
use reqwest::{Method, StatusCode, header::CONTENT_TYPE};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::support::{
    client::{PASSWORD, envelope, send},
    process::dying_with_this_thread,
    service::{Mode, Service},
    setup::Program,
    within_deadline,
};

const MIB: usize = 1024 * 1024;
/// Where attackers are; the others are at 127.0.0.1.
const THERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// A connection from an address of the attacker's.
async fn connected(url: &str, from: Ipv4Addr) -> TcpStream {
    let address: SocketAddr = url.trim_start_matches("http://").parse().expect("an address");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::new(from.into(), 0)).expect("a loopback address");
    socket.connect(address).await.expect("a connection")
}

/// A connection from `from` to the service at `url` on which this was sent, as far as it was taken.
pub async fn sent(url: &str, from: Ipv4Addr, head: &str, body: &[u8]) -> TcpStream {
    let mut stream = connected(url, from).await;
    let head = format!("{head}\r\nHost: x\r\nContent-Type: application/json\r\n");
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body).await;
    stream
}

/// What is answered on a connection, at least its headers. Empty when it ends without an answer.
async fn answer(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let reading = async {
        while !read.windows(4).any(|end| end == b"\r\n\r\n") {
            if !stream.read_buf(&mut read).await.is_ok_and(|bytes| bytes > 0) {
                return;
            }
        }
    };
    within_deadline("an answer or the connection's end", reading).await;
    String::from_utf8_lossy(&read).into_owned()
}

/// Waits until the log of the service has this in it.
async fn logged(service: &Service, message: &str) -> Value {
    service.logged(message, |event| event["fields"]["message"] == message).await["fields"].clone()
}

// --- memory ----------------------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_bodies_of_strangers_take_next_to_no_memory() {
    const CLIENTS: usize = 200;
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let before = service.rss_bytes();
    let half = vec![b' '; MIB];
    let attackers = (0..CLIENTS).map(|number| {
        let length = format!("Content-Length: {}\r\n\r\n", 2 * MIB);
        let chunked = format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", 2 * MIB);
        let begin = if number % 2 == 0 { length } else { chunked };
        let body = [begin.as_bytes(), &half].concat();
        let service = &service;
        async move {
            let mut stream =
                sent(&service.base_url(), THERE, "POST /api/v1/auth/sign-in HTTP/1.1", &body).await;
            let answer = answer(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
            stream
        }
    });
    let held: Vec<_> = attackers.collect::<FuturesUnordered<_>>().collect().await;
    let grown = service.rss_bytes().saturating_sub(before) / MIB as u64;
    assert!(grown < 64, "{CLIENTS} unfinished bodies of a MiB take {grown} MiB");
    ada.signed_out().sign_in("ada@example.com", PASSWORD).await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_not_known_may_send_16_kib_and_not_a_byte_more() {
    const LIMIT: usize = 16 * 1024;
    let service = Service::start().await;
    let stranger = service.client();
    let document = send(stranger.request_outside(Method::GET, "/openapi.json")).await;
    let document: Value = document.json().await.expect("the OpenAPI document");
    let mut tried = Vec::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            let ways = operation["security"].as_array();
            let needs_none = ways.is_some_and(|ways| ways.is_empty() || ways.contains(&json!({})));
            if !needs_none || operation["requestBody"].is_null() {
                continue;
            }
            let method: Method = method.to_uppercase().parse().expect("a method");
            for (length, too_large) in [(LIMIT, false), (LIMIT + 1, true)] {
                let request = stranger.request_outside(method.clone(), path);
                let body = format!("{{}}{}", " ".repeat(length - 2));
                let (status, answer) =
                    envelope(send(request.header(CONTENT_TYPE, "application/json").body(body)).await).await;
                let refused = status == StatusCode::PAYLOAD_TOO_LARGE;
                assert_eq!(refused, too_large, "{length} bytes to {path}: {status} {answer:#}");
            }
            tried.push(path.clone());
        }
    }
    for known in ["/api/v1/auth/sign-in", "/api/v1/auth/sign-up"] {
        assert!(tried.iter().any(|path| path == known), "{known} is not among {tried:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_bodies_have_bounded_memory_and_give_way_to_others() {
    const CLIENTS: usize = 6;
    let service = Service::in_mode(Mode::Embedded).env("LECTERN_BODY_MEMORY", "4MiB").start().await;
    let ada = service.signed_up("ada@example.com").await;
    let begin = format!("Authorization: Bearer {}\r\nContent-Length: {}\r\n\r\n", ada.token(), 2 * MIB);
    let body = [begin.as_bytes(), &vec![b' '; MIB]].concat();
    let refusals = AtomicUsize::new(0);
    let attackers = (0..CLIENTS).map(|_| async {
        loop {
            let mut stream = sent(&service.base_url(), THERE, "POST /api/v1/documents HTTP/1.1", &body).await;
            let answer = answer(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
            assert!(answer.to_lowercase().contains("\r\nretry-after: 1\r\n"), "{answer}");
            refusals.fetch_add(1, Ordering::Relaxed);
        }
    });
    let others = async {
        // Of seven eighths of four MiB, three can have one each.
        while refusals.load(Ordering::Relaxed) < CLIENTS - 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let large = json!({ "name": "Large", "type": "TXT", "content": "x".repeat(MIB * 3 / 2) });
        for _ in 0..5 {
            ada.create_document(&large).await;
        }
    };
    tokio::select! {
        _ = join_all(attackers) => {}
        () = within_deadline("others to be served", others) => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_wrong_fields_is_not_larger_than_they_are() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let fields = |count: u32| -> Map<String, Value> {
        (0..count).map(|number| (format!("f{number}"), Value::Null)).collect()
    };
    let long: Map<String, Value> = [("x".repeat(MIB), Value::Null)].into_iter().collect();
    for (fields, named) in [(fields(10_000), 100), (long, 1)] {
        let answer = send(ada.request(Method::PATCH, "/users/me").json(&fields)).await;
        let (status, answer) = envelope(answer).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(answer["error"]["fields"].as_array().map(Vec::len), Some(named));
        let length = answer.to_string().len();
        assert!(length < 64 * 1024, "{length} bytes");
    }
    let (status, answer) =
        envelope(send(ada.request(Method::PATCH, "/users/me").json(&fields(100_000))).await).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("more than 10000 members (line 1,"), "{message}");
}

// --- connections -----------------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn one_address_cannot_take_the_connections_of_others() {
    const ASK: &[u8] = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n";
    let service = Service::in_mode(Mode::Embedded)
        .env("LECTERN_MAX_CONNECTIONS", "8")
        .env("LECTERN_TRUSTED_PROXIES", "127.0.0.3/32")
        .start()
        .await;
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(connected(&service.base_url(), THERE).await);
    }
    assert_eq!(answer(&mut connected(&service.base_url(), THERE).await).await, "", "a ninth one is closed");
    assert!(service.client().is_ready().await, "others are answered");

    let mut proxied = Vec::new();
    for number in 0..20 {
        let mut stream = connected(&service.base_url(), ELSEWHERE).await;
        stream.write_all(ASK).await.expect("a request is taken");
        let answer = answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{number}: {answer}");
        proxied.push(stream);
    }

    drop(held);
    let answered = async {
        loop {
            let mut stream = connected(&service.base_url(), THERE).await;
            let _ = stream.write_all(ASK).await;
            if answer(&mut stream).await.starts_with("HTTP/1.1 200 ") {
                return;
            }
        }
    };
    within_deadline("room for another connection", answered).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_open_files_is_raised_and_connections_stay_below_it() {
    let service = Service::in_mode(Mode::Embedded).open_files(128).start().await;
    let raised = logged(&service, "the limit of open files was raised").await;
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX).min(65_536);
    assert_eq!((&raised["before"], &raised["now"]), (&json!(128), &json!(hard)));
    let connections = logged(&service, "listening").await["connections"].as_u64().expect("a number");
    assert!(connections <= hard / 2, "{connections} of {hard}");

    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(connected(&service.base_url(), THERE).await);
        held.push(connected(&service.base_url(), ELSEWHERE).await);
    }
    assert!(service.client().is_ready().await, "after more than the former limit");

    // A command does so too, and an operator's shell is not told of it each time.
    let mut command = dying_with_this_thread("sh");
    command.args(["-c", "ulimit -Sn 128 && exec \"$0\" jobs list", Program::Lectern.path()]);
    let ran = command.env_clear().envs(service.sibling().environment()).output().expect("it starts");
    assert!(ran.status.success(), "{ran:?}");
    assert!(!String::from_utf8_lossy(&ran.stderr).contains("open files"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_descriptors_goes_on_when_it_has_some_again() {
    let service = Service::start().await;
    let process = i32::try_from(service.pid()).ok().and_then(Pid::from_raw).expect("a process id");
    let open = std::fs::read_dir(format!("/proc/{}/fd", service.pid())).expect("the process runs").count();
    let usual = getrlimit(Resource::Nofile);
    let few = Rlimit { current: Some(open as u64 + 3), maximum: usual.maximum };
    let before = prlimit(Some(process), Resource::Nofile, few).expect("the limit can be lowered");

    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(connected(&service.base_url(), THERE).await);
    }
    logged(&service, "connections cannot be accepted; trying on").await;
    prlimit(Some(process), Resource::Nofile, before).expect("the limit can be raised again");
    logged(&service, "connections are accepted again").await;
    assert!(service.client().is_ready().await);
}

// --- whoever reads the log ---------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_on_stops_nothing() {
    // Their lines are several times what a pipe holds.
    const REQUESTS: usize = 1_000;
    let setup = Service::in_mode(Mode::Embedded);
    let mut command = dying_with_this_thread(Program::Lectern.path());
    command.env_clear().envs(setup.environment()).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("it starts");
    let mut log = BufReader::new(process.stderr.take().expect("a pipe"));
    let mut line = String::new();
    let url = loop {
        line.clear();
        assert!(log.read_line(&mut line).expect("a line") > 0, "it ends before it listens");
        let event: Value = serde_json::from_str(&line).expect("JSON");
        if event["fields"]["message"] == "listening" {
            break format!("http://{}", event["fields"]["addr"].as_str().expect("an address"));
        }
    };
    let client = reqwest::Client::new();
    let asking = async {
        for _ in 0..REQUESTS {
            let answer = client.get(format!("{url}/api/v1/nothing")).send().await.expect("an answer");
            assert_eq!(answer.status(), StatusCode::NOT_FOUND);
        }
    };
    within_deadline("answers although nobody reads the log", asking).await;
    let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::TERM).expect("it is there");
    let ending = tokio::task::spawn_blocking(move || process.wait().expect("its end"));
    let end = within_deadline("it to stop although nobody reads the log", ending).await.expect("no panic");
    assert!(end.success(), "{end}");
}
