//! Checks on the workspace itself: layering, file sizes, features.
#![forbid(unsafe_code)]
