//! Rules of the product, each with the change that breaks it.

/// One rule that is broken on purpose.
pub(super) struct Broken {
    /// What the change does.
    pub(super) name: &'static str,
    /// The file that it changes.
    pub(super) file: &'static str,
    /// What stands there, exactly once.
    pub(super) from: &'static str,
    /// What is put in its place.
    pub(super) to: &'static str,
    /// Under which names the oracle may see it.
    pub(super) seen_as: &'static [&'static str],
}

/// All of them.
pub(super) const RULES: &[Broken] = &[
    Broken {
        name: "drop a lease check",
        file: "core/src/master/remove.rs",
        from: "if object.lease() > now {",
        to: "if object.lease() > now && force == Force::Yes {",
        seen_as: &["Leased"],
    },
    Broken {
        name: "skip a fence",
        file: "core/src/master/shard/objects.rs",
        from: "fence = (quiet == Quiet::Unknown).then(|| deadline - self.times.discard);",
        to: "fence = (quiet == Quiet::Unknown && deadline < now).then(|| deadline - self.times.discard);",
        seen_as: &["ReusedUnfenced", "LateStore", "Shared"],
    },
    Broken {
        name: "leak on abort",
        file: "core/src/master/shard/replicas.rs",
        from: "            self.give_back(number);\n        } else {",
        to: "            if replica.is(ReplicaState::Reserved) { self.forget(number) } else { self.give_back(number) }\n        } else {",
        seen_as: &["Count", "Leak"],
    },
    Broken {
        name: "renew on probe",
        file: "core/src/master/read.rs",
        from: "if probe == Probe::RenewLease {",
        to: "if probe == Probe::RenewLease || probe == Probe::Plain {",
        seen_as: &["Renewed"],
    },
    Broken {
        name: "reuse an extent early",
        file: "core/src/master/shard/objects.rs",
        from: "self.release(now, number, until, fence);\n            number = replica.next;",
        to: "self.release(now, number, until.min(now), fence);\n            number = replica.next;",
        seen_as: &["ReusedLeased"],
    },
    Broken {
        name: "answer twice",
        file: "store/master/src/answer.rs",
        from: "        self.calls.answered(self.request.method, items, failed);",
        to: "        self.replies.refuse(self.request, Code::BUSY, \"again\");",
        seen_as: &["Answers"],
    },
    Broken {
        name: "lose a revoke",
        file: "core/src/ticket.rs",
        from: "        self.fences.push_back((extent, below));",
        to: "        let _ = (extent, below);",
        seen_as: &["LateStore", "ReusedUnfenced", "Damaged"],
    },
    Broken {
        name: "miscount used bytes",
        file: "core/src/space/table.rs",
        from: "        *self.usage.of(segment.visibility).0 -= freed;",
        to: "        *self.usage.of(segment.visibility).0 -= freed / 2;",
        seen_as: &["Count"],
    },
    Broken {
        name: "forget the checksum",
        file: "core/src/client/ends.rs",
        from: "if checksum.fits(sum) { Self::Good(len) } else { Self::Corrupt }",
        to: "if checksum.fits(sum) { Self::Good(len) } else { Self::Good(len) }",
        seen_as: &["Bytes"],
    },
    Broken {
        name: "evict a pinned object",
        file: "core/src/master/shard/objects.rs",
        from: "let hard = object.pin == Instant::NEVER;",
        to: "let hard = object.pin == Instant::NEVER && object.len == 0;",
        seen_as: &["Pinned"],
    },
];
