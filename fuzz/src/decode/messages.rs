//! Every call and every answer.

use springtide_core::id::SegmentId;
use springtide_core::wire::codec::{put, split, whole};
use springtide_core::wire::message::{
    Abandoned, Beat, Card, Clear, CopyEnd, CopyPlan, CopyStart, FenceDuty, Figures, Finished, Forcing, Found,
    Grant, Granted, Heartbeat, Hello, Leased, Listed, MemberInfo, Mount, Options, Presence, ProbeKind,
    Publish, Refusal, Register, Registered, RemoveMatching, RemoveStep, Reserve, Scan, ScanPage, SegmentInfo,
    Stat, Wanted, Welcome,
};

/// The first byte says which message the rest is read as. What is read is written and read again: it is equal, and
/// written once more it has equal bytes.
pub fn messages(data: &[u8]) {
    let Some((&form, body)) = data.split_first() else { return };
    let forms = FORMS;
    forms[usize::from(form) % forms.len()](body);
}

macro_rules! form {
    ($head:ty) => {
        |body| {
            let Ok(head) = whole::<$head>(body) else { return };
            let mut out = Vec::new();
            put(&mut out, &head);
            assert_eq!(whole::<$head>(&out).as_ref(), Ok(&head));
        }
    };
    ($head:ty, $item:ty) => {
        |body| {
            let Ok((head, tail)) = split::<$head, $item>(body) else { return };
            let mut out = Vec::new();
            put(&mut out, &head);
            let items: Vec<$item> = tail.map_while(Result::ok).collect();
            items.iter().for_each(|item| put(&mut out, item));
            let (again, tail) = split::<$head, $item>(&out).expect("what was written can be read");
            assert_eq!(again, head);
            assert_eq!(tail.collect::<Result<Vec<_>, _>>().as_ref(), Ok(&items));
        }
    };
}

const FORMS: &[fn(&[u8])] = &[
    form!(Hello<'_>),
    form!(Welcome),
    form!(Register<'_>),
    form!(Registered),
    form!(Heartbeat, u64),
    form!(Beat, FenceDuty),
    form!(Mount<'_>),
    form!(SegmentId),
    form!(SegmentInfo<'_>),
    form!((), SegmentInfo<'_>),
    form!((), MemberInfo<'_>),
    form!((), &[u8]),
    form!(Leased, Result<Found, Refusal>),
    form!(ProbeKind, &[u8]),
    form!((), Presence),
    form!(Options<'_>, Wanted<'_>),
    form!(Granted, Result<Grant, Refusal>),
    form!((), Finished),
    form!((), Result<(), Refusal>),
    form!((), Abandoned),
    form!(Reserve<'_>),
    form!((), Publish<'_>),
    form!(Forcing, &[u8]),
    form!(RemoveMatching<'_>),
    form!(RemoveStep),
    form!((), Result<Stat, Refusal>),
    form!(Scan<'_>),
    form!(ScanPage, Listed<'_>),
    form!(CopyStart<'_>),
    form!(CopyPlan),
    form!(CopyEnd),
    form!(Clear<'_>, &[u8]),
    form!(Figures),
    form!((), Card<'_>),
    |body| {
        if let Ok(refusal) = whole::<Refusal>(body) {
            assert!(!refusal.to_string().is_empty());
        }
    },
];
