//! A pool of this machine's own: a master and nodes as processes, for replay, benchmarks and tests.

use core::time::Duration;
use std::path::PathBuf;

use crate::address::Address;
use crate::commands::ready::Role;
use crate::exit::Failure;
use crate::process::{Scratch, Service};
use crate::size::Size;

/// How long a process may take to get ready.
const READY: Duration = Duration::from_secs(30);

/// The services of a pool that comes and goes with a command say only what went wrong.
const QUIET: [&str; 2] = ["--log", "warn"];

/// What a pool is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program to run: this one, unless a test says otherwise.
    pub program: PathBuf,
    /// How many nodes.
    pub nodes: usize,
    /// How much memory each lends.
    pub memory: Size,
    /// More arguments for the master.
    pub master: Vec<String>,
}

impl Plan {
    /// A pool of nodes of this program.
    pub fn new(nodes: usize, memory: Size) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::new(format_args!("cannot find the program that is running: {error}"))
        })?;
        Ok(Self { program, nodes, memory, master: Vec::new() })
    }
}

/// A running pool. Its processes end with it.
#[derive(Debug)]
pub struct Cluster {
    plan: Plan,
    // Nodes go first, so that they can take leave; the master's folder goes last.
    nodes: Vec<Option<Service>>,
    master: Service,
    _folder: Scratch,
}

impl Cluster {
    /// Starts a pool, and waits until the master knows every node.
    pub fn start(plan: Plan) -> Result<Self, Failure> {
        let folder = Scratch::new()?;
        let state = folder.path().to_string_lossy().into_owned();
        let mut arguments =
            ["--listen", "127.0.0.1:0", "--http", "off", "--state", &state].map(str::to_owned).to_vec();
        arguments.extend(plan.master.iter().cloned());
        arguments.extend(QUIET.map(str::to_owned));
        let master = Service::start(&plan.program, Role::Master, &arguments, READY)?;
        let mut cluster = Self { nodes: Vec::new(), master, _folder: folder, plan };
        for node in 0..cluster.plan.nodes {
            cluster.nodes.push(None);
            cluster.start_node(node)?;
        }
        Ok(cluster)
    }

    /// Starts node `node`, again if it was stopped.
    pub fn start_node(&mut self, node: usize) -> Result<(), Failure> {
        let (master, memory) = (self.master.address().to_string(), self.plan.memory.0.to_string());
        let name = format!("node-{node}");
        let [log, level] = QUIET;
        let arguments = ["--master", &master, "--memory", &memory, "--name", &name, log, level];
        self.nodes[node] = Some(Service::start(&self.plan.program, Role::Node, &arguments, READY)?);
        Ok(())
    }

    /// Where the master serves.
    pub const fn master(&self) -> &Address {
        self.master.address()
    }

    /// Ends node `node` at once, as a crash would.
    pub fn kill_node(&mut self, node: usize) {
        if let Some(mut service) = self.nodes[node].take() {
            service.kill();
        }
    }

    /// Asks every process to exit. An error if one must be killed, or ends badly.
    pub fn stop(self) -> Result<(), Failure> {
        self.nodes.into_iter().flatten().try_for_each(Service::stop)?;
        self.master.stop()
    }
}
