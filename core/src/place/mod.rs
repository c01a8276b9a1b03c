//! Where to put: placement policies.
