//! Writing one reply, reading one request.

use core::fmt::Display;

use serde::{Deserialize, Serialize};
use springtide_core::error::Code;
use springtide_core::wire::codec::{self, Malformed, Tail};
use springtide_core::wire::frame::Header;
use springtide_rpc::Replies;

use crate::calls::Calls;

/// The one reply to one request, still to be written.
pub(crate) struct Answer<'a, 'r> {
    request: &'a Header,
    replies: &'a mut Replies<'r>,
    calls: &'a Calls,
}

/// The items of a batch's answer, counted.
pub(crate) struct Items<'o> {
    body: &'o mut Vec<u8>,
    items: u64,
    failed: u64,
}

impl Items<'_> {
    /// Appends the answer to one item.
    pub(crate) fn put<T: Serialize, E: Serialize>(&mut self, item: &Result<T, E>) {
        self.failed += u64::from(item.is_err());
        self.say(item);
    }

    /// Appends an answer that is no refusal, whatever it says.
    pub(crate) fn say<T: Serialize>(&mut self, item: &T) {
        self.items += 1;
        codec::put(self.body, item);
    }
}

impl<'a, 'r> Answer<'a, 'r> {
    pub(crate) const fn new(request: &'a Header, replies: &'a mut Replies<'r>, calls: &'a Calls) -> Self {
        Self { request, replies, calls }
    }

    /// Success with a head and no items.
    pub(crate) fn head<T: Serialize>(self, head: &T) {
        self.tail(head, |_| {});
    }

    /// Success with a head, and a list that `items` appends.
    pub(crate) fn tail<T: Serialize>(self, head: &T, items: impl FnOnce(&mut Vec<u8>)) {
        self.replies.reply(self.request, Code::OK, |body| {
            codec::put(body, head);
            items(body);
        });
        self.calls.answered(self.request.method, 0, 0);
    }

    /// Success with a head, and the answers to a batch's items, one by one.
    pub(crate) fn batch<T: Serialize>(self, head: &T, each: impl FnOnce(&mut Items<'_>)) {
        let (mut items, mut failed) = (0, 0);
        self.replies.reply(self.request, Code::OK, |body| {
            codec::put(body, head);
            let mut out = Items { body, items: 0, failed: 0 };
            each(&mut out);
            (items, failed) = (out.items, out.failed);
        });
        self.calls.answered(self.request.method, items, failed);
    }

    /// Failure of the whole call, with a line that says why.
    pub(crate) fn refuse(self, code: Code, why: impl Display) {
        self.replies.refuse(self.request, code, why);
        self.calls.refused(self.request.method);
    }

    /// Success with a head, or failure.
    pub(crate) fn head_or<T: Serialize, E: Display>(
        self,
        result: Result<T, E>,
        code: impl FnOnce(&E) -> Code,
    ) {
        match result {
            Ok(head) => self.head(&head),
            Err(error) => self.refuse(code(&error), error),
        }
    }
}

/// Reads a whole body.
pub(crate) fn whole<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Malformed> {
    codec::whole(body)
}

/// Reads a body with a tail, every item of which can be read: a batch is carried out whole or not begun.
pub(crate) fn split<'b, H, T>(
    body: &'b [u8],
) -> Result<(H, impl Iterator<Item = T> + Clone + use<'b, H, T>), Malformed>
where
    H: Deserialize<'b>,
    T: Deserialize<'b> + 'b,
{
    let (head, tail): (H, Tail<'b, T>) = codec::split(body)?;
    if tail.clone().any(|item| item.is_err()) {
        return Err(Malformed);
    }
    Ok((head, tail.filter_map(Result::ok)))
}
