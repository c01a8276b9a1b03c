//! Three runtimes in one process: a master on tokio, a node on smol, clients on plain threads and on both others.

use springtide::{
    ClientConfig, Master, MasterConfig, NodeConfig, PutOptions, Runtime, Shutdown, Smol, Threads, Tokio,
    connect, lend,
};

/// Puts `value` under the runtime's name, and closes.
fn put<R: Runtime>(runtime: &R, config: ClientConfig, name: &str, value: &[u8]) {
    runtime.block_on(async {
        let client = connect(config, runtime.clone()).await.unwrap();
        client.put(name.as_bytes(), value, &PutOptions::default()).await.unwrap();
        client.close().await;
    });
}

#[test]
fn a_master_a_node_and_clients_on_three_runtimes() {
    let (tokio, smol) = (Tokio::new_multi(1).unwrap(), Smol::new_multi(1).unwrap());
    let (threads, stop) = (Threads::new_single().unwrap(), Shutdown::new());
    let listen = "127.0.0.1:0".parse().unwrap();
    let master = Master::bind(MasterConfig { listen, ..MasterConfig::default() }).unwrap();
    let config = ClientConfig::new([master.local_addr()]);
    let (handle, stopping) = (tokio.clone(), stop.clone());
    let serving = tokio.spawn(async move { master.run(handle, stopping).await.unwrap() });
    let node = lend(&NodeConfig::new(config.master.clone(), 16 << 20), smol.clone()).unwrap();
    let (standing, stopping) = (node.standing(), stop.clone());
    let lending = smol.spawn(async move { node.run(stopping).await.unwrap() });
    // What belongs to one runtime may be waited for on another.
    threads.block_on(standing.settled());

    let value: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
    put(&tokio, config.clone(), "tokio", &value);
    put(&smol, config.clone(), "smol", &value);
    put(&threads, config.clone(), "threads", &value);
    threads.block_on(async {
        let client = connect(config, threads.clone()).await.unwrap();
        for name in ["tokio", "smol", "threads"] {
            assert!(client.get(name.as_bytes()).await.unwrap() == value, "{name}");
        }
        client.close().await;
        stop.begin();
        lending.await;
        serving.await;
    });
}
