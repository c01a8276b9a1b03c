//! Calls that go well: from blocked threads, from tasks, and from both at once.

mod common;

use core::future::poll_fn;
use core::pin::Pin;
use core::sync::atomic::Ordering;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;

use common::{DROP, ECHO, FILL, PARK, RELEASE, Server, request, soon};
use springtide_core::error::Code;
use springtide_core::wire::frame::{MAX_BODY, Method};
use springtide_driver::{Pause, Runtime, block_on, block_on_with};
use springtide_rpc::{Ask, Call, CallError, ClientConfig, ServerConfig, Standing};
use springtide_tokio::Tokio;

fn echo(remote: &springtide_rpc::Remote, n: u32) -> Call {
    remote.call(ECHO, soon(), |out| out.extend_from_slice(&n.to_le_bytes()))
}

async fn all(calls: Vec<Call>) -> Vec<u32> {
    let mut answers = Vec::new();
    for call in calls {
        answers.push(u32::from_le_bytes(call.await.unwrap().body.try_into().unwrap()));
    }
    answers
}

#[test]
fn a_blocked_caller_needs_no_other_thread() {
    let server = Server::start(ServerConfig::default());
    let remote = server.remote();
    assert_eq!(remote.connected(), (0, Standing::Down));
    for n in 0..100u32 {
        let reply = remote.ask_blocking(Ask { trace: 9, ..Ask::new(ECHO, soon()) }, |out| {
            out.extend_from_slice(&n.to_le_bytes());
        });
        let reply = reply.unwrap();
        assert_eq!((reply.body, reply.header.trace), (n.to_le_bytes().to_vec(), 9));
    }
    assert_eq!(remote.connected(), (1, Standing::Up));
}

#[test]
fn ten_thousand_calls_are_in_flight_at_once() {
    let server = Server::start(ServerConfig::default());
    let remote = server.remote();
    let calls = (0..10_000).map(|n| echo(&remote, n)).collect();
    let answers = block_on(&[remote.seat()], soon(), all(calls)).unwrap();
    assert!(answers.into_iter().eq(0..10_000));
    let batches = server.service.batches.load(Ordering::SeqCst);
    assert!(batches < 1_000, "{batches} batches for 10,000 calls");
}

#[test]
fn frames_that_came_together_are_handled_together() {
    use std::io::{Read, Write};
    let server = Server::start(ServerConfig::default());
    let mut stream = server.plain();
    let frames: Vec<u8> = (1..=64).flat_map(|id| request(ECHO, id, b"x")).collect();
    stream.write_all(&frames).unwrap();
    // The replies come with one write; on loopback one read sees them all.
    let mut replies = vec![0; 2 * frames.len()];
    assert_eq!(stream.read(&mut replies).unwrap(), frames.len());
    assert_eq!(server.service.batches.load(Ordering::SeqCst), 1);
}

#[test]
fn tasks_call_while_somebody_attends() {
    for tokio in [Tokio::new_single().unwrap(), Tokio::new_multi(2).unwrap()] {
        for pause in [Pause::new(Duration::ZERO), Pause::default()] {
            let server = Server::start(ServerConfig::default());
            let remote = server.remote();
            let attending = remote.attend(&tokio, pause).unwrap();
            tokio.block_on(async {
                for n in 0..50 {
                    assert_eq!(all(vec![echo(&remote, n)]).await, [n]);
                }
                let answers = all((0..1_000).map(|n| echo(&remote, n)).collect()).await;
                assert!(answers.into_iter().eq(0..1_000));
                // The attending task ends with the last handle.
                drop(remote);
                attending.await;
            });
        }
    }
}

#[test]
fn eight_threads_and_a_task_share_one_connection() {
    let server = Server::start(ServerConfig::default());
    let remote = Arc::new(server.remote());
    let tokio = Tokio::new_multi(1).unwrap();
    let attending = remote.attend(&tokio, Pause::default()).unwrap();
    let background = {
        let remote = Arc::clone(&remote);
        tokio.spawn(async move {
            for n in 0..1_000 {
                assert_eq!(all(vec![echo(&remote, n)]).await, [n]);
            }
        })
    };
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let remote = &remote;
            scope.spawn(move || {
                let mut pause = Pause::new(Duration::from_micros(thread % 2 * 50));
                for n in 0..1_000 {
                    let answer =
                        block_on_with(&mut pause, &[remote.seat()], soon(), all(vec![echo(remote, n)]));
                    assert_eq!(answer.unwrap(), [n]);
                }
            });
        }
    });
    tokio.block_on(background);
    assert_eq!(server.service.frames.load(Ordering::SeqCst), 9_000);
    drop(remote);
    tokio.block_on(attending);
}

#[test]
fn a_parked_request_is_answered_later() {
    let server = Server::start(ServerConfig::default());
    let remote = server.remote();
    let parked = remote.call(PARK, soon(), |_| {});
    let released = async {
        let release = remote.call(RELEASE, soon(), |out| out.push(5));
        release.await.unwrap();
        parked.await.unwrap().body
    };
    assert_eq!(block_on(&[remote.seat()], soon(), released), Ok(vec![5]));
}

#[test]
fn a_parked_request_is_answered_from_another_thread() {
    let server = Server::start(ServerConfig::default());
    let remote = server.remote();
    let mut parked = Box::pin(remote.call(PARK, soon(), |_| {}));
    let arrived = poll_fn(|cx| {
        assert!(parked.as_mut().poll(cx).is_pending());
        if server.service.parked.lock().unwrap().is_empty() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    });
    block_on(&[remote.seat()], soon(), arrived).unwrap();
    let waiting = server.service.parked.lock().unwrap().pop().unwrap();
    std::thread::spawn(move || waiting.reply(Code::OK, |out| out.push(6)));
    assert_eq!(block_on(&[remote.seat()], soon(), parked).unwrap().unwrap().body, [6]);
}

#[test]
fn every_request_gets_an_answer() {
    let server = Server::start(ServerConfig { parked: 2, ..ServerConfig::default() });
    let remote = server.remote();
    let status = |method| match remote.ask_blocking(Ask::new(method, soon()), |_| {}) {
        Err(CallError::Status(code, text)) => (code, text),
        other => panic!("{other:?}"),
    };
    assert_eq!(status(DROP).0, Code::INTERNAL_ERROR);
    let (code, text) = status(Method(999));
    assert_eq!((code, &*text), (Code::NOT_SUPPORTED, "no such method; update the server"));
    let waiting = [(); 2].map(|()| remote.call(PARK, soon(), |_| {}));
    assert_eq!(status(PARK).0, Code::BUSY);
    drop(waiting);
    let too_long = |out: &mut Vec<u8>| out.extend_from_slice(&(MAX_BODY as u32 + 1).to_le_bytes());
    let refused = remote.ask_blocking(Ask::new(FILL, soon()), too_long).unwrap_err();
    assert_eq!(refused.code(), Code::BUFFER_OVERFLOW);
}

#[test]
fn the_longest_messages_pass_and_longer_ones_do_not_leave() {
    let server = Server::start(ServerConfig::default());
    let remote = server.remote();
    let body: Vec<u8> = (0..MAX_BODY).map(|n| (n / 4_093) as u8).collect();
    let reply = remote.ask_blocking(Ask::new(ECHO, soon()), |out| out.extend_from_slice(&body)).unwrap();
    assert!(reply.body == body);
    let too_long = remote.ask_blocking(Ask::new(ECHO, soon()), |out| out.resize(out.len() + MAX_BODY + 1, 0));
    assert_eq!(too_long, Err(CallError::TooLong));
    assert!(server.is_alive());
}

#[test]
fn bounds_on_calls_are_kept_and_said() {
    let server = Server::start(ServerConfig::default());
    let remote = server.remote_with(ClientConfig { calls: 2, ..ClientConfig::default() });
    let first = [(); 2].map(|()| remote.call(PARK, soon(), |_| {}));
    let mut third = remote.call(PARK, soon(), |_| {});
    let polled = Pin::new(&mut third).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Ready(Err(CallError::Busy)));
    drop(first);
    assert!(echo_works(&remote));
}

fn echo_works(remote: &springtide_rpc::Remote) -> bool {
    remote.ask_blocking(Ask::new(ECHO, soon()), |_| {}).is_ok()
}
