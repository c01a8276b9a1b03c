//! What a node answers: who it is, and how to reach its segments.

use std::sync::Arc;

use springtide_core::error::Code;
use springtide_core::id::{Incarnation, SegmentId, Term};
use springtide_core::time::Instant;
use springtide_core::wire::codec;
use springtide_core::wire::frame::Frame;
use springtide_core::wire::message::{self, Card, Hello, Mode, PROTOCOL, Welcome};
use springtide_driver::Runtime;
use springtide_rpc::{Frames, Replies, Service};

use crate::segments::Segments;

pub(crate) struct NodeService<R> {
    pub(crate) incarnation: Incarnation,
    pub(crate) segments: Arc<Segments<R>>,
}

impl<R: Runtime> Service for NodeService<R> {
    /// Whether it said hello.
    type Peer = bool;

    fn handle(&self, _now: Instant, greeted: &mut bool, frames: Frames<'_>, replies: &mut Replies<'_>) {
        for frame in frames {
            match frame.header.method {
                message::HELLO => *greeted |= self.hello(&frame, replies),
                _ if !*greeted => replies.refuse(&frame.header, Code::INVALID_PARAMS, "say hello first"),
                message::DESCRIBE => self.describe(&frame, replies),
                method => {
                    let text = format_args!("method {} is not one that nodes answer", method.0);
                    replies.refuse(&frame.header, Code::NOT_IMPLEMENTED, text);
                }
            }
        }
    }

    fn closed(&self, _now: Instant, _greeted: &mut bool) {}
}

impl<R: Runtime> NodeService<R> {
    fn hello(&self, frame: &Frame<'_>, replies: &mut Replies<'_>) -> bool {
        let hello: Hello<'_> = match codec::whole(frame.body) {
            Ok(hello) => hello,
            Err(error) => {
                replies.refuse(&frame.header, Code::INVALID_PARAMS, error);
                return false;
            }
        };
        let (oldest, newest) = PROTOCOL;
        if hello.newest < oldest || hello.oldest > newest {
            replies.refuse(
                &frame.header,
                Code::INVALID_VERSION,
                "no protocol in common; update the older side",
            );
            return false;
        }
        if hello.expected != Incarnation::default() && hello.expected != self.incarnation {
            replies.refuse(&frame.header, Code::CLIENT_NOT_FOUND, "this node has been restarted since");
            return false;
        }
        let incarnation = self.incarnation;
        let protocol = newest.min(hello.newest);
        let welcome = Welcome { protocol, cluster: 0, incarnation, term: Term::default(), mode: Mode::Pool };
        replies.reply(&frame.header, Code::OK, |body| codec::put(body, &welcome));
        true
    }

    fn describe(&self, frame: &Frame<'_>, replies: &mut Replies<'_>) {
        let segment: SegmentId = match codec::whole(frame.body) {
            Ok(segment) => segment,
            Err(error) => return replies.refuse(&frame.header, Code::INVALID_PARAMS, error),
        };
        let Some(cards) = self.segments.cards(segment) else {
            let text = format_args!("segment {segment} is not served here (any more)");
            return replies.refuse(&frame.header, Code::SEGMENT_NOT_FOUND, text);
        };
        replies.reply(&frame.header, Code::OK, |body| {
            codec::put(body, &());
            for card in &cards {
                let (address, description) = (&card.address[..], &card.description[..]);
                codec::put(body, &Card { transport: &card.transport, address, description });
            }
        });
    }
}
