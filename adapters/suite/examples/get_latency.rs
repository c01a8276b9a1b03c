//! How long one get takes when nothing else is asked for, on each runtime: a master, a node and a client in this process.
//!
//! `cargo run --release -p springtide-runtime-suite --example get_latency [ROUNDS]`. Runtimes take turns round by round, so
//! that what else the machine does falls on all of them.

use core::time::Duration;

use springtide::{
    Client, ClientConfig, Master, MasterConfig, NodeConfig, PutOptions, Runtime, Shutdown, Smol, Threads,
    Tokio, connect, lend,
};

/// How many gets one turn makes.
const GETS: usize = 500;
const KEY: &[u8] = b"key";

/// A pool on one runtime, and what its gets took.
struct Pool<R: Runtime> {
    runtime: R,
    client: Client<R>,
    stop: Shutdown,
    tasks: [R::Task; 2],
    took: Vec<Duration>,
}

impl<R: Runtime> Pool<R> {
    fn new(runtime: R) -> Self {
        let (stop, listen) = (Shutdown::new(), "127.0.0.1:0".parse().expect("an address"));
        let master = Master::bind(MasterConfig { listen, ..MasterConfig::default() }).expect("a free port");
        let address = master.local_addr();
        let (handle, stopping) = (runtime.clone(), stop.clone());
        let serving =
            runtime.spawn(async move { master.run(handle, stopping).await.expect("the master serves") });
        let node = lend(&NodeConfig::new([address], 16 << 20), runtime.clone()).expect("memory is free");
        let (standing, stopping) = (node.standing(), stop.clone());
        let lending = runtime.spawn(async move { node.run(stopping).await.expect("the node serves") });
        let client = runtime.block_on(async {
            standing.settled().await;
            let client = connect(ClientConfig::new([address]), runtime.clone()).await;
            let client = client.expect("the master is there");
            client.put(KEY, &[7; 4_096], &PutOptions::default()).await.expect("there is room");
            client
        });
        Self { runtime, client, stop, tasks: [serving, lending], took: Vec::new() }
    }
}

/// A pool whatever its runtime.
trait Turn {
    fn turn(&mut self);
    fn end(self: Box<Self>) -> Vec<Duration>;
}

impl<R: Runtime> Turn for Pool<R> {
    fn turn(&mut self) {
        let Self { runtime, client, took, .. } = self;
        runtime.block_on(async {
            for _ in 0..GETS {
                let begin = runtime.now();
                assert_eq!(client.get(KEY).await.expect("it was put").len(), 4_096);
                took.push(runtime.now().since(begin));
            }
        });
    }

    fn end(self: Box<Self>) -> Vec<Duration> {
        let Self { runtime, client, stop, tasks, took } = *self;
        runtime.block_on(async {
            client.close().await;
            stop.begin();
            for task in tasks {
                task.await;
            }
        });
        took
    }
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(20), |rounds| rounds.parse())?;
    let mut pools: Vec<(&str, Box<dyn Turn>)> = vec![
        ("tokio, single", Box::new(Pool::new(Tokio::new_single()?))),
        ("smol, single", Box::new(Pool::new(Smol::new_single()))),
        ("threads, single", Box::new(Pool::new(Threads::new_single()?))),
        ("tokio, 2 threads", Box::new(Pool::new(Tokio::new_multi(2)?))),
        ("smol, 2 threads", Box::new(Pool::new(Smol::new_multi(2)?))),
        ("threads, 2", Box::new(Pool::new(Threads::new_multi(2)?))),
    ];
    for _ in 0..rounds {
        pools.iter_mut().for_each(|(_, pool)| pool.turn());
    }
    println!("get of 4 KiB, {} each; µs      p50    p90    p99", rounds * GETS);
    for (name, pool) in pools {
        let mut took = pool.end();
        took.sort_unstable();
        let at = |percent: usize| took[(took.len() - 1) * percent / 100].as_nanos() as f64 / 1_000.0;
        println!("{name:<28} {:>6.1} {:>6.1} {:>6.1}", at(50), at(90), at(99));
    }
    Ok(())
}
