//! Between the master's own types and the wire's.

use springtide_core::checksum::Checksum;
use springtide_core::error::Code;
use springtide_core::id::SegmentId;
use springtide_core::master::{self, Master, Pin, PutError, PutOptions, Started, Sums};
use springtide_core::time::Instant;
use springtide_core::wire::message::{self as wire, Grant, Location, Placement, Refusal};

/// A put's refusal, with the number that its text needs.
pub(crate) fn put_refusal(error: PutError) -> Refusal {
    let detail = match error {
        PutError::NeverFits { largest_segment } => largest_segment,
        PutError::NoHole { largest_hole } => largest_hole,
        _ => 0,
    };
    Refusal { code: error.code(), detail }
}

/// A grant as the wire says it.
pub(crate) fn grant(started: &Started) -> Grant {
    let replicas = started.replicas.iter().map(placement).collect();
    Grant { object: started.object, replicas }
}

pub(crate) fn placement(placement: &master::Placement) -> Placement {
    let master::Placement { segment, extent, ticket } = *placement;
    Placement { segment, extent, serial: ticket.serial, tag: ticket.tag }
}

pub(crate) fn location(location: &master::Location) -> Location {
    Location { segment: location.segment, offset: location.extent.offset() }
}

pub(crate) fn found(found: &master::Found) -> wire::Found {
    wire::Found {
        object: found.object,
        len: found.len,
        checksum: found.checksum,
        replicas: found.replicas.iter().map(location).collect(),
    }
}

/// Preferred segments by id, found by their own name or by their owner's: names that nobody has are passed over
/// (S0A-047).
pub(crate) struct Wishes(heapless::Vec<SegmentId, { wire::MAX_PREFERRED }>);

impl Wishes {
    pub(crate) fn new(master: &Master, options: &wire::Options<'_>) -> Self {
        let mut ids = heapless::Vec::new();
        for name in &options.preferred {
            let mut named = master.segments_named(name).peekable();
            if named.peek().is_some() {
                ids.extend(named.map(|segment| segment.id).take(wire::MAX_PREFERRED - ids.len()));
                continue;
            }
            let owned = master
                .segments()
                .filter(|segment| master.member(segment.owner).is_some_and(|owner| owner.name == *name));
            ids.extend(owned.map(|segment| segment.id).take(wire::MAX_PREFERRED - ids.len()));
        }
        Self(ids)
    }

    /// Prefers the segments of `first` from now on (S0A-090).
    pub(crate) fn follow(&mut self, first: &Grant) {
        self.0 = first.replicas.iter().map(|replica| replica.segment).take(wire::MAX_PREFERRED).collect();
    }

    pub(crate) fn options<'a>(&'a self, options: &wire::Options<'a>) -> PutOptions<'a> {
        let pin = match (options.hard_pin, options.soft_pin()) {
            (true, _) => Pin::Hard,
            (false, Some(time)) => Pin::Soft((!time.is_zero()).then_some(time)),
            (false, None) => Pin::None,
        };
        PutOptions {
            replicas: options.replicas.into(),
            preferred: &self.0,
            pin,
            group: (!options.group.is_empty()).then_some(options.group),
            sums: if options.sums { Sums::Blocks } else { Sums::None },
        }
    }
}

pub(crate) fn stat(now: Instant, stat: &master::Stat) -> wire::Stat {
    let millis = |until: Instant| u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX);
    let ready = stat.replicas.iter().filter(|replica| replica.ready != master::Ready::Writing).count();
    let hard_pin = stat.pinned_until == Instant::NEVER;
    wire::Stat {
        len: stat.len,
        checksum: stat.checksum,
        replicas: ready as u8,
        writing: ready == 0 && stat.checksum == Checksum::None,
        lease_ms: millis(stat.leased_until),
        soft_pin_ms: if hard_pin { 0 } else { millis(stat.pinned_until) },
        hard_pin,
    }
}

/// A code for keys that are none.
pub(crate) const BAD_KEY: Refusal = Refusal::new(Code::INVALID_KEY);
