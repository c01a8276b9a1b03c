//! A wire that loses what it is told to: it stands between a member and its master, and knows frames.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use springtide::core::wire::frame::{self, Kind, Method};

/// What is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lost {
    /// The request: the master never hears it.
    Request,
    /// The answer: the master did what was asked.
    Answer,
}

/// A wire to a master. Where a loss is due the connection ends, as when a machine between the two goes.
pub(crate) struct Proxy {
    address: SocketAddr,
    plan: Arc<Plan>,
}

#[derive(Default)]
struct Plan {
    next: Mutex<Option<(Method, Lost)>>,
    held: Mutex<Option<Method>>,
    lost: AtomicU64,
}

impl Plan {
    /// Whether this frame is the one to lose; it is lost once.
    fn takes(&self, method: Method, lost: Lost) -> bool {
        let mut next = self.next.lock().unwrap();
        let due = *next == Some((method, lost));
        if due {
            *next = None;
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        due
    }

    /// Whether the answer to this request is to be lost.
    fn wants_answer_of(&self, method: Method) -> bool {
        *self.next.lock().unwrap() == Some((method, Lost::Answer))
    }
}

impl Proxy {
    pub(crate) fn new(master: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let plan = Arc::new(Plan::default());
        let planned = Arc::clone(&plan);
        // Ends with the process.
        thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                let Ok(master) = TcpStream::connect(master) else { continue };
                carry(&caller, &master, &planned);
            }
        });
        Self { address, plan }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Loses the next request of `method`, or the answer to it.
    pub(crate) fn lose(&self, method: Method, lost: Lost) {
        *self.plan.next.lock().unwrap() = Some((method, lost));
    }

    /// From now on requests of this method vanish, and nobody notices but by the silence.
    pub(crate) fn hold(&self, method: Option<Method>) {
        *self.plan.held.lock().unwrap() = method;
    }

    /// How many were lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.plan.lost.load(Ordering::Relaxed)
    }
}

fn carry(caller: &TcpStream, master: &TcpStream, plan: &Arc<Plan>) {
    let watched = Arc::new(Mutex::new(BTreeSet::new()));
    for (from, to, direction) in [(caller, master, Kind::Request), (master, caller, Kind::Reply)] {
        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        let (plan, watched) = (Arc::clone(plan), Arc::clone(&watched));
        thread::spawn(move || {
            pass(&from, &to, |header| match direction {
                Kind::Reply
                    if watched.lock().unwrap().contains(&header.request)
                        && plan.takes(header.method, Lost::Answer) =>
                {
                    Fate::Cut
                }
                Kind::Reply => Fate::Pass,
                Kind::Request if plan.takes(header.method, Lost::Request) => Fate::Cut,
                Kind::Request if *plan.held.lock().unwrap() == Some(header.method) => Fate::Vanish,
                Kind::Request => {
                    if plan.wants_answer_of(header.method) {
                        watched.lock().unwrap().insert(header.request);
                    }
                    Fate::Pass
                }
            });
            // Both ends notice; they may be closed already.
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
    }
}

/// What becomes of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Pass,
    Vanish,
    /// It vanishes, and the connection ends.
    Cut,
}

/// Passes whole frames on until the connection is to end, or either side goes.
fn pass(mut from: &TcpStream, mut to: &TcpStream, mut fate: impl FnMut(&frame::Header) -> Fate) {
    let (mut held, mut some) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(read @ 1..) = from.read(&mut some) {
        held.extend_from_slice(&some[..read]);
        while let Ok(Some((frame, used))) = frame::decode(&held) {
            let fate = fate(&frame.header);
            if fate == Fate::Cut || fate == Fate::Pass && to.write_all(&held[..used]).is_err() {
                return;
            }
            held.drain(..used);
        }
    }
}
