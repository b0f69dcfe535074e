//! The client against real servers on loopback, which a policy opens explicitly.

mod bodies;
mod server;
mod site;

use std::{net::SocketAddr, time::Duration};

use reqwest::{Method, header::AUTHORIZATION};

use self::server::{Reply, bind, head, ok, redirect, serve};
use super::{
    resolver::{ResolveError, permitted},
    *,
};

const ROOMY: RequestLimits = RequestLimits {
    max_bytes: 1 << 20,
    total_timeout: Duration::from_secs(30),
    idle_timeout: Duration::from_secs(30),
};

fn egress(allow: &str) -> Egress {
    let allow = parse_allow_list(allow).unwrap();
    Egress::new(EgressPolicy { allow, ..EgressPolicy::default() }).unwrap()
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn refused(result: Result<EgressResponse, EgressError>) -> String {
    match result {
        Err(EgressError::RefusedAddress { host }) => host,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn an_answer_arrives_with_what_the_server_says_about_it() {
    let (listener, base) = bind("127.0.0.1").await;
    let seen = serve(listener, |_| {
        let headers = "content-type: Text/HTML; Charset=\"UTF-8\"\r\netag: \"e1\"\r\nlast-modified: Mon\r\ncontent-length: 5";
        Reply::Whole([head(headers), b"hello".to_vec()].concat())
    });
    let response = egress("127.0.0.1").send(EgressRequest::get(url(&base), ROOMY)).await.unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(response.content_type().as_deref(), Some("text/html"));
    assert_eq!(response.charset().as_deref(), Some("utf-8"));
    assert_eq!((response.etag(), response.last_modified()), (Some("\"e1\""), Some("Mon")));
    assert_eq!(response.bytes().await.unwrap(), "hello");
    assert!(seen.lock()[0].contains("accept-encoding: gzip\r\n"));
    assert!(seen.lock()[0].contains(&format!("user-agent: lectern/{}", env!("CARGO_PKG_VERSION"))));
}

#[tokio::test]
async fn literal_addresses_that_are_not_public_are_refused_however_they_are_spelt() {
    let egress = egress("10.9.0.0/16");
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "0177.0.0.1",
        "2130706433",
        "0x7f000001",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "①②⑦.0.0.1",
        "0",
        "169.254.169.254",
        "10.0.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::169.254.169.254]",
        "[2002:7f00:1::]",
        "[fd00:ec2::254]",
        "[fe80::1]",
    ] {
        let result = egress.send(EgressRequest::get(url(&format!("http://{host}/")), ROOMY)).await;
        refused(result);
    }
    assert_eq!(egress.check_url(&url("http://10.9.1.1/")), Ok(()));
    assert_eq!(egress.check_url(&url("http://[::ffff:10.9.1.1]/")), Ok(()));
    assert_eq!(egress.check_url(&url("https://93.184.215.14/")), Ok(()));
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_refused_before_any_connection() {
    let (listener, base) = bind("127.0.0.1").await;
    let seen = serve(listener, |_| ok("secret"));
    let by_name = base.replace("127.0.0.1", "LocalHost");
    let host = refused(egress("10.0.0.0/8").send(EgressRequest::get(url(&by_name), ROOMY)).await);
    assert_eq!(host, "localhost");
    assert!(seen.lock().is_empty());

    let opened = egress("127.0.0.0/8, ::1").send(EgressRequest::get(url(&by_name), ROOMY)).await.unwrap();
    assert_eq!(opened.bytes().await.unwrap(), "secret");
}

#[test]
fn a_name_with_one_private_address_among_public_ones_is_refused() {
    let guard = AddressGuard::new(Vec::new());
    let public: SocketAddr = "8.8.8.8:0".parse().unwrap();
    let private: SocketAddr = "10.0.0.1:0".parse().unwrap();
    assert!(permitted(&guard, "mixed.example", &[public]).is_ok());
    let mixed = permitted(&guard, "mixed.example", &[public, private]);
    assert!(matches!(mixed, Err(ResolveError::Refused)));
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_unreachable() {
    // A label longer than DNS allows: the system's resolver says no without asking anyone.
    let host = format!("{}.invalid", "x".repeat(64));
    let error =
        egress("").send(EgressRequest::get(url(&format!("http://{host}/")), ROOMY)).await.unwrap_err();
    assert_eq!(error, EgressError::Dns { host });
}

/// Whoever could tell them apart could try names, and ports, of the network that the service is in.
#[tokio::test]
async fn a_refused_name_a_name_that_does_not_exist_and_a_closed_port_are_told_alike() {
    let (listener, base) = bind("127.0.0.1").await;
    drop(listener);
    let by_name = base.replace("127.0.0.1", "localhost");
    let nowhere = format!("http://{}.invalid/", "x".repeat(64));
    let told = async |allow: &str, address: &str| {
        let error = egress(allow).send(EgressRequest::get(url(address), ROOMY)).await.unwrap_err();
        let host = url(address).host_str().unwrap().to_owned();
        (error.code(), error.is_retryable(), error.to_string().replace(&host, "HOST"))
    };
    let refused = told("", &by_name).await;
    assert_eq!(refused.0, "refused_address");
    assert_eq!(refused, told("", &nowhere).await);
    assert_eq!(refused, told("127.0.0.0/8, ::1", &by_name).await);
    // What its own digits tell is no secret, and is not tried again.
    let (code, retryable, message) = told("", &base).await;
    assert_eq!((code, retryable, message), ("refused_address", false, refused.2));
}

#[tokio::test]
async fn a_closed_port_is_unreachable_and_a_port_without_tls_says_so() {
    let (listener, base) = bind("127.0.0.1").await;
    drop(listener);
    let error = egress("127.0.0.1").send(EgressRequest::get(url(&base), ROOMY)).await.unwrap_err();
    assert_eq!(error, EgressError::Connect { host: "127.0.0.1".into() });

    let (listener, base) = bind("127.0.0.1").await;
    serve(listener, |_| Reply::Whole(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()));
    let secure = base.replace("http:", "https:");
    let error = egress("127.0.0.1").send(EgressRequest::get(url(&secure), ROOMY)).await.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), ("tls_failed", false));
}

#[tokio::test]
async fn only_http_without_user_and_password_is_fetched() {
    let egress = egress("0.0.0.0/0");
    for wrong in [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "data:text/plain,x",
        "unix:/run/x",
    ] {
        let error = egress.send(EgressRequest::get(url(wrong), ROOMY)).await.unwrap_err();
        assert_eq!(error.code(), "invalid_url", "{wrong}");
    }
    for wrong in
        ["http://user:hunter2@example.com/", "https://token@example.com/", "http://:hunter2@example.com/"]
    {
        let error = egress.send(EgressRequest::get(url(wrong), ROOMY)).await.unwrap_err();
        assert!(error.to_string().contains("authorization"), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused() {
    for target in ["http://127.0.0.2/", "http://[::1]/", "http://169.254.169.254/latest/meta-data"] {
        let (listener, base) = bind("127.0.0.1").await;
        serve(listener, move |_| redirect(302, target));
        let result = egress("127.0.0.1/32").send(EgressRequest::get(url(&base), ROOMY)).await;
        assert_eq!(refused(result), url(target).host_str().unwrap());
    }
    // By name: the first server's network is opened, the one that the name resolves to is not.
    let (listener, base) = bind("127.0.0.9").await;
    serve(listener, |_| redirect(302, "http://localhost/"));
    assert_eq!(refused(egress("127.0.0.9").send(EgressRequest::get(url(&base), ROOMY)).await), "localhost");
}

#[tokio::test]
async fn a_redirect_to_what_cannot_be_requested_is_refused_as_one() {
    for target in ["file:///etc/passwd", "ftp://example.com/", "http://", "http://ada:hunter2@127.0.0.1/"] {
        let (listener, base) = bind("127.0.0.1").await;
        serve(listener, move |_| redirect(302, target));
        let error = egress("127.0.0.1").send(EgressRequest::get(url(&base), ROOMY)).await.unwrap_err();
        assert_eq!(error.code(), "refused_redirect", "{target}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn five_redirects_are_followed_and_a_sixth_is_an_error() {
    let (listener, base) = bind("127.0.0.1").await;
    let seen = serve(listener, |line| {
        let left: u32 = line.split(['/', ' ']).nth(2).and_then(|number| number.parse().ok()).unwrap_or(0);
        if left == 0 { ok("there") } else { redirect(301, &format!("/{}", left - 1)) }
    });
    let egress = egress("127.0.0.1");
    let response = egress.send(EgressRequest::get(url(&format!("{base}/5")), ROOMY)).await.unwrap();
    assert_eq!(response.final_url.path(), "/0");
    assert_eq!(response.bytes().await.unwrap(), "there");
    let error = egress.send(EgressRequest::get(url(&format!("{base}/600")), ROOMY)).await.unwrap_err();
    assert_eq!(error, EgressError::TooManyRedirects { limit: 5 });
    assert_eq!(seen.lock().len(), 12);

    let mut request = EgressRequest::get(url(&format!("{base}/1")), ROOMY);
    request.follow_redirects = false;
    assert_eq!(egress.send(request).await.unwrap().status, 301);
}

#[tokio::test]
async fn credentials_stay_with_their_origin_even_when_a_redirect_comes_back() {
    let (home, home_base) = bind("127.0.0.1").await;
    let (other, other_base) = bind("127.0.0.1").await;
    let away = format!("{other_base}/away");
    let at_home = serve(home, move |line| match line {
        "GET /start HTTP/1.1" => redirect(302, "/same"),
        "GET /same HTTP/1.1" => redirect(307, &away),
        _ => ok("end"),
    });
    let back = format!("{home_base}/back");
    let elsewhere = serve(other, move |_| redirect(302, &back));

    let mut request = EgressRequest::get(url(&format!("{home_base}/start")), ROOMY);
    request.headers.insert(AUTHORIZATION, "Bearer s3cret".parse().unwrap());
    request.headers.insert("x-api-key", "s3cret".parse().unwrap());
    request.headers.insert("cookie", "id=s3cret".parse().unwrap());
    request.portable_headers.insert("accept", "text/html".parse().unwrap());
    let response = egress("127.0.0.1").send(request).await.unwrap();
    assert_eq!(response.final_url.path(), "/back");

    let at_home = at_home.lock();
    assert_eq!(at_home.len(), 3);
    for request in &at_home[..2] {
        assert_eq!(request.matches("s3cret").count(), 3, "{request}");
    }
    assert!(!at_home[2].contains("s3cret"), "{}", at_home[2]);
    let elsewhere = elsewhere.lock();
    assert!(!elsewhere[0].contains("s3cret") && !elsewhere[0].contains("referer"), "{}", elsewhere[0]);
    assert!(elsewhere[0].contains("accept: text/html"));
}

#[tokio::test]
async fn a_posted_body_is_sent_again_within_the_origin_only() {
    let (home, base) = bind("127.0.0.1").await;
    let (other, other_base) = bind("127.0.0.1").await;
    let away = other_base.clone();
    let at_home = serve(home, move |line| match line {
        "POST /kept HTTP/1.1" => redirect(308, "/end"),
        "POST /away HTTP/1.1" => redirect(308, &away),
        "POST /get HTTP/1.1" => redirect(303, "/end"),
        "POST /moved HTTP/1.1" => redirect(301, "/end"),
        _ => ok("end"),
    });
    let elsewhere = serve(other, |_| ok("leaked"));
    let egress = egress("127.0.0.1");
    let post = async |path: &str| {
        let mut request = EgressRequest::new(Method::POST, url(&format!("{base}{path}")), ROOMY);
        request.body = Some("payload".into());
        egress.send(request).await
    };
    post("/kept").await.unwrap();
    assert!(at_home.lock()[1].starts_with("post /end") && at_home.lock()[1].ends_with("payload"));
    post("/get").await.unwrap();
    assert!(at_home.lock()[3].starts_with("get /end") && !at_home.lock()[3].contains("payload"));
    for refused in ["/away", "/moved"] {
        assert_eq!(post(refused).await.unwrap_err().code(), "refused_redirect", "{refused}");
    }
    assert_eq!(at_home.lock().len(), 6, "neither is sent on");
    assert!(elsewhere.lock().is_empty());
}

#[tokio::test]
async fn silence_and_trickles_end_in_a_timeout() {
    let (listener, base) = bind("127.0.0.1").await;
    serve(listener, |line| match line {
        "GET /silent HTTP/1.1" => Reply::Stall(Vec::new()),
        "GET /stalled HTTP/1.1" => Reply::Stall(head("content-length: 5")),
        _ => Reply::Trickle(head("content-length: 1000000")),
    });
    let policy = EgressPolicy {
        allow: parse_allow_list("127.0.0.1").unwrap(),
        connect_timeout: Duration::from_millis(100),
        ..EgressPolicy::default()
    };
    let egress = Egress::new(policy).unwrap();
    let impatient = RequestLimits {
        idle_timeout: Duration::from_millis(200),
        total_timeout: Duration::from_hours(1),
        ..ROOMY
    };
    let short = RequestLimits {
        total_timeout: Duration::from_millis(300),
        idle_timeout: Duration::from_hours(1),
        ..ROOMY
    };
    for (path, limits) in [
        ("/silent", impatient),
        ("/stalled", impatient),
        ("/silent", short),
        ("/stalled", short),
        ("/trickle", short),
    ] {
        let outcome = async {
            egress.send(EgressRequest::get(url(&format!("{base}{path}")), limits)).await?.bytes().await
        };
        // Only so that a limit that does not work fails here instead of hanging.
        let outcome = tokio::time::timeout(Duration::from_secs(20), outcome).await.expect(path);
        assert_eq!(outcome, Err(EgressError::Timeout { host: "127.0.0.1".into() }), "{path}");
    }
}

#[tokio::test]
async fn a_broken_connection_or_something_else_than_http_may_be_tried_again() {
    for broken in ["", "SSH-2.0-OpenSSH_9.9\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"] {
        let (listener, base) = bind("127.0.0.1").await;
        serve(listener, move |_| Reply::Whole(broken.into()));
        let outcome =
            async { egress("127.0.0.1").send(EgressRequest::get(url(&base), ROOMY)).await?.bytes().await }
                .await
                .unwrap_err();
        assert_eq!((outcome.code(), outcome.is_retryable()), ("bad_response", true), "{broken}: {outcome:?}");
    }
}

#[tokio::test]
async fn the_operators_client_reaches_private_hosts_and_follows_no_redirect() {
    let (listener, base) = bind("127.0.0.1").await;
    let seen = serve(listener, |_| redirect(302, "/elsewhere"));
    let client = operator_client(Duration::from_secs(10), Duration::from_secs(10)).unwrap();
    assert_eq!(client.get(&base).send().await.unwrap().status(), 302);
    assert_eq!(seen.lock().len(), 1);
}

#[tokio::test]
async fn the_operator_is_told_why_a_host_does_not_answer() {
    let client = operator_client(Duration::from_secs(10), Duration::from_secs(10)).unwrap();
    let error = client.get("http://127.0.0.1:1/path?key=s3cret").send().await.unwrap_err();
    let why = why_unanswered(&error);
    assert!(why.contains("refused") && !why.contains("s3cret"), "{why}");
}

#[tokio::test]
async fn what_is_logged_or_shown_holds_no_secret() {
    let mut request = EgressRequest::get(url("http://127.0.0.1/path?key=s3cret"), ROOMY);
    request.headers.insert(AUTHORIZATION, "Bearer s3cret".parse().unwrap());
    request.body = Some("s3cret".into());
    assert!(!format!("{request:?}").contains("s3cret"));
    let error = egress("").send(request).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"));
}

/// Run by the test below, alone and in an environment with proxies.
#[tokio::test]
#[ignore = "only meaningful where the environment names a proxy"]
async fn a_server_is_reached_directly() {
    let (listener, base) = bind("127.0.0.1").await;
    serve(listener, |_| ok("direct"));
    let response = egress("127.0.0.1").send(EgressRequest::get(url(&base), ROOMY)).await.unwrap();
    assert_eq!(response.bytes().await.unwrap(), "direct");
}

#[tokio::test]
async fn proxies_from_the_environment_are_ignored() {
    let (listener, proxy) = bind("127.0.0.1").await;
    let asked = serve(listener, |_| ok("by proxy"));
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--ignored", "--exact", &format!("{module}::a_server_is_reached_directly")]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        child.env(name, &proxy);
    }
    let output = child.env_remove("no_proxy").env_remove("NO_PROXY").output().await.unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && report.contains("1 passed"), "{report}");
    assert!(asked.lock().is_empty());
}
