//! Closing a client ends in time, whoever drives its connections.

use core::time::Duration;
use std::sync::mpsc;

use springtide::{
    Blocking, ClientConfig, Master, MasterConfig, NodeConfig, PutOptions, Runtime, Shutdown, Tokio,
    Transports, lend, transports,
};

/// A blocking client holds extents granted ahead, which go back when it closes. Closed from the asynchronous face, nobody
/// drives the connection that they would go back over: the close must end all the same.
#[test]
fn a_blocking_client_closed_by_a_task_does_not_hang() {
    let runtime = Tokio::new_multi(2).unwrap();
    let stop = Shutdown::new();
    let listen = "127.0.0.1:0".parse().unwrap();
    let master = Master::bind(MasterConfig { listen, ..MasterConfig::default() }).unwrap();
    let address = master.local_addr();
    let (handle, stopping) = (runtime.clone(), stop.clone());
    drop(runtime.spawn(async move { master.run(handle, stopping).await.unwrap() }));
    let node = lend(&NodeConfig::new([address], 16 << 20), runtime.clone()).unwrap();
    let (standing, stopping) = (node.standing(), stop.clone());
    drop(runtime.spawn(async move { node.run(stopping).await.unwrap() }));
    runtime.block_on(standing.settled());

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
