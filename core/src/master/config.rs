//! What an operator may set, with the defaults that people know.

use core::fmt;
use core::time::Duration;

use crate::{evict, place};

/// One as parts per million: fractions are integers, so that replicas of a master agree on them.
pub const MILLION: u32 = 1_000_000;

/// The master's settings (S0A-083, S0A-142 … S0A-145, S0B-091). Check them with [`validate`](Config::validate).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a read may count on its object. Default 10 s.
    pub lease: Duration,
    /// A soft pin whose TTL the caller leaves open lasts this long. Default 30 min.
    pub soft_pin: Duration,
    /// The longest soft pin that is accepted. Default 24 h.
    pub soft_pin_max: Duration,
    /// Whether soft-pinned objects may go when nothing else is left. Default yes (S0A-083).
    pub soft_pinned: SoftPinned,
    /// Eviction begins when more than this share of the pool is used, in parts per million. Default 900,000.
    pub high_watermark: u32,
    /// How far below the watermark eviction goes, in parts per million. Default 50,000.
    pub eviction_ratio: u32,
    /// Silence after which a member counts as disconnected. Default 10 s.
    pub client_ttl: Duration,
    /// Silence after which a member is dropped. Default 30 s.
    pub crashed_ttl: Duration,
    /// How often members are asked to send heartbeats. Default 1 s.
    pub heartbeat: Duration,
    /// A put that has not ended after this long is given up (S0A-082). Default 30 s.
    pub put_discard: Duration,
    /// Memory of a put given up is used again after this long, counted from the put's start, when its owner cannot
    /// fence. Default 600 s.
    pub put_release: Duration,
    /// The policy that chooses what to give up.
    pub policy: evict::Kind,
    /// How segments are chosen for new replicas.
    pub strategy: place::Strategy,
    /// How many members may be registered. Default 65,536.
    pub max_members: u32,
    /// How many segments there may be; each takes half a MiB of the master's memory at least. Default 4,096.
    pub max_segments: u32,
    /// How many tenants there may be. Default 65,536.
    pub max_tenants: u32,
}

/// Whether soft-pinned objects may be evicted when nothing else is eligible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SoftPinned {
    /// As a last resort.
    #[default]
    LastResort,
    /// Not before their pin ends.
    Never,
}

/// Why settings do not go together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// A fraction is above one million.
    Fraction,
    /// The eviction ratio is zero or not below the watermark.
    Ratio,
    /// The crashed TTL is below the client TTL (S0A-142).
    CrashedTtl,
    /// The client TTL is not longer than the heartbeat.
    Heartbeat,
    /// The release time-out is below the discard time-out.
    Release,
    /// A duration that must not be zero is.
    Zero,
    /// The default soft pin is longer than the longest.
    SoftPin,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(10),
            soft_pin: Duration::from_secs(30 * 60),
            soft_pin_max: Duration::from_secs(24 * 60 * 60),
            soft_pinned: SoftPinned::default(),
            high_watermark: 900_000,
            eviction_ratio: 50_000,
            client_ttl: Duration::from_secs(10),
            crashed_ttl: Duration::from_secs(30),
            heartbeat: Duration::from_secs(1),
            put_discard: Duration::from_secs(30),
            put_release: Duration::from_secs(600),
            policy: evict::Kind::default(),
            strategy: place::Strategy::default(),
            max_members: 65_536,
            max_segments: 4_096,
            max_tenants: 65_536,
        }
    }
}

impl Config {
    /// The defaults with `client_ttl`, and three times as much for [`crashed_ttl`](Self::crashed_ttl) (S0A-142).
    pub fn with_client_ttl(client_ttl: Duration) -> Self {
        Self { client_ttl, crashed_ttl: client_ttl.saturating_mul(3), ..Self::default() }
    }

    /// Whether the settings go together. A lease of zero is allowed: nothing is then kept for readers.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.high_watermark > MILLION || self.eviction_ratio > MILLION {
            return Err(ConfigError::Fraction);
        }
        if self.eviction_ratio == 0 || self.eviction_ratio >= self.high_watermark {
            return Err(ConfigError::Ratio);
        }
        if self.heartbeat.is_zero() || self.put_discard.is_zero() {
            return Err(ConfigError::Zero);
        }
        if self.client_ttl <= self.heartbeat {
            return Err(ConfigError::Heartbeat);
        }
        if self.crashed_ttl < self.client_ttl {
            return Err(ConfigError::CrashedTtl);
        }
        if self.put_release < self.put_discard {
            return Err(ConfigError::Release);
        }
        if self.soft_pin > self.soft_pin_max {
            return Err(ConfigError::SoftPin);
        }
        Ok(())
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fraction => "a fraction is above one (1,000,000 parts per million)",
            Self::Ratio => "the eviction ratio must be above zero and below the high watermark",
            Self::CrashedTtl => "the crashed TTL must not be shorter than the client TTL",
            Self::Heartbeat => "the client TTL must be longer than the heartbeat interval",
            Self::Release => "the put release time-out must not be shorter than the put discard time-out",
            Self::Zero => "the heartbeat interval and the put discard time-out must not be zero",
            Self::SoftPin => "the default soft pin must not be longer than the longest soft pin",
        })
    }
}

impl core::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_hold() {
        assert_eq!(Config::default().validate(), Ok(()));
        let short = Config::with_client_ttl(Duration::from_secs(5));
        assert_eq!((short.validate(), short.crashed_ttl.as_secs()), (Ok(()), 15));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let base = Config::default;
        let crashed = Config { crashed_ttl: Duration::from_secs(4), ..base() };
        assert_eq!(crashed.validate(), Err(ConfigError::CrashedTtl));
        assert_eq!(Config { high_watermark: MILLION + 1, ..base() }.validate(), Err(ConfigError::Fraction));
        assert_eq!(Config { eviction_ratio: 900_000, ..base() }.validate(), Err(ConfigError::Ratio));
        assert_eq!(Config { put_discard: Duration::ZERO, ..base() }.validate(), Err(ConfigError::Zero));
        assert_eq!(
            Config { put_release: Duration::from_secs(1), ..base() }.validate(),
            Err(ConfigError::Release)
        );
    }
}
