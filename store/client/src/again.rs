//! Calls of a put that are made again: after an answer that was lost, and after the master forgot the writer.

use core::time::Duration;

use springtide_core::error::Code;
use springtide_core::time::Instant;
use springtide_core::wire::codec;
use springtide_core::wire::frame::Method;
use springtide_core::wire::message::{self, Grant, Granted, Refusal};
use springtide_driver::Runtime;
use springtide_rpc::{CallError, Reply};

use crate::Client;

/// How often a call is made again whose connection went before the answer came.
const REPEATS: u32 = 2;
/// How long a writer that the master does not know waits to be registered again, which its next heartbeat sees to.
const FORGOTTEN: Duration = Duration::from_secs(8);
/// How often it asks meanwhile.
const PAUSE: Duration = Duration::from_millis(50);

impl<R: Runtime> Client<R> {
    /// Makes a call that may come twice: the master, which may have heard it or not, answers it as before.
    pub(crate) async fn call_again(
        &self,
        method: Method,
        deadline: Instant,
        body: impl Fn(&mut Vec<u8>),
    ) -> Result<Reply, CallError> {
        let mut repeats = 0;
        loop {
            match self.0.master.call(method, deadline, &body).await {
                Err(CallError::Closed(_)) if repeats < REPEATS => repeats += 1,
                answer => return answer,
            }
        }
    }

    /// Starts puts, again if the master has dropped us or was restarted; gives back when the answered call was made.
    pub(crate) async fn start_again(
        &self,
        deadline: Instant,
        body: impl Fn(&mut Vec<u8>),
    ) -> Result<(Instant, Reply), CallError> {
        let mut asked = self.0.runtime.now();
        let patience = deadline.min(asked + FORGOTTEN);
        loop {
            let reply = self.0.master.call(message::PUT_START, deadline, &body).await?;
            let next = self.0.runtime.now() + PAUSE;
            if !is_forgotten(&reply.body) || patience.reached(next) {
                return Ok((asked, reply));
            }
            self.0.runtime.timer(next).await;
            asked = self.0.runtime.now();
        }
    }
}

/// Whether the master does not know the writer: then it refuses every put of a call for that.
fn is_forgotten(body: &[u8]) -> bool {
    let Ok((_, mut tail)) = codec::split::<Granted, Result<Grant, Refusal>>(body) else { return false };
    matches!(tail.next(), Some(Ok(Err(refusal))) if refusal.code == Code::CLIENT_NOT_FOUND)
}
