//! The suite of runtimes over Threads.

use springtide_runtime_suite::runtime_tests;
use springtide_thread::Threads;

runtime_tests!(|| Threads::new_single().unwrap(), || Threads::new_multi(2).unwrap());
