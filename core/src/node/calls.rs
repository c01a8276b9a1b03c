//! What a member's calls say, and what their answers mean.

use alloc::vec::Vec;

use serde::Deserialize;

use super::{CallError, Membership, Next};
use crate::time::Instant;
use crate::wire::codec;
use crate::wire::frame::Method;
use crate::wire::message::{
    Beat, FenceDuty, HEARTBEAT, Heartbeat, MOUNT, Mode, Mount, REGISTER, Register, Registered,
};

/// Who registers.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Its name, for people.
    pub name: &'a str,
    /// Where its RPC is served, as `host:port`; empty if it serves none.
    pub address: &'a str,
}

impl Membership {
    /// Appends the body of the call that `next` names, and gives back which call; `None` for [`Next::Wait`].
    pub fn request(&mut self, next: Next, identity: Identity<'_>, body: &mut Vec<u8>) -> Option<Method> {
        match next {
            Next::Register => {
                let Identity { name, address } = identity;
                codec::put(body, &Register { name, address, mode: Mode::Pool, fences: true });
                Some(REGISTER)
            }
            Next::Mount(place) => {
                let (lent, _) = self.segments().get(place)?;
                codec::put(body, &Mount { name: &lent.name, len: lent.len, uniform: lent.uniform });
                Some(MOUNT)
            }
            Next::Heartbeat => {
                codec::put(body, &Heartbeat { count: 0 });
                self.fenced().iter().for_each(|number| codec::put(body, number));
                Some(HEARTBEAT)
            }
            Next::Wait(_) => None,
        }
    }

    /// How the call of [`request`](Self::request) for `next` went: the body of its answer, or why there is none. One
    /// that cannot be read counts as none.
    pub fn handle_answer(&mut self, now: Instant, next: Next, answer: Result<&[u8], CallError>) {
        match next {
            Next::Register => self.handle_registered(now, answer.and_then(whole::<Registered>)),
            Next::Mount(place) => self.handle_mounted(now, place, answer.and_then(whole)),
            Next::Heartbeat => {
                let beat = answer
                    .and_then(|body| codec::split::<Beat, FenceDuty>(body).map_err(|_| CallError::NoAnswer));
                match beat {
                    Ok((beat, duties)) => {
                        self.handle_beat(now, Ok(beat.status), duties.filter_map(Result::ok));
                    }
                    Err(error) => self.handle_beat(now, Err(error), core::iter::empty()),
                }
            }
            Next::Wait(_) => {}
        }
    }
}

fn whole<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, CallError> {
    codec::whole(body).map_err(|_| CallError::NoAnswer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Config, Lent};
    use crate::ticket::TicketKey;
    use crate::wire::message::ClientStatus;
    use alloc::vec;

    const WHO: Identity<'_> = Identity { name: "n", address: "h:1" };
    const NOW: Instant = Instant::from_nanos(1);

    #[test]
    fn a_member_joins_by_its_calls() {
        let lent = Lent { name: "s".into(), len: 64, uniform: 0 };
        let mut member = Membership::new(Config::default(), vec![lent], 1);
        let mut body = Vec::new();
        assert_eq!(member.request(Next::Wait(NOW), WHO, &mut body), None);
        assert_eq!(member.request(member.next(NOW), WHO, &mut body), Some(REGISTER));
        assert_eq!(codec::whole::<Register<'_>>(&body).map(|it| it.address), Ok("h:1"));
        let mut answer = Vec::new();
        codec::put(
            &mut answer,
            &Registered { ticket_key: TicketKey([1; 16]), heartbeat_ms: 100, ttl_ms: 1_000 },
        );
        member.handle_answer(NOW, Next::Register, Ok(&answer));
        assert_eq!(member.next(NOW), Next::Mount(0));
        member.handle_answer(NOW, Next::Mount(0), Ok(&[]));
        assert!(matches!(member.next(NOW), Next::Wait(_)), "an unreadable answer is tried again");
    }

    #[test]
    fn a_heartbeat_hears_how_it_stands() {
        let mut member = Membership::new(Config::default(), Vec::new(), 1);
        member.handle_registered(
            NOW,
            Ok(Registered { ticket_key: TicketKey([1; 16]), heartbeat_ms: 100, ttl_ms: 1_000 }),
        );
        let mut answer = Vec::new();
        codec::put(&mut answer, &Beat { status: ClientStatus::Undefined });
        member.handle_answer(NOW, Next::Heartbeat, Ok(&answer));
        assert!(!member.is_inside());
    }
}
