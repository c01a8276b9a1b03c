//! Why the master says no: one small enum per operation, whose variants say what to do.

use core::fmt;

use crate::error::Code;

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident $({ $field:ident: $type:ty })? => $code:ident, $text:literal;)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$variant_doc])* $variant $({
                /// What is possible at most, in bytes.
                $field: $type
            })?,)*
        }

        impl $name {
            /// The number that users see.
            pub const fn code(self) -> Code {
                match self { $(Self::$variant $({ $field: _ })? => Code::$code,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self { $(Self::$variant $({ $field })? => write!(f, $text),)* }
            }
        }

        impl core::error::Error for $name {}
    )*};
}

errors! {
    /// Why a member was not registered (S0A-034).
    RegisterError {
        /// It runs in another mode than the master.
        Mode => ILLEGAL_CLIENT, "the master runs in another mode; start the member in the same one";
        /// This incarnation is registered.
        Known => CLIENT_ALREADY_EXISTS, "this process is registered already";
        /// Another live member serves at this address: retry after the client TTL.
        AddressTaken => CLIENT_ALREADY_EXISTS, "another live member serves at this address; retry when it is gone";
        /// A name or address is empty or too long.
        Name => INVALID_PARAMS, "a member's name has 1 to 255 bytes, its address at most 255";
        /// No more members are allowed.
        Full => BUSY, "the master has as many members as it may";
    }

    /// Why a segment was not mounted (S0A-043, S0A-049).
    MountError {
        /// The caller is unknown: register first.
        Unregistered => CLIENT_NOT_FOUND, "register before mounting";
        /// The caller is counted as silent: send a heartbeat first.
        Unhealthy => CLIENT_UNHEALTHY, "send a heartbeat before mounting";
        /// The name is empty or too long.
        Name => INVALID_PARAMS, "a segment's name has 1 to 255 bytes";
        /// The length is zero, or more than an allocator can manage.
        Len => INVALID_PARAMS, "a segment of this length cannot be managed";
        /// The caller has mounted this name with another length.
        Exists => SEGMENT_ALREADY_EXISTS, "this name is mounted already with another length";
        /// No more segments are allowed.
        Full => BUSY, "the master has as many segments as it may";
    }

    /// Why a segment was not unmounted. An unknown segment is none: it is gone (S0A-043).
    UnmountError {
        /// The caller is unknown.
        Unregistered => CLIENT_NOT_FOUND, "register before unmounting";
        /// The caller is counted as silent: send a heartbeat first.
        Unhealthy => CLIENT_UNHEALTHY, "send a heartbeat before unmounting";
        /// It belongs to another member.
        Owner => ILLEGAL_CLIENT, "the segment belongs to another member";
    }

    /// Why a put did not start (S0A-079).
    PutError {
        /// The caller is unknown: register first.
        Unregistered => CLIENT_NOT_FOUND, "register before writing";
        /// No such tenant.
        Tenant => TENANT_NOT_FOUND, "no such tenant";
        /// The key is there.
        Exists => OBJECT_ALREADY_EXISTS, "the object exists already";
        /// Somebody is writing it.
        Writing => OBJECT_ALREADY_EXISTS, "somebody is writing this object";
        /// No replicas, or more than an object may have.
        Replicas => INVALID_PARAMS, "an object has 1 to 8 replicas";
        /// A soft pin that is longer than allowed.
        Pin => INVALID_PARAMS, "the soft pin is longer than the master allows";
        /// The group's name is empty or too long.
        Group => INVALID_PARAMS, "a group's name has 1 to 255 bytes";
        /// There is no memory in the pool: start a node.
        NoSegments => NO_AVAILABLE_HANDLE, "no segment takes new objects; start a node or wait for one";
        /// Larger than every segment: it will never fit.
        NeverFits { largest_segment: u64 } => NEVER_FITS,
            "larger than every segment; the largest holds {largest_segment} bytes";
        /// No hole is large enough now: try again later.
        NoHole { largest_hole: u64 } => NO_AVAILABLE_HANDLE,
            "no room now; the largest hole has {largest_hole} bytes; try again or add memory";
        /// The master holds as many objects as it may.
        Full => BUSY, "the master holds as many objects as it may";
    }

    /// Why a put did not end or abort (S0A-080, S0A-081).
    EndError {
        /// It was given up, aborted or removed: start again.
        Gone => ILLEGAL_CLIENT, "this put was given up or its object removed; start it again";
        /// Another client began it.
        Owner => ILLEGAL_CLIENT, "another client is writing this object";
        /// It has ended already, with another checksum, or can no longer be aborted.
        Ended => INVALID_WRITE, "this put has ended already";
        /// It has no key: publish it instead.
        NoKey => INVALID_WRITE, "this extent was granted ahead; publish it under a key";
        /// A checksum with block sums, but no room for them was asked for.
        Sums => INVALID_PARAMS, "no room for block sums was asked for at the start";
        /// No replica was written: abort it.
        Nothing => INVALID_WRITE, "no replica was written; abort the put and start it again";
    }

    /// Why an extent granted ahead was not published. It stays reserved, except when it is gone.
    PublishError {
        /// It was given up or aborted: reserve again.
        Gone => ILLEGAL_CLIENT, "this extent was given up; reserve again";
        /// Another client reserved it.
        Owner => ILLEGAL_CLIENT, "another client reserved this extent";
        /// It is published under another key, or is no extent granted ahead.
        Published => INVALID_WRITE, "this extent holds another object";
        /// The key is there or is being written: the extent may be used again.
        Exists => OBJECT_ALREADY_EXISTS, "the object exists already; the extent may be used again";
        /// Longer than what was reserved.
        Len => INVALID_PARAMS, "the value is longer than the extent";
        /// A checksum with block sums, but no room for them.
        Sums => INVALID_PARAMS, "the extent has no room for the value's block sums";
        /// No replica was written: abort it.
        Nothing => INVALID_WRITE, "no replica was written; abort the put and start it again";
        /// The master holds as many objects as it may.
        Full => BUSY, "the master holds as many objects as it may";
    }

    /// Why an object cannot be read (S0A-084).
    GetError {
        /// No such key.
        NotFound => OBJECT_NOT_FOUND, "no such object";
        /// It is still being written.
        NotReady => REPLICA_IS_NOT_READY, "the object is still being written";
        /// The owners of all its replicas miss their heartbeats.
        Silent => UNAVAILABLE_IN_CURRENT_STATUS, "no owner of a replica answers now";
    }

    /// Why an object was not removed.
    RemoveError {
        /// No such key.
        NotFound => OBJECT_NOT_FOUND, "no such object";
        /// It is still being written.
        NotReady => REPLICA_IS_NOT_READY, "the object is still being written";
        /// Somebody may be reading it: try after the lease, or by force.
        Leased => OBJECT_HAS_LEASE, "somebody may be reading the object; try after its lease or use force";
        /// It is being copied: try later, or by force.
        Copying => OBJECT_HAS_REPLICATION_TASK, "the object is being copied; try later or use force";
        /// Another client wrote it (replica clear only, S0A-085).
        Owner => ILLEGAL_CLIENT, "another client wrote this object";
        /// It has no replica there (replica clear only).
        NoReplica => REPLICA_NOT_FOUND, "the object has no replica on this segment";
    }

    /// Why a copy did not start.
    CopyError {
        /// The caller is unknown: register first.
        Unregistered => CLIENT_NOT_FOUND, "register before copying";
        /// No such key.
        NotFound => OBJECT_NOT_FOUND, "no such object";
        /// It is still being written.
        NotReady => REPLICA_IS_NOT_READY, "the object is still being written";
        /// The owners of all its replicas miss their heartbeats.
        Silent => UNAVAILABLE_IN_CURRENT_STATUS, "no owner of a replica answers now";
        /// It is being copied.
        Copying => OBJECT_HAS_REPLICATION_TASK, "the object is being copied already";
        /// The segment holds a replica.
        Exists => REPLICA_ALREADY_EXISTS, "the segment holds a replica already";
        /// It has as many replicas as it may.
        Replicas => REPLICA_NUM_EXCEEDED, "the object has as many replicas as it may";
        /// No such segment, or nothing is placed on it now.
        Segment => SEGMENT_NOT_FOUND, "no such segment, or it takes nothing now";
        /// The segment has no hole for it.
        NoHole { largest_hole: u64 } => NO_AVAILABLE_HANDLE,
            "no room on this segment; its largest hole has {largest_hole} bytes";
    }

    /// Why a copy did not end or abort.
    CopyEndError {
        /// There is no such copy: it was given up, or its object removed.
        NoTask => OBJECT_NO_REPLICATION_TASK, "the object is not being copied";
        /// Another client copies it.
        Owner => ILLEGAL_CLIENT, "another client copies this object";
    }

    /// Why there is no such tenant.
    TenantError {
        /// The name is empty or too long.
        Name => INVALID_PARAMS, "a tenant's name has 1 to 255 bytes";
        /// No more tenants are allowed.
        Full => BUSY, "the master has as many tenants as it may";
    }
}
