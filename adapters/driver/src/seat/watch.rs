//! Who watches a seat's descriptor, and who waits to.

use core::task::Waker;
use std::collections::VecDeque;

use springtide_core::time::Instant;

use super::User;
use crate::wakes::Wakes;

/// The watcher and the queue behind it. The queue is empty while there is no watcher.
#[derive(Debug, Default)]
pub(super) struct Watch {
    watcher: Option<Waiter>,
    asleep_until: Option<Instant>,
    queue: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    user: User,
    waker: Waker,
}

impl Watch {
    /// Until when the watcher sleeps; `None` if it is awake or there is none.
    pub(super) const fn asleep_until(&self) -> Option<Instant> {
        self.asleep_until
    }

    /// Whether nobody watches or waits.
    #[cfg(all(test, not(loom)))]
    pub(super) fn is_empty(&self) -> bool {
        self.watcher.is_none() && self.queue.is_empty()
    }

    /// Makes `user` the watcher if there is none; else queues it, once. Whether it is the watcher now.
    pub(super) fn take(&mut self, user: User, waker: &Waker) -> bool {
        let watcher = self.watcher.get_or_insert_with(|| Waiter { user, waker: waker.clone() });
        if watcher.user == user {
            watcher.waker.clone_from(waker);
            self.asleep_until = None;
            return true;
        }
        match self.queue.iter_mut().find(|waiter| waiter.user == user) {
            Some(waiter) => waiter.waker.clone_from(waker),
            None => self.queue.push_back(Waiter { user, waker: waker.clone() }),
        }
        false
    }

    /// The watcher will sleep until `until`.
    pub(super) const fn sleep(&mut self, until: Instant) {
        self.asleep_until = Some(until);
    }

    /// If `user` is the watcher, it is awake.
    pub(super) fn wake_up(&mut self, user: User) {
        if self.watcher.as_ref().is_some_and(|watcher| watcher.user == user) {
            self.asleep_until = None;
        }
    }

    /// Wakes the watcher, once until it sleeps again.
    pub(super) fn wake_watcher(&mut self, wakes: &mut Wakes) {
        self.asleep_until = None;
        if let Some(watcher) = &self.watcher {
            wakes.push(watcher.waker.clone());
        }
    }

    /// Takes `user` out; if it was the watcher, the head of the queue becomes it and is woken.
    pub(super) fn leave(&mut self, user: User, wakes: &mut Wakes) {
        if self.watcher.as_ref().is_some_and(|watcher| watcher.user == user) {
            self.watcher = self.queue.pop_front();
            self.wake_watcher(wakes);
        } else {
            self.queue.retain(|waiter| waiter.user != user);
        }
    }

    /// Wakes everybody for the last time.
    pub(super) fn dismiss(&mut self, wakes: &mut Wakes) {
        self.watcher
            .take()
            .into_iter()
            .chain(self.queue.drain(..))
            .for_each(|waiter| wakes.push(waiter.waker));
    }
}
