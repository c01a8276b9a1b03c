//! One end of a simulated network.

use core::time::Duration;
use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use springtide_core::id::{Incarnation, OpId, PathId, RegionId, RemoteId, TicketId};
use springtide_core::range::Extent;
use springtide_core::ticket::{Gate, Ticket};
use springtide_core::time::Instant;
use springtide_hal::Block;
use springtide_transport::{
    Armed, Budget, Capabilities, Completion, ControlError, DownReason, Event, Exposure, Op, Reason, Status,
    SubmitError, Transport,
};

use crate::net::{Flight, Link, LinkState, Region, SimNet, Stage};
use crate::serve::until;

const MAGIC: [u8; 4] = *b"sim1";

/// One end of a [`SimNet`]. Dropping it is what the death of its process is to its peers.
///
/// It has no descriptor to wait on: `arm` says how long there is nothing to do.
#[derive(Debug)]
pub struct SimTransport {
    net: SimNet,
    end: usize,
    port: u32,
    capabilities: Capabilities,
    tickets: HashMap<TicketId, Ticket>,
    remotes: HashMap<RemoteId, (PathId, RegionId)>,
}

impl SimTransport {
    pub(crate) fn new(net: SimNet, end: usize, port: u32, capabilities: Capabilities) -> Self {
        Self { net, end, port, capabilities, tickets: HashMap::new(), remotes: HashMap::new() }
    }

    /// The flight of one op, or why it cannot fly.
    fn flight(&self, regions: &HashMap<RegionId, Region>, path: PathId, op: &Op) -> Result<Flight, Reason> {
        let region = regions.get(&op.local).ok_or(Reason::BadRegion)?;
        region.block.span(op.at, u64::from(op.len)).map_err(|_| Reason::BadRegion)?;
        let remote = match self.remotes.get(&op.remote) {
            Some((via, region)) if *via == path => *region,
            _ => return Err(Reason::BadRegion),
        };
        // A ticket that is not known here is none: the owner refuses the store.
        let ticket = op.ticket.and_then(|id| self.tickets.get(&id).copied());
        let local = region.block.clone();
        Ok(Flight { op: *op, local, region: remote, ticket, moved: 0, stage: Stage::Posted })
    }
}

impl Transport for SimTransport {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn expose(&mut self, region: RegionId, block: &Block, exposure: Exposure) -> Result<(), ControlError> {
        let gate = match exposure {
            Exposure::Local | Exposure::Source => None,
            Exposure::Segment { owner, segment, key } => Some((owner, Gate::new(owner, segment, key))),
        };
        let mut net = self.net.lock();
        let regions = &mut net.ends[self.end].regions;
        if regions.contains_key(&region) {
            return Err(ControlError::Unknown);
        }
        regions.insert(region, Region { block: block.clone(), gate });
        Ok(())
    }

    fn withdraw(&mut self, region: RegionId) {
        self.net.lock().ends[self.end].regions.remove(&region);
    }

    fn describe(&self, region: RegionId, out: &mut Vec<u8>) -> Result<(), ControlError> {
        let net = self.net.lock();
        let Some(Region { gate: Some((owner, _)), .. }) = net.ends[self.end].regions.get(&region) else {
            return Err(ControlError::Unknown);
        };
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&owner.0.to_le_bytes());
        out.extend_from_slice(&region.to_bits().to_le_bytes());
        Ok(())
    }

    fn address(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.port.to_le_bytes());
    }

    fn open(&mut self, _now: Instant, path: PathId, address: &[u8]) -> Result<(), ControlError> {
        let port = address.strip_prefix(&MAGIC).and_then(|port| port.try_into().ok());
        let port = u32::from_le_bytes(port.ok_or(ControlError::Malformed)?);
        let mut net = self.net.lock();
        let to = net.ports.get(port as usize).copied().flatten().ok_or(ControlError::Unreachable)?;
        if net.ends[self.end].paths.contains_key(&path) {
            return Err(ControlError::Unknown);
        }
        let (link, depth) = (net.links.len(), net.shape.depth as usize);
        net.links.push(Link {
            path,
            from: self.end,
            to,
            state: LinkState::Opening(None),
            free: Instant::ORIGIN,
            flights: std::collections::VecDeque::with_capacity(depth),
        });
        net.ends[self.end].paths.insert(path, link);
        net.ends[self.end].outgoing.push(link);
        net.ends[to].incoming.push(link);
        drop(net);
        self.remotes.retain(|_, (via, _)| *via != path);
        Ok(())
    }

    fn import(&mut self, path: PathId, remote: RemoteId, description: &[u8]) -> Result<(), ControlError> {
        let (owner, region) = parse(description).ok_or(ControlError::Malformed)?;
        let net = self.net.lock();
        let link = *net.ends[self.end].paths.get(&path).ok_or(ControlError::Unknown)?;
        match net.ends[net.links[link].to].regions.get(&region) {
            Some(Region { gate: Some((life, _)), .. }) if *life == owner => {}
            _ => return Err(ControlError::Stale),
        }
        drop(net);
        if self.remotes.contains_key(&remote) {
            return Err(ControlError::Unknown);
        }
        self.remotes.insert(remote, (path, region));
        Ok(())
    }

    fn forget(&mut self, remote: RemoteId) {
        self.remotes.remove(&remote);
    }

    fn admit(&mut self, id: TicketId, ticket: &Ticket) -> Result<(), ControlError> {
        self.tickets.insert(id, *ticket);
        Ok(())
    }

    fn retire(&mut self, id: TicketId) {
        self.tickets.remove(&id);
    }

    fn fence(
        &mut self,
        region: RegionId,
        extent: Extent,
        below: u64,
        fence: u64,
    ) -> Result<(), ControlError> {
        let mut net = self.net.lock();
        let end = &mut net.ends[self.end];
        let Some(Region { gate: Some((_, gate)), .. }) = end.regions.get_mut(&region) else {
            return Err(ControlError::Unknown);
        };
        // Every step of every store passes the gate, so from here on none lands.
        gate.fence(extent, below);
        end.events.push_back(Event::Fenced(fence));
        Ok(())
    }

    fn close(&mut self, path: PathId) {
        let mut net = self.net.lock();
        let now = net.ends[self.end].now;
        if let Some(&link) = net.ends[self.end].paths.get(&path)
            && !matches!(net.links[link].state, LinkState::Closing(_))
        {
            net.links[link].close(DownReason::Closed, now);
        }
    }

    fn room(&self, path: PathId) -> usize {
        let net = self.net.lock();
        let link = net.ends[self.end].paths.get(&path).map(|&link| &net.links[link]);
        match link {
            Some(Link { state: LinkState::Up, flights, .. }) => {
                (net.shape.depth as usize).saturating_sub(flights.len())
            }
            _ => 0,
        }
    }

    fn submit(&mut self, path: PathId, ops: &[Op]) -> Result<(), SubmitError> {
        let net = self.net.clone();
        let mut net = net.lock();
        let link = net.ends[self.end].paths.get(&path).copied();
        let up = link.filter(|&link| net.links[link].state == LinkState::Up);
        let Some(link) = up else { return Err(SubmitError { accepted: 0, reason: Reason::PathDown }) };
        for (accepted, op) in ops.iter().enumerate() {
            if net.links[link].flights.len() >= net.shape.depth as usize {
                return Err(SubmitError { accepted, reason: Reason::Full });
            }
            let flight = self.flight(&net.ends[self.end].regions, path, op);
            let flight = flight.map_err(|reason| SubmitError { accepted, reason })?;
            net.links[link].flights.push_back(flight);
        }
        Ok(())
    }

    fn cancel(&mut self, op: OpId) {
        let mut net = self.net.lock();
        let now = net.ends[self.end].now;
        for i in 0..net.ends[self.end].outgoing.len() {
            let link = net.ends[self.end].outgoing[i];
            let flights = &mut net.links[link].flights;
            if let Some(flight) = flights.iter_mut().find(|flight| flight.op.id == op) {
                if !matches!(flight.stage, Stage::Ended(..)) {
                    flight.stage = Stage::Ended(Status::Flushed, now);
                }
                return;
            }
        }
    }

    fn progress(&mut self, now: Instant, mut budget: Budget, done: &mut [Completion]) -> usize {
        let mut net = self.net.lock();
        let now = net.ends[self.end].now.max(now);
        net.ends[self.end].now = now;
        net.send(self.end, now);
        net.serve(self.end, now, &mut budget);
        net.reap(self.end, now, &mut Budget { ops: u32::MAX, ..budget }, done)
    }

    fn event(&mut self) -> Option<Event> {
        self.net.lock().ends[self.end].events.pop_front()
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn arm(&mut self) -> Armed {
        let net = self.net.lock();
        let now = net.ends[self.end].now;
        match net.due(self.end) {
            Some(at) if at.reached(now) => Armed::Again,
            Some(at) => Armed::Poll(until(now, at)),
            None => Armed::Poll(Duration::from_millis(1)),
        }
    }
}

impl Drop for SimTransport {
    fn drop(&mut self) {
        let mut net = self.net.lock();
        let end = self.end;
        net.ends[end].gone = true;
        net.ends[end].regions.clear();
        if net.ports[self.port as usize] == Some(end) {
            net.ports[self.port as usize] = None;
        }
        for link in core::mem::take(&mut net.ends[end].outgoing) {
            net.links[link].state = LinkState::Gone;
            net.links[link].flights.clear();
            let to = net.links[link].to;
            net.ends[to].incoming.retain(|&other| other != link);
        }
    }
}

fn parse(description: &[u8]) -> Option<(Incarnation, RegionId)> {
    let rest = description.strip_prefix(&MAGIC)?;
    let (owner, region) = rest.split_first_chunk::<16>()?;
    let region = RegionId::from_bits(u64::from_le_bytes(region.try_into().ok()?))?;
    Some((Incarnation(u128::from_le_bytes(*owner)), region))
}
