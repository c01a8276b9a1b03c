//! Boards between two threads, in every order that memory allows.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::Notify;
use loom::thread;

use super::*;

const SHAPE: Shape = Shape { slots: 2, words: 2, bytes: 0 };

/// Entries are whole once they are published, and a reader that sleeps when it finds none is always woken: a lost
/// wake-up is a deadlock here.
#[test]
fn loom_no_wake_up_is_lost() {
    loom::model(|| {
        let (mut writer, reader) = Board::pair(SHAPE);
        let (awake, sleeper) = Board::pair(SHAPE);
        let bell = Arc::new(Notify::new());
        let ring = Arc::clone(&bell);
        let writing = thread::spawn(move || {
            for n in 1..=2 {
                writer.push(&[n, n * 3]);
                writer.publish();
                if sleeper.sleeps() {
                    ring.notify();
                }
            }
        });
        let mut seen = 0;
        while seen < 2 {
            if reader.published() == seen {
                awake.set(Flag::Asleep, 1);
                if reader.published() == seen {
                    bell.wait();
                }
                awake.set(Flag::Asleep, 0);
                continue;
            }
            assert_eq!(reader.entry(seen), [seen + 1, (seen + 1) * 3]);
            seen += 1;
        }
        writing.join().unwrap();
    });
}

/// Who closes and then finds the owner idle may use the memory: the owner acts on nothing any more. loom reports an
/// access that the owner's could overlap.
#[test]
fn loom_an_owner_acts_on_nothing_that_is_closed() {
    loom::model(|| {
        let (ours, of_initiator) = Board::pair(SHAPE);
        let (owners, of_owner) = Board::pair(SHAPE);
        let memory = Arc::new(UnsafeCell::new(0));
        let target = Arc::clone(&memory);
        let owner = thread::spawn(move || {
            owners.set(Flag::Busy, 1);
            if of_initiator.flag(Flag::Closed) == 0 {
                // SAFETY: loom checks that nobody else uses the cell meanwhile.
                target.with_mut(|target| unsafe { *target += 1 });
            }
            owners.set(Flag::Busy, 0);
        });
        ours.set(Flag::Closed, 1);
        if of_owner.flag(Flag::Busy) == 0 {
            // SAFETY: as above.
            memory.with_mut(|memory| unsafe { *memory += 1 });
        }
        owner.join().unwrap();
    });
}
