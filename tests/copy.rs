//! Copies between segments: an object outlives the node that it was put on.

use springtide::{
    CallFigures, Client, ClientConfig, Code, Master, MasterConfig, NodeConfig, PutOptions, Runtime, Shutdown,
    Tokio, connect, lend,
};

struct Lender {
    stop: Shutdown,
    task: <Tokio as Runtime>::Task,
}

/// A master, nodes called `a` and `b`, and a client.
struct Pool {
    runtime: Tokio,
    client: Client<Tokio>,
    nodes: Vec<Lender>,
    stop: Shutdown,
    master: <Tokio as Runtime>::Task,
    calls: Box<dyn Fn() -> Vec<CallFigures>>,
}

impl Pool {
    fn new() -> Self {
        let runtime = Tokio::new_multi(2).unwrap();
        let stop = Shutdown::new();
        let listen = "127.0.0.1:0".parse().unwrap();
        let master = Master::bind(MasterConfig { listen, ..MasterConfig::default() }).unwrap();
        let address = master.local_addr();
        let calls = Box::new(master.calls());
        let (handle, stopping) = (runtime.clone(), stop.clone());
        let master = runtime.spawn(async move { master.run(handle, stopping).await.unwrap() });
        let lender = |name: &str| {
            let config = NodeConfig { name: Some(name.into()), ..NodeConfig::new([address], 16 << 20) };
            let node = lend(&config, runtime.clone()).unwrap();
            let (standing, stop) = (node.standing(), Shutdown::new());
            let stopping = stop.clone();
            let task = runtime.spawn(async move { node.run(stopping).await.unwrap() });
            runtime.block_on(standing.settled());
            Lender { stop, task }
        };
        let nodes = vec![lender("a"), lender("b")];
        let client = runtime.block_on(connect(ClientConfig::new([address]), runtime.clone())).unwrap();
        Self { runtime, client, nodes, stop, master, calls }
    }

    fn stop_node(&mut self, at: usize) {
        let Lender { stop, task } = self.nodes.remove(at);
        stop.begin();
        self.runtime.block_on(task);
    }

    fn end(mut self) {
        while !self.nodes.is_empty() {
            self.stop_node(0);
        }
        self.runtime.block_on(self.client.close());
        self.stop.begin();
        self.runtime.block_on(self.master);
    }
}

fn value(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

#[test]
fn a_copy_outlives_the_first_replica() {
    let mut pool = Pool::new();
    let on_a = PutOptions { preferred: &["a/0"], ..PutOptions::default() };
    // Without, with one and with many block sums.
    let lens = [1, 65_536, 65_537, 1_000_003];
    pool.runtime.block_on(async {
        for len in lens {
            let key = format!("k{len}");
            pool.client.put(key.as_bytes(), &value(len), &on_a).await.unwrap();
            pool.client.copy(key.as_bytes(), "b/0").await.unwrap();
            assert_eq!(pool.client.stat(key.as_bytes()).await.unwrap().replicas, 2);
        }
    });
    pool.stop_node(0);
    pool.runtime.block_on(async {
        for len in lens {
            assert_eq!(pool.client.get(format!("k{len}").as_bytes()).await.unwrap(), value(len), "{len}");
        }
    });
    pool.end();
}

#[test]
fn a_writer_clears_what_it_copied_and_an_empty_batch_asks_nobody() {
    let pool = Pool::new();
    let on_a = PutOptions { preferred: &["a/0"], ..PutOptions::default() };
    pool.runtime.block_on(async {
        let client = &pool.client;
        client.put(b"k", b"v", &on_a).await.unwrap();
        client.copy(b"k", "b/0").await.unwrap();
        let cleared = client.clear_batch(&[b"k", b"absent"], Some("a/0")).await;
        assert!(matches!(&cleared[..], [Ok(()), Err(error)] if error.code() == Code::OBJECT_NOT_FOUND));
        assert_eq!(client.stat(b"k").await.unwrap().replicas, 1);
        assert_eq!(client.get(b"k").await.unwrap(), b"v");
        let nowhere = client.clear_batch(&[b"k"], Some("nowhere")).await;
        assert!(matches!(&nowhere[..], [Err(error)] if error.code() == Code::SEGMENT_NOT_FOUND));
        let objects = |call: &&CallFigures| call.method != "HEARTBEAT";
        let asked = || (pool.calls)().iter().filter(objects).map(|call| call.calls).sum::<u64>();
        let before = asked();
        assert!(client.exists_batch(&[]).await.is_empty() && client.clear_batch(&[], None).await.is_empty());
        assert!(client.get_batch(&[]).await.is_empty() && client.put_batch(&[], &on_a).await.is_empty());
        assert_eq!(asked(), before);
    });
    pool.end();
}

#[test]
fn what_cannot_be_copied_says_why() {
    let pool = Pool::new();
    let on_a = PutOptions { preferred: &["a/0"], ..PutOptions::default() };
    pool.runtime.block_on(async {
        pool.client.put(b"k", b"v", &on_a).await.unwrap();
        let code = |result: Result<(), springtide::Error>| result.unwrap_err().code();
        assert_eq!(code(pool.client.copy(b"absent", "b/0").await), Code::OBJECT_NOT_FOUND);
        assert_eq!(code(pool.client.copy(b"k", "nowhere").await), Code::SEGMENT_NOT_FOUND);
        assert_eq!(code(pool.client.copy(b"k", "a/0").await), Code::REPLICA_ALREADY_EXISTS);
        assert_eq!(code(pool.client.copy(b"", "b/0").await), Code::INVALID_KEY);
        assert_eq!(pool.client.get(b"k").await.unwrap(), b"v");
    });
    pool.end();
}
