//! Peers that break the rules, played by hand: neither they nor anybody else gets at what is not theirs, and the
//! transport lives on.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::fs::MemfdFlags;
use springtide_core::id::{Id, Incarnation, SegmentId, Term};
use springtide_core::rng::Rng;
use springtide_core::ticket::TicketKey;
use springtide_hal_host::memory::{Options, Sharing, allocate};
use springtide_hal_host::ring::{Flag, Shape};

use super::*;
use crate::entry::{Outcome, REPLIES, Reply, Request, SLOTS, Source};
use crate::socket::Received;

const KEY: TicketKey = TicketKey([3; 16]);
const OWNER: Incarnation = Incarnation(8);
const LEN: u64 = 64 << 10;
const PLENTY: Budget = Budget { ops: 1_000, bytes: 1 << 30 };
const START: Instant = Instant::from_nanos(1);

fn id<I: Id>(index: u32) -> I {
    I::new(index, core::num::NonZeroU32::MIN)
}

fn shared(len: u64) -> Block {
    allocate(len, Options { sharing: Sharing::Shared, ..Options::default() }).unwrap().block
}

fn ticket() -> Ticket {
    let extent = Extent::new(0, LEN).unwrap();
    KEY.sign(Ticket { owner: OWNER, segment: id(1), extent, serial: 5, term: Term(1), tag: 0 })
}

/// One `progress` or two, and what completed.
fn turn(shm: &mut Shm, now: Instant) -> Vec<Completion> {
    let nothing = Completion { id: id(0), bytes: 0, status: Status::Lost, code: 0 };
    let mut all = Vec::new();
    for _ in 0..4 {
        let mut done = [nothing; 8];
        let count = shm.progress(now, PLENTY, &mut done);
        all.extend_from_slice(&done[..count]);
    }
    all
}

fn events(shm: &mut Shm) -> Vec<Event> {
    core::iter::from_fn(|| shm.event()).collect()
}

/// One end of a connection without a transport behind it.
struct Raw {
    link: Link,
    _epoll: OwnedFd,
}

impl Raw {
    fn over(socket: OwnedFd, shape: Shape) -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let link = Link::new(socket, shape, &epoll, Mark { side: Side::Guest, slot: 0 }).unwrap();
        Self { link, _epoll: epoll }
    }

    /// Connects to `shm` as an initiator that has said nothing yet.
    fn initiator(shm: &Shm) -> Self {
        Self::over(socket::connect(shm.address.life).unwrap(), REQUESTS)
    }

    /// An initiator whom `shm` has welcomed.
    fn welcomed(shm: &mut Shm) -> Self {
        let mut raw = Self::initiator(shm);
        raw.link.introduce(&Message::Hello { version: VERSION, to: shm.address.life }).unwrap();
        turn(shm, START);
        let Received::Message(Message::Welcome, files) = raw.link.receive() else { panic!("a welcome") };
        raw.link.meet(files, REPLIES).unwrap();
        raw
    }

    /// Whether the other end has cut this one off.
    fn is_cut_off(&self) -> bool {
        loop {
            match self.link.receive() {
                Received::End => return true,
                Received::Nothing => return false,
                Received::Message(..) | Received::Garbage => {}
            }
        }
    }

    fn post(&mut self, words: &[u64]) {
        self.link.board.push(words);
        self.link.publish();
    }

    fn reply(&self, number: u64) -> Option<Reply> {
        let peer = self.link.peer.as_ref().unwrap();
        (peer.board.published() > number).then(|| Reply::decode(&peer.board.entry(number)).unwrap())
    }

    fn tell(&self, message: &Message, files: &[&OwnedFd]) {
        let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
        socket::send(self.link.socket(), message, &files).unwrap();
    }
}

/// An owner with one segment, filled with ones.
fn owner() -> (Shm, Block) {
    let (mut shm, block) = (Shm::new().unwrap(), shared(LEN));
    block.write(0, &[1; LEN as usize]).unwrap();
    let exposure = Exposure::Segment { owner: OWNER, segment: id::<SegmentId>(1), key: KEY };
    shm.expose(id(0), &block, exposure).unwrap();
    (shm, block)
}

fn request(number: u64, source: Source, to: u64, len: u32) -> Request {
    Request { number, source, target: id::<RegionId>(0).to_bits(), to, len, ticket: ticket() }
}

/// An initiator with a private buffer, and the raw owner at the other end of its path 0, whose region 9 is remote 0.
fn with_raw_owner() -> (Shm, Raw, Block) {
    let mut shm = Shm::new().unwrap();
    let block = allocate(LEN, Options::default()).unwrap().block;
    shm.expose(id(0), &block, Exposure::Source).unwrap();
    let life = clock::incarnation().0;
    let listener = socket::listen(life).unwrap();
    let mut address = Vec::new();
    Address { host: Host::here().unwrap(), life }.encode(&mut address);
    shm.open(START, id(0), &address).unwrap();
    let mut raw = Raw::over(socket::accept(&listener).unwrap(), REPLIES);
    let Received::Message(Message::Hello { version: VERSION, to }, files) = raw.link.receive() else {
        panic!("a hello")
    };
    assert_eq!(to, life);
    raw.link.meet(files, REQUESTS).unwrap();
    raw.link.introduce(&Message::Welcome).unwrap();
    turn(&mut shm, START);
    assert_eq!(events(&mut shm), [Event::Up(id(0))]);
    let mut description = Vec::new();
    Description { life, region: id::<RegionId>(9).to_bits(), len: LEN }.encode(&mut description);
    shm.import(id(0), id(0), &description).unwrap();
    shm.admit(id(0), &ticket()).unwrap();
    (shm, raw, block)
}

fn op(n: u32, verb: Verb, len: u32) -> Op {
    let ticket = (verb == Verb::Write).then(|| id(0));
    Op { id: id(n), local: id(0), at: 0, remote: id(0), to: 0, ticket, len, verb }
}

#[test]
fn other_versions_and_other_lives_are_refused() {
    let (mut shm, _) = owner();
    let life = shm.address.life;
    for hello in
        [Message::Hello { version: VERSION + 1, to: life }, Message::Hello { version: VERSION, to: !life }]
    {
        let raw = Raw::initiator(&shm);
        raw.link.introduce(&hello).unwrap();
        turn(&mut shm, START);
        assert!(matches!(raw.link.receive(), Received::Message(Message::Refuse { version: VERSION }, _)));
        assert!(raw.is_cut_off());
    }
    Raw::welcomed(&mut shm);
}

#[test]
fn an_initiator_without_a_proper_board_is_cut_off() {
    let (mut shm, _) = owner();
    let hello = Message::Hello { version: VERSION, to: shm.address.life };
    let bell = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
    let unsealed = rustix::fs::memfd_create("board", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&unsealed, 16 << 20).unwrap();
    let cases: [&[&OwnedFd]; 4] = [&[], &[&bell], &[&unsealed, &bell], &[&bell, &bell]];
    for files in cases {
        let raw = Raw::initiator(&shm);
        raw.tell(&hello, files);
        turn(&mut shm, START);
        assert!(raw.is_cut_off());
    }
    // A board of another shape: large enough to be sealed, too small for the requests.
    let raw = Raw::over(socket::connect(shm.address.life).unwrap(), REPLIES);
    raw.link.introduce(&hello).unwrap();
    turn(&mut shm, START);
    assert!(raw.is_cut_off());
}

#[test]
fn garbage_in_the_request_ring_cuts_off() {
    let good = request(0, Source::Board { at: 0 }, 0, 8).encode();
    let changes: [&[(usize, u64)]; 4] = [&[(0, 1)], &[(1, 0)], &[(1, u64::MAX)], &[(8, 0)]];
    for change in changes {
        let (mut shm, block) = owner();
        let mut raw = Raw::welcomed(&mut shm);
        let mut bad = good;
        change.iter().for_each(|&(word, value)| bad[word] = value);
        raw.post(&bad);
        turn(&mut shm, START);
        assert!(raw.is_cut_off(), "{change:?}");
        assert_eq!(block.to_vec(), [1; LEN as usize]);
    }
    let (mut shm, _) = owner();
    let mut raw = Raw::welcomed(&mut shm);
    for number in 0..=u64::from(SLOTS) {
        raw.link.board.push(&request(number, Source::Board { at: 0 }, 0, 8).encode());
    }
    raw.link.publish();
    turn(&mut shm, START);
    assert!(raw.is_cut_off(), "more requests than the ring holds");
}

#[test]
fn requests_that_reach_too_far_store_nothing() {
    let (mut shm, block) = owner();
    let mut raw = Raw::welcomed(&mut shm);
    let end = REQUESTS.bytes;
    let (refused, unreadable) = (Outcome::Refused, Outcome::Unreadable);
    let cases = [
        (Source::Board { at: 0 }, LEN - 7, 8, refused),
        (Source::Board { at: 0 }, u64::MAX, 8, refused),
        (Source::Board { at: 0 }, u64::MAX - 7, 8, refused),
        (Source::Board { at: 0 }, 0, u32::MAX, refused),
        (Source::Board { at: end - 7 }, 0, 8, unreadable),
        (Source::Board { at: u64::MAX }, 0, 8, unreadable),
        (Source::Memory { address: 16 }, 0, 8, unreadable),
        (Source::Memory { address: u64::MAX - 3 }, 0, 8, unreadable),
        (Source::Region { region: 1 << 32, at: 0 }, 0, 8, unreadable),
    ];
    for (number, (source, to, len, outcome)) in (0..).zip(cases) {
        raw.post(&request(number, source, to, len).encode());
        turn(&mut shm, START);
        let reply = raw.reply(number).unwrap();
        assert_eq!((reply.outcome, reply.bytes), (outcome, 0), "{source:?} to {to} len {len}");
    }
    let mut elsewhere = request(cases.len() as u64, Source::Board { at: 0 }, 0, 8);
    elsewhere.target = id::<RegionId>(700).to_bits();
    raw.post(&elsewhere.encode());
    turn(&mut shm, START);
    assert_eq!(raw.reply(elsewhere.number).unwrap().code, entry::NO_TARGET);
    assert_eq!(block.to_vec(), [1; LEN as usize]);
    assert!(!raw.is_cut_off());
}

#[test]
fn a_source_is_read_within_what_was_passed() {
    let (mut shm, block) = owner();
    let mut raw = Raw::welcomed(&mut shm);
    let ours = shared(4096);
    ours.write(0, &[7; 4096]).unwrap();
    let file = ours.file().unwrap().0.try_clone_to_owned().unwrap();
    raw.tell(&Message::Source { region: 1 << 32, offset: 96, len: 1000 }, &[&file]);
    // More than the file holds: as if it had not been passed.
    raw.tell(&Message::Source { region: 2 << 32, offset: 96, len: 4001 }, &[&file]);
    let cases = [
        (1 << 32, 993, Outcome::Unreadable),
        (1 << 32, u64::MAX, Outcome::Unreadable),
        (2 << 32, 0, Outcome::Unreadable),
        (1 << 32, 992, Outcome::Done),
    ];
    for (number, (region, at, outcome)) in (0..).zip(cases) {
        raw.post(&request(number, Source::Region { region, at }, 0, 8).encode());
        turn(&mut shm, START);
        assert_eq!(raw.reply(number).unwrap().outcome, outcome, "{region:#x} at {at}");
    }
    assert_eq!(block.to_vec()[..9], [7, 7, 7, 7, 7, 7, 7, 7, 1]);
    raw.tell(&Message::Drop { region: 1 << 32 }, &[]);
    raw.post(&request(4, Source::Region { region: 1 << 32, at: 0 }, 0, 8).encode());
    turn(&mut shm, START);
    assert_eq!(raw.reply(4).unwrap().outcome, Outcome::Unreadable);
}

#[test]
fn random_requests_and_messages_harm_nobody() {
    let (mut shm, block) = owner();
    let mut rng = Rng::new(11);
    for _ in 0..300 {
        let mut raw = Raw::welcomed(&mut shm);
        for number in 0..rng.below(20) {
            let mut words = request(number, Source::Board { at: 0 }, 0, 8).encode();
            // Wrong in one place at least, but never in its proof: nothing may be stored.
            words[6 + rng.below(7) as usize] ^= 1 << rng.below(64);
            if rng.below(2) == 0 {
                words[2 + rng.below(4) as usize] = rng.next_u64();
            }
            raw.post(&words);
            if rng.below(3) == 0 {
                let mut bytes = [0; message::LEN];
                bytes.fill_with(|| rng.next_u64() as u8);
                bytes[0] = rng.below(12) as u8;
                let _ = rustix::net::send(raw.link.socket(), &bytes, rustix::net::SendFlags::NOSIGNAL);
            }
            turn(&mut shm, START);
        }
    }
    assert_eq!(block.to_vec(), [1; LEN as usize]);
    Raw::welcomed(&mut shm);
}

#[test]
fn strangers_do_not_keep_others_out() {
    let (mut shm, _) = owner();
    let strangers: Vec<Raw> = (0..300)
        .map(|_| {
            let raw = Raw::initiator(&shm);
            turn(&mut shm, START);
            raw
        })
        .collect();
    Raw::welcomed(&mut shm);
    let kept = strangers.iter().filter(|raw| !raw.is_cut_off()).count();
    assert!(kept <= 64, "{kept}");
}

#[test]
fn garbage_in_the_reply_ring_takes_the_path_down() {
    let good = Reply { number: 0, outcome: Outcome::Done, bytes: 8, code: 0 };
    let bad = [
        Reply { number: 1, ..good }.encode(),
        Reply { bytes: 9, ..good }.encode(),
        Reply { bytes: 7, ..good }.encode(),
        [0, 77, 8, 0],
    ];
    for words in bad {
        let (mut shm, mut raw, _) = with_raw_owner();
        shm.submit(id(0), &[op(1, Verb::Write, 8)]).unwrap();
        raw.post(&words);
        let done = turn(&mut shm, START);
        let flushed = Completion { id: id(1), bytes: 0, status: Status::Flushed, code: 0 };
        assert_eq!(done, [flushed], "{words:?}");
        assert_eq!(events(&mut shm), [Event::Down(id(0), DownReason::Protocol)]);
        assert!(raw.is_cut_off());
    }
    let (mut shm, mut raw, _) = with_raw_owner();
    raw.post(&good.encode());
    turn(&mut shm, START);
    assert_eq!(events(&mut shm), [Event::Down(id(0), DownReason::Protocol)], "a reply to nothing");
}

#[test]
fn what_cannot_be_mapped_safely_is_not_read() {
    let unsealed = rustix::fs::memfd_create("segment", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&unsealed, LEN).unwrap();
    let short = shared(4096);
    let short = short.file().unwrap().0.try_clone_to_owned().unwrap();
    for file in [&unsealed, &short] {
        let (mut shm, raw, block) = with_raw_owner();
        raw.tell(&Message::Mapped { region: id::<RegionId>(9).to_bits(), offset: 0, len: LEN }, &[file]);
        shm.submit(id(0), &[op(1, Verb::Read, 8)]).unwrap();
        let done = turn(&mut shm, START);
        assert_eq!((done.len(), done[0].status), (1, Status::Refused));
        assert_eq!(block.to_vec(), [0; LEN as usize]);
    }
    for bad in [
        Message::Mapped { region: id::<RegionId>(9).to_bits(), offset: 0, len: LEN },
        Message::Mapped { region: id::<RegionId>(9).to_bits(), offset: u64::MAX, len: LEN },
        Message::Welcome,
        Message::Want { region: 9 },
    ] {
        let (mut shm, raw, _) = with_raw_owner();
        raw.tell(&bad, &[]);
        turn(&mut shm, START);
        assert_eq!(events(&mut shm), [Event::Down(id(0), DownReason::Protocol)], "{bad:?}");
    }
}

#[test]
fn an_unreadable_source_goes_by_the_next_route() {
    let (mut shm, mut raw, block) = with_raw_owner();
    block.write(0, &[5; LEN as usize]).unwrap();
    shm.submit(id(0), &[op(1, Verb::Write, 100), op(2, Verb::Write, 100)]).unwrap();
    let source = |raw: &Raw, number| {
        let peer = raw.link.peer.as_ref().unwrap();
        assert!(peer.board.published() > number);
        Request::decode(&peer.board.entry(number)).unwrap().source
    };
    assert!(matches!(source(&raw, 0), Source::Memory { .. }));
    for number in 0..2 {
        raw.post(&Reply { number, outcome: Outcome::Unreadable, bytes: 0, code: 0 }.encode());
    }
    assert_eq!(turn(&mut shm, START), []);
    for number in 2..4 {
        let Source::Board { at } = source(&raw, number) else { panic!("a piece") };
        let bytes = shared(100);
        raw.link.peer.as_ref().unwrap().board.copy_bulk(at, bytes.span(0, 100).unwrap()).unwrap();
        assert_eq!(bytes.to_vec(), [5; 100]);
        raw.post(&Reply { number, outcome: Outcome::Done, bytes: 100, code: 0 }.encode());
    }
    let done = turn(&mut shm, START);
    assert!(done.len() == 2 && done.iter().all(|done| done.status == Status::Done), "{done:?}");
    // It is remembered.
    shm.submit(id(0), &[op(3, Verb::Write, 100)]).unwrap();
    turn(&mut shm, START);
    assert!(matches!(source(&raw, 4), Source::Board { .. }));
}

#[test]
fn an_owner_in_the_midst_of_a_step_is_waited_for_and_then_given_up() {
    let late = START + Duration::from_millis(100);
    for wait in [true, false] {
        let (mut shm, mut raw, block) = with_raw_owner();
        shm.submit(id(0), &[op(1, Verb::Write, 8), op(2, Verb::Write, 8)]).unwrap();
        raw.link.board.set(Flag::Busy, 1);
        shm.close(id(0));
        shm.withdraw(id(0));
        assert_eq!(turn(&mut shm, START), []);
        assert_eq!(events(&mut shm), []);
        assert_eq!(shm.arm(), Armed::Poll(Duration::from_millis(1)));
        if wait {
            raw.post(&Reply { number: 0, outcome: Outcome::Done, bytes: 8, code: 0 }.encode());
            raw.link.board.set(Flag::Busy, 0);
            let statuses: Vec<_> = turn(&mut shm, START).iter().map(|done| done.status).collect();
            assert_eq!(statuses, [Status::Done, Status::Flushed]);
        } else {
            let statuses: Vec<_> = turn(&mut shm, late).iter().map(|done| done.status).collect();
            assert_eq!(statuses, [Status::Lost; 2]);
            assert!(block.shares() > 1, "the memory of a lost op is held");
            assert_eq!(events(&mut shm), [], "until the path is down");
            raw.link.board.set(Flag::Busy, 0);
            assert_eq!(turn(&mut shm, late), []);
        }
        assert_eq!(events(&mut shm), [Event::Down(id(0), DownReason::Closed)]);
        assert_eq!(block.shares(), 1);
        // Whoever looks before a step sees that it must not begin.
        assert_eq!(raw.link.peer.as_ref().unwrap().board.flag(Flag::Closed), 1);
    }
}
