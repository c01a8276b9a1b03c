//! Threads that are kept on processors.

use core::time::Duration;
use std::io::ErrorKind;
use std::sync::mpsc;

use springtide_driver::{Pause, Runtime};
use springtide_thread::Threads;

/// A processor that this process may use.
fn allowed() -> usize {
    let mask = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| mask.is_set(cpu)).unwrap()
}

#[test]
fn tasks_run_on_the_processor_that_was_named() {
    let cpu = allowed();
    let (tell, hear) = mpsc::channel();
    for pause in [Pause::new(Duration::ZERO), Pause::default()] {
        let (threads, tell) = (Threads::new_pinned(&[cpu], pause).unwrap(), tell.clone());
        threads.block_on(threads.spawn(async move {
            let mask = rustix::thread::sched_getaffinity(None).unwrap();
            tell.send((mask.count(), mask.is_set(cpu))).unwrap();
        }));
        assert_eq!(hear.try_recv(), Ok((1, true)));
    }
}

#[test]
fn processors_that_are_not_there_are_refused() {
    for cpus in [&[][..], &[usize::MAX], &[allowed(), 1_023]] {
        assert_eq!(Threads::new_pinned(cpus, Pause::default()).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
