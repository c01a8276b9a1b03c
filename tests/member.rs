//! One handle that uses the pool and lends it memory.

use springtide::{
    Block, ClientConfig, Code, Master, MasterConfig, Member, NodeConfig, PutOptions, Runtime, Shutdown, Tokio,
};

struct Served {
    runtime: Tokio,
    stop: Shutdown,
    task: <Tokio as Runtime>::Task,
    config: ClientConfig,
}

fn master() -> Served {
    let runtime = Tokio::new_multi(2).unwrap();
    let stop = Shutdown::new();
    let listen = "127.0.0.1:0".parse().unwrap();
    let master = Master::bind(MasterConfig { listen, ..MasterConfig::default() }).unwrap();
    let config = ClientConfig::new([master.local_addr()]);
    let (handle, stopping) = (runtime.clone(), stop.clone());
    let task = runtime.spawn(async move { master.run(handle, stopping).await.unwrap() });
    Served { runtime, stop, task, config }
}

async fn segments(member: &Member<Tokio>) -> Vec<(String, u64)> {
    let mut segments = Vec::new();
    member.segments(|segment| segments.push((segment.name.to_owned(), segment.len))).await.unwrap();
    segments.sort();
    segments
}

#[test]
fn one_handle_lends_puts_gets_takes_back_and_closes() {
    let Served { runtime, stop, task, config } = master();
    runtime.block_on(async {
        let mut member = Member::join(config.clone(), runtime.clone()).await.unwrap();
        let none = member.put(b"k", b"value", &PutOptions::default()).await.unwrap_err();
        assert_eq!(none.code(), Code::NO_AVAILABLE_HANDLE, "nothing is lent yet: {none}");

        let first = member.mount(1 << 20).await.unwrap();
        let named =
            NodeConfig { name: Some("mine".into()), ..NodeConfig::new(config.master.clone(), 2 << 20) };
        assert_eq!(member.mount_as(&named).await.unwrap(), "mine");
        assert_eq!(member.mounted().collect::<Vec<_>>(), [&first, "mine"]);
        let mut wanted = vec![(format!("{first}/0"), 1 << 20), ("mine/0".to_owned(), 2 << 20)];
        wanted.sort();
        assert_eq!(segments(&member).await, wanted);

        let on_mine = PutOptions { preferred: &["mine/0"], ..PutOptions::default() };
        member.put(b"k", b"value", &on_mine).await.unwrap();
        let on_first = [format!("{first}/0")];
        let on_first = PutOptions { preferred: &[&on_first[0]], ..PutOptions::default() };
        member.put(b"stays", b"other", &on_first).await.unwrap();
        assert_eq!(member.get(b"k").await.unwrap(), b"value");

        member.unmount("mine").await.unwrap();
        assert_eq!(member.unmount("mine").await.unwrap_err().code(), Code::SEGMENT_NOT_FOUND);
        assert_eq!(segments(&member).await, [(format!("{first}/0"), 1 << 20)]);
        assert_eq!(member.get(b"k").await.unwrap_err().code(), Code::OBJECT_NOT_FOUND);
        assert_eq!(member.get(b"stays").await.unwrap(), b"other");

        // Others use what is lent here; once it is closed nothing of it is left.
        let other = Member::join(config, runtime.clone()).await.unwrap();
        assert_eq!(other.get(b"stays").await.unwrap(), b"other");
        member.close().await;
        assert!(segments(&other).await.is_empty());
        let mut members = 0;
        other.members(|_| members += 1).await.unwrap();
        assert_eq!(members, 1);
        other.close().await;
        stop.begin();
        task.await;
    });
}

#[test]
fn memory_of_ones_own_can_be_lent() {
    let Served { runtime, stop, task, config } = master();
    runtime.block_on(async {
        let mut member = Member::join(config.clone(), runtime.clone()).await.unwrap();
        // Whole granules of it are lent.
        let block = Block::from(vec![0; 100_000]);
        let name = member.mount_block(block.clone()).await.unwrap();
        assert_eq!(segments(&member).await, [(format!("{name}/0"), 99_968)]);
        member.put(b"k", b"lies in a block of our own", &PutOptions::default()).await.unwrap();
        assert_eq!(member.get(b"k").await.unwrap(), b"lies in a block of our own");
        let bytes = block.to_vec();
        assert!(bytes.windows(26).any(|window| window == b"lies in a block of our own"));

        let short = NodeConfig { memory: 200_001, ..NodeConfig::of(config.master.clone(), block) };
        let error = member.mount_as(&short).await.unwrap_err();
        assert!(error.to_string().contains("200000 bytes of a block of 100000"), "{error}");
        member.close().await;
        stop.begin();
        task.await;
    });
}

#[test]
fn what_cannot_be_lent_says_why_and_leaves_nothing_behind() {
    let Served { runtime, stop, task, config } = master();
    runtime.block_on(async {
        let mut member = Member::join(config.clone(), runtime.clone()).await.unwrap();
        let little = member.mount(63).await.unwrap_err();
        assert_eq!(little.code(), Code::INVALID_PARAMS);
        assert!(little.to_string().contains("63 bytes are too little"), "{little}");
        assert_eq!(member.mounted().count(), 0);
        assert!(segments(&member).await.is_empty());
        member.close().await;
        stop.begin();
        task.await;
    });
}
