//! Addresses as people write them.

use springtide_cli::address::{Address, Http, advertised};
use springtide_core::address::{HostPort, Reach};

/// Any text. What is read as an address shows itself as one that reads the same, whatever the default port.
pub fn addresses(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    match HostPort::parse(text, 7) {
        Ok(address) => {
            let shown = address.to_string();
            assert_eq!(HostPort::parse(&shown, 9), Ok(address), "{shown}");
            assert!(text.contains(address.host));
            assert!(address.ip().is_none() || !address.host.contains('%'));
            assert!(address.reach() != Reach::Any || address.ip().is_some_and(|ip| ip.is_unspecified()));
        }
        Err(error) => assert!(error.to_string().contains("is no address")),
    }
    let known = HostPort::parse(text, 1).is_ok();
    assert_eq!((Address::rpc(text).is_ok(), Address::listen(text).is_ok()), (known, known));
    assert_eq!(Http::parse(text).is_ok(), known || text == "off");
    if let Ok(peer) = Address::peer(text) {
        assert!(peer.port != 0 && peer.borrowed().reach() != Reach::Any);
        assert_eq!(Address::peer(&peer.to_string()), Ok(peer));
    }
    if let Ok(host) = advertised(text) {
        assert_eq!(advertised(&host), Ok(host.clone()), "{host}");
    }
}
