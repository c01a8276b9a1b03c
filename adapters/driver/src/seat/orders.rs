//! The seat's hand-over between threads, in every order that a few preemptions allow.

use core::task::Waker;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use loom::thread;
use springtide_core::time::Instant;
use springtide_transport::Armed;

use super::*;
use crate::park::Parker;

/// What stands behind the machine's descriptor: answers that came in, and who sleeps on it.
#[derive(Default)]
struct Line {
    came: VecDeque<usize>,
    sleepers: Vec<Waker>,
}

/// A machine that hands out one answer a turn.
struct Machine {
    line: Arc<Mutex<Line>>,
    done: [bool; 2],
    waiting: [Option<Waker>; 2],
    file: Arc<File>,
}

impl Drive for Machine {
    fn drive(&mut self, _now: Instant, wakes: &mut Wakes) -> Drove {
        let Some(slot) = self.line.lock().unwrap().came.pop_front() else { return Drove::Idle };
        self.done[slot] = true;
        self.waiting[slot].take().into_iter().for_each(|waker| wakes.push(waker));
        Drove::Busy
    }
    fn arm(&mut self) -> Armed {
        if self.line.lock().unwrap().came.is_empty() { Armed::Asleep } else { Armed::Again }
    }
    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Blocks until `slot` is answered, as `block_on` does: polls when called, drives, sits down, sleeps.
fn block(seat: &Seat<Machine>, line: &Mutex<Line>, slot: usize) {
    let (parker, now, user) = (Parker::take(), Instant::ORIGIN, User::new());
    let (waker, mut wakes) = (Waker::from(Arc::clone(&parker)), Wakes::new());
    let mut called = true;
    loop {
        if called {
            let mut shared = seat.lock();
            if shared.machine.done[slot] {
                break;
            }
            shared.machine.waiting[slot] = Some(waker.clone());
        }
        let drove = seat.try_drive(user, now, &mut wakes);
        wakes.fire();
        called = parker.called();
        if called || drove == Some(Drove::Busy) {
            continue;
        }
        let sat = seat.sit(user, &waker, now, &mut wakes);
        wakes.fire();
        match sat {
            Sat::Busy => {}
            Sat::Queued => parker.sleep(&[], now, Instant::NEVER),
            Sat::Watching(_) if listen(line, &waker) => parker.sleep(&[], now, Instant::NEVER),
            Sat::Watching(_) => {}
        }
        called = parker.called();
    }
    seat.leave(user, now, &mut wakes);
    wakes.fire();
}

/// Whether the descriptor is not readable; if so `waker` is called when it becomes readable.
fn listen(line: &Mutex<Line>, waker: &Waker) -> bool {
    let mut line = line.lock().unwrap();
    line.sleepers.push(waker.clone());
    line.came.is_empty()
}

fn answer(line: &Mutex<Line>, slot: usize) {
    let sleepers = {
        let mut line = line.lock().unwrap();
        line.came.push_back(slot);
        core::mem::take(&mut line.sleepers)
    };
    sleepers.into_iter().for_each(Waker::wake);
}

/// Two callers wait on one seat while their answers come in. Whoever leaves first hands the watch over, or the other
/// sleeps for ever, which is a deadlock here.
#[test]
fn loom_who_leaves_hands_over() {
    let file = Arc::new(File::open("/dev/null").expect("there is a null device"));
    loom::model(move || {
        let line = Arc::new(Mutex::new(Line::default()));
        let (done, waiting) = ([false; 2], [None, None]);
        let machine = Machine { line: Arc::clone(&line), done, waiting, file: Arc::clone(&file) };
        let seat = Arc::new(Seat::new(machine).expect("a descriptor is left"));
        let other = {
            let (seat, line) = (Arc::clone(&seat), Arc::clone(&line));
            thread::spawn(move || block(&seat, &line, 1))
        };
        answer(&line, 1);
        answer(&line, 0);
        block(&seat, &line, 0);
        other.join().unwrap();
    });
}
