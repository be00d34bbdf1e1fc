// SPDX-License-Identifier: GPL-2.0

//! What workers count.

use super::super::checks::Faults;
use kernel::prelude::*;

/// How long waits took, by powers of two.
pub(super) struct Waits {
    /// Number `n` counts those of less than 2^n ns that are in no lower one.
    buckets: [u64; Self::BUCKETS],
    most: u64,
}

impl Waits {
    /// The last one is for all waits of 2^38 ns (five minutes) or more.
    const BUCKETS: usize = 40;

    const fn new() -> Self {
        Self {
            buckets: [0; Self::BUCKETS],
            most: 0,
        }
    }

    fn add(&mut self, ns: u64) {
        // CAST: At most 64.
        let bucket = (u64::BITS - ns.leading_zeros()) as usize;
        if let Some(count) = self.buckets.get_mut(bucket.min(Self::BUCKETS - 1)) {
            *count = count.wrapping_add(1);
        }
        self.most = self.most.max(ns);
    }

    fn merge(&mut self, other: &Self) {
        for (sum, count) in self.buckets.iter_mut().zip(other.buckets) {
            *sum = sum.wrapping_add(count);
        }
        self.most = self.most.max(other.most);
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, n| sum.wrapping_add(*n))
    }

    /// A bound in ns that `thousandths` of all waits kept: the upper end of a bucket, or the longest
    /// wait where that is less.
    pub(super) fn percentile(&self, thousandths: u64) -> u64 {
        let wanted = self.count().saturating_mul(thousandths).div_ceil(1000);
        let mut seen = 0u64;
        for (bound, count) in (0u32..).zip(self.buckets) {
            seen = seen.saturating_add(count);
            if seen >= wanted && bound < Self::BUCKETS as u32 - 1 {
                return (1u64 << bound).wrapping_sub(1).min(self.most);
            }
        }
        self.most
    }

    /// The longest wait, in ns.
    pub(super) fn most(&self) -> u64 {
        self.most
    }
}

/// What the workers of one role on one lock did and saw.
pub(super) struct Tally {
    pub(super) reads: u64,
    pub(super) writes: u64,
    /// Tries that found the lock taken, and waits that a signal has ended.
    pub(super) refused: u64,
    /// Writes that waited for longer than they may.
    pub(super) late: u64,
    pub(super) faults: Faults,
    pub(super) waits: Waits,
}

impl Tally {
    pub(super) const fn new() -> Self {
        Self {
            reads: 0,
            writes: 0,
            refused: 0,
            late: 0,
            faults: Faults {
                overlaps: 0,
                torn: 0,
            },
            waits: Waits::new(),
        }
    }

    /// Notes a wait that ended with the lock.
    pub(super) fn waited(&mut self, ns: u64) {
        self.waits.add(ns);
    }

    /// Adds what another counted.
    pub(super) fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, n| *sum = sum.saturating_add(n);
        add(&mut self.reads, other.reads);
        add(&mut self.writes, other.writes);
        add(&mut self.refused, other.refused);
        add(&mut self.late, other.late);
        self.faults += other.faults;
        self.waits.merge(&other.waits);
    }
}

/// How evenly something was shared out.
pub(super) struct Shares {
    least: u64,
    most: u64,
    jain: u64,
}

impl Shares {
    /// The shares of a group.
    pub(super) fn of(shares: impl Iterator<Item = u64> + Clone) -> Self {
        let most = shares.clone().max().unwrap_or(0);
        let (mut count, mut sum, mut squares) = (0u64, 0u64, 0u64);
        // In thousandths of the largest, so that squares and sums fit.
        for share in shares.clone() {
            let part = share.saturating_mul(1000) / most.max(1);
            count = count.saturating_add(1);
            sum = sum.saturating_add(part);
            squares = squares.saturating_add(part.saturating_mul(part));
        }
        let all = count.saturating_mul(squares);
        Self {
            least: shares.min().unwrap_or(0),
            most,
            jain: match all {
                0 => 1000,
                _ => sum.saturating_mul(sum).saturating_mul(1000) / all,
            },
        }
    }

    /// The smallest share; 0 when there is none.
    pub(super) fn least(&self) -> u64 {
        self.least
    }

    /// The largest.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// Jain's index in thousandths: 1000 when all have the same, 1000/n when one has all.
    pub(super) fn jain(&self) -> u64 {
        self.jain
    }
}

#[kunit_tests(klocks_torture_tally)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_bound_the_waits() {
        let mut waits = Waits::new();
        assert_eq!((waits.count(), waits.percentile(500)), (0, 0));
        for ns in 1..=1000 {
            waits.add(ns);
        }
        assert_eq!(waits.count(), 1000);
        assert_eq!(waits.percentile(500), 511);
        assert_eq!(waits.percentile(990), 1000);
        assert_eq!(waits.most(), 1000);
        waits.add(u64::MAX);
        assert_eq!(waits.percentile(1000), u64::MAX);
    }

    #[test]
    fn merged_waits_are_all_there() {
        let (mut one, mut other) = (Waits::new(), Waits::new());
        one.add(0);
        other.add(100);
        one.merge(&other);
        assert_eq!((one.count(), one.percentile(500), one.most()), (2, 0, 100));
    }

    #[test]
    fn jain_tells_even_from_uneven() {
        let index = |shares: &[u64]| Shares::of(shares.iter().copied()).jain();
        assert_eq!(index(&[5, 5, 5, 5]), 1000);
        assert_eq!(index(&[8, 0, 0, 0]), 250);
        assert_eq!(index(&[]), 1000);
        assert_eq!(index(&[0, 0]), 1000);
        let shares = Shares::of([3, 9].iter().copied());
        assert_eq!((shares.least(), shares.most()), (3, 9));
        assert_eq!(Shares::of(core::iter::empty()).least(), 0);
    }
}
