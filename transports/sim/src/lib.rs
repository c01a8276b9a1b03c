//! A transport without a network, and a fault decorator for any transport.
#![forbid(unsafe_code)]
