//! A response body, unpacked. Not left to the client's own decompression, because that stops after the first member of
//! a gzip stream (there may be several) and takes what was read so far for the whole body.

use std::{io, pin::Pin};

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::io::StreamReader;

use super::error::EgressError;

/// How brotli begins with a window of more than 16 MiB, which is none of HTTP's (RFC 7932): in its lowest seven bits. The decoder would make
/// room for up to a gigabyte at once, for a body of a few bytes.
const LARGE_WINDOW: u8 = 0b001_0001;
/// Unpacked bytes handed out at once, at most.
const PIECE: usize = 16 * 1024;
/// Codings that are known, but not read here. Other names (`utf-8`, `none`) are mistakes of servers and mean nothing.
const NOT_READ: [&str; 5] = ["deflate", "zstd", "compress", "x-compress", "dcb"];

/// What a request asks for. Everything named here is unpacked below.
pub(super) const fn accept_encoding(takes_brotli: bool) -> &'static str {
    if takes_brotli { "gzip, br" } else { "gzip" }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentCoding {
    Gzip,
    Brotli,
}

/// A body from which pieces are read until there are none.
pub(super) enum ResponseBody {
    /// Not compressed.
    Plain(reqwest::Response),
    /// Compressed, nothing read yet.
    Packed(reqwest::Response, ContentCoding),
    /// Compressed, being unpacked. The buffer is reused between pieces.
    Unpacking(Pin<Box<dyn AsyncRead + Send + Sync>>, BytesMut),
    /// Compressed in a way that is not read here.
    Unreadable,
    /// Read to its end.
    Ended,
}

impl ResponseBody {
    pub(super) fn new(response: reqwest::Response, takes_brotli: bool) -> Self {
        match coding(response.headers(), takes_brotli) {
            Ok(None) => Self::Plain(response),
            Ok(Some(coding)) => Self::Packed(response, coding),
            Err(UnsupportedCoding) => Self::Unreadable,
        }
    }

    /// The next piece, none at the end. May be dropped while it waits.
    ///
    /// # Errors
    /// [`EgressError::Decode`] and [`EgressError::Protocol`], the latter with `host`.
    pub(super) async fn next(&mut self, host: &str) -> Result<Option<Bytes>, EgressError> {
        loop {
            match self {
                Self::Ended => return Ok(None),
                Self::Unreadable => return Err(EgressError::Decode),
                Self::Plain(response) => {
                    return response.chunk().await.map_err(|error| EgressError::from_body(host, &error));
                }
                Self::Packed(response, coding) => {
                    // The answers to HEAD and conditional requests name a coding and have no body.
                    let first =
                        response.chunk().await.map_err(|error| EgressError::from_body(host, &error))?;
                    let coding = *coding;
                    if coding == ContentCoding::Brotli && first.as_deref().is_some_and(has_large_window) {
                        *self = Self::Unreadable;
                        continue;
                    }
                    *self = match (std::mem::replace(self, Self::Ended), first) {
                        (Self::Packed(response, _), Some(first)) => unpack(response, coding, first),
                        _ => Self::Ended,
                    };
                }
                Self::Unpacking(reader, buffer) => {
                    buffer.reserve(PIECE);
                    // `reserve` may leave more room than asked for; the limit on size counts in pieces.
                    let read = reader.read_buf(&mut bytes::BufMut::limit(&mut *buffer, PIECE)).await;
                    return match read {
                        Ok(0) => Ok(None),
                        Ok(_) => Ok(Some(buffer.split().freeze())),
                        Err(error) => Err(unpacking_failed(host, &error)),
                    };
                }
            }
        }
    }
}

fn has_large_window(start: &[u8]) -> bool {
    start.first().is_some_and(|byte| byte & 0b111_1111 == LARGE_WINDOW)
}

fn unpack(response: reqwest::Response, coding: ContentCoding, first: Bytes) -> ResponseBody {
    let rest = response.bytes_stream().map_err(io::Error::other);
    let packed = StreamReader::new(Box::pin(stream::once(std::future::ready(Ok(first))).chain(rest)));
    let reader: Pin<Box<dyn AsyncRead + Send + Sync>> = match coding {
        ContentCoding::Gzip => {
            let mut decoder = GzipDecoder::new(packed);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        ContentCoding::Brotli => Box::pin(BrotliDecoder::new(packed)),
    };
    ResponseBody::Unpacking(reader, BytesMut::new())
}

/// A transport's error passes through the decoder unchanged; any other is the decoder's own.
fn unpacking_failed(host: &str, error: &io::Error) -> EgressError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<reqwest::Error>()) {
        Some(error) => EgressError::from_body(host, error),
        None => EgressError::Decode,
    }
}

struct UnsupportedCoding;

/// The one coding that the headers name. Several on top of each other are not read: nobody sends them but to multiply
/// the work of unpacking. Nor is brotli where nobody asked for it, since it takes memory that was not counted on.
fn coding(headers: &HeaderMap, takes_brotli: bool) -> Result<Option<ContentCoding>, UnsupportedCoding> {
    let mut found = None;
    let values = headers.get_all(CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    for name in values.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase()) {
        let coding = match name.as_str() {
            "gzip" | "x-gzip" => ContentCoding::Gzip,
            "br" if takes_brotli => ContentCoding::Brotli,
            other if other == "br" || NOT_READ.contains(&other) => return Err(UnsupportedCoding),
            _ => continue,
        };
        if found.replace(coding).is_some() {
            return Err(UnsupportedCoding);
        }
    }
    Ok(found)
}
