//! Parkers between two threads, in every order that memory allows.

use loom::thread;

use super::*;

/// A call ends the sleep, whether it comes before, while or after the owner lies down; a lost one is a deadlock here.
#[test]
fn loom_no_call_is_lost() {
    loom::model(|| {
        let parker = Parker::take();
        let caller = Arc::clone(&parker);
        let calling = thread::spawn(move || caller.wake());
        while !parker.called() {
            parker.sleep(&[], Instant::ORIGIN, Instant::NEVER);
        }
        calling.join().unwrap();
    });
}

/// What was written before a call is seen after it, also when two call.
#[test]
fn loom_two_calls_are_both_heard() {
    loom::model(|| {
        let parker = Parker::take();
        let written = Arc::new(loom::sync::atomic::AtomicUsize::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (caller, written) = (Arc::clone(&parker), Arc::clone(&written));
                thread::spawn(move || {
                    written.fetch_add(1, Ordering::Relaxed);
                    caller.wake();
                })
            })
            .collect();
        while written.load(Ordering::Relaxed) < 2 {
            if !parker.called() {
                parker.sleep(&[], Instant::ORIGIN, Instant::NEVER);
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
