//! Host memory, sockets and checksums: the kernel's interfaces, made safe.
//!
//! - [`memory`]: anonymous and shared (memfd, sealed) blocks; huge pages with fallback; NUMA where present
//! - [`huge`]: a global allocator that keeps large tables in huge pages
//! - [`map`]: another process's shared block, read only
//! - [`process`]: a peer process and its private memory; [`ring`]: boards through which two processes talk
//! - [`copy`]: copies between blocks, with or without CRC32C, and CRC32C alone
//! - [`net`]: vectored socket I/O straight between a socket and blocks
//! - [`clock`]: the one monotonic clock, and randomness for incarnations

pub mod clock;
pub mod copy;
pub mod huge;
pub mod map;
pub mod memory;
pub mod net;
pub mod process;
pub mod ring;
