//! `springtide master`, `springtide node`.

use core::future::Future;
use core::net::{IpAddr, SocketAddr};
use core::task::Poll;
use core::time::Duration;
use std::sync::Arc;

use springtide::admin::{Server as Http, Source};
use springtide::core::address::usable_by_peers;
use springtide::core::evict::Kind;
use springtide::{
    CoordError, Master, MasterConfig, MasterError, MasterRules, Node, NodeConfig, NodeError, Runtime,
    Shutdown, Standing, Tokio, Transports, transports,
};

use super::figures::MasterFigures;
use super::ready::{Ready, Role, plain_text};
use crate::address::{self, Address};
use crate::args;
use crate::exit::Failure;
use crate::output::{Format, Out};
use crate::signals::Stop;

/// Serves metadata until TERM or INT.
pub fn master(args: &args::Master) -> Result<(), Failure> {
    let stop = Stop::install()?;
    if args.until_eof {
        stop.also_at_end_of_input();
    }
    let listen = one(&args.listen)?;
    warn(&args.listen);
    let config = MasterConfig { listen, state: Some(args.state.clone()), rules: rules(args)? };
    let master = Master::bind(config).map_err(no_master)?;
    let _http = match &args.http {
        address::Http::Off => None,
        address::Http::At(address) => {
            Some(http(address, Arc::new(MasterFigures::new(master.figures(), master.calls())))?)
        }
    };
    crate::keep_ahead();
    ready(Role::Master, &master.local_addr().to_string())?;
    let runtime = Tokio::new_single().map_err(no_runtime)?;
    serve(&runtime, stop, |shutdown| master.run(runtime.clone(), shutdown))
}

/// Lends memory until TERM or INT.
pub fn node(args: &args::Node) -> Result<(), Failure> {
    let stop = Stop::install()?;
    if args.until_eof {
        stop.also_at_end_of_input();
    }
    let listen = one(&args.listen)?;
    warn(&args.listen);
    if args.advertise.is_none() && !usable_by_peers(listen) {
        let why = format_args!("listening on {} tells peers no address", args.listen);
        return Err(Failure::usage(why).advise("give --advertise HOST"));
    }
    let runtime = Tokio::new_multi(2).map_err(no_runtime)?;
    let which = Transports {
        listen: Some(SocketAddr::new(listen.ip(), 0)),
        advertise: args.advertise.as_deref().map(advertised_ip).transpose()?,
        ..Transports::default()
    };
    let (life, opened) = transports(&which).map_err(|error| Failure::new(error).advise(OTHER_PORT))?;
    let config = NodeConfig {
        listen,
        advertise: args.advertise.clone(),
        name: args.name.clone(),
        uniform: args.uniform.map_or(0, |size| size.0),
        ..NodeConfig::new(args.connect.master.resolve()?, args.memory.0)
    };
    let node = Node::bind(life, &config, runtime.clone(), opened).map_err(no_node)?;
    let (standing, address, handle) = (node.standing(), node.advertised().to_owned(), runtime.clone());
    let master = args.connect.master.to_string();
    drop(runtime.spawn(async move { announce(&handle, &standing, &address, &master).await }));
    serve(&runtime, stop, |shutdown| node.run(shutdown))
}

/// Says that the node is ready once the master knows it, and meanwhile why it does not.
async fn announce(runtime: &Tokio, standing: &Standing, address: &str, master: &str) {
    let mut told = None;
    let mut settled = core::pin::pin!(standing.settled());
    loop {
        let mut timer = core::pin::pin!(runtime.timer(runtime.now() + Duration::from_secs(1)));
        let inside = core::future::poll_fn(|cx| match settled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => timer.as_mut().poll(cx).map(|()| false),
        });
        if inside.await {
            // A closed standard output is no reason to stop serving.
            let _ = ready(Role::Node, address);
            return;
        }
        let refusal = standing.refusal();
        if refusal.is_some() && refusal != told {
            tracing::warn!(master, why = refusal.as_deref(), "not registered with the master yet; trying on");
            told = refusal;
        }
    }
}

/// Runs `work` until a signal asks it to stop, and it has.
fn serve<F>(runtime: &Tokio, stop: Stop, work: impl FnOnce(Shutdown) -> F) -> Result<(), Failure>
where
    F: Future<Output = std::io::Result<()>>,
{
    let shutdown = Shutdown::new();
    let begin = shutdown.clone();
    let waiter = std::thread::Builder::new().name("springtide-signals".into()).spawn(move || {
        stop.wait();
        tracing::info!(signal = stop.signal(), "stopping");
        begin.begin();
    });
    waiter.map_err(|error| Failure::new(format_args!("cannot start a thread: {error}")))?;
    runtime.block_on(work(shutdown)).map_err(Failure::new)
}

fn rules(args: &args::Master) -> Result<MasterRules, Failure> {
    let (times, eviction) = (&args.times, &args.eviction);
    let rules = MasterRules {
        lease: times.lease,
        soft_pin: times.soft_pin,
        crashed_ttl: times.crashed_ttl(),
        put_discard: times.put_discard,
        put_release: times.put_release,
        high_watermark: eviction.high_watermark.0,
        eviction_ratio: eviction.eviction_ratio.0,
        policy: eviction.policy.as_deref().map(policy).transpose()?.unwrap_or_default(),
        ..MasterRules::with_client_ttl(times.client_ttl)
    };
    rules.validate().map_err(Failure::usage)?;
    Ok(rules)
}

/// What to do when a node cannot begin.
fn no_node(error: NodeError) -> Failure {
    let failure = Failure::new(&error);
    match error {
        NodeError::Listen(_) => failure.advise(OTHER_PORT),
        NodeError::Memory(..) => failure.advise("give a --memory that this machine has"),
        _ => failure,
    }
}

/// What to do when a master cannot begin.
fn no_master(error: MasterError) -> Failure {
    let failure = Failure::new(&error);
    match error {
        MasterError::Listen(_) => failure.advise(OTHER_PORT),
        MasterError::Coordination(CoordError::Io(..)) => {
            failure.advise("give --state a folder that can be written")
        }
        _ => failure,
    }
}

const OTHER_PORT: &str = "choose another --listen address of this machine, or port 0 for a free one";

/// The eviction policy of this name.
pub(crate) fn policy(name: &str) -> Result<Kind, Failure> {
    name.parse().map_err(|error| Failure::usage(format_args!("--policy {name:?}: {error}")))
}

/// The one address to listen on.
fn one(address: &Address) -> Result<SocketAddr, Failure> {
    Ok(address.resolve()?[0])
}

fn advertised_ip(host: &str) -> Result<IpAddr, Failure> {
    let found = one(&Address { host: host.to_owned(), port: 0 })?;
    if !usable_by_peers(found) {
        // A name may resolve so, and "0" is one to some resolvers.
        let why = format_args!("{host:?} stands for {}, every address of a machine", found.ip());
        return Err(Failure::usage(why).advise("advertise one that peers can reach"));
    }
    Ok(found.ip())
}

/// Says that a service is ready: one line, for people and for scripts that wait for it.
fn ready(role: Role, address: &str) -> Result<(), Failure> {
    let address = Address::rpc(address).map_err(Failure::new)?;
    Out::stdout(Format::Table).line(&Ready { role, address }.to_string())
}

fn warn(listen: &Address) {
    if let Some(text) = plain_text(listen.borrowed()) {
        tracing::warn!("{text}");
    }
}

pub(super) fn no_runtime(error: std::io::Error) -> Failure {
    Failure::new(format_args!("cannot start a runtime: {error}"))
}

fn http(address: &Address, source: Arc<dyn Source>) -> Result<Http, Failure> {
    let http = Http::start(one(address)?, source).map_err(|error| {
        Failure::new(format_args!("cannot serve HTTP on {address}: {error}"))
            .advise("choose another --http address, or --http off")
    })?;
    tracing::info!(address = %http.local_addr(), "metrics and health over HTTP");
    Ok(http)
}
