// SPDX-License-Identifier: GPL-2.0

//! Which operation is a read and which a write.
//!
//! Each thread goes round a cycle of r reads and then w writes. The threads start at points spread
//! evenly over the cycle: at a ratio of 10:1 and two threads, one writes while the other is in the
//! middle of its reads, where in step they would all read and then all write.

use kernel::{
    fmt,
    prelude::*, //
};

/// Reads to writes.
///
/// # Invariants
///
/// At least one of the two is not 0, and their sum does not overflow.
#[derive(Clone, Copy)]
pub(super) struct Ratio {
    reads: u32,
    writes: u32,
}

impl Ratio {
    /// As many of each.
    pub(super) const EVEN: Self = Self {
        // INVARIANT: Neither is 0.
        reads: 1,
        writes: 1,
    };

    /// `reads` to `writes`; `None` when both are 0.
    pub(super) fn new(reads: u32, writes: u32) -> Option<Self> {
        // INVARIANT: Just what is asked for here.
        reads
            .checked_add(writes)
            .is_some_and(|sum| sum != 0)
            .then_some(Self { reads, writes })
    }

    /// The reads of a cycle.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn reads(self) -> u32 {
        self.reads
    }

    /// The writes of a cycle.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn writes(self) -> u32 {
        self.writes
    }

    /// The cycle of thread `index` of `threads`, at its starting point.
    pub(super) fn cycle(self, index: u32, threads: u32) -> Cycle {
        let len = self.reads.wrapping_add(self.writes);
        let at = u64::from(index) * u64::from(len) / u64::from(threads.max(1));
        Cycle {
            reads: self.reads,
            len,
            // CAST: Below `len`, after the remainder.
            at: (at % u64::from(len.max(1))) as u32,
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.reads, self.writes)
    }
}

/// A thread's place in its cycle.
#[derive(Clone, Copy)]
pub(super) struct Cycle {
    reads: u32,
    len: u32,
    at: u32,
}

impl Cycle {
    /// Goes on by one operation and says whether that is a read.
    #[inline(always)]
    pub(super) fn next_is_read(&mut self) -> bool {
        let read = self.at < self.reads;
        self.at = self.at.wrapping_add(1);
        if self.at >= self.len {
            self.at = 0;
        }
        read
    }
}

#[kunit_tests(klocks_bench_cycle)]
mod tests {
    use super::*;

    fn reads_of(reads: u32, writes: u32, index: u32, threads: u32, ops: u32) -> u32 {
        let Some(ratio) = Ratio::new(reads, writes) else {
            return u32::MAX;
        };
        let mut cycle = ratio.cycle(index, threads);
        (0..ops).map(|_| u32::from(cycle.next_is_read())).sum()
    }

    #[test]
    fn keeps_the_ratio() {
        for index in 0..3 {
            assert_eq!(reads_of(10, 1, index, 3, 11), 10);
            assert_eq!(reads_of(1, 1, index, 3, 20), 10);
            assert_eq!(reads_of(0, 1, index, 3, 20), 0);
            assert_eq!(reads_of(1, 0, index, 3, 20), 20);
            assert_eq!(reads_of(3, 5, index, 3, 80), 30);
        }
    }

    #[test]
    fn spreads_the_threads() {
        // Thread 0 has its write last, thread 1 starts at 5 and has it after five reads.
        assert_eq!(reads_of(10, 1, 0, 2, 10), 10);
        assert_eq!(reads_of(10, 1, 1, 2, 5), 5);
        assert_eq!(reads_of(10, 1, 1, 2, 6), 5);
        // In a cycle of two, one reads while the other writes.
        assert_eq!(reads_of(1, 1, 0, 2, 1), 1);
        assert_eq!(reads_of(1, 1, 1, 2, 1), 0);
    }

    #[test]
    fn takes_the_extremes() {
        assert!(Ratio::new(0, 0).is_none());
        assert!(Ratio::new(u32::MAX, 1).is_none());
        assert_eq!(reads_of(1_000_000, 1_000_000, 1023, 1024, 1), 0);
    }
}
