//! Which addresses are on the public internet. Decided by a list for IPv4 and, for IPv6, by naming the one range that
//! is global unicast: whatever is not known to be public is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::address::quoted;

/// From the IANA special-purpose registry, and the one metadata address that a cloud put into public space.
const NOT_PUBLIC_V4: [Ipv4Net; 17] = [
    v4(0, 0, 0, 0, 8),          // "this network", unspecified
    v4(10, 0, 0, 0, 8),         // private
    v4(100, 64, 0, 0, 10),      // carrier-grade NAT
    v4(127, 0, 0, 0, 8),        // loopback
    v4(168, 63, 129, 16, 32),   // Azure's platform endpoint
    v4(169, 254, 0, 0, 16),     // link-local, metadata
    v4(172, 16, 0, 0, 12),      // private
    v4(192, 0, 0, 0, 24),       // IETF protocol assignments
    v4(192, 0, 2, 0, 24),       // documentation
    v4(192, 88, 99, 0, 24),     // 6to4 relays
    v4(192, 168, 0, 0, 16),     // private
    v4(198, 18, 0, 0, 15),      // benchmarking
    v4(198, 51, 100, 0, 24),    // documentation
    v4(203, 0, 113, 0, 24),     // documentation
    v4(224, 0, 0, 0, 4),        // multicast
    v4(240, 0, 0, 0, 4),        // reserved
    v4(255, 255, 255, 255, 32), // broadcast
];

/// Global unicast. Loopback, unspecified, mapped, compatible, discard, unique-local, link-local, site-local and
/// multicast addresses all lie outside it.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0], 3);

/// What is not public within [`GLOBAL_V6`].
const NOT_PUBLIC_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0], 23),     // IETF protocol assignments, Teredo and benchmarking among them
    v6([0x2001, 0xdb8], 32), // documentation
    v6([0x2002, 0], 16),     // 6to4: tunnels to the IPv4 address inside
    v6([0x3fff, 0], 20),     // documentation
];

/// How IPv6-only networks reach IPv4; the last 32 bits are the address that is meant.
const NAT64: Ipv6Net = v6([0x64, 0xff9b], 96);

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(start: [u16; 2], length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(start[0], start[1], 0, 0, 0, 0, 0, 0), length)
}

/// Decides which addresses may be connected to.
#[derive(Debug)]
pub(super) struct AddressGuard {
    allow: Vec<IpNet>,
}

impl AddressGuard {
    pub(super) fn new(allow: Vec<IpNet>) -> Self {
        Self { allow }
    }

    /// Public, or in a network that the operator has opened. A mapped address (`::ffff:10.0.0.1`) reaches the IPv4
    /// address inside it, so it is open when that one was opened.
    pub(super) fn permits(&self, address: IpAddr) -> bool {
        let meant = address.to_canonical();
        is_public(address) || self.allow.iter().any(|net| net.contains(&address) || net.contains(&meant))
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) if NAT64.contains(&address) => {
            let [.., a, b, c, d] = address.octets();
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !NOT_PUBLIC_V6.iter().any(|net| net.contains(&address))
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|net| net.contains(&address))
}

/// Reads the operator's list of opened networks: CIDRs or single addresses, separated by commas. Host bits beyond the
/// prefix are ignored (`10.1.2.3/8` is `10.0.0.0/8`); an empty text opens nothing.
///
/// # Errors
/// A sentence that names every entry that is neither.
pub fn parse_allow_list(text: &str) -> Result<Vec<IpNet>, String> {
    let mut networks = Vec::new();
    let mut wrong = Vec::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let network = entry.parse::<IpNet>().or_else(|_| entry.parse::<IpAddr>().map(IpNet::from));
        match network {
            Ok(network) => networks.push(network.trunc()),
            Err(_) => wrong.push(quoted(entry)),
        }
    }
    if wrong.is_empty() {
        Ok(networks)
    } else {
        Err(format!("not an IP address or network such as 10.0.0.0/8: {}", wrong.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(guard: &AddressGuard, address: &str) -> bool {
        guard.permits(address.parse().unwrap())
    }

    #[test]
    fn public_addresses_are_permitted() {
        let guard = AddressGuard::new(Vec::new());
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "128.0.0.1",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450:4001::1",
            "3fff:1000::1",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(permits(&guard, address), "{address} should be permitted");
        }
    }

    #[test]
    fn addresses_that_are_not_public_are_refused() {
        let guard = AddressGuard::new(Vec::new());
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.0.1",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "192.168.255.255",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::8.8.8.8",
            "::127.0.0.1",
            "::10.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::10.0.0.1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:f5ff:fffe",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::1",
            "2002:808:808::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
        ] {
            assert!(!permits(&guard, address), "{address} should be refused");
        }
    }

    #[test]
    fn an_opened_network_is_permitted_and_its_neighbour_is_not() {
        let guard = AddressGuard::new(parse_allow_list("10.1.0.0/16, fd12::/16").unwrap());
        assert!(permits(&guard, "10.1.2.3"));
        assert!(permits(&guard, "::ffff:10.1.2.3"));
        assert!(permits(&guard, "fd12::1"));
        assert!(permits(&guard, "8.8.8.8"));
        assert!(!permits(&guard, "10.2.0.1"));
        assert!(!permits(&guard, "::ffff:10.2.0.1"));
        assert!(!permits(&guard, "64:ff9b::10.1.2.3"));
        assert!(!permits(&guard, "fd13::1"));
    }

    #[test]
    fn the_list_takes_networks_and_single_addresses() {
        let networks = parse_allow_list(" 10.1.2.3/8 ,192.168.1.5,, fd00::/8,::1").unwrap();
        let expected = ["10.0.0.0/8", "192.168.1.5/32", "fd00::/8", "::1/128"];
        assert_eq!(networks.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        assert!(parse_allow_list("").unwrap().is_empty());
    }

    #[test]
    fn every_wrong_entry_of_the_list_is_named() {
        let message = parse_allow_list("10.0.0.0/33, localhost, 10.0.0.0/8").unwrap_err();
        assert!(message.contains("\"10.0.0.0/33\"") && message.contains("\"localhost\""), "{message}");
        assert!(!message.contains("\"10.0.0.0/8\""), "{message}");
    }
}
