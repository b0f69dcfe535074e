//! What sites ask of robots, as far as it concerns this service: bounded in rules, in their length, and in what is compiled of them.

use std::{
    fmt::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use texting_robots::Robot;
use url::Url;

/// By what rules for robots call this service.
const ROBOT: &str = "lectern";
/// What is read of a robots.txt.
pub(super) const ROBOTS_BYTES: usize = 500 << 10;
/// The longest that a robots.txt may ask to wait between two requests.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_mins(1);
/// Rules of one site.
const MAX_RULES: usize = 3_000;
/// Bytes of one rule.
const MAX_RULE: usize = 2 << 10;
/// Rules of one site that say where an address ends: each of them is compiled.
const MAX_COMPILED: usize = 32;
/// What a compiled rule takes at most, with what is remembered when it is looked for.
const COMPILED_BYTES: usize = 128 << 10;
/// Sitemaps that are named.
const MAX_SITEMAPS: usize = 1_000;

/// What a site asks of robots.
pub(crate) struct SiteRules {
    robot: Option<Robot>,
    /// Whether anything may be asked for where there is no robot's rule.
    is_open: bool,
    bytes: usize,
}

impl SiteRules {
    /// Everything may be asked for.
    pub(super) fn none() -> Self {
        Self { robot: None, is_open: true, bytes: 0 }
    }

    /// Nothing may be asked for.
    pub(super) fn closed() -> Self {
        Self { robot: None, is_open: false, bytes: 0 }
    }

    /// Reads a robots.txt. Where its rules cannot be kept as they are, less is allowed than they allow.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let own = OwnRules::of(bytes);
        let read = |most_compiled: usize| -> Option<Self> {
            let (text, compiled) = own.text(most_compiled);
            let robot = catch_unwind(AssertUnwindSafe(|| Robot::new(ROBOT, text.as_bytes()).ok())).ok()??;
            let bytes = 2 * text.len() + compiled * COMPILED_BYTES;
            Some(Self { robot: Some(robot), is_open: true, bytes })
        };
        read(MAX_COMPILED).or_else(|| read(0)).unwrap_or_else(Self::closed)
    }

    /// Whether it lets robots ask for an address.
    pub(crate) fn allows(&self, url: &Url) -> bool {
        match &self.robot {
            Some(robot) => robot.allowed(url.as_str()),
            None => self.is_open,
        }
    }

    /// The sitemaps that it names. `url` is an address of the site.
    pub(crate) fn sitemaps(&self, url: &Url) -> Vec<Url> {
        let named = self.robot.iter().flat_map(|robot| &robot.sitemaps);
        named.filter_map(|sitemap| url.join(sitemap.trim()).ok()).collect()
    }

    /// How long it asks robots to wait between two requests.
    pub(crate) fn delay(&self) -> Duration {
        let seconds = self.robot.as_ref().and_then(|robot| robot.delay).unwrap_or_default();
        Duration::try_from_secs_f32(seconds.max(0.0)).unwrap_or(LONGEST_DELAY).min(LONGEST_DELAY)
    }

    /// Roughly what they take in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A line of a robots.txt.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RobotsLine<'a> {
    Agent(&'a [u8]),
    Rule { is_allowed: bool, pattern: &'a [u8] },
    Delay(f32),
    Sitemap(&'a [u8]),
}

/// Names of fields, with the spellings that are taken for them.
const AGENT: [&str; 3] = ["user-agent", "user agent", "useragent"];
const DISALLOW: [&str; 6] = ["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"];
const DELAY: [&str; 3] = ["crawl-delay", "crawl delay", "crawldelay"];
const SITEMAP: [&str; 3] = ["sitemap", "site-map", "site map"];

impl<'a> RobotsLine<'a> {
    /// Reads a line as the library does; none when it says nothing.
    fn of(line: &'a [u8]) -> Option<Self> {
        let line = line.trim_ascii_start();
        if let Some(agent) = value(line, &AGENT) {
            return Some(Self::Agent(agent));
        }
        if let Some(pattern) = value(line, &["allow"]) {
            return Some(Self::Rule { is_allowed: true, pattern });
        }
        if let Some(pattern) = value(line, &DISALLOW) {
            let rule = Self::Rule { is_allowed: false, pattern };
            return Some(if pattern.is_empty() {
                Self::Rule { is_allowed: true, pattern: b"/" }
            } else {
                rule
            });
        }
        if let Some(sitemap) = value(line, &SITEMAP) {
            return Some(Self::Sitemap(sitemap));
        }
        let delay: f32 = std::str::from_utf8(value(line, &DELAY)?).ok()?.parse().ok()?;
        (delay >= 0.0).then_some(Self::Delay(delay))
    }
}

/// What a line says of a field, if it is about this one.
fn value<'a>(line: &'a [u8], names: &[&str]) -> Option<&'a [u8]> {
    names.iter().find_map(|name| {
        let (field, rest) = line.split_at_checked(name.len())?;
        if !field.eq_ignore_ascii_case(name.as_bytes()) {
            return None;
        }
        let trimmed = rest.trim_ascii_start();
        let value = trimmed.strip_prefix(b":").or((trimmed.len() < rest.len()).then_some(trimmed))?;
        let end = value.iter().position(|byte| *byte == b'#').unwrap_or(value.len());
        value.get(..end).map(<[u8]>::trim_ascii)
    })
}

/// The rules that concern this service, as few as are kept.
#[derive(Debug, Default)]
struct OwnRules<'a> {
    /// Whether each allows, and what.
    rules: Vec<(bool, &'a str)>,
    delay: Option<f32>,
    sitemaps: Vec<&'a str>,
    /// What all rules that forbid begin with that are too many.
    excess: Option<&'a str>,
}

impl<'a> OwnRules<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let lines = || {
            let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r' | 0));
            lines.filter_map(RobotsLine::of)
        };
        let is_called = |name: &str| {
            lines()
                .any(|line| matches!(line, RobotsLine::Agent(it) if it.eq_ignore_ascii_case(name.as_bytes())))
        };
        let agent = if is_called(ROBOT) { ROBOT } else { "*" };
        // Without any group, what is said is said to all.
        let mut is_ours = !lines().any(|line| matches!(line, RobotsLine::Agent(_)));
        let (mut is_in_names, mut is_before_groups, mut delay_of_all) = (false, true, None);
        let mut own = Self::default();
        for line in lines() {
            if let RobotsLine::Agent(name) = line {
                is_ours = name.eq_ignore_ascii_case(agent.as_bytes()) || is_in_names && is_ours;
                (is_in_names, is_before_groups) = (true, false);
                continue;
            }
            if let RobotsLine::Sitemap(sitemap) = line {
                let sitemap = std::str::from_utf8(sitemap).ok();
                own.sitemaps
                    .extend(sitemap.filter(|it| it.len() <= MAX_RULE && own.sitemaps.len() < MAX_SITEMAPS));
                continue;
            }
            is_in_names = false;
            match line {
                RobotsLine::Rule { is_allowed, pattern } if is_ours => own.take(is_allowed, pattern),
                RobotsLine::Delay(delay) if is_ours && own.delay.is_none() => own.delay = Some(delay),
                RobotsLine::Delay(delay) if is_before_groups => delay_of_all = Some(delay),
                _ => {}
            }
        }
        own.delay = own.delay.or(delay_of_all);
        own
    }

    /// Keeps a rule. Of one that forbids and is too long, or is no text to its end, the beginning counts, which forbids more.
    fn take(&mut self, is_allowed: bool, pattern: &'a [u8]) {
        let text = std::str::from_utf8(pattern);
        let is_whole = text.is_ok() && pattern.len() <= MAX_RULE;
        if is_allowed && (!is_whole || self.rules.len() >= MAX_RULES) {
            return;
        }
        let end = text.map_or_else(|error| error.valid_up_to(), str::len);
        let text = pattern.get(..end).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
        let text = text.get(..text.floor_char_boundary(MAX_RULE)).unwrap_or_default();
        if self.rules.len() < MAX_RULES {
            self.rules.push((is_allowed, if text.is_empty() { "/" } else { text }));
            return;
        }
        let text = text.split(['*', '$']).next().unwrap_or_default();
        self.excess = Some(self.excess.map_or(text, |excess| common_start(excess, text)));
    }

    /// A robots.txt with nothing else, in which so many rules at most are compiled, and how many are.
    fn text(&self, most_compiled: usize) -> (String, usize) {
        let mut text = "User-agent: *\n".to_owned();
        let mut compiled = 0;
        let mut say = |field: &str, value: &str| {
            // Into a text it never fails.
            let _written = writeln!(text, "{field}: {value}");
        };
        for (is_allowed, pattern) in &self.rules {
            let is_compiled = pattern.contains('$');
            let fits = !is_compiled || compiled < most_compiled;
            compiled += usize::from(is_compiled && fits);
            if !is_allowed {
                let end = pattern.find('$').filter(|_| !fits).unwrap_or(pattern.len());
                let start = pattern.get(..end).filter(|start| !start.is_empty());
                say("Disallow", start.unwrap_or("/"));
            } else if self.excess.is_none() && fits {
                // Where rules that forbid are left out, none that allows is to win over what stands for them.
                say("Allow", pattern);
            }
        }
        if let Some(excess) = self.excess {
            say("Disallow", if excess.is_empty() { "/" } else { excess });
        }
        if let Some(delay) = self.delay {
            say("Crawl-delay", &delay.to_string());
        }
        for sitemap in &self.sitemaps {
            say("Sitemap", sitemap);
        }
        (text, compiled)
    }
}

/// What two texts begin with alike.
fn common_start<'a>(a: &'a str, b: &str) -> &'a str {
    let alike = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    a.get(..a.floor_char_boundary(alike)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(robots: &str, path: &str) -> bool {
        SiteRules::read(robots.as_bytes()).allows(&Url::parse(&format!("https://a.example{path}")).unwrap())
    }

    #[test]
    fn rules_are_heeded_as_they_are_meant() {
        for (robots, path, is_allowed) in [
            ("", "/x", true),
            ("Disallow: /x", "/x", false),
            ("User-agent: *\nDisallow: /x # why\nAllow: /x/y", "/x/y", true),
            ("User-agent: other\nDisallow: /", "/x", true),
            ("User-agent: other\nUser-agent: Lectern\nDisallow: /x", "/x", false),
            ("User-agent: *\nDisallow: /\nUser-agent: lectern\nDisallow:", "/x", true),
            ("User-agent: lectern\nSitemap: /s\nUser-agent: other\nDisallow: /x", "/x", false),
            ("\u{feff}user agent *\rdissalow: /*.pdf$\r\n", "/a.pdf", false),
            ("User-agent: *\nDisallow: /*.pdf$", "/a.pdf?x", true),
            ("User-agent: *\0Disallow: /x", "/x", false),
        ] {
            assert_eq!(allows(robots, path), is_allowed, "{robots:?}");
            let url = Url::parse(&format!("https://a.example{path}")).unwrap();
            let library = Robot::new(ROBOT, robots.as_bytes()).unwrap();
            assert_eq!(library.allowed(url.as_str()), is_allowed, "{robots:?} without bounds");
        }
        let rules = SiteRules::read(b"Crawl-delay: 3\nUser-agent: x\nCrawl-delay: 7\nSitemap: /a.xml\n");
        assert_eq!(rules.delay(), Duration::from_secs(3));
        let url = Url::parse("https://a.example/").unwrap();
        assert_eq!(
            rules.sitemaps(&url).iter().map(Url::as_str).collect::<Vec<_>>(),
            ["https://a.example/a.xml"]
        );
    }

    #[test]
    fn what_is_compiled_and_kept_has_bounds() {
        let robots = "Allow:*$\n".repeat(ROBOTS_BYTES / 9);
        let own = OwnRules::of(robots.as_bytes());
        assert_eq!((own.rules.len(), own.text(MAX_COMPILED).1), (MAX_RULES, MAX_COMPILED));
        let rules = SiteRules::read(robots.as_bytes());
        assert!(rules.bytes() <= MAX_COMPILED * COMPILED_BYTES + 2 * ROBOTS_BYTES);
    }

    #[test]
    fn what_is_too_much_forbids_more_and_never_less() {
        let many = |rule: &str| rule.repeat(MAX_RULES);
        let long = format!("/secret{}", "x".repeat(MAX_RULE));
        let dollars = "Disallow: /$b\n".repeat(MAX_COMPILED);
        for (robots, path, is_allowed) in [
            (
                format!("{}Disallow: /secret/a\nDisallow: /secret/b", many("Disallow: /n\n")),
                "/secret/c",
                false,
            ),
            (format!("{}Disallow: /secret/a\n", many("Disallow: /n\n")), "/open", true),
            (format!("{}Disallow: /a/b\n", many("Allow: /a/\n")), "/a/b", false),
            (format!("{}Disallow: *x\n", many("Disallow: /n\n")), "/open", false),
            (format!("Disallow: {long}yz\n"), long.as_str(), false),
            (format!("Allow: {long}\nDisallow: /"), long.as_str(), false),
            (format!("{dollars}Disallow: /secret$"), "/secret/more", false),
        ] {
            assert_eq!(allows(&robots, path), is_allowed, "{path:.40}");
        }
    }

    #[test]
    fn a_rule_that_cannot_be_compiled_does_not_allow_everything() {
        let robots = format!("Disallow: /secret\nDisallow: /{}$\n", "*a".repeat(1_000));
        assert!(Robot::new(ROBOT, robots.as_bytes()).is_err(), "the library gives up");
        assert!(!allows(&robots, "/secret") && allows(&robots, "/open"));
    }
}
