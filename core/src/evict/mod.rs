//! What to give up: eviction policies behind one small trait, chosen by enum.
