use proptest::prelude::*;

use super::*;
use crate::members::Mode;
use ClientStatus::{Crashed, Disconnected, Healthy};

fn at(seconds: u64) -> Instant {
    Instant::ORIGIN + Duration::from_secs(seconds)
}

const TTL: Duration = Duration::from_secs(10);
const CRASHED: Duration = Duration::from_secs(30);
const MEMBER: Member<'_> =
    Member { name: "a", address: "", mode: Mode::Pool, key: TicketKey([0; 16]), fences: Fences::Answers };

fn one() -> (Members, MemberId) {
    let mut members = Members::new(TTL, CRASHED);
    let id = members.add(at(0), Incarnation(1), &MEMBER);
    (members, id)
}

fn changes(members: &mut Members, now: Instant) -> Vec<ClientStatus> {
    let mut changes = Vec::new();
    members.evaluate(now, &mut changes);
    changes.into_iter().map(|change| change.to).collect()
}

#[test]
fn every_transition_at_its_edge() {
    let (mut members, id) = one();
    assert!(changes(&mut members, at(10) - Duration::from_nanos(1)).is_empty());
    assert_eq!(changes(&mut members, at(10)), [Disconnected]);
    assert!(changes(&mut members, at(29)).is_empty());
    assert_eq!(members.beat(at(29), id).map(|change| change.to), Some(Healthy));
    assert_eq!(members.beat(at(29), id), None);
    assert_eq!(changes(&mut members, at(39)), [Disconnected]);
    assert_eq!(changes(&mut members, at(59)), [Crashed]);
    assert_eq!((members.beat(at(59), id), members.get(id).unwrap().status), (None, Crashed));
}

#[test]
fn a_long_silence_goes_straight_to_crashed() {
    let (mut members, _) = one();
    assert_eq!(changes(&mut members, at(31)), [Crashed]);
    assert!(changes(&mut members, at(99)).is_empty());
}

#[test]
fn a_late_beat_that_comes_first_keeps_the_member() {
    let (mut members, id) = one();
    assert_eq!(members.beat(at(500), id), None);
    assert!(changes(&mut members, at(500)).is_empty());
    assert_eq!(members.due(), at(510));
    assert_eq!(members.active(), 1);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Add,
    Remove(usize),
    Beat(usize),
    Evaluate,
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Add),
        1 => any::<usize>().prop_map(Step::Remove),
        6 => any::<usize>().prop_map(Step::Beat),
        4 => Just(Step::Evaluate),
        6 => prop_oneof![Just(5_000), Just(10_000), 0..12_000_u64].prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..120)
}

/// Members, and for each of them when it was last heard and what it was last counted as.
#[derive(Debug)]
struct World {
    members: Members,
    model: Vec<(Incarnation, MemberId, Instant, ClientStatus)>,
    now: Instant,
    lives: u128,
}

impl World {
    fn step(&mut self, step: Step) {
        let count = self.model.len();
        match step {
            Step::Add => {
                self.lives += 1;
                let incarnation = Incarnation(self.lives);
                let id = self.members.add(self.now, incarnation, &MEMBER);
                self.model.push((incarnation, id, self.now, Healthy));
            }
            Step::Remove(_) | Step::Beat(_) if count == 0 => {}
            Step::Remove(which) => {
                let (incarnation, id, ..) = self.model.swap_remove(which % count);
                assert_eq!(self.members.remove(id).map(|record| record.incarnation), Some(incarnation));
                assert!(self.members.remove(id).is_none() && self.members.beat(self.now, id).is_none());
            }
            Step::Beat(which) => {
                let (_, id, heard, status) = &mut self.model[which % count];
                let change = self.members.beat(self.now, *id).map(|change| (change.member, change.to));
                assert_eq!(change, (*status == Disconnected).then_some((*id, Healthy)));
                if *status != Crashed {
                    (*heard, *status) = (self.now, Healthy);
                }
            }
            Step::Evaluate => self.evaluate(),
            Step::Pass(millis) => self.now += Duration::from_millis(millis),
        }
        self.check();
    }

    fn evaluate(&mut self) {
        let (mut found, now) = (Vec::new(), self.now);
        let due = self.members.due();
        self.members.evaluate(now, &mut found);
        let mut expected = Vec::new();
        for (_, id, heard, status) in &mut self.model {
            let silence = now.since(*heard);
            let to = match *status {
                Crashed => Crashed,
                _ if silence >= CRASHED => Crashed,
                _ if silence >= TTL => Disconnected,
                _ => Healthy,
            };
            if core::mem::replace(status, to) != to {
                expected.push((*id, to));
            }
        }
        assert!(expected.is_empty() || due.reached(now), "due at {due:?}, but {expected:?} at {now:?}");
        let mut found: Vec<_> = found.into_iter().map(|change| (change.member, change.to)).collect();
        found.sort_unstable_by_key(|(id, _)| id.to_bits());
        expected.sort_unstable_by_key(|(id, _)| id.to_bits());
        assert_eq!(found, expected);
    }

    fn check(&self) {
        assert_eq!(self.members.len(), self.model.len());
        let healthy = self.model.iter().filter(|(.., status)| *status == Healthy).count();
        assert_eq!(self.members.active(), healthy);
        for (incarnation, id, _, status) in &self.model {
            assert_eq!(self.members.id_of(*incarnation), Some(*id));
            assert_eq!(self.members.get(*id).map(|record| record.status), Some(*status));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn health_is_as_a_naive_model_has_it(steps in steps()) {
        let (members, model) = (Members::new(TTL, CRASHED), Vec::new());
        let mut world = World { members, model, now: at(0), lives: 0 };
        steps.into_iter().for_each(|step| world.step(step));
    }
}
