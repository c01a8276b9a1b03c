//! From a segment's number to a way to its bytes.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use springtide_core::error::Code;
use springtide_core::id::{Incarnation, SegmentId, TargetId};
use springtide_core::time::Instant;
use springtide_core::wire::codec;
use springtide_core::wire::message::{self, SegmentInfo};
use springtide_driver::{Card, Lane, Pause, Runtime, Seat, now};
use springtide_rpc::{ClientConfig, Remote, Standing};

use crate::{Error, Greeting};

/// A way to a segment's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    pub(crate) target: TargetId,
    /// The owner's life, which tickets name.
    pub(crate) owner: Incarnation,
}

/// The ways known. A way that fails is forgotten and found anew: the owner may have come back as somebody else.
pub(crate) struct Routes<R> {
    runtime: R,
    lane: Arc<Seat<Lane>>,
    incarnation: Incarnation,
    tenant: String,
    known: Mutex<HashMap<SegmentId, Route>>,
    /// Owners by address and life.
    owners: Mutex<HashMap<(String, Incarnation), Remote>>,
}

impl<R: Runtime> Routes<R> {
    pub(crate) fn new(runtime: R, lane: Arc<Seat<Lane>>, incarnation: Incarnation, tenant: String) -> Self {
        let (known, owners) = (Mutex::default(), Mutex::default());
        Self { runtime, lane, incarnation, tenant, known, owners }
    }

    /// The way to `segment`; asks `master` and the owner if it is not known.
    pub(crate) async fn find(
        &self,
        master: &Remote,
        segment: SegmentId,
        deadline: Instant,
    ) -> Result<Route, Error> {
        if let Some(route) = lock(&self.known).get(&segment) {
            return Ok(*route);
        }
        let reply = master.call(message::SEGMENT, deadline, |body| codec::put(body, &segment)).await?;
        let info: SegmentInfo<'_> = codec::whole(&reply.body)?;
        let owner = self.owner(info.address, info.incarnation)?;
        let described = owner.call(message::DESCRIBE, deadline, |body| codec::put(body, &segment)).await;
        let reply = match described {
            Ok(reply) => reply,
            Err(error) => {
                lock(&self.owners).remove(&(info.address.to_owned(), info.incarnation));
                return Err(error.into());
            }
        };
        let ((), cards) = codec::split::<(), message::Card<'_>>(&reply.body)?;
        let cards: Vec<Card> = cards
            .map(|card| {
                card.map(|card| Card {
                    transport: card.transport.into(),
                    address: card.address.into(),
                    description: card.description.into(),
                })
            })
            .collect::<Result<_, _>>()?;
        self.forget_the_dead();
        let target = self.lane.with(now(), |lane, _| lane.target(now(), &cards));
        let target = target.map_err(|error| Error::new(error.code(), error))?;
        let route = Route { target, owner: info.incarnation };
        Ok(self.remember(segment, route))
    }

    /// Whether a way to `segment` is known: likely a good one, as ways that fail are forgotten.
    pub(crate) fn is_near(&self, segment: SegmentId) -> bool {
        lock(&self.known).contains_key(&segment)
    }

    /// Forgets a way that failed, unless it was found anew meanwhile.
    pub(crate) fn forget(&self, segment: SegmentId, failed: Route) {
        let mut known = lock(&self.known);
        if known.get(&segment) == Some(&failed) {
            known.remove(&segment);
            drop(known);
            self.lane.with(now(), |lane, _| lane.drop_target(now(), failed.target));
        }
    }

    /// Forgets owners whose connections broke, with all ways to them: a process that is gone is never asked for again,
    /// so nothing else would. One that lives after all is found anew.
    fn forget_the_dead(&self) {
        let mut dead = Vec::new();
        lock(&self.owners).retain(|(_, life), remote| {
            let lives = !matches!(remote.connected(), (1.., Standing::Down));
            if !lives {
                dead.push(*life);
            }
            lives
        });
        if dead.is_empty() {
            return;
        }
        let mut gone = Vec::new();
        lock(&self.known).retain(|_, route| {
            let lives = !dead.contains(&route.owner);
            if !lives {
                gone.push(route.target);
            }
            lives
        });
        self.lane.with(now(), |lane, _| gone.into_iter().for_each(|target| lane.drop_target(now(), target)));
    }

    fn remember(&self, segment: SegmentId, route: Route) -> Route {
        let mut known = lock(&self.known);
        if let Some(first) = known.get(&segment) {
            let first = *first;
            drop(known);
            self.lane.with(now(), |lane, _| lane.drop_target(now(), route.target));
            return first;
        }
        known.insert(segment, route);
        route
    }

    /// A connection to the owner at `address`; a new one for each life of it.
    fn owner(&self, address: &str, life: Incarnation) -> Result<Remote, Error> {
        if address.is_empty() {
            return Err(Error::new(Code::SEGMENT_NOT_FOUND, "the segment's owner gave no address"));
        }
        let key = (address.to_owned(), life);
        if let Some(remote) = lock(&self.owners).get(&key) {
            return Ok(remote.clone());
        }
        let addresses = springtide_rpc::resolve(address)?;
        let hello = Greeting::new(self.incarnation, &self.tenant, 0).expecting(life);
        let remote = Remote::new(addresses, ClientConfig::default(), Some(Box::new(hello)))?;
        drop(remote.attend(&self.runtime, Pause::new(Duration::ZERO))?);
        let mut owners = lock(&self.owners);
        owners.retain(|(other, _), _| other != address);
        Ok(owners.entry(key).or_insert(remote).clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
