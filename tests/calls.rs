//! What a client counts of its calls.

use springtide::{
    CallKind, CallTally, ClientConfig, Forcing, Master, MasterConfig, Member, Pattern, Piece, PutOptions,
    Runtime, Shutdown, Tokio,
};

#[test]
fn every_call_is_counted_with_its_items_failures_and_bytes() {
    let runtime = Tokio::new_multi(2).unwrap();
    let stop = Shutdown::new();
    let listen = "127.0.0.1:0".parse().unwrap();
    let master = Master::bind(MasterConfig { listen, ..MasterConfig::default() }).unwrap();
    let config = ClientConfig::new([master.local_addr()]);
    let (handle, stopping) = (runtime.clone(), stop.clone());
    let task = runtime.spawn(async move { master.run(handle, stopping).await.unwrap() });
    runtime.block_on(async {
        let mut member = Member::join(config, runtime.clone()).await.unwrap();
        member.mount(4 << 20).await.unwrap();
        let of = |member: &Member<Tokio>, kind| member.calls().find(|tally| tally.kind == kind).unwrap();
        let counts = |tally: CallTally| (tally.calls, tally.items, tally.failed, tally.bytes);
        assert!(member.calls().all(|tally| counts(tally) == (0, 0, 0, 0)));

        let options = PutOptions::default();
        member.put(b"a", &[1; 1_000], &options).await.unwrap();
        member.put_batch(&[(b"b", &[2; 100]), (b"a", &[3; 5]), (b"", &[4; 7])], &options).await;
        member.put_parts(b"c", &[b"ab", b"cde"], &options).await.unwrap();
        assert_eq!(counts(of(&member, CallKind::Put)), (3, 5, 2, 1_105));

        let memory = member.allocate(4_096).unwrap();
        member.get(b"a").await.unwrap();
        member.get_batch(&[b"b", b"none", b"b"]).await;
        member
            .get_into_parts(b"c", &[memory.slice(0, 3).unwrap(), memory.slice(9, 9).unwrap()])
            .await
            .unwrap();
        let piece = Piece { key: b"a", at: 10, len: Some(20), into: memory.whole() };
        assert!(member.get_pieces(&[piece, piece, piece]).await.iter().all(Result::is_ok));
        // A key that stands twice in a batch of whole values is one item: it moves once.
        assert_eq!(counts(of(&member, CallKind::Get)), (4, 7, 1, 1_000 + 100 + 5 + 60));

        assert!(member.exists(b"a").await.unwrap());
        member.stat(b"none").await.unwrap_err();
        member.locate(b"a").await.unwrap();
        member.list(Pattern::Prefix(b""), None, 10).await.unwrap();
        member.figures().await.unwrap();
        member.copy(b"a", "nowhere/0").await.unwrap_err();
        member.remove_batch(&[b"b", b"none"], Forcing::Yes).await;
        member.remove(b"c", Forcing::Yes).await.unwrap();
        member.clear_batch(&[], None).await;
        let counted = |kind| counts(of(&member, kind));
        assert_eq!(counted(CallKind::Exists), (1, 1, 0, 0));
        assert_eq!(counted(CallKind::Stat), (2, 2, 1, 0));
        assert_eq!(counted(CallKind::List), (1, 1, 0, 0));
        assert_eq!(counted(CallKind::Look), (1, 1, 0, 0));
        assert_eq!(counted(CallKind::Copy), (1, 1, 1, 0));
        assert_eq!(counted(CallKind::Remove), (2, 3, 1, 0));
        assert_eq!(counted(CallKind::Clear), (0, 0, 0, 0), "nobody was asked");

        let put = of(&member, CallKind::Put);
        assert!(!put.p50.is_zero() && put.p50 <= put.p99 && put.p999 <= put.longest);
        assert!(of(&member, CallKind::Copy).longest.is_zero(), "what failed altogether has no latency");
        member.close().await;
        stop.begin();
        task.await;
    });
}
