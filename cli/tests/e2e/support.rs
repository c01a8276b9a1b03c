//! What the tests stand on: pools of processes, callers, raw connections, and the one place that waits.

use core::net::SocketAddr;
use core::time::Duration;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;

use springtide::core::time::Instant;
use springtide::{Blocking, ClientConfig, Code, Error, Pattern, PutOptions, Tokio, Transports, transports};
use springtide_cli::commands::ready::Role;
use springtide_cli::process::{Scratch, Service};

/// How long anything may take that is bound to happen. Long, as the machines that run tests are slow; nothing waits
/// for as long as this unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a process may take from a signal to its end.
pub(crate) const EXIT: Duration = Duration::from_secs(10);

pub(crate) const KIB: usize = 1 << 10;
pub(crate) const MIB: usize = 1 << 20;

/// Now, by the monotonic clock.
pub(crate) fn now() -> Instant {
    springtide_driver::now()
}

/// Looks again and again until `look` finds something, and gives that back.
///
/// The only wait of these tests that is not for an event: what other processes do can only be looked at. Real time.
pub(crate) fn eventually<T>(patience: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = now() + patience;
    let (_never, nothing) = mpsc::channel::<()>();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(!until.reached(now()), "not within {patience:?}: {what}");
        let _ = nothing.recv_timeout(Duration::from_millis(20));
    }
}

/// The command, without settings from outside, and quiet.
pub(crate) fn springtide() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_springtide"));
    let vars = std::env::vars_os().map(|(name, _)| name);
    vars.filter(|name| name.to_string_lossy().starts_with("SPRINGTIDE_")).for_each(|name| {
        command.env_remove(name);
    });
    command.stdin(Stdio::null());
    command
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn out(&self) -> String {
        String::from_utf8(self.bytes.clone()).unwrap()
    }

    /// The JSON that it printed.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It failed with `code`, and one line that has all `parts`.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "{part:?} in {self:?}");
        }
        let own = self.err.lines().filter(|line| line.starts_with("springtide: ")).count();
        assert!(own == 1 || code == 2, "one line: {self:?}");
    }

    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

pub(crate) fn run(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let err = String::from_utf8_lossy(&stderr).into_owned();
    Ran { code: status.code().unwrap_or(-1), bytes: stdout, err }
}

/// Sends a signal by its name.
pub(crate) fn signal(id: u32, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status().unwrap();
    assert!(sent.success(), "kill -{name} {id}");
}

/// Waits for `child` to end by itself.
#[track_caller]
pub(crate) fn ended(mut child: Child, patience: Duration) -> Ran {
    eventually(patience, "the process ends", || child.try_wait().unwrap());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&stderr).into_owned();
    Ran { code: status.code().unwrap_or(-1), bytes: stdout, err }
}

/// A master and its nodes.
pub(crate) struct Pool {
    pub(crate) nodes: Vec<Service>,
    pub(crate) master: Service,
    scratch: Scratch,
    options: Vec<String>,
}

impl Pool {
    /// A pool with a node for each of `memory`.
    pub(crate) fn new(memory: &[&str]) -> Self {
        Self::with(&[], memory)
    }

    /// A pool whose master has these options, too.
    pub(crate) fn with(options: &[&str], memory: &[&str]) -> Self {
        let scratch = Scratch::new().unwrap();
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let master = Self::serve(scratch.path(), "127.0.0.1:0", &options);
        let mut pool = Self { nodes: Vec::new(), master, scratch, options };
        for memory in memory {
            pool.add(&["--memory", memory]);
        }
        pool
    }

    fn serve(scratch: &Path, listen: &str, options: &[String]) -> Service {
        let state = scratch.join("state");
        let mut arguments: Vec<&OsStr> = ["--listen", listen, "--http", "off", "--log", "error", "--state"]
            .iter()
            .map(|word| OsStr::new(*word))
            .collect();
        arguments.push(state.as_os_str());
        arguments.extend(options.iter().map(OsStr::new));
        start(Role::Master, &arguments)
    }

    /// Kills the master; another one takes over its folder and its port.
    pub(crate) fn restart_master(&mut self) {
        self.master.kill();
        let listen = self.master.address().to_string();
        self.master = Self::serve(self.scratch.path(), &listen, &self.options);
    }

    /// One more node.
    pub(crate) fn add(&mut self, arguments: &[&str]) -> &Service {
        let master = self.address();
        let mut all = vec!["--master", &master, "--log", "error"];
        all.extend(arguments);
        let all: Vec<&OsStr> = all.into_iter().map(OsStr::new).collect();
        self.nodes.push(start(Role::Node, &all));
        self.nodes.last().unwrap()
    }

    /// A folder of this pool's own.
    pub(crate) fn folder(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn address(&self) -> String {
        self.master.address().to_string()
    }

    pub(crate) fn socket(&self) -> SocketAddr {
        self.address().parse().unwrap()
    }

    /// The command, talking to this pool.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = springtide();
        command.args(arguments).env("SPRINGTIDE_MASTER", self.address());
        command
    }

    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Ran {
        run(&mut self.command(arguments))
    }

    /// What `status --json` says.
    pub(crate) fn status(&self) -> serde_json::Value {
        self.run(&["status", "--json"]).done().json()
    }

    /// One figure of `status`: `pool` or `counters`, and its name.
    pub(crate) fn figure(&self, group: &str, name: &str) -> u64 {
        self.status()[group][name].as_u64().unwrap()
    }

    /// A caller that takes the best transport there is.
    pub(crate) fn caller(&self) -> Caller {
        self.caller_with(&Transports::default(), |config| config)
    }

    /// A caller with settings of its own.
    pub(crate) fn caller_with(
        &self,
        which: &Transports,
        set: impl FnOnce(ClientConfig) -> ClientConfig,
    ) -> Caller {
        connect(self.socket(), which, set).unwrap()
    }

    /// Puts and gets one value, so that everybody sees that the pool serves.
    #[track_caller]
    pub(crate) fn serves(&self, key: &str) {
        let caller = self.caller();
        let value = pattern(1, 100 * KIB);
        caller.put(key.as_bytes(), &value, &PutOptions::default()).unwrap();
        assert!(caller.get(key.as_bytes()).unwrap() == value);
    }
}

fn start(role: Role, arguments: &[&OsStr]) -> Service {
    let program = Path::new(env!("CARGO_BIN_EXE_springtide"));
    Service::start(program, role, arguments, PATIENCE).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) type Caller = Blocking<Tokio>;

/// A caller of the master at `master`.
pub(crate) fn connect(
    master: SocketAddr,
    which: &Transports,
    set: impl FnOnce(ClientConfig) -> ClientConfig,
) -> Result<Caller, Error> {
    let (_, opened) = transports(which).unwrap();
    let config = ClientConfig { timeout: PATIENCE, ..ClientConfig::new([master]) };
    Blocking::connect(set(config), Tokio::new_multi(1).unwrap(), opened)
}

/// All keys that match.
pub(crate) fn keys(caller: &Caller, pattern: Pattern<'_>) -> Vec<Vec<u8>> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = caller.run(caller.client().list(pattern, cursor, 100)).unwrap();
        found.extend(page.items.into_iter().map(|(key, _)| key));
        cursor = page.next;
        if cursor.is_none() {
            found.sort();
            return found;
        }
    }
}

/// `len` bytes that no other `seed` has, and no other place.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let words = (0..len as u64).step_by(8);
    let mut bytes: Vec<u8> =
        words.flat_map(|at| springtide::core::rng::mix(seed << 40 ^ at).to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

/// The error is `code`, and its line has all `parts`.
#[track_caller]
pub(crate) fn refused<T: core::fmt::Debug>(result: Result<T, Error>, code: Code, parts: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}
