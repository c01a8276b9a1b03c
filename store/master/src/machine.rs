//! The metadata server without its sockets: a frame in, its reply out.

use core::fmt;

use springtide_core::id::Incarnation;
use springtide_core::master::Master;
use springtide_core::ticket::TicketKey;
use springtide_core::time::Instant;
use springtide_core::wire::frame::Frame;
use springtide_rpc::Replies;

use crate::calls::Calls;
use crate::dispatch::dispatch;
use crate::state::{Counts, Peer, Secrets, State};

/// The metadata server as a machine without I/O, for whoever drives it by other means than a socket (a simulator, an
/// embedding): requests are told from each other, decoded, carried out and answered as [`Server`](crate::Server) does.
pub struct Machine {
    state: State,
    calls: Calls,
}

impl Machine {
    /// `master` as the life `incarnation` of cluster `cluster`. `secrets` gives a fresh secret for each registration:
    /// outside a simulation it must come from the system's randomness.
    pub fn new(
        master: Master,
        cluster: u64,
        incarnation: Incarnation,
        secrets: impl FnMut() -> TicketKey + Send + 'static,
    ) -> Self {
        let (counts, secrets) = (Counts::default(), Secrets(Box::new(secrets)));
        let state = State { master, cluster, incarnation, greeted: 0, counts, secrets };
        Self { state, calls: Calls::default() }
    }

    /// Answers one request of `peer`, exactly once.
    pub fn handle(&mut self, now: Instant, peer: &mut Peer, frame: &Frame<'_>, replies: &mut Replies<'_>) {
        dispatch((&mut self.state, &self.calls), now, peer, frame, replies);
    }

    /// Does what is due; gives back when to come again, at the latest. A request may bring that nearer: come again after
    /// each, or within 50 ms.
    pub fn turn(&mut self, now: Instant) -> Instant {
        self.state.turn(now)
    }

    /// The machine inside, to be looked at.
    pub const fn master(&self) -> &Master {
        &self.state.master
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("incarnation", &self.state.incarnation).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use springtide_core::error::Code;
    use springtide_core::id::Term;
    use springtide_core::master::Config;
    use springtide_core::wire::codec;
    use springtide_core::wire::frame::{Header, Method};
    use springtide_core::wire::message::{self, ClientStatus, Hello, Mode, Register, Registered};

    const NOW: Instant = Instant::from_nanos(1);

    fn ask(machine: &mut Machine, peer: &mut Peer, method: Method, body: &[u8]) -> (Code, Vec<u8>) {
        let mut out = Vec::new();
        let frame = Frame { header: Header::request(method, 7, None), body };
        machine.handle(NOW, peer, &frame, &mut Replies::at_once(&mut out));
        let (reply, used) = springtide_core::wire::frame::decode(&out).unwrap().expect("one reply");
        assert_eq!((used, reply.header.request), (out.len(), 7));
        (reply.header.status, reply.body.to_vec())
    }

    #[test]
    fn registers_with_a_secret_from_outside() {
        let master = Master::new(Config::default(), 1, Term(1), NOW);
        let mut machine = Machine::new(master, 5, Incarnation(9), || TicketKey([3; 16]));
        let mut peer = Peer::default();
        let mut body = Vec::new();
        codec::put(&mut body, &Register { name: "n", address: "", mode: Mode::Pool, fences: true });
        assert_eq!(ask(&mut machine, &mut peer, message::REGISTER, &body).0, Code::INVALID_PARAMS);
        let (incarnation, expected) = (Incarnation(4), Incarnation::default());
        let mut hello = Vec::new();
        codec::put(
            &mut hello,
            &Hello { oldest: 1, newest: 1, cluster: 5, incarnation, tenant: "default", expected },
        );
        assert_eq!(ask(&mut machine, &mut peer, message::HELLO, &hello).0, Code::OK);
        let (status, answer) = ask(&mut machine, &mut peer, message::REGISTER, &body);
        let registered = codec::whole::<Registered>(&answer).expect("an answer");
        assert_eq!((status, registered.ticket_key), (Code::OK, TicketKey([3; 16])));
        assert!(machine.turn(NOW) > NOW);
        assert_eq!(machine.master().status(incarnation), ClientStatus::Healthy);
    }
}
