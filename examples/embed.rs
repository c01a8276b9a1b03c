//! A pool inside one process: a master, a node that lends memory, and a client.

use springtide::{
    ClientConfig, Master, MasterConfig, NodeConfig, PutOptions, Runtime, Shutdown, Tokio, connect, lend,
};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let runtime = Tokio::new_multi(2)?;
    let stop = Shutdown::new();
    let master = Master::bind(MasterConfig { listen: "127.0.0.1:0".parse()?, ..MasterConfig::default() })?;
    let address = master.local_addr();
    let node = lend(&NodeConfig::new([address], 64 << 20), runtime.clone())?;
    let standing = node.standing();

    let (handle, stopping) = (runtime.clone(), stop.clone());
    let serving =
        runtime.spawn(async move { master.run(handle, stopping).await.expect("the master serves") });
    let stopping = stop.clone();
    let lending = runtime.spawn(async move { node.run(stopping).await.expect("the node serves") });

    runtime.block_on(async {
        standing.settled().await;
        let client = connect(ClientConfig::new([address]), runtime.clone()).await?;
        client.put(b"greeting", b"hello", &PutOptions::default()).await?;
        assert_eq!(client.get(b"greeting").await?, b"hello");
        client.close().await;
        stop.begin();
        lending.await;
        serving.await;
        Ok(())
    })
}
