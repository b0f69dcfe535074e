//! A client that is bound to one site, and the operator's proxy for it.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use super::*;

fn bound(site: &str, proxy: Option<String>) -> Egress {
    let policy = EgressPolicy {
        allow: parse_allow_list("127.0.0.1").unwrap(),
        site: SiteScope::of(&url(site)),
        proxy: proxy.map(SecretString::from),
        ..EgressPolicy::default()
    };
    Egress::new(policy).unwrap()
}

fn is_other_site(result: &Result<EgressResponse, EgressError>) -> bool {
    matches!(result, Err(EgressError::OtherSite { .. }))
}

#[tokio::test]
async fn a_bound_client_asks_only_its_site_and_follows_no_redirect_away() {
    let (elsewhere, elsewhere_base) = bind("127.0.0.1").await;
    let seen_elsewhere = serve(elsewhere, |_| ok("secret"));
    let (listener, base) = bind("127.0.0.1").await;
    let leads = elsewhere_base.clone();
    serve(listener, move |line| if line.contains("/away") { redirect(302, &leads) } else { ok("here") });
    let egress = bound(&base, None);
    let here = egress.send(EgressRequest::get(url(&format!("{base}/x")), ROOMY)).await.unwrap();
    assert_eq!(here.bytes().await.unwrap(), "here");
    for address in [format!("{base}/away"), elsewhere_base, base.replace("http:", "https:")] {
        assert!(is_other_site(&egress.send(EgressRequest::get(url(&address), ROOMY)).await), "{address}");
    }
    assert!(seen_elsewhere.lock().is_empty());
}

#[tokio::test]
async fn a_site_at_a_private_address_is_refused_like_any_other_unless_it_is_opened() {
    let egress = Egress::new(EgressPolicy {
        site: SiteScope::of(&url("http://127.0.0.1:9")),
        ..EgressPolicy::default()
    });
    refused(egress.unwrap().send(EgressRequest::get(url("http://127.0.0.1:9/"), ROOMY)).await);
}

#[tokio::test]
async fn a_proxy_is_given_the_name_of_the_site_which_is_not_looked_up_here() {
    let (listener, base) = bind("127.0.0.1").await;
    let seen = serve(listener, |_| ok("by the proxy"));
    let proxy = base.replace("127.0.0.1", "me:hunter2@localhost");
    let egress = bound("http://www.video.test", Some(proxy));
    let response = egress.send(EgressRequest::get(url("http://m.video.test/x"), ROOMY)).await.unwrap();
    assert_eq!(response.bytes().await.unwrap(), "by the proxy");
    {
        let seen = seen.lock();
        assert!(seen[0].starts_with("get http://m.video.test/x http/1.1\r\n"), "{}", seen[0]);
        assert!(seen[0].contains("proxy-authorization: basic bwu6ahvudgvymg==\r\n"), "{}", seen[0]);
    }
    for address in ["http://other.test/", "http://127.0.0.1/", "http://localhost/", "https://www.video.test/"]
    {
        assert!(is_other_site(&egress.send(EgressRequest::get(url(address), ROOMY)).await), "{address}");
    }
    assert_eq!(seen.lock().len(), 1);
    assert!(!format!("{egress:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel_to_a_secure_site() {
    let (site, _) = bind("127.0.0.1").await;
    let at = site.local_addr().unwrap();
    // Nothing of TLS comes back: what matters is that the tunnel leads to the site, and that the failure is the site's.
    let seen = serve(site, |_| Reply::Whole(b"no TLS here".to_vec()));
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy_base = format!("http://{}", proxy.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let (mut client, _) = proxy.accept().await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            client.read_buf(&mut head).await?;
        }
        client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
        let mut server = TcpStream::connect(at).await?;
        copy_bidirectional(&mut client, &mut server).await.ok();
        Ok::<_, io::Error>(String::from_utf8_lossy(&head).into_owned())
    });
    let egress = bound("https://www.video.test", Some(proxy_base));
    let error = egress.send(EgressRequest::get(url("https://www.video.test/x"), ROOMY)).await.unwrap_err();
    assert_eq!(error, EgressError::Tls { host: "www.video.test".to_owned() });
    let head = asked.await.unwrap().unwrap();
    assert!(head.starts_with("CONNECT www.video.test:443 HTTP/1.1\r\n"), "{head}");
    assert_eq!(seen.lock().len(), 1);
}

#[test]
fn a_proxy_without_a_site_or_of_an_unknown_kind_is_not_used() {
    for (site, proxy) in [(None, "http://127.0.0.1:1"), (Some("http://a.test"), "http://")] {
        let site = site.and_then(|site| SiteScope::of(&url(site)));
        let policy = EgressPolicy { site, proxy: Some(proxy.into()), ..EgressPolicy::default() };
        assert!(matches!(Egress::new(policy), Err(EgressError::Setup { .. })), "{proxy}");
    }
}
