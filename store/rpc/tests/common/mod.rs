//! A small service and a server on a free port, for every test of this package.
#![allow(dead_code, reason = "no test uses all of it")]

use core::net::SocketAddr;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use springtide_core::error::Code;
use springtide_core::time::Instant;
use springtide_core::wire::frame::{self, Header, Kind, Method};
use springtide_driver::{Runtime, Shutdown, now};
use springtide_rpc::{ClientConfig, Frames, Listener, Parked, Remote, Replies, ServerConfig, Service, serve};
use springtide_tokio::Tokio;

pub(crate) const ECHO: Method = Method(1);
/// Parked until a `RELEASE`.
pub(crate) const PARK: Method = Method(2);
/// Answers everything that is parked with its own body.
pub(crate) const RELEASE: Method = Method(3);
/// Answers as many bytes as the number in the body.
pub(crate) const FILL: Method = Method(4);
/// Parked, and dropped at once.
pub(crate) const DROP: Method = Method(5);
/// Never answered, never parked: the service's bug.
pub(crate) const SWALLOW: Method = Method(6);

#[derive(Default)]
pub(crate) struct Echo {
    pub(crate) batches: AtomicUsize,
    pub(crate) frames: AtomicUsize,
    pub(crate) closed: AtomicUsize,
    pub(crate) parked: Mutex<Vec<Parked>>,
}

impl Service for Echo {
    type Peer = usize;

    fn handle(&self, _now: Instant, peer: &mut usize, frames: Frames<'_>, replies: &mut Replies<'_>) {
        self.batches.fetch_add(1, Ordering::SeqCst);
        for frame in frames {
            *peer += 1;
            self.frames.fetch_add(1, Ordering::SeqCst);
            match frame.header.method {
                ECHO => replies.reply(&frame.header, Code::OK, |out| out.extend_from_slice(frame.body)),
                PARK => match replies.park(&frame.header) {
                    Ok(parked) => self.parked.lock().unwrap().push(parked),
                    Err(full) => replies.refuse(&frame.header, full.code(), full),
                },
                RELEASE => {
                    for parked in self.parked.lock().unwrap().drain(..) {
                        parked.reply(Code::OK, |out| out.extend_from_slice(frame.body));
                    }
                    replies.reply(&frame.header, Code::OK, |_| {});
                }
                FILL => {
                    let len = u32::from_le_bytes(frame.body.try_into().unwrap()) as usize;
                    replies.reply(&frame.header, Code::OK, |out| out.resize(out.len() + len, 7));
                }
                DROP => drop(replies.park(&frame.header)),
                SWALLOW => {}
                _ => replies.refuse(&frame.header, Code::NOT_SUPPORTED, "no such method; update the server"),
            }
        }
    }

    fn closed(&self, _now: Instant, _peer: &mut usize) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

/// A server on a thread of its own; ends, with all its connections, when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) service: Arc<Echo>,
    shutdown: Shutdown,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(config: ServerConfig) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), config)
    }

    pub(crate) fn start_at(address: SocketAddr, config: ServerConfig) -> Self {
        let listener = Listener::bind_with(address, config).unwrap();
        let address = listener.local_addr().unwrap();
        let (service, shutdown) = (Arc::new(Echo::default()), Shutdown::new());
        let (serving, ending) = (Arc::clone(&service), shutdown.clone());
        let thread = std::thread::spawn(move || {
            let tokio = Tokio::new_single().unwrap();
            tokio.block_on(serve(tokio.clone(), listener, serving, ending)).unwrap();
        });
        Self { address, service, shutdown, thread: Some(thread) }
    }

    pub(crate) fn remote(&self) -> Remote {
        self.remote_with(ClientConfig::default())
    }

    pub(crate) fn remote_with(&self, config: ClientConfig) -> Remote {
        Remote::new(vec![self.address], config, None).unwrap()
    }

    /// A plain socket to the server; reads give up after ten seconds.
    pub(crate) fn plain(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    /// Whether the server still answers.
    pub(crate) fn is_alive(&self) -> bool {
        let ask = springtide_rpc::Ask::new(ECHO, soon());
        self.remote().ask_blocking(ask, |out| out.push(1)).is_ok_and(|reply| reply.body == [1])
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.begin();
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A deadline that only a broken test reaches.
pub(crate) fn soon() -> Instant {
    now() + Duration::from_secs(20)
}

/// A request as bytes.
pub(crate) fn request(method: Method, id: u64, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode(&mut out, &Header::request(method, id, None), |out| {
        out.extend_from_slice(body);
        Ok::<_, ()>(())
    })
    .unwrap();
    out
}

/// All bytes until the peer closes, and the frames in them.
pub(crate) fn read_to_end(stream: &mut TcpStream) -> io::Result<Vec<(Header, Vec<u8>)>> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let (mut rest, mut frames) = (&bytes[..], Vec::new());
    while let Some((frame, used)) = frame::decode(rest).unwrap() {
        assert_eq!(frame.header.kind, Kind::Reply);
        frames.push((frame.header, frame.body.to_vec()));
        rest = &rest[used..];
    }
    assert!(rest.is_empty());
    Ok(frames)
}

/// Writes as much as the peer takes; a peer that closed in the meantime is no error.
pub(crate) fn write_until_closed(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
}
