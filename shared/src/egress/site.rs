//! One web site, as far as a client that works for it alone may go.

use url::{Host, Url};

/// The host that an operator named as a site, and the hosts beneath it, over the same scheme and port.
///
/// The first label `www` of the name is no part of it: `https://www.example.com` covers `consent.example.com`. Other
/// labels are: without a list of public suffixes nothing tells whose the name above is, so that
/// `https://videos.example.co.uk` covers neither `example.co.uk` nor its other hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteScope {
    scheme: String,
    port: Option<u16>,
    host: Host,
}

impl SiteScope {
    /// The site that `url` is of; none for a URL without a host.
    pub fn of(url: &Url) -> Option<Self> {
        let host = match url.host()?.to_owned() {
            Host::Domain(name) => {
                let name = plain(&name);
                // `www.com` is a name of its own: a whole top-level domain is no site.
                let base = name.strip_prefix("www.").filter(|rest| rest.contains('.')).unwrap_or(name);
                Host::Domain(base.to_owned())
            }
            address => address,
        };
        Some(Self { scheme: url.scheme().to_owned(), port: url.port_or_known_default(), host })
    }

    /// Whether `url` is of this site.
    pub fn contains(&self, url: &Url) -> bool {
        let host = match (&self.host, url.host()) {
            (Host::Domain(base), Some(Host::Domain(name))) => {
                let name = plain(name);
                name.strip_suffix(base.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            (Host::Ipv4(address), Some(Host::Ipv4(other))) => *address == other,
            (Host::Ipv6(address), Some(Host::Ipv6(other))) => *address == other,
            _ => false,
        };
        host && url.scheme() == self.scheme && url.port_or_known_default() == self.port
    }
}

/// A name without the dot of the root, which changes nothing in what it names.
fn plain(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(site: &str, url: &str) -> bool {
        SiteScope::of(&site.parse().unwrap()).unwrap().contains(&url.parse().unwrap())
    }

    #[test]
    fn a_site_is_its_host_and_what_lies_beneath() {
        let site = "https://www.example.com/ignored?too";
        for url in [
            "https://www.example.com/watch",
            "https://example.com/",
            "https://EXAMPLE.com./",
            "https://m.example.com/x",
            "https://a.consent.example.com:443/",
        ] {
            assert!(contains(site, url), "{url}");
        }
        for url in [
            "http://www.example.com/",
            "https://www.example.com:8443/",
            "https://badexample.com/",
            "https://example.com.evil.test/",
            "https://com/",
            "https://127.0.0.1/",
            "data:text/plain,x",
        ] {
            assert!(!contains(site, url), "{url}");
        }
        assert!(!contains("https://videos.example.com", "https://example.com/"));
        assert!(!contains("https://www.com", "https://example.com/"));
    }

    #[test]
    fn an_address_is_only_itself() {
        assert!(contains("http://127.0.0.1:81", "http://127.0.0.1:81/x"));
        assert!(contains("http://[::1]:81", "http://[::1]:81/x"));
        assert!(!contains("http://127.0.0.1:81", "http://127.0.0.1:82/x"));
        assert!(!contains("http://127.0.0.1:81", "http://127.0.0.2:81/x"));
        assert!(!contains("http://127.0.0.1:81", "http://localhost:81/x"));
    }
}
