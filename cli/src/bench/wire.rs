//! Calls over a blocking socket: a generator that costs the machine less than what it loads.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::TcpStream;

use springtide_core::error::Code;
use springtide_core::id::Incarnation;
use springtide_core::key::DEFAULT_TENANT;
use springtide_core::wire::codec::{self, Malformed};
use springtide_core::wire::frame::{self, Frame, Header, Method};
use springtide_core::wire::message::{self, Hello, PROTOCOL, Welcome};

use crate::exit::Failure;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Room for answers that are read at once.
const READ: usize = 256 << 10;

/// One connection that has said hello.
pub(super) struct Wire {
    stream: TcpStream,
    input: Vec<u8>,
    filled: usize,
    calls: u64,
}

impl Wire {
    /// Connects to a master or node on behalf of `caller`.
    pub(super) fn connect(address: SocketAddr, caller: Incarnation) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)
            .map_err(|error| Failure::new(format_args!("cannot connect to {address}: {error}")))?;
        stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE))).map_err(broken)?;
        let mut wire = Self { stream, input: vec![0; READ], filled: 0, calls: 0 };
        let (oldest, newest) = PROTOCOL;
        let expected = Incarnation::default();
        let hello =
            Hello { oldest, newest, cluster: 0, incarnation: caller, tenant: DEFAULT_TENANT, expected };
        wire.call(
            message::HELLO,
            |body| codec::put(body, &hello),
            |body| codec::whole::<Welcome>(body).map(drop),
        )?;
        Ok(wire)
    }

    /// Appends a call to `out`; [`send`](Self::send) sends it.
    pub(super) fn encode(&mut self, out: &mut Vec<u8>, method: Method, body: impl FnOnce(&mut Vec<u8>)) {
        self.calls += 1;
        encode(out, self.calls, method, body);
    }

    /// Sends whole calls.
    pub(super) fn send(&mut self, calls: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(calls).map_err(broken)
    }

    /// Reads once, and shows every whole answer that is there to `each`, in order; one at least.
    pub(super) fn receive(
        &mut self,
        mut each: impl FnMut(&Frame<'_>) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        loop {
            let got = match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err(Failure::new("the other side closed the connection")),
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(broken(error)),
            };
            self.filled += got;
            let (mut used, mut answers) = (0, 0);
            while let Some((frame, len)) =
                frame::decode(&self.input[used..self.filled]).map_err(Failure::new)?
            {
                answered(&frame)?;
                each(&frame)?;
                used += len;
                answers += 1;
            }
            self.keep(used)?;
            if answers > 0 {
                return Ok(answers);
            }
        }
    }

    /// Moves the half frame behind `used` to the front, and makes room for the rest of it.
    fn keep(&mut self, used: usize) -> Result<(), Failure> {
        self.input.copy_within(used..self.filled, 0);
        self.filled -= used;
        let needed = frame::needed(&self.input[..self.filled]).map_err(Failure::new)?.unwrap_or(0);
        if self.input.len() < needed.max(self.filled + 1) {
            self.input.resize(needed.max(2 * self.input.len()), 0);
        }
        Ok(())
    }

    /// One call and its answer, with nothing else under way.
    pub(super) fn call<T>(
        &mut self,
        method: Method,
        body: impl FnOnce(&mut Vec<u8>),
        read: impl FnOnce(&[u8]) -> Result<T, Malformed>,
    ) -> Result<T, Failure> {
        let mut out = Vec::new();
        self.encode(&mut out, method, body);
        self.send(&out)?;
        let (mut read, mut result) = (Some(read), None);
        self.receive(|frame| {
            if let Some(read) = read.take() {
                result = Some(read(frame.body).map_err(Failure::new)?);
            }
            Ok(())
        })?;
        result.ok_or_else(|| Failure::new("an answer that nobody asked for"))
    }
}

/// Appends a call to `out`.
pub(super) fn encode(out: &mut Vec<u8>, request: u64, method: Method, body: impl FnOnce(&mut Vec<u8>)) {
    let header = Header::request(method, request, Some(PATIENCE));
    let Ok(()) = frame::encode(out, &header, |out| {
        body(out);
        Ok::<_, core::convert::Infallible>(())
    });
}

fn answered(frame: &Frame<'_>) -> Result<(), Failure> {
    match frame.header.status {
        Code::OK => Ok(()),
        code => {
            let text = String::from_utf8_lossy(frame.body);
            let name = message::name(frame.header.method);
            Err(Failure::new(format_args!("{name}: {code}: {text}")))
        }
    }
}

fn broken(error: io::Error) -> Failure {
    Failure::new(format_args!("a connection broke: {error}"))
}
