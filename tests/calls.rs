//! What a client counts of its calls.

use springtide::{
    CallKind, CallTally, ClientConfig, Code, Forcing, Incarnation, Master, MasterConfig, Member, Pattern,
    Piece, PutOptions, Runtime, Shutdown, Tokio,
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

#[test]
fn where_objects_and_members_are_is_told_for_many_at_once() {
    let runtime = Tokio::new_multi(2).unwrap();
    let stop = Shutdown::new();
    let listen = "127.0.0.1:0".parse().unwrap();
    let master = Master::bind(MasterConfig { listen, ..MasterConfig::default() }).unwrap();
    let config = ClientConfig::new([master.local_addr()]);
    let (handle, stopping) = (runtime.clone(), stop.clone());
    let task = runtime.spawn(async move { master.run(handle, stopping).await.unwrap() });
    runtime.block_on(async {
        let mut member = Member::join(config, runtime.clone()).await.unwrap();
        let node = member.mount(4 << 20).await.unwrap();
        for n in 0..20u8 {
            let key = format!("{}/{n}", if n % 2 == 0 { "even" } else { "odd" });
            member.put(key.as_bytes(), &[n; 100], &PutOptions::default()).await.unwrap();
        }
        let (mut life, mut segment) = (None, None);
        member.segments(|info| (life, segment) = (Some(info.incarnation), Some(info.id))).await.unwrap();

        let found = member.locate_batch(&[b"even/0", b"none", b"", b"odd/1", b"even/0"]).await;
        let codes: Vec<_> = found.iter().map(|found| found.as_ref().map_err(|error| error.code())).collect();
        assert_eq!(codes[1].unwrap_err(), Code::OBJECT_NOT_FOUND);
        assert_eq!(codes[2].unwrap_err(), Code::INVALID_KEY);
        assert_eq!(codes[0].unwrap(), codes[4].unwrap());
        let replicas = &codes[3].unwrap().replicas;
        assert_eq!((codes[3].unwrap().len, replicas.len(), Some(replicas[0].segment)), (100, 1, segment));
        assert!(member.locate_batch(&[]).await.is_empty());

        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = member.locate_matching(Pattern::Prefix(b"even/"), cursor, 3).await.unwrap();
            assert!(page.items.iter().all(|(_, found)| found.len == 100 && found.replicas.len() == 1));
            assert!(page.items.is_empty() || !page.lease.is_zero());
            seen.extend(page.items.into_iter().map(|(key, _)| key));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        seen.sort();
        let mut wanted: Vec<Vec<u8>> = (0..20).step_by(2).map(|n| format!("even/{n}").into_bytes()).collect();
        wanted.sort();
        assert_eq!(seen, wanted);
        let bad = member.locate_matching(Pattern::Regex("("), None, 3).await.unwrap_err();
        assert_eq!(bad.code(), Code::INVALID_PARAMS);

        let own = member.incarnation();
        let addresses = member.addresses(&[own, life.unwrap(), Incarnation(1), life.unwrap()]).await.unwrap();
        // A client serves nothing; its node does.
        assert_eq!(addresses, [None, Some(node.clone()), None, Some(node)]);
        assert!(member.addresses(&[]).await.unwrap().is_empty());
        member.close().await;
        stop.begin();
        task.await;
    });
}
