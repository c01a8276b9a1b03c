//! The suite of runtimes over Tokio.

use springtide_runtime_suite::runtime_tests;
use springtide_tokio::Tokio;

runtime_tests!(|| Tokio::new_single().unwrap(), || Tokio::new_multi(2).unwrap());
