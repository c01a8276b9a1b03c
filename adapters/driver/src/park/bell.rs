//! What a sleeping thread hears: an eventfd beside other descriptors; under loom, a flag of loom's and none of those.

#[cfg(not(loom))]
pub(super) use eventfd::Bell;
#[cfg(loom)]
pub(super) use modelled::Bell;

#[cfg(not(loom))]
mod eventfd {
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use springtide_core::time::Instant;

    /// How long to sleep at most without an eventfd.
    const BLIND: i64 = 1_000_000;

    /// `None` when the process had no descriptor left; the owner then sleeps a millisecond at a time.
    #[derive(Debug)]
    pub(in super::super) struct Bell(Option<OwnedFd>);

    impl Bell {
        pub(in super::super) fn new() -> Self {
            Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok())
        }

        /// Whether it can be rung.
        pub(in super::super) const fn works(&self) -> bool {
            self.0.is_some()
        }

        /// Ends the sleep under way, or the next one.
        pub(in super::super) fn ring(&self) {
            if let Some(event) = &self.0 {
                // Fails only when the counter is full, and then the sleeper is awake.
                let _ = rustix::io::write(event, &1u64.to_ne_bytes());
            }
        }

        /// Sleeps until somebody rings, one of `fds` is readable, or `until` has come. What `awake` does comes between
        /// waking up and quietening the bell.
        pub(in super::super) fn sleep(
            &self,
            fds: &[BorrowedFd<'_>],
            now: Instant,
            until: Instant,
            awake: impl FnOnce(),
        ) {
            let own = self.0.as_ref().map(AsFd::as_fd);
            let all = own.iter().chain(fds);
            let mut polled: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
            // An error here (a signal) is a wake-up without a reason, which every caller bears.
            let _ = poll(&mut polled, timeout(now, until, own.is_none()).as_ref());
            awake();
            if let Some(event) = own.filter(|_| !polled[0].revents().is_empty()) {
                let _ = rustix::io::read(event, &mut [0; 8]);
            }
        }
    }

    fn timeout(now: Instant, until: Instant, blind: bool) -> Option<Timespec> {
        let left = until.since(now);
        let (tv_sec, tv_nsec) = (left.as_secs() as i64, i64::from(left.subsec_nanos()));
        match (blind, until == Instant::NEVER) {
            (true, _) => {
                Some(Timespec { tv_sec: 0, tv_nsec: if tv_sec > 0 { BLIND } else { tv_nsec.min(BLIND) } })
            }
            (false, true) => None,
            (false, false) => Some(Timespec { tv_sec, tv_nsec }),
        }
    }
}

#[cfg(loom)]
mod modelled {
    use std::os::fd::BorrowedFd;

    use loom::sync::{Condvar, Mutex};
    use springtide_core::time::Instant;

    /// A counter that a sleeper waits for, as an eventfd is.
    #[derive(Debug)]
    pub(in super::super) struct Bell(Mutex<bool>, Condvar);

    impl Bell {
        pub(in super::super) fn new() -> Self {
            Self(Mutex::new(false), Condvar::new())
        }

        pub(in super::super) const fn works(&self) -> bool {
            // Kept by a thread from model to model, it would be of another model.
            false
        }

        pub(in super::super) fn ring(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }

        pub(in super::super) fn sleep(
            &self,
            _fds: &[BorrowedFd<'_>],
            _now: Instant,
            _until: Instant,
            awake: impl FnOnce(),
        ) {
            let mut rung = self.0.lock().unwrap();
            while !*rung {
                rung = self.1.wait(rung).unwrap();
            }
            drop(rung);
            awake();
            *self.0.lock().unwrap() = false;
        }
    }
}
