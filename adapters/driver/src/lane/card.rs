//! What one process tells another about its memory.

use serde::{Deserialize, Serialize};

/// How one transport reaches one piece of memory: from its owner to a peer, never through the master.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Card {
    /// The transport's name ([`springtide_transport::Capabilities::name`]).
    pub transport: String,
    /// Where to open a path.
    pub address: Vec<u8>,
    /// What to import there.
    pub description: Vec<u8>,
}
