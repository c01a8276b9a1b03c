//! Services as processes of our own: started, awaited, stopped, never left behind.

use core::time::Duration;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use crate::address::Address;
use crate::commands::ready::{Ready, Role};
use crate::exit::Failure;

/// How long a service may take to exit once it was asked to.
const EXIT: Duration = Duration::from_secs(5);

/// A running service. It holds the reading end of a pipe as its standard input and exits when that closes, so that it
/// goes with its owner even if the owner is killed. Dropping it asks it to exit and kills it if it does not.
#[derive(Debug)]
pub struct Service {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    ready: Ready,
}

impl Service {
    /// Starts `program` (the `springtide` command) as a `role` with `arguments`, and waits until it is ready.
    pub fn start<A: AsRef<OsStr>>(
        program: &Path,
        role: Role,
        arguments: &[A],
        patience: Duration,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command.arg(role.to_string()).arg("--until-eof").args(arguments);
        Self::spawn(command, role, patience)
    }

    fn spawn(mut command: Command, role: Role, patience: Duration) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.spawn().map_err(|error| Failure::new(format_args!("cannot start a {role}: {error}")))?;
        let input = child.stdin.take();
        let (tell, lines) = mpsc::channel();
        // Ends when the service does: then its output closes.
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).all(|line| tell.send(line).is_ok())
            });
        }
        let unknown = Ready { role, address: Address { host: String::new(), port: 0 } };
        let mut service = Self { child, input, lines, ready: unknown };
        service.ready = service.await_ready(patience)?;
        Ok(service)
    }

    fn await_ready(&mut self, patience: Duration) -> Result<Ready, Failure> {
        let role = self.ready.role;
        loop {
            match self.lines.recv_timeout(patience) {
                Ok(line) => {
                    if let Some(ready) = Ready::parse(&line).filter(|ready| ready.role == role) {
                        return Ok(ready);
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    return Err(Failure::new(format_args!("the {role} was not ready in time"))
                        .advise("see what it logged"));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status =
                        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                    let why = format_args!("the {role} ended before it was ready ({status})");
                    return Err(Failure::new(why).advise("see what it said above"));
                }
            }
        }
    }

    /// Where it serves.
    pub const fn address(&self) -> &Address {
        &self.ready.address
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it without a warning, as a crash would.
    pub fn kill(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to exit. An error if it must be killed, or ends with another code than 0.
    pub fn stop(mut self) -> Result<(), Failure> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Failure> {
        let role = self.ready.role;
        drop(self.input.take());
        let closed = loop {
            match self.lines.recv_timeout(EXIT) {
                Ok(_) => {}
                Err(end) => break end == mpsc::RecvTimeoutError::Disconnected,
            }
        };
        if !closed {
            self.kill();
            return Err(Failure::new(format_args!("the {role} did not exit in time and was killed")));
        }
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::new(format_args!("the {role} ended with {status}"))),
            Err(error) => Err(Failure::new(format_args!("cannot wait for the {role}: {error}"))),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Whoever wants to know how it ended calls `stop`.
        let _ = self.end();
    }
}

/// A folder of our own under the system's folder for temporary files; removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes an empty folder whose name no other process uses.
    pub fn new() -> Result<Self, Failure> {
        let name = format!("springtide-{}", springtide_hal_host::clock::incarnation());
        let path = std::env::temp_dir().join(name);
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(Self(path)),
            Err(error) => {
                Err(Failure::new(format_args!("cannot make the folder {}: {error}", path.display()))
                    .advise("set TMPDIR to a folder that can be written"))
            }
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left lies in a folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Result<Service, Failure> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Service::spawn(command, Role::Master, PATIENCE)
    }

    #[test]
    fn it_is_ready_when_it_says_so_and_ends_when_its_input_closes() {
        let service = shell("echo noise; echo springtide master ready at 127.0.0.1:7; cat").unwrap();
        assert_eq!(service.address().to_string(), "127.0.0.1:7");
        assert_eq!(service.stop(), Ok(()));
    }

    #[test]
    fn one_that_ends_early_or_badly_is_an_error() {
        let early = shell("exit 3").err().unwrap().to_string();
        assert!(early.contains("before it was ready") && early.contains('3'), "{early}");
        let bad = shell("echo springtide master ready at 127.0.0.1:7; cat; exit 4").unwrap();
        assert!(bad.stop().unwrap_err().to_string().contains('4'));
    }

    #[test]
    fn a_killed_one_is_gone() {
        let mut service = shell("echo springtide master ready at 127.0.0.1:7; exec cat").unwrap();
        service.kill();
        assert!(service.stop().unwrap_err().to_string().contains("signal: 9"));
    }

    #[test]
    fn a_scratch_folder_goes_with_its_owner() {
        let (a, b) = (Scratch::new().unwrap(), Scratch::new().unwrap());
        assert_ne!(a.path(), b.path());
        std::fs::write(a.path().join("file"), "x").unwrap();
        let path = a.path().to_owned();
        drop(a);
        assert!(!path.exists() && b.path().exists());
    }
}
