//! Timers end at their moment: never before, and not because of or in spite of one another.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::mpsc;

use springtide_core::time::Instant;
use springtide_driver::Runtime;

use crate::help::{Count, Tally, all, receive};

/// A timer ends when its moment came, at once if that is past.
pub fn a_timer_ends_when_its_moment_came<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let at = runtime.now() + Duration::from_millis(2);
    runtime.block_on(runtime.timer(at));
    assert!(at.reached(runtime.now()));
    runtime.block_on(runtime.timer(Instant::ORIGIN));
    runtime.block_on(runtime.timer(at));
}

/// A thousand timers, set in another order than they end in.
pub fn many_timers_end_none_of_them_early<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let (begin, in_time) = (runtime.now(), Tally::default());
    let set = |n: u64| {
        let at = begin + Duration::from_micros(n * 7_919 % 5_000);
        let (timer, clock, in_time) = (runtime.timer(at), runtime.clone(), in_time.clone());
        runtime.spawn(async move {
            timer.await;
            if at.reached(clock.now()) {
                in_time.add();
            }
        })
    };
    let tasks: Vec<_> = (0..1_000).map(set).collect();
    runtime.block_on(all(tasks));
    assert_eq!(in_time.count(), 1_000, "some ended early");
}

/// A timer that was waited for and dropped calls no waker.
pub fn a_dropped_timer_wakes_nobody<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let (count, waker) = Count::waker();
    let soon = runtime.now() + Duration::from_millis(3);
    runtime.block_on(async {
        let mut dropped: Vec<_> = (0..100).map(|_| Box::pin(runtime.timer(soon))).collect();
        for timer in &mut dropped {
            let _ = timer.as_mut().poll(&mut Context::from_waker(&waker));
        }
        let already = count.wakes();
        drop(dropped);
        runtime.timer(soon + Duration::from_millis(2)).await;
        assert_eq!(count.wakes(), already, "the timers were dropped");
    });
}

/// A timer wakes the waker that it was polled with last, and not the one before.
pub fn a_timer_wakes_whoever_asked_last<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    runtime.block_on(async {
        let mut timer = pin!(runtime.timer(runtime.now() + Duration::from_millis(20)));
        let (before, waker) = Count::waker();
        let asked = timer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
        timer.as_mut().await;
        assert!(!asked || before.wakes() == 0, "the first waker was replaced");
    });
}

/// A timer that is set while a thread sleeps for a later one, or for ever, is not held up by that.
pub fn an_earlier_timer_is_not_held_up<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let done = Tally::default();
    let (tell, hear) = mpsc::channel();
    let setter = {
        let (runtime, done) = (runtime.clone(), done.clone());
        std::thread::spawn(move || {
            let () = receive(&hear, "the other thread begins to wait");
            let soon = runtime.timer(runtime.now() + Duration::from_millis(1));
            let clock = runtime.clone();
            drop(runtime.spawn(async move {
                soon.await;
                clock.timer(clock.now() + Duration::from_millis(1)).await;
                done.add();
            }));
        })
    };
    runtime.block_on(async {
        let mut far = pin!(runtime.timer(runtime.now() + Duration::from_secs(3_600)));
        let mut never = pin!(runtime.timer(Instant::NEVER));
        let both = poll_fn(|cx| Poll::Ready((far.as_mut().poll(cx), never.as_mut().poll(cx))));
        assert_eq!(both.await, (Poll::Pending, Poll::Pending));
        tell.send(()).expect("the setter waits for it");
        done.reaches(1).await;
    });
    setter.join().expect("the setter only sets");
}
