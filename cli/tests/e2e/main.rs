//! The pool end to end: real masters and nodes as processes, real sockets, real memory.

mod proxy;
mod raw;
mod support;

mod addresses;
mod batches;
mod cases;
mod faults;
mod keys;
mod listing;
mod parts;
mod ranges;
mod restarts;
mod room;
mod stop;
mod wire;
mod writers;
