//! Random histories against the naive model.

use proptest::prelude::*;
use springtide_core::evict::Kind;
use springtide_core::id::Incarnation;

use super::model::{LENGTHS, Model, Step};
use super::pool::member;

fn steps() -> impl Strategy<Value = Step> {
    let (which, node, client) = (0..1_000_usize, 0..2_usize, 0..2_usize);
    let (key, len) = (0..12_u8, 0..LENGTHS.len());
    prop_oneof![
        8 => (client.clone(), key.clone(), len.clone(), 1..=2_u32, 0..6_u8)
            .prop_map(|(client, key, len, replicas, pin)| Step::Start { client, key, len, replicas, pin }),
        2 => (client, len, 1..=3_u32).prop_map(|(client, len, count)| Step::Reserve { client, len, count }),
        7 => which.clone().prop_map(|which| Step::End { which }),
        2 => (which.clone(), key.clone()).prop_map(|(which, key)| Step::Publish { which, key }),
        2 => (which.clone(), any::<bool>()).prop_map(|(which, quiet)| Step::Abort { which, quiet }),
        5 => key.clone().prop_map(|key| Step::Get { key }),
        3 => (key.clone(), any::<bool>()).prop_map(|(key, force)| Step::Remove { key, force }),
        2 => (key, node.clone()).prop_map(|(key, node)| Step::CopyStart { key, node }),
        2 => which.clone().prop_map(|which| Step::CopyEnd { which }),
        1 => (which, any::<bool>()).prop_map(|(which, quiet)| Step::CopyAbort { which, quiet }),
        4 => prop_oneof![1..3_000_u64, 5_000..20_000_u64, Just(300_000)].prop_map(|millis| Step::Pass { millis }),
        2 => node.clone().prop_map(|node| Step::Report { node }),
        1 => node.clone().prop_map(|node| Step::Leave { node }),
        1 => node.prop_map(|node| Step::Join { node }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn holds_what_it_promises(steps in prop::collection::vec(steps(), 1..150), lru in any::<bool>()) {
        let mut model = Model::new(if lru { Kind::Lru } else { Kind::S3Fifo });
        for step in steps {
            model.step(step);
        }
        model.wind_up();
    }

    #[test]
    fn equal_histories_have_equal_digests(steps in prop::collection::vec(steps(), 1..60)) {
        let (mut a, mut b) = (Model::new(Kind::S3Fifo), Model::new(Kind::S3Fifo));
        for step in steps {
            a.step(step);
            b.step(step);
            prop_assert_eq!(a.pool.master.digest(), b.pool.master.digest());
        }
        let same = a.pool.master.digest();
        b.pool.master.register(b.pool.now, Incarnation(9), &member("one more")).unwrap();
        prop_assert!(b.pool.master.digest() != same);
    }
}
