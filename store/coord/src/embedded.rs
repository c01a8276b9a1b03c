//! The coordinator for one master on one machine: a directory.

use core::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use springtide_core::id::Term;
use springtide_hal_host::clock;

const LOCK: &str = "lock";
const EPOCH: &str = "epoch";
const FORMAT: &str = "springtide-epoch 1";

/// Leadership over one directory, held until this value is dropped or the process dies.
#[derive(Debug)]
pub struct Embedded {
    _lock: File,
    term: Term,
    cluster: u64,
}

/// Why leadership could not be had.
#[derive(Debug)]
pub enum CoordError {
    /// Another master holds the directory; its process id, if it wrote one.
    Held(PathBuf, Option<u32>),
    /// The epoch file is not one; nothing was changed.
    Damaged(PathBuf),
    /// The directory or a file in it cannot be used.
    Io(PathBuf, io::Error),
}

impl fmt::Display for CoordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(path, Some(pid)) => {
                write!(
                    f,
                    "another master (process {pid}) holds {}; stop it, or give this one a --state of its own",
                    path.display()
                )
            }
            Self::Held(path, None) => {
                write!(
                    f,
                    "another master holds {}; stop it, or give this one a --state of its own",
                    path.display()
                )
            }
            Self::Damaged(path) => {
                write!(
                    f,
                    "{} is damaged; move it away only if no node of this cluster is running",
                    path.display()
                )
            }
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl core::error::Error for CoordError {}

impl Embedded {
    /// Becomes master over `directory`, creating it if it is not there. The new term is on disk when this returns.
    pub fn open(directory: &Path) -> Result<Self, CoordError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| CoordError::Io(path, error)
        };
        fs::create_dir_all(directory).map_err(io(directory))?;
        let lock_path = directory.join(LOCK);
        let mut lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&lock_path)
            .map_err(io(&lock_path))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                let pid = lock.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(CoordError::Held(lock_path, pid));
            }
            Err(errno) => return Err(CoordError::Io(lock_path, errno.into())),
        }
        lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id())).map_err(io(&lock_path))?;

        let epoch_path = directory.join(EPOCH);
        let (epoch, cluster) = match fs::read_to_string(&epoch_path) {
            Ok(text) => parse(&text).ok_or_else(|| CoordError::Damaged(epoch_path.clone()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => (0, clock::incarnation().0 as u64 | 1),
            Err(error) => return Err(CoordError::Io(epoch_path, error)),
        };
        let next = epoch.checked_add(1).ok_or_else(|| CoordError::Damaged(epoch_path.clone()))?;
        write_durably(directory, &epoch_path, &format!("{FORMAT}\n{next}\n{cluster}\n"))
            .map_err(io(&epoch_path))?;
        Ok(Self { _lock: lock, term: Term(next), cluster })
    }

    /// This leadership's term: higher than every earlier one of the directory.
    pub const fn term(&self) -> Term {
        self.term
    }

    /// The cluster's id, never zero, drawn when the directory was first used.
    pub const fn cluster(&self) -> u64 {
        self.cluster
    }
}

fn parse(text: &str) -> Option<(u64, u64)> {
    let mut lines = text.lines();
    if lines.next()? != FORMAT {
        return None;
    }
    let epoch = lines.next()?.parse().ok()?;
    let cluster = lines.next()?.parse().ok().filter(|&id| id != 0)?;
    Some((epoch, cluster))
}

/// Replaces `path` so that a crash leaves the old or the new text, never a mixture.
fn write_durably(directory: &Path, path: &Path, text: &str) -> io::Result<()> {
    let new = directory.join("epoch.new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            Self(std::env::temp_dir().join(format!("springtide-coord-{}", clock::incarnation())))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn terms_grow_and_the_cluster_stays() {
        let scratch = Scratch::new();
        let first = Embedded::open(&scratch.0).unwrap();
        let (term, cluster) = (first.term(), first.cluster());
        drop(first);
        let second = Embedded::open(&scratch.0).unwrap();
        assert_eq!(second.term(), Term(term.0 + 1));
        assert_eq!(second.cluster(), cluster);
    }

    #[test]
    fn a_second_master_is_refused_and_told_who_holds() {
        let scratch = Scratch::new();
        let _first = Embedded::open(&scratch.0).unwrap();
        let error = Embedded::open(&scratch.0).unwrap_err();
        assert!(matches!(error, CoordError::Held(_, Some(pid)) if pid == std::process::id()), "{error}");
    }

    #[test]
    fn a_damaged_epoch_is_refused_and_kept() {
        let scratch = Scratch::new();
        drop(Embedded::open(&scratch.0).unwrap());
        let path = scratch.0.join(EPOCH);
        for damage in
            ["", "springtide-epoch 1\nx\n1\n", "springtide-epoch 1\n1\n0\n", "springtide-epoch 9\n1\n1\n"]
        {
            fs::write(&path, damage).unwrap();
            assert!(matches!(Embedded::open(&scratch.0), Err(CoordError::Damaged(_))));
            assert_eq!(fs::read_to_string(&path).unwrap(), damage);
        }
    }
}
