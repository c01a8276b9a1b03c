//! The suite of runtimes over Smol.

use springtide_runtime_suite::runtime_tests;
use springtide_smol::Smol;

runtime_tests!(Smol::new_single, || Smol::new_multi(2).unwrap());
