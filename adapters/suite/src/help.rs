//! What several rules need.

use core::future::{Future, poll_fn};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Poll, Waker};
use core::time::Duration;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

/// How long a rule waits for what must come. Only a broken runtime makes it wait that long.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Two connected, non-blocking sockets.
pub(crate) fn sockets() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("two descriptors");
    ours.set_nonblocking(true).expect("a socket");
    theirs.set_nonblocking(true).expect("a socket");
    (ours, theirs)
}

/// Lets other tasks run once.
pub(crate) fn yield_now() -> impl Future<Output = ()> + Send {
    let mut yielded = false;
    poll_fn(move |cx| {
        if core::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Waits for every task.
pub(crate) async fn all(tasks: impl IntoIterator<Item: Future<Output = ()>>) {
    for task in tasks {
        task.await;
    }
}

/// What a thread waits for; fails instead of hanging.
pub(crate) fn receive<T>(receiver: &Receiver<T>, what: &str) -> T {
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Waits until every sender is gone.
pub(crate) fn disconnected<T>(receiver: &Receiver<T>, what: &str) {
    match receiver.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Disconnected) => {}
        Err(RecvTimeoutError::Timeout) => panic!("{what}: still there"),
        Ok(_) => panic!("{what}: something was sent"),
    }
}

/// Counts its wakes.
#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn waker() -> (Arc<Self>, Waker) {
        let count = Arc::new(Self::default());
        (Arc::clone(&count), Waker::from(count))
    }

    pub(crate) fn wakes(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A number that futures wait for.
#[derive(Clone, Default)]
pub(crate) struct Tally(Arc<Mutex<(usize, Vec<Waker>)>>);

impl Tally {
    pub(crate) fn add(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += 1;
        let wakers = core::mem::take(&mut state.1);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn reaches(&self, target: usize) -> impl Future<Output = ()> + Send + use<> {
        let state = Arc::clone(&self.0);
        poll_fn(move |cx| {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.0 >= target {
                return Poll::Ready(());
            }
            state.1.push(cx.waker().clone());
            Poll::Pending
        })
    }
}
