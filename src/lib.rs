//! Springtide: a KV-cache pool and transfer engine for LLM inference.
#![forbid(unsafe_code)]
