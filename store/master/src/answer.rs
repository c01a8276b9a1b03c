//! Writing one reply, reading one request.

use core::fmt::Display;

use serde::{Deserialize, Serialize};
use springtide_core::error::Code;
use springtide_core::wire::codec::{self, Malformed, Tail};
use springtide_core::wire::frame::Header;
use springtide_rpc::Replies;

/// The one reply to one request, still to be written.
pub(crate) struct Answer<'a, 'r> {
    request: &'a Header,
    replies: &'a mut Replies<'r>,
}

impl<'a, 'r> Answer<'a, 'r> {
    pub(crate) const fn new(request: &'a Header, replies: &'a mut Replies<'r>) -> Self {
        Self { request, replies }
    }

    /// Success with a head and no items.
    pub(crate) fn head<T: Serialize>(self, head: &T) {
        self.tail(head, |_| {});
    }

    /// Success with a head, and items that `items` appends.
    pub(crate) fn tail<T: Serialize>(self, head: &T, items: impl FnOnce(&mut Vec<u8>)) {
        self.replies.reply(self.request, Code::OK, |body| {
            codec::put(body, head);
            items(body);
        });
    }

    /// Failure of the whole call, with a line that says why.
    pub(crate) fn refuse(self, code: Code, why: impl Display) {
        self.replies.refuse(self.request, code, why);
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
