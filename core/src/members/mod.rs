//! Clients and their segments: register, heartbeat, healthy, disconnected, crashed.
