//! How many connections there are, and the end of the last one.

use core::future::poll_fn;
use core::task::{Poll, Waker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts a server's connections.
#[derive(Debug, Default)]
pub(super) struct Guests {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    live: usize,
    waker: Option<Waker>,
}

/// One connection; counts until it is dropped.
#[derive(Debug)]
pub(super) struct Guest(Arc<Guests>);

impl Guests {
    /// One more connection, unless there are `most` already.
    pub(super) fn admit(self: &Arc<Self>, most: usize) -> Option<Guest> {
        let mut state = self.lock();
        if state.live >= most {
            return None;
        }
        state.live += 1;
        drop(state);
        Some(Guest(Arc::clone(self)))
    }

    /// Ends when no connection is left.
    pub(super) async fn gone(&self) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.live == 0 {
                return Poll::Ready(());
            }
            state.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.live -= 1;
        let waker = if state.live == 0 { state.waker.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
