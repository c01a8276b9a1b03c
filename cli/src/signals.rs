//! TERM and INT ask for a clean exit; the second one exits at once.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::exit::Failure;

/// A request to stop, made by a signal: a flag to look at, a call that waits, a descriptor to poll.
#[derive(Debug)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    wake: UnixStream,
}

impl Stop {
    /// From now on TERM and INT set the flag instead of ending the process. The second of them ends it with code
    /// 128 + its number. Once a process.
    pub fn install() -> Result<Self, Failure> {
        Self::register().map_err(|error| Failure::new(format_args!("cannot listen for signals: {error}")))
    }

    fn register() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let signal = Arc::new(AtomicUsize::new(0));
        let (wake, waker) = UnixStream::pair()?;
        for number in [SIGTERM, SIGINT] {
            // Handlers run in the order of registration: first look whether this is the second signal.
            flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&asked))?;
            flag::register_usize(number, Arc::clone(&signal), number as usize)?;
            flag::register(number, Arc::clone(&asked))?;
            low_level::pipe::register(number, waker.try_clone()?)?;
        }
        Ok(Self { asked, signal, wake })
    }

    /// From now on the end of standard input counts as TERM: whoever holds its other end went away.
    pub fn also_at_end_of_input(&self) {
        thread::spawn(|| {
            // An error means, too, that nothing more comes.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            low_level::raise(SIGTERM)
        });
    }

    /// Whether a signal came.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The flag itself, for loops on other threads.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// The signal that came; `None` as long as none did.
    pub fn signal(&self) -> Option<&'static str> {
        match self.signal.load(Ordering::Relaxed) as i32 {
            SIGTERM => Some("TERM"),
            SIGINT => Some("INT"),
            _ => None,
        }
    }

    /// Blocks until a signal comes; returns at once if one came before.
    pub fn wait(&self) {
        let mut byte = [0];
        while !self.asked() {
            match (&self.wake).read(&mut byte) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }
}

/// Readable once a signal came (until somebody reads it: ask [`Stop::asked`] first).
impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The only test in this process that raises a signal: a second one would end the process.
    #[test]
    fn a_signal_sets_the_flag_and_wakes() {
        let stop = Stop::install().unwrap();
        assert_eq!((stop.asked(), stop.signal()), (false, None));
        low_level::raise(SIGTERM).unwrap();
        stop.wait();
        assert!(stop.flag().load(Ordering::Relaxed));
        assert_eq!((stop.asked(), stop.signal()), (true, Some("TERM")));
        stop.wait();
    }
}
