//! Remote procedure calls: connections, deadlines, servers.
#![forbid(unsafe_code)]
