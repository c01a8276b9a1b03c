//! A runtime ends with its last handle, and what was left with it.

use core::future::pending;
use std::sync::mpsc;

use springtide_driver::{Runtime, Shutdown};

use crate::help::{disconnected, receive, sockets, yield_now};

/// Tasks that never end are dropped with the runtime, with their timers and descriptors; so are those that never ran.
pub fn tasks_left_are_dropped_with_the_runtime<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let (held, hear) = mpsc::channel::<()>();
    for _ in 0..10 {
        let held = held.clone();
        let ready = runtime.ready(sockets().0.into()).expect("a descriptor is free");
        let timer = runtime.timer(springtide_core::time::Instant::NEVER);
        drop(runtime.spawn(async move {
            timer.await;
            drop((ready, held));
        }));
    }
    runtime.block_on(yield_now());
    drop(runtime.spawn(async move {
        pending::<()>().await;
        drop(held);
    }));
    drop(runtime);
    disconnected(&hear, "what the tasks held");
}

/// Whoever waits for a task that was dropped with its runtime is told that it is over.
pub fn a_handle_of_a_task_left_ends<R: Runtime>(make: impl Fn() -> R) {
    let (gone, other) = (make(), make());
    let (waiting, asleep) = (Shutdown::new(), gone.spawn(pending()));
    gone.block_on(yield_now());
    let never_ran = gone.spawn(pending());
    let told = waiting.clone();
    let waiter = other.spawn(async move {
        told.begin();
        asleep.await;
        never_ran.await;
    });
    other.block_on(waiting.begun());
    drop(gone);
    other.block_on(waiter);
}

/// The last handle may be dropped by one of the runtime's own tasks. For runtimes with threads of their own.
pub fn the_last_clone_may_go_inside_a_task<R: Runtime>(make: impl Fn() -> R) {
    for _ in 0..20 {
        let (sender, receiver) = mpsc::channel();
        let shutdown = Shutdown::new();
        let runtime = make();
        let (inside, begun) = (runtime.clone(), shutdown.begun());
        drop(runtime.spawn(async move {
            begun.await;
            drop(inside);
            sender.send(()).expect("the test listens");
        }));
        drop(runtime);
        shutdown.begin();
        receive(&receiver, "the task goes on to its end");
    }
}
