//! Who a client is, by its address. Behind a proxy every connection comes from the proxy, which says in `X-Forwarded-For`
//! from whom it had the request; anybody can send such a header, so only a proxy that the operator named is believed.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Goes with a request that a trusted proxy handed on: what it says in its other `X-Forwarded-…` headers is believed too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrustedProxy;

/// The address of the client: of the connection's other end, or, when that is a trusted proxy, the last one in the header that
/// is not. Each proxy adds the address it saw at the end, so that what a client made up stands before it.
pub(crate) fn client(peer: SocketAddr, headers: &HeaderMap, trusted: &[IpNet]) -> SocketAddr {
    if !is_trusted(peer.ip(), trusted) {
        return peer;
    }
    let mut client = peer;
    let values = headers.get_all(FORWARDED_FOR).iter().rev();
    // As bytes: nothing that a client put before the others makes them unreadable.
    for entry in values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b',')) {
        // Something that is no address is of nobody whom a proxy saw.
        let Some(ip) = std::str::from_utf8(entry.trim_ascii()).ok().and_then(address) else { break };
        client = SocketAddr::new(ip, 0);
        if !is_trusted(ip, trusted) {
            break;
        }
    }
    client
}

/// Whether it is the address of a trusted proxy.
pub(crate) fn is_trusted(ip: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|network| network.contains(&ip.to_canonical()))
}

/// What is counted as one client: an address; of IPv6 the network of 64 bits, of which one subscriber has all addresses.
pub(crate) fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
    }
}

/// An address, with a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let ip: Option<IpAddr> = bare.parse().ok();
    ip.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn client_of(peer: &str, headers: &[&str]) -> String {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let value = |value: &&str| HeaderValue::from_bytes(value.as_bytes()).unwrap();
        let headers = headers.iter().map(|text| (FORWARDED_FOR, value(text)));
        client(SocketAddr::new(peer.parse().unwrap(), 7), &headers.collect(), &trusted).ip().to_string()
    }

    #[test]
    fn what_a_stranger_says_of_itself_is_not_believed() {
        assert_eq!(client_of("203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
    }

    #[test]
    fn a_trusted_proxy_is_believed() {
        for header in ["198.51.100.1", " 198.51.100.1 ", "198.51.100.1:4711"] {
            assert_eq!(client_of("10.0.0.1", &[header]), "198.51.100.1", "{header}");
        }
        for header in ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443"] {
            assert_eq!(client_of("fd00::2", &[header]), "2001:db8::1", "{header}");
        }
        assert_eq!(client_of("::ffff:10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
    }

    #[test]
    fn what_stands_before_the_last_stranger_is_made_up() {
        assert_eq!(client_of("10.0.0.1", &["1.2.3.4, 198.51.100.1"]), "198.51.100.1");
        assert_eq!(client_of("10.0.0.1", &["1.2.3.4, 198.51.100.1, 10.0.0.2"]), "198.51.100.1");
        assert_eq!(client_of("10.0.0.1", &["1.2.3.4", "198.51.100.1", "10.0.0.2"]), "198.51.100.1");
    }

    #[test]
    fn without_a_word_of_the_proxy_or_with_nonsense_it_is_the_last_one_known() {
        assert_eq!(client_of("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client_of("10.0.0.1", &["unknown"]), "10.0.0.1");
        assert_eq!(client_of("10.0.0.1", &["198.51.100.1, unknown, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(client_of("10.0.0.1", &["198.51.100.1, \u{fc}, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(client_of("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
    }

    #[test]
    fn what_a_client_made_up_does_not_hide_the_address_that_its_proxy_saw() {
        assert_eq!(client_of("10.0.0.1", &["\u{fc}, 198.51.100.1"]), "198.51.100.1");
        assert_eq!(client_of("10.0.0.1", &["1.2.3.4\u{a0}, 198.51.100.1, 10.0.0.2"]), "198.51.100.1");
        assert_eq!(client_of("10.0.0.1", &["\u{fc}", "198.51.100.1"]), "198.51.100.1");
        let mut headers = HeaderMap::new();
        headers.insert(FORWARDED_FOR, HeaderValue::from_bytes(b"\xff\xfe,198.51.100.1").unwrap());
        let trusted: [IpNet; 1] = ["10.0.0.0/8".parse().unwrap()];
        let seen = client("10.0.0.1:7".parse().unwrap(), &headers, &trusted);
        assert_eq!(seen.ip().to_string(), "198.51.100.1");
    }

    #[test]
    fn one_client_is_one_address_or_one_network_of_ipv6() {
        let same = |one: &str, other: &str| network(one.parse().unwrap()) == network(other.parse().unwrap());
        assert!(same("2001:db8:0:1::1", "2001:db8:0:1:ffff::2"));
        assert!(same("::ffff:192.0.2.1", "192.0.2.1"));
        assert!(!same("2001:db8:0:1::1", "2001:db8:0:2::1"));
        assert!(!same("192.0.2.1", "192.0.2.2"));
    }
}
