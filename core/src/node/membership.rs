//! Stays registered with the master, whatever happens to either.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::error::Code;
use crate::id::SegmentId;
use crate::rng::Rng;
use crate::ticket::TicketKey;
use crate::time::Instant;
use crate::wire::message::{ClientStatus, FenceDuty, Registered};

/// How a member behaves while the master cannot be reached.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// First wait after a failed call; doubles with every further failure. Default 100 ms.
    pub retry: Duration,
    /// Longest wait between tries. Default 2 s.
    pub retry_most: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { retry: Duration::from_millis(100), retry_most: Duration::from_secs(2) }
    }
}

/// Memory that this process lends to the pool (S0A-062).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lent {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub len: u64,
    /// 0 for any sizes; else the page, in bytes, of a slab allocator for small uniform objects.
    pub uniform: u64,
}

/// The next call to make, or how long to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Call REGISTER, then [`Membership::handle_registered`].
    Register,
    /// Call MOUNT for the segment at this place, then [`Membership::handle_mounted`].
    Mount(usize),
    /// Call HEARTBEAT with [`Membership::fenced`], then [`Membership::handle_beat`].
    Heartbeat,
    /// Nothing before then. A fence that comes to stand may make a heartbeat due earlier.
    Wait(Instant),
}

/// What to do with our memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Let peers reach the segment at this place under this id, checking tickets with this key.
    Expose {
        /// Which of the segments lent.
        place: usize,
        /// Its id at the master.
        id: SegmentId,
        /// The secret for its tickets.
        key: TicketKey,
    },
    /// Let no peer reach the segment at this place any more.
    Withdraw {
        /// Which of the segments lent.
        place: usize,
    },
    /// Refuse older stores; then [`Membership::handle_fenced`].
    Fence {
        /// Which of the segments lent.
        place: usize,
        /// What to refuse.
        duty: FenceDuty,
    },
}

/// Why a call failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallError {
    /// The master did not answer, or not in time.
    NoAnswer,
    /// The master said no.
    Refused(Code),
}

/// Stays registered with the master, whatever happens to either (S0A-009, S0A-034, S0A-035, S0A-065,
/// S0B-121, S0B-122).
#[derive(Debug)]
pub struct Membership {
    config: Config,
    rng: Rng,
    segments: Vec<(Lent, Option<SegmentId>)>,
    state: State,
    key: Option<TicketKey>,
    beat_every: Duration,
    due: Instant,
    failures: u32,
    /// Fences that stand and the master does not know of yet.
    fenced: Vec<u64>,
    /// How many of them the heartbeat under way reports.
    reporting: usize,
    effects: VecDeque<Effect>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The master does not know us.
    Outside,
    /// Registered; the segments from this place on are still to be mounted.
    Mounting(usize),
    /// As `Mounting`, but counted as silent meanwhile: a heartbeat comes first.
    Silent(usize),
    /// All is told; heartbeats.
    Inside,
}

impl Membership {
    /// A member that lends `segments`, not registered yet. `seed` spreads retries of many members.
    pub fn new(config: Config, segments: Vec<Lent>, seed: u64) -> Self {
        Self {
            config,
            rng: Rng::new(seed),
            segments: segments.into_iter().map(|lent| (lent, None)).collect(),
            state: State::Outside,
            key: None,
            beat_every: Duration::from_secs(1),
            due: Instant::ORIGIN,
            failures: 0,
            fenced: Vec::new(),
            reporting: 0,
            effects: VecDeque::new(),
        }
    }

    /// The next call to make, or how long to wait.
    pub fn next(&self, now: Instant) -> Next {
        if !self.due.reached(now) {
            return Next::Wait(self.due);
        }
        match self.state {
            State::Outside => Next::Register,
            State::Mounting(place) => Next::Mount(place),
            State::Silent(_) | State::Inside => Next::Heartbeat,
        }
    }

    /// What to do with our memory, oldest first. Ask until `None` after every report.
    pub fn effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Whether the master knows us and all our segments.
    pub fn is_inside(&self) -> bool {
        self.state == State::Inside
    }

    /// The segments lent, with their ids at the master.
    pub fn segments(&self) -> &[(Lent, Option<SegmentId>)] {
        &self.segments
    }

    /// How registering went. A name or id that is taken is tried again: it may be our own earlier life, which the
    /// master drops after its TTL.
    pub fn handle_registered(&mut self, now: Instant, answer: Result<Registered, CallError>) {
        match answer {
            Ok(registered) => {
                self.succeeded(now);
                self.key = Some(registered.ticket_key);
                self.beat_every = Duration::from_millis(u64::from(registered.heartbeat_ms).max(10));
                self.fenced.clear();
                self.mount_from(0);
            }
            Err(_) => self.failed(now),
        }
    }

    /// How mounting the segment at `place` went.
    pub fn handle_mounted(&mut self, now: Instant, place: usize, answer: Result<SegmentId, CallError>) {
        if self.state != State::Mounting(place) {
            return;
        }
        match (answer, self.key) {
            (Ok(id), Some(key)) => {
                self.succeeded(now);
                self.segments[place].1 = Some(id);
                self.effects.push_back(Effect::Expose { place, id, key });
                self.mount_from(place + 1);
            }
            (Err(CallError::Refused(Code::CLIENT_NOT_FOUND)), _) => self.outside(now),
            (Err(CallError::Refused(Code::CLIENT_UNHEALTHY)), _) => {
                self.state = State::Silent(place);
                self.failed(now);
            }
            _ => self.failed(now),
        }
    }

    /// How a heartbeat went. `duties` are the fences that the master wants; those already standing or under way are
    /// taken once.
    pub fn handle_beat(
        &mut self,
        now: Instant,
        answer: Result<ClientStatus, CallError>,
        duties: impl Iterator<Item = FenceDuty>,
    ) {
        let reported = core::mem::take(&mut self.reporting);
        match answer {
            Ok(ClientStatus::Undefined) | Err(CallError::Refused(Code::CLIENT_NOT_FOUND)) => {
                self.outside(now)
            }
            // A crashed member is forgotten soon; until then it can only ask again (S0A-035).
            Ok(ClientStatus::Crashed) => {
                self.withdraw_all();
                self.due = now + self.beat_every;
            }
            Ok(ClientStatus::Healthy | ClientStatus::Disconnected) => {
                self.fenced.drain(..reported.min(self.fenced.len()));
                self.succeeded(now);
                self.due = now + self.beat_every;
                duties.for_each(|duty| self.fence(duty));
                if let State::Silent(place) = self.state {
                    self.mount_from(place);
                    self.due = now;
                }
                if !self.fenced.is_empty() {
                    self.due = now;
                }
            }
            Err(_) => self.failed(now),
        }
    }

    /// The numbers of the fences that stand, for the heartbeat that goes out now.
    pub fn fenced(&mut self) -> &[u64] {
        self.reporting = self.fenced.len();
        &self.fenced
    }

    /// The fence with this number stands.
    pub fn handle_fenced(&mut self, now: Instant, number: u64) {
        if !self.fenced.contains(&number) {
            self.fenced.push(number);
            if self.state == State::Inside && self.failures == 0 {
                self.due = self.due.min(now);
            }
        }
    }

    fn fence(&mut self, duty: FenceDuty) {
        if self.fenced.contains(&duty.number) {
            return;
        }
        match self.segments.iter().position(|(_, id)| *id == Some(duty.segment)) {
            Some(place) => {
                let effect = Effect::Fence { place, duty };
                if !self.effects.contains(&effect) {
                    self.effects.push_back(effect);
                }
            }
            // It may be the id of a mount whose answer is still on its way: the gate that will stand there would not know
            // of this fence. The master asks again.
            None if self.segments.iter().any(|(_, id)| id.is_none()) => {}
            // A segment that we no longer serve under that id: nothing can land in it.
            None => self.fenced.push(duty.number),
        }
    }

    fn mount_from(&mut self, place: usize) {
        self.state = if place < self.segments.len() { State::Mounting(place) } else { State::Inside };
    }

    fn outside(&mut self, now: Instant) {
        self.withdraw_all();
        self.fenced.clear();
        self.key = None;
        self.state = State::Outside;
        self.due = now;
    }

    fn withdraw_all(&mut self) {
        for (place, (_, id)) in self.segments.iter_mut().enumerate() {
            if id.take().is_some() {
                self.effects.push_back(Effect::Withdraw { place });
            }
        }
    }

    fn succeeded(&mut self, now: Instant) {
        self.failures = 0;
        self.due = now;
    }

    /// Waits twice as long as after the last failure, less up to a half by chance.
    fn failed(&mut self, now: Instant) {
        let wait = self.config.retry.saturating_mul(1 << self.failures.min(16)).min(self.config.retry_most);
        self.failures += 1;
        let half = (wait / 2).as_nanos() as u64;
        self.due = now + wait - Duration::from_nanos(self.rng.below(half));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Id;
    use crate::range::Extent;
    use core::num::NonZeroU32;

    const KEY: TicketKey = TicketKey([1; 16]);
    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    fn id(n: u32) -> SegmentId {
        SegmentId::new(n, NonZeroU32::MIN)
    }

    fn member(segments: usize) -> Membership {
        let lent = Lent { name: "s".into(), len: 64, uniform: 0 };
        Membership::new(Config::default(), alloc::vec![lent; segments], 1)
    }

    fn registered() -> Result<Registered, CallError> {
        Ok(Registered { ticket_key: KEY, heartbeat_ms: 1_000, ttl_ms: 10_000 })
    }

    fn inside(segments: usize) -> Membership {
        let mut member = member(segments);
        member.handle_registered(NOW, registered());
        for place in 0..segments {
            assert_eq!(member.next(NOW), Next::Mount(place));
            member.handle_mounted(NOW, place, Ok(id(place as u32)));
            assert_eq!(member.effect(), Some(Effect::Expose { place, id: id(place as u32), key: KEY }));
        }
        assert!(member.is_inside());
        member
    }

    fn duty(number: u64, segment: u32) -> FenceDuty {
        FenceDuty { number, segment: id(segment), extent: Extent::new(0, 64).unwrap(), below: 9 }
    }

    fn beat(member: &mut Membership, status: ClientStatus, duties: &[FenceDuty]) {
        member.handle_beat(NOW, Ok(status), duties.iter().copied());
    }

    #[test]
    fn registers_mounts_and_beats() {
        let mut member = inside(2);
        assert_eq!(member.next(NOW), Next::Heartbeat);
        beat(&mut member, ClientStatus::Healthy, &[]);
        assert_eq!(member.next(NOW), Next::Wait(NOW + Duration::from_secs(1)));
    }

    /// The master has mounted a segment, but its answer has not come: puts may be fenced there already.
    #[test]
    fn a_fence_for_what_is_still_being_mounted_is_not_said_to_stand() {
        let mut member = member(1);
        member.handle_registered(NOW, registered());
        assert_eq!(member.next(NOW), Next::Mount(0));
        beat(&mut member, ClientStatus::Healthy, &[duty(5, 0)]);
        assert_eq!(member.fenced(), &[] as &[u64]);
        member.handle_mounted(NOW, 0, Ok(id(0)));
        assert_eq!(member.effect(), Some(Effect::Expose { place: 0, id: id(0), key: KEY }));
        beat(&mut member, ClientStatus::Healthy, &[duty(5, 0), duty(6, 9)]);
        assert_eq!(member.effect(), Some(Effect::Fence { place: 0, duty: duty(5, 0) }));
        assert_eq!(member.fenced(), [6], "nothing is served under that id");
    }

    #[test]
    fn a_master_that_forgot_us_gets_everything_again() {
        let mut member = inside(1);
        beat(&mut member, ClientStatus::Undefined, &[]);
        assert_eq!(member.effect(), Some(Effect::Withdraw { place: 0 }));
        assert_eq!(member.next(NOW), Next::Register);
        member.handle_registered(NOW, registered());
        member.handle_mounted(NOW, 0, Ok(id(7)));
        assert_eq!(member.effect(), Some(Effect::Expose { place: 0, id: id(7), key: KEY }));
    }

    #[test]
    fn a_crashed_member_withdraws_and_waits_to_be_forgotten() {
        let mut member = inside(1);
        beat(&mut member, ClientStatus::Crashed, &[]);
        assert_eq!(member.effect(), Some(Effect::Withdraw { place: 0 }));
        assert_eq!(member.next(NOW + Duration::from_secs(1)), Next::Heartbeat);
        beat(&mut member, ClientStatus::Undefined, &[]);
        assert_eq!((member.effect(), member.next(NOW)), (None, Next::Register));
    }

    /// Case 21: whoever was silent too long between two mounts says that it is alive before it goes on.
    #[test]
    fn a_member_that_counts_as_silent_beats_and_mounts_on() {
        let mut member = member(2);
        member.handle_registered(NOW, registered());
        member.handle_mounted(NOW, 0, Ok(id(0)));
        member.handle_mounted(NOW, 1, Err(CallError::Refused(Code::CLIENT_UNHEALTHY)));
        let Next::Wait(soon) = member.next(NOW) else { panic!("no back-off") };
        assert!(soon.since(NOW) <= Config::default().retry);
        assert_eq!((member.next(soon), member.is_inside()), (Next::Heartbeat, false));
        member.handle_beat(soon, Err(CallError::NoAnswer), core::iter::empty());
        let Next::Wait(soon) = member.next(soon) else { panic!("no back-off") };
        member.handle_beat(soon, Ok(ClientStatus::Healthy), core::iter::empty());
        assert_eq!(member.next(soon), Next::Mount(1));
        member.handle_mounted(soon, 1, Ok(id(1)));
        assert!(member.is_inside());
        // Dropped before it came to that: everything again.
        let mut late = self::member(1);
        late.handle_registered(NOW, registered());
        late.handle_mounted(NOW, 0, Err(CallError::Refused(Code::CLIENT_UNHEALTHY)));
        beat(&mut late, ClientStatus::Undefined, &[]);
        assert_eq!(late.next(NOW), Next::Register);
    }

    #[test]
    fn failures_back_off_and_never_stop() {
        let mut member = member(0);
        let mut now = NOW;
        for n in 0..100 {
            assert_eq!(member.next(now), Next::Register, "try {n}");
            member.handle_registered(now, Err(CallError::NoAnswer));
            let Next::Wait(until) = member.next(now) else { panic!("no back-off") };
            assert!(until.since(now) <= Config::default().retry_most);
            now = until;
        }
    }

    #[test]
    fn fences_are_carried_out_once_and_reported_until_heard() {
        let mut member = inside(1);
        beat(&mut member, ClientStatus::Healthy, &[duty(3, 0), duty(4, 9)]);
        assert_eq!(member.effect(), Some(Effect::Fence { place: 0, duty: duty(3, 0) }));
        // Segment 9 is not ours: its fence stands at once, and is reported at once.
        assert_eq!((member.next(NOW), member.fenced()), (Next::Heartbeat, &[4][..]));
        member.handle_fenced(NOW, 3);
        member.handle_beat(NOW, Err(CallError::NoAnswer), core::iter::empty());
        assert_eq!(member.fenced(), [4, 3]);
        beat(&mut member, ClientStatus::Healthy, &[]);
        assert!(member.fenced().is_empty());
    }
}
