//! One connection of a server.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::net::{Shutdown as Half, shutdown};
use springtide_core::error::Code;
use springtide_core::time::Instant;
use springtide_core::wire::frame::{FrameError, Header, Method};
use springtide_driver::{Alarm, Begun, Interest, Pause, Ready, Runtime, Step};

use super::guests::Guest;
use super::replies::{Late, Replies};
use super::service::{BadFrame, Frames, Service};
use super::{ServerConfig, replies};
use crate::stream::{Flushed, Inbox, Outbox};

/// How often a connection reads before it lets others run.
const ROUNDS: usize = 8;

/// The task of one connection: reads what is there, hands all whole frames to the service at once, and sends all
/// replies with one write.
pub(super) struct Session<R: Runtime, S: Service> {
    link: Link<R>,
    desk: Desk<S>,
    alarm: Alarm<R>,
    begun: Begun,
    _guest: Guest,
}

/// The socket's side.
struct Link<R: Runtime> {
    runtime: R,
    ready: R::Ready,
    config: ServerConfig,
    outbox: Outbox,
    /// Whether the socket took no more when it was last asked.
    blocked: bool,
    phase: Phase,
    /// When bytes last moved.
    moved: Instant,
    pause: Pause,
}

/// The service's side.
struct Desk<S: Service> {
    service: Arc<S>,
    peer: S::Peer,
    inbox: Inbox,
    late: Arc<Late>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Requests are read.
    Open,
    /// No more; parked requests and waiting replies may still go out until then.
    Last(Instant),
    /// The peer sends no more: only what waits goes out.
    HalfClosed(Instant),
    /// Everything went out; what the peer still sends is thrown away, as closing on unread bytes would destroy
    /// replies that it has not read yet.
    Drain(Instant),
}

/// What a read left in the socket.
enum Left {
    /// It took all there was.
    Nothing,
    /// It may have left something, or what it took ends the connection.
    Perhaps,
}

/// What to do after a step.
enum Turn {
    Again,
    /// Come back soon without sleeping.
    Soon,
    Sleep,
    End,
}

impl<R: Runtime, S: Service> Session<R, S> {
    pub(super) fn new(
        runtime: R,
        ready: R::Ready,
        service: Arc<S>,
        config: ServerConfig,
        begun: Begun,
        guest: Guest,
    ) -> Self {
        let desk = Desk {
            service,
            peer: S::Peer::default(),
            inbox: Inbox::default(),
            late: Late::new(config.parked),
        };
        let link = Link {
            ready,
            config,
            outbox: Outbox::default(),
            blocked: false,
            phase: Phase::Open,
            moved: runtime.now(),
            pause: config.pause,
            runtime: runtime.clone(),
        };
        Self { link, desk, alarm: Alarm::new(runtime), begun, _guest: guest }
    }
}

// Nothing in it is pinned.
impl<R: Runtime, S: Service> Unpin for Session<R, S> {}

impl<R: Runtime, S: Service> Future for Session<R, S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { link, desk, alarm, begun, .. } = &mut *self;
        if link.phase == Phase::Open && Pin::new(begun).poll(cx).is_ready() {
            link.phase = Phase::Last(link.runtime.now() + link.config.grace);
        }
        for _ in 0..ROUNDS {
            match link.step(desk, cx).unwrap_or(Turn::End) {
                Turn::End => return Poll::Ready(()),
                Turn::Again => continue,
                Turn::Soon => break,
                Turn::Sleep => {}
            }
            let until = link.until(desk);
            if alarm.poll(cx, until).is_pending() {
                return Poll::Pending;
            }
            if until.reached(link.runtime.now()) {
                link.tell_end();
                return Poll::Ready(());
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<R: Runtime> Link<R> {
    fn step<S: Service>(&mut self, desk: &mut Desk<S>, cx: &mut Context<'_>) -> io::Result<Turn> {
        let now = self.runtime.now();
        let parked = desk.late.collect(self.outbox.bytes(), cx.waker());
        self.flush(now, cx)?;
        match self.phase {
            Phase::Open if self.outbox.waiting() > self.config.waiting => Ok(Turn::Sleep),
            Phase::Open => self.read(now, desk, cx),
            Phase::Last(until) if parked == 0 && self.outbox.waiting() == 0 => {
                shutdown(&self.ready, Half::Write)?;
                self.phase = Phase::Drain(until);
                Ok(Turn::Again)
            }
            Phase::HalfClosed(_) if self.outbox.waiting() == 0 => Ok(Turn::End),
            Phase::Last(_) | Phase::HalfClosed(_) => Ok(Turn::Sleep),
            Phase::Drain(_) => self.drain(cx),
        }
    }

    fn flush(&mut self, now: Instant, cx: &mut Context<'_>) -> io::Result<()> {
        if self.outbox.waiting() == 0 {
            return Ok(());
        }
        if !self.blocked {
            self.sent(now, |outbox, fd| outbox.flush(fd))?;
        }
        while self.blocked {
            let Self { ready, outbox, .. } = self;
            // The first look that the socket has room for is the write itself.
            let polled = ready.poll_io(cx, Interest::Write, |fd| match outbox.flush(fd)? {
                (0, Flushed::Blocked) => Err(io::ErrorKind::WouldBlock.into()),
                flushed => Ok(flushed),
            });
            let Poll::Ready(flushed) = polled else { break };
            let flushed = flushed?;
            self.sent(now, |_, _| Ok(flushed))?;
        }
        Ok(())
    }

    fn sent(
        &mut self,
        now: Instant,
        flush: impl FnOnce(&mut Outbox, BorrowedFd<'_>) -> io::Result<(usize, Flushed)>,
    ) -> io::Result<()> {
        let (sent, flushed) = flush(&mut self.outbox, self.ready.as_fd())?;
        self.blocked = flushed == Flushed::Blocked;
        if sent > 0 {
            self.moved = now;
        }
        Ok(())
    }

    fn read<S: Service>(
        &mut self,
        now: Instant,
        desk: &mut Desk<S>,
        cx: &mut Context<'_>,
    ) -> io::Result<Turn> {
        let Self { ready, outbox, config, .. } = self;
        let mut bad = None;
        let mut once = |fd: BorrowedFd<'_>| desk.read(now, fd, config.read, outbox, &mut bad);
        // A read that took all there was is the runtime's cue to wait for more: it saves the read that finds nothing.
        let mut last = None;
        // While it spins it asks the socket, not the runtime; the runtime is asked once it is to wake this task.
        let read = if self.pause.check(now) == Step::Again {
            match once(ready.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Turn::Soon),
                read => read?.0,
            }
        } else {
            let polled = ready.poll_io(cx, Interest::Read, |fd| match once(fd)? {
                (read @ 1.., Left::Nothing) => {
                    last = Some(read);
                    Err(io::ErrorKind::WouldBlock.into())
                }
                (read, _) => Ok(read),
            });
            match (polled, last) {
                (Poll::Ready(read), _) => read?,
                (Poll::Pending, Some(read)) => read,
                (Poll::Pending, None) => return Ok(Turn::Sleep),
            }
        };
        self.moved = now;
        self.pause.found(now);
        if read == 0 {
            desk.inbox.clear();
            self.phase = Phase::HalfClosed(now + self.config.grace);
        } else if let Some(bad) = bad {
            tracing::debug!(%bad, "a connection is closed");
            refuse_all(self.outbox.bytes(), bad);
            self.phase = Phase::Last(now + self.config.grace);
        }
        Ok(Turn::Again)
    }

    fn drain(&mut self, cx: &mut Context<'_>) -> io::Result<Turn> {
        let mut inbox = Inbox::default();
        let thrown = self.ready.poll_io(cx, Interest::Read, |fd| inbox.read(fd, 16 << 10, <[u8]>::len));
        match thrown {
            Poll::Ready(Ok(0)) => Ok(Turn::End),
            Poll::Ready(result) => result.map(|_| Turn::Again),
            Poll::Pending => Ok(Turn::Sleep),
        }
    }

    /// When to give this connection up if nothing moves.
    fn until<S: Service>(&self, desk: &Desk<S>) -> Instant {
        match self.phase {
            Phase::Open if self.outbox.waiting() > 0 || !desk.inbox.is_empty() => {
                self.moved + self.config.stall
            }
            Phase::Open => Instant::NEVER,
            Phase::Last(until) | Phase::HalfClosed(until) | Phase::Drain(until) => until,
        }
    }

    fn tell_end(&self) {
        if self.phase == Phase::Open {
            tracing::info!(waiting = self.outbox.waiting(), "a peer that stands still is cut off");
        }
    }
}

impl<S: Service> Desk<S> {
    /// Reads once and lets the service handle all whole frames that are there.
    fn read(
        &mut self,
        now: Instant,
        socket: BorrowedFd<'_>,
        most: usize,
        outbox: &mut Outbox,
        bad: &mut Option<BadFrame>,
    ) -> io::Result<(usize, Left)> {
        let Self { service, peer, inbox, late } = self;
        let read = inbox.read(socket, most, |bytes| {
            let (frames, used, end) = Frames::split(bytes);
            if !frames.is_empty() {
                service.handle(now, peer, frames, &mut Replies::new(outbox.bytes(), late));
            }
            *bad = end.err();
            if bad.is_some() { bytes.len() } else { used }
        })?;
        let nothing = inbox.is_drained() && bad.is_none();
        Ok((read, if nothing { Left::Nothing } else { Left::Perhaps }))
    }
}

impl<R: Runtime, S: Service> Drop for Session<R, S> {
    fn drop(&mut self) {
        self.desk.late.close();
        self.desk.service.closed(self.link.runtime.now(), &mut self.desk.peer);
    }
}

/// The last reply on a connection whose bytes make no sense: it belongs to no request, so its id is zero.
fn refuse_all(out: &mut Vec<u8>, bad: BadFrame) {
    let code = match bad {
        BadFrame::Malformed(FrameError::Version(_)) => Code::INVALID_VERSION,
        _ => Code::INVALID_PARAMS,
    };
    farewell(out, code, bad);
}

/// Appends a reply that answers no request but ends the connection.
pub(super) fn farewell(out: &mut Vec<u8>, code: Code, text: impl core::fmt::Display) {
    replies::refuse(out, &Header::request(Method(0), 0, None), code, text);
}
