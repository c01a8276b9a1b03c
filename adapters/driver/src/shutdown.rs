//! One signal that ends many tasks.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, PoisonError};

use crate::sync::Mutex;
use crate::wakes::Wakes;

/// A signal that is given once and seen by everybody who holds a clone.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    begun: bool,
    /// One slot for each waiting future; `None` is free.
    waiting: Vec<Option<Waker>>,
}

impl Shutdown {
    /// A signal that was not given yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the signal. Giving it again changes nothing.
    pub fn begin(&self) {
        let mut wakes = Wakes::new();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.begun = true;
        state.waiting.iter_mut().filter_map(Option::take).for_each(|waker| wakes.push(waker));
        drop(state);
        wakes.fire();
    }

    /// Whether it was given.
    pub fn is_begun(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).begun
    }

    /// Ends when it is given.
    pub fn begun(&self) -> Begun {
        Begun { shutdown: self.clone(), slot: None }
    }
}

/// Ends when a [`Shutdown`] begins.
#[derive(Debug)]
pub struct Begun {
    shutdown: Shutdown,
    slot: Option<usize>,
}

impl Future for Begun {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.shutdown.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.begun {
            return Poll::Ready(());
        }
        let slot = *this.slot.get_or_insert_with(|| {
            let free = state.waiting.iter().position(Option::is_none);
            free.unwrap_or_else(|| {
                state.waiting.push(None);
                state.waiting.len() - 1
            })
        });
        match &mut state.waiting[slot] {
            Some(waker) => waker.clone_from(cx.waker()),
            empty => *empty = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let Some(slot) = self.slot else { return };
        let mut state = self.shutdown.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Once begun, the slots are nobody's any more.
        let waker = if state.begun { None } else { state.waiting[slot].take() };
        drop(state);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::pin::pin;
    use core::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn wakes_who_waits_and_forgets_who_left() {
        let shutdown = Shutdown::new();
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        let (mut stays, mut leaves) = (pin!(shutdown.begun()), Box::pin(shutdown.begun()));
        assert!(stays.as_mut().poll(&mut cx).is_pending());
        assert!(leaves.as_mut().poll(&mut cx).is_pending());
        drop(leaves);
        shutdown.begin();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(stays.as_mut().poll(&mut cx).is_ready());
        assert!(pin!(shutdown.begun()).poll(&mut cx).is_ready());
    }
}
