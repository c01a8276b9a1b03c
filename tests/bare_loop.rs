//! The example that embeds the core in a loop of its own, against a real master.

use core::time::Duration;

use springtide::core::wire::message::Presence;
use springtide::{
    ClientConfig, Master, MasterConfig, MasterRules, NodeConfig, PutOptions, Runtime, Shutdown, Tokio,
    connect, lend,
};

#[path = "../examples/bare_loop.rs"]
#[allow(dead_code, reason = "its `main` is not called here")]
mod bare_loop;

#[test]
fn a_loop_without_an_executor_takes_part_in_a_pool() {
    let (runtime, stop) = (Tokio::new_multi(2).unwrap(), Shutdown::new());
    let rules = MasterRules { heartbeat: Duration::from_millis(20), ..MasterRules::default() };
    let listen = "127.0.0.1:0".parse().unwrap();
    let master = Master::bind(MasterConfig { listen, rules, ..MasterConfig::default() }).unwrap();
    let address = master.local_addr();
    let (handle, stopping) = (runtime.clone(), stop.clone());
    let serving = runtime.spawn(async move { master.run(handle, stopping).await.unwrap() });
    let node = lend(&NodeConfig::new([address], 16 << 20), runtime.clone()).unwrap();
    let (standing, stopping) = (node.standing(), stop.clone());
    let lending = runtime.spawn(async move { node.run(stopping).await.unwrap() });
    let client = runtime.block_on(async {
        standing.settled().await;
        let client = connect(ClientConfig::new([address]), runtime.clone()).await.unwrap();
        client.put(b"there", b"bytes", &PutOptions::default()).await.unwrap();
        client
    });

    let found = bare_loop::stay(&address.to_string(), "bare", 3, &[b"there", b"absent", b""]).unwrap();
    assert_eq!(found, [Presence::Present, Presence::Absent, Presence::BadKey]);

    let mut names = Vec::new();
    runtime.block_on(client.members(|member| names.push(member.name.to_owned()))).unwrap();
    assert!(!names.iter().any(|name| name == "bare"), "it took leave: {names:?}");
    runtime.block_on(async {
        client.close().await;
        stop.begin();
        lending.await;
        serving.await;
    });
}

#[test]
fn a_loop_without_a_master_says_so() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    let answers = std::thread::spawn(move || drop(nobody.accept().unwrap()));
    let error = bare_loop::stay(&address, "bare", 1, &[]).unwrap_err();
    assert!(error.to_string().contains("does not take part"), "{error}");
    answers.join().unwrap();
}
