//! Who owns which bytes of which segment: the allocators.
