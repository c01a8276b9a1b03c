//! The desk behind a socket.

use std::sync::Arc;

use springtide_core::time::Instant;
use springtide_driver::Runtime;
use springtide_rpc::{Frames, Replies, Service};

use crate::desk::{Desk, Greeted, Served, Way};
use crate::segments::Segments;

pub(crate) struct NodeService<R> {
    pub(crate) desk: Desk,
    pub(crate) segments: Arc<Segments<R>>,
}

impl<R: Runtime> Service for NodeService<R> {
    type Peer = Greeted;

    fn handle(&self, _now: Instant, greeted: &mut Greeted, frames: Frames<'_>, replies: &mut Replies<'_>) {
        for frame in frames {
            self.desk.handle(greeted, &frame, replies, |segment, name| {
                let Some(cards) = self.segments.cards(segment) else { return Served::No };
                for card in &cards {
                    let (address, description) = (&card.address[..], &card.description[..]);
                    name(Way { transport: &card.transport, address, description });
                }
                Served::Yes
            });
        }
    }

    fn closed(&self, _now: Instant, _greeted: &mut Greeted) {}
}
