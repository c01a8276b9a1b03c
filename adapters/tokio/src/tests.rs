use core::future::poll_fn;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use springtide_driver::Shutdown;

use super::*;

fn both(test: impl Fn(Tokio)) {
    test(Tokio::new_single().unwrap());
    test(Tokio::new_multi(2).unwrap());
}

#[test]
fn a_timer_ends_when_its_moment_came() {
    both(|tokio| {
        let at = tokio.now() + Duration::from_millis(2);
        tokio.block_on(tokio.timer(at));
        assert!(at.reached(tokio.now()));
        tokio.block_on(tokio.timer(Instant::ORIGIN));
    });
}

#[test]
fn every_byte_is_seen_though_each_wake_up_reads_one() {
    both(|tokio| {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut ready = tokio.ready(ours.into()).unwrap();
        let writer = std::thread::spawn(move || {
            for _ in 0..1_000 {
                theirs.write_all(&[1]).unwrap();
            }
        });
        let mut seen = 0;
        while seen < 1_000 {
            let byte = |fd: BorrowedFd<'_>| UnixStream::from(fd.try_clone_to_owned()?).read(&mut [0]);
            seen += tokio.block_on(poll_fn(|cx| ready.poll_io(cx, Interest::Read, byte))).unwrap();
        }
        writer.join().unwrap();
    });
}

#[test]
fn directions_are_apart() {
    both(|tokio| {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut ready = tokio.ready(ours.into()).unwrap();
        tokio
            .block_on(poll_fn(|cx| {
                let read =
                    ready.poll_io(cx, Interest::Read, |_| Err::<(), _>(io::ErrorKind::WouldBlock.into()));
                assert!(read.is_pending());
                ready.poll_io(cx, Interest::Write, |_| Ok(()))
            }))
            .unwrap();
    });
}

#[test]
fn tasks_run_and_are_waited_for_even_if_they_panic() {
    both(|tokio| {
        static RAN: AtomicUsize = AtomicUsize::new(0);
        let before = RAN.load(Ordering::Relaxed);
        let task = tokio.spawn(async {
            RAN.fetch_add(1, Ordering::Relaxed);
        });
        tokio.block_on(task);
        assert_eq!(RAN.load(Ordering::Relaxed), before + 1);
        tokio.block_on(tokio.spawn(async { std::panic::resume_unwind(Box::new(())) }));
    });
}

#[test]
fn the_last_clone_may_go_inside_a_task() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let shutdown = Shutdown::new();
    let tokio = Tokio::new_multi(1).unwrap();
    let (inside, begun) = (tokio.clone(), shutdown.begun());
    drop(tokio.spawn(async move {
        begun.await;
        drop(inside);
        sender.send(()).unwrap();
    }));
    drop(tokio);
    shutdown.begin();
    receiver.recv().unwrap();
}
