//! Calls that move no values (S0B-164, S0B-166).

use serde::Deserialize;
use springtide_core::error::Code;
use springtide_core::wire::codec;
use springtide_core::wire::frame::Method;
use springtide_core::wire::message::{
    self, Clear, Figures, Forcing, Listed, MemberInfo, Pattern, Presence, ProbeKind, Refusal, RemoveMatching,
    RemoveStep, Scan, ScanPage, SegmentInfo, Stat,
};
use springtide_driver::Runtime;

use crate::{CallKind, Client, Error};

/// One page of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The keys on it, in no order, and what is known of each.
    pub items: Vec<(Vec<u8>, Stat)>,
    /// Where the next page begins; `None` when this was the last.
    pub next: Option<u64>,
}

impl<R: Runtime> Client<R> {
    async fn ask(&self, method: Method, body: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>, Error> {
        Ok(self.0.master.call(method, self.deadline(), body).await?.body)
    }

    /// The head of the answer, if there is one, and one answer for each key; a call that fails as a whole fails for each,
    /// and for no key none is made (S0B-164).
    pub(crate) async fn for_each_key<H: for<'a> Deserialize<'a>, T: for<'a> Deserialize<'a>>(
        &self,
        method: Method,
        keys: &[&[u8]],
        head: impl FnOnce(&mut Vec<u8>),
    ) -> (Option<H>, Vec<Result<T, Error>>) {
        if keys.is_empty() {
            return (None, Vec::new());
        }
        let asked = self.ask(method, |body| {
            head(body);
            keys.iter().for_each(|key| codec::put(body, key));
        });
        let answers = asked.await.and_then(|body| {
            let (head, tail) = codec::split::<H, T>(&body)?;
            let answers = tail.collect::<Result<Vec<T>, _>>()?;
            if answers.len() == keys.len() { Ok((head, answers)) } else { Err(Code::INVALID_VERSION.into()) }
        });
        match answers {
            Ok((head, answers)) => (Some(head), answers.into_iter().map(Ok).collect()),
            Err(error) => (None, keys.iter().map(|_| Err(error.clone())).collect()),
        }
    }

    /// Whether each key is there. Asking renews no lease.
    pub async fn exists_batch(&self, keys: &[&[u8]]) -> Vec<Result<Presence, Error>> {
        let asked =
            self.for_each_key::<(), _>(message::EXISTS, keys, |body| codec::put(body, &ProbeKind::Plain));
        self.counted_each(CallKind::Exists, async { asked.await.1 }).await
    }

    /// Whether `key` can be read.
    ///
    /// # Errors
    /// When the master does not answer, or the key is no key.
    pub async fn exists(&self, key: &[u8]) -> Result<bool, Error> {
        match self.exists_batch(&[key]).await.pop() {
            Some(Ok(Presence::BadKey)) => Err(Code::INVALID_KEY.into()),
            Some(answer) => Ok(answer? == Presence::Present),
            None => Err(Code::INTERNAL_ERROR.into()),
        }
    }

    /// What is known of `key`; touches nothing.
    ///
    /// # Errors
    /// [`Code::OBJECT_NOT_FOUND`].
    pub async fn stat(&self, key: &[u8]) -> Result<Stat, Error> {
        let head = |body: &mut Vec<u8>| codec::put(body, &());
        self.counted(CallKind::Stat, async {
            let answers = self.for_each_key::<(), Result<Stat, Refusal>>(message::STAT, &[key], head).await.1;
            answers.into_iter().next().ok_or(Code::INTERNAL_ERROR)??.map_err(Error::from)
        })
        .await
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// [`Code::OBJECT_NOT_FOUND`], [`Code::OBJECT_HAS_LEASE`] unless forced, [`Code::REPLICA_IS_NOT_READY`].
    pub async fn remove(&self, key: &[u8], force: Forcing) -> Result<(), Error> {
        self.remove_batch(&[key], force).await.pop().unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// Removes many keys, each with its own result.
    pub async fn remove_batch(&self, keys: &[&[u8]], force: Forcing) -> Vec<Result<(), Error>> {
        let removed = async {
            let answers = self.for_each_key::<(), Result<(), Refusal>>(message::REMOVE, keys, |body| {
                codec::put(body, &force);
            });
            answers.await.1.into_iter().map(|answer| Ok(answer??)).collect()
        };
        self.counted_each(CallKind::Remove, removed).await
    }

    /// Drops the replicas that objects of this client have on the segment called `segment`, or all of them if `None`;
    /// each key with its own result (S0A-061, S0A-085). What is being read, copied or written stays.
    pub async fn clear_batch(&self, keys: &[&[u8]], segment: Option<&str>) -> Vec<Result<(), Error>> {
        let clear = Clear { segment: segment.unwrap_or("") };
        let cleared = async {
            let answers = self.for_each_key::<(), Result<(), Refusal>>(message::CLEAR, keys, |body| {
                codec::put(body, &clear)
            });
            answers.await.1.into_iter().map(|answer| Ok(answer??)).collect()
        };
        self.counted_each(CallKind::Clear, cleared).await
    }

    /// Removes all keys that match, step by step: how many went, and how many matched but stayed because they are
    /// leased or being written. Keys that come meanwhile may stay.
    ///
    /// # Errors
    /// [`Code::INVALID_PARAMS`] for a pattern that is none; nothing is removed then.
    pub async fn remove_matching(&self, pattern: Pattern<'_>, force: Forcing) -> Result<(u64, u64), Error> {
        self.counted(CallKind::Remove, async {
            let (mut cursor, mut removed, mut skipped) = (0, 0, 0);
            loop {
                let request = RemoveMatching { cursor, pattern, force };
                let body = self.ask(message::REMOVE_MATCHING, |body| codec::put(body, &request)).await?;
                let step: RemoveStep = codec::whole(&body)?;
                removed += step.removed;
                skipped += step.skipped;
                if step.next == 0 {
                    return Ok((removed, skipped));
                }
                cursor = step.next;
            }
        })
        .await
    }

    /// One page of the keys that match, from `cursor` on (`None` to begin). A page may hold fewer than `limit` keys, or
    /// none, and not be the last.
    ///
    /// # Errors
    /// [`Code::INVALID_PARAMS`] for a pattern that is none.
    pub async fn list(&self, pattern: Pattern<'_>, cursor: Option<u64>, limit: u32) -> Result<Page, Error> {
        let request = Scan { cursor: cursor.unwrap_or(0), limit, pattern };
        let scan = self.ask(message::SCAN, |body| codec::put(body, &request));
        let body = self.counted(CallKind::List, scan).await?;
        let (head, tail) = codec::split::<ScanPage, Listed<'_>>(&body)?;
        let items = tail.map(|item| item.map(|listed| (listed.key.to_vec(), listed.stat)));
        Ok(Page { items: items.collect::<Result<_, _>>()?, next: (head.next != 0).then_some(head.next) })
    }

    /// The master's figures.
    ///
    /// # Errors
    /// When the master does not answer.
    pub async fn figures(&self) -> Result<Figures, Error> {
        let look = self.ask(message::FIGURES, |body| codec::put(body, &()));
        let body = self.counted(CallKind::Look, look).await?;
        Ok(codec::whole(&body)?)
    }

    /// Shows every segment to `visit`.
    ///
    /// # Errors
    /// When the master does not answer.
    pub async fn segments(&self, mut visit: impl FnMut(&SegmentInfo<'_>)) -> Result<(), Error> {
        let look = self.ask(message::SEGMENTS, |body| codec::put(body, &()));
        let body = self.counted(CallKind::Look, look).await?;
        let ((), tail) = codec::split::<(), SegmentInfo<'_>>(&body)?;
        for segment in tail {
            visit(&segment?);
        }
        Ok(())
    }

    /// Shows every member to `visit`.
    ///
    /// # Errors
    /// When the master does not answer.
    pub async fn members(&self, mut visit: impl FnMut(&MemberInfo<'_>)) -> Result<(), Error> {
        let look = self.ask(message::MEMBERS, |body| codec::put(body, &()));
        let body = self.counted(CallKind::Look, look).await?;
        let ((), tail) = codec::split::<(), MemberInfo<'_>>(&body)?;
        for member in tail {
            visit(&member?);
        }
        Ok(())
    }
}
