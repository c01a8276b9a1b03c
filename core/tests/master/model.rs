//! A naive model of the master: what was promised is there, what is granted is nobody else's, and the figures are sums
//! of what there is. The histories come from proptest here, and from the fuzzer in `fuzz/`.

use std::collections::BTreeMap;

use core::time::Duration;

use springtide_core::evict::Kind;
use springtide_core::id::{Caller, Incarnation, ObjectId, SegmentId};
use springtide_core::master::{
    Config, Existence, Force, GetError, Pin, PutOptions, Quiet, Ready, Started, Written,
};
use springtide_core::range::Extent;
use springtide_core::time::Instant;

use super::pool::{MIB, Pool, SUM, key, member};

const NODES: [u128; 2] = [1, 4];
const CLIENTS: [u128; 2] = [2, 3];
const DISCARD: Duration = Duration::from_secs(30);
const RELEASE: Duration = Duration::from_secs(600);
const LEASE: Duration = Duration::from_secs(10);
pub(crate) const LENGTHS: [u64; 6] = [0, 1, 5_000, 65_536, 300_000, 1_500_000];

/// One thing that happens. Numbers choose among what there is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Start { client: usize, key: u8, len: usize, replicas: u32, pin: u8 },
    Reserve { client: usize, len: usize, count: u32 },
    End { which: usize },
    Publish { which: usize, key: u8 },
    Abort { which: usize, quiet: bool },
    Get { key: u8 },
    Remove { key: u8, force: bool },
    CopyStart { key: u8, node: usize },
    CopyEnd { which: usize },
    CopyAbort { which: usize, quiet: bool },
    Pass { millis: u64 },
    Report { node: usize },
    Leave { node: usize },
    Join { node: usize },
}

type Place = (SegmentId, Extent);

/// An object, as it was promised.
#[derive(Clone, Debug)]
struct Promise {
    object: ObjectId,
    client: u128,
    /// None: granted ahead.
    key: Option<String>,
    len: u64,
    places: Vec<Place>,
    started: Instant,
    complete: bool,
    lease: Instant,
    hard: bool,
}

/// Bytes that nobody may get yet.
#[derive(Clone, Debug)]
struct Grave {
    place: Place,
    lease: Instant,
    /// Since when somebody may be writing.
    writing: Option<Instant>,
    /// A copy that reads it.
    copy: Option<ObjectId>,
}

#[derive(Clone, Debug)]
struct Copying {
    object: ObjectId,
    from: Place,
    /// None: the object went meanwhile.
    to: Option<Place>,
    started: Instant,
}

/// A master, and what it promised.
pub(crate) struct Model {
    pub(crate) pool: Pool,
    nodes: [Option<SegmentId>; 2],
    promises: Vec<Promise>,
    graves: Vec<Grave>,
    copies: Vec<Copying>,
    evicted: u64,
    lost: u64,
}

impl Model {
    pub(crate) fn new(policy: Kind) -> Self {
        let config = Config { policy, ..Config::default() };
        let mut pool = Pool::with(config, 0);
        pool.master.register(pool.now, Incarnation(4), &member("other")).unwrap();
        let nodes = NODES.map(|node| Some(pool.mount(node, "memory", 2 * MIB)));
        let (promises, graves, copies) = (Vec::new(), Vec::new(), Vec::new());
        Self { pool, nodes, promises, graves, copies, evicted: 0, lost: 0 }
    }

    fn by_key(&self, key: &str) -> Option<usize> {
        self.promises.iter().position(|promise| promise.key.as_deref() == Some(key))
    }

    fn caller(&mut self, client: u128) -> Caller {
        self.pool.caller(client)
    }

    /// The number `which` of those that are still to be written.
    fn open(&self, which: usize, ahead: bool) -> Option<usize> {
        let open = |promise: &Promise| !promise.complete && promise.key.is_none() == ahead;
        let all: Vec<_> = (0..self.promises.len()).filter(|&n| open(&self.promises[n])).collect();
        (!all.is_empty()).then(|| all[which % all.len()])
    }

    /// Writes down what was granted; nobody else may have a byte of it.
    fn granted(&mut self, client: u128, key: Option<String>, len: u64, hard: bool, started: &Started) {
        self.notice();
        let places: Vec<Place> = started.replicas.iter().map(|p| (p.segment, p.extent)).collect();
        for &(segment, extent) in &places {
            assert!(self.nodes.contains(&Some(segment)));
            self.must_be_free((segment, extent));
        }
        let distinct: BTreeMap<_, _> = places.iter().copied().collect();
        assert_eq!(distinct.len(), places.len(), "two replicas on one segment");
        let (object, now) = (started.object, self.pool.now);
        let lease = Instant::ORIGIN;
        self.promises.push(Promise {
            object,
            client,
            key,
            len,
            places,
            started: now,
            complete: false,
            lease,
            hard,
        });
    }

    fn must_be_free(&self, (segment, extent): Place) {
        let clash = |&(other, taken): &Place| other == segment && taken.overlaps(extent);
        let live = self.promises.iter().flat_map(|promise| &promise.places);
        let copied = self.copies.iter().filter_map(|copy| copy.to.as_ref());
        let dead = self.graves.iter().map(|grave| &grave.place);
        for place in live.chain(copied).chain(dead) {
            assert!(!clash(place), "{segment:?} {extent:?} is granted over {place:?}");
        }
    }

    /// The promise at `n` is over; its bytes are free when nobody reads or writes them.
    fn bury(&mut self, n: usize, writing: bool) {
        let promise = self.promises.remove(n);
        let copying = self.copies.iter_mut().find(|copy| copy.object == promise.object);
        let mut reads = None;
        if let Some(copy) = copying {
            reads = Some(copy.from);
            if let Some(place) = copy.to.take() {
                let (lease, writing) = (Instant::ORIGIN, Some(copy.started));
                self.graves.push(Grave { place, lease, writing, copy: None });
            }
        }
        for place in promise.places {
            self.graves.push(Grave {
                place,
                lease: promise.lease,
                writing: writing.then_some(promise.started),
                copy: (reads == Some(place)).then_some(promise.object),
            });
        }
    }

    fn end_copy(&mut self, n: usize) -> Copying {
        let copy = self.copies.remove(n);
        for grave in &mut self.graves {
            if grave.copy == Some(copy.object) {
                grave.copy = None;
            }
        }
        copy
    }

    /// Applies what time and eviction did.
    fn notice(&mut self) {
        let now = self.pool.now;
        let over = |started: Instant, after| (started + after).reached(now);
        while let Some(n) = self.promises.iter().position(|p| !p.complete && over(p.started, DISCARD)) {
            self.bury(n, true);
        }
        while let Some(n) = self.copies.iter().position(|copy| over(copy.started, DISCARD)) {
            let copy = self.end_copy(n);
            if let Some(place) = copy.to {
                let (lease, writing) = (Instant::ORIGIN, Some(copy.started));
                self.graves.push(Grave { place, lease, writing, copy: None });
                self.drop_empty(copy.object);
            }
        }
        let mut n = 0;
        while n < self.promises.len() {
            let promise = &self.promises[n];
            let (complete, name) = (promise.complete, promise.key.clone());
            let gone = complete && self.pool.exists(&name.unwrap_or_default()) == Existence::Absent;
            if !gone {
                n += 1;
                continue;
            }
            let promise = self.promises.remove(n);
            let copied = self.copies.iter().any(|copy| copy.object == promise.object);
            assert!(promise.lease.reached(now) && !promise.hard && !copied, "{promise:?} was evicted");
            self.evicted += 1;
        }
        self.graves.retain(|grave| {
            let writing = grave.writing.is_some_and(|since| !(since + RELEASE).reached(now));
            !grave.lease.reached(now) || writing || grave.copy.is_some()
        });
    }

    /// Compares everything.
    fn check(&mut self) {
        self.pool.run();
        self.notice();
        let sum =
            |places: &mut dyn Iterator<Item = Place>| places.map(|(_, extent)| extent.len()).sum::<u64>();
        let live = sum(&mut self.promises.iter().flat_map(|promise| promise.places.clone()));
        let open = self.promises.iter().filter(|promise| !promise.complete);
        let open = sum(&mut open.flat_map(|promise| promise.places.clone()));
        let copied = sum(&mut self.copies.iter().filter_map(|copy| copy.to));
        let dead = sum(&mut self.graves.iter().map(|grave| grave.place));
        let stats = self.pool.master.stats();
        assert_eq!(stats.used, live + copied + dead, "{:?}", self.graves);
        assert_eq!((stats.reserved, stats.draining), (open + copied, dead));
        let complete = self.promises.iter().filter(|promise| promise.complete).count();
        assert_eq!(
            (stats.objects, stats.writing),
            (complete as u64, (self.promises.len() - complete) as u64)
        );
        assert_eq!((stats.totals.evicted, stats.totals.lost), (self.evicted, self.lost));
        assert!(stats.used <= stats.capacity);
        for promise in &self.promises {
            let Some(name) = &promise.key else { continue };
            let caller = Caller { request: 0, incarnation: Incarnation(2), tenant: Default::default() };
            let stat = self.pool.master.stat(self.pool.now, caller, key(name)).unwrap();
            assert_eq!((stat.object, stat.len), (promise.object, promise.len));
            let target =
                self.copies.iter().find(|copy| copy.object == promise.object).and_then(|copy| copy.to);
            let there = stat.replicas.iter().map(|location| (location.segment, location.extent));
            let there: Vec<Place> = there.filter(|&place| Some(place) != target).collect();
            assert_eq!(there, promise.places);
            let ready = if promise.complete { Ready::Yes } else { Ready::Writing };
            let states =
                stat.replicas.iter().filter(|location| Some((location.segment, location.extent)) != target);
            assert!(states.clone().all(|location| location.ready == ready));
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Start { client, key, len, replicas, pin } => self.start(client, key, len, replicas, pin),
            Step::Reserve { client, len, count } => self.reserve(client, len, count),
            Step::End { which } => self.end(which),
            Step::Publish { which, key } => self.publish(which, key),
            Step::Abort { which, quiet } => self.abort(which, quiet),
            Step::Get { key } => self.get(key),
            Step::Remove { key, force } => self.remove(key, force),
            Step::CopyStart { key, node } => self.copy_start(key, node),
            Step::CopyEnd { which } => self.copy_end(which),
            Step::CopyAbort { which, quiet } => self.copy_abort(which, quiet),
            Step::Pass { millis } => self.pass(millis),
            Step::Report { node } => self.report(node),
            Step::Leave { node } => self.leave(node),
            Step::Join { node } => self.join(node),
        }
        self.check();
    }

    fn start(&mut self, client: usize, name: u8, len: usize, replicas: u32, pin: u8) {
        let (client, name, len) = (CLIENTS[client], format!("k{name}"), LENGTHS[len]);
        let hard = pin == 0;
        let pin = match pin {
            0 => Pin::Hard,
            1 => Pin::Soft(Some(Duration::from_secs(60))),
            _ => Pin::None,
        };
        let taken = self.by_key(&name).is_some();
        let options = PutOptions { replicas, pin, ..PutOptions::default() };
        match self.pool.start_with(client, &name, len, &options) {
            Ok(started) => {
                assert!(!taken, "{name} was promised to somebody");
                assert!(started.replicas.len() <= replicas as usize);
                self.granted(client, Some(name), len, hard, &started);
            }
            Err(error) => assert!(taken || matches!(error.code().number(), -200 | -1908), "{error}"),
        }
    }

    fn reserve(&mut self, client: usize, len: usize, count: u32) {
        let (client, len) = (CLIENTS[client], LENGTHS[len]);
        let (caller, mut out) = (self.caller(client), Vec::new());
        let options = PutOptions::default();
        let reserved = self.pool.master.reserve(self.pool.now, caller, len, count, &options, &mut out);
        assert_eq!(reserved.is_err(), out.is_empty());
        for started in out {
            self.granted(client, None, len, false, &started);
        }
    }

    fn end(&mut self, which: usize) {
        let Some(n) = self.open(which, false) else { return };
        let (client, object) = (self.promises[n].client, self.promises[n].object);
        let wrong = CLIENTS[usize::from(client == CLIENTS[0])];
        assert!(self.pool.end(wrong, object).is_err());
        assert_eq!(self.pool.end(client, object), Ok(()));
        assert_eq!(self.pool.end(client, object), Ok(()));
        self.promises[n].complete = true;
    }

    fn publish(&mut self, which: usize, name: u8) {
        let Some(n) = self.open(which, true) else { return };
        let (name, promise) = (format!("k{name}"), self.promises[n].clone());
        let caller = self.caller(promise.client);
        let len = promise.len / 2;
        let (now, taken) = (self.pool.now, self.by_key(&name).is_some());
        let published =
            self.pool.master.publish(now, caller, promise.object, key(&name), len, Written::all(SUM));
        assert_eq!(published.is_ok(), !taken);
        if published.is_ok() {
            let promise = &mut self.promises[n];
            (promise.key, promise.complete, promise.len) = (Some(name), true, len);
        }
    }

    fn abort(&mut self, which: usize, quiet: bool) {
        let Some(n) = self.open(which, which.is_multiple_of(2)) else { return };
        let (client, object) = (self.promises[n].client, self.promises[n].object);
        let quietly = if quiet { Quiet::Yes } else { Quiet::Unknown };
        assert_eq!(self.pool.abort(client, object, quietly), Ok(()));
        self.bury(n, !quiet);
    }

    fn get(&mut self, name: u8) {
        let name = format!("k{name}");
        let caller = self.caller(3);
        let found = self.pool.master.get(self.pool.now, caller, key(&name));
        let promise = self.by_key(&name).map(|n| &mut self.promises[n]).filter(|promise| promise.complete);
        match (found, promise) {
            (Ok(found), Some(promise)) => {
                assert_eq!((found.object, found.len, found.lease), (promise.object, promise.len, LEASE));
                promise.lease = self.pool.now + LEASE;
            }
            (Err(error), None) => assert!(matches!(error.code().number(), -704 | -703)),
            // Only the target of a copy that has not ended is left.
            (Err(GetError::Silent), Some(promise)) if promise.places.is_empty() => {}
            (found, promise) => panic!("{found:?} for {promise:?}"),
        }
    }

    fn remove(&mut self, name: u8, force: bool) {
        let name = format!("k{name}");
        let code = self.pool.remove(&name, if force { Force::Yes } else { Force::No });
        let Some(n) = self.by_key(&name) else {
            assert_eq!(code, -704);
            return;
        };
        let promise = &self.promises[n];
        let copied = self.copies.iter().any(|copy| copy.object == promise.object);
        let expected = match promise {
            Promise { complete: false, .. } => -703,
            _ if force => 0,
            Promise { lease, .. } if *lease > self.pool.now => -706,
            _ if copied => -708,
            _ => 0,
        };
        assert_eq!(code, expected);
        if code == 0 {
            self.bury(n, false);
        }
    }

    fn copy_start(&mut self, name: u8, node: usize) {
        let name = format!("k{name}");
        let (Some(to), caller) = (self.nodes[node], self.caller(2)) else { return };
        let task = self.pool.master.copy_start(self.pool.now, caller, key(&name), to);
        let Ok(task) = task else { return };
        let promise = &self.promises[self.by_key(&name).unwrap()];
        let from = (task.from.segment, task.from.extent);
        assert!(promise.complete && promise.places.contains(&from));
        let to = (task.to.segment, task.to.extent);
        self.must_be_free(to);
        self.copies.push(Copying { object: task.object, from, to: Some(to), started: self.pool.now });
    }

    fn copy_end(&mut self, which: usize) {
        if self.copies.is_empty() {
            return;
        }
        let copy = self.end_copy(which % self.copies.len());
        let caller = self.caller(2);
        let ended = self.pool.master.copy_end(self.pool.now, caller, copy.object);
        assert_eq!(ended.is_ok(), copy.to.is_some());
        if let Some(to) = copy.to {
            let promise = self.promises.iter_mut().find(|promise| promise.object == copy.object).unwrap();
            promise.places.push(to);
        }
    }

    fn copy_abort(&mut self, which: usize, quiet: bool) {
        if self.copies.is_empty() {
            return;
        }
        let copy = self.end_copy(which % self.copies.len());
        let caller = self.caller(2);
        let quietly = if quiet { Quiet::Yes } else { Quiet::Unknown };
        assert_eq!(self.pool.master.copy_abort(self.pool.now, caller, copy.object, quietly), Ok(()));
        if let Some(place) = copy.to {
            let (lease, writing) = (Instant::ORIGIN, (!quiet).then_some(copy.started));
            self.graves.push(Grave { place, lease, writing, copy: None });
            self.drop_empty(copy.object);
        }
    }

    /// An object whose last replica went is lost.
    fn drop_empty(&mut self, object: ObjectId) {
        let target = self.copies.iter().any(|copy| copy.object == object && copy.to.is_some());
        let empty = |promise: &Promise| promise.object == object && promise.places.is_empty() && !target;
        if let Some(n) = self.promises.iter().position(empty) {
            self.lost += u64::from(self.promises[n].complete);
            self.bury(n, false);
        }
    }

    fn pass(&mut self, millis: u64) {
        let mut left = millis;
        while left > 0 {
            let step = left.min(4_000);
            left -= step;
            self.pool.now += Duration::from_millis(step);
            for member in [1, 2, 3, 4] {
                self.pool.master.heartbeat(self.pool.now, Incarnation(member), [].into_iter());
            }
            self.pool.run();
            self.notice();
        }
    }

    fn report(&mut self, node: usize) {
        self.pool.report(NODES[node]);
        for grave in &mut self.graves {
            if Some(grave.place.0) == self.nodes[node] {
                grave.writing = None;
            }
        }
    }

    fn leave(&mut self, node: usize) {
        let Some(segment) = self.nodes[node].take() else { return };
        self.pool.master.leave(self.pool.now, Incarnation(NODES[node]));
        self.graves.retain(|grave| grave.place.0 != segment);
        for copy in &mut self.copies {
            copy.to = copy.to.filter(|to| to.0 != segment);
        }
        for promise in &mut self.promises {
            promise.places.retain(|place| place.0 != segment);
        }
        for object in self.promises.iter().map(|promise| promise.object).collect::<Vec<_>>() {
            self.drop_empty(object);
        }
    }

    fn join(&mut self, node: usize) {
        if self.nodes[node].is_some() {
            return;
        }
        let incarnation = Incarnation(NODES[node]);
        self.pool.master.register(self.pool.now, incarnation, &member("again")).unwrap();
        self.nodes[node] = Some(self.pool.mount(NODES[node], "memory", 2 * MIB));
    }

    /// After a quiet time nothing is left over.
    pub(crate) fn wind_up(&mut self) {
        self.pass(700_000);
        self.check();
        while !self.promises.is_empty() {
            let name = self.promises[0].key.clone().unwrap();
            assert_eq!(self.pool.remove(&name, Force::No), 0);
            self.bury(0, false);
        }
        self.check();
        let stats = self.pool.master.stats();
        assert_eq!((stats.used, stats.reserved, stats.draining, stats.objects), (0, 0, 0, 0));
        for segment in self.pool.master.segments() {
            assert_eq!(segment.largest_hole, segment.len);
        }
        for member in self.pool.master.members() {
            assert_eq!(member.duties, 0);
        }
    }
}
