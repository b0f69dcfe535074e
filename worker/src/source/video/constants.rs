//! What the video site is told and asked, all of it in one place because all of it ages: the site documents none of
//! this, and refuses players that are too old after a year or two. `LECTERN_VIDEO_CLIENT` puts another player first
//! without a new release.

use std::time::Duration;

/// A player that the site serves: what it says of itself decides what the site wants from it in return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlayerClient {
    /// Its name in the request.
    pub(super) name: String,
    /// Its version in the request.
    pub(super) version: String,
    /// Its number in the header; the site can do without.
    pub(super) number: Option<&'static str>,
    /// How it calls itself; without it the service's own name is sent.
    pub(super) user_agent: Option<String>,
    /// Other members of the request's `client` object.
    pub(super) context: &'static [(&'static str, &'static str)],
}

/// One of the players below, as a version of it is written in them.
struct BuiltIn {
    name: &'static str,
    version: &'static str,
    number: &'static str,
    /// `{version}` stands for the version.
    user_agent: &'static str,
    context: &'static [(&'static str, &'static str)],
}

/// Asked in this order until one is served. As of autumn 2025 the site gives caption addresses to the first two that work
/// without a proof-of-origin token, and to the browser's often some that do not.
const BUILT_IN: [BuiltIn; 3] = [
    BuiltIn {
        name: "ANDROID",
        version: "20.10.38",
        number: "3",
        user_agent: "com.google.android.youtube/{version} (Linux; U; Android 11) gzip",
        context: &[("osName", "Android"), ("osVersion", "11")],
    },
    BuiltIn {
        name: "IOS",
        version: "20.10.4",
        number: "5",
        user_agent: "com.google.ios.youtube/{version} (iPhone16,2; U; CPU iOS 18_3_2 like Mac OS X;)",
        context: &[
            ("deviceMake", "Apple"),
            ("deviceModel", "iPhone16,2"),
            ("osName", "iPhone"),
            ("osVersion", "18.3.2.22D82"),
        ],
    },
    BuiltIn { name: "WEB", version: "2.20250312.04.00", number: "1", user_agent: BROWSER, context: &[] },
];

/// How a browser calls itself. The watch page is made for browsers, and answers others with pages that lack half of it.
pub(super) const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/134.0.0.0 Safari/537.36";

/// The language that the site's sentences are asked for: they are the only thing that tells why a video is refused.
pub(super) const LANGUAGE: &str = "en";
/// The same, as a header.
pub(super) const ACCEPT_LANGUAGE: &str = "en-US,en;q=0.9";

/// Where a video is watched; `v` is its id.
pub(super) const WATCH_PATH: &str = "/watch";
/// Where players ask for a video.
pub(super) const PLAYER_PATH: &str = "/youtubei/v1/player";
/// The format of timed text that is asked for first: JSON, with the times of words.
pub(super) const TIMED_TEXT_FORMAT: &str = "json3";

/// In a caption track's address: it answers with nothing unless a proof-of-origin token is added.
pub(super) const WANTS_TOKEN: (&str, &str) = ("exp", "xpe");

/// In the watch page: the key that players send. It is the same for everybody, and public.
pub(super) const API_KEY: &str = "INNERTUBE_API_KEY";
/// In the watch page: who the site takes us for, which players send back.
pub(super) const VISITOR: &str = "visitorData";
/// In the watch page: the version of the browser's player.
pub(super) const BROWSER_VERSION: &str = "INNERTUBE_CLIENT_VERSION";

/// In a page that asks for consent to cookies: where its form is sent.
pub(super) const CONSENT_FORM: &str = "action=\"https://consent.";
/// In that form: the input whose value goes into the cookie.
pub(super) const CONSENT_INPUT: &str = "name=\"v\"";
/// The cookie that says that the form was answered, before the form's value.
pub(super) const CONSENT_COOKIE: (&str, &str) = ("CONSENT", "YES+");
/// The newer cookie for the same, with the answer that accepts nothing beyond what is needed.
pub(super) const CONSENT_STATE_COOKIE: (&str, &str) = ("SOCS", "CAI");

/// In a page that asks whether one is a person.
pub(super) const CAPTCHA: &str = "class=\"g-recaptcha\"";

/// Most bytes of a watch page. They have about 1.5 MB.
pub(super) const MAX_PAGE: u64 = 8 << 20;
/// Most bytes of a player's answer. They have about 300 kB.
pub(super) const MAX_PLAYER: u64 = 8 << 20;
/// Most bytes of timed text. Twelve hours of automatic captions have about 12 MB.
pub(super) const MAX_TIMED_TEXT: u64 = 64 << 20;
/// A site that sends nothing for so long is given up.
pub(super) const SILENCE: Duration = Duration::from_secs(20);
/// Most cookies that are kept for one run, and the longest one.
pub(super) const MAX_COOKIES: usize = 32;
pub(super) const MAX_COOKIE: usize = 4 << 10;
/// Most characters of a title.
pub(super) const MAX_TITLE: usize = 1_000;

/// The players in the order in which they are asked. One that the operator named comes first: as another version of the
/// one of that name, or as a player of which no more is known.
pub(super) fn players(first: Option<&(String, String)>) -> Vec<PlayerClient> {
    let mut players: Vec<PlayerClient> =
        BUILT_IN.iter().map(|built_in| built_in.player(built_in.version)).collect();
    if let Some((name, version)) = first {
        players.retain(|player| player.name != *name);
        let named = BUILT_IN.iter().find(|built_in| built_in.name == name);
        let player = match named {
            Some(built_in) => built_in.player(version),
            None => PlayerClient {
                name: name.clone(),
                version: version.clone(),
                number: None,
                user_agent: None,
                context: &[],
            },
        };
        players.insert(0, player);
    }
    players
}

impl BuiltIn {
    fn player(&self, version: &str) -> PlayerClient {
        PlayerClient {
            name: self.name.to_owned(),
            version: version.to_owned(),
            number: Some(self.number),
            user_agent: Some(self.user_agent.replace("{version}", version)),
            context: self.context,
        }
    }
}

impl PlayerClient {
    /// Whether it is the one in the watch page, whose version the page names.
    pub(super) fn is_browser(&self) -> bool {
        self.name == "WEB"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, version: &str) -> Vec<PlayerClient> {
        players(Some(&(name.to_owned(), version.to_owned())))
    }

    fn names(players: &[PlayerClient]) -> Vec<&str> {
        players.iter().map(|player| player.name.as_str()).collect()
    }

    #[test]
    fn an_operators_player_is_asked_first_and_the_others_after_it() {
        assert_eq!(names(&players(None)), ["ANDROID", "IOS", "WEB"]);
        let newer = named("IOS", "99.1.2");
        assert_eq!(names(&newer), ["IOS", "ANDROID", "WEB"]);
        assert!(newer[0].user_agent.as_ref().unwrap().starts_with("com.google.ios.youtube/99.1.2 ("));
        assert_eq!((newer[0].version.as_str(), newer[0].number), ("99.1.2", Some("5")));
        let other = named("TVHTML5", "7.2");
        assert_eq!(names(&other), ["TVHTML5", "ANDROID", "IOS", "WEB"]);
        assert_eq!(other[0].user_agent, None);
    }
}
