//! Starting and running a node.

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;

use springtide_client::Greeting;
use springtide_client::member::{self, Identity, Lent, Shared};
use springtide_core::address::usable_by_peers;
use springtide_core::id::Incarnation;
use springtide_core::node::Membership;
use springtide_core::range::GRANULE;
use springtide_driver::{Lane, Pause, Runtime, Seat, Shutdown, attend};
use springtide_hal::Block;
use springtide_hal_host::memory::{self, Options, Sharing};
use springtide_rpc::{ClientConfig, Listener, Remote, WhileDown, serve};
use springtide_transport::Transport;

use crate::config::{Config, StartError};
use crate::desk::Desk;
use crate::segments::Segments;
use crate::service::NodeService;

/// A node that has its memory and its port, and serves once it is [`run`](Self::run).
pub struct Node<R: Runtime> {
    runtime: R,
    listener: Listener,
    address: SocketAddr,
    identity: Identity,
    lane: Arc<Seat<Lane>>,
    segments: Arc<Segments<R>>,
    member: Shared,
    master: Remote,
    incarnation: Incarnation,
}

/// How a node stands with its master; outlives the node's [`run`](Node::run).
#[derive(Clone, Debug)]
pub struct Standing(Shared);

impl Standing {
    /// Ends once the master has known the node and all its segments for the first time.
    pub async fn settled(&self) {
        self.0.settled().await;
    }

    /// Whether the master knows the node and all its segments now.
    pub fn is_inside(&self) -> bool {
        self.0.lock().is_inside()
    }

    /// What the master said when it refused the node last.
    pub fn refusal(&self) -> Option<String> {
        self.0.refusal().map(|(_, text)| text)
    }
}

impl<R: Runtime> Node<R> {
    /// Allocates the memory and binds the port. `incarnation` is the life that `transports` already name.
    ///
    /// # Errors
    /// When memory, port or descriptors cannot be had.
    pub fn bind(
        incarnation: Incarnation,
        config: &Config,
        runtime: R,
        transports: Vec<Box<dyn Transport>>,
    ) -> Result<Self, StartError> {
        let listener = Listener::bind(config.listen).map_err(StartError::Listen)?;
        let address = listener.local_addr().map_err(StartError::Listen)?;
        let advertised = advertised(address, config.advertise.as_deref())?;
        let name = config.name.clone().unwrap_or_else(|| advertised.clone());
        // Segments are made of whole granules.
        let bytes = config.memory - config.memory % GRANULE;
        if bytes == 0 {
            return Err(StartError::TooLittle(config.memory));
        }
        let block = block(config, bytes)?;

        let seed = incarnation.0 as u64;
        let lane = Lane::new(springtide_core::transfer::Config::default(), transports, seed);
        let lane = Arc::new(lane.and_then(Seat::new).map_err(StartError::System)?);
        let lent = Lent { name: format!("{name}/0"), len: bytes, uniform: config.uniform };
        let member = Shared::new(Membership::new(member::Config::default(), vec![lent], seed));
        let blocks = vec![block];
        let segments = Segments::new(runtime.clone(), Arc::clone(&lane), incarnation, blocks);
        let greeting = Greeting::new(incarnation, springtide_core::key::DEFAULT_TENANT, config.cluster);
        let settings = ClientConfig { while_down: WhileDown::Wait, seed, ..ClientConfig::default() };
        let master = Remote::new(config.master.clone(), settings, Some(Box::new(greeting)));
        Ok(Self {
            runtime,
            listener,
            address,
            identity: Identity { name, address: advertised },
            lane,
            segments: Arc::new(segments),
            member,
            master: master.map_err(StartError::System)?,
            incarnation,
        })
    }

    /// Where its RPC listens.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What peers are told.
    pub fn advertised(&self) -> &str {
        &self.identity.address
    }

    /// How it stands with its master.
    pub fn standing(&self) -> Standing {
        Standing(self.member.clone())
    }

    /// Serves until `shutdown` begins, then takes leave of the master.
    ///
    /// # Errors
    /// When the runtime cannot watch a descriptor.
    pub async fn run(self, shutdown: Shutdown) -> std::io::Result<()> {
        let Self { runtime, listener, identity, lane, segments, member, master, incarnation, .. } = self;
        let pause = Pause::new(Duration::from_micros(50));
        drop(runtime.spawn(attend(&runtime, &lane, pause)?));
        drop(master.attend(&runtime, Pause::new(Duration::ZERO))?);
        let service = Arc::new(NodeService { desk: Desk { incarnation }, segments: Arc::clone(&segments) });
        // The last to end: peers may read until the master has been told.
        let serving = Shutdown::new();
        let served = runtime.spawn({
            let (runtime, serving) = (runtime.clone(), serving.clone());
            async move {
                if let Err(error) = serve(runtime, listener, service, serving).await {
                    tracing::error!(%error, "serving ended");
                }
            }
        });
        let shared = member.clone();
        let carry_out = move |effect| segments.carry_out(effect, &shared);
        member::stay(runtime, master, identity, member, shutdown, carry_out).await;
        serving.begin();
        served.await;
        Ok(())
    }
}

/// The memory to lend, at least `bytes` of it.
fn block(config: &Config, bytes: u64) -> Result<Block, StartError> {
    if let Some(block) = &config.block {
        let long = block.len() >= bytes;
        return if long { Ok(block.clone()) } else { Err(StartError::TooShort(bytes, block.len())) };
    }
    let options = Options {
        sharing: Sharing::Shared,
        pages: config.pages,
        numa: config.numa,
        prefault: config.prefault,
    };
    let allocated = memory::allocate(bytes, options);
    let allocation = allocated.map_err(|error| StartError::Memory(bytes, error))?;
    tracing::info!(bytes, got = ?allocation.got, "memory allocated");
    Ok(allocation.block)
}

/// The address that peers are told.
fn advertised(bound: SocketAddr, host: Option<&str>) -> Result<String, StartError> {
    match host {
        Some(host) if host.contains(':') && !host.starts_with('[') => {
            Ok(format!("[{host}]:{}", bound.port()))
        }
        Some(host) => Ok(format!("{host}:{}", bound.port())),
        None if !usable_by_peers(bound) => Err(StartError::Advertise(bound)),
        None => Ok(bound.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_told_an_address_that_they_can_use() {
        let bound = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(advertised(bound("127.0.0.1:7"), None).unwrap(), "127.0.0.1:7");
        assert_eq!(advertised(bound("0.0.0.0:7"), Some("node-a")).unwrap(), "node-a:7");
        assert_eq!(advertised(bound("[::]:7"), Some("2001:db8::1")).unwrap(), "[2001:db8::1]:7");
        for nobody in ["0.0.0.0:7", "[::]:7", "[::ffff:0.0.0.0]:7", "[fe80::1%2]:7"] {
            assert!(matches!(advertised(bound(nobody), None), Err(StartError::Advertise(_))), "{nobody}");
            assert_eq!(advertised(bound(nobody), Some("node-a")).unwrap(), "node-a:7");
        }
    }
}
