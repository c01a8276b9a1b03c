use super::*;

fn shared(len: u64) -> Allocation {
    allocate(len, Options { sharing: Sharing::Shared, ..Options::default() }).unwrap()
}

fn map_again(file: BorrowedFd<'_>, protection: ProtFlags) -> Result<(), Errno> {
    // SAFETY: a mapping at an address that the kernel chooses disturbs nothing.
    let base = unsafe { rustix::mm::mmap(null_mut(), 4096, protection, MapFlags::SHARED, file, 0) }?;
    // SAFETY: the mapping was just made and is known to nobody.
    unsafe { rustix::mm::munmap(base, 4096) }.unwrap();
    Ok(())
}

#[test]
fn length_is_what_was_asked_and_bytes_are_zero() {
    for sharing in [Sharing::Private, Sharing::Shared] {
        let got = allocate(5000, Options { sharing, ..Options::default() }).unwrap();
        assert_eq!(got.block.len(), 5000);
        assert_eq!(got.got.sharing, sharing);
        assert_eq!(got.block.to_vec(), [0; 5000]);
        assert!(got.block.span(4999, 2).is_err());
        got.block.write(4999, &[7]).unwrap();
    }
}

#[test]
fn nothing_and_too_much_are_refused() {
    for sharing in [Sharing::Private, Sharing::Shared] {
        for pages in [Pages::Small, Pages::Transparent, Pages::Huge] {
            let options = Options { sharing, pages, ..Options::default() };
            assert_eq!(allocate(0, options).unwrap_err(), MemoryError::Empty);
            assert_eq!(allocate(u64::MAX, options).unwrap_err(), MemoryError::TooLarge);
            assert!(matches!(allocate(1 << 62, options).unwrap_err(), MemoryError::System(_)));
        }
    }
}

#[test]
fn a_sealed_file_is_mapped_for_reading_only() {
    let shared = shared(4096);
    let (file, offset) = shared.block.file().unwrap();
    assert_eq!(offset, 0);
    assert_eq!(map_again(file, ProtFlags::READ), Ok(()));
    assert_eq!(map_again(file, ProtFlags::READ | ProtFlags::WRITE), Err(Errno::PERM));
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    if let Ok(reopened) = std::fs::OpenOptions::new().read(true).write(true).open(path) {
        assert_eq!(map_again(reopened.as_fd(), ProtFlags::READ | ProtFlags::WRITE), Err(Errno::PERM));
    }
}

#[test]
fn a_sealed_file_keeps_its_size_and_its_seals() {
    let shared = shared(4096);
    let (file, _) = shared.block.file().unwrap();
    assert_eq!(rustix::fs::ftruncate(file, 0), Err(Errno::PERM));
    assert_eq!(rustix::fs::ftruncate(file, 8192), Err(Errno::PERM));
    assert_eq!(rustix::io::write(file, b"x"), Err(Errno::PERM));
    assert_eq!(rustix::fs::fcntl_add_seals(file, SealFlags::WRITE), Err(Errno::PERM));
    assert_eq!(rustix::fs::fcntl_get_seals(file).unwrap(), seals());
}

#[test]
fn huge_pages_fall_back_and_say_so() {
    for sharing in [Sharing::Private, Sharing::Shared] {
        let options = Options { sharing, pages: Pages::Huge, ..Options::default() };
        // More than a test machine sets aside: the wish fails, the memory comes.
        let len = 4 << 30;
        let wish = Mapping::create(len, sharing, Pages::Huge).is_ok();
        let got = allocate(len, options).unwrap();
        assert_eq!(got.got.pages == Pages::Huge, wish);
        assert_eq!(got.got.page_size == HUGE_PAGE, wish);
        got.block.write(len - 1, &[1]).unwrap();
        // A small wish may be met or not; either way the report and the memory agree.
        let got = allocate(100, options).unwrap();
        assert_eq!(got.got.page_size == HUGE_PAGE, got.got.pages == Pages::Huge);
        assert_eq!(got.block.len(), 100);
    }
}

#[test]
fn a_node_that_is_not_there_is_noted() {
    for node in [1000, 5000, u32::MAX] {
        let got = allocate(4096, Options { numa: Some(node), ..Options::default() }).unwrap();
        assert_eq!(got.got.numa, None);
    }
    let got = allocate(4096, Options { numa: Some(0), ..Options::default() }).unwrap();
    assert_eq!(got.got.numa.is_some(), std::path::Path::new("/sys/devices/system/node/node0").exists());
}

#[test]
fn prefault_and_its_fallback_make_pages_present() {
    let resident = |block: &Block| {
        let mut pages = [0u8; 16];
        // SAFETY: the range is the block's own sixteen pages, and `pages` has one byte for each.
        let result =
            unsafe { libc::mincore(block.base().as_ptr().cast(), block.len() as usize, pages.as_mut_ptr()) };
        assert_eq!(result, 0);
        pages.iter().filter(|&&page| page & 1 == 1).count()
    };
    let len = 16 * small_page();
    let lazy = allocate(len, Options::default()).unwrap();
    assert_eq!(resident(&lazy.block), 0);
    let eager = allocate(len, Options { prefault: Prefault::Yes, ..Options::default() }).unwrap();
    assert_eq!(resident(&eager.block), 16);
    let mapping = Mapping::create(len, Sharing::Private, Pages::Small).unwrap();
    mapping.touch();
    assert_eq!(resident(&Block::new(Arc::new(mapping))), 16);
}

#[test]
fn adopted_memory_keeps_its_keeper() {
    let bytes = Box::into_raw(Box::new([3u8; 10]));
    let address = NonNull::new(bytes).expect("a box is somewhere").cast();
    let keeper: Arc<dyn Any + Send + Sync> = Arc::new(());
    // SAFETY: the bytes stay until the end of this test, and nobody refers to them meanwhile.
    let block = unsafe { adopt(address, 10, keeper.clone()) };
    assert_eq!(Arc::strong_count(&keeper), 2);
    block.write(0, &[4]).unwrap();
    assert_eq!(block.to_vec(), [4, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
    drop(block);
    assert_eq!(Arc::strong_count(&keeper), 1);
    // SAFETY: they came from a box, and the block that used them is gone.
    drop(unsafe { Box::from_raw(bytes) });
}
