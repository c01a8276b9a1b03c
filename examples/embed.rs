//! A pool inside one process: a master, and a member that lends memory and uses the pool.

use springtide::{ClientConfig, Master, MasterConfig, Member, PutOptions, Runtime, Shutdown, Tokio};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let runtime = Tokio::new_multi(2)?;
    let stop = Shutdown::new();
    let master = Master::bind(MasterConfig { listen: "127.0.0.1:0".parse()?, ..MasterConfig::default() })?;
    let config = ClientConfig::new([master.local_addr()]);
    let (handle, stopping) = (runtime.clone(), stop.clone());
    let serving =
        runtime.spawn(async move { master.run(handle, stopping).await.expect("the master serves") });

    runtime.block_on(async {
        let mut member = Member::join(config, runtime.clone()).await?;
        member.mount(64 << 20).await?;
        member.put(b"greeting", b"hello", &PutOptions::default()).await?;
        assert_eq!(member.get(b"greeting").await?, b"hello");
        member.close().await;
        stop.begin();
        serving.await;
        Ok(())
    })
}
