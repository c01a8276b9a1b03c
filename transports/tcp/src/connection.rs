//! A connection and which side of it we are.

use core::num::NonZeroU32;

use springtide_core::id::Id;
use springtide_core::time::Instant;

use crate::initiator::Lane;
use crate::stream::Stream;
use crate::target::Target;

/// Names a connection of this transport; epoll carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConnectionId {
    index: u32,
    generation: NonZeroU32,
}

impl Id for ConnectionId {
    fn new(index: u32, generation: NonZeroU32) -> Self {
        Self { index, generation }
    }
    fn index(self) -> usize {
        self.index as usize
    }
    fn generation(self) -> NonZeroU32 {
        self.generation
    }
}

impl ConnectionId {
    /// The id as one number, never 0.
    pub(crate) const fn to_bits(self) -> u64 {
        (self.generation.get() as u64) << 32 | self.index as u64
    }

    /// The id of [`to_bits`](Self::to_bits); `None` for what can be none.
    pub(crate) const fn from_bits(bits: u64) -> Option<Self> {
        match NonZeroU32::new((bits >> 32) as u32) {
            Some(generation) => Some(Self { index: bits as u32, generation }),
            None => None,
        }
    }
}

/// Which side we are.
#[derive(Debug)]
pub(crate) enum Role {
    /// We ask.
    Initiator(Lane),
    /// We serve.
    Target(Target),
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) role: Role,
    /// When it was made: both sides must have said hello soon after.
    pub(crate) began: Instant,
    /// Whether it stands in the queue of those that have something to do.
    pub(crate) queued: bool,
}

impl Connection {
    /// Whether both sides have said hello.
    pub(crate) const fn is_greeted(&self) -> bool {
        match &self.role {
            Role::Initiator(lane) => lane.greeted,
            Role::Target(target) => target.is_greeted(),
        }
    }

    /// Whether the peer owes us something that it must not take for ever over.
    pub(crate) fn waits(&self) -> bool {
        let replies = match &self.role {
            Role::Initiator(lane) => lane.waits(),
            Role::Target(_) => false,
        };
        replies || self.stream.waits()
    }
}
