//! What waits to be sent: headers by value, payloads as pieces of blocks.

use std::collections::VecDeque;
use std::io;

use springtide_hal::Block;
use springtide_hal_host::net::{Out, PIECES};

/// The sending half of a connection. Does no I/O itself: [`drain`](Self::drain) hands the pieces to a function.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Headers, one after the other; those before `gone` were sent.
    heads: Vec<u8>,
    gone: usize,
    pieces: VecDeque<Piece>,
    bytes: u64,
    /// How many bytes were ever sent.
    total: u64,
}

#[derive(Debug)]
enum Piece {
    /// The next so many bytes of `heads`.
    Head(usize),
    /// Bytes of a block, which stays alive until they are sent.
    Memory(Block, u64, u64),
}

impl Outbox {
    /// How many bytes wait.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many bytes were sent since the connection began.
    pub(crate) const fn sent(&self) -> u64 {
        self.total
    }

    /// How many bytes will have been sent once all that waits is.
    pub(crate) const fn end(&self) -> u64 {
        self.total + self.bytes
    }

    /// How many pieces wait.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Whether nothing waits.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Queues a header.
    pub(crate) fn head(&mut self, bytes: &[u8]) {
        self.heads.extend_from_slice(bytes);
        self.bytes += bytes.len() as u64;
        match self.pieces.back_mut() {
            Some(Piece::Head(len)) => *len += bytes.len(),
            _ => self.pieces.push_back(Piece::Head(bytes.len())),
        }
    }

    /// Queues `len` bytes of `block` from `at` on, which the caller has checked.
    pub(crate) fn memory(&mut self, block: Block, at: u64, len: u64) {
        debug_assert!(block.span(at, len).is_ok());
        if len > 0 {
            self.pieces.push_back(Piece::Memory(block, at, len));
            self.bytes += len;
        }
    }

    /// Sends once, at most about `limit` bytes, through `send`: how many bytes were offered and taken.
    pub(crate) fn drain(
        &mut self,
        limit: u64,
        send: impl FnOnce(&[Out<'_>]) -> io::Result<usize>,
    ) -> io::Result<(u64, u64)> {
        let mut pieces = [Out::Bytes(&[]); PIECES];
        let (mut count, mut offered, mut at) = (0, 0, self.gone);
        for (slot, piece) in pieces.iter_mut().zip(&self.pieces) {
            if offered >= limit {
                break;
            }
            *slot = match piece {
                Piece::Head(len) => {
                    at += len;
                    Out::Bytes(&self.heads[at - len..at])
                }
                Piece::Memory(block, at, len) => {
                    let Ok(span) = block.span(*at, (*len).min(limit - offered)) else { break };
                    Out::Memory(span)
                }
            };
            offered += slot.len();
            count += 1;
        }
        let taken = send(&pieces[..count])? as u64;
        self.took(taken);
        Ok((offered, taken))
    }

    fn took(&mut self, taken: u64) {
        self.bytes -= taken;
        self.total += taken;
        let mut rest = taken;
        while let Some(front) = self.pieces.front_mut() {
            let whole = match front {
                Piece::Head(len) => {
                    let bytes = (*len as u64).min(rest) as usize;
                    self.gone += bytes;
                    *len -= bytes;
                    rest -= bytes as u64;
                    *len == 0
                }
                Piece::Memory(_, at, len) => {
                    let bytes = (*len).min(rest);
                    *at += bytes;
                    *len -= bytes;
                    rest -= bytes;
                    *len == 0
                }
            };
            if !whole {
                break;
            }
            self.pieces.pop_front();
        }
        // Headers are short and rarely many, so what is left moves to the front once half of them is gone.
        if self.gone * 2 >= self.heads.len() {
            self.heads.copy_within(self.gone.., 0);
            self.heads.truncate(self.heads.len() - self.gone);
            self.gone = 0;
        }
    }
}
