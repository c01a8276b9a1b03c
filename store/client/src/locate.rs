//! Where objects and members are (S0A-057, S0A-068, S0B-164).

use core::time::Duration;

use springtide_core::error::Code;
use springtide_core::id::Incarnation;
use springtide_core::wire::codec;
use springtide_core::wire::message::{self, Found, Leased, Pattern, Refusal};
use springtide_driver::Runtime;

use crate::tally::CallKind;
use crate::{Client, Error};

/// One page of where objects are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    /// The keys on it, in no order, and where each is.
    pub items: Vec<(Vec<u8>, Found)>,
    /// Where the next page begins; `None` when this was the last.
    pub next: Option<u64>,
    /// How long each may be counted on, from before it was asked for.
    pub lease: Duration,
}

impl<R: Runtime> Client<R> {
    /// Where `key`'s replicas are. Grants a lease, as a read does.
    ///
    /// # Errors
    /// [`Code::OBJECT_NOT_FOUND`], [`Code::REPLICA_IS_NOT_READY`].
    pub async fn locate(&self, key: &[u8]) -> Result<Found, Error> {
        self.located(&[key]).await.1.pop().unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// Where the replicas of many keys are, each with its own result. Grants leases, as reads do.
    pub async fn locate_batch(&self, keys: &[&[u8]]) -> Vec<Result<Found, Error>> {
        self.located(keys).await.1
    }

    /// Where the objects are whose keys match, page by page, from `cursor` on (`None` to begin): replicas by expression.
    /// Those that go while they are asked for are left out, and so are those that are still being written. Grants
    /// leases, as reads do.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn locate_matching(
        &self,
        pattern: Pattern<'_>,
        cursor: Option<u64>,
        limit: u32,
    ) -> Result<Located, Error> {
        let page = self.list(pattern, cursor, limit).await?;
        let keys: Vec<Vec<u8>> = page.items.into_iter().map(|(key, _)| key).collect();
        let borrowed: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let (lease, found) = self.located(&borrowed).await;
        let mut items = Vec::with_capacity(keys.len());
        for (key, found) in keys.into_iter().zip(found) {
            match found {
                Ok(found) => items.push((key, found)),
                Err(error) if gone(error.code()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Located { items, next: page.next, lease })
    }

    /// Where the members with these lives serve, as `host:port`, from one call; `None` for one that is not known or
    /// serves nothing.
    ///
    /// # Errors
    /// When the master does not answer.
    pub async fn addresses(&self, lives: &[Incarnation]) -> Result<Vec<Option<String>>, Error> {
        let mut addresses = vec![None; lives.len()];
        if lives.is_empty() {
            return Ok(addresses);
        }
        self.members(|member| {
            let same = lives.iter().zip(&mut addresses).filter(|(life, _)| **life == member.incarnation);
            same.filter(|_| !member.address.is_empty())
                .for_each(|(_, address)| *address = Some(member.address.to_owned()));
        })
        .await?;
        Ok(addresses)
    }

    /// The lease, and where each key is.
    async fn located(&self, keys: &[&[u8]]) -> (Duration, Vec<Result<Found, Error>>) {
        let mut lease = Duration::ZERO;
        let found = async {
            let asked = self.for_each_key::<Leased, Result<Found, Refusal>>(message::GET, keys, |body| {
                codec::put(body, &());
            });
            let (head, found) = asked.await;
            lease = head.map_or(Duration::ZERO, |head| Duration::from_millis(head.lease_ms.into()));
            found.into_iter().map(|found| Ok(found??)).collect()
        };
        let found = self.counted_each(CallKind::Stat, found).await;
        (lease, found)
    }
}

const fn gone(code: Code) -> bool {
    matches!(code, Code::OBJECT_NOT_FOUND | Code::REPLICA_IS_NOT_READY)
}
