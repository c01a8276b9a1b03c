//! Where replies go: into the connection's output at once, or later from anywhere.

use core::fmt;
use core::task::Waker;
use std::sync::{Arc, Mutex, PoisonError};

use springtide_core::error::Code;
use springtide_core::wire::frame::{HEADER, Header, MAX_BODY, encode};

/// Collects the replies to one read's requests.
#[derive(Debug)]
pub struct Replies<'a> {
    out: &'a mut Vec<u8>,
    /// `None` where nothing can be parked.
    late: Option<&'a Arc<Late>>,
}

impl<'a> Replies<'a> {
    pub(crate) const fn new(out: &'a mut Vec<u8>, late: &'a Arc<Late>) -> Self {
        Self { out, late: Some(late) }
    }

    /// Replies that are appended to `out`, outside a connection: all of them at once, none can be parked.
    pub const fn at_once(out: &'a mut Vec<u8>) -> Self {
        Self { out, late: None }
    }

    /// Answers the request with header `request`; `body` appends the message.
    pub fn reply(&mut self, request: &Header, status: Code, body: impl FnOnce(&mut Vec<u8>)) {
        append(self.out, request, status, body);
    }

    /// Refuses a request with one line of text for people.
    pub fn refuse(&mut self, request: &Header, status: Code, text: impl fmt::Display) {
        refuse(self.out, request, status, text);
    }

    /// Leaves a request to be answered later, from any thread.
    ///
    /// # Errors
    /// [`Full`] when the connection has as many parked requests as it may: refuse it with [`Code::BUSY`].
    pub fn park(&mut self, request: &Header) -> Result<Parked, Full> {
        let late = self.late.ok_or(Full)?;
        let mut state = late.lock();
        if state.parked >= late.most {
            return Err(Full);
        }
        state.parked += 1;
        drop(state);
        Ok(Parked { request: *request, late: Some(Arc::clone(late)) })
    }
}

/// A connection has as many parked requests as it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl Full {
    /// The number that people see.
    pub const fn code(self) -> Code {
        Code::BUSY
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many requests of this connection are waiting; try again later")
    }
}

impl core::error::Error for Full {}

/// A request that is answered later. Dropping it answers [`Code::INTERNAL_ERROR`], so that no caller waits for nothing.
#[derive(Debug)]
#[must_use = "a parked request that is dropped is refused"]
pub struct Parked {
    request: Header,
    /// `None` once answered.
    late: Option<Arc<Late>>,
}

impl Parked {
    /// The request's header.
    pub const fn header(&self) -> &Header {
        &self.request
    }

    /// Answers it; `body` appends the message. Does nothing when the connection has ended.
    pub fn reply(mut self, status: Code, body: impl FnOnce(&mut Vec<u8>)) {
        self.answer(status, body);
    }

    /// Refuses it with one line of text for people.
    pub fn refuse(mut self, status: Code, text: impl fmt::Display) {
        self.answer(status, |out| line(out, &text));
    }

    fn answer(&mut self, status: Code, body: impl FnOnce(&mut Vec<u8>)) {
        let Some(late) = self.late.take() else { return };
        let mut state = late.lock();
        state.parked -= 1;
        if state.closed {
            return;
        }
        append(&mut state.out, &self.request, status, body);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.answer(Code::INTERNAL_ERROR, |out| line(out, &"the request was dropped without an answer"));
    }
}

/// What parked requests and their connection's task share.
#[derive(Debug)]
pub(crate) struct Late {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    out: Vec<u8>,
    parked: usize,
    closed: bool,
    waker: Option<Waker>,
}

impl Late {
    /// For a connection with at most `most` parked requests.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default() })
    }

    /// Moves late replies into `out` and registers `waker` for the next; gives back how many requests are parked.
    pub(crate) fn collect(&self, out: &mut Vec<u8>, waker: &Waker) -> usize {
        let mut state = self.lock();
        if out.is_empty() {
            core::mem::swap(out, &mut state.out);
        } else {
            out.append(&mut state.out);
        }
        if state.parked > 0 {
            match &mut state.waker {
                Some(old) => old.clone_from(waker),
                empty => *empty = Some(waker.clone()),
            }
        }
        state.parked
    }

    /// The connection has ended: late replies go nowhere.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.out = Vec::new();
        let waker = state.waker.take();
        drop(state);
        drop(waker);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends a reply. One that is longer than a frame may be becomes a refusal that says so.
fn append(out: &mut Vec<u8>, request: &Header, status: Code, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len() + HEADER;
    let whole = encode(out, &request.reply(status), |out| {
        body(out);
        if out.len() - start > MAX_BODY { Err(out.len() - start) } else { Ok(()) }
    });
    if let Err(len) = whole {
        let text = format_args!("the answer would have {len} bytes, {MAX_BODY} are allowed; ask for less");
        refuse(out, request, Code::BUFFER_OVERFLOW, text);
    }
}

/// Appends a refusal with one line of text.
pub(super) fn refuse(out: &mut Vec<u8>, request: &Header, status: Code, text: impl fmt::Display) {
    append(out, request, status, |out| line(out, &text));
}

fn line(out: &mut Vec<u8>, text: &dyn fmt::Display) {
    // Writing to a Vec cannot fail.
    let _ = std::io::Write::write_fmt(out, format_args!("{text}"));
}
