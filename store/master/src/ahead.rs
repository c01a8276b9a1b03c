//! Reading ahead: all calls that one read found wait for memory once, and not one after the other.

use springtide_core::id::Caller;
use springtide_core::key::Key;
use springtide_core::master::{Ahead, Master};
use springtide_core::wire::codec::split;
use springtide_core::wire::frame::Frame;
use springtide_core::wire::message as wire;
use springtide_rpc::Frames;

use crate::state::{Peer, State};

/// Keys that are looked ahead for at once: what they touch stays in the cache until it is used.
const TOGETHER: usize = 64;

/// Keys of one kind of call, to be looked ahead for.
struct Keys<'m, 'k> {
    master: &'m Master,
    caller: Caller,
    ahead: Ahead,
    keys: heapless::Vec<Key<'k>, TOGETHER>,
    seen: usize,
}

impl<'k> Keys<'_, 'k> {
    fn add(&mut self, ahead: Ahead, key: &'k [u8]) {
        let Ok(key) = Key::new(key) else { return };
        if self.ahead != ahead || self.keys.is_full() {
            self.flush();
        }
        self.ahead = ahead;
        self.seen += 1;
        let _ = self.keys.push(key);
    }

    fn flush(&mut self) {
        // One key gains nothing.
        if self.keys.len() > 1 {
            self.master.warm(self.caller, &self.keys, self.ahead);
        }
        self.keys.clear();
    }

    /// Adds the keys of `frame`. What cannot be read is refused when its turn comes,
    /// so nothing is checked here: every item is decoded once.
    fn add_all(&mut self, frame: &Frame<'k>) {
        let body = frame.body;
        match frame.header.method {
            wire::GET => {
                let Ok(((), keys)) = split::<(), &[u8]>(body) else { return };
                keys.map_while(Result::ok).for_each(|key| self.add(Ahead::Read, key));
            }
            wire::EXISTS => {
                let Ok((probe, keys)) = split::<wire::ProbeKind, &[u8]>(body) else { return };
                let ahead = match probe {
                    wire::ProbeKind::Plain => Ahead::Look,
                    wire::ProbeKind::RenewLease => Ahead::Read,
                };
                keys.map_while(Result::ok).for_each(|key| self.add(ahead, key));
            }
            wire::PUT_START => {
                let Ok((_, items)) = split::<wire::Options<'_>, wire::Wanted<'_>>(body) else { return };
                items.map_while(Result::ok).for_each(|item| self.add(Ahead::Look, item.key));
            }
            wire::REMOVE => {
                let Ok((_, keys)) = split::<wire::Forcing, &[u8]>(body) else { return };
                keys.map_while(Result::ok).for_each(|key| self.add(Ahead::Remove, key));
            }
            _ => {}
        }
    }
}

/// Looks ahead for the first of `frames`, and for more as long as there are few keys; says for how many.
pub(crate) fn warm(state: &State, peer: &Peer, frames: Frames<'_>) -> usize {
    // Who is refused reads nothing.
    let Ok(caller) = peer.caller(0) else { return usize::MAX };
    let keys = heapless::Vec::new();
    let mut ahead = Keys { master: &state.master, caller, ahead: Ahead::Look, keys, seen: 0 };
    let mut count = 0;
    for frame in frames {
        ahead.add_all(&frame);
        count += 1;
        if ahead.seen >= TOGETHER {
            break;
        }
    }
    ahead.flush();
    count
}
