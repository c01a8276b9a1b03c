//! One turn for everybody, and sleep without a lost wake-up.

use core::mem::MaybeUninit;
use core::time::Duration;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::event::{Timespec, epoll};
use springtide_core::id::PathId;
use springtide_core::time::Instant;
use springtide_hal_host::ring::Flag;
use springtide_transport::{Armed, Budget, Completion, DownReason, Event, Status};

use crate::Shm;
use crate::entry::REPLIES;
use crate::flight::{Flight, Meter};
use crate::guest::{Guest, Owner};
use crate::link::{Link, Mark, Side};
use crate::path::Path;
use crate::socket;

/// Most peers that may have paths to one transport.
const GUESTS: usize = 4_096;
/// Most peers that connected and have not introduced themselves; one more pushes the first of them out.
const STRANGERS: usize = 64;
/// How long the owner of a closed path may be in the midst of one step before its ops end as lost.
const PATIENCE: Duration = Duration::from_millis(100);
/// Busy turns between two looks at the descriptors.
const TURNS: u32 = 64;
/// Descriptors that one look takes in.
const READY: usize = 64;

/// When to look at the descriptors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    /// Busy turns until the next look. An idle turn makes the next one look.
    turns: u32,
    mood: Mood,
    /// Whose turn is first.
    first: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Mood {
    #[default]
    Awake,
    /// All peers were told to ring.
    Asleep,
}

/// A path that was closed while its owner was in the midst of a step: it may be loading from our memory.
#[derive(Debug)]
pub(crate) struct Leaving {
    id: PathId,
    path: Path,
    since: Option<Instant>,
    /// Its ops ended as lost; only their memory is still held.
    lost: Lost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lost {
    NotYet,
    Yes,
}

impl Leaving {
    pub(crate) fn new(id: PathId, path: Path, epoll: &OwnedFd) -> Self {
        if let Some(link) = &path.link {
            link.unwatch(epoll);
        }
        Self { id, path, since: None, lost: Lost::NotYet }
    }

    /// Whether the owner is done with our memory. Completions go to `ended`: those of ops that nobody knows about when it
    /// takes too long; their memory is held until it is over all the same.
    fn is_over(&mut self, now: Instant, ended: &mut VecDeque<Completion>) -> bool {
        let since = *self.since.get_or_insert(now);
        let over = self.path.is_quiet();
        if over && self.lost == Lost::NotYet {
            self.path.flush();
        } else if self.lost == Lost::NotYet && now.since(since) >= PATIENCE {
            self.lost = Lost::Yes;
            let lost = |flight: &Flight| Completion {
                id: flight.op.id,
                bytes: flight.moved,
                status: Status::Lost,
                code: 0,
            };
            self.path.done.extend(self.path.flights.iter().map(|(_, flight)| lost(flight)));
        }
        ended.append(&mut self.path.done);
        over
    }
}

impl Shm {
    pub(crate) fn drive(&mut self, now: Instant, budget: Budget, done: &mut [Completion]) -> usize {
        self.wake_up();
        self.see_off(now);
        let mut filled = 0;
        while filled < done.len()
            && let Some(completion) = self.ended.pop_front()
        {
            done[filled] = completion;
            filled += 1;
        }
        let mut meter = Meter::new(budget);
        let mut busy = false;
        while filled < done.len() && !meter.is_spent() {
            let (any, reaped) = self.round(&mut meter, &mut done[filled..]);
            filled += reaped;
            busy |= any;
            if !any {
                break;
            }
        }
        self.watch.turns = if busy { self.watch.turns.saturating_sub(1) } else { 0 };
        self.watch.first = self.watch.first.wrapping_add(1);
        filled
    }

    /// One turn for every path and guest; says whether anybody did anything, and how many ops were reaped.
    fn round(&mut self, meter: &mut Meter, done: &mut [Completion]) -> (bool, usize) {
        let (mut any, mut filled) = (false, 0);
        let (paths, guests) = (self.paths.slots(), self.guests.len());
        for turn in 0..paths + guests {
            let place = self.watch.first.wrapping_add(turn) % (paths + guests);
            if place < paths {
                if filled == done.len() {
                    continue;
                }
                any |= self.path_turn(place, meter);
                filled += self.reap(place, &mut done[filled..]);
            } else if !meter.is_spent() {
                any |= self.guest_turn(place - paths, meter);
            }
        }
        (any, filled)
    }

    fn path_turn(&mut self, slot: usize, meter: &mut Meter) -> bool {
        let Some((id, path)) = self.paths.at(slot) else { return false };
        match path.turn(&self.epoll, &self.regions, meter) {
            Ok(any) => any,
            Err(reason) => {
                self.down(id, reason);
                true
            }
        }
    }

    fn reap(&mut self, slot: usize, done: &mut [Completion]) -> usize {
        let Some((_, path)) = self.paths.at(slot) else { return 0 };
        let count = path.done.len().min(done.len());
        for (to, completion) in done.iter_mut().zip(path.done.drain(..count)) {
            *to = completion;
        }
        count
    }

    fn guest_turn(&mut self, slot: usize, meter: &mut Meter) -> bool {
        let owner = Owner { life: self.address.life, epoll: &self.epoll, regions: &self.regions };
        match self.guests[slot].as_mut().map(|guest| guest.turn(owner, meter)) {
            None | Some(Ok(false)) => false,
            Some(Ok(true)) => true,
            Some(Err(_)) => {
                self.guests[slot] = None;
                true
            }
        }
    }

    /// Looks after closed paths that could not end at once.
    fn see_off(&mut self, now: Instant) {
        let (ended, events) = (&mut self.ended, &mut self.events);
        self.leaving.retain_mut(|leaving| {
            let over = leaving.is_over(now, ended);
            if over {
                events.push_back(Event::Down(leaving.id, DownReason::Closed));
            }
            !over
        });
    }

    /// Looks at the descriptors, if it is time to.
    fn wake_up(&mut self) {
        if self.watch.mood == Mood::Awake && self.watch.turns > 0 {
            return;
        }
        self.watch.turns = TURNS;
        if self.watch.mood == Mood::Asleep {
            self.watch.mood = Mood::Awake;
            self.mark(0);
        }
        let mut space = [MaybeUninit::uninit(); READY];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Ok((ready, _)) = epoll::wait(&self.epoll, &mut space, Some(&at_once)) else { return };
        for event in ready {
            let mark = Mark::of(event.data);
            match mark.side {
                Side::Listener => self.welcome(),
                Side::Path => self.hear_path(mark.slot as usize),
                Side::Guest => self.hear_guest(mark.slot as usize),
            }
        }
    }

    fn hear_path(&mut self, slot: usize) {
        let Some((id, path)) = self.paths.at(slot) else { return };
        let awake = path.link.as_mut().map_or(Ok(()), |link| link.awake(&self.epoll));
        match awake.and_then(|()| path.listen(&self.epoll, &self.regions)) {
            Ok(true) => self.events.push_back(Event::Up(id)),
            Ok(false) => {}
            Err(reason) => self.down(id, reason),
        }
    }

    fn hear_guest(&mut self, slot: usize) {
        let owner = Owner { life: self.address.life, epoll: &self.epoll, regions: &self.regions };
        let Some(Some(guest)) = self.guests.get_mut(slot) else { return };
        let heard = guest.link().awake(&self.epoll).and_then(|()| guest.listen(owner));
        if heard.is_err() {
            self.guests[slot] = None;
        }
    }

    /// Takes in whoever connected.
    fn welcome(&mut self) {
        for _ in 0..STRANGERS {
            let Ok(socket) = socket::accept(&self.listener) else { return };
            let strangers = self.guests.iter().flatten().filter(|guest| !guest.is_known()).count();
            if strangers >= STRANGERS
                && let Some(slot) =
                    self.guests.iter_mut().find(|slot| slot.as_ref().is_some_and(|guest| !guest.is_known()))
            {
                *slot = None;
            }
            let slot = self.guests.iter().position(Option::is_none).unwrap_or(self.guests.len());
            if slot >= GUESTS {
                continue;
            }
            let mark = Mark { side: Side::Guest, slot: slot as u32 };
            // Another user's process, or one that is gone again.
            let Ok(link) = Link::new(socket, REPLIES, &self.epoll, mark) else { continue };
            let guest = Some(Guest::new(link));
            match self.guests.get_mut(slot) {
                Some(free) => *free = guest,
                None => self.guests.push(guest),
            }
            self.hear_guest(slot);
        }
    }

    /// Tells all peers whether they must ring.
    fn mark(&mut self, asleep: u64) {
        let links = self.paths.iter().filter_map(|(_, path)| path.link.as_ref());
        links.for_each(|link| link.board.set(Flag::Asleep, asleep));
        for guest in self.guests.iter_mut().flatten() {
            guest.link().board.set(Flag::Asleep, asleep);
        }
    }

    fn has_work(&self) -> bool {
        !self.events.is_empty()
            || !self.ended.is_empty()
            || self.paths.iter().any(|(_, path)| path.has_work())
            || self.guests.iter().flatten().any(Guest::has_work)
    }

    pub(crate) fn prepare_to_sleep(&mut self) -> Armed {
        if self.has_work() {
            return Armed::Again;
        }
        self.mark(1);
        // Whoever published before it could see the mark is seen now; whoever publishes later rings.
        if self.has_work() {
            self.mark(0);
            return Armed::Again;
        }
        self.watch.mood = Mood::Asleep;
        if self.leaving.is_empty() { Armed::Asleep } else { Armed::Poll(Duration::from_millis(1)) }
    }
}
