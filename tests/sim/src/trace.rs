//! The log of one run, for people.

use core::fmt;

use springtide_core::time::Instant;
use springtide_core::wire::codec;
use springtide_core::wire::frame::{Frame, Kind};
use springtide_core::wire::message::{
    self, Abandoned, Beat, FenceDuty, Finished, Grant, Granted, Heartbeat, Publish, Refusal, Wanted,
};

/// Whether a run tells what it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Trace {
    /// It does not.
    #[default]
    Off,
    /// Line by line, on standard output.
    On,
}

impl Trace {
    /// Says one line. Nothing is formatted where nobody listens.
    pub fn say(self, now: Instant, who: &dyn fmt::Display, what: fmt::Arguments<'_>) {
        if self == Self::On {
            let (seconds, micros) = (now.nanos() / 1_000_000_000, now.nanos() / 1_000 % 1_000_000);
            println!("{seconds:>4}.{micros:06}  {who:<8}  {what}");
        }
    }
}

/// A message, as people read it.
pub struct Message<'a>(pub &'a Frame<'a>);

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Frame { header, body } = self.0;
        let name = message::name(header.method);
        if header.kind == Kind::Request {
            write!(f, "{name} {:x}", header.request)?;
            return self.asks(f, body);
        }
        write!(f, "answer to {name} {:x}", header.request)?;
        if !header.status.is_ok() {
            return write!(f, ": {} ({})", String::from_utf8_lossy(body), header.status);
        }
        self.says(f, body)
    }
}

impl Message<'_> {
    fn asks(&self, f: &mut fmt::Formatter<'_>, body: &[u8]) -> fmt::Result {
        match self.0.header.method {
            message::GET => keys::<()>(f, body),
            message::EXISTS => keys::<message::ProbeKind>(f, body),
            message::REMOVE => keys::<message::Forcing>(f, body),
            message::PUT_START => {
                let wanted = codec::split::<message::Options<'_>, Wanted<'_>>(body);
                each(f, wanted, |f, item| {
                    write!(f, " {} ({} bytes)", String::from_utf8_lossy(item.key), item.len)
                })
            }
            message::PUT_END => each(f, codec::split::<(), Finished>(body), |f, item| {
                write!(f, " {} (failed: {:?})", item.object, item.failed)
            }),
            message::PUBLISH => each(f, codec::split::<(), Publish<'_>>(body), |f, item| {
                write!(f, " {} as {}", item.object, String::from_utf8_lossy(item.key))
            }),
            message::PUT_ABORT => each(f, codec::split::<(), Abandoned>(body), |f, item| {
                write!(f, " {} ({})", item.object, if item.quiet { "quiet" } else { "not quiet" })
            }),
            message::HEARTBEAT => each(f, codec::split::<Heartbeat, u64>(body), |f, number| {
                write!(f, " fence {number:x} stands")
            }),
            _ => Ok(()),
        }
    }

    fn says(&self, f: &mut fmt::Formatter<'_>, body: &[u8]) -> fmt::Result {
        match self.0.header.method {
            message::PUT_START | message::RESERVE => {
                let grants = codec::split::<Granted, Result<Grant, Refusal>>(body);
                each(f, grants, |f, grant| match grant {
                    Ok(Grant { object, replicas }) => {
                        write!(f, " {object}")?;
                        replicas.iter().try_for_each(|at| {
                            write!(f, " at {:?} of {} by ticket {}", at.extent, at.segment, at.serial)
                        })
                    }
                    Err(refusal) => write!(f, " {refusal}"),
                })
            }
            message::GET => {
                let found = codec::split::<message::Leased, Result<message::Found, Refusal>>(body);
                each(f, found, |f, found| match found {
                    Ok(found) => write!(f, " {} {:?}", found.object, found.replicas),
                    Err(refusal) => write!(f, " {refusal}"),
                })
            }
            message::HEARTBEAT => each(f, codec::split::<Beat, FenceDuty>(body), |f, duty| {
                let FenceDuty { number, segment, extent, below } = duty;
                write!(f, " fence {number:x}: {extent:?} of {segment} below {below}")
            }),
            message::PUT_END | message::PUBLISH | message::PUT_ABORT | message::REMOVE => {
                each(f, codec::split::<(), Result<(), Refusal>>(body), |f, item| match item {
                    Ok(()) => f.write_str(" ok"),
                    Err(refusal) => write!(f, " {refusal}"),
                })
            }
            _ => Ok(()),
        }
    }
}

fn keys<'a, H: serde::Deserialize<'a>>(f: &mut fmt::Formatter<'_>, body: &'a [u8]) -> fmt::Result {
    each(f, codec::split::<H, &[u8]>(body), |f, key| write!(f, " {}", String::from_utf8_lossy(key)))
}

fn each<'a, H, T: serde::Deserialize<'a>>(
    f: &mut fmt::Formatter<'_>,
    message: Result<(H, codec::Tail<'a, T>), codec::Malformed>,
    show: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    let Ok((_, items)) = message else { return Ok(()) };
    items.flatten().try_for_each(|item| show(f, item))
}
