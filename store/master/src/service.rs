//! The machine behind a socket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use springtide_core::id::Incarnation;
use springtide_core::master::Next;
use springtide_core::members::ClientStatus;
use springtide_core::time::Instant;
use springtide_core::wire::message::Figures;
use springtide_driver::Runtime;
use springtide_rpc::{Frames, Replies, Service};

use crate::ahead;
use crate::calls::{CallFigures, Calls};
use crate::dispatch::dispatch;
use crate::state::{Peer, State};

/// Longest that the machine is left alone: a command may have brought a deadline nearer.
const LOOK_AGAIN: core::time::Duration = core::time::Duration::from_millis(50);

/// The machine, shared by all connections. The lock is held for one read's frames, never across a system call.
#[derive(Clone, Debug)]
pub(crate) struct MasterService(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    calls: Calls,
}

impl MasterService {
    pub(crate) fn new(state: State) -> Self {
        Self(Arc::new(Shared { state: Mutex::new(state), calls: Calls::default() }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn figures(&self) -> Figures {
        self.lock().figures()
    }

    pub(crate) fn calls(&self) -> Vec<CallFigures> {
        self.0.calls.figures()
    }

    /// Does what is due, for ever.
    pub(crate) async fn keep_time<R: Runtime>(self, runtime: R) {
        loop {
            let now = runtime.now();
            let due = self.lock().turn(now);
            runtime.timer(due.min(now + LOOK_AGAIN)).await;
        }
    }
}

impl State {
    /// Does what is due and says what happened; gives back when to look again.
    pub(crate) fn turn(&mut self, now: Instant) -> Instant {
        self.master.handle_timeout(now);
        loop {
            match self.master.poll(now) {
                Next::Status { incarnation, status, .. } => log_status(status, incarnation),
                Next::SegmentGone { segment, .. } => tracing::info!(%segment, "segment left the pool"),
                Next::Wait(due) => return due.unwrap_or(Instant::NEVER).max(now),
            }
        }
    }
}

impl Service for MasterService {
    type Peer = Peer;

    fn handle(&self, now: Instant, peer: &mut Peer, frames: Frames<'_>, replies: &mut Replies<'_>) {
        let mut state = self.lock();
        let (mut ahead, mut done) = (0, 0);
        let mut rest = frames;
        loop {
            if done == ahead {
                (ahead, done) = (ahead::warm(&state, peer, rest.clone()), 0);
            }
            let Some(frame) = rest.next() else { return };
            done += 1;
            dispatch((&mut state, &self.0.calls), now, peer, &frame, replies);
        }
    }

    fn closed(&self, _now: Instant, _peer: &mut Peer) {}
}

fn log_status(status: ClientStatus, incarnation: Incarnation) {
    match status {
        ClientStatus::Healthy => tracing::debug!(%incarnation, "member is healthy"),
        ClientStatus::Disconnected => {
            tracing::warn!(%incarnation, "member is silent; its segments are hidden")
        }
        ClientStatus::Crashed => {
            tracing::warn!(%incarnation, "member counts as crashed; its segments are dropped")
        }
        ClientStatus::Undefined => tracing::debug!(%incarnation, "member is gone"),
    }
}
