//! Anonymous and shared memory as blocks, with huge pages, NUMA and prefault where the system has them.
//!
//! Shared memory is a memfd that is sealed once its owner has mapped it: it can neither shrink (a reader would be
//! killed by a bus error) nor be mapped or opened for writing by anybody else.

use core::any::Any;
use core::fmt;
use core::ptr::{NonNull, null_mut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use springtide_core::error::Code;
use springtide_hal::{Backing, Block, MemoryKind};

/// Size of an explicit huge page, in bytes.
pub const HUGE_PAGE: u64 = 2 << 20;

/// Whether other processes can map the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sharing {
    /// This process alone.
    #[default]
    Private,
    /// A sealed memfd: others can map it, read only.
    Shared,
}

/// What pages the memory is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pages {
    /// The system's ordinary pages.
    #[default]
    Small,
    /// Ordinary pages that the system may join into huge ones when it can.
    Transparent,
    /// Explicit huge pages of [`HUGE_PAGE`] bytes; `Transparent` if the system has none to give.
    Huge,
}

/// Whether all pages are made present before the memory is handed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Prefault {
    /// At first touch.
    #[default]
    No,
    /// Now; costs about 0.1 to 0.5 s a GiB.
    Yes,
}

/// What to allocate. The default is private memory of small pages, touched lazily, anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Who can map it.
    pub sharing: Sharing,
    /// What pages are wished for.
    pub pages: Pages,
    /// The NUMA node that is preferred.
    pub numa: Option<u32>,
    /// When pages are made present.
    pub prefault: Prefault,
}

/// What was really obtained.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Obtained {
    /// What pages it is made of. `Transparent` says that the system took the advice, not that it acted on it.
    pub pages: Pages,
    /// Smallest page, in bytes.
    pub page_size: u64,
    /// The preferred NUMA node; `None` if none was asked for or the system refused it.
    pub numa: Option<u32>,
    /// Who can map it. `Shared` memory is always sealed.
    pub sharing: Sharing,
}

/// Fresh memory, all zero.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// The memory; it is given back with the last clone.
    pub block: Block,
    /// Where it differs from what was asked for.
    pub got: Obtained,
}

/// Why there is no memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryError {
    /// Zero bytes were asked for.
    Empty,
    /// More bytes than can be addressed.
    TooLarge,
    /// The system refused; its error number.
    System(i32),
}

impl MemoryError {
    /// The public number.
    pub const fn code(self) -> Code {
        match self {
            Self::Empty | Self::TooLarge => Code::INVALID_PARAMS,
            Self::System(_) => Code::NO_AVAILABLE_HANDLE,
        }
    }
}

impl From<Errno> for MemoryError {
    fn from(errno: Errno) -> Self {
        Self::System(errno.raw_os_error())
    }
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("memory of zero bytes was asked for; ask for at least one"),
            Self::TooLarge => f.write_str("more memory was asked for than can be addressed"),
            Self::System(errno) => {
                write!(f, "the system gives no memory: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl core::error::Error for MemoryError {}

/// Allocates `len` bytes, all zero. Explicit huge pages and the NUMA node are wishes: `got` says what came of them.
/// Rounds up to whole pages inside; the block is exactly `len` bytes.
pub fn allocate(len: u64, options: Options) -> Result<Allocation, MemoryError> {
    if len == 0 {
        return Err(MemoryError::Empty);
    }
    let (mapping, pages) = match options.pages {
        Pages::Huge => match Mapping::create(len, options.sharing, Pages::Huge) {
            Ok(mapping) => (mapping, Pages::Huge),
            Err(MemoryError::TooLarge) => return Err(MemoryError::TooLarge),
            Err(_) => (Mapping::create(len, options.sharing, Pages::Small)?, Pages::Transparent),
        },
        wished => (Mapping::create(len, options.sharing, Pages::Small)?, wished),
    };
    let pages = match pages {
        Pages::Transparent if mapping.advise(Advice::LinuxHugepage).is_err() => Pages::Small,
        pages => pages,
    };
    let numa = options.numa.filter(|&node| mapping.prefer_node(node));
    if options.prefault == Prefault::Yes {
        mapping.populate()?;
    }
    let page_size = if pages == Pages::Huge { HUGE_PAGE } else { small_page() };
    let got = Obtained { pages, page_size, numa, sharing: options.sharing };
    Ok(Allocation { block: Block::new(Arc::new(mapping)), got })
}

/// Makes memory that the caller holds into a block, without copying it. It stays alive as long as `keep` does.
///
/// # Safety
/// `address .. address + len` must stay mapped, readable and writable until `keep` is dropped, and nobody may hold a
/// reference into it while a transfer stores there.
pub unsafe fn adopt(address: NonNull<u8>, len: u64, keep: Arc<dyn Any + Send + Sync>) -> Block {
    Block::new(Arc::new(Adopted { address, len, _keep: keep }))
}

struct Adopted {
    address: NonNull<u8>,
    len: u64,
    _keep: Arc<dyn Any + Send + Sync>,
}

// SAFETY: `adopt`'s caller promised that the bytes stay as long as `keep`, which lives here.
unsafe impl Backing for Adopted {
    fn base(&self) -> NonNull<u8> {
        self.address
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }
}

// SAFETY: it is an address and a keeper that is itself `Send`; all access goes through copies of raw memory.
unsafe impl Send for Adopted {}
// SAFETY: as for `Send`.
unsafe impl Sync for Adopted {}

/// A mapping of our own, whole pages.
struct Mapping {
    base: NonNull<u8>,
    /// What was asked for.
    len: u64,
    /// What is mapped: `len` in whole pages.
    mapped: usize,
    file: Option<OwnedFd>,
}

impl Mapping {
    fn create(len: u64, sharing: Sharing, pages: Pages) -> Result<Self, MemoryError> {
        let page = if pages == Pages::Huge { HUGE_PAGE } else { small_page() };
        let whole = len.checked_next_multiple_of(page).filter(|&whole| whole <= isize::MAX as u64);
        let mapped = whole.ok_or(MemoryError::TooLarge)? as usize;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let (base, file) = match sharing {
            Sharing::Private => {
                let huge = MapFlags::HUGETLB | MapFlags::HUGE_2MB;
                let flags = if pages == Pages::Huge { MapFlags::PRIVATE | huge } else { MapFlags::PRIVATE };
                // SAFETY: a new anonymous mapping at an address that the kernel chooses disturbs nothing.
                (unsafe { rustix::mm::mmap_anonymous(null_mut(), mapped, protection, flags) }?, None)
            }
            Sharing::Shared => {
                let file = memory_file(mapped as u64, pages)?;
                // SAFETY: as above; the file is new and ours alone.
                let base =
                    unsafe { rustix::mm::mmap(null_mut(), mapped, protection, MapFlags::SHARED, &file, 0) }?;
                (base, Some(file))
            }
        };
        let base = NonNull::new(base.cast()).ok_or(MemoryError::TooLarge)?;
        let mapping = Self { base, len, mapped, file };
        if let Some(file) = &mapping.file {
            // Only now: a file that refuses future writable mappings would refuse ours too.
            rustix::fs::fcntl_add_seals(file, seals())?;
        }
        Ok(mapping)
    }

    fn advise(&self, advice: Advice) -> Result<(), Errno> {
        // SAFETY: the range is our own mapping, and none of the advices used here changes what it holds.
        unsafe { rustix::mm::madvise(self.base.as_ptr().cast(), self.mapped, advice) }
    }

    /// Asks for pages of NUMA node `node`, if it has room; says whether the system agreed.
    fn prefer_node(&self, node: u32) -> bool {
        const PREFERRED: libc::c_ulong = 1;
        const BITS: u32 = libc::c_ulong::BITS;
        let mut mask: [libc::c_ulong; 16] = [0; 16];
        let Some(word) = mask.get_mut((node / BITS) as usize) else { return false };
        *word = 1 << (node % BITS);
        let bits = libc::c_ulong::from(BITS) * mask.len() as libc::c_ulong;
        // SAFETY: the range is our own mapping and the mask has `bits` bits; only where future pages come from changes.
        let result = unsafe {
            libc::syscall(libc::SYS_mbind, self.base.as_ptr(), self.mapped, PREFERRED, mask.as_ptr(), bits, 0)
        };
        result == 0
    }

    fn populate(&self) -> Result<(), MemoryError> {
        match self.advise(Advice::LinuxPopulateWrite) {
            Ok(()) => Ok(()),
            // Kernels before 5.14 do not know the advice.
            Err(Errno::INVAL) => {
                self.touch();
                Ok(())
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Makes every page present by storing into it. Only for fresh memory, which holds zeros.
    fn touch(&self) {
        for at in (0..self.mapped).step_by(small_page() as usize) {
            // SAFETY: `at` lies inside the mapping.
            let page = unsafe { self.base.add(at) };
            // SAFETY: the page is mapped for writing, fresh, and known to nobody else yet.
            unsafe { page.write_volatile(0) };
        }
    }
}

// SAFETY: the mapping is readable and writable and stays until `drop`.
unsafe impl Backing for Mapping {
    fn base(&self) -> NonNull<u8> {
        self.base
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn kind(&self) -> MemoryKind {
        if self.file.is_some() { MemoryKind::Shared } else { MemoryKind::Host }
    }
    fn file(&self) -> Option<(BorrowedFd<'_>, u64)> {
        self.file.as_ref().map(|file| (file.as_fd(), 0))
    }
}

// SAFETY: it owns its mapping; all access goes through copies of raw memory.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is exactly our own mapping, and its last user is this value.
        let result = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.mapped) };
        debug_assert!(result.is_ok(), "unmapping our own memory: {result:?}");
    }
}

fn memory_file(len: u64, pages: Pages) -> Result<OwnedFd, MemoryError> {
    let ordinary = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let huge = MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
    let flags = if pages == Pages::Huge { ordinary | huge } else { ordinary };
    let file = rustix::fs::memfd_create("springtide", flags)?;
    rustix::fs::ftruncate(&file, len)?;
    Ok(file)
}

/// Neither smaller nor larger, and nobody but who has it mapped already may ever store; for good.
fn seals() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL
}

fn small_page() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests;
