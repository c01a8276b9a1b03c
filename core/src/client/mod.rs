//! Batches of get and put from the client side: replica choice, retry, lease check, checksum.
