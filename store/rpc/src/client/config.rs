//! What bounds a connection, and how it introduces itself.

use core::time::Duration;

use springtide_core::error::Code;
use springtide_core::wire::frame::Method;

/// What bounds a connection.
#[derive(Clone, Copy, Debug)]
pub struct ClientConfig {
    /// How long connecting and saying hello may take. Default 3 s.
    pub connect: Duration,
    /// A peer that the network does not reach for this long is given up. Default 15 s.
    pub silence: Duration,
    /// First and longest pause before connecting is tried again; doubles in between. Default 20 ms and 2 s.
    pub backoff: (Duration, Duration),
    /// What becomes of calls while the peer cannot be reached. Default [`WhileDown::Refuse`].
    pub while_down: WhileDown,
    /// Most calls that have not ended. Default 65,536.
    pub calls: usize,
    /// While more bytes of requests than this wait for the peer, calls are refused as busy. Default 32 MiB.
    pub waiting: usize,
    /// Decides how the pauses are jittered, so that a thousand clients do not come back at once. Default 0.
    pub seed: u64,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            silence: Duration::from_secs(15),
            backoff: (Duration::from_millis(20), Duration::from_secs(2)),
            while_down: WhileDown::Refuse,
            calls: 65_536,
            waiting: 32 << 20,
            seed: 0,
        }
    }
}

/// What becomes of calls while the peer cannot be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhileDown {
    /// They fail at once until the next try to connect is due: one dead peer slows nobody.
    Refuse,
    /// They wait for the connection until their deadline, and then fail with the reason why there is none: for the one
    /// peer that nothing goes without.
    Wait,
}

/// The first call on each new connection. No other call is sent before it is answered.
pub trait Hello: Send {
    /// Which call.
    fn method(&self) -> Method;
    /// Appends the message.
    fn say(&mut self, body: &mut Vec<u8>);
    /// Takes the answer in. An error ends the connection: its peer is not one to talk to.
    ///
    /// # Errors
    /// The code to fail calls with.
    fn hear(&mut self, body: &[u8]) -> Result<(), Code>;
    /// The peer refused the hello with this code and text; the connection ends and is tried again after a pause.
    fn refused(&mut self, _code: Code, _text: &str) {}
}
