use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::Wake;

use rustix::event::{EventfdFlags, eventfd};
use springtide_core::rng::Rng;
use springtide_core::time::Instant;
use springtide_transport::Armed;

use super::*;
use crate::{Pause, now};

/// Echoes numbers: `ask` queues one and rings, `drive` answers a few at a time.
struct Echo {
    bell: OwnedFd,
    asked: VecDeque<usize>,
    answered: Vec<Option<Waker>>,
    done: Vec<bool>,
}

impl Echo {
    fn new(slots: usize) -> Self {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let (answered, done) = ((0..slots).map(|_| None).collect(), vec![false; slots]);
        Self { bell, asked: VecDeque::new(), answered, done }
    }
}

impl Drive for Echo {
    fn drive(&mut self, _now: Instant, wakes: &mut Wakes) -> Drove {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        // One at a time, so that work is left over whenever somebody leaves.
        let Some(slot) = self.asked.pop_front() else { return Drove::Idle };
        if !self.asked.is_empty() {
            rustix::io::write(&self.bell, &1u64.to_ne_bytes()).unwrap();
        }
        self.done[slot] = true;
        self.answered[slot].take().into_iter().for_each(|waker| wakes.push(waker));
        Drove::Busy
    }

    fn arm(&mut self) -> Armed {
        if self.asked.is_empty() { Armed::Asleep } else { Armed::Again }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

fn ask(seat: &Seat<Echo>, slot: usize) -> impl Future<Output = ()> {
    seat.with(now(), |echo, _| echo.asked.push_back(slot));
    core::future::poll_fn(move |cx: &mut Context<'_>| {
        seat.with(now(), |echo, _| {
            if core::mem::take(&mut echo.done[slot]) {
                return Poll::Ready(());
            }
            echo.answered[slot] = Some(cx.waker().clone());
            Poll::Pending
        })
    })
}

fn far() -> Instant {
    now() + Duration::from_secs(60)
}

#[test]
fn one_caller_drives_for_itself() {
    let seat = Seat::new(Echo::new(1)).unwrap();
    for bound in [Duration::ZERO, Pause::BOUND] {
        assert_eq!(block_on_with(&mut Pause::new(bound), &[&seat], far(), ask(&seat, 0)), Ok(()));
    }
}

#[test]
fn the_deadline_ends_a_wait_for_nothing() {
    let seat = Seat::new(Echo::new(1)).unwrap();
    let never = core::future::pending::<()>();
    assert_eq!(block_on(&[&seat], now() + Duration::from_millis(1), never), Err(TimedOut));
    assert_eq!(block_on(&[&seat], far(), ask(&seat, 0)), Ok(()));
}

#[test]
fn many_callers_share_one_seat_and_nobody_is_forgotten() {
    const THREADS: usize = 8;
    for bound in [Duration::ZERO, Duration::from_micros(5)] {
        let seat = Seat::new(Echo::new(THREADS)).unwrap();
        std::thread::scope(|scope| {
            for slot in 0..THREADS {
                let seat = &seat;
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        let answer = block_on_with(&mut Pause::new(bound), &[seat], far(), ask(seat, slot));
                        assert_eq!(answer, Ok(()));
                    }
                });
            }
        });
    }
}

#[test]
fn callers_that_give_up_take_nobody_with_them() {
    const THREADS: usize = 8;
    let seat = Seat::new(Echo::new(THREADS)).unwrap();
    std::thread::scope(|scope| {
        for slot in 0..THREADS {
            let seat = &seat;
            scope.spawn(move || {
                let mut rng = Rng::new(slot as u64);
                let mut pause = Pause::new(Duration::ZERO);
                for _ in 0..2_000 {
                    if slot % 2 == 0 {
                        // Leaves as a watcher, as a waiter, or before it is either.
                        let brief = now() + Duration::from_micros(rng.below(30));
                        let never = core::future::pending::<()>();
                        assert_eq!(block_on_with(&mut pause, &[seat], brief, never), Err(TimedOut));
                    } else {
                        assert_eq!(block_on_with(&mut pause, &[seat], far(), ask(seat, slot)), Ok(()));
                    }
                }
            });
        }
    });
    let shared = seat.lock();
    assert!(shared.machine.asked.is_empty() && shared.watch.is_empty());
}

#[test]
fn a_block_within_a_block_wakes_the_watcher_of_the_outer_seat() {
    let (outer, inner) = (Seat::new(Echo::new(1)).unwrap(), Seat::new(Echo::new(1)).unwrap());
    let (woken, waker) = Count::pair();
    let mut wakes = Wakes::new();
    assert_eq!(outer.sit(User::new(), &waker, now(), &mut wakes), Sat::Watching(Instant::NEVER));
    let nested = async {
        outer.with(now(), |echo, _| echo.asked.push_back(0));
        assert_eq!(woken.calls(), 0, "this thread drives the outer seat itself");
        let within = async {
            outer.with(now(), |echo, _| echo.asked.push_back(0));
            assert_eq!(woken.calls(), 1, "nobody else does while this block lasts");
        };
        block_on(&[&inner], far(), within).unwrap();
    };
    block_on(&[&outer], far(), nested).unwrap();
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    fn pair() -> (Arc<Self>, Waker) {
        let count = Arc::new(Self::default());
        (Arc::clone(&count), Waker::from(count))
    }

    fn calls(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn who_leaves_hands_over() {
    let seat = Seat::new(Echo::new(2)).unwrap();
    let (first, second, third) = (User::new(), User::new(), User::new());
    let (_, waker) = Count::pair();
    let (woken, next) = Count::pair();
    let (never, last) = Count::pair();
    let mut wakes = Wakes::new();
    assert_eq!(seat.sit(first, &waker, now(), &mut wakes), Sat::Watching(Instant::NEVER));
    assert_eq!(seat.sit(second, &next, now(), &mut wakes), Sat::Queued);
    assert_eq!(seat.sit(third, &last, now(), &mut wakes), Sat::Queued);
    seat.leave(first, now(), &mut wakes);
    wakes.fire();
    assert_eq!((woken.calls(), never.calls()), (1, 0));
    assert_eq!(seat.sit(second, &next, now(), &mut wakes), Sat::Watching(Instant::NEVER));
    seat.leave(third, now(), &mut wakes);
    seat.leave(second, now(), &mut wakes);
    wakes.fire();
    assert_eq!((woken.calls(), never.calls()), (1, 0));
}

#[test]
fn who_touches_a_sleeping_watchers_machine_settles() {
    let seat = Seat::new(Echo::new(1)).unwrap();
    let (woken, waker) = Count::pair();
    let mut wakes = Wakes::new();
    let user = User::new();
    assert_eq!(seat.sit(user, &waker, now(), &mut wakes), Sat::Watching(Instant::NEVER));
    seat.with(now(), |_, _| {});
    assert_eq!(woken.calls(), 0);
    // The machine's descriptor is not rung here, so only the settling can tell the watcher.
    seat.with(now(), |echo, _| echo.asked.push_back(0));
    assert_eq!(woken.calls(), 1);
    seat.with(now(), |echo, _| echo.asked.push_back(0));
    assert_eq!(woken.calls(), 1, "an awake watcher needs no second call");
    assert_eq!(seat.sit(user, &waker, now(), &mut wakes), Sat::Busy);
}

#[test]
fn a_dropped_seat_wakes_its_watcher() {
    let seat = Seat::new(Echo::new(1)).unwrap();
    let (woken, waker) = Count::pair();
    let mut wakes = Wakes::new();
    assert_eq!(seat.sit(User::new(), &waker, now(), &mut wakes), Sat::Watching(Instant::NEVER));
    drop(seat);
    assert_eq!(woken.calls(), 1);
}
