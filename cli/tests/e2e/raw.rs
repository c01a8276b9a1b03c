//! Frames by hand: what a peer may send that no client of ours does.

use core::convert::Infallible;
use core::net::SocketAddr;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use serde::{Deserialize, Serialize};
use springtide::Code;
use springtide::core::id::{Incarnation, SegmentId};
use springtide::core::wire::codec;
use springtide::core::wire::frame::{self, Header, Method};
use springtide::core::wire::message::{
    self, Card, Grant, Granted, Hello, Mode, Options, PROTOCOL, Refusal, Register, Wanted, Welcome,
};

use crate::support::PATIENCE;

/// A reply: its header and its body.
pub(crate) type Reply = (Header, Vec<u8>);

/// A connection without a client behind it.
pub(crate) struct Raw {
    stream: TcpStream,
    held: Vec<u8>,
    requests: u64,
}

impl Raw {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, held: Vec::new(), requests: 1 }
    }

    /// A connection that said hello as `life`.
    pub(crate) fn greeted(address: SocketAddr, life: Incarnation) -> Self {
        let mut raw = Self::connect(address);
        let welcome: Welcome = raw.call(message::HELLO, &hello(life)).unwrap();
        assert!(welcome.mode == Mode::Pool);
        raw
    }

    /// Sends bytes; the peer may have closed already.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        match self.stream.write_all(bytes) {
            Ok(()) => {}
            Err(error) => assert!(gone(error.kind()), "{error}"),
        }
    }

    /// Sends no more.
    pub(crate) fn end(&self) {
        // The peer may have closed already.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The next frame; `None` when the peer closed.
    pub(crate) fn receive(&mut self) -> Option<Reply> {
        loop {
            if let Some((frame, used)) = frame::decode(&self.held).unwrap() {
                let reply = (frame.header, frame.body.to_vec());
                self.held.drain(..used);
                return Some(reply);
            }
            let mut some = [0; 4_096];
            match self.stream.read(&mut some) {
                Ok(0) => return None,
                Ok(read) => self.held.extend_from_slice(&some[..read]),
                Err(error) if gone(error.kind()) => return None,
                Err(error) => panic!("neither an answer nor the end: {error}"),
            }
        }
    }

    /// Reads to the end of whatever comes: the peer closed.
    pub(crate) fn closed(&mut self) {
        let mut some = [0; 4_096];
        loop {
            match self.stream.read(&mut some) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if gone(error.kind()) => return,
                Err(error) => panic!("not closed: {error}"),
            }
        }
    }

    /// Asks with a body as it is.
    pub(crate) fn ask(&mut self, method: Method, body: &[u8]) -> Reply {
        self.requests += 1;
        let request = self.requests;
        let sent = framed(&Header::request(method, request, None), body);
        self.send(&sent);
        let reply = self.receive().expect("an answer");
        assert_eq!(reply.0.request, request);
        reply
    }

    /// Asks with a head; the answer's head, or the refusal.
    pub(crate) fn call<T: for<'a> Deserialize<'a>>(
        &mut self,
        method: Method,
        head: &impl Serialize,
    ) -> Result<T, (Code, String)> {
        let mut body = Vec::new();
        codec::put(&mut body, head);
        let (header, body) = self.ask(method, &body);
        if header.status.is_ok() { Ok(codec::whole(&body).unwrap()) } else { Err(refusal((header, body))) }
    }

    /// Registers as a member named `name` that lends nothing.
    pub(crate) fn register(&mut self, name: &str) {
        let request = Register { name, address: "", mode: Mode::Pool, fences: false };
        let mut body = Vec::new();
        codec::put(&mut body, &request);
        let (header, body) = self.ask(message::REGISTER, &body);
        assert!(header.status.is_ok(), "{}", String::from_utf8_lossy(&body));
    }

    /// Begins a put of `len` bytes and does not go on.
    pub(crate) fn put_start(&mut self, key: &[u8], len: u64) -> Result<Grant, Refusal> {
        let mut body = Vec::new();
        codec::put(&mut body, &Options::default());
        codec::put(&mut body, &Wanted { key, len });
        let (header, body) = self.ask(message::PUT_START, &body);
        assert!(header.status.is_ok(), "{}", String::from_utf8_lossy(&body));
        let (_, mut tail) = codec::split::<Granted, Result<Grant, Refusal>>(&body).unwrap();
        tail.next().unwrap().unwrap()
    }

    /// Where a node serves the bytes of `segment` over TCP.
    pub(crate) fn data_port(&mut self, segment: SegmentId) -> SocketAddr {
        let mut body = Vec::new();
        codec::put(&mut body, &segment);
        let (header, body) = self.ask(message::DESCRIBE, &body);
        assert!(header.status.is_ok(), "{}", String::from_utf8_lossy(&body));
        let ((), cards) = codec::split::<(), Card<'_>>(&body).unwrap();
        let card = cards.map(Result::unwrap).find(|card| card.transport == "tcp").unwrap();
        // Version, family 4, address, port, life.
        let [1, 4, a, b, c, d, low, high, ..] = *card.address else { panic!("{:?}", card.address) };
        SocketAddr::from(([a, b, c, d], u16::from_le_bytes([low, high])))
    }
}

/// A hello as `life`, of the default tenant.
pub(crate) fn hello(life: Incarnation) -> Hello<'static> {
    let (oldest, newest) = PROTOCOL;
    let tenant = springtide::core::key::DEFAULT_TENANT;
    Hello { oldest, newest, cluster: 0, incarnation: life, tenant, expected: Incarnation::default() }
}

/// The frame with this header and body.
pub(crate) fn framed(header: &Header, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let Ok(()) = frame::encode(&mut out, header, |out| {
        out.extend_from_slice(body);
        Ok::<_, Infallible>(())
    });
    out
}

/// What a refusal says.
pub(crate) fn refusal((header, body): Reply) -> (Code, String) {
    assert!(!header.status.is_ok(), "refused");
    (header.status, String::from_utf8(body).unwrap())
}

fn gone(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted)
}
