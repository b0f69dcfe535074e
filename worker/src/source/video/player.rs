//! What the player endpoint answers.

use std::time::Duration;

use serde::Deserialize;

use super::{
    constants::MAX_TITLE,
    error::{UnplayableReason, VideoError},
    tracks::CaptionTrack,
};

/// The part of a player's answer that matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PlayerAnswer {
    playability_status: Option<PlayabilityStatus>,
    captions: PlayerCaptions,
    video_details: VideoDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PlayabilityStatus {
    status: String,
    reason: SiteText,
    messages: Vec<String>,
    error_screen: ErrorScreen,
    desktop_legacy_age_gate_reason: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ErrorScreen {
    player_error_message_renderer: ErrorMessage,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ErrorMessage {
    reason: SiteText,
    subreason: SiteText,
}

/// The site writes a text as a string, or as an object of one or several pieces.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum SiteText {
    Plain(String),
    #[serde(rename_all = "camelCase")]
    Simple {
        simple_text: String,
    },
    Runs {
        runs: Vec<TextRun>,
    },
    Unknown(serde::de::IgnoredAny),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TextRun {
    text: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PlayerCaptions {
    player_captions_tracklist_renderer: TrackList,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TrackList {
    caption_tracks: Vec<CaptionTrack>,
    audio_tracks: Vec<AudioTrack>,
    default_audio_track_index: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AudioTrack {
    /// A language tag, a dot and a number.
    audio_track_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VideoDetails {
    video_id: String,
    title: Option<String>,
    /// Digits in a string.
    length_seconds: Option<String>,
}

/// A video that is played, and has captions.
#[derive(Debug)]
pub(super) struct PlayableVideo {
    /// Its caption tracks, at least one.
    pub(super) tracks: Vec<CaptionTrack>,
    /// The language that is spoken in it.
    pub(super) own_language: Option<String>,
    pub(super) title: Option<String>,
    pub(super) duration: Option<Duration>,
}

impl PlayerAnswer {
    /// What it says about the video `id`.
    pub(super) fn playable(self, id: &str) -> Result<PlayableVideo, VideoError> {
        let Self { playability_status, captions, video_details } = self;
        let list = captions.player_captions_tracklist_renderer;
        // Players that the site does not trust are sent another video.
        if !video_details.video_id.is_empty() && video_details.video_id != id {
            return Err(VideoError::Blocked);
        }
        let played = playability_status.ok_or(VideoError::NotUnderstood)?;
        if played.status != "OK" {
            return Err(played.refusal());
        }
        let own_language = list.own_language();
        let tracks: Vec<_> =
            list.caption_tracks.into_iter().filter(|track| !track.base_url.is_empty()).collect();
        if tracks.is_empty() {
            return Err(VideoError::TranscriptsDisabled);
        }
        let seconds = video_details.length_seconds.and_then(|text| text.parse().ok());
        Ok(PlayableVideo {
            tracks,
            own_language,
            title: video_details.title.as_deref().and_then(clean_title),
            // Broadcasts that go on have none.
            duration: seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
        })
    }
}

impl TrackList {
    fn own_language(&self) -> Option<String> {
        let spoken = self.default_audio_track_index.and_then(|at| self.audio_tracks.get(at));
        let tag = spoken.and_then(|track| track.audio_track_id.as_deref()?.split('.').next());
        // A machine writes down what it hears.
        let heard = self.caption_tracks.iter().find(|track| track.is_automatic());
        let heard = heard.map(|track| track.language_code.as_str());
        tag.filter(|tag| !tag.is_empty()).or(heard).map(str::to_owned)
    }
}

impl PlayabilityStatus {
    /// Why it is not played. The site has few words for it (`status`) and many sentences; the latter are asked for in English.
    fn refusal(&self) -> VideoError {
        let screen = &self.error_screen.player_error_message_renderer;
        let mut said = String::new();
        for text in [&self.reason, &screen.reason, &screen.subreason] {
            text.append_to(&mut said);
        }
        for message in &self.messages {
            said.push_str(message);
            said.push('\n');
        }
        let said = said.to_lowercase().replace('\u{2019}', "'");
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| said.contains(phrase));
        let status = self.status.as_str();
        if says(&["not a bot", "unusual traffic", "try again later"]) {
            VideoError::Blocked
        } else if status.starts_with("AGE_")
            || self.desktop_legacy_age_gate_reason.is_some()
            || says(&["confirm your age", "age-restricted", "inappropriate for some users"])
        {
            VideoError::AgeRestricted
        } else if says(&["private"]) {
            VideoError::Private
        } else if says(&["members-only", "members only", "join this channel"]) {
            VideoError::Unplayable(UnplayableReason::MembersOnly)
        } else if says(&["in your country", "in your location", "from your location", "in your region"]) {
            VideoError::Unplayable(UnplayableReason::Region)
        } else if status == "LIVE_STREAM_OFFLINE" || says(&["premieres in", "live event will begin"]) {
            VideoError::Unplayable(UnplayableReason::NotYet)
        } else if says(&["payment", "purchase", "rent this", "to rent", "premium"]) {
            VideoError::Unplayable(UnplayableReason::Paid)
        } else if status == "CONTENT_NOT_AVAILABLE_IN_APP"
            || says(&[
                "on this app",
                "this device",
                "update the app",
                "latest version",
                "no longer supported",
            ])
        {
            VideoError::Unplayable(UnplayableReason::Player)
        } else {
            match status {
                "ERROR" => VideoError::Gone,
                "LOGIN_REQUIRED" => VideoError::Unplayable(UnplayableReason::SignedIn),
                "" => VideoError::NotUnderstood,
                _ => VideoError::Unplayable(UnplayableReason::Other),
            }
        }
    }
}

impl Default for SiteText {
    fn default() -> Self {
        Self::Plain(String::new())
    }
}

impl SiteText {
    fn append_to(&self, said: &mut String) {
        match self {
            Self::Plain(text) | Self::Simple { simple_text: text } => said.push_str(text),
            Self::Runs { runs } => runs.iter().for_each(|run| said.push_str(&run.text)),
            Self::Unknown(_) => {}
        }
        said.push('\n');
    }
}

/// One line, not too long.
fn clean_title(title: &str) -> Option<String> {
    let words: Vec<_> =
        title.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let title: String = words.join(" ").chars().take(MAX_TITLE).collect();
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ID: &str = "abc-DEF_123";

    fn said(answer: Value) -> Result<PlayableVideo, VideoError> {
        serde_json::from_value::<PlayerAnswer>(answer).unwrap().playable(ID)
    }

    fn refusal(status: &Value) -> VideoError {
        said(json!({"playabilityStatus": status})).unwrap_err()
    }

    #[test]
    fn every_refusal_is_told_apart() {
        use UnplayableReason::{MembersOnly, NotYet, Other, Paid, Player, Region, SignedIn};
        use VideoError::{AgeRestricted, Blocked, Gone, NotUnderstood, Private};
        for (status, expected) in [
            (json!({"status": "ERROR", "reason": "Video unavailable"}), Gone),
            (json!({"status": "ERROR", "reason": "This content isn’t available, try again later."}), Blocked),
            (json!({"status": "LOGIN_REQUIRED", "reason": "Sign in to confirm you’re not a bot"}), Blocked),
            (json!({"status": "LOGIN_REQUIRED", "reason": "Sign in to confirm your age"}), AgeRestricted),
            (json!({"status": "AGE_VERIFICATION_REQUIRED"}), AgeRestricted),
            (json!({"status": "LOGIN_REQUIRED", "desktopLegacyAgeGateReason": 1}), AgeRestricted),
            (
                json!({"status": "LOGIN_REQUIRED", "messages": ["This video may be inappropriate for some users."]}),
                AgeRestricted,
            ),
            (json!({"status": "LOGIN_REQUIRED", "messages": ["This is a private video."]}), Private),
            (
                json!({"status": "LOGIN_REQUIRED", "reason": "Please sign in"}),
                VideoError::Unplayable(SignedIn),
            ),
            (
                json!({"status": "UNPLAYABLE", "reason": "Join this channel to get access to members-only content."}),
                VideoError::Unplayable(MembersOnly),
            ),
            (
                json!({"status": "UNPLAYABLE", "errorScreen": {"playerErrorMessageRenderer": {
                    "reason": {"simpleText": "Video unavailable"},
                    "subreason": {"runs": [{"text": "The uploader has not made this video available "}, {"text": "in your country"}]},
                }}}),
                VideoError::Unplayable(Region),
            ),
            (
                json!({"status": "LIVE_STREAM_OFFLINE", "reason": "This live event will begin in 3 hours."}),
                VideoError::Unplayable(NotYet),
            ),
            (
                json!({"status": "UNPLAYABLE", "reason": "This video requires payment to watch."}),
                VideoError::Unplayable(Paid),
            ),
            (
                json!({"status": "UNPLAYABLE", "reason": "The following content is not available on this app.."}),
                VideoError::Unplayable(Player),
            ),
            (json!({"status": "UNPLAYABLE", "reason": {"odd": true}}), VideoError::Unplayable(Other)),
            (json!({"reason": "?"}), NotUnderstood),
        ] {
            assert_eq!(refusal(&status), expected, "{status}");
        }
        assert_eq!(said(json!({})).unwrap_err(), NotUnderstood);
        let other =
            json!({"playabilityStatus": {"status": "OK"}, "videoDetails": {"videoId": "zzzzzzzzzzz"}});
        assert_eq!(said(other).unwrap_err(), Blocked, "another video than the one that was asked for");
    }

    #[test]
    fn a_video_without_tracks_has_no_transcript() {
        for captions in [json!({}), json!({"playerCaptionsTracklistRenderer": {"captionTracks": []}})] {
            let answer = json!({"playabilityStatus": {"status": "OK"}, "captions": captions});
            assert_eq!(said(answer).unwrap_err(), VideoError::TranscriptsDisabled);
        }
    }

    #[test]
    fn the_spoken_language_is_that_of_the_audio_or_of_what_a_machine_heard() {
        let list = |list: Value| serde_json::from_value::<TrackList>(list).unwrap().own_language();
        let dubbed = json!({
            "captionTracks": [{"languageCode": "de", "kind": "asr", "baseUrl": "/a"}],
            "audioTracks": [{"audioTrackId": "de.3"}, {"audioTrackId": "en-US.4"}],
            "defaultAudioTrackIndex": 1,
        });
        assert_eq!(list(dubbed).as_deref(), Some("en-US"));
        let plain = json!({
            "captionTracks": [{"languageCode": "en"}, {"languageCode": "fr", "kind": "asr"}],
            "audioTracks": [{"captionTrackIndices": [0, 1]}],
            "defaultAudioTrackIndex": 0,
        });
        assert_eq!(list(plain).as_deref(), Some("fr"));
        assert_eq!(list(json!({"captionTracks": [{"languageCode": "en"}]})), None);
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(clean_title(" A\n\u{0} title\u{a0}here ").as_deref(), Some("A title here"));
        assert_eq!(clean_title(" \t"), None);
        assert_eq!(clean_title(&"x".repeat(5_000)).unwrap().len(), MAX_TITLE);
    }
}
