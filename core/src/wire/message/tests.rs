//! Messages never change: their bytes are written down here.

use alloc::vec::Vec;

use super::*;
use crate::checksum::Checksum;
use crate::id::{Id, ObjectId, SegmentId};
use crate::range::Extent;
use crate::ticket::TicketKey;
use crate::wire::codec::{put, split, whole};
use core::num::NonZeroU32;

fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, value);
    out
}

fn segment(index: u32) -> SegmentId {
    SegmentId::new(index, NonZeroU32::MIN)
}

fn object(index: u32) -> ObjectId {
    ObjectId::new(index, NonZeroU32::new(2).unwrap())
}

#[test]
fn numbers_and_names_are_unique() {
    for (i, method) in METHODS.iter().enumerate() {
        assert!(METHODS[i + 1..].iter().all(|other| other != method && name(*other) != name(*method)));
    }
    assert_eq!(name(GET), "GET");
    assert_eq!(name(Method(9_999)), "UNKNOWN");
}

#[test]
fn golden_hello() {
    let hello = Hello {
        oldest: 1,
        newest: 1,
        cluster: 300,
        incarnation: Incarnation(1),
        tenant: "t",
        expected: Incarnation(0),
    };
    assert_eq!(bytes(&hello), [1, 1, 0xAC, 2, 1, 1, b't', 0]);
    assert_eq!(whole::<Hello<'_>>(&bytes(&hello)), Ok(hello));
}

#[test]
fn golden_get_answer() {
    let replicas = heapless::Vec::from_slice(&[Location { segment: segment(3), offset: 128 }]).unwrap();
    let found = Found { object: object(5), len: 4_096, checksum: Checksum::Crc32c(7), replicas };
    let mut out = bytes(&Leased { lease_ms: 10_000 });
    put(&mut out, &Ok::<_, Refusal>(found.clone()));
    put(&mut out, &Err::<Found, _>(Refusal::new(Code::OBJECT_NOT_FOUND)));
    assert_eq!(out, [0x90, 0x4E, 0, 5, 2, 0x80, 0x20, 1, 7, 1, 3, 1, 0x80, 1, 1, 0xFF, 0x0A, 0], "{out:?}");
    let (head, mut tail) = split::<Leased, Result<Found, Refusal>>(&out).unwrap();
    assert_eq!(head.lease_ms, 10_000);
    assert_eq!(tail.next(), Some(Ok(Ok(found))));
    assert_eq!(tail.next(), Some(Ok(Err(Refusal::new(Code::OBJECT_NOT_FOUND)))));
    assert_eq!(tail.next(), None);
}

#[test]
fn golden_put() {
    let options = Options { replicas: 2, soft_pin_ms: Some(0), group: "g", ..Options::default() };
    assert_eq!(bytes(&options), [2, 1, 0, 0, 0, 1, b'g', 1, 0]);
    let extent = Extent::new(64, 128).unwrap();
    let placement = Placement { segment: segment(0), extent, serial: 1, tag: 2 };
    assert_eq!(bytes(&placement), [0, 1, 64, 0x80, 1, 1, 2]);
    let end =
        Publish { object: object(1), key: b"k", len: 3, checksum: Checksum::None, failed: Failed::new() };
    assert_eq!(bytes(&end), [1, 2, 1, b'k', 3, 0, 0]);
    let failed = Failed::from_slice(&[segment(9)]).unwrap();
    let end = Finished { object: object(1), checksum: Checksum::Crc32c(5), failed };
    assert_eq!(bytes(&end), [1, 2, 1, 5, 1, 9, 1]);
}

#[test]
fn golden_members() {
    let register = Register { name: "n", address: "h:1", mode: Mode::Pool, fences: true };
    assert_eq!(bytes(&register), [1, b'n', 3, b'h', b':', b'1', 0, 1]);
    let registered = Registered { ticket_key: TicketKey([9; 16]), heartbeat_ms: 1_000, ttl_ms: 10_000 };
    assert_eq!(bytes(&registered), [&[9; 16][..], &[0xE8, 7, 0x90, 0x4E]].concat());
    assert_eq!(bytes(&Heartbeat { count: 5 }), [5]);
    let extent = Extent::new(64, 128).unwrap();
    let mut beat = bytes(&Beat { status: ClientStatus::Healthy });
    put(&mut beat, &FenceDuty { number: 3, segment: segment(1), extent, below: 9 });
    assert_eq!(beat, [1, 3, 1, 1, 64, 0x80, 1, 9]);
    let statuses =
        [ClientStatus::Undefined, ClientStatus::Healthy, ClientStatus::Disconnected, ClientStatus::Crashed];
    for (number, status) in (0u8..).zip(statuses) {
        assert_eq!((bytes(&Beat { status }), status as u8), ([number].into(), number));
    }
    let status = ClientStatus::Disconnected;
    let incarnation = Incarnation(1);
    let member = MemberInfo { name: "n", address: "", incarnation, status, segments: 2, duties: 0 };
    assert_eq!(bytes(&member), [1, b'n', 0, 1, 2, 2, 0]);
}

#[test]
fn golden_segments() {
    assert_eq!(bytes(&Mount { name: "s", len: 4_096, uniform: 0 }), [1, b's', 0x80, 0x20, 0]);
    let info = SegmentInfo {
        id: segment(2),
        name: "s",
        owner: "o",
        incarnation: Incarnation(1),
        address: "h:1",
        len: 4_096,
        used: 64,
        largest_hole: 4_032,
        open: true,
    };
    let golden = [2, 1, 1, b's', 1, b'o', 1, 3, b'h', b':', b'1', 0x80, 0x20, 64, 0xC0, 0x1F, 1];
    assert_eq!(bytes(&info), golden);
    assert_eq!(whole::<SegmentInfo<'_>>(&golden), Ok(info));
    assert_eq!(bytes(&Clear { segment: "s" }), [1, b's']);
}

#[test]
fn refusals_say_what_to_do() {
    use alloc::string::ToString;
    let text = Refusal { code: Code::NO_AVAILABLE_HANDLE, detail: 4_194_304 }.to_string();
    assert!(text.contains("4194304") && text.contains("try again"), "{text}");
}
