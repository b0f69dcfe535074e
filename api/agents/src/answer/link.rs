//! Where the passage that a citation names can be opened.

use lectern_shared::{
    address::holds_key,
    model::{
        document::{DocumentType, addresses},
        place::SourceSpan,
    },
};
use url::Url;

use crate::search::PassageHit;

/// The video site's domains, and the one of its short addresses.
const VIDEO_DOMAINS: [&str; 3] = ["youtube.com", "youtube-nocookie.com", "youtu.be"];

/// The address of a passage: of its page, of its moment, or of its document, which may have several. None for what has no address, where
/// nobody knows which of several the passage is from, and for an address that holds a key: whoever reads an answer is not to have that too.
pub fn passage_url(passage: &PassageHit) -> Option<String> {
    place_url(passage.document_type, &passage.document_url, &passage.chunk.place.0)
}

/// [`passage_url`] for a place in a document of this type and at this address.
pub fn place_url(r#type: DocumentType, url: &str, place: &SourceSpan) -> Option<String> {
    let addresses = addresses(r#type, url);
    let address = match (addresses.as_slice(), place.address) {
        ([address], _) => address,
        (several, number) => several.get(usize::try_from(number?).ok()?.checked_sub(1)?)?,
    };
    let is_shown = |url: &Url| matches!(url.scheme(), "http" | "https") && !holds_key(url);
    let mut url = Url::parse(address).ok().filter(is_shown)?;
    if let Some(page) = place.page {
        url.set_fragment(Some(&format!("page={page}")));
    } else if let Some(start) = place.start.filter(|start| start.is_finite() && *start >= 0.0) {
        to_moment(&mut url, start);
    } else {
        // As it was given, to the letter.
        return Some((*address).to_owned());
    }
    Some(url.into())
}

/// Begins a video at this second. The site's own player is told in the query, any other by a media fragment.
fn to_moment(url: &mut Url, start: f64) {
    let second = start.floor();
    let is_of = |domain: &str| {
        let rest = url.domain().and_then(|host| host.trim_end_matches('.').strip_suffix(domain));
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    // Whichever domain the service is set to get videos from.
    let is_watched = url.path() == "/watch" && url.query_pairs().any(|(name, _)| name == "v");
    if !is_watched && !VIDEO_DOMAINS.into_iter().any(is_of) {
        url.set_fragment(Some(&format!("t={second}")));
        return;
    }
    let embedded = url.path().starts_with("/embed/");
    let others: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| !matches!(name.as_ref(), "t" | "start" | "time_continue"))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let moment = if embedded { ("start", second.to_string()) } else { ("t", format!("{second}s")) };
    url.query_pairs_mut().clear().extend_pairs(others).append_pair(moment.0, &moment.1);
    // It may name a moment too.
    url.set_fragment(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_leads_to_the_page_or_to_the_moment_of_its_passage() {
        use DocumentType::{Pdf, Txt, Url, Video};
        let of = |number| SourceSpan { address: Some(number), ..SourceSpan::default() };
        let (of_second, of_ninth) = (of(2), of(9));
        let (plain, on_page, at_moment) = (
            SourceSpan::default(),
            SourceSpan { page: Some(7), page_end: Some(8), ..SourceSpan::default() },
            SourceSpan { start: Some(83.9), end: Some(90.0), ..SourceSpan::default() },
        );
        for (r#type, url, place, link) in [
            (Pdf, "https://a.example/r.pdf", &on_page, Some("https://a.example/r.pdf#page=7")),
            (Url, "https://a.example/r?v=1#page=2", &on_page, Some("https://a.example/r?v=1#page=7")),
            (Txt, "https://a.example/Ä b,c", &plain, Some("https://a.example/Ä b,c")),
            (Video, "https://a.example/talk.vtt", &at_moment, Some("https://a.example/talk.vtt#t=83")),
            (
                Video,
                "https://www.youtube.com/watch?v=abc-DEF_123&t=5s#t=9",
                &at_moment,
                Some("https://www.youtube.com/watch?v=abc-DEF_123&t=83s"),
            ),
            (
                Video,
                "https://videos.example/watch?v=abc-DEF_123",
                &at_moment,
                Some("https://videos.example/watch?v=abc-DEF_123&t=83s"),
            ),
            (Url, "https://youtu.be/abc-DEF_123", &at_moment, Some("https://youtu.be/abc-DEF_123?t=83s")),
            (
                Video,
                "https://www.youtube.com/embed/abc-DEF_123?start=1",
                &at_moment,
                Some("https://www.youtube.com/embed/abc-DEF_123?start=83"),
            ),
            (Video, "https://notyoutube.com/a", &at_moment, Some("https://notyoutube.com/a#t=83")),
            (Url, "https://a.example, https://b.example", &plain, None),
            (Url, "https://a.example, https://b.example", &of_second, Some("https://b.example")),
            (Url, "https://a.example", &of_second, Some("https://a.example")),
            (Url, "https://a.example, https://b.example", &of_ninth, None),
            (Pdf, "https://a.example/r.pdf?X-Amz-Signature=5f0c", &on_page, None),
            (Url, "https://a.example/r?id=4&token=hunter2", &plain, None),
            (Url, "https://a.example/?key=hunter2, https://b.example", &of_second, Some("https://b.example")),
            (Txt, "", &plain, None),
            (Txt, "", &on_page, None),
        ] {
            assert_eq!(place_url(r#type, url, place).as_deref(), link, "{url}");
        }
    }
}
