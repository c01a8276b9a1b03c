//! What a node answers, without its sockets: who it is, and how to reach its segments.

use springtide_core::error::Code;
use springtide_core::id::{Incarnation, SegmentId, Term};
use springtide_core::wire::codec;
use springtide_core::wire::frame::Frame;
use springtide_core::wire::message::{self, Card, Hello, Mode, PROTOCOL, Welcome};
use springtide_rpc::Replies;

/// Answers the requests of a node's peers.
#[derive(Clone, Copy, Debug)]
pub struct Desk {
    /// This life of the node.
    pub incarnation: Incarnation,
}

/// Whether a peer has said hello.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Greeted {
    /// It has not: nothing else is answered.
    #[default]
    No,
    /// It has.
    Yes,
}

/// How to reach one segment over one transport, as a lane gives it out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way<'a> {
    /// The transport's name.
    pub transport: &'a str,
    /// Where to open a path.
    pub address: &'a [u8],
    /// The segment, as that transport describes it.
    pub description: &'a [u8],
}

impl Desk {
    /// Answers one request, exactly once. `ways` names the ways to a segment to its second argument, and says whether
    /// the segment is served.
    pub fn handle(
        &self,
        greeted: &mut Greeted,
        frame: &Frame<'_>,
        replies: &mut Replies<'_>,
        ways: impl FnOnce(SegmentId, &mut dyn FnMut(Way<'_>)) -> Served,
    ) {
        match frame.header.method {
            message::HELLO => self.hello(greeted, frame, replies),
            _ if *greeted == Greeted::No => {
                replies.refuse(&frame.header, Code::INVALID_PARAMS, "say hello first");
            }
            message::DESCRIBE => describe(frame, replies, ways),
            method => {
                let text = format_args!("method {} is not one that nodes answer", method.0);
                replies.refuse(&frame.header, Code::NOT_IMPLEMENTED, text);
            }
        }
    }

    fn hello(&self, greeted: &mut Greeted, frame: &Frame<'_>, replies: &mut Replies<'_>) {
        let hello: Hello<'_> = match codec::whole(frame.body) {
            Ok(hello) => hello,
            Err(error) => return replies.refuse(&frame.header, Code::INVALID_PARAMS, error),
        };
        let (oldest, newest) = PROTOCOL;
        if hello.newest < oldest || hello.oldest > newest {
            let text = "no protocol in common; update the older side";
            return replies.refuse(&frame.header, Code::INVALID_VERSION, text);
        }
        let incarnation = self.incarnation;
        if hello.expected != Incarnation::default() && hello.expected != incarnation {
            let text = "this node has been restarted since";
            return replies.refuse(&frame.header, Code::CLIENT_NOT_FOUND, text);
        }
        let protocol = newest.min(hello.newest);
        let welcome = Welcome { protocol, cluster: 0, incarnation, term: Term::default(), mode: Mode::Pool };
        replies.reply(&frame.header, Code::OK, |body| codec::put(body, &welcome));
        *greeted = Greeted::Yes;
    }
}

/// Whether a segment is served here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Served {
    /// It is; its ways were named.
    Yes,
    /// It is not, or not any more.
    No,
}

fn describe(
    frame: &Frame<'_>,
    replies: &mut Replies<'_>,
    ways: impl FnOnce(SegmentId, &mut dyn FnMut(Way<'_>)) -> Served,
) {
    let segment: SegmentId = match codec::whole(frame.body) {
        Ok(segment) => segment,
        Err(error) => return replies.refuse(&frame.header, Code::INVALID_PARAMS, error),
    };
    let mut cards = Vec::new();
    let served = ways(segment, &mut |Way { transport, address, description }| {
        codec::put(&mut cards, &Card { transport, address, description });
    });
    if served == Served::No {
        let text = format_args!("segment {segment} is not served here (any more)");
        return replies.refuse(&frame.header, Code::SEGMENT_NOT_FOUND, text);
    }
    replies.reply(&frame.header, Code::OK, |body| {
        codec::put(body, &());
        body.extend_from_slice(&cards);
    });
}
