//! The calls that have not ended.
//!
//! Each ends exactly once: with its answer, its deadline, its connection's end, or given up.

use core::num::NonZeroU32;
use core::task::{Poll, Waker};

use springtide_core::id::Id;
use springtide_core::slab::Slab;
use springtide_core::time::Instant;
use springtide_driver::Wakes;

use super::{CallError, Reply};

/// Names a call on its connection, and on the wire: generation above, slot below. Never zero as a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestId {
    index: u32,
    generation: NonZeroU32,
}

impl Id for RequestId {
    fn new(index: u32, generation: NonZeroU32) -> Self {
        Self { index, generation }
    }

    fn index(self) -> usize {
        self.index as usize
    }

    fn generation(self) -> NonZeroU32 {
        self.generation
    }
}

impl RequestId {
    /// The id as one number, for the wire.
    pub const fn to_bits(self) -> u64 {
        (self.generation.get() as u64) << 32 | self.index as u64
    }

    /// The id of [`to_bits`](Self::to_bits); `None` if the generation is zero.
    pub fn from_bits(bits: u64) -> Option<Self> {
        let generation = NonZeroU32::new((bits >> 32) as u32)?;
        Some(Self { index: bits as u32, generation })
    }
}

/// What a call ends with.
pub type Answer<T = Reply> = Result<T, CallError>;

#[derive(Debug)]
struct Slot<T> {
    deadline: Instant,
    waker: Option<Waker>,
    /// `Some` from its end until its future takes it.
    answer: Option<Answer<T>>,
    /// Survives the end of its connection.
    kept: bool,
}

/// The calls of one connection, by request id.
///
/// The earliest deadline is kept as a lower bound: when it has come, the calls are looked through once and the bound is
/// set anew. Calls that end in time therefore cost nothing, and one pass is paid a call's patience at most.
#[derive(Debug)]
pub struct Table<T = Reply> {
    slots: Slab<RequestId, Slot<T>>,
    earliest: Instant,
    /// Calls without an answer.
    open: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { slots: Slab::default(), earliest: Instant::NEVER, open: 0 }
    }
}

impl<T> Table<T> {
    /// Calls whose future has not taken an answer yet.
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none of them.
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Calls without an answer.
    pub const fn open(&self) -> usize {
        self.open
    }

    /// No call has to be timed out before this.
    pub const fn earliest(&self) -> Instant {
        self.earliest
    }

    /// Takes a call in that waits until `deadline`.
    pub fn insert(&mut self, deadline: Instant) -> RequestId {
        self.earliest = self.earliest.min(deadline);
        self.open += 1;
        self.slots.insert(Slot { deadline, waker: None, answer: None, kept: false })
    }

    /// Until when the call waits; `None` if it has ended.
    pub fn deadline(&self, id: RequestId) -> Option<Instant> {
        self.slots.get(id).filter(|slot| slot.answer.is_none()).map(|slot| slot.deadline)
    }

    /// Ends a call. Gives `false` for one that has ended or was given up.
    pub fn answer(&mut self, id: RequestId, answer: impl FnOnce() -> Answer<T>, wakes: &mut Wakes) -> bool {
        let Some(slot) = self.slots.get_mut(id).filter(|slot| slot.answer.is_none()) else { return false };
        slot.answer = Some(answer());
        slot.waker.take().into_iter().for_each(|waker| wakes.push(waker));
        self.open -= 1;
        true
    }

    /// The call's answer, once.
    pub fn poll(&mut self, id: RequestId, waker: &Waker) -> Poll<Answer<T>> {
        let Some(slot) = self.slots.get_mut(id) else { return Poll::Pending };
        if slot.answer.is_none() {
            match &mut slot.waker {
                Some(old) => old.clone_from(waker),
                empty => *empty = Some(waker.clone()),
            }
            return Poll::Pending;
        }
        let answer = self.slots.remove(id).and_then(|slot| slot.answer);
        answer.map_or(Poll::Pending, Poll::Ready)
    }

    /// Forgets a call; gives back what is to be dropped outside the lock.
    pub fn give_up(&mut self, id: RequestId) -> Option<Waker> {
        let slot = self.slots.remove(id)?;
        if slot.answer.is_none() {
            self.open -= 1;
        }
        slot.waker
    }

    /// Ends every call whose deadline has come.
    pub fn expire(&mut self, now: Instant, why: &CallError, wakes: &mut Wakes) {
        if self.earliest.reached(now) {
            self.fail_if(wakes, |slot| slot.deadline.reached(now).then(|| why.clone()));
        }
    }

    /// Ends every call.
    pub fn fail_all(&mut self, error: &CallError, wakes: &mut Wakes) {
        self.fail_if(wakes, |_| Some(error.clone()));
    }

    /// Ends every call but `kept`, whose ids may be stale.
    pub fn fail_others(
        &mut self,
        kept: impl Iterator<Item = RequestId>,
        error: &CallError,
        wakes: &mut Wakes,
    ) {
        kept.for_each(|id| self.slots.get_mut(id).into_iter().for_each(|slot| slot.kept = true));
        self.fail_if(wakes, |slot| (!core::mem::take(&mut slot.kept)).then(|| error.clone()));
    }

    fn fail_if(&mut self, wakes: &mut Wakes, why: impl Fn(&mut Slot<T>) -> Option<CallError>) {
        self.earliest = Instant::NEVER;
        for (_, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.answer.is_none()) {
            let Some(error) = why(slot) else {
                self.earliest = self.earliest.min(slot.deadline);
                continue;
            };
            slot.answer = Some(Err(error));
            slot.waker.take().into_iter().for_each(|waker| wakes.push(waker));
            self.open -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn at(millis: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(millis)
    }

    #[test]
    fn expires_what_is_due_and_finds_the_next_bound() {
        let (mut table, mut wakes) = (Table::<Reply>::default(), Wakes::new());
        let ids: Vec<_> = [30, 10, 20].map(|millis| table.insert(at(millis))).into();
        assert_eq!(table.earliest(), at(10));
        table.expire(at(9), &CallError::Timeout, &mut wakes);
        assert_eq!(table.open(), 3);
        table.expire(at(10), &CallError::Timeout, &mut wakes);
        assert_eq!((table.open(), table.earliest()), (2, at(20)));
        assert_eq!(table.poll(ids[1], Waker::noop()), Poll::Ready(Err(CallError::Timeout)));
        assert!(table.poll(ids[0], Waker::noop()).is_pending());
    }

    #[test]
    fn a_late_answer_finds_nobody() {
        let (mut table, mut wakes) = (Table::<Reply>::default(), Wakes::new());
        let (timed_out, given_up) = (table.insert(at(1)), table.insert(at(9)));
        table.expire(at(1), &CallError::Timeout, &mut wakes);
        let _ = table.give_up(given_up);
        for id in [timed_out, given_up] {
            assert!(!table.answer(id, || Err(CallError::Busy), &mut wakes));
        }
        let again = table.insert(at(9));
        assert_ne!(again, given_up);
        assert_eq!((table.len(), table.open()), (2, 1));
    }

    #[test]
    fn ids_survive_the_wire() {
        let id = RequestId::new(7, NonZeroU32::MAX);
        assert_eq!(RequestId::from_bits(id.to_bits()), Some(id));
        assert_eq!(RequestId::from_bits(7), None);
    }
}
