//! The API that an application embeds.
#![forbid(unsafe_code)]
