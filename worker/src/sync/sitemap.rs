//! Sitemaps as they are sent, which may be packed.

use async_compression::tokio::bufread::GzipDecoder;
use tokio::io::AsyncReadExt;

/// The most bytes of a sitemap, unpacked: as many as the protocol allows.
pub(super) const SITEMAP_BYTES: u64 = 50 << 20;
/// Bytes that are unpacked at a time.
const PIECE: usize = 64 << 10;
/// How gzip begins.
const GZIP: &[u8] = b"\x1f\x8b";

/// Unpacks a sitemap, if it is packed; none when it is too large or damaged.
pub(super) async fn unpacked(bytes: Vec<u8>) -> Option<Vec<u8>> {
    if !bytes.starts_with(GZIP) {
        return Some(bytes);
    }
    let (mut plain, mut piece) = (Vec::new(), vec![0; PIECE]);
    let mut decoder = GzipDecoder::new(bytes.as_slice());
    loop {
        let read = decoder.read(&mut piece).await.ok()?;
        if read == 0 {
            return Some(plain);
        }
        plain.extend_from_slice(&piece[..read]);
        if plain.len() as u64 > SITEMAP_BYTES {
            return None;
        }
        // What is in memory is always ready: nothing else would have its turn meanwhile.
        tokio::task::consume_budget().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_packed_sitemap_is_unpacked_within_bounds() {
        use async_compression::tokio::bufread::GzipEncoder;

        let packed = async |plain: &[u8]| {
            let mut packed = Vec::new();
            GzipEncoder::new(plain).read_to_end(&mut packed).await.unwrap();
            packed
        };
        assert_eq!(unpacked(packed(b"<urlset/>").await).await.as_deref(), Some(&b"<urlset/>"[..]));
        assert_eq!(unpacked(b"<urlset/>".to_vec()).await.as_deref(), Some(&b"<urlset/>"[..]));
        let bomb = packed(&vec![b' '; usize::try_from(SITEMAP_BYTES).unwrap() + 1]).await;
        assert_eq!(unpacked(bomb).await, None);
    }
}
