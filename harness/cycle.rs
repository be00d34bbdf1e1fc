// SPDX-License-Identifier: GPL-2.0

//! Which operation is a read and which a write.
//!
//! With mixed roles each thread goes round a cycle of r reads and then w writes. The threads start at
//! points spread evenly over the cycle: at a ratio of 10:1 and two threads, one writes while the other
//! is in the middle of its reads, where in step they would all read and then all write.
//!
//! With split roles the ratio is one of threads: w of each r + w only write, the first ones, and the
//! others only read. A thread that never changes sides meets its own kind at every turn: writers that
//! take the lock from each other while readers wait, and the other way round.

use kernel::{
    fmt,
    prelude::*, //
};

/// How reads and writes are given to threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Roles {
    /// Each thread does both.
    Mixed,
    /// Each thread only reads or only writes.
    Split,
}

impl Roles {
    const ALL: [Self; 2] = [Self::Mixed, Self::Split];

    /// Those called `name`; `None` when there are none.
    pub(super) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|roles| roles.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Split => "split",
        }
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
    pub(super) fn writes(self) -> u32 {
        self.writes
    }

    /// How many of `threads` threads are writers when roles are split; `None` when `threads` cannot
    /// be split in this ratio.
    pub(super) fn writers_of(self, threads: u32) -> Option<u32> {
        let len = u64::from(self.reads).saturating_add(u64::from(self.writes));
        let product = u64::from(threads).saturating_mul(u64::from(self.writes));
        // CAST: At most `threads`.
        (product % len.max(1) == 0).then_some((product / len.max(1)) as u32)
    }

    /// The cycle of thread `index` of `threads`, at its starting point.
    pub(super) fn cycle(self, roles: Roles, index: u32, threads: u32) -> Cycle {
        if roles == Roles::Split {
            let writes = self.writers_of(threads).is_some_and(|w| index < w);
            return Cycle {
                reads: u32::from(!writes),
                len: 1,
                at: 0,
            };
        }
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
    /// Whether no operation is a read.
    pub(super) fn only_writes(&self) -> bool {
        self.reads == 0
    }

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
        let mut cycle = ratio.cycle(Roles::Mixed, index, threads);
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
    fn splits_the_threads() {
        let roles = |reads, writes, threads: u32| -> Option<u64> {
            let ratio = Ratio::new(reads, writes)?;
            ratio.writers_of(threads)?;
            let pure = |index| {
                let mut cycle = ratio.cycle(Roles::Split, index, threads);
                let first = cycle.next_is_read();
                assert!((0..10).all(|_| cycle.next_is_read() == first));
                assert_eq!(cycle.only_writes(), !first);
                u64::from(!first)
            };
            Some((0..threads).fold(0, |bits, index| bits | pure(index) << index))
        };
        assert_eq!(roles(1, 1, 8), Some(0b0000_1111));
        assert_eq!(roles(3, 1, 8), Some(0b0000_0011));
        assert_eq!(roles(1, 0, 8), Some(0));
        assert_eq!(roles(0, 1, 2), Some(0b11));
        assert_eq!(roles(1, 1, 7), None);
        assert_eq!(roles(10, 1, 10), None);
        assert_eq!(roles(u32::MAX - 1, 1, 1024), None);
    }

    #[test]
    fn roles_have_names() {
        assert!(Roles::ALL.iter().all(|r| Roles::find(r.name()) == Some(*r)));
        assert!(Roles::find("").is_none());
        assert!(Roles::find("mixed ").is_none());
    }

    #[test]
    fn takes_the_extremes() {
        assert!(Ratio::new(0, 0).is_none());
        assert!(Ratio::new(u32::MAX, 1).is_none());
        assert_eq!(reads_of(1_000_000, 1_000_000, 1023, 1024, 1), 0);
    }
}
