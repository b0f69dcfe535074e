//! Which caption track of a video is taken.

use serde::Deserialize;

/// One track, as the player's answer describes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CaptionTrack {
    /// Where its timed text is.
    pub(super) base_url: String,
    /// The language tag.
    pub(super) language_code: String,
    /// `asr` for what a machine heard.
    pub(super) kind: Option<String>,
}

impl CaptionTrack {
    /// Made by a machine.
    pub(super) fn is_automatic(&self) -> bool {
        self.kind.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("asr"))
    }
}

/// How well a track's language fits the wanted one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LanguageFit {
    /// The same tag.
    Exact,
    /// One tag only says more than the other: `en` and `en-GB`.
    Compatible,
    /// The same language, as it is written or spoken elsewhere: `pt-BR` and `pt-PT`.
    Sibling,
}

/// The best track: hand-made before automatic, wanted language first. A hand-made track in another language loses to an automatic one in the
/// wanted one. Without a wish, or when nothing fits it: the video's own language, then English, then the first track.
pub(super) fn choose<'a>(
    tracks: &'a [CaptionTrack],
    wanted: Option<&str>,
    own: Option<&str>,
) -> Option<&'a CaptionTrack> {
    let wishes = [wanted, own, Some("en")];
    let found = wishes.into_iter().flatten().find_map(|wish| in_language(tracks, wish));
    found.or_else(|| tracks.iter().min_by_key(|track| track.is_automatic()))
}

/// The best track in one language; of equal ones, the first.
fn in_language<'a>(tracks: &'a [CaptionTrack], wanted: &str) -> Option<&'a CaptionTrack> {
    let wanted = normal(wanted);
    tracks
        .iter()
        .filter_map(|track| {
            Some((rank(fit(&normal(&track.language_code), &wanted)?, track.is_automatic()), track))
        })
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, track)| track)
}

/// A person's captions in a tag that does not contradict the wanted one are better than a machine's in just that tag.
fn rank(fit: LanguageFit, automatic: bool) -> u8 {
    match (fit, automatic) {
        (LanguageFit::Exact, false) => 0,
        (LanguageFit::Compatible, false) => 1,
        (LanguageFit::Exact, true) => 2,
        (LanguageFit::Compatible, true) => 3,
        (LanguageFit::Sibling, false) => 4,
        (LanguageFit::Sibling, true) => 5,
    }
}

fn fit(tag: &str, wanted: &str) -> Option<LanguageFit> {
    let extends =
        |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('-'));
    if tag.is_empty() || wanted.is_empty() {
        None
    } else if tag == wanted {
        Some(LanguageFit::Exact)
    } else if extends(tag, wanted) || extends(wanted, tag) {
        Some(LanguageFit::Compatible)
    } else {
        (base(tag) == base(wanted)).then_some(LanguageFit::Sibling)
    }
}

fn base(tag: &str) -> &str {
    tag.split('-').next().unwrap_or(tag)
}

/// Lower case, hyphens, and the code of today.
fn normal(tag: &str) -> String {
    modern(&tag.trim().to_ascii_lowercase().replace('_', "-"))
}

/// The tag with the code of today: the site keeps those that a few languages had before 1989.
pub(super) fn modern(tag: &str) -> String {
    let (base, rest) = tag.split_at(tag.find('-').unwrap_or(tag.len()));
    let base = match base {
        "iw" => "he",
        "ji" => "yi",
        "in" => "id",
        base => base,
    };
    format!("{base}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `en` is made by hand, `~en` by a machine.
    fn chosen(tracks: &[&str], wanted: Option<&str>, own: Option<&str>) -> String {
        let tracks: Vec<CaptionTrack> = tracks
            .iter()
            .map(|text| CaptionTrack {
                base_url: (*text).to_owned(),
                language_code: text.trim_start_matches('~').to_owned(),
                kind: text.starts_with('~').then(|| "asr".to_owned()),
            })
            .collect();
        choose(&tracks, wanted, own).map_or_else(String::new, |track| track.base_url.clone())
    }

    #[test]
    fn hand_made_captions_in_the_wanted_language_come_first() {
        assert_eq!(chosen(&["~de", "en", "de"], Some("de"), None), "de");
        assert_eq!(chosen(&["en", "~de"], Some("de"), None), "~de", "a machine in the wanted language");
        assert_eq!(chosen(&["~en", "en-GB"], Some("en"), None), "en-GB");
        assert_eq!(chosen(&["pt-PT", "~pt-BR"], Some("pt-BR"), None), "~pt-BR");
        assert_eq!(chosen(&["en", "pt-PT"], Some("pt-BR"), None), "pt-PT");
        assert_eq!(chosen(&["en", "en-US"], Some("EN_us"), None), "en-US");
        assert_eq!(chosen(&["en-US", "en"], Some("en"), None), "en");
    }

    #[test]
    fn a_language_that_is_not_there_falls_back_to_the_videos_own_then_english_then_the_first() {
        assert_eq!(chosen(&["en", "fr", "~ja"], Some("de"), Some("ja")), "~ja");
        assert_eq!(chosen(&["en", "fr", "ja", "~ja"], None, Some("ja")), "ja");
        assert_eq!(chosen(&["fr", "~en"], None, None), "~en");
        assert_eq!(chosen(&["~fr", "it", "fr"], None, None), "it");
        assert_eq!(chosen(&["~fr"], None, None), "~fr");
        assert_eq!(chosen(&[], Some("en"), None), "");
    }

    #[test]
    fn old_codes_of_languages_are_the_new_ones() {
        assert_eq!(chosen(&["en", "iw"], Some("he"), None), "iw");
        assert_eq!(chosen(&["en", "id"], Some("in"), None), "id");
        assert_eq!(chosen(&["en", "eng"], Some("eng"), None), "eng");
        assert_eq!(chosen(&["fr", "eng"], Some("en"), Some("")), "fr", "no part of a word");
    }
}
