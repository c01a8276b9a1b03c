//! What commands print: figures as tables for people and JSON for programs.

pub mod evict;
pub mod measure;
pub mod objects;
pub mod replay;
pub mod status;
