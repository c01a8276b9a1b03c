//! A storage node: registration, heartbeats, fences.
