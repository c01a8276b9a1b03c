//! One control machine and its shards: the metadata server without its sockets.
