//! Another process's shared memory, mapped read only.
//!
//! A [`View`] is not a block: nothing can be stored through it. Only files that are sealed against shrinking are
//! mapped, since a peer that truncates its file would end this process with a bus error.

use core::fmt;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::AtomicU64;
use std::os::fd::AsFd;

use rustix::fs::SealFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use springtide_hal::{OutOfBounds, Span};

/// Why a file was not mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// It can still shrink, or is no memory file at all.
    Unsealed,
    /// It holds fewer bytes than it should.
    TooShort,
    /// The system refused; its error number.
    System(i32),
}

impl From<Errno> for MapError {
    fn from(errno: Errno) -> Self {
        Self::System(errno.raw_os_error())
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsealed => f.write_str("the peer's memory is not sealed against shrinking"),
            Self::TooShort => f.write_str("the peer's memory is shorter than it said"),
            Self::System(errno) => write!(f, "mapping failed: {}", std::io::Error::from_raw_os_error(*errno)),
        }
    }
}

impl core::error::Error for MapError {}

/// Memory that another process stores into and this one only reads.
#[derive(Debug)]
pub struct View {
    base: NonNull<u8>,
    len: usize,
}

impl View {
    /// Maps all of `file`, which stays mapped when its owner dies. At least `least` bytes must be there.
    pub fn map(file: impl AsFd, least: u64) -> Result<Self, MapError> {
        match rustix::fs::fcntl_get_seals(&file) {
            Ok(seals) if seals.contains(SealFlags::SHRINK) => {}
            Ok(_) | Err(Errno::INVAL) => return Err(MapError::Unsealed),
            Err(errno) => return Err(errno.into()),
        }
        let size = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
        if size == 0 || size < least || size > isize::MAX as u64 {
            return Err(MapError::TooShort);
        }
        let len = size as usize;
        // SAFETY: a new mapping at an address that the kernel chooses disturbs nothing; the file cannot shrink.
        let base = unsafe { rustix::mm::mmap(null_mut(), len, ProtFlags::READ, MapFlags::SHARED, &file, 0) }?;
        Ok(Self { base: NonNull::new(base.cast()).ok_or(MapError::TooShort)?, len })
    }

    /// How many bytes.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies the bytes from `at` on over all of `to`. Bytes that the owner stores meanwhile may be old or new.
    pub fn copy_to(&self, at: u64, to: Span<'_>) -> Result<(), OutOfBounds> {
        let from = self.check(at, to.len())?;
        // SAFETY: `from` has `to.len()` mapped bytes (checked), `to` lies inside a live block. `copy` allows overlap,
        // which would need the block to be mapped here twice.
        unsafe { core::ptr::copy(from.as_ptr(), to.address().as_ptr(), to.len() as usize) };
        Ok(())
    }

    /// Copies the bytes from `at` on over all of `bytes`.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), OutOfBounds> {
        let from = self.check(at, bytes.len() as u64)?;
        // SAFETY: `from` has as many mapped bytes as `bytes` (checked), and a slice of ours is no part of a view.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    /// The eight bytes at word `index`, to be loaded only.
    pub(crate) fn word(&self, index: usize) -> Result<&AtomicU64, OutOfBounds> {
        let at = (index as u64).checked_mul(8).ok_or(OutOfBounds)?;
        let word = self.check(at, 8)?;
        // SAFETY: the word is mapped as long as `self`, aligned (a mapping starts at a page), and every process that
        // stores there does so atomically or harms only itself; crate-internal users only load, which needs no right
        // to write.
        Ok(unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) })
    }

    fn check(&self, at: u64, len: u64) -> Result<NonNull<u8>, OutOfBounds> {
        match at.checked_add(len) {
            // SAFETY: `at` is at most the mapping's length, so the result is inside it or one past its end.
            Some(end) if end <= self.len as u64 => Ok(unsafe { self.base.add(at as usize) }),
            _ => Err(OutOfBounds),
        }
    }
}

// SAFETY: it owns its mapping; all access goes through copies of raw memory and atomic loads.
unsafe impl Send for View {}
// SAFETY: as for `Send`.
unsafe impl Sync for View {}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: the range is exactly our own mapping, and its last user is this value.
        let result = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok(), "unmapping our own view: {result:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Options, Sharing, allocate};
    use rustix::fs::MemfdFlags;
    use springtide_hal::Block;

    fn shared(len: u64) -> Block {
        allocate(len, Options { sharing: Sharing::Shared, ..Options::default() }).unwrap().block
    }

    #[test]
    fn sees_what_the_owner_stores_and_outlives_it() {
        let owner = shared(10_000);
        let view = View::map(owner.file().unwrap().0, 10_000).unwrap();
        owner.write(9_990, b"0123456789").unwrap();
        let mine = Block::from(vec![0xee; 12]);
        view.copy_to(9_990, mine.span(1, 10).unwrap()).unwrap();
        assert_eq!(mine.to_vec(), b"\xee0123456789\xee");
        drop(owner);
        let mut bytes = [0; 4];
        view.read(9_996, &mut bytes).unwrap();
        assert_eq!(&bytes, b"6789");
    }

    #[test]
    fn nothing_is_read_outside() {
        let owner = shared(4096);
        let view = View::map(owner.file().unwrap().0, 1).unwrap();
        let mine = Block::from(vec![0; 16]);
        let all = mine.span(0, 16).unwrap();
        assert_eq!(view.copy_to(view.len() - 15, all), Err(OutOfBounds));
        assert_eq!(view.copy_to(u64::MAX, all), Err(OutOfBounds));
        assert_eq!(view.read(view.len(), &mut [0]), Err(OutOfBounds));
        assert_eq!(view.word(usize::MAX).err(), Some(OutOfBounds));
        assert_eq!(view.word(512).err(), Some(OutOfBounds));
        assert_eq!(view.copy_to(view.len() - 16, all), Ok(()));
    }

    #[test]
    fn files_that_may_shrink_are_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("unsealed", flags).unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        assert_eq!(View::map(&file, 1).unwrap_err(), MapError::Unsealed);
        rustix::fs::fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        assert_eq!(View::map(&file, 1).unwrap_err(), MapError::Unsealed);
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        assert_eq!(View::map(&file, 4097).unwrap_err(), MapError::TooShort);
        assert!(View::map(&file, 4096).is_ok());
        let disk = std::fs::File::open("/proc/self/exe").unwrap();
        assert_eq!(View::map(&disk, 1).unwrap_err(), MapError::Unsealed);
        let (pipe, _other) = rustix::pipe::pipe().unwrap();
        assert_eq!(View::map(&pipe, 1).unwrap_err(), MapError::Unsealed);
    }
}
