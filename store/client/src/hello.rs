//! The first call on every connection.

use std::sync::{Arc, Mutex, PoisonError};

use springtide_core::error::Code;
use springtide_core::id::Incarnation;
use springtide_core::wire::codec;
use springtide_core::wire::frame::Method;
use springtide_core::wire::message::{self, Hello, Mode, PROTOCOL, Welcome};

/// What this process says of itself on a new connection, and what the other side answered last.
#[derive(Clone, Debug)]
pub struct Greeting {
    incarnation: Incarnation,
    tenant: String,
    cluster: u64,
    expected: Incarnation,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Debug, Default)]
struct Heard {
    welcome: Option<Welcome>,
    refusal: Option<(Code, String)>,
}

impl Greeting {
    /// For calls on behalf of `tenant` to any life of the other side, in `cluster` (0 takes any).
    pub fn new(incarnation: Incarnation, tenant: &str, cluster: u64) -> Self {
        let expected = Incarnation::default();
        Self { incarnation, tenant: tenant.into(), cluster, expected, heard: Arc::default() }
    }

    /// The same, to one life of the other side only.
    #[must_use]
    pub fn expecting(self, expected: Incarnation) -> Self {
        Self { expected, ..self }
    }

    /// What the other side answered last.
    pub fn welcome(&self) -> Option<Welcome> {
        self.lock().welcome
    }

    /// Why the other side refused last, if it did.
    pub fn refusal(&self) -> Option<(Code, String)> {
        self.lock().refusal.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl springtide_rpc::Hello for Greeting {
    fn method(&self) -> Method {
        message::HELLO
    }

    fn say(&mut self, body: &mut Vec<u8>) {
        let (oldest, newest) = PROTOCOL;
        let Self { incarnation, cluster, expected, .. } = *self;
        codec::put(body, &Hello { oldest, newest, cluster, incarnation, tenant: &self.tenant, expected });
    }

    fn hear(&mut self, body: &[u8]) -> Result<(), Code> {
        let welcome: Welcome = codec::whole(body).map_err(|_| Code::INVALID_VERSION)?;
        if welcome.mode != Mode::Pool {
            return Err(Code::UNAVAILABLE_IN_CURRENT_MODE);
        }
        if self.expected != Incarnation::default() && welcome.incarnation != self.expected {
            return Err(Code::CLIENT_NOT_FOUND);
        }
        *self.lock() = Heard { welcome: Some(welcome), refusal: None };
        Ok(())
    }

    fn refused(&mut self, code: Code, text: &str) {
        self.lock().refusal = Some((code, text.into()));
    }
}
