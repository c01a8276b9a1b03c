//! Tasks run beside everything else, and a wake is never lost, wherever it comes from.

use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Poll, Waker};
use core::time::Duration;
use std::sync::{Arc, Mutex, mpsc};

use springtide_driver::{Runtime, Shutdown};

use crate::help::{Tally, all, disconnected, receive, yield_now};

/// A task's handle ends with the task, also by a panic, which harms nobody else.
pub fn tasks_run_and_are_waited_for_even_if_they_panic<R: Runtime>(make: impl Fn() -> R) {
    let (runtime, ran) = (make(), Tally::default());
    for _ in 0..10 {
        let (before, after) = (ran.clone(), ran.clone());
        runtime.block_on(runtime.spawn(async move { before.add() }));
        runtime.block_on(runtime.spawn(async { std::panic::resume_unwind(Box::new(())) }));
        runtime.block_on(runtime.spawn(async move {
            yield_now().await;
            after.add();
        }));
    }
    assert_eq!(ran.count(), 20);
}

/// A task runs on when its handle is dropped.
pub fn a_task_runs_on_without_its_handle<R: Runtime>(make: impl Fn() -> R) {
    let (runtime, done) = (make(), Tally::default());
    let begin = Shutdown::new();
    for _ in 0..100 {
        let (done, begun) = (done.clone(), begin.begun());
        drop(runtime.spawn(async move {
            begun.await;
            yield_now().await;
            done.add();
        }));
    }
    runtime.block_on(yield_now());
    begin.begin();
    runtime.block_on(done.reaches(100));
}

/// Threads outside call wakers of a task, and of what a thread is blocked on, while it runs, sleeps or falls asleep.
pub fn wakes_from_other_threads_are_not_lost<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let (there, back) = (Tally::default(), Tally::default());
    let (caller, asked, answers) = (there.clone(), back.clone(), back.clone());
    let (to_thread, requests) = mpsc::channel::<()>();
    let outside = std::thread::spawn(move || requests.iter().for_each(|()| caller.add()));
    let task = runtime.spawn(async move {
        for n in 1..=2_000 {
            there.reaches(n).await;
            answers.add();
        }
    });
    for n in 1..=2_000 {
        to_thread.send(()).expect("the thread listens");
        runtime.block_on(asked.reaches(n));
    }
    runtime.block_on(task);
    drop(to_thread);
    outside.join().expect("the thread only wakes");
}

/// A task that never waits for anything, only yields, keeps neither tasks nor descriptors nor timers from their turn.
pub fn a_task_that_wakes_itself_lets_others_run<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let stop = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..3)
        .map(|_| {
            let stop = Arc::clone(&stop);
            runtime.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    yield_now().await;
                }
            })
        })
        .collect();
    let timer = runtime.timer(runtime.now() + Duration::from_millis(2));
    let ended = runtime.spawn(async move {
        timer.await;
        stop.store(true, Ordering::SeqCst);
    });
    runtime.block_on(ended);
    runtime.block_on(all(busy));
}

/// What a task holds goes when it ends, though its waker lives on; calling that then does nothing.
pub fn a_task_is_dropped_when_it_ends_and_late_wakes_do_nothing<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let kept: Arc<Mutex<Vec<Waker>>> = Arc::default();
    for _ in 0..100 {
        let keep = Arc::clone(&kept);
        let (held, hear) = mpsc::channel::<()>();
        let task = runtime.spawn(async move {
            let mut polls = 0;
            poll_fn(|cx| {
                keep.lock().expect("nobody panics with it").push(cx.waker().clone());
                polls += 1;
                if polls < 3 {
                    // Twice, by reference and by value.
                    cx.waker().wake_by_ref();
                    let again = cx.waker().clone();
                    again.wake();
                    return Poll::Pending;
                }
                Poll::Ready(())
            })
            .await;
            drop(held);
        });
        runtime.block_on(task);
        disconnected(&hear, "what the task held");
        kept.lock().expect("nobody panics with it").iter().for_each(Waker::wake_by_ref);
    }
    runtime.block_on(yield_now());
    drop(runtime);
    kept.lock().expect("nobody panics with it").drain(..).for_each(Waker::wake);
}

/// A tree of a thousand tasks, each of which waits for those that it spawned.
pub fn many_tasks_wait_for_one_another<R: Runtime>(make: impl Fn() -> R) {
    fn grow<R: Runtime>(runtime: R, depth: u32, leaves: Tally) -> R::Task {
        let handle = runtime.clone();
        handle.spawn(async move {
            if depth == 0 {
                yield_now().await;
                leaves.add();
                return;
            }
            let tasks: Vec<_> = (0..10).map(|_| grow(runtime.clone(), depth - 1, leaves.clone())).collect();
            all(tasks).await;
        })
    }
    let (runtime, leaves) = (make(), Tally::default());
    runtime.block_on(grow(runtime.clone(), 3, leaves.clone()));
    assert_eq!(leaves.count(), 1_000);
}

/// A future that was blocked on is gone when `block_on` is left, also by a panic; the runtime works on.
pub fn block_on_drops_what_it_ran<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let (held, hear) = mpsc::channel::<()>();
    let inside = runtime.clone();
    let panicked = std::thread::spawn(move || {
        inside.block_on(async move {
            yield_now().await;
            let _held = held;
            std::panic::resume_unwind(Box::new(()))
        })
    });
    panicked.join().expect_err("the panic comes out of block_on");
    disconnected(&hear, "what the future held");
    runtime.block_on(runtime.spawn(async {}));
}

/// Two threads are blocked on one runtime; whichever leaves first, the other goes on, and so do the tasks.
pub fn two_threads_may_block_at_once<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    for _ in 0..100 {
        let (first, second, task) = (Shutdown::new(), Shutdown::new(), Shutdown::new());
        let (tell, hear) = mpsc::channel();
        let (inside, until, other) = (runtime.clone(), first.begun(), second.clone());
        let thread = std::thread::spawn(move || {
            inside.block_on(async {
                tell.send(()).expect("the first thread listens");
                until.await;
            });
            other.begin();
        });
        receive(&hear, "the second thread is in block_on");
        let (begun, begin) = (task.begun(), first.clone());
        drop(runtime.spawn(async move {
            begun.await;
            begin.begin();
        }));
        task.begin();
        // Begins only once the other thread has left; then this one is alone.
        runtime.block_on(second.begun());
        runtime.block_on(runtime.timer(runtime.now() + Duration::from_micros(50)));
        thread.join().expect("the second thread only waits");
    }
}

/// A task that keeps its thread, as no task should, leaves timers and other tasks to the second thread. For runtimes with
/// two threads of their own.
pub fn a_task_that_blocks_its_thread_holds_up_nobody_else<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    for _ in 0..20 {
        let (blocks, done) = (Tally::default(), Tally::default());
        let (tell, hear) = mpsc::channel();
        let (blocked, released) = (blocks.clone(), done.clone());
        let blocker = runtime.spawn(async move {
            blocked.add();
            receive(&hear, "the other thread runs a task");
            released.add();
        });
        runtime.block_on(blocks.reaches(1));
        let timer = runtime.timer(runtime.now() + Duration::from_millis(1));
        drop(runtime.spawn(async move {
            timer.await;
            yield_now().await;
            tell.send(()).expect("the blocked task listens");
        }));
        runtime.block_on(blocker);
        assert_eq!(done.count(), 1);
    }
}
