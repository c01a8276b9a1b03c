//! What is stored where: the index by (tenant, key), replica states, leases, pins, groups.
