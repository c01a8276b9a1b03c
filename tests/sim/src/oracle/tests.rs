//! Every rule: something that breaks it, and that the oracle says so.

use core::time::Duration;

use springtide_core::checksum::Checksum;
use springtide_core::error::Code;
use springtide_core::id::{Incarnation, SegmentId, Term};
use springtide_core::master::{Config, Master};
use springtide_core::range::Extent;
use springtide_core::ticket::{Gate, Ticket, TicketKey};
use springtide_core::time::Instant;
use springtide_core::wire::codec;
use springtide_core::wire::frame::{Frame, Header, Method, decode};
use springtide_core::wire::message::{
    self, Abandoned, Finished, Forcing, Grant, Granted, Hello, Mode, Mount, Options, Placement, Presence,
    ProbeKind, Refusal, Register, Wanted,
};
use springtide_master::{Machine, Peer};
use springtide_rpc::Replies;

use super::{GetEnd, Oracle, Rule};
use crate::fabric::{Fabric, Region};
use crate::pattern;
use crate::plan::Plan;
use crate::queue::Pid;

const PID: Pid = Pid(0);
const NODE: Pid = Pid(1);
const KEY: TicketKey = TicketKey([4; 16]);
const LEN: u64 = 4_096;

/// Whether the oracle sees a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Eyes {
    Open,
    Closed,
}

/// One master with one node and one client, which is the node too.
struct Rig {
    machine: Machine,
    peer: Peer,
    oracle: Oracle,
    fabric: Fabric,
    now: Instant,
    segment: SegmentId,
    request: u64,
}

fn body(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn name(key: u32) -> Vec<u8> {
    format!("key/{key:04}").into_bytes()
}

impl Rig {
    fn new() -> Self {
        let now = Instant::ORIGIN + Duration::from_secs(1);
        let plan = Plan { masters: 1, rules: Config::default(), ..Plan::new(1, 1) };
        let core = Master::new(plan.rules.clone(), 5, Term(1), now);
        let machine = Machine::new(core, 1, Incarnation(7), || KEY);
        let segment = SegmentId::from_bits(1 << 32).unwrap();
        let (oracle, fabric, peer) = (Oracle::new(&plan), Fabric::default(), Peer::default());
        let mut rig = Self { machine, peer, oracle, fabric, now, segment, request: 1 };
        rig.join();
        rig
    }

    fn join(&mut self) {
        let (incarnation, expected) = (Incarnation(9), Incarnation::default());
        let hello = Hello { oldest: 1, newest: 1, cluster: 0, incarnation, tenant: "default", expected };
        self.ask(message::HELLO, body(|out| codec::put(out, &hello)));
        let register = Register { name: "n", address: "sim:1", mode: Mode::Pool, fences: true };
        self.ask(message::REGISTER, body(|out| codec::put(out, &register)));
        let mount = Mount { name: "s", len: LEN, uniform: 0 };
        let mounted = self.ask(message::MOUNT, body(|out| codec::put(out, &mount)));
        self.segment = codec::whole(&mounted).expect("a segment");
        self.fabric.homes = vec![Vec::new(), vec![0; LEN as usize]];
        let gate = Gate::new(incarnation, self.segment, KEY);
        let (segment, len) = (self.segment, LEN as usize);
        self.fabric.regions.insert(Region { pid: NODE, master: PID, segment, gate, base: 0, len });
    }

    fn look_away(&mut self, method: Method, body: &[u8]) -> Vec<u8> {
        self.call(method, body, Eyes::Closed)
    }

    fn ask(&mut self, method: Method, body: Vec<u8>) -> Vec<u8> {
        self.call(method, &body, Eyes::Open)
    }

    /// Makes a call; gives back the body of the answer.
    fn call(&mut self, method: Method, body: &[u8], eyes: Eyes) -> Vec<u8> {
        self.request += 1;
        let frame = Frame { header: Header::request(method, self.request, None), body };
        let mut out = Vec::new();
        self.machine.handle(self.now, &mut self.peer, &frame, &mut Replies::at_once(&mut out));
        if eyes == Eyes::Open {
            self.show(&frame, &out);
        }
        decode(&out).unwrap().expect("an answer").0.body.to_vec()
    }

    fn show(&mut self, frame: &Frame<'_>, out: &[u8]) {
        let Self { machine, oracle, fabric, now, .. } = self;
        oracle.replied(*now, frame, out);
        oracle.served((*now, *now), (PID, machine.master()), fabric, frame, out);
    }

    /// Shows the oracle an answer that no master gave.
    fn pretend(&mut self, method: Method, asked: &[u8], said: impl FnOnce(&mut Vec<u8>)) {
        let frame = Frame { header: Header::request(method, 99, None), body: asked };
        let mut out = Vec::new();
        Replies::at_once(&mut out).reply(&frame.header, Code::OK, said);
        self.show(&frame, &out);
    }

    fn start_body(&self, key: u32, len: u64, options: &Options<'_>) -> Vec<u8> {
        body(|out| {
            codec::put(out, options);
            codec::put(out, &Wanted { key: &name(key), len });
        })
    }

    /// Begins a put, and writes its bytes; gives back its number and its grant.
    fn start(&mut self, key: u32, len: u32, options: &Options<'_>) -> (u32, Grant) {
        let put = self.oracle.put_began(PID, key, len);
        let answer = self.ask(message::PUT_START, self.start_body(key, len.into(), options));
        let (_, mut grants) = codec::split::<Granted, Result<Grant, Refusal>>(&answer).unwrap();
        let grant = grants.next().unwrap().unwrap().expect("there is room");
        let at = grant.replicas[0].extent.offset() as usize;
        pattern::fill(put, &mut self.fabric.homes[1][at..at + len as usize]);
        (put, grant)
    }

    fn end(&mut self, grant: &Grant) {
        let finished =
            Finished { object: grant.object, checksum: Checksum::Crc32c(1), failed: Default::default() };
        self.ask(
            message::PUT_END,
            body(|out| {
                codec::put(out, &());
                codec::put(out, &finished);
            }),
        );
    }

    fn put(&mut self, key: u32) -> (u32, Grant) {
        self.put_with(key, &Options::default())
    }

    fn put_with(&mut self, key: u32, options: &Options<'_>) -> (u32, Grant) {
        let (put, grant) = self.start(key, 100, options);
        self.end(&grant);
        self.oracle.put_ended(self.now, put, Ok(()));
        self.expect(None);
        (put, grant)
    }

    fn get_body(key: u32) -> Vec<u8> {
        body(|out| {
            codec::put(out, &());
            codec::put(out, &&*name(key));
        })
    }

    fn remove_body(key: u32) -> Vec<u8> {
        body(|out| {
            codec::put(out, &Forcing::Yes);
            codec::put(out, &&*name(key));
        })
    }

    fn audit(&mut self) {
        let Self { machine, oracle, fabric, now, .. } = self;
        oracle.audit(*now, (PID, machine.master()), fabric, 1);
    }

    fn got(&mut self, key: u32, asked: Instant, value: &[u8]) {
        let (read, now) = (self.now, self.now);
        let end = GetEnd { pid: Pid(2), master: PID, key, asked, read, steady: true };
        self.oracle.got(now, &end, Ok(value), None);
    }

    /// Shows a grant of `extent` to an object that does not exist.
    fn grant_again(&mut self, extent: Extent) {
        let placement = Placement { segment: self.segment, extent, serial: 1_000, tag: 0 };
        let object = springtide_core::id::ObjectId::from_bits(7 << 32 | 9).unwrap();
        let grant = Grant { object, replicas: [placement].into_iter().collect() };
        let asked = self.start_body(15, 100, &Options::default());
        self.pretend(message::PUT_START, &asked, |out| {
            codec::put(out, &Granted { term: Term(1), write_ms: 1 });
            codec::put(out, &Ok::<_, Refusal>(grant));
        });
    }

    #[track_caller]
    fn expect(&self, rule: Option<Rule>) {
        let seen = self.oracle.violation();
        assert_eq!(seen.map(|seen| seen.rule), rule, "{seen:?}");
    }
}

fn value(put: u32) -> Vec<u8> {
    let mut value = vec![0; 100];
    pattern::fill(put, &mut value);
    value
}

#[test]
fn what_is_right_is_not_said_to_be_wrong() {
    let mut rig = Rig::new();
    let (put, _) = rig.put(1);
    rig.ask(message::GET, Rig::get_body(1));
    rig.got(1, rig.now, &value(put));
    rig.ask(message::REMOVE, Rig::remove_body(1));
    rig.ask(message::GET, Rig::get_body(1));
    rig.put(1);
    rig.audit();
    rig.expect(None);
}

#[test]
fn bytes_that_no_put_wrote() {
    let mut rig = Rig::new();
    let (put, _) = rig.put(1);
    let mut wrong = value(put);
    wrong[50] ^= 1;
    rig.got(1, rig.now, &wrong);
    rig.expect(Some(Rule::Bytes));
}

#[test]
fn bytes_of_another_key() {
    let mut rig = Rig::new();
    let (put, _) = rig.put(1);
    rig.got(2, rig.now, &value(put));
    rig.expect(Some(Rule::Bytes));
}

#[test]
fn an_end_without_the_bytes() {
    let mut rig = Rig::new();
    let (_, grant) = rig.start(1, 100, &Options::default());
    let at = grant.replicas[0].extent.offset() as usize;
    rig.fabric.homes[1][at + 20] ^= 1;
    rig.end(&grant);
    rig.expect(Some(Rule::Bytes));
}

#[test]
fn a_read_after_its_lease() {
    let mut rig = Rig::new();
    let (put, _) = rig.put(1);
    let asked = rig.now;
    rig.now += Config::default().lease + Duration::from_millis(1);
    rig.got(1, asked, &value(put));
    rig.expect(Some(Rule::LateRead));
}

#[test]
fn what_was_removed_is_read() {
    let mut rig = Rig::new();
    let (put, _) = rig.put(1);
    rig.ask(message::REMOVE, Rig::remove_body(1));
    rig.now += Duration::from_millis(1);
    rig.got(1, rig.now, &value(put));
    rig.expect(Some(Rule::Removed));
}

#[test]
fn success_without_an_end() {
    let mut rig = Rig::new();
    let (put, _) = rig.start(1, 100, &Options::default());
    rig.oracle.put_ended(rig.now, put, Ok(()));
    rig.expect(Some(Rule::Acknowledged));
}

#[test]
fn an_end_after_failure() {
    let mut rig = Rig::new();
    let (put, grant) = rig.start(1, 100, &Options::default());
    rig.oracle.put_ended(rig.now, put, Err(Code::NEVER_FITS));
    rig.end(&grant);
    rig.expect(Some(Rule::Acknowledged));
}

#[test]
fn there_before_its_end() {
    let mut rig = Rig::new();
    rig.start(1, 100, &Options::default());
    let asked = body(|out| {
        codec::put(out, &ProbeKind::Plain);
        codec::put(out, &&*name(1));
    });
    rig.pretend(message::EXISTS, &asked, |out| {
        codec::put(out, &());
        codec::put(out, &Presence::Present);
    });
    rig.expect(Some(Rule::Early));
}

#[test]
fn not_found_though_it_is_there() {
    let mut rig = Rig::new();
    rig.put(1);
    rig.pretend(message::GET, &Rig::get_body(1), |out| {
        codec::put(out, &message::Leased { lease_ms: 1 });
        codec::put(out, &Err::<message::Found, _>(Refusal::new(Code::OBJECT_NOT_FOUND)));
    });
    rig.expect(Some(Rule::Vanished));
}

#[test]
fn gone_for_no_reason() {
    let mut rig = Rig::new();
    rig.put(1);
    rig.look_away(message::REMOVE, &Rig::remove_body(1));
    rig.audit();
    rig.expect(Some(Rule::Vanished));
}

#[test]
fn gone_under_a_lease() {
    let mut rig = Rig::new();
    rig.put(1);
    rig.ask(message::GET, Rig::get_body(1));
    rig.look_away(message::REMOVE, &Rig::remove_body(1));
    rig.audit();
    rig.expect(Some(Rule::Leased));
}

#[test]
fn gone_though_pinned() {
    let mut rig = Rig::new();
    rig.put_with(1, &Options { hard_pin: true, ..Options::default() });
    rig.look_away(message::REMOVE, &Rig::remove_body(1));
    rig.audit();
    rig.expect(Some(Rule::Pinned));
}

#[test]
fn a_lease_that_nobody_asked_for() {
    let mut rig = Rig::new();
    rig.put(1);
    rig.look_away(message::GET, &Rig::get_body(1));
    rig.audit();
    rig.expect(Some(Rule::Renewed));
}

#[test]
fn bytes_of_two_objects() {
    let mut rig = Rig::new();
    let (_, grant) = rig.put(1);
    rig.grant_again(grant.replicas[0].extent);
    rig.expect(Some(Rule::Shared));
}

#[test]
fn bytes_granted_under_a_lease() {
    let mut rig = Rig::new();
    let (_, grant) = rig.put(1);
    rig.ask(message::GET, Rig::get_body(1));
    rig.ask(message::REMOVE, Rig::remove_body(1));
    rig.grant_again(grant.replicas[0].extent);
    rig.expect(Some(Rule::ReusedLeased));
}

fn abandon(rig: &mut Rig, grant: &Grant) {
    let abandoned = Abandoned { object: grant.object, quiet: false };
    rig.ask(
        message::PUT_ABORT,
        body(|out| {
            codec::put(out, &());
            codec::put(out, &abandoned);
        }),
    );
    rig.expect(None);
}

#[test]
fn bytes_granted_before_a_fence() {
    let mut rig = Rig::new();
    let (_, grant) = rig.start(1, 100, &Options::default());
    abandon(&mut rig, &grant);
    rig.grant_again(grant.replicas[0].extent);
    rig.expect(Some(Rule::ReusedUnfenced));
}

#[test]
fn bytes_granted_after_a_fence() {
    let mut rig = Rig::new();
    let (_, grant) = rig.start(1, 100, &Options::default());
    abandon(&mut rig, &grant);
    let (region, _) = rig.fabric.regions.iter().next().unwrap();
    rig.fabric.regions.get_mut(region).unwrap().gate.fence(grant.replicas[0].extent, 500);
    rig.grant_again(grant.replicas[0].extent);
    rig.expect(None);
}

fn store(rig: &mut Rig, placement: &Placement) {
    let Placement { segment, extent, serial, tag } = *placement;
    let ticket = Ticket { owner: Incarnation(9), segment, extent, serial, term: Term(1), tag };
    let (_, region) = rig.fabric.regions.iter().next().unwrap();
    rig.oracle.stored(rig.now, region, &ticket, extent.offset());
}

#[test]
fn a_store_into_what_is_finished() {
    let mut rig = Rig::new();
    let (_, grant) = rig.start(1, 100, &Options::default());
    store(&mut rig, &grant.replicas[0]);
    rig.expect(None);
    rig.end(&grant);
    store(&mut rig, &grant.replicas[0]);
    rig.expect(Some(Rule::LateStore));
}

#[test]
fn a_store_into_what_is_somebody_elses() {
    let mut rig = Rig::new();
    let (_, first) = rig.put(1);
    rig.ask(message::REMOVE, Rig::remove_body(1));
    let (_, second) = rig.start(2, 100, &Options::default());
    assert_eq!(first.replicas[0].extent, second.replicas[0].extent);
    store(&mut rig, &first.replicas[0]);
    rig.expect(Some(Rule::LateStore));
}

#[test]
fn figures_that_do_not_add_up() {
    let mut rig = Rig::new();
    rig.put(1);
    rig.audit();
    rig.expect(None);
    rig.oracle.compare(rig.now, (128, 0, 0), (192, 0, 0));
    rig.expect(Some(Rule::Count));
}

#[test]
fn bytes_that_change() {
    let mut rig = Rig::new();
    let (_, grant) = rig.put(1);
    let at = grant.replicas[0].extent.offset();
    rig.fabric.homes[1][at as usize + 30] ^= 4;
    rig.audit();
    rig.expect(Some(Rule::Damaged));
}

#[test]
fn a_bit_that_flipped_is_no_fault_of_the_masters() {
    let mut rig = Rig::new();
    let (_, grant) = rig.put(1);
    let at = grant.replicas[0].extent.offset() + 30;
    rig.fabric.homes[1][at as usize] ^= 4;
    let Rig { oracle, fabric, .. } = &mut rig;
    oracle.flipped(fabric.regions.iter().next().unwrap().1, at);
    rig.audit();
    rig.expect(None);
}

#[test]
fn no_answer_two_answers_and_another_requests() {
    let header = Header::request(message::GET, 5, None);
    let (reply, other) = (|out: &mut Vec<u8>| Replies::at_once(out).reply(&header, Code::OK, |_| {}), 6);
    let frame = Frame { header, body: &[] };
    let say = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut rig = Rig::new();
        rig.oracle.replied(rig.now, &frame, &body(|out| write(out)));
        rig.oracle.violation().map(|seen| seen.rule)
    };
    assert_eq!(say(&|out| reply(out)), None);
    assert_eq!(say(&|_| {}), Some(Rule::Answers));
    assert_eq!(say(&|out| (reply(out), reply(out)).1), Some(Rule::Answers));
    let stray = Header { request: other, ..header };
    assert_eq!(say(&|out| Replies::at_once(out).reply(&stray, Code::OK, |_| {})), Some(Rule::Answers));
}

#[test]
fn a_call_that_ends_twice() {
    let mut rig = Rig::new();
    rig.oracle.asked(rig.now);
    rig.oracle.answered(rig.now);
    rig.expect(None);
    rig.oracle.answered(rig.now);
    rig.expect(Some(Rule::Answers));
}

#[test]
fn given_up_and_still_there() {
    let mut rig = Rig::new();
    let (_, grant) = rig.start(1, 100, &Options::default());
    let asked = body(|out| {
        codec::put(out, &());
        codec::put(out, &Abandoned { object: grant.object, quiet: true });
    });
    rig.pretend(message::PUT_ABORT, &asked, |out| {
        codec::put(out, &());
        codec::put(out, &Ok::<(), Refusal>(()));
    });
    rig.expect(Some(Rule::Leak));
}

#[test]
fn what_is_left_over() {
    let mut rig = Rig::new();
    rig.start(1, 100, &Options::default());
    let Rig { machine, oracle, now, .. } = &mut rig;
    oracle.settled(*now, (PID, machine.master()));
    rig.expect(Some(Rule::Leak));
    let mut rig = Rig::new();
    rig.oracle.left_over(rig.now, Pid(2), [0; 3]);
    rig.oracle.nobody_waits(rig.now, 0);
    rig.oracle.is_inside(rig.now, Pid(2), true);
    rig.expect(None);
    rig.oracle.left_over(rig.now, Pid(2), [0, 1, 0]);
    rig.expect(Some(Rule::Leak));
}
