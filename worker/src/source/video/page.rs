//! What is looked for in the watch page: not the video, which players tell, but what players have to send.

use super::constants::{
    API_KEY, BROWSER_VERSION, CAPTCHA, CONSENT_COOKIE, CONSENT_FORM, CONSENT_INPUT, VISITOR,
};

/// Longest value that is taken from a page.
const MAX_VALUE: usize = 1_024;

/// What a watch page says to the players in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchPage {
    pub(super) api_key: Option<String>,
    pub(super) visitor: Option<String>,
    pub(super) browser_version: Option<String>,
}

/// What was answered instead of, or as, a watch page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SitePage {
    Watch(WatchPage),
    /// Asks for consent; the cookie's value that gives it, if the form has one.
    Consent(Option<String>),
    Captcha,
}

impl SitePage {
    pub(super) fn read(html: &str) -> Self {
        if let Some((_, form)) = html.split_once(CONSENT_FORM) {
            return Self::Consent(consent_value(form).or_else(|| consent_value(html)));
        }
        if html.contains(CAPTCHA) {
            return Self::Captcha;
        }
        Self::Watch(WatchPage {
            api_key: json_text(html, API_KEY),
            visitor: json_text(html, VISITOR),
            browser_version: json_text(html, BROWSER_VERSION),
        })
    }
}

/// The value of the form's input, as the consent cookie wants it.
fn consent_value(html: &str) -> Option<String> {
    let at = html.find(CONSENT_INPUT)?;
    let (before, after) = html.split_at(at);
    // The whole tag: attributes stand in any order.
    let start = before.rfind('<')?;
    let end = at + after.find('>')?;
    let (_, value) = html.get(start..end)?.split_once("value=\"")?;
    let (value, _) = value.split_once('"')?;
    let (_, prefix) = CONSENT_COOKIE;
    is_plain(value).then(|| format!("{prefix}{value}"))
}

/// The first text that a member of this name has in the JSON of a page.
fn json_text(html: &str, name: &str) -> Option<String> {
    let quoted = format!("\"{name}\"");
    html.match_indices(&quoted).find_map(|(at, _)| {
        let rest = html.get(at + quoted.len()..)?.trim_start().strip_prefix(':')?.trim_start();
        let (value, _) = rest.strip_prefix('"')?.split_once('"')?;
        // Some characters are escaped; none of them can be part of a value but this one.
        let value = value.replace("\\u003d", "=").replace("\\u003D", "=");
        is_plain(&value).then_some(value)
    })
}

/// Characters that a header, a query and a cookie carry as they are.
fn is_plain(value: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-%+=/".contains(&byte);
    (1..=MAX_VALUE).contains(&value.len()) && value.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_page_tells_what_players_send() {
        let html = r#"<script>ytcfg.set({"INNERTUBE_API_KEY": "AIza_key-1","INNERTUBE_CLIENT_VERSION":"2.2025",
            "INNERTUBE_CONTEXT":{"client":{"visitorData":"Cgt%3D\u003d"}}});</script>"#;
        let expected = WatchPage {
            api_key: Some("AIza_key-1".to_owned()),
            visitor: Some("Cgt%3D=".to_owned()),
            browser_version: Some("2.2025".to_owned()),
        };
        assert_eq!(SitePage::read(html), SitePage::Watch(expected));
        assert_eq!(SitePage::read("<html>"), SitePage::Watch(WatchPage::default()));
        let odd = r#"{"visitorData":null,"visitorData":"a\r\nb","visitorData":"c"}"#;
        let SitePage::Watch(page) = SitePage::read(odd) else { panic!() };
        assert_eq!(page.visitor.as_deref(), Some("c"), "what no header can carry is gone past");
        assert_eq!(SitePage::read("\"visitorData\""), SitePage::Watch(WatchPage::default()));
    }

    #[test]
    fn a_consent_page_gives_the_value_of_the_cookie() {
        for input in [
            r#"<input type="hidden" name="v" value="cb.20250101-00-p0.en+FX+1">"#,
            r#"<input value="cb.20250101-00-p0.en+FX+1" type="hidden" name="v"/>"#,
        ] {
            let html =
                format!(r#"<form action="https://consent.example.com/s" method="POST">{input}</form>"#);
            let value = "YES+cb.20250101-00-p0.en+FX+1".to_owned();
            assert_eq!(SitePage::read(&html), SitePage::Consent(Some(value)));
        }
        let without = r#"<form action="https://consent.example.com/save"><input name="v" value="a; b">"#;
        assert_eq!(SitePage::read(without), SitePage::Consent(None));
    }

    #[test]
    fn a_captcha_is_no_watch_page() {
        assert_eq!(SitePage::read(r#"<div class="g-recaptcha" data-x>"#), SitePage::Captcha);
    }
}
