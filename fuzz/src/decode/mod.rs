//! Decoders: no bytes make them panic, and what they read they also write, so that it reads the same again.

#[cfg(feature = "command")]
mod address;
mod frames;
mod messages;
#[cfg(feature = "command")]
mod settings;
#[cfg(feature = "command")]
mod trace;

#[cfg(feature = "command")]
pub use address::addresses;
pub use frames::frames;
pub use messages::messages;
#[cfg(feature = "command")]
pub use settings::settings;
#[cfg(feature = "command")]
pub use trace::trace;

/// What stands on the wire of `transports/tcp`: hello, requests, replies, addresses.
pub fn tcp_wire(data: &[u8]) {
    springtide_transport_tcp::fuzz::decode(data);
}

/// What peers of `transports/shm` tell each other: messages, ring entries, addresses, descriptions.
pub fn shm_wire(data: &[u8]) {
    springtide_transport_shm::fuzz::decode(data);
}
