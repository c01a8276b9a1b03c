//! The numbers that people see: one table, from which every operation's own error enum takes its code.
//!
//! Numbers are those of Mooncake's main line (S0A appendix B, S0B-090); codes of its peer-to-peer branch whose
//! numbers mean something else there stand from −1900 down.

use core::fmt;

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// A public error number. Zero is success; the wire and the bindings carry it as it is.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct Code(i16);

        #[allow(missing_docs, reason = "each code's text says what it means")]
        impl Code {
            $($(#[$doc])* pub const $name: Self = Self($number);)*

            /// Every code, in the table's order.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The code's name in the table.
            pub const fn name(self) -> &'static str {
                match self.0 { $($number => stringify!($name),)* _ => "UNKNOWN" }
            }

            /// One line that says what happened.
            pub const fn text(self) -> &'static str {
                match self.0 { $($number => $text,)* _ => "an error that this version does not know" }
            }
        }
    };
}

codes! {
    OK = 0, "success";
    INTERNAL_ERROR = -1, "internal error";
    NOT_IMPLEMENTED = -2, "not implemented";
    BUFFER_OVERFLOW = -10, "the buffer is too small";
    SHARD_INDEX_OUT_OF_RANGE = -100, "no such shard";
    SEGMENT_NOT_FOUND = -101, "no such segment";
    SEGMENT_ALREADY_EXISTS = -102, "the segment exists already";
    CLIENT_NOT_FOUND = -103, "this client is not registered; register again";
    CLIENT_ALREADY_EXISTS = -104, "this client is registered already";
    CLIENT_UNHEALTHY = -105, "this client missed its heartbeats";
    NO_AVAILABLE_HANDLE = -200, "no space";
    INVALID_VERSION = -300, "the other side speaks another version";
    INVALID_KEY = -400, "the key is not valid; a key has 1 to 65535 bytes";
    WRITE_FAIL = -500, "the write failed";
    INVALID_PARAMS = -600, "the parameters are not valid";
    ILLEGAL_CLIENT = -601, "the object belongs to another client";
    INVALID_WRITE = -700, "the replica is not being written";
    INVALID_READ = -701, "the read is not valid";
    INVALID_REPLICA = -702, "the replica is not valid";
    REPLICA_IS_NOT_READY = -703, "the object is still being written";
    OBJECT_NOT_FOUND = -704, "no such object";
    OBJECT_ALREADY_EXISTS = -705, "the object exists already";
    OBJECT_HAS_LEASE = -706, "somebody may be reading the object; try after its lease or use force";
    LEASE_EXPIRED = -707, "the read ended after its lease; read again";
    OBJECT_HAS_REPLICATION_TASK = -708, "the object is being copied";
    OBJECT_NO_REPLICATION_TASK = -709, "the object is not being copied";
    REPLICA_NOT_FOUND = -710, "no such replica";
    REPLICA_ALREADY_EXISTS = -711, "the segment holds a replica already";
    REPLICA_IS_GONE = -712, "the replica is gone";
    REPLICA_NOT_IN_LOCAL_MEMORY = -713, "the replica is not in local memory";
    OBJECT_REPLICA_BUSY = -714, "the replica is busy";
    TRANSFER_FAIL = -800, "the transfer failed";
    CHECKSUM_MISMATCH = -801, "the bytes do not match their checksum";
    RPC_FAIL = -900, "the master does not answer";
    RPC_TIMEOUT = -901, "no answer in time";
    UNAVAILABLE_IN_CURRENT_STATUS = -1010, "not available now";
    UNAVAILABLE_IN_CURRENT_MODE = -1011, "not available in this mode";
    NOT_SUPPORTED = -1012, "not supported";
    TASK_NOT_FOUND = -1400, "no such task";
    TENANT_OVER_QUOTA = -1700, "the tenant is over its quota";
    TENANT_NOT_FOUND = -1701, "no such tenant";
    TENANT_NOT_EMPTY = -1702, "the tenant still owns objects";
    REPLICA_NUM_EXCEEDED = -1900, "the object has as many replicas as it may";
    EMPTY_REPLICAS = -1901, "the object has no replicas";
    TIER_NOT_FOUND = -1902, "no such tier";
    DATA_COPY_FAILED = -1903, "copying between tiers failed";
    SHUTTING_DOWN = -1904, "shutting down";
    ASYNC_ENQUEUE_FAILED = -1905, "the notifier's queue is full";
    INACCESSIBLE_MASTER = -1906, "the master is not reachable; running locally";
    CAS_FAILED = -1907, "somebody else changed it first";
    NEVER_FITS = -1908, "the value is larger than every segment";
    WRONG_CLUSTER = -1909, "the other side belongs to another cluster";
    BUSY = -1910, "too much work is waiting; try again later";
}

impl Code {
    /// The code with this number, known or not.
    pub const fn from_number(number: i16) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn number(self) -> i16 {
        self.0
    }

    /// Whether this is success.
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.text(), self.name(), self.0)
    }
}

impl core::error::Error for Code {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique() {
        for (i, a) in Code::ALL.iter().enumerate() {
            assert!(a.number() <= 0);
            for b in &Code::ALL[i + 1..] {
                assert!(a.number() != b.number() && a.name() != b.name(), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn the_numbers_people_know() {
        let known = [
            (Code::OK, 0),
            (Code::INTERNAL_ERROR, -1),
            (Code::NOT_IMPLEMENTED, -2),
            (Code::BUFFER_OVERFLOW, -10),
            (Code::SEGMENT_NOT_FOUND, -101),
            (Code::SEGMENT_ALREADY_EXISTS, -102),
            (Code::CLIENT_NOT_FOUND, -103),
            (Code::CLIENT_ALREADY_EXISTS, -104),
            (Code::CLIENT_UNHEALTHY, -105),
            (Code::NO_AVAILABLE_HANDLE, -200),
            (Code::INVALID_VERSION, -300),
            (Code::INVALID_KEY, -400),
            (Code::INVALID_PARAMS, -600),
            (Code::ILLEGAL_CLIENT, -601),
            (Code::INVALID_WRITE, -700),
            (Code::INVALID_READ, -701),
            (Code::INVALID_REPLICA, -702),
            (Code::REPLICA_IS_NOT_READY, -703),
            (Code::OBJECT_NOT_FOUND, -704),
            (Code::OBJECT_ALREADY_EXISTS, -705),
            (Code::OBJECT_HAS_LEASE, -706),
            (Code::LEASE_EXPIRED, -707),
            (Code::TRANSFER_FAIL, -800),
            (Code::RPC_FAIL, -900),
        ];
        assert!(known.iter().all(|(code, number)| code.number() == *number));
        // Where the numbers of the peer branch collide with these of the main line, these win.
        let main = [
            (Code::OBJECT_HAS_REPLICATION_TASK, -708),
            (Code::OBJECT_NO_REPLICATION_TASK, -709),
            (Code::REPLICA_NOT_FOUND, -710),
            (Code::REPLICA_ALREADY_EXISTS, -711),
            (Code::TASK_NOT_FOUND, -1_400),
        ];
        assert!(main.iter().all(|(code, number)| code.number() == *number));
        let moved = [
            Code::REPLICA_NUM_EXCEEDED,
            Code::EMPTY_REPLICAS,
            Code::TIER_NOT_FOUND,
            Code::DATA_COPY_FAILED,
            Code::SHUTTING_DOWN,
            Code::ASYNC_ENQUEUE_FAILED,
            Code::INACCESSIBLE_MASTER,
        ];
        assert!(moved.iter().all(|code| code.number() <= -1_900));
        assert_eq!(Code::from_number(-9_999).name(), "UNKNOWN");
    }
}
