//! Calling: many requests in flight on one connection that comes back by itself.

mod call;
mod config;
mod connection;
mod error;
mod link;
mod table;

pub use call::{Ask, Call, Remote, Reply};
pub use config::{ClientConfig, Hello, WhileDown};
pub use connection::{Connection, Standing};
pub use error::{CallError, Reason};
pub use table::{Answer, RequestId, Table};
