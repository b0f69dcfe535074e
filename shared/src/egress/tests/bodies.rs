//! Bodies: compressed ones, and those that are too large.

use super::*;

/// A gzip member that unpacks to 64 KiB of zeros; members may follow each other without end.
const GZIP_64_KIB: [u8; 96] = {
    let mut member = [0; 96];
    let start = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xed, 0xc1, 1, 1, 0, 0, 0, 0x80, 0x90, 0xfe, 0xaf, 0xee, 8, 0x0a,
    ];
    let end = [0x6a, 0xeb, 0x8e, 0x97, 0xd7, 0, 0, 1, 0];
    let mut i = 0;
    while i < start.len() {
        member[i] = start[i];
        i += 1;
    }
    i = 0;
    while i < end.len() {
        member[96 - end.len() + i] = end[i];
        i += 1;
    }
    member
};

/// `hello`.
const BROTLI_HELLO: [u8; 9] = [0x0b, 0x02, 0x80, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x03];
/// The same, with a window of a gigabyte.
const BROTLI_LARGE_WINDOW: [u8; 11] = [0x11, 0x1e, 0x08, 0x00, 0x02, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x03];
/// 64 MiB of zeros.
const BROTLI_BOMB: [u8; 106] = [
    0xcb, 0xff, 0xff, 0x3f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x8f, 0xff, 0xff, 0x7f,
    0xf0, 0x4f, 0x00, 0xc4, 0x61, 0x11, 0x80, 0xee, 0xfd, 0x1f, 0xff, 0xff, 0xff, 0xe0, 0x9f, 0x00, 0x88,
    0xc3, 0x02, 0x00, 0xdd, 0xfb, 0x3f, 0xfe, 0xff, 0xff, 0xc1, 0x3f, 0x01, 0x10, 0x87, 0x05, 0x00, 0xba,
    0xf7, 0x7f, 0xfc, 0xff, 0xff, 0x83, 0x7f, 0x02, 0x20, 0x0e, 0x0b, 0x00, 0x74, 0xef, 0xff, 0xf8, 0xff,
    0xff, 0x07, 0xff, 0x04, 0x40, 0x1c, 0x16, 0x00, 0xe8, 0xde, 0xff, 0xf1, 0xff, 0xff, 0x0f, 0xfe, 0x09,
    0x80, 0x38, 0x2c, 0x00, 0xd0, 0xbd, 0xff, 0xcb, 0xff, 0xff, 0x3f, 0xfc, 0x13, 0x00, 0x71, 0x58, 0x00,
    0xa0, 0x7b, 0xff, 0x07,
];

/// Reads an answer piece by piece and keeps nothing: how many bytes there were, and how it ended.
async fn read(mut answer: EgressResponse) -> (u64, Result<(), EgressError>) {
    let mut bytes = 0;
    loop {
        match answer.chunk().await {
            Ok(Some(piece)) => bytes += piece.len() as u64,
            Ok(None) => return (bytes, Ok(())),
            Err(error) => return (bytes, Err(error)),
        }
    }
}

#[tokio::test]
async fn compressed_bodies_are_unpacked_and_a_bomb_stops_at_the_limit() {
    let (listener, base) = bind("127.0.0.1").await;
    serve(listener, |line| {
        let encoding = if line.contains("brotli") { "br" } else { "GZip" };
        let head = head(&format!("content-encoding: {encoding}"));
        match line {
            "GET /brotli HTTP/1.1" => Reply::Whole([head, BROTLI_HELLO.to_vec()].concat()),
            "GET /brotli-bomb HTTP/1.1" => Reply::Whole([head, BROTLI_BOMB.to_vec()].concat()),
            "HEAD /small HTTP/1.1" => Reply::Whole(head),
            "GET /two HTTP/1.1" => Reply::Whole([head, GZIP_64_KIB.repeat(2)].concat()),
            "GET /broken HTTP/1.1" => Reply::Whole(
                [
                    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 96\r\n\r\n",
                    &GZIP_64_KIB[..60],
                ]
                .concat(),
            ),
            "GET /small HTTP/1.1" => Reply::Whole([head, GZIP_64_KIB.to_vec()].concat()),
            "GET /cut HTTP/1.1" => Reply::Whole([head, GZIP_64_KIB[..60].to_vec()].concat()),
            "GET /not HTTP/1.1" => Reply::Whole([head, b"plain text".to_vec()].concat()),
            _ => Reply::Endless(head, GZIP_64_KIB.repeat(64)),
        }
    });
    let egress = egress("127.0.0.1");
    let get = async |path: &str| {
        let request = EgressRequest::get(url(&format!("{base}{path}")), ROOMY);
        egress.send(EgressRequest { takes_brotli: true, ..request }).await.unwrap()
    };

    assert_eq!(read(get("/small").await).await, (64 * 1024, Ok(())));

    assert_eq!(get("/two").await.bytes().await.map(|body| body.len()), Ok(128 * 1024));
    assert_eq!(get("/brotli").await.bytes().await.unwrap(), "hello");
    let only_head = EgressRequest::new(Method::HEAD, url(&format!("{base}/small")), ROOMY);
    assert_eq!(egress.send(only_head).await.unwrap().bytes().await.unwrap(), "");

    let (bytes, end) = read(get("/bomb").await).await;
    assert_eq!(end, Err(EgressError::TooLarge { limit: ROOMY.max_bytes }));
    assert!(bytes <= ROOMY.max_bytes);
    assert_eq!(get("/bomb").await.bytes().await, Err(EgressError::TooLarge { limit: ROOMY.max_bytes }));

    assert_eq!(
        get("/brotli-bomb").await.bytes().await,
        Err(EgressError::TooLarge { limit: ROOMY.max_bytes })
    );

    assert_eq!(get("/broken").await.bytes().await.unwrap_err().code(), "bad_response");
    assert_eq!(get("/cut").await.bytes().await, Err(EgressError::Decode));
    assert_eq!(get("/not").await.bytes().await, Err(EgressError::Decode));
}

/// For each answer that is read its decoder has a window of up to 16 MiB, or of a gigabyte where that is not looked at.
#[tokio::test]
async fn brotli_is_unpacked_only_where_it_was_asked_for_and_with_a_window_of_https_own() {
    let (listener, base) = bind("127.0.0.1").await;
    let seen = serve(listener, |line| {
        let body = if line.contains("large") { BROTLI_LARGE_WINDOW.to_vec() } else { BROTLI_HELLO.to_vec() };
        Reply::Whole([head("content-encoding: br"), body].concat())
    });
    let egress = egress("127.0.0.1");
    let get = async |path: &str, takes_brotli| {
        let request = EgressRequest::get(url(&format!("{base}{path}")), ROOMY);
        egress.send(EgressRequest { takes_brotli, ..request }).await.unwrap().bytes().await
    };
    assert_eq!(get("/hello", true).await.unwrap(), "hello");
    assert!(seen.lock()[0].contains("accept-encoding: gzip, br\r\n"));
    assert_eq!(get("/hello", false).await, Err(EgressError::Decode));
    assert_eq!(get("/large", true).await, Err(EgressError::Decode));
}

#[tokio::test]
async fn a_compression_that_was_not_asked_for_is_an_error_and_a_mistaken_one_is_ignored() {
    for (encoding, readable) in
        [("zstd", false), ("deflate", false), ("gzip, br", false), ("utf-8", true), ("identity", true)]
    {
        let (listener, base) = bind("127.0.0.1").await;
        let headers = format!("content-encoding: {encoding}\r\ncontent-length: 4");
        serve(listener, move |_| Reply::Whole([head(&headers), b"body".to_vec()].concat()));
        let body =
            egress("127.0.0.1").send(EgressRequest::get(url(&base), ROOMY)).await.unwrap().bytes().await;
        assert_eq!(body.is_ok(), readable, "{encoding}: {body:?}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_whether_announced_or_endless() {
    let (listener, base) = bind("127.0.0.1").await;
    serve(listener, |line| match line {
        "GET /announced HTTP/1.1" => Reply::Stall(head("content-length: 1048577")),
        "GET /missing HTTP/1.1" => {
            Reply::Stall(b"HTTP/1.1 404 No\r\ncontent-length: 9999999999\r\n\r\n".to_vec())
        }
        "GET /exact HTTP/1.1" => {
            Reply::Whole([head("content-length: 1048576"), vec![b'x'; 1 << 20]].concat())
        }
        _ => Reply::Endless(head("x-endless: yes"), vec![b'x'; 65536]),
    });
    let egress = egress("127.0.0.1");
    let get = async |path: &str| egress.send(EgressRequest::get(url(&format!("{base}{path}")), ROOMY)).await;
    let too_large = EgressError::TooLarge { limit: ROOMY.max_bytes };
    assert_eq!(get("/announced").await.unwrap_err(), too_large);
    assert_eq!(get("/endless").await.unwrap().bytes().await, Err(too_large));
    assert_eq!(get("/exact").await.unwrap().bytes().await.map(|body| body.len()), Ok(1 << 20));
    assert_eq!(get("/missing").await.unwrap().status, 404);
}
