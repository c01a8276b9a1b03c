//! A master behind its socket: every call of pool mode does its work, and is counted.

use core::time::Duration;
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};
use springtide_core::checksum::Checksum;
use springtide_core::error::Code;
use springtide_core::id::{Incarnation, SegmentId};
use springtide_core::key::DEFAULT_TENANT;
use springtide_core::wire::codec;
use springtide_core::wire::frame::Method;
use springtide_core::wire::message::*;
use springtide_driver::{Runtime, Shutdown, now};
use springtide_master::{CallFigures, Server, ServerConfig};
use springtide_rpc::{Ask, CallError, ClientConfig, Remote};
use springtide_tokio::Tokio;

const KIB: u64 = 1 << 10;
const SUM: Checksum = Checksum::Crc32c(7);

/// A master on a thread of its own.
struct Master {
    address: core::net::SocketAddr,
    figures: Box<dyn Fn() -> Figures>,
    calls: Box<dyn Fn() -> Vec<CallFigures>>,
    stop: Shutdown,
    thread: Option<JoinHandle<()>>,
}

impl Master {
    fn start() -> Self {
        let listen = "127.0.0.1:0".parse().unwrap();
        let server = Server::bind(ServerConfig { listen, ..ServerConfig::default() }).unwrap();
        let (address, stop) = (server.local_addr(), Shutdown::new());
        let (figures, calls) = (Box::new(server.figures()), Box::new(server.calls()));
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || {
            let tokio = Tokio::new_single().unwrap();
            tokio.block_on(server.run(tokio.clone(), stopping)).unwrap();
        });
        Self { address, figures, calls, stop, thread: Some(thread) }
    }

    /// Somebody who said hello as `life`.
    fn peer(&self, life: u128) -> Peer {
        let hello = Box::new(Greeting(Incarnation(life)));
        Peer(Remote::new(vec![self.address], ClientConfig::default(), Some(hello)).unwrap())
    }

    /// A member that lends a segment of 64 KiB called `name`.
    fn node(&self, life: u128, name: &str) -> (Peer, SegmentId) {
        let node = self.peer(life);
        node.register(name, &format!("{name}:7000")).unwrap();
        let mount = Mount { name, len: 64 * KIB, uniform: 0 };
        let segment = node.call(MOUNT, &mount).unwrap();
        (node, segment)
    }

    fn of(&self, method: Method) -> CallFigures {
        let all = (self.calls)();
        *all.iter().find(|call| call.method == name(method)).unwrap()
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        self.stop.begin();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}

struct Greeting(Incarnation);

impl springtide_rpc::Hello for Greeting {
    fn method(&self) -> Method {
        HELLO
    }

    fn say(&mut self, body: &mut Vec<u8>) {
        let (oldest, newest) = PROTOCOL;
        let (cluster, tenant, expected) = (0, DEFAULT_TENANT, Incarnation::default());
        codec::put(body, &Hello { oldest, newest, cluster, incarnation: self.0, tenant, expected });
    }

    fn hear(&mut self, body: &[u8]) -> Result<(), Code> {
        let welcome: Welcome = codec::whole(body).unwrap();
        assert_eq!((welcome.protocol, welcome.mode), (1, Mode::Pool));
        Ok(())
    }
}

struct Peer(Remote);

impl Peer {
    fn ask(&self, method: Method, body: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>, Code> {
        let deadline = now() + Duration::from_secs(20);
        match self.0.ask_blocking(Ask::new(method, deadline), body) {
            Ok(reply) => Ok(reply.body),
            Err(CallError::Status(code, _)) => Err(code),
            Err(error) => panic!("{error}"),
        }
    }

    /// A call without items.
    fn call<T: for<'b> Deserialize<'b>>(&self, method: Method, head: &impl Serialize) -> Result<T, Code> {
        let body = self.ask(method, |body| codec::put(body, head))?;
        Ok(codec::whole(&body).unwrap())
    }

    /// A batch: the head of the answer, and its items.
    fn batch<H, T>(
        &self,
        method: Method,
        head: &impl Serialize,
        items: &[impl Serialize],
    ) -> Result<(H, Vec<T>), Code>
    where
        H: for<'b> Deserialize<'b>,
        T: for<'b> Deserialize<'b>,
    {
        let body = self.ask(method, |body| {
            codec::put(body, head);
            items.iter().for_each(|item| codec::put(body, item));
        })?;
        let (head, tail) = codec::split::<H, T>(&body).unwrap();
        Ok((head, tail.map(Result::unwrap).collect()))
    }

    /// A batch whose items succeed without a word or say why not.
    fn each(&self, method: Method, head: &impl Serialize, items: &[impl Serialize]) -> Vec<i16> {
        let ((), answers) = self.batch::<(), Result<(), Refusal>>(method, head, items).unwrap();
        answers
            .into_iter()
            .map(|answer| answer.map_or_else(|refusal| refusal.code.number(), |()| 0))
            .collect()
    }

    fn register(&self, name: &str, address: &str) -> Result<Registered, Code> {
        self.call(REGISTER, &Register { name, address, mode: Mode::Pool, fences: true })
    }

    fn start(&self, options: &Options<'_>, wanted: &[Wanted<'_>]) -> Vec<Result<Grant, Refusal>> {
        let (granted, grants) = self.batch::<Granted, _>(PUT_START, options, wanted).unwrap();
        assert_eq!(granted.write_ms, 30_000);
        grants
    }

    fn end(&self, grant: &Grant) -> i16 {
        let end = Finished { object: grant.object, checksum: SUM, failed: Failed::new() };
        self.each(PUT_END, &(), &[end])[0]
    }

    fn put(&self, key: &[u8], options: &Options<'_>) {
        let grant = self.start(options, &[Wanted { key, len: 100 }]).pop().unwrap().unwrap();
        assert_eq!(self.end(&grant), 0);
    }

    fn get(&self, keys: &[&[u8]]) -> Vec<Result<Found, Refusal>> {
        let (leased, found) = self.batch::<Leased, _>(GET, &(), keys).unwrap();
        assert_eq!(leased.lease_ms, 10_000);
        found
    }
}

fn wanted(key: &[u8]) -> Wanted<'_> {
    Wanted { key, len: 100 }
}

fn codes<T>(answers: &[Result<T, Refusal>]) -> Vec<i16> {
    answers.iter().map(|answer| answer.as_ref().map_or_else(|refusal| refusal.code.number(), |_| 0)).collect()
}

#[test]
fn members_join_lend_and_leave() {
    let master = Master::start();
    let (node, segment) = master.node(1, "node");
    assert_eq!(node.register("node", "node:7000"), Err(Code::CLIENT_ALREADY_EXISTS));
    let other = master.peer(2);
    let peer_mode = Register { name: "peer", address: "", mode: Mode::Peer, fences: true };
    assert_eq!(other.call::<Registered>(REGISTER, &peer_mode), Err(Code::ILLEGAL_CLIENT));
    let registered = other.register("client", "").unwrap();
    assert_eq!((registered.heartbeat_ms, registered.ttl_ms), (1_000, 10_000));
    let beat = |peer: &Peer| {
        let (beat, duties) =
            peer.batch::<Beat, FenceDuty>(HEARTBEAT, &Heartbeat { count: 1 }, &[0u64; 0]).unwrap();
        assert!(duties.is_empty());
        beat.status
    };
    assert_eq!((beat(&other), beat(&master.peer(99))), (ClientStatus::Healthy, ClientStatus::Undefined));

    let body = other.ask(SEGMENT, |body| codec::put(body, &segment)).unwrap();
    let info: SegmentInfo<'_> = codec::whole(&body).unwrap();
    assert_eq!((info.name, info.owner, info.address), ("node", "node", "node:7000"));
    assert_eq!((info.len, info.used, info.largest_hole, info.open), (64 * KIB, 0, 64 * KIB, true));
    let listed = other.ask(SEGMENTS, |body| codec::put(body, &())).unwrap();
    assert_eq!(codec::split::<(), SegmentInfo<'_>>(&listed).unwrap().1.next(), Some(Ok(info)));
    let body = other.ask(MEMBERS, |body| codec::put(body, &())).unwrap();
    let members: Vec<_> = codec::split::<(), MemberInfo<'_>>(&body).unwrap().1.map(Result::unwrap).collect();
    let told: Vec<_> = members.iter().map(|it| (it.name, it.address, it.status, it.segments)).collect();
    let healthy = ClientStatus::Healthy;
    assert_eq!(told, [("node", "node:7000", healthy, 1), ("client", "", healthy, 0)]);

    // A segment is taken back by its owner only; taking it back again is harmless.
    assert_eq!(other.call::<()>(UNMOUNT, &segment), Err(Code::ILLEGAL_CLIENT));
    assert_eq!([(), ()].map(|()| node.call::<()>(UNMOUNT, &segment)), [Ok(()), Ok(())]);
    let gone = other.ask(SEGMENT, |body| codec::put(body, &segment));
    assert_eq!((gone, (master.figures)().segments), (Err(Code::SEGMENT_NOT_FOUND), 0));
    assert_eq!(node.call::<()>(LEAVE, &()), Ok(()));
    assert_eq!((beat(&node), (master.figures)().members), (ClientStatus::Undefined, 1));
}

#[test]
fn objects_are_put_found_listed_and_removed() {
    let master = Master::start();
    let (_node, segment) = master.node(1, "node");
    let caller = master.peer(2);
    caller.register("client", "").unwrap();
    let grants = caller.start(&Options::default(), &[wanted(b"a"), wanted(b""), wanted(b"b"), wanted(b"a")]);
    assert_eq!(codes(&grants), [0, -400, 0, -705]);
    let [Ok(a), _, Ok(b), _] = &grants[..] else { panic!("{grants:?}") };
    assert_eq!((a.replicas.len(), a.replicas[0].segment), (1, segment));
    assert_eq!(caller.end(a), 0);
    let keys: [&[u8]; 4] = [b"a", b"b", b"none", b""];
    let found = caller.get(&keys);
    assert_eq!(codes(&found), [0, -703, -704, -400]);
    let Ok(first) = &found[0] else { panic!() };
    assert_eq!((first.object, first.len, first.checksum), (a.object, 100, SUM));
    assert_eq!((first.replicas.len(), first.replicas[0].segment), (1, segment));
    let there = caller.batch::<(), Presence>(EXISTS, &ProbeKind::Plain, &keys).unwrap().1;
    assert_eq!(there, [Presence::Present, Presence::Writing, Presence::Absent, Presence::BadKey]);
    let stats = caller.batch::<(), Result<Stat, Refusal>>(STAT, &(), &keys).unwrap().1;
    assert_eq!(codes(&stats), [0, 0, -704, -400]);
    assert!(stats[0].is_ok_and(|stat| stat.lease_ms > 0 && !stat.writing));
    assert!(stats[1].is_ok_and(|stat| stat.writing));
    assert_eq!(caller.each(PUT_ABORT, &(), &[Abandoned { object: b.object, quiet: true }]), [0]);

    // Extents granted ahead take any key.
    let reserve = Reserve { len: 50, count: 2, options: Options::default() };
    let (_, ahead) = caller.batch::<Granted, Result<Grant, Refusal>>(RESERVE, &reserve, &[0u8; 0]).unwrap();
    let object = ahead[0].as_ref().unwrap().object;
    let publish = Publish { object, key: b"c", len: 50, checksum: SUM, failed: Failed::new() };
    assert_eq!(caller.each(PUBLISH, &(), &[publish]), [0]);

    let scan = Scan { cursor: 0, limit: 10, pattern: Pattern::Regex("^[a-c]$") };
    let body = caller.ask(SCAN, |body| codec::put(body, &scan)).unwrap();
    let (page, listed) = codec::split::<ScanPage, Listed<'_>>(&body).unwrap();
    let mut listed: Vec<_> = listed.map(|listed| listed.unwrap().key).collect();
    listed.sort();
    assert_eq!((page.next, listed), (0, vec![&b"a"[..], b"c"]));
    assert_eq!(caller.each(REMOVE, &Forcing::No, &keys), [-706, -704, -704, -400]);
    assert_eq!(caller.each(REMOVE, &Forcing::Yes, &keys[..1]), [0]);
    let all = RemoveMatching { cursor: 0, pattern: Pattern::Prefix(b"c"), force: Forcing::No };
    let step: RemoveStep = caller.call(REMOVE_MATCHING, &all).unwrap();
    assert_eq!((step.next, step.removed, step.skipped), (0, 1, 0));
    let figures: Figures = caller.call(FIGURES, &()).unwrap();
    assert_eq!((figures.objects, figures.puts, figures.removed), (0, 2, 2));
    assert_eq!((figures.hits, figures.misses, figures.writing), (1, 3, 1));
}

#[test]
fn replicas_are_copied_and_cleared_by_their_writer() {
    let master = Master::start();
    let ((_a, a), (_b, b)) = (master.node(1, "a"), master.node(2, "b"));
    let (writer, other) = (master.peer(3), master.peer(4));
    writer.register("writer", "").unwrap();
    other.register("other", "").unwrap();
    let on_a = Options { preferred: heapless::Vec::from_slice(&["a"]).unwrap(), ..Options::default() };
    writer.put(b"k", &on_a);
    writer.put(b"l", &on_a);
    let copy = CopyStart { key: b"k", to: "b" };
    let plan: CopyPlan = writer.call(COPY_START, &copy).unwrap();
    assert_eq!((plan.from.segment, plan.to.segment, plan.len, plan.checksum), (a, b, 100, SUM));
    assert_eq!(writer.call::<CopyPlan>(COPY_START, &copy), Err(Code::OBJECT_HAS_REPLICATION_TASK));
    let end = CopyEnd { object: plan.object, to: b, good: true, quiet: true };
    assert_eq!(writer.call::<()>(COPY_END, &end), Ok(()));
    assert_eq!(writer.call::<CopyPlan>(COPY_START, &copy), Err(Code::REPLICA_ALREADY_EXISTS));

    let keys: [&[u8]; 4] = [b"k", b"l", b"none", b""];
    let on_b = Clear { segment: "b" };
    assert_eq!(other.each(CLEAR, &on_b, &keys), [-601, -601, -704, -400]);
    let nowhere = writer.batch::<(), Result<(), Refusal>>(CLEAR, &Clear { segment: "nowhere" }, &keys);
    assert_eq!(nowhere, Err(Code::SEGMENT_NOT_FOUND));
    assert_eq!(writer.each(CLEAR, &on_b, &keys)[..2], [0, Code::REPLICA_NOT_FOUND.number()]);
    let Ok(found) = &writer.get(&keys[..1])[0] else { panic!("its other replica stays") };
    assert_eq!(found.replicas.iter().map(|replica| replica.segment).collect::<Vec<_>>(), [a]);
    // What is being read stays; without a segment's name all replicas of the rest go.
    assert_eq!(writer.each(CLEAR, &Clear { segment: "" }, &keys[..2]), [-706, 0]);
    assert_eq!(codes(&writer.get(&keys[..2])), [0, -704]);
}

#[test]
fn a_batch_stays_together_where_its_first_put_went() {
    let master = Master::start();
    let nodes = [master.node(1, "a"), master.node(2, "b"), master.node(3, "c")];
    let caller = master.peer(4);
    caller.register("client", "").unwrap();
    let names: Vec<Vec<u8>> = (0..60u8).map(|n| vec![b'k', n]).collect();
    let all: Vec<_> = names.iter().map(|name| wanted(name)).collect();
    let segments = |grants: &[Result<Grant, Refusal>]| -> Vec<SegmentId> {
        grants.iter().flatten().map(|grant| grant.replicas[0].segment).collect()
    };
    let together = Options { together: true, ..Options::default() };
    let first = segments(&caller.start(&together, &all[..30]));
    assert!(first.len() == 30 && first.iter().all(|segment| *segment == first[0]), "{first:?}");
    // The first put says where; one that is refused says nothing, and no later one does.
    let refused = [&all[..1], &all[30..]].concat();
    let spread = segments(&caller.start(&together, &refused));
    assert!(spread.len() == 30 && spread.iter().any(|segment| *segment != spread[0]), "{spread:?}");
    // What finds no room there goes elsewhere.
    let large: Vec<Vec<u8>> = (0..3u8).map(|n| vec![b'l', n]).collect();
    let large: Vec<_> = large.iter().map(|key| Wanted { key, len: 40 * KIB }).collect();
    let mut wide = segments(&caller.start(&together, &large));
    wide.sort();
    let mut each = nodes.map(|(_, segment)| segment);
    each.sort();
    assert_eq!(wide, each);
}

#[test]
fn batches_are_counted_by_how_they_went() {
    let master = Master::start();
    master.node(1, "node");
    let caller = master.peer(2);
    caller.register("client", "").unwrap();
    let figures = (master.calls)();
    assert!(figures.iter().any(|call| call.method == "REMOVE" && call.calls == 0), "uncalled ones are told");
    let start = |keys: &[&[u8]]| {
        let wanted: Vec<_> = keys.iter().map(|key| wanted(key)).collect();
        caller.start(&Options::default(), &wanted).len()
    };
    assert_eq!(start(&[b"a", b"b"]) + start(&[b"a", b"c", b""]) + start(&[b"a", b"b"]) + start(&[]), 7);
    let method = "PUT_START";
    let counted = CallFigures { method, calls: 4, failed: 1, partial: 1, items: 7, failed_items: 4 };
    assert_eq!(master.of(PUT_START), counted);
    // What cannot be read is refused whole, and nothing of it is begun.
    let torn = caller.ask(PUT_START, |body| {
        codec::put(body, &Options::default());
        codec::put(body, &wanted(b"d"));
        body.push(200);
    });
    assert_eq!(torn, Err(Code::INVALID_PARAMS));
    assert_eq!(master.of(PUT_START), CallFigures { calls: 5, failed: 2, ..counted });
    assert_eq!(codes(&caller.get(&[b"d", b"a"])), [-704, -703]);
    let method = "GET";
    let counted = CallFigures { method, calls: 1, failed: 1, partial: 0, items: 2, failed_items: 2 };
    assert_eq!(master.of(GET), counted);
    // So are calls that are no batches, and those that nobody knows.
    assert_eq!(caller.ask(Method(40_000), |_| {}), Err(Code::NOT_IMPLEMENTED));
    let unknown = (master.calls)().pop().unwrap();
    assert_eq!((unknown.method, unknown.calls, unknown.failed), ("UNKNOWN", 1, 1));
    assert_eq!((master.of(REGISTER).calls, master.of(HELLO).calls), (2, 2));
}
