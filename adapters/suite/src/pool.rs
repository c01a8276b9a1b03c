//! The real thing: a master, a node and clients in one process, all on the runtime.

use core::net::SocketAddr;
use std::sync::mpsc;

use springtide::{
    Blocking, Client, ClientConfig, Master, MasterConfig, Node, NodeConfig, PutOptions, Shutdown, Transports,
    Use, transports,
};
use springtide_driver::Runtime;

use crate::help::{all, receive};

/// A master and a node, as tasks.
struct Pool<R: Runtime> {
    runtime: R,
    which: Transports,
    master: SocketAddr,
    stop: Shutdown,
    tasks: Vec<R::Task>,
}

impl<R: Runtime> Pool<R> {
    fn new(runtime: R, which: Transports) -> Self {
        let (stop, listen) = (Shutdown::new(), "127.0.0.1:0".parse().expect("an address"));
        let master = Master::bind(MasterConfig { listen, ..MasterConfig::default() }).expect("a free port");
        let address = master.local_addr();
        let (handle, stopping) = (runtime.clone(), stop.clone());
        let serving =
            runtime.spawn(async move { master.run(handle, stopping).await.expect("the master serves") });
        let serve = Transports { listen: Some(listen), ..which.clone() };
        let (life, opened) = transports(&serve).expect("descriptors are free");
        let node = Node::bind(life, &NodeConfig::new([address], 16 << 20), runtime.clone(), opened);
        let node = node.expect("memory is free");
        let (standing, stopping) = (node.standing(), stop.clone());
        let lending = runtime.spawn(async move { node.run(stopping).await.expect("the node serves") });
        runtime.block_on(standing.settled());
        Self { runtime, which, master: address, stop, tasks: vec![serving, lending] }
    }

    async fn connect(&self) -> Client<R> {
        let (life, opened) = transports(&self.which).expect("descriptors are free");
        let connecting =
            Client::connect_as(life, ClientConfig::new([self.master]), self.runtime.clone(), opened);
        connecting.await.expect("the master is there")
    }

    /// Ends everything; both services end in time, or the test hangs.
    fn end(self) {
        self.stop.begin();
        self.runtime.block_on(all(self.tasks));
    }
}

fn value(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| ((at * 31 + seed) % 251) as u8).collect()
}

const LENS: [usize; 6] = [0, 1, 4_096, 65_536, 65_537, 1_000_003];

fn values_come_back<R: Runtime>(runtime: R, which: Transports) {
    let pool = Pool::new(runtime, which);
    let options = PutOptions::default();
    pool.runtime.block_on(async {
        let client = pool.connect().await;
        for len in LENS {
            let key = format!("single/{len}");
            client.put(key.as_bytes(), &value(len, len), &options).await.expect("there is room");
            assert!(client.get(key.as_bytes()).await.expect("it was put") == value(len, len), "{len}");
        }
        let keys: Vec<_> = (0..64).map(|n| format!("batch/{n}").into_bytes()).collect();
        let values: Vec<_> = (0..64).map(|n| value(n, 1_000 + n)).collect();
        let items: Vec<_> = keys.iter().map(Vec::as_slice).zip(values.iter().map(Vec::as_slice)).collect();
        assert!(client.put_batch(&items, &options).await.iter().all(Result::is_ok));
        let names: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        let got = client.get_batch(&names).await;
        assert!(got.into_iter().zip(&values).all(|(got, put)| got.is_ok_and(|got| got == *put)));
        assert!(client.get(b"absent").await.is_err());
        client.close().await;
    });
    many_at_once(&pool);
    pool.end();
}

/// Tasks that put and get through one client at the same time.
fn many_at_once<R: Runtime>(pool: &Pool<R>) {
    let runtime = &pool.runtime;
    let client = runtime.block_on(pool.connect());
    let (tell, hear) = mpsc::channel();
    let work = |task: usize| {
        let (client, tell) = (client.clone(), tell.clone());
        runtime.spawn(async move {
            for n in 0..16 {
                let (key, bytes) = (format!("task/{task}/{n}"), value(task + n, 10_000 + n));
                client.put(key.as_bytes(), &bytes, &PutOptions::default()).await.expect("there is room");
                assert!(client.get(key.as_bytes()).await.expect("it was put") == bytes);
            }
            tell.send(()).expect("the test listens");
        })
    };
    let tasks: Vec<_> = (0..8).map(work).collect();
    runtime.block_on(all(tasks));
    (0..8).for_each(|_| receive(&hear, "a task that got what it put"));
    runtime.block_on(client.close());
}

/// Values come back as they were put, over TCP.
pub fn values_come_back_over_tcp<R: Runtime>(make: impl Fn() -> R) {
    values_come_back(make(), Transports { shm: Use::No, ..Transports::default() });
}

/// Values come back as they were put, over shared memory.
pub fn values_come_back_over_shared_memory<R: Runtime>(make: impl Fn() -> R) {
    values_come_back(make(), Transports { tcp: Use::No, ..Transports::default() });
}

/// A blocking client drives its own connections on a thread of its own while the runtime serves the pool.
pub fn a_blocking_client_beside_tasks<R: Runtime>(make: impl Fn() -> R) {
    let pool = Pool::new(make(), Transports::default());
    let (config, runtime) = (ClientConfig::new([pool.master]), pool.runtime.clone());
    let done = Shutdown::new();
    let (told, which) = (done.clone(), pool.which.clone());
    let caller = std::thread::spawn(move || {
        let (_, opened) = transports(&which).expect("descriptors are free");
        let client = Blocking::connect(config, runtime, opened).expect("the master is there");
        for len in LENS {
            let key = format!("blocking/{len}");
            client.put(key.as_bytes(), &value(len, len), &PutOptions::default()).expect("there is room");
            assert!(client.get(key.as_bytes()).expect("it was put") == value(len, len), "{len}");
        }
        client.close();
        told.begin();
    });
    // Serves meanwhile, where the pool's tasks run on this thread.
    pool.runtime.block_on(done.begun());
    caller.join().expect("the blocking client got what it put");
    pool.end();
}
