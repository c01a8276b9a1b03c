//! The owner's end of a connection: a peer asks us to store its bytes into our segments, and we pull them.

use std::os::fd::OwnedFd;

use springtide_core::id::RegionId;
use springtide_hal::Span;
use springtide_hal_host::map::View;
use springtide_hal_host::process::ProcessError;
use springtide_hal_host::ring::Flag;
use springtide_transport::DownReason;

use crate::entry::{NO_TARGET, Outcome, REQUESTS, Reply, Request, SLOTS, Source};
use crate::flight::Meter;
use crate::link::Link;
use crate::message::{Message, VERSION};
use crate::region::Regions;
use crate::socket::Received;

/// Most files that one peer may have us hold mapped as sources of its writes.
const SOURCES: usize = 1_024;

/// Most messages of one peer that are heard at once.
const MESSAGES: usize = 4_096;

/// Memory of the peer, mapped here, that its writes come from.
#[derive(Debug)]
struct Origin {
    /// The peer's region, as bits.
    region: u64,
    view: View,
    offset: u64,
    len: u64,
}

/// What a guest talks to: the transport's other parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) life: u128,
    pub(crate) epoll: &'a OwnedFd,
    pub(crate) regions: &'a Regions,
}

/// One peer that opened a path to us.
#[derive(Debug)]
pub(crate) struct Guest {
    link: Link,
    origins: Vec<Origin>,
    /// The number of the next request.
    next: u64,
    /// The request under way and how many of its bytes are stored.
    current: Option<(Request, u32)>,
    /// Our regions that the peer was shown.
    shown: Vec<RegionId>,
}

impl Guest {
    pub(crate) const fn new(link: Link) -> Self {
        Self { link, origins: Vec::new(), next: 0, current: None, shown: Vec::new() }
    }

    /// Whether it has introduced itself.
    pub(crate) const fn is_known(&self) -> bool {
        self.link.peer.is_some()
    }

    pub(crate) const fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    /// Whether [`turn`](Self::turn) would find something to do.
    pub(crate) fn has_work(&self) -> bool {
        let news = self.link.peer.as_ref().is_some_and(|peer| peer.board.published() != self.next);
        news || self.current.is_some()
    }

    /// Tells the peer that `region` is gone, before it uses it again.
    pub(crate) fn withdraw(&mut self, epoll: &OwnedFd, region: RegionId) -> Result<(), DownReason> {
        let Some(at) = self.shown.iter().position(|&shown| shown == region) else { return Ok(()) };
        self.shown.swap_remove(at);
        self.link.tell(epoll, Message::Missing { region: region.to_bits() }, None)?;
        if self.link.is_backed_up() {
            // It would go on reading what is no longer there to be read.
            return Err(DownReason::Silent);
        }
        self.link.changed();
        Ok(())
    }

    /// Reads what the peer says.
    pub(crate) fn listen(&mut self, owner: Owner<'_>) -> Result<(), DownReason> {
        // More than a socket holds: all that was said before this call is heard, and no peer keeps us here.
        for _ in 0..MESSAGES {
            match self.link.receive() {
                Received::Message(message, files) => self.hear(owner, message, files)?,
                Received::Nothing => break,
                Received::Garbage => return Err(DownReason::Protocol),
                Received::End => return Err(DownReason::PeerGone),
            }
        }
        Ok(())
    }

    fn hear(
        &mut self,
        owner: Owner<'_>,
        message: Message,
        files: [Option<OwnedFd>; 2],
    ) -> Result<(), DownReason> {
        match message {
            Message::Hello { version, to } if !self.is_known() => {
                if version != VERSION || to != owner.life {
                    self.link.introduce(&Message::Refuse { version: VERSION })?;
                    return Err(DownReason::Protocol);
                }
                self.link.meet(files, REQUESTS)?;
                self.link.introduce(&Message::Welcome)
            }
            Message::Want { region } if self.is_known() => self.show(owner, region),
            Message::Source { region, offset, len } if self.is_known() => {
                self.hold(region, offset, len, files)
            }
            Message::Drop { region } if self.is_known() => {
                self.origins.retain(|origin| origin.region != region);
                Ok(())
            }
            _ => Err(DownReason::Protocol),
        }
    }

    /// Says where our segment `region` is.
    fn show(&mut self, owner: Owner<'_>, region: u64) -> Result<(), DownReason> {
        let found = RegionId::from_bits(region).and_then(|id| Some((id, owner.regions.get(id)?)));
        let segment = found.and_then(|(id, there)| Some((id, there.as_segment(id)?, there.shared())));
        let Some((id, message, file)) = segment else {
            return self.link.tell(owner.epoll, Message::Missing { region }, None);
        };
        if !self.shown.contains(&id) {
            self.shown.push(id);
        }
        self.link.tell(owner.epoll, message, file)
    }

    /// Maps a file that the peer's writes may come from. One that cannot be mapped safely is left out: requests that name
    /// it are answered `Unreadable`.
    fn hold(
        &mut self,
        region: u64,
        offset: u64,
        len: u64,
        files: [Option<OwnedFd>; 2],
    ) -> Result<(), DownReason> {
        let [Some(file), _] = files else { return Err(DownReason::Protocol) };
        let end = offset.checked_add(len).ok_or(DownReason::Protocol)?;
        if self.origins.len() >= SOURCES || self.origins.iter().any(|origin| origin.region == region) {
            return Err(DownReason::Protocol);
        }
        if let Ok(view) = View::map(file, end) {
            self.origins.push(Origin { region, view, offset, len });
        }
        Ok(())
    }

    /// Serves the peer, a step's worth at most; says whether there was anything to do.
    pub(crate) fn turn(&mut self, owner: Owner<'_>, meter: &mut Meter) -> Result<bool, DownReason> {
        let Some(peer) = &self.link.peer else { return Ok(false) };
        let news = peer.board.published().wrapping_sub(self.next);
        if news > u64::from(SLOTS) {
            return Err(DownReason::Protocol);
        }
        if news == 0 && self.current.is_none() {
            return Ok(false);
        }
        // Either the peer sees that we are busy and waits, or we see that it wants nothing any more.
        self.link.board.set(Flag::Busy, 1);
        let closed = peer.board.flag(Flag::Closed) != 0;
        let mut turn = meter.turn();
        let result = if closed { Err(DownReason::PeerGone) } else { self.serve(owner, news, &mut turn) };
        meter.give_back(turn);
        self.link.publish();
        self.link.board.set(Flag::Busy, 0);
        result.map(|()| true)
    }

    fn serve(&mut self, owner: Owner<'_>, mut news: u64, meter: &mut Meter) -> Result<(), DownReason> {
        while !meter.is_spent() {
            let (request, stored) = match self.current.take() {
                Some(current) => current,
                None if news == 0 => break,
                None => (self.read_request()?, 0),
            };
            match self.step(owner, &request, stored, meter)? {
                Progress::Stored(stored) => self.current = Some((request, stored)),
                Progress::Ended(outcome, bytes, code) => {
                    let reply = Reply { number: request.number, outcome, bytes, code };
                    self.link.board.push(&reply.encode());
                    self.next = self.next.wrapping_add(1);
                    news = news.saturating_sub(1);
                    meter.ended();
                }
            }
        }
        Ok(())
    }

    fn read_request(&self) -> Result<Request, DownReason> {
        let peer = self.link.peer.as_ref().ok_or(DownReason::Protocol)?;
        let request = Request::decode(&peer.board.entry(self.next)).ok_or(DownReason::Protocol)?;
        if request.number == self.next { Ok(request) } else { Err(DownReason::Protocol) }
    }

    /// Stores the next bytes of `request`, as many as fit into `meter`, if its ticket allows it now.
    fn step(
        &mut self,
        owner: Owner<'_>,
        request: &Request,
        stored: u32,
        meter: &mut Meter,
    ) -> Result<Progress, DownReason> {
        let left = u64::from(request.len - stored);
        let ended = |outcome, code| {
            let outcome = if stored > 0 { Outcome::Short } else { outcome };
            Ok(Progress::Ended(outcome, stored, code))
        };
        let region = RegionId::from_bits(request.target).and_then(|id| owner.regions.get(id));
        let Some((region, at)) = region.zip(request.to.checked_add(stored.into())) else {
            return ended(Outcome::Refused, NO_TARGET);
        };
        // All that is left, not only this step: no byte of a write that reaches too far is stored.
        let target = match region.store(&request.ticket, at, left) {
            Ok(target) => target.take(meter.fit(left)),
            Err(refusal) => return ended(Outcome::Refused, refusal.code()),
        };
        let bytes = match self.pull(owner, request.source, stored.into(), target)? {
            Some(bytes) if bytes > 0 || left == 0 => bytes as u32,
            _ => return ended(Outcome::Unreadable, 0),
        };
        meter.moved(bytes.into());
        let stored = stored + bytes;
        Ok(if stored == request.len {
            Progress::Ended(Outcome::Done, stored, 0)
        } else {
            Progress::Stored(stored)
        })
    }

    /// Copies the bytes from `skip` on of `source` into `target`; says how many, or `None` if they cannot be read.
    fn pull(
        &mut self,
        owner: Owner<'_>,
        source: Source,
        skip: u64,
        target: Span<'_>,
    ) -> Result<Option<u64>, DownReason> {
        let peer = self.link.peer.as_ref().ok_or(DownReason::Protocol)?;
        let whole = target.len();
        Ok(match source {
            Source::Board { at } => {
                at.checked_add(skip).and_then(|at| peer.board.copy_bulk(at, target).ok()).map(|()| whole)
            }
            Source::Memory { address } => match self.link.process.read(address.wrapping_add(skip), target) {
                Ok(bytes) => Some(bytes),
                Err(ProcessError::Gone) => return Err(DownReason::PeerGone),
                Err(_) => None,
            },
            Source::Region { region, at } => {
                if !self.origins.iter().any(|origin| origin.region == region) {
                    // Its file was sent before the request was shown, so it is in the socket if it is anywhere.
                    self.listen(owner)?;
                }
                let origin = self.origins.iter().find(|origin| origin.region == region);
                origin.and_then(|origin| {
                    let from = at.checked_add(skip)?;
                    let end = from.checked_add(whole)?;
                    let inside = end <= origin.len;
                    (inside && origin.view.copy_to(origin.offset + from, target).is_ok()).then_some(whole)
                })
            }
        })
    }
}

/// How far a request is.
enum Progress {
    /// So many bytes are stored, and there are more.
    Stored(u32),
    /// It is over: how, how many bytes are stored, and the code.
    Ended(Outcome, u32, i32),
}
