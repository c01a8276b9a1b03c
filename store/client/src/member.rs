//! Staying registered with the master.
//!
//! [`stay`] makes the calls that [`Membership`] names. Clients stay registered without segments, so that the master
//! learns when they die; storage nodes also carry out what it says about their memory.

use core::future::Future;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use springtide_core::error::Code;
use springtide_core::node::{self, CallError, Membership, Next};
use springtide_core::wire::codec;
use springtide_core::wire::message;
use springtide_driver::{Runtime, Shutdown};
use springtide_rpc::Remote;

pub use springtide_core::node::{Config, Effect, Lent};

/// How long one call of the loop may take.
const CALL: Duration = Duration::from_secs(3);

/// Who registers.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name, for people.
    pub name: String,
    /// Where its RPC is served, as `host:port`; empty if it serves none.
    pub address: String,
}

/// A membership that its loop and others look at.
#[derive(Clone, Debug)]
pub struct Shared {
    membership: Arc<Mutex<Membership>>,
    settled: Shutdown,
    refusal: Arc<Mutex<Option<(Code, String)>>>,
}

impl Shared {
    /// A membership that is not registered yet.
    pub fn new(membership: Membership) -> Self {
        let membership = Arc::new(Mutex::new(membership));
        Self { membership, settled: Shutdown::new(), refusal: Arc::default() }
    }

    /// The membership, for a moment.
    pub fn lock(&self) -> MutexGuard<'_, Membership> {
        self.membership.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends once the master has known us and all our segments for the first time.
    pub async fn settled(&self) {
        self.settled.begun().await;
    }

    /// What the master last said when it refused us.
    pub fn refusal(&self) -> Option<(Code, String)> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Stays registered until `shutdown` begins, then takes leave. `carry_out` does what the master wants of our memory; a
/// fence is reported by [`Membership::handle_fenced`] once it stands.
pub async fn stay<R: Runtime>(
    runtime: R,
    master: Remote,
    identity: Identity,
    shared: Shared,
    shutdown: Shutdown,
    mut carry_out: impl FnMut(Effect) + Send,
) {
    loop {
        let next = shared.lock().next(runtime.now());
        let step = async {
            match next {
                Next::Wait(until) => runtime.timer(until).await,
                call => make(&runtime, &master, &identity, &shared, call).await,
            }
        };
        if unless(&shutdown, step).await.is_none() {
            break;
        }
        let effects: Vec<Effect> = {
            let mut membership = shared.lock();
            if membership.is_inside() {
                shared.settled.begin();
            }
            core::iter::from_fn(|| membership.effect()).collect()
        };
        effects.into_iter().for_each(&mut carry_out);
    }
    let deadline = runtime.now() + Duration::from_secs(1);
    let _ = master.call(message::LEAVE, deadline, |body| codec::put(body, &())).await;
}

/// `future`'s output, or `None` as soon as `shutdown` begins.
pub async fn unless<T>(shutdown: &Shutdown, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut begun = pin!(shutdown.begun());
    core::future::poll_fn(|cx| {
        if begun.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

async fn make<R: Runtime>(runtime: &R, master: &Remote, identity: &Identity, shared: &Shared, call: Next) {
    let (name, address) = (&*identity.name, &*identity.address);
    let mut request = Vec::new();
    let Some(method) = shared.lock().request(call, node::Identity { name, address }, &mut request) else {
        return;
    };
    let reply = master.call(method, runtime.now() + CALL, |body| body.append(&mut request)).await;
    let (answer, refusal) = match &reply {
        Ok(reply) => (Ok(&reply.body[..]), None),
        Err(springtide_rpc::CallError::Status(code, text)) => {
            (Err(CallError::Refused(*code)), Some((*code, text.to_string())))
        }
        Err(error) => (Err(CallError::NoAnswer), Some((error.code(), error.to_string()))),
    };
    if call != Next::Heartbeat {
        shared.note(refusal);
    }
    shared.lock().handle_answer(runtime.now(), call, answer);
}

impl Shared {
    fn note(&self, refusal: Option<(Code, String)>) {
        if let Some((code, text)) = &refusal {
            tracing::warn!(%code, text, "the master refused");
        }
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
    }
}
