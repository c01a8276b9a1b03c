//! The first call on every connection.

use std::sync::{Arc, Mutex, PoisonError};

use springtide_core::error::Code;
use springtide_core::id::{Incarnation, Term};
use springtide_core::wire::codec;
use springtide_core::wire::frame::Method;
use springtide_core::wire::message::{self, Hello, Mode, PROTOCOL, Welcome};
use springtide_driver::Shutdown;

/// What this process says of itself on a new connection, and what the other side answered last.
#[derive(Clone, Debug)]
pub struct Greeting {
    incarnation: Incarnation,
    tenant: String,
    cluster: u64,
    expected: Incarnation,
    heard: Arc<Mutex<Heard>>,
    turned_away: Shutdown,
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
        let (heard, turned_away) = (Arc::default(), Shutdown::new());
        Self { incarnation, tenant: tenant.into(), cluster, expected, heard, turned_away }
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

    /// Begins when the other side refuses for a reason that time does not mend.
    pub(crate) const fn turned_away(&self) -> &Shutdown {
        &self.turned_away
    }

    fn refuse(&self, code: Code, text: String) {
        self.lock().refusal = Some((code, text));
        if code != Code::BUSY {
            self.turned_away.begin();
        }
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
            let code = Code::UNAVAILABLE_IN_CURRENT_MODE;
            let text = "the master runs in another mode than this process; start both in the same one";
            self.refuse(code, format!("{text} ({code:?})"));
            return Err(code);
        }
        if self.expected == Incarnation::default() && welcome.term == Term::default() {
            let code = Code::UNAVAILABLE_IN_CURRENT_MODE;
            self.refuse(
                code,
                format!("a node answers there, not a master; name the master's address ({code:?})"),
            );
            return Err(code);
        }
        if self.expected != Incarnation::default() && welcome.incarnation != self.expected {
            return Err(Code::CLIENT_NOT_FOUND);
        }
        *self.lock() = Heard { welcome: Some(welcome), refusal: None };
        Ok(())
    }

    fn refused(&mut self, code: Code, text: &str) {
        self.refuse(code, format!("{text} ({code:?})"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use springtide_core::id::Term;
    use springtide_rpc::Hello as _;

    #[test]
    fn a_master_of_the_other_mode_is_refused_with_a_reason() {
        let mut greeting = Greeting::new(Incarnation(1), "t", 0);
        let mut hear = |mode| {
            let mut body = Vec::new();
            let welcome =
                Welcome { protocol: 1, cluster: 7, incarnation: Incarnation(2), term: Term(3), mode };
            codec::put(&mut body, &welcome);
            (greeting.hear(&body), greeting.welcome() == Some(welcome), greeting.refusal())
        };
        let (refused, welcome, why) = hear(Mode::Peer);
        assert_eq!((refused, welcome), (Err(Code::UNAVAILABLE_IN_CURRENT_MODE), false));
        let (code, text) = why.expect("a reason");
        assert_eq!(code, Code::UNAVAILABLE_IN_CURRENT_MODE);
        assert!(text.contains("another mode") && text.contains("-1011"), "{text}");
        assert_eq!(hear(Mode::Pool), (Ok(()), true, None));
    }
}
