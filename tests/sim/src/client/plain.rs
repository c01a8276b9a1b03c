//! Operations that move no values.

use springtide_core::error::Code;
use springtide_core::time::Instant;
use springtide_core::wire::codec;
use springtide_core::wire::message::{self, ProbeKind};

use super::op::{Done, Op, Wait, Work};
use super::{Call, Client, OpRef};
use crate::env::Env;

impl Client {
    pub(super) fn step_plain(&mut self, env: &mut Env, now: Instant, place: usize, op: &mut Op) -> Done {
        op.wait = Wait::Call;
        let what = Call::Op(OpRef { place, number: op.number });
        let names = env.oracle.names();
        let keys = &op.keys;
        let put_keys = |body: &mut Vec<u8>| keys.iter().for_each(|&key| codec::put(body, &names.of(key)));
        match op.work {
            Work::Remove(force) => {
                self.line.call(env, now, (message::REMOVE, op.deadline), what, |body| {
                    codec::put(body, &force);
                    put_keys(body);
                });
            }
            _ => self.line.call(env, now, (message::EXISTS, op.deadline), what, |body| {
                codec::put(body, &ProbeKind::Plain);
                put_keys(body);
            }),
        }
        Done::No
    }

    pub(super) fn plain_answered(&self, env: &Env, op: &Op, answer: Result<&[u8], Code>) -> Done {
        if env.tells() {
            let what = if matches!(op.work, Work::Exists) { "exists" } else { "remove" };
            env.say(self.pid, format_args!("{what} {:?}: {:?}", op.keys, answer.map(<[u8]>::len)));
        }
        Done::Yes
    }
}
