//! The captions of a video on the big video site. It has no public interface for them, so this goes the way that its own
//! players go: watch page → player endpoint → caption tracks → timed text. What is known of the site stands in
//! `constants`; every way in which it refuses ends in an error that says what the document's owner can do.

mod address;
mod client;
mod constants;
mod error;
mod page;
mod player;
#[cfg(test)]
mod tests;
mod tracks;

use std::time::Duration;

use lectern_shared::{
    config::{Settings, VideoSettings},
    egress::{Egress, EgressError},
};
use serde_json::json;
use url::Url;

pub(super) use self::address::video_id;
use self::{
    client::{OnBytes, SiteAnswer, SiteClient},
    constants::PlayerClient,
    error::{UnplayableReason, VideoError},
    page::{SitePage, WatchPage},
    player::{PlayableVideo, PlayerAnswer},
    tracks::CaptionTrack,
};
use crate::{failure::IngestFailure, lease::ProgressReporter};

/// The captions of a video, as the site sent them.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct VideoCaptions {
    /// The timed text: JSON (`json3`), or XML where the site has no JSON.
    pub(super) body: String,
    /// The video's title, one line.
    pub(super) title: Option<String>,
    /// The address of the video's own page.
    pub(super) canonical_url: String,
    /// The language tag of the captions.
    pub(super) language: String,
    /// Written by a machine that listened.
    pub(super) automatic: bool,
    /// How long the video is; none for a broadcast that goes on.
    pub(super) duration: Option<Duration>,
}

/// Without the text.
impl std::fmt::Debug for VideoCaptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VideoCaptions")
            .field("bytes", &self.body.len())
            .field("canonical_url", &self.canonical_url)
            .field("language", &self.language)
            .field("automatic", &self.automatic)
            .field("duration", &self.duration)
            .finish_non_exhaustive()
    }
}

/// Gets the captions of the video `id` in the time that is given, in `wanted_language` (a tag such as `en` or `pt-BR`) when there
/// are any.
///
/// # Errors
/// The caption classes, `not_found` for what is no id, and those of a site that does not answer.
pub(super) async fn captions(
    settings: &Settings,
    egress: &Egress,
    id: &str,
    wanted_language: Option<&str>,
    within: Duration,
    progress: &ProgressReporter,
) -> Result<VideoCaptions, IngestFailure> {
    let run = CaptionRun {
        settings: &settings.video,
        egress,
        within,
        max_bytes: settings.limits.source_bytes,
        on_bytes: &|bytes| progress.at(bytes, None, "bytes"),
    };
    Ok(run.captions(id, wanted_language).await?)
}

/// What getting captions needs.
struct CaptionRun<'a> {
    settings: &'a VideoSettings,
    egress: &'a Egress,
    within: Duration,
    max_bytes: u64,
    on_bytes: OnBytes<'a>,
}

impl CaptionRun<'_> {
    async fn captions(&self, id: &str, wanted: Option<&str>) -> Result<VideoCaptions, VideoError> {
        if !address::is_id(id) {
            return Err(VideoError::MalformedId);
        }
        let mut client = SiteClient::new(self.egress, self.within, self.on_bytes);
        let page = self.watch_page(&mut client, id).await?;
        let mut reported: Option<VideoError> = None;
        for player in constants::players(self.settings.client.as_ref()) {
            let error = match self.ask_as(&mut client, &page, &player, id, wanted).await {
                Ok(captions) => return Ok(captions),
                Err(PlayerRefusal::Here(error)) => error,
                Err(PlayerRefusal::Everywhere(error)) => return Err(error),
            };
            tracing::debug!(
                player = player.name,
                version = player.version,
                code = error.code(),
                "player refused"
            );
            if reported.as_ref().is_none_or(|reported| error.weight() > reported.weight()) {
                reported = Some(error);
            }
        }
        Err(reported.unwrap_or(VideoError::NotUnderstood))
    }

    fn watch_url(&self, id: &str) -> Url {
        let mut url = self.settings.site.clone();
        url.set_path(constants::WATCH_PATH);
        url.set_query(Some(&format!("v={id}")));
        url
    }

    /// What the watch page tells players, after consent to cookies where it is asked for.
    async fn watch_page(&self, client: &mut SiteClient<'_>, id: &str) -> Result<WatchPage, VideoError> {
        for attempt in 0..2 {
            let url = self.watch_url(id);
            let answer = client.get(url, Some(constants::BROWSER), constants::MAX_PAGE).await?;
            match answer.page().await? {
                SitePage::Watch(page) => return Ok(page),
                SitePage::Captcha => return Err(VideoError::Blocked),
                SitePage::Consent(Some(value)) if attempt == 0 => {
                    client.set_cookie(constants::CONSENT_COOKIE.0, &value);
                    let (name, value) = constants::CONSENT_STATE_COOKIE;
                    client.set_cookie(name, value);
                }
                SitePage::Consent(_) => break,
            }
        }
        Err(VideoError::ConsentRequired)
    }

    /// Everything from one player: the tracks, and the text of the best one.
    async fn ask_as(
        &self,
        client: &mut SiteClient<'_>,
        page: &WatchPage,
        player: &PlayerClient,
        id: &str,
        wanted: Option<&str>,
    ) -> Result<VideoCaptions, PlayerRefusal> {
        let answer = self.ask_player(client, page, player, id).await?;
        let PlayableVideo { tracks, own_language, title, duration } = read_answer(answer, id).await?;
        let track = tracks::choose(&tracks, wanted, own_language.as_deref())
            .ok_or(PlayerRefusal::Here(VideoError::TranscriptsDisabled))?;
        let body = self.timed_text(client, player, track).await?;
        Ok(VideoCaptions {
            body,
            title,
            canonical_url: self.watch_url(id).into(),
            language: tracks::modern(&track.language_code),
            automatic: track.is_automatic(),
            duration,
        })
    }

    async fn ask_player(
        &self,
        client: &mut SiteClient<'_>,
        page: &WatchPage,
        player: &PlayerClient,
        id: &str,
    ) -> Result<Vec<u8>, PlayerRefusal> {
        let mut url = self.settings.site.clone();
        url.set_path(constants::PLAYER_PATH);
        url.query_pairs_mut().append_pair("prettyPrint", "false");
        if let Some(key) = &page.api_key {
            url.query_pairs_mut().append_pair("key", key);
        }
        // The page's own player has the page's version, unless the operator says otherwise.
        let is_set = self.settings.client.as_ref().is_some_and(|(name, _)| *name == player.name);
        let version = match &page.browser_version {
            Some(version) if player.is_browser() && !is_set => version,
            _ => &player.version,
        };
        let mut about = serde_json::Map::new();
        about.insert("clientName".to_owned(), json!(player.name));
        about.insert("clientVersion".to_owned(), json!(version));
        about.insert("hl".to_owned(), json!(constants::LANGUAGE));
        for (name, value) in player.context {
            about.insert((*name).to_owned(), json!(value));
        }
        let mut headers = vec![("x-youtube-client-version", version.as_str())];
        headers.extend(player.number.map(|number| ("x-youtube-client-name", number)));
        if let Some(visitor) = &page.visitor {
            about.insert("visitorData".to_owned(), json!(visitor));
            headers.push(("x-goog-visitor-id", visitor));
        }
        let body = json!({
            "context": {"client": about},
            "videoId": id,
            "contentCheckOk": true,
        });
        let user_agent = player.user_agent.as_deref();
        let answer = client.post_json(url, user_agent, &headers, &body, constants::MAX_PLAYER).await?;
        match answer.status {
            200 => Ok(answer.body),
            // Another player from the same address would fare no better.
            403 | 429 => Err(PlayerRefusal::Everywhere(VideoError::Blocked)),
            // What is not said right, or not any more.
            400 | 404 => Err(PlayerRefusal::Here(VideoError::Unplayable(UnplayableReason::Player))),
            status => Err(PlayerRefusal::Here(VideoError::Failing { status })),
        }
    }

    /// The text of a track: as JSON, or else as XML, which the site sends when no format is named.
    async fn timed_text(
        &self,
        client: &mut SiteClient<'_>,
        player: &PlayerClient,
        track: &CaptionTrack,
    ) -> Result<String, PlayerRefusal> {
        let not_understood = PlayerRefusal::Here(VideoError::NotUnderstood);
        let Ok(url) = self.settings.site.join(&track.base_url) else { return Err(not_understood) };
        // It comes from outside: it must not lead anywhere but back to the site.
        match self.egress.check_url(&url) {
            Err(EgressError::OtherSite { .. }) => return Err(not_understood),
            checked => checked.map_err(VideoError::from)?,
        }
        let (name, value) = constants::WANTS_TOKEN;
        if url.query_pairs().any(|pair| pair.0 == name && pair.1 == value) {
            return Err(PlayerRefusal::Here(VideoError::PoTokenRequired));
        }
        let max_bytes = self.max_bytes.min(constants::MAX_TIMED_TEXT);
        for format in [Some(constants::TIMED_TEXT_FORMAT), None] {
            let url = in_format(&url, format);
            let SiteAnswer { status, body, .. } =
                client.get(url, player.user_agent.as_deref(), max_bytes).await?;
            match status {
                200 if body.trim_ascii().is_empty() => {
                    return Err(PlayerRefusal::Here(VideoError::PoTokenRequired));
                }
                200 => {
                    if let Some(text) = timed_text_of(body, format.is_some()).await? {
                        return Ok(text);
                    }
                }
                403 | 429 => return Err(PlayerRefusal::Everywhere(VideoError::Blocked)),
                // A format that is not there for this track.
                400 | 404 if format.is_some() => {}
                400 | 404 => return Err(not_understood),
                status => return Err(PlayerRefusal::Here(VideoError::Failing { status })),
            }
        }
        Err(not_understood)
    }
}

/// Whom a refusal concerns.
enum PlayerRefusal {
    /// The player that was tried.
    Here(VideoError),
    /// Every player.
    Everywhere(VideoError),
}

/// What hinders one request hinders the next one too; only an answer may be better from another player.
impl From<VideoError> for PlayerRefusal {
    fn from(error: VideoError) -> Self {
        Self::Everywhere(error)
    }
}

impl SiteAnswer {
    /// The page that it is; looked through off the async threads, since it may have megabytes.
    async fn page(self) -> Result<SitePage, VideoError> {
        match self.status {
            200..=299 => {}
            403 | 429 => return Err(VideoError::Blocked),
            404 | 410 => return Err(VideoError::Gone),
            status => return Err(VideoError::Failing { status }),
        }
        let body = self.body;
        let read = tokio::task::spawn_blocking(move || SitePage::read(&String::from_utf8_lossy(&body)));
        let page = read.await.map_err(|_| VideoError::NotUnderstood)?;
        let asks_for_consent = self.url.domain().is_some_and(|host| host.starts_with("consent."));
        match page {
            SitePage::Watch(_) if asks_for_consent => Ok(SitePage::Consent(None)),
            page => Ok(page),
        }
    }
}

/// Off the async threads: such an answer can have megabytes.
async fn read_answer(body: Vec<u8>, id: &str) -> Result<PlayableVideo, PlayerRefusal> {
    let id = id.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        serde_json::from_slice::<PlayerAnswer>(&body)
            .map_err(|_| VideoError::NotUnderstood)
            .and_then(|answer| answer.playable(&id))
    });
    read.await.unwrap_or(Err(VideoError::NotUnderstood)).map_err(PlayerRefusal::Here)
}

/// The text, if it is what was asked for. JSON that is none, or says nothing of cues, is asked for in the other format.
async fn timed_text_of(body: Vec<u8>, as_json: bool) -> Result<Option<String>, PlayerRefusal> {
    /// What every timed text in JSON has.
    #[derive(serde::Deserialize)]
    struct TimedTextEvents {
        #[serde(rename = "events")]
        _events: Vec<serde::de::IgnoredAny>,
    }
    let read = tokio::task::spawn_blocking(move || {
        let Ok(text) = String::from_utf8(body) else { return Ok(None) };
        let start = text.trim_start_matches('\u{feff}').trim_start();
        let begins = |tag: &str| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
        if text.contains(constants::CAPTCHA) && (begins("<!doctype html") || begins("<html")) {
            return Err(VideoError::Blocked);
        }
        let is_wanted = if as_json {
            serde_json::from_str::<TimedTextEvents>(start).is_ok()
        } else {
            ["<?xml", "<transcript", "<timedtext", "<tt"].into_iter().any(begins)
        };
        Ok(is_wanted.then_some(text))
    });
    read.await.unwrap_or(Ok(None)).map_err(PlayerRefusal::Everywhere)
}

/// The address of a track's text in a format; the site's own choice when none.
fn in_format(track: &Url, format: Option<&str>) -> Url {
    let kept: Vec<(String, String)> = track
        .query_pairs()
        .filter(|(name, _)| name != "fmt")
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let mut url = track.clone();
    url.query_pairs_mut().clear().extend_pairs(kept).extend_pairs(format.map(|format| ("fmt", format)));
    url
}
