//! How a pool's state is printed.

use serde::Serialize;
use springtide_core::wire::message::{ClientStatus, Figures, MemberInfo, SegmentInfo};

use crate::output::{Align, Note, Report, Table, grouped};
use crate::size::Size;

/// The state of a pool.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StatusReport {
    /// Which master was asked.
    pub master: String,
    /// Memory and objects now.
    pub pool: Pool,
    /// What happened since the master started.
    pub counters: Counters,
    /// The members, in the master's order.
    pub members: Vec<Member>,
    /// The segments, in the master's order.
    pub segments: Vec<Segment>,
}

/// Memory and objects now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Pool {
    /// Bytes that the segments have.
    pub capacity: u64,
    /// Bytes in use.
    pub used: u64,
    /// Bytes that wait for a lease, a copy or a fence before they are used again.
    pub draining: u64,
    /// Objects that can be read.
    pub objects: u64,
    /// Puts under way, and extents granted ahead.
    pub writing: u64,
}

/// What happened since the master started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Counters {
    /// Gets that found their object.
    pub hits: u64,
    /// Gets that did not.
    pub misses: u64,
    /// Puts that ended well.
    pub puts: u64,
    /// Puts refused for want of space.
    pub refused_for_space: u64,
    /// Objects evicted.
    pub evicted: u64,
    /// Bytes evicted.
    pub evicted_bytes: u64,
    /// Times that eviction found nothing because of leases.
    pub blocked_by_leases: u64,
    /// Objects removed by callers.
    pub removed: u64,
    /// Objects lost with their last segment.
    pub lost: u64,
    /// Puts discarded because their writer did not end them.
    pub discarded: u64,
}

/// A member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Where it serves; empty if it does not.
    pub address: String,
    /// `healthy`, `disconnected`, `crashed` or `unknown`.
    pub status: &'static str,
    /// How many segments it lends.
    pub segments: u32,
    /// How many fences it has not answered yet.
    pub fences: u32,
}

/// A segment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Segment {
    /// Its name.
    pub name: String,
    /// Its owner's name.
    pub owner: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Bytes in use.
    pub used: u64,
    /// Its largest hole in bytes.
    pub largest_hole: u64,
    /// Whether it gets new objects.
    pub open: bool,
}

impl StatusReport {
    /// What the master at `master` said of the pool; members and segments follow.
    pub fn new(master: String, figures: &Figures) -> Self {
        let (pool, counters) = (Pool::new(figures), Counters::new(figures));
        Self { master, pool, counters, members: Vec::new(), segments: Vec::new() }
    }

    /// Adds a member.
    pub fn member(&mut self, member: &MemberInfo<'_>) {
        self.members.push(Member::new(member));
    }

    /// Adds a segment.
    pub fn segment(&mut self, segment: &SegmentInfo<'_>) {
        self.segments.push(Segment::new(segment));
    }
}

impl Pool {
    const fn new(figures: &Figures) -> Self {
        let Figures { capacity, used, draining, objects, writing, .. } = *figures;
        Self { capacity, used, draining, objects, writing }
    }
}

impl Counters {
    const fn new(figures: &Figures) -> Self {
        let Figures { hits, misses, puts, refused_for_space, evicted, .. } = *figures;
        let Figures { evicted_bytes, blocked_by_leases, removed, lost, discarded, .. } = *figures;
        Self {
            hits,
            misses,
            puts,
            refused_for_space,
            evicted,
            evicted_bytes,
            blocked_by_leases,
            removed,
            lost,
            discarded,
        }
    }
}

impl Member {
    fn new(info: &MemberInfo<'_>) -> Self {
        let status = match info.status {
            ClientStatus::Undefined => "unknown",
            ClientStatus::Healthy => "healthy",
            ClientStatus::Disconnected => "disconnected",
            ClientStatus::Crashed => "crashed",
        };
        let (name, address) = (info.name.to_owned(), info.address.to_owned());
        Self { name, address, status, segments: info.segments, fences: info.duties }
    }
}

impl Segment {
    fn new(info: &SegmentInfo<'_>) -> Self {
        Self {
            name: info.name.to_owned(),
            owner: info.owner.to_owned(),
            bytes: info.len,
            used: info.used,
            largest_hole: info.largest_hole,
            open: info.open,
        }
    }
}

/// `part` of `whole` as a percentage.
fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        whole => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

fn pool_table(pool: &Pool, counters: &Counters) -> Table {
    let mut table = Table::new(&[("pool", Align::Left), (" ", Align::Right)]);
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("memory", Size(pool.capacity).rounded());
    row("in use", format!("{} ({})", Size(pool.used).rounded(), share(pool.used, pool.capacity)));
    row("draining", Size(pool.draining).rounded());
    row("objects", grouped(pool.objects));
    row("puts under way", grouped(pool.writing));
    row("gets that found their object", share(counters.hits, counters.hits.saturating_add(counters.misses)));
    row("puts", grouped(counters.puts));
    row("puts refused for want of space", grouped(counters.refused_for_space));
    row("evicted", format!("{} ({})", grouped(counters.evicted), Size(counters.evicted_bytes).rounded()));
    row("removed", grouped(counters.removed));
    row("lost", grouped(counters.lost));
    table
}

impl Report for StatusReport {
    fn tables(&self) -> Vec<Table> {
        let (left, right) = (|name| (name, Align::Left), |name| (name, Align::Right));
        let mut members = Table::new(&[
            left("member"),
            left("address"),
            left("status"),
            right("segments"),
            right("fences to answer"),
        ]);
        for member in &self.members {
            let status = member.status.to_owned();
            members.row([
                member.name.clone(),
                member.address.clone(),
                status,
                member.segments.to_string(),
                member.fences.to_string(),
            ]);
        }
        let mut segments = Table::new(&[
            left("segment"),
            left("owner"),
            right("memory"),
            right("in use"),
            right("largest hole"),
            left("new objects"),
        ]);
        for segment in &self.segments {
            segments.row([
                segment.name.clone(),
                segment.owner.clone(),
                Size(segment.bytes).rounded(),
                share(segment.used, segment.bytes),
                Size(segment.largest_hole).rounded(),
                if segment.open { "yes" } else { "no" }.to_owned(),
            ]);
        }
        let ill = self.members.iter().filter(|member| member.status != "healthy").count();
        match (self.members.len(), ill) {
            (0, _) => members.note(Note::Bad, "no node has joined; start one: springtide node --memory SIZE"),
            (_, 0) => members.note(Note::Good, "all members are healthy"),
            (_, ill) => members.note(Note::Bad, format!("{ill} members do not report")),
        }
        vec![pool_table(&self.pool, &self.counters), segments, members]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Colour;
    use springtide_core::id::{Incarnation, SegmentId};

    fn report(status: ClientStatus) -> StatusReport {
        let incarnation = Incarnation(1);
        let member =
            MemberInfo { name: "node-a", address: "h:1", incarnation, status, segments: 1, duties: 3 };
        let segment = SegmentInfo {
            id: SegmentId::from_bits(1 << 32).unwrap(),
            name: "node-a/0",
            owner: "node-a",
            incarnation,
            address: "h:1",
            len: 4 << 30,
            used: 1 << 30,
            largest_hole: 2 << 30,
            open: true,
        };
        let figures = Figures { capacity: 4 << 30, used: 1 << 30, hits: 3, misses: 1, ..Figures::default() };
        let mut report = StatusReport::new("127.0.0.1:1".to_owned(), &figures);
        report.member(&member);
        report.segment(&segment);
        report
    }

    fn text(report: &StatusReport) -> String {
        report.tables().iter().map(|table| table.render(Colour::No)).collect()
    }

    #[test]
    fn tables_show_shares_holes_and_health() {
        let shown = text(&report(ClientStatus::Healthy));
        for part in ["1 GiB (25.0 %)", "75.0 %", "2 GiB", "all members are healthy"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(text(&report(ClientStatus::Crashed)).contains("1 members do not report"));
        let empty = StatusReport::new(String::new(), &Figures::default());
        assert!(text(&empty).contains("no node has joined"));
    }

    #[test]
    fn json_has_bytes() {
        let json = serde_json::to_value(report(ClientStatus::Healthy)).unwrap();
        assert_eq!(json["pool"]["used"], 1 << 30);
        assert_eq!(json["members"][0]["status"], "healthy");
        assert_eq!(json["segments"][0]["largest_hole"], 2u64 << 30);
    }
}
