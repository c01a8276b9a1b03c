//! Closing a client ends in time, whoever drives its connections.

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::mpsc;

use springtide::{
    Blocking, ClientConfig, Master, MasterConfig, NodeConfig, PutOptions, Runtime, Shutdown, Tokio,
    Transports, connect, lend, transports,
};

/// A master and a node, served until `stop` begins.
fn pool(runtime: &Tokio, stop: &Shutdown) -> SocketAddr {
    let listen = "127.0.0.1:0".parse().unwrap();
    let master = Master::bind(MasterConfig { listen, ..MasterConfig::default() }).unwrap();
    let address = master.local_addr();
    let (handle, stopping) = (runtime.clone(), stop.clone());
    drop(runtime.spawn(async move { master.run(handle, stopping).await.unwrap() }));
    let node = lend(&NodeConfig::new([address], 16 << 20), runtime.clone()).unwrap();
    let (standing, stopping) = (node.standing(), stop.clone());
    drop(runtime.spawn(async move { node.run(stopping).await.unwrap() }));
    runtime.block_on(standing.settled());
    address
}

/// The runtime of a blocking client often goes with it, so nobody takes leave in the background. Without the leave the
/// extents that it holds ahead would be lost to the pool until its time to live ends.
#[test]
fn a_blocking_client_that_is_dropped_takes_leave() {
    let (runtime, stop) = (Tokio::new_multi(2).unwrap(), Shutdown::new());
    let address = pool(&runtime, &stop);
    let looker = runtime.block_on(connect(ClientConfig::new([address]), runtime.clone())).unwrap();
    let look = || {
        runtime.block_on(async {
            let mut members = 0;
            looker.members(|_| members += 1).await.unwrap();
            (members, looker.figures().await.unwrap().used)
        })
    };
    assert_eq!(look(), (2, 0));

    let (_, opened) = transports(&Transports::default()).unwrap();
    let own = Tokio::new_multi(1).unwrap();
    let blocking = Blocking::connect(ClientConfig::new([address]), own, opened).unwrap();
    for n in 0..16 {
        blocking.put(format!("k{n}").as_bytes(), &[n; 4_096], &PutOptions::default()).unwrap();
    }
    let other = blocking.clone();
    drop(blocking);
    assert!(other.exists(b"k3").unwrap(), "other handles go on");
    let (members, used) = look();
    assert!(members == 3 && used > 16 * 4_096, "some extents are held ahead: {used}");
    drop(other);
    assert_eq!(look(), (2, 16 * 4_096));
    runtime.block_on(looker.close());
    stop.begin();
}

/// A blocking client holds extents granted ahead, which go back when it closes. Closed from the asynchronous face, nobody
/// drives the connection that they would go back over: the close must end all the same.
#[test]
fn a_blocking_client_closed_by_a_task_does_not_hang() {
    let (runtime, stop) = (Tokio::new_multi(2).unwrap(), Shutdown::new());
    let address = pool(&runtime, &stop);
    let (_, opened) = transports(&Transports::default()).unwrap();
    let blocking = Blocking::connect(ClientConfig::new([address]), runtime.clone(), opened).unwrap();
    for n in 0..16 {
        blocking.put(format!("k{n}").as_bytes(), &[n; 4_096], &PutOptions::default()).unwrap();
    }
    let (tell, hear) = mpsc::channel();
    let (client, handle) = (blocking.client().clone(), runtime.clone());
    let closing = std::thread::spawn(move || {
        handle.block_on(client.close());
        tell.send(()).unwrap();
    });
    hear.recv_timeout(Duration::from_secs(10)).expect("closing takes two seconds at most");
    closing.join().unwrap();
    stop.begin();
}
