//! Connecting to a running pool.

use core::future::Future;
use core::net::SocketAddr;
use core::time::Duration;
use springtide::{Client, ClientConfig, Error, Runtime, Tokio, Transports, transports};

use crate::args::Connect;
use crate::exit::Failure;

/// A pool that a command talks to.
pub(crate) struct Pool {
    runtime: Tokio,
    client: Client<Tokio>,
}

impl Pool {
    /// Connects as the arguments say.
    pub(crate) fn connect(args: &Connect) -> Result<Self, Failure> {
        let config = |master: Vec<SocketAddr>| ClientConfig {
            tenant: args.tenant.clone(),
            ..ClientConfig::new(master)
        };
        Self::with(args.master.resolve()?, args.timeout, config).map_err(|error| match error {
            Unreachable::Failure(failure) => failure,
            Unreachable::Error(error) => {
                failed(format_args!("cannot talk to the master at {}", args.master), &error)
            }
        })
    }

    fn with(
        master: Vec<SocketAddr>,
        timeout: Duration,
        config: impl FnOnce(Vec<SocketAddr>) -> ClientConfig,
    ) -> Result<Self, Unreachable> {
        let runtime = Tokio::new_multi(2).map_err(|error| {
            Unreachable::Failure(Failure::new(format_args!("cannot start a runtime: {error}")))
        })?;
        let (life, opened) =
            transports(&Transports::default()).map_err(|error| Unreachable::Failure(Failure::new(error)))?;
        let config =
            ClientConfig { timeout, name: format!("command-{}", std::process::id()), ..config(master) };
        let client = runtime.block_on(Client::connect_as(life, config, runtime.clone(), opened));
        client.map(|client| Self { runtime, client }).map_err(Unreachable::Error)
    }

    /// The client.
    pub(crate) const fn client(&self) -> &Client<Tokio> {
        &self.client
    }

    /// The runtime.
    pub(crate) const fn runtime(&self) -> &Tokio {
        &self.runtime
    }

    /// Runs a call to its end.
    pub(crate) fn run<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.runtime.block_on(call)
    }

    /// Takes leave.
    pub(crate) fn close(self) {
        self.runtime.block_on(self.client.close());
    }
}

enum Unreachable {
    Failure(Failure),
    Error(Error),
}

/// What to say when a call about `what` failed.
pub(crate) fn failed(what: impl core::fmt::Display, error: &Error) -> Failure {
    Failure::refused_because(what, error, error.code())
}
