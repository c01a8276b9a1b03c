//! A storage node's membership, its gates, and a real master, with calls that get lost between them.

use core::time::Duration;

use springtide_core::checksum::Checksum;
use springtide_core::error::Code;
use springtide_core::id::{Caller, Incarnation, ObjectId, SegmentId, TenantId, Term};
use springtide_core::key::Key;
use springtide_core::master::{
    Config, Duty, Force, Master, Member, Next as MasterNext, PutOptions, Quiet, SegmentSpec, Written,
};
use springtide_core::members::{Fences, Mode};
use springtide_core::node::{self, CallError, Effect, Lent, Membership, Next};
use springtide_core::range::Extent;
use springtide_core::rng::Rng;
use springtide_core::ticket::{Denied, Gate, Ticket, TicketKey};
use springtide_core::time::Instant;
use springtide_core::wire::message::{FenceDuty, Registered};

use crate::Input;

const STEPS: usize = 400;
const NODE: Incarnation = Incarnation(9);
const CLIENT: Incarnation = Incarnation(2);
const SEGMENT: u64 = 32 << 10;
const PLACES: usize = 2;

/// A node registers, mounts, beats and fences while requests and answers get lost, heartbeats arrive again, time jumps and
/// the master forgets everything; meanwhile a client puts, ends, aborts and goes silent.
///
/// No extent is granted while a ticket of an earlier grant could still store into it; a gate refuses what was fenced and
/// admits all else; and once calls arrive again, the node is inside and nothing is left to fence.
pub fn node_ops(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::new();
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        world.step(&mut input);
    }
    world.wind_up();
}

/// A gate, and all that it was told.
struct Served {
    id: SegmentId,
    /// Tells it from what was served there before, also under this id: masters that start anew give ids out again.
    number: u64,
    gate: Gate,
    fences: Vec<(Extent, u64)>,
}

/// A permission that was given.
struct Given {
    object: ObjectId,
    place: usize,
    ticket: Ticket,
    when: Instant,
    /// The writer said that it has stopped.
    quiet: bool,
}

/// What happens to a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    NoAnswer,
    Lost,
}

struct World {
    master: Master,
    node: Membership,
    now: Instant,
    /// By place.
    served: [Option<Served>; PLACES],
    /// Where the masters' segments are.
    mounted: Vec<(SegmentId, usize)>,
    /// Fences under way: of what was served at a place when they began.
    fencing: Vec<(usize, u64, FenceDuty)>,
    /// A heartbeat that may arrive again.
    beat: Vec<u64>,
    given: Vec<Given>,
    writing: Vec<ObjectId>,
    keys: Rng,
    lives: u64,
    exposures: u64,
    requests: u64,
}

fn master(life: u64, now: Instant) -> Master {
    let mut master = Master::new(Config::default(), life, Term(life), now);
    register(&mut master, now, CLIENT, "client", TicketKey([1; 16])).expect("nobody is there yet");
    master
}

fn register(
    master: &mut Master,
    now: Instant,
    incarnation: Incarnation,
    name: &str,
    key: TicketKey,
) -> Result<Registered, Code> {
    let member = Member { name, address: "", mode: Mode::Pool, key, fences: Fences::Answers };
    let registered = master.register(now, incarnation, &member).map_err(|error| error.code())?;
    let millis = |time: Duration| time.as_millis() as u32;
    let (heartbeat_ms, ttl_ms) = (millis(registered.heartbeat), millis(registered.ttl));
    Ok(Registered { ticket_key: registered.ticket_key, heartbeat_ms, ttl_ms })
}

impl World {
    fn new() -> Self {
        let now = Instant::from_nanos(1);
        let lent = |n| Lent { name: format!("{n}"), len: SEGMENT, uniform: 0 };
        Self {
            master: master(1, now),
            node: Membership::new(node::Config::default(), (0..PLACES).map(lent).collect(), 1),
            now,
            served: [None, None],
            mounted: Vec::new(),
            fencing: Vec::new(),
            beat: Vec::new(),
            given: Vec::new(),
            writing: Vec::new(),
            keys: Rng::new(7),
            lives: 1,
            exposures: 0,
            requests: 0,
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(32) {
            0..10 => {
                let fate = input.choose(&[
                    Fate::Answered,
                    Fate::Answered,
                    Fate::Answered,
                    Fate::NoAnswer,
                    Fate::Lost,
                ]);
                self.turn(fate);
            }
            10..16 => self.put(input),
            16..20 => self.end(input),
            20..22 => self.abort(input),
            22..25 => self.carry_out(input.below(8)),
            25 => {
                let (master, beat) = (&mut self.master, self.beat.clone());
                master.heartbeat(self.now, NODE, beat.into_iter());
            }
            26 => self.remove(input),
            27 => self.forget(),
            28 => self.pass(Duration::from_millis(u64::from(input.short()))),
            _ => self.pass(Duration::from_millis(u64::from(input.byte()) * 8)),
        }
    }

    /// Time passes; the client stays.
    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.master.heartbeat(self.now, CLIENT, core::iter::empty());
        loop {
            match self.master.poll(self.now) {
                MasterNext::Wait(Some(due)) if due <= self.now => self.master.handle_timeout(self.now),
                MasterNext::Wait(_) => break,
                _ => {}
            }
        }
        if self.master.status(CLIENT) == springtide_core::members::ClientStatus::Undefined {
            let key = TicketKey([1; 16]);
            register(&mut self.master, self.now, CLIENT, "client", key).expect("it was forgotten");
            self.writing.clear();
        }
    }

    /// The master starts anew and knows nothing.
    fn forget(&mut self) {
        self.lives += 1;
        self.master = master(self.lives, self.now);
        self.writing.clear();
    }

    /// The node makes the call that is due, and does what follows from it.
    fn turn(&mut self, fate: Fate) {
        match self.node.next(self.now) {
            Next::Wait(_) => {}
            Next::Register => {
                let answer = (fate != Fate::Lost).then(|| {
                    let key = TicketKey(core::array::from_fn(|_| self.keys.below(256) as u8));
                    register(&mut self.master, self.now, NODE, "node", key)
                });
                self.node.handle_registered(self.now, heard(fate, answer));
            }
            Next::Mount(place) => {
                let answer = (fate != Fate::Lost).then(|| self.mount(place));
                self.node.handle_mounted(self.now, place, heard(fate, answer));
            }
            Next::Heartbeat => self.heartbeat(fate),
        }
        while let Some(effect) = self.node.effect() {
            match effect {
                Effect::Expose { place, id, key } => {
                    let (gate, number) = (Gate::new(NODE, id, key), self.exposures);
                    self.exposures += 1;
                    self.served[place] = Some(Served { id, number, gate, fences: Vec::new() });
                }
                Effect::Withdraw { place } => self.served[place] = None,
                Effect::Fence { place, duty } => {
                    match self.served[place].as_ref().filter(|served| served.id == duty.segment) {
                        Some(served) => self.fencing.push((place, served.number, duty)),
                        None => self.node.handle_fenced(self.now, duty.number),
                    }
                }
            }
        }
    }

    fn mount(&mut self, place: usize) -> Result<SegmentId, Code> {
        let name = format!("{place}");
        let spec = SegmentSpec { name: &name, len: SEGMENT, ..SegmentSpec::default() };
        let id = self.master.mount(self.now, NODE, &spec).map_err(|error| error.code())?;
        self.mounted.retain(|(known, _)| *known != id);
        self.mounted.push((id, place));
        Ok(id)
    }

    fn heartbeat(&mut self, fate: Fate) {
        let fenced = self.node.fenced().to_vec();
        let answer = (fate != Fate::Lost).then(|| {
            self.beat.clone_from(&fenced);
            let beat = self.master.heartbeat(self.now, NODE, fenced.into_iter());
            let duty =
                |Duty::Fence { number, segment, extent, below }| FenceDuty { number, segment, extent, below };
            (beat.status, self.master.duties(NODE).map(duty).collect::<Vec<_>>())
        });
        match answer {
            Some((status, duties)) if fate == Fate::Answered => {
                self.node.handle_beat(self.now, Ok(status), duties.into_iter());
            }
            _ => self.node.handle_beat(self.now, Err(CallError::NoAnswer), core::iter::empty()),
        }
    }

    /// The node's transports finish a fence.
    fn carry_out(&mut self, which: usize) {
        if self.fencing.is_empty() {
            return;
        }
        let (place, number, duty) = self.fencing.swap_remove(which % self.fencing.len());
        if let Some(served) = self.served[place].as_mut().filter(|served| served.number == number) {
            served.gate.fence(duty.extent, duty.below);
            served.fences.push((duty.extent, duty.below));
        }
        self.node.handle_fenced(self.now, duty.number);
    }

    fn caller(&mut self) -> Caller {
        self.requests += 1;
        Caller { incarnation: CLIENT, tenant: TenantId(0), request: self.requests }
    }

    fn put(&mut self, input: &mut Input<'_>) {
        let (name, len) = ([b'k', input.byte() % 8], u64::from(input.short()) % (SEGMENT / 2));
        let key = Key::new(&name).expect("two bytes are a key");
        let options = PutOptions { replicas: 1 + u32::from(input.byte() % 2), ..PutOptions::default() };
        let caller = self.caller();
        let Ok(started) = self.master.put_start(self.now, caller, key, len, &options) else { return };
        for placement in &started.replicas {
            let place = self.place(placement.segment);
            self.must_be_quiet(place, placement.extent);
            let (object, ticket, when) = (started.object, placement.ticket, self.now);
            self.given.push(Given { object, place, ticket, when, quiet: false });
        }
        self.writing.push(started.object);
    }

    fn place(&self, id: SegmentId) -> usize {
        self.mounted.iter().rfind(|(known, _)| *known == id).expect("grants are of mounted segments").1
    }

    /// Nothing that was given before can still land in `extent`.
    fn must_be_quiet(&self, place: usize, extent: Extent) {
        let Some(served) = &self.served[place] else { return };
        let release = self.master.config().put_release;
        let old =
            self.given.iter().filter(|given| given.place == place && given.ticket.extent.overlaps(extent));
        for given in old.filter(|given| !given.quiet && !(given.when + release).reached(self.now)) {
            let store = common(given.ticket.extent, extent);
            let admitted = served.gate.admit(&given.ticket, store);
            assert!(
                admitted.is_err(),
                "{extent:?} is granted, but {:?} still admits {store:?}",
                given.ticket
            );
        }
    }

    fn open(&mut self, input: &mut Input<'_>) -> Option<ObjectId> {
        (!self.writing.is_empty()).then(|| self.writing.swap_remove(input.below(self.writing.len())))
    }

    fn end(&mut self, input: &mut Input<'_>) {
        let Some(object) = self.open(input) else { return };
        let caller = self.caller();
        let ended = self.master.put_end(self.now, caller, object, Written::all(Checksum::Crc32c(1)));
        let life = Term(self.lives);
        let given = self.given.iter_mut().filter(|given| given.object == object && given.ticket.term == life);
        for given in given {
            // Its writes have ended, whatever the master says.
            given.quiet = true;
            if let (Ok(()), Some(served)) = (ended, &self.served[given.place]) {
                let admitted = served.gate.admit(&given.ticket, given.ticket.extent);
                assert_ne!(admitted, Err(Denied::Fenced), "{object} ended well, but was fenced before");
            }
        }
    }

    fn abort(&mut self, input: &mut Input<'_>) {
        let Some(object) = self.open(input) else { return };
        let quiet = if input.flag() { Quiet::Yes } else { Quiet::Unknown };
        let caller = self.caller();
        let _ = self.master.put_abort(self.now, caller, object, quiet);
        let life = Term(self.lives);
        for given in &mut self.given {
            given.quiet |= given.object == object && given.ticket.term == life && quiet == Quiet::Yes;
        }
    }

    fn remove(&mut self, input: &mut Input<'_>) {
        let name = [b'k', input.byte() % 8];
        let (key, force) =
            (Key::new(&name).expect("two bytes are a key"), input.choose(&[Force::No, Force::Yes]));
        let caller = self.caller();
        let _ = self.master.remove(self.now, caller, key, force);
    }

    /// Calls arrive again.
    fn wind_up(mut self) {
        for _ in 0..400 {
            self.pass(Duration::from_millis(500));
            self.turn(Fate::Answered);
            while !self.fencing.is_empty() {
                self.carry_out(0);
            }
            self.turn(Fate::Answered);
        }
        assert!(self.node.is_inside(), "the node is not back: {:?}", self.node);
        assert_eq!(self.master.segments().count(), PLACES);
        assert_eq!((self.master.duties(NODE).count(), self.node.fenced().len()), (0, 0));
        assert_eq!((self.master.stats().draining, self.master.stats().reserved), (0, 0));
        for (place, (_, id)) in self.node.segments().iter().enumerate() {
            let served = self.served[place].as_ref().expect("what is mounted is served");
            assert_eq!(Some(served.id), *id);
            self.check_gate(served);
        }
    }

    /// A gate refuses what it was told to, and nothing else.
    fn check_gate(&self, served: &Served) {
        for given in self.given.iter().filter(|given| given.ticket.segment == served.id) {
            let fenced = served
                .fences
                .iter()
                .any(|(extent, below)| given.ticket.serial < *below && extent.overlaps(given.ticket.extent));
            match served.gate.admit(&given.ticket, given.ticket.extent) {
                Ok(()) => assert!(!fenced),
                Err(Denied::Fenced) => assert!(fenced),
                // Given by an earlier master, whose segments had the same numbers.
                Err(why) => assert!(given.ticket.term < Term(self.lives), "{why}"),
            }
        }
    }
}

/// What the node hears.
fn heard<T>(fate: Fate, answer: Option<Result<T, Code>>) -> Result<T, CallError> {
    match answer {
        Some(answer) if fate == Fate::Answered => answer.map_err(CallError::Refused),
        _ => Err(CallError::NoAnswer),
    }
}

/// The bytes in both.
fn common(a: Extent, b: Extent) -> Extent {
    let start = a.offset().max(b.offset());
    Extent::new(start, a.end().min(b.end()) - start).expect("inside of both")
}
