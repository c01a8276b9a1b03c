//! A server without descriptors. Alone in its program, as it takes them from the whole process.

mod common;

use core::time::Duration;
use std::fs::File;
use std::io::{Read, Write};

use common::{ECHO, Server, request};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use springtide_core::wire::frame::HEADER;
use springtide_driver::{block_on, now};
use springtide_rpc::ServerConfig;

fn processor_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

#[test]
fn without_descriptors_a_server_waits_instead_of_spinning() {
    let server = Server::start(ServerConfig::default());
    assert!(server.is_alive());
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(100), ..limit }).unwrap();
    // The last descriptor goes to our end of a connection; the server has none for its own.
    let mut all: Vec<_> = core::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    drop(all.pop().expect("some were free"));
    let mut stream = server.plain();
    stream.write_all(&request(ECHO, 1, b"")).unwrap();
    let before = processor_time();
    let moment = now() + Duration::from_millis(300);
    let _ = block_on(&[], moment, core::future::pending::<()>());
    assert!(processor_time() - before < Duration::from_millis(150));
    drop(all);
    assert_eq!(stream.read(&mut [0; 64]).unwrap(), HEADER);
}
