// SPDX-License-Identifier: GPL-2.0

//! Which vCPUs hold a copy of which cache line, and what an access therefore costs.
//!
//! A small model of a coherence protocol: no capacity, no store buffers, no silent upgrades. It ranks
//! algorithms by the traffic they force; it does not predict time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

const LINE_SHIFT: u32 = 6;
/// A sharer mask has a bit for each vCPU.
pub const MAX_VCPUS: usize = u64::BITS as usize;

/// What one access made the interconnect do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Lines fetched because another vCPU had them and this one did not.
    pub read_misses: u64,
    /// Lines that a store had to take away from other vCPUs.
    pub invalidations: u64,
}

/// Fibonacci hashing: line numbers are dense, the default hasher's strength is not needed.
#[derive(Default)]
struct LineHasher(u64);

impl Hasher for LineHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, line: u64) {
        let product = (self.0 ^ line).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The lines seen since the last [`Lines::forget`] and their sharers.
#[derive(Default)]
pub struct Lines {
    sharers: HashMap<u64, u64, BuildHasherDefault<LineHasher>>,
}

impl Lines {
    /// Starts anew: the next access to any line is its first and costs nothing.
    pub fn forget(&mut self) {
        self.sharers.clear();
    }

    /// An access by `vcpu` to `size` bytes at `address`.
    pub fn access(&mut self, vcpu: usize, address: u64, size: u64, store: bool) -> Traffic {
        let mut traffic = Traffic::default();
        let last = address.saturating_add(size.saturating_sub(1)) >> LINE_SHIFT;
        for line in address >> LINE_SHIFT..=last {
            self.access_line(1 << vcpu, line, store, &mut traffic);
        }
        traffic
    }

    fn access_line(&mut self, me: u64, line: u64, store: bool, traffic: &mut Traffic) {
        let sharers = self.sharers.entry(line).or_insert(me);
        if store {
            traffic.invalidations += u64::from(*sharers != me);
            *sharers = me;
        } else {
            traffic.read_misses += u64::from(*sharers & me == 0);
            *sharers |= me;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISS: Traffic = Traffic {
        read_misses: 1,
        invalidations: 0,
    };
    const INVALIDATION: Traffic = Traffic {
        read_misses: 0,
        invalidations: 1,
    };
    const NONE: Traffic = Traffic {
        read_misses: 0,
        invalidations: 0,
    };

    fn load(lines: &mut Lines, vcpu: usize, address: u64) -> Traffic {
        lines.access(vcpu, address, 8, false)
    }

    fn store(lines: &mut Lines, vcpu: usize, address: u64) -> Traffic {
        lines.access(vcpu, address, 8, true)
    }

    #[test]
    fn one_vcpu_never_pays() {
        let mut lines = Lines::default();
        for address in (0..1024).step_by(8) {
            assert_eq!(load(&mut lines, 3, address), NONE);
            assert_eq!(store(&mut lines, 3, address), NONE);
            assert_eq!(load(&mut lines, 3, address), NONE);
        }
    }

    #[test]
    fn readers_pay_once_each() {
        let mut lines = Lines::default();
        assert_eq!(load(&mut lines, 0, 0x1000), NONE);
        for vcpu in 1..MAX_VCPUS {
            assert_eq!(load(&mut lines, vcpu, 0x1000), MISS);
            assert_eq!(load(&mut lines, vcpu, 0x1038), NONE); // same line
            assert_eq!(load(&mut lines, 0, 0x1000), NONE);
        }
    }

    #[test]
    fn a_store_takes_the_line_from_all() {
        let mut lines = Lines::default();
        for vcpu in 0..4 {
            load(&mut lines, vcpu, 0);
        }
        assert_eq!(store(&mut lines, 2, 0), INVALIDATION);
        assert_eq!(store(&mut lines, 2, 0), NONE);
        assert_eq!(load(&mut lines, 2, 0), NONE);
        for vcpu in [0, 1, 3] {
            assert_eq!(load(&mut lines, vcpu, 0), MISS);
        }
        assert_eq!(store(&mut lines, 2, 0), INVALIDATION); // an upgrade is a transaction too
    }

    #[test]
    fn ping_pong_of_stores() {
        let mut lines = Lines::default();
        assert_eq!(store(&mut lines, 0, 64), NONE);
        for round in 0..10 {
            assert_eq!(store(&mut lines, (round + 1) % 2, 64), INVALIDATION);
        }
    }

    #[test]
    fn lines_are_64_bytes_and_independent() {
        let mut lines = Lines::default();
        store(&mut lines, 0, 0x1000);
        assert_eq!(store(&mut lines, 1, 0x1040), NONE);
        assert_eq!(store(&mut lines, 0, 0x103f - 7), NONE);
        // Seven bytes in the first line, one in the second, which the other vCPU owns.
        assert_eq!(lines.access(0, 0x1039, 8, true), INVALIDATION);
        assert_eq!(
            lines.access(1, 0x1039, 8, false),
            Traffic {
                read_misses: 2,
                invalidations: 0
            }
        );
    }

    #[test]
    fn forgetting_makes_every_access_a_first_one() {
        let mut lines = Lines::default();
        store(&mut lines, 0, 0);
        lines.forget();
        assert_eq!(store(&mut lines, 1, 0), NONE);
        assert_eq!(load(&mut lines, 0, 0), MISS);
    }

    #[test]
    fn the_top_of_the_address_space() {
        let mut lines = Lines::default();
        assert_eq!(store(&mut lines, 0, u64::MAX), NONE);
        assert_eq!(load(&mut lines, 1, u64::MAX), MISS);
    }
}
