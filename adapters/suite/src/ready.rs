//! Readiness is told by direction, and cleared only by what would block.

use core::future::poll_fn;
use core::task::{Context, Poll};
use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use springtide_driver::{Interest, Ready, Runtime};

use crate::help::{Count, Tally, sockets};

/// One read of at most `most` bytes.
fn read(fd: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    UnixStream::from(fd.try_clone_to_owned()?).read(&mut vec![0; most])
}

/// One write of `bytes`.
fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    UnixStream::from(fd.try_clone_to_owned()?).write(bytes)
}

fn watch<R: Runtime>(runtime: &R, socket: UnixStream) -> R::Ready {
    runtime.ready(OwnedFd::from(socket)).expect("a descriptor is free")
}

fn would_block<T>() -> io::Result<T> {
    Err(io::ErrorKind::WouldBlock.into())
}

/// Every byte is seen, though the reader never empties the socket before it waits again.
pub fn every_byte_is_seen_though_each_wake_up_reads_one<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let (ours, mut theirs) = sockets();
    theirs.set_nonblocking(false).expect("a socket");
    let mut ready = watch(&runtime, ours);
    let writer = std::thread::spawn(move || {
        for _ in 0..1_000 {
            theirs.write_all(&[1]).expect("the reader is there");
        }
    });
    let mut seen = 0;
    while seen < 1_000 {
        seen += runtime
            .block_on(poll_fn(|cx| ready.poll_io(cx, Interest::Read, |fd| read(fd, 1))))
            .expect("the writer is there");
    }
    writer.join().expect("the writer only writes");
}

/// A direction that would block says nothing about the other.
pub fn directions_are_apart<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let (ours, _theirs) = sockets();
    let mut ready = watch(&runtime, ours);
    runtime
        .block_on(poll_fn(|cx| {
            assert!(ready.poll_io(cx, Interest::Read, |_| would_block::<()>()).is_pending());
            ready.poll_io(cx, Interest::Write, |_| Ok(()))
        }))
        .expect("a socket can be written to");
}

/// What succeeded may be tried again at once; what would block is waited for.
pub fn readiness_stays_until_something_would_block<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let (ours, mut theirs) = sockets();
    theirs.write_all(b"abc").expect("there is room");
    let mut ready = watch(&runtime, ours);
    let mut one = |cx: &mut Context<'_>| ready.poll_io(cx, Interest::Read, |fd| read(fd, 1));
    runtime.block_on(poll_fn(|cx| {
        let Poll::Ready(first) = one(cx) else { return Poll::Pending };
        assert_eq!(first.expect("there are bytes"), 1);
        for _ in 1..3 {
            let Poll::Ready(Ok(1)) = one(cx) else { panic!("a read that succeeded was waited for") };
        }
        assert!(one(cx).is_pending());
        Poll::Ready(())
    }));
    theirs.write_all(b"d").expect("there is room");
    assert_eq!(runtime.block_on(poll_fn(|cx| one(cx))).expect("there is a byte"), 1);
}

/// A byte that comes after the kernel said "would block" and before the runtime hears of that wakes the task.
pub fn what_comes_while_it_would_block_is_not_lost<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    for _ in 0..200 {
        let (ours, mut theirs) = sockets();
        // A byte to begin with, as a runtime may wait for the first event before it tries.
        theirs.write_all(&[1]).expect("there is room");
        let (mut ready, mut sent) = (watch(&runtime, ours), false);
        let mut io = |fd: BorrowedFd<'_>| {
            let answer = read(fd, 1);
            if answer.is_err() && !core::mem::replace(&mut sent, true) {
                theirs.write_all(&[1]).expect("there is room");
            }
            answer
        };
        for _ in 0..2 {
            let read = runtime.block_on(poll_fn(|cx| ready.poll_io(cx, Interest::Read, &mut io)));
            assert_eq!(read.expect("the peer is there"), 1);
        }
    }
}

/// Room to write comes back when the peer reads.
pub fn a_full_pipe_is_ready_again_once_it_was_emptied<R: Runtime>(make: impl Fn() -> R) {
    const LEN: usize = 4 << 20;
    let runtime = make();
    let (ours, mut theirs) = sockets();
    theirs.set_nonblocking(false).expect("a socket");
    let mut ready = watch(&runtime, ours);
    let reader = std::thread::spawn(move || {
        let (mut all, mut buffer) = (0, vec![0; 10_000]);
        while all < LEN {
            all += theirs.read(&mut buffer).expect("the writer is there");
        }
    });
    let task = runtime.spawn(async move {
        let (bytes, mut sent) = (vec![7; 100_000], 0);
        while sent < LEN {
            let some = &bytes[..bytes.len().min(LEN - sent)];
            let written = poll_fn(|cx| ready.poll_io(cx, Interest::Write, |fd| write(fd, some))).await;
            sent += written.expect("the reader is there");
        }
    });
    runtime.block_on(task);
    reader.join().expect("the reader got everything");
}

/// A peer that closes ends a wait for bytes, and makes a write fail rather than wait.
pub fn a_closed_peer_makes_both_directions_ready<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let (ours, theirs) = sockets();
    let mut ready = watch(&runtime, ours);
    let waits = Tally::default();
    let waiting = waits.clone();
    let task = runtime.spawn(async move {
        let mut told = false;
        let end = poll_fn(|cx| {
            let polled = ready.poll_io(cx, Interest::Read, |fd| read(fd, 1));
            if polled.is_pending() && !core::mem::replace(&mut told, true) {
                waiting.add();
            }
            polled
        });
        assert_eq!(end.await.expect("an end is no error"), 0);
        let broken = poll_fn(|cx| ready.poll_io(cx, Interest::Write, |fd| write(fd, b"x"))).await;
        assert_eq!(broken.expect_err("nobody reads").kind(), io::ErrorKind::BrokenPipe);
        waiting.add();
    });
    runtime.block_on(waits.reaches(1));
    drop(theirs);
    runtime.block_on(task);
    runtime.block_on(waits.reaches(2));
}

/// Dropping readiness closes the descriptor; its number is used again, and old events mean nobody.
pub fn a_descriptor_closes_with_its_readiness_and_its_number_may_come_back<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let (count, waker) = Count::waker();
    for _ in 0..100 {
        let (ours, mut theirs) = sockets();
        let mut ready = watch(&runtime, ours);
        let mut cx = Context::from_waker(&waker);
        runtime.block_on(async {
            assert!(ready.poll_io(&mut cx, Interest::Read, |fd| read(fd, 1)).is_pending());
        });
        drop(ready);
        assert_eq!(theirs.read(&mut [0]).expect("an end is no error"), 0, "the socket stayed open");
        let (again, mut peer) = sockets();
        let mut ready = watch(&runtime, again);
        peer.write_all(&[1]).expect("there is room");
        let read = runtime.block_on(poll_fn(|cx| ready.poll_io(cx, Interest::Read, |fd| read(fd, 1))));
        assert_eq!(read.expect("the peer is there"), 1);
    }
    assert_eq!(count.wakes(), 0, "nothing came on the sockets that it waited for");
}

/// Whoever polled last is woken, wherever it runs.
pub fn readiness_moves_between_tasks<R: Runtime>(make: impl Fn() -> R) {
    let runtime = make();
    let (ours, mut theirs) = sockets();
    let mut ready = watch(&runtime, ours);
    runtime.block_on(poll_fn(|cx| {
        assert!(ready.poll_io(cx, Interest::Read, |fd| read(fd, 1)).is_pending());
        Poll::Ready(())
    }));
    let waits = Tally::default();
    let waiting = waits.clone();
    let task = runtime.spawn(async move {
        let byte = poll_fn(|cx| {
            let polled = ready.poll_io(cx, Interest::Read, |fd| read(fd, 1));
            waiting.add();
            polled
        });
        assert_eq!(byte.await.expect("the peer is there"), 1);
        (0..8).for_each(|_| waiting.add());
    });
    runtime.block_on(waits.reaches(1));
    theirs.write_all(&[1]).expect("there is room");
    runtime.block_on(task);
    runtime.block_on(waits.reaches(8));
}
