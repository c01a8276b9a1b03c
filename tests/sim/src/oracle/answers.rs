//! What a master may answer: every request with its reply, against what the oracle knows.

use springtide_core::error::Code;
use springtide_core::master::Master;
use springtide_core::time::Instant;
use springtide_core::wire::codec;
use springtide_core::wire::frame::{Frame, decode};
use springtide_core::wire::message::{
    self, Abandoned, Finished, Forcing, Found, Grant as Granted, Granted as Head, Leased, Options, Presence,
    ProbeKind, Publish, Refusal, Wanted,
};

use super::objects::is_there;
use super::space::{Seen, Writer};
use super::{Names, Oracle, Rule};
use crate::fabric::Fabric;
use crate::queue::Pid;

impl Oracle {
    /// The master `pid` answered `request` with `out`.
    pub fn served(
        &mut self,
        (at, now): (Instant, Instant),
        (pid, master): (Pid, &Master),
        fabric: &Fabric,
        request: &Frame<'_>,
        out: &[u8],
    ) {
        let view = &mut self.views[pid.index()];
        view.now = view.now.max(now);
        let Ok(Some((reply, _))) = decode(out) else { return };
        if !reply.header.status.is_ok() {
            return;
        }
        let seen = Seen { at, master, fabric };
        let (asked, said) = (request.body, reply.body);
        // What cannot be decoded was refused, or breaks another rule.
        let _ = match request.header.method {
            message::PUT_START => self.started(pid, seen, asked, said),
            message::RESERVE => self.reserved(pid, seen, said),
            message::PUT_END => self.ended(pid, seen, asked, said),
            message::PUBLISH => self.published(pid, seen, asked, said),
            message::PUT_ABORT => self.aborted(pid, seen, asked, said),
            message::GET => self.found(pid, seen, asked, said),
            message::EXISTS => self.probed(pid, seen, asked, said),
            message::REMOVE => self.removed(pid, seen, asked, said),
            _ => Ok(()),
        };
    }

    fn started(
        &mut self,
        pid: Pid,
        seen: Seen<'_>,
        asked: &[u8],
        said: &[u8],
    ) -> Result<(), codec::Malformed> {
        let (options, wanted) = codec::split::<Options<'_>, Wanted<'_>>(asked)?;
        let (head, answers) = codec::split::<Head, Result<Granted, Refusal>>(said)?;
        for (wanted, answer) in wanted.zip(answers) {
            if let (Ok(wanted), Ok(Ok(granted))) = (wanted, answer) {
                let key = Names::number(wanted.key);
                self.began(pid, seen, (key, wanted.len, options.hard_pin), head.term, &granted);
            }
        }
        Ok(())
    }

    fn reserved(&mut self, pid: Pid, seen: Seen<'_>, said: &[u8]) -> Result<(), codec::Malformed> {
        let (head, answers) = codec::split::<Head, Result<Granted, Refusal>>(said)?;
        for granted in answers.flatten().flatten() {
            self.began(pid, seen, (None, 0, false), head.term, &granted);
        }
        Ok(())
    }

    fn ended(&mut self, pid: Pid, seen: Seen<'_>, asked: &[u8], said: &[u8]) -> Result<(), codec::Malformed> {
        let ((), items) = codec::split::<(), Finished>(asked)?;
        let ((), answers) = codec::split::<(), Result<(), Refusal>>(said)?;
        for (item, answer) in items.zip(answers) {
            if let (Ok(item), Ok(Ok(()))) = (item, answer) {
                self.finished(pid, seen, item.object, None, &item.failed);
            }
        }
        Ok(())
    }

    fn published(
        &mut self,
        pid: Pid,
        seen: Seen<'_>,
        asked: &[u8],
        said: &[u8],
    ) -> Result<(), codec::Malformed> {
        let ((), items) = codec::split::<(), Publish<'_>>(asked)?;
        let ((), answers) = codec::split::<(), Result<(), Refusal>>(said)?;
        for (item, answer) in items.zip(answers) {
            if let (Ok(item), Ok(Ok(()))) = (item, answer) {
                let name = Names::number(item.key).map(|key| (key, item.len));
                self.finished(pid, seen, item.object, name, &item.failed);
            }
        }
        Ok(())
    }

    fn aborted(
        &mut self,
        pid: Pid,
        seen: Seen<'_>,
        asked: &[u8],
        said: &[u8],
    ) -> Result<(), codec::Malformed> {
        let ((), items) = codec::split::<(), Abandoned>(asked)?;
        let ((), answers) = codec::split::<(), Result<(), Refusal>>(said)?;
        for (item, answer) in items.zip(answers) {
            if let (Ok(item), Ok(Ok(()))) = (item, answer) {
                let writer = if item.quiet { Writer::Quiet } else { Writer::Unsure };
                self.views[pid.index()].take(item.object, writer);
                self.must_be_gone(seen, item.object);
            }
        }
        Ok(())
    }

    fn found(&mut self, pid: Pid, seen: Seen<'_>, asked: &[u8], said: &[u8]) -> Result<(), codec::Malformed> {
        let ((), keys) = codec::split::<(), &[u8]>(asked)?;
        let (_, answers) = codec::split::<Leased, Result<Found, Refusal>>(said)?;
        for (key, answer) in keys.zip(answers) {
            let (Some(key), Ok(answer)) = (key.ok().and_then(Names::number), answer) else { continue };
            match answer {
                Ok(found) => self.found_one(pid, seen, key, &found),
                Err(refusal) => self.missing(pid, seen, key, refusal.code),
            }
        }
        Ok(())
    }

    fn found_one(&mut self, pid: Pid, seen: Seen<'_>, key: u32, found: &Found) {
        let view = &mut self.views[pid.index()];
        let (until, current) = (view.now + view.lease, view.current(key));
        let id = found.object;
        let Some(object) = view.object(id).filter(|object| object.complete && current == Some(id)) else {
            let what = format_args!("a get of key {key} found {id}, which it is not ({current:?})");
            return self.violate(seen.at, Rule::Early, what);
        };
        object.lease = object.lease.max(until);
        let grants = object.grants.clone();
        let known = |segment, offset| {
            grants.iter().any(|&number| {
                let ticket = &view.grants.get(number).ticket;
                (ticket.segment, ticket.extent.offset()) == (segment, offset)
            })
        };
        if let Some(stray) = found.replicas.iter().find(|at| !known(at.segment, at.offset)) {
            let what = format_args!("a get of key {key} found {stray:?}, which {id} does not have");
            self.violate(seen.at, Rule::Bytes, what);
        }
    }

    /// A master said that it cannot give `key`.
    fn missing(&mut self, pid: Pid, seen: Seen<'_>, key: u32, code: Code) {
        let Some(id) = self.views[pid.index()].current(key) else { return };
        let there = is_there(seen.master, id);
        match code {
            Code::UNAVAILABLE_IN_CURRENT_STATUS if there => {}
            _ if there => {
                let what = format_args!("key {key} is {id}, but the master says {code}");
                self.violate(seen.at, Rule::Vanished, what);
            }
            _ => self.lose_sight(pid, seen, id),
        }
    }

    fn probed(
        &mut self,
        pid: Pid,
        seen: Seen<'_>,
        asked: &[u8],
        said: &[u8],
    ) -> Result<(), codec::Malformed> {
        let (kind, keys) = codec::split::<ProbeKind, &[u8]>(asked)?;
        let ((), answers) = codec::split::<(), Presence>(said)?;
        for (key, answer) in keys.zip(answers) {
            let (Some(key), Ok(presence)) = (key.ok().and_then(Names::number), answer) else { continue };
            let view = &mut self.views[pid.index()];
            let Some(id) = view.current(key) else {
                if presence == Presence::Present {
                    let what = format_args!("key {key} is said to be there, but nothing was ended under it");
                    self.violate(seen.at, Rule::Early, what);
                }
                continue;
            };
            let lease = view.object(id).map_or(Instant::ORIGIN, |object| object.lease);
            let Some(stat) = seen.master.object(id).filter(|_| is_there(seen.master, id)) else {
                self.lose_sight(pid, seen, id);
                continue;
            };
            if presence == Presence::Present && kind == ProbeKind::Plain && stat.leased_until > lease {
                let what = format_args!("asking for key {key} renewed the lease on {id}");
                self.violate(seen.at, Rule::Renewed, what);
            }
        }
        Ok(())
    }

    fn removed(
        &mut self,
        pid: Pid,
        seen: Seen<'_>,
        asked: &[u8],
        said: &[u8],
    ) -> Result<(), codec::Malformed> {
        let (force, keys) = codec::split::<Forcing, &[u8]>(asked)?;
        let ((), answers) = codec::split::<(), Result<(), Refusal>>(said)?;
        for (key, answer) in keys.zip(answers) {
            let (Some(key), Ok(answer)) = (key.ok().and_then(Names::number), answer) else { continue };
            let view = &mut self.views[pid.index()];
            let (now, current) = (view.now, view.current(key));
            let lease = current.and_then(|id| view.object(id)).map_or(Instant::ORIGIN, |object| object.lease);
            match (answer, current) {
                (Ok(()), None) => {
                    let what = format_args!("key {key} was removed, but nothing was ended under it");
                    self.violate(seen.at, Rule::Early, what);
                }
                (Ok(()), Some(id)) => {
                    if force == Forcing::No && lease > now {
                        let what = format_args!("{id} was removed under a lease");
                        self.violate(seen.at, Rule::Leased, what);
                    }
                    let object = self.views[pid.index()].take(id, Writer::Ended);
                    self.must_be_gone(seen, id);
                    if let Some(put) = object.and_then(|object| object.put).and_then(|put| self.put_of(put)) {
                        put.removed = seen.at;
                    }
                }
                (Err(refusal), Some(id)) if refusal.code == Code::OBJECT_HAS_LEASE && lease <= now => {
                    let what = format_args!("{id} is said to be leased, but nobody read it");
                    self.violate(seen.at, Rule::Renewed, what);
                }
                (Err(refusal), _) if refusal.code == Code::OBJECT_NOT_FOUND => {
                    self.missing(pid, seen, key, refusal.code);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
