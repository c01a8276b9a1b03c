//! Connections, and the frames that are on their way.

use core::time::Duration;

use springtide_core::time::Instant;
use springtide_master::Peer;
use springtide_node::Greeted;

use crate::env::Env;
use crate::queue::{Event, Pid};

/// One connection; its number is never used again.
#[derive(Clone, Copy, Debug)]
pub struct Conn {
    /// Who made it, and in which of its lives.
    pub caller: (Pid, u32),
    /// Who serves it, and in which of its lives.
    pub server: (Pid, u32),
    /// Whether both ends stand.
    pub open: bool,
    /// What a master remembers of the caller.
    pub peer: Peer,
    /// What a node remembers of the caller.
    pub greeted: Greeted,
}

/// Which way a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the caller to the server.
    Up,
    /// From the server to the caller.
    Down,
}

/// A frame on its way.
#[derive(Debug, Default)]
pub struct Parcel {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// On which connection.
    pub conn: u32,
    /// Which way.
    pub way: Option<Way>,
    /// How often it still arrives.
    copies: u8,
}

/// All connections and frames.
#[derive(Debug, Default)]
pub struct Net {
    /// The connections, by number.
    pub conns: Vec<Conn>,
    parcels: Vec<Parcel>,
    vacant: Vec<u32>,
}

impl Net {
    /// The bytes of a frame that arrives, for the moment; [`put_back`](Self::put_back) follows.
    pub fn take(&mut self, parcel: u32) -> Parcel {
        core::mem::take(&mut self.parcels[parcel as usize])
    }

    /// A frame waits for whom it is for.
    pub fn keep(&mut self, number: u32, parcel: Parcel) {
        self.parcels[number as usize] = parcel;
    }

    /// A frame was handled.
    pub fn put_back(&mut self, number: u32, mut parcel: Parcel) {
        parcel.copies -= 1;
        if parcel.copies == 0 {
            parcel.bytes.clear();
            self.vacant.push(number);
        }
        self.parcels[number as usize] = parcel;
    }

    fn store(&mut self, conn: u32, way: Way, bytes: &[u8], copies: u8) -> u32 {
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.parcels.push(Parcel::default());
            self.parcels.len() as u32 - 1
        });
        let parcel = &mut self.parcels[number as usize];
        parcel.bytes.extend_from_slice(bytes);
        (parcel.conn, parcel.way, parcel.copies) = (conn, Some(way), copies);
        number
    }

    /// Every connection of a process that died is gone; gives back those whose other end has to learn of it.
    pub fn lose(&mut self, pid: Pid) -> impl Iterator<Item = (u32, Pid)> + '_ {
        let gone = move |conn: &mut Conn| {
            let ours = conn.open && (conn.caller.0 == pid || conn.server.0 == pid);
            conn.open &= !ours;
            ours && conn.caller.0 != pid
        };
        let all = self.conns.iter_mut().enumerate();
        all.filter_map(move |(number, conn)| gone(conn).then_some((number as u32, conn.caller.0)))
    }
}

/// How far behind the first a copy comes at most, in nanoseconds: less than an answer takes.
const BEHIND: u64 = 20_000;

impl Env {
    /// A connection from `caller` to `server`.
    pub fn connect(&mut self, caller: Pid, server: Pid) -> u32 {
        let life = |pid: Pid| (pid, self.lives[pid.index()].life);
        let conn = Conn {
            caller: life(caller),
            server: life(server),
            open: self.lives[server.index()].alive,
            peer: Peer::default(),
            greeted: Greeted::No,
        };
        self.net.conns.push(conn);
        self.net.conns.len() as u32 - 1
    }

    /// Sends a frame. Whether and when it arrives is for the weather to say.
    pub fn send(&mut self, number: u32, way: Way, bytes: &[u8]) {
        let conn = self.net.conns[number as usize];
        let (from, to) = match way {
            Way::Up => (conn.caller.0, conn.server.0),
            Way::Down => (conn.server.0, conn.caller.0),
        };
        if self.weather.cut(from, to) > self.now || self.happens(self.weather.lose) {
            return;
        }
        if !conn.open {
            // The other end's system answers that there is nobody.
            if way == Way::Up && self.weather.cut(to, from) <= self.now {
                let at = self.now + self.flight_time();
                self.queue.push(at, Event::Closed(number));
            }
            return;
        }
        let copies = if self.happens(self.weather.repeat) { 2 } else { 1 };
        let parcel = self.net.store(number, way, bytes, copies);
        // A copy comes close behind: no connection gives out what it gave out long ago.
        let mut at = self.now + self.flight_time();
        for _ in 0..copies {
            self.queue.push(at, Event::Frame(parcel));
            at += Duration::from_nanos(1 + self.rng.below(BEHIND));
        }
    }

    /// How long a frame takes.
    pub fn flight_time(&mut self) -> Duration {
        let usual = 20_000 + self.rng.below(60_000);
        let (most, until) = self.weather.slow;
        let more = if until > self.now { self.rng.below(most.as_nanos() as u64) } else { 0 };
        Duration::from_nanos(usual + more)
    }

    fn happens(&mut self, (share, until): (u32, Instant)) -> bool {
        until > self.now && self.rng.below(1_000) < u64::from(share)
    }
}
