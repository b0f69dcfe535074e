//! Addresses of videos.

use lectern_shared::{config::VideoSettings, egress::SiteScope};
use url::Url;

/// Characters of an id.
const ID_LENGTH: usize = 11;
/// Domains that only videos are on, besides the one that is set: those of the site's own links.
const DOMAINS: [&str; 2] = ["youtube.com", "youtube-nocookie.com"];
/// The domain of its short links, whose path is the id.
const SHORT_DOMAIN: &str = "youtu.be";
/// What comes before the id in a path.
const FOLDERS: [&str; 7] = ["shorts", "live", "embed", "v", "e", "vi", "watch"];
/// What stands where an id would, and is a player for something else; as long as an id, both of them.
const NO_VIDEOS: [&str; 2] = ["videoseries", "live_stream"];

/// The id in the address of a video on the site; none when it is the address of something else. What stands in the id's
/// place is returned as it is, also when it cannot be an id.
pub(in crate::source) fn video_id(url: &Url, site: &VideoSettings) -> Option<String> {
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let host = url.domain().map(|name| name.strip_suffix('.').unwrap_or(name));
    let is_of = |domain: &str| {
        host.and_then(|host| host.strip_suffix(domain))
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let mut segments = url.path_segments()?.filter(|segment| !segment.is_empty());
    let first = segments.next();
    let id = if is_of(SHORT_DOMAIN) {
        first.map(str::to_owned)
    } else if DOMAINS.into_iter().any(is_of)
        || SiteScope::of(&site.site).is_some_and(|scope| scope.contains(url))
    {
        let folder = first?;
        let in_path = segments.next().filter(|_| FOLDERS.contains(&folder)).map(str::to_owned);
        in_path.or_else(|| {
            let asks = matches!(folder, "watch" | "watch_popup");
            let (_, id) = url.query_pairs().find(|(name, _)| asks && name == "v")?;
            Some(id.into_owned())
        })
    } else {
        None
    };
    id.filter(|id| !id.is_empty() && !NO_VIDEOS.contains(&id.as_str()))
}

/// Whether an id can be one.
pub(super) fn is_id(id: &str) -> bool {
    id.len() == ID_LENGTH
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_at(site: &str, url: &str) -> Option<String> {
        let site = VideoSettings { site: site.parse().unwrap(), client: None, proxy: None };
        video_id(&url.parse().unwrap(), &site)
    }

    #[test]
    fn every_form_of_a_videos_address_is_known() {
        for url in [
            "https://www.youtube.com/watch?v=abc-DEF_123",
            "http://youtube.com/watch?list=x&v=abc-DEF_123&t=10s",
            "https://m.youtube.com/watch?v=abc-DEF_123#x",
            "https://music.youtube.com/watch?v=abc-DEF_123",
            "https://www.youtube.com./watch/?v=abc-DEF_123",
            "https://www.youtube.com/watch/abc-DEF_123",
            "https://www.youtube.com/watch_popup?v=abc-DEF_123",
            "https://youtu.be/abc-DEF_123?t=4",
            "https://www.youtu.be/abc-DEF_123/",
            "https://www.youtube.com/shorts/abc-DEF_123",
            "https://www.youtube.com/live/abc-DEF_123?feature=share",
            "https://www.youtube.com/embed/abc-DEF_123",
            "https://www.youtube-nocookie.com/embed/abc-DEF_123",
            "https://www.youtube.com/v/abc-DEF_123",
            "http://127.0.0.1:8181/watch?v=abc-DEF_123",
        ] {
            assert_eq!(id_at("http://127.0.0.1:8181", url).as_deref(), Some("abc-DEF_123"), "{url}");
        }
    }

    #[test]
    fn the_address_of_something_else_has_none() {
        for url in [
            "https://www.youtube.com/",
            "https://www.youtube.com/watch",
            "https://www.youtube.com/watch?v=",
            "https://www.youtube.com/playlist?list=PL1",
            "https://www.youtube.com/embed/videoseries?list=PL1",
            "https://www.youtube.com/embed/live_stream?channel=UC1",
            "https://www.youtube.com/@somebody/videos",
            "https://www.youtube.com/results?v=abc-DEF_123",
            "https://notyoutube.com/watch?v=abc-DEF_123",
            "https://youtube.com.example.org/watch?v=abc-DEF_123",
            "https://example.org/youtu.be/abc-DEF_123",
            "https://youtu.be/",
            "http://127.0.0.1:8182/watch?v=abc-DEF_123",
            "ftp://youtube.com/watch?v=abc-DEF_123",
        ] {
            assert_eq!(id_at("http://127.0.0.1:8181", url), None, "{url}");
        }
    }

    #[test]
    fn an_id_has_eleven_characters_of_its_alphabet() {
        assert!(is_id("abc-DEF_123"));
        for id in ["", "abc", "abc-DEF_1234", "abc/DEF_123", "abc DEF_123", "äbc-DEF_12"] {
            assert!(!is_id(id), "{id}");
        }
        assert_eq!(id_at("https://v.example", "https://youtu.be/short").as_deref(), Some("short"));
    }
}
