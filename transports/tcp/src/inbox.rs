//! Where arriving bytes go: straight into memory while a payload is due, else into a small buffer of headers.

use std::collections::VecDeque;
use std::io;

use springtide_hal::Block;
use springtide_hal_host::net::{In, PIECES};

/// A due payload.
#[derive(Debug)]
pub(crate) struct Landing {
    /// Where its next byte goes; `None` if it is thrown away.
    pub(crate) to: Option<(Block, u64)>,
    /// How many bytes are still due.
    pub(crate) left: u64,
}

/// What one receive asked for and got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filled {
    pub(crate) asked: u64,
    pub(crate) got: u64,
    /// How many landings came to their end.
    pub(crate) landed: usize,
}

/// The receiving half of a connection. Does no I/O itself: [`fill`](Self::fill) hands the pieces to a function.
#[derive(Debug)]
pub(crate) struct Inbox {
    head: Box<[u8]>,
    at: usize,
    filled: usize,
    landings: VecDeque<Landing>,
    /// How many bytes of headers to take in together with the end of the last payload.
    ahead: usize,
}

impl Inbox {
    /// A buffer for `head` bytes of headers, of which `ahead` are read together with payloads.
    pub(crate) fn new(head: usize, ahead: usize) -> Self {
        debug_assert!(ahead <= head);
        Self {
            head: vec![0; head].into_boxed_slice(),
            at: 0,
            filled: 0,
            landings: VecDeque::with_capacity(2 * PIECES),
            ahead,
        }
    }

    /// Bytes that arrived and were not looked at.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.head[self.at..self.filled]
    }

    /// Ends the first `bytes` of [`unread`](Self::unread).
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.filled);
    }

    /// Payloads that are due, the next one first.
    pub(crate) const fn landings(&self) -> &VecDeque<Landing> {
        &self.landings
    }

    /// Payloads that are due, to turn away.
    pub(crate) const fn landings_mut(&mut self) -> &mut VecDeque<Landing> {
        &mut self.landings
    }

    /// The unread bytes, and the payloads that are due, to append to: call [`consume`](Self::consume) and
    /// [`settle`](Self::settle) afterwards.
    pub(crate) fn parts(&mut self) -> (&[u8], &mut VecDeque<Landing>) {
        (&self.head[self.at..self.filled], &mut self.landings)
    }

    /// Gives bytes that came with the headers to the payloads that they belong to: how many payloads are complete.
    pub(crate) fn settle(&mut self) -> usize {
        let mut landed = 0;
        while let Some(front) = self.landings.front_mut() {
            let bytes = front.left.min((self.filled - self.at) as u64) as usize;
            if let Some((block, at)) = &front.to {
                let stored = block.write(*at, &self.head[self.at..self.at + bytes]);
                debug_assert!(stored.is_ok(), "a landing was checked when it became due");
            }
            self.at += bytes;
            if !front.advance(bytes as u64) {
                break;
            }
            self.landings.pop_front();
            landed += 1;
        }
        landed
    }

    /// Receives once, at most about `limit` bytes of payload, through `recv`.
    pub(crate) fn fill(
        &mut self,
        scratch: &mut [u8],
        limit: u64,
        recv: impl FnOnce(&mut [In<'_>]) -> io::Result<usize>,
    ) -> io::Result<Filled> {
        self.compact();
        debug_assert!(self.landings.is_empty() || self.filled == 0, "settled before");
        let mut pieces: [In<'_>; PIECES] = core::array::from_fn(|_| In::Bytes(&mut []));
        let (mut count, mut asked, mut whole) = (0, 0, true);
        let mut scratch = Some(scratch);
        for landing in &self.landings {
            let left = landing.left.min(limit.max(1).saturating_sub(asked));
            let piece = match &landing.to {
                Some((block, at)) => block.span(*at, left).map(In::Memory).ok(),
                None => scratch.take().map(|scratch| {
                    let len = scratch.len().min(left as usize);
                    In::Bytes(&mut scratch[..len])
                }),
            };
            whole = piece.as_ref().is_some_and(|piece| piece.len() == landing.left);
            if let Some(piece) = piece {
                asked += piece.len();
                pieces[count] = piece;
                count += 1;
            }
            if !whole || count == PIECES {
                break;
            }
        }
        if whole && count < PIECES && count >= self.landings.len() {
            let ahead = if count == 0 { self.head.len() } else { self.ahead };
            let room = &mut self.head[self.filled..ahead];
            asked += room.len() as u64;
            pieces[count] = In::Bytes(room);
            count += 1;
        }
        let got = recv(&mut pieces[..count])? as u64;
        Ok(Filled { asked, got, landed: self.arrived(got) })
    }

    fn arrived(&mut self, got: u64) -> usize {
        let (mut rest, mut landed) = (got, 0);
        while let Some(front) = self.landings.front_mut() {
            let bytes = front.left.min(rest);
            rest -= bytes;
            if !front.advance(bytes) {
                break;
            }
            self.landings.pop_front();
            landed += 1;
        }
        self.filled += rest as usize;
        landed
    }

    fn compact(&mut self) {
        self.head.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
    }
}

impl Landing {
    /// Takes `bytes` bytes as arrived; whether the payload is complete.
    const fn advance(&mut self, bytes: u64) -> bool {
        if let Some((_, at)) = &mut self.to {
            *at += bytes;
        }
        self.left -= bytes;
        self.left == 0
    }
}
