// SPDX-License-Identifier: GPL-2.0

//! Does the lock exclude? Payload that shows when it did not.
//!
//! The payload is a number kept twice and the mark of the writer inside. Writers raise the number,
//! one copy on entry and the other on leaving; readers look at one copy on entry and at the other
//! on leaving. Whoever sees two numbers or another's mark was not alone.
//!
//! All accesses are relaxed loads and stores, never read-modify-write: under a lock that works they
//! are as good as plain ones, and without one they lose and mix up values as plain ones would.
//! Relaxed suffices, since it is for the lock under test to order them. The data race detector is told of
//! them as plain ones.

use crate::kapi::kcsan;
use core::ops::AddAssign;
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// What a worker saw go wrong.
#[derive(Clone, Copy, Default)]
pub(super) struct Faults {
    /// Sections in which a writer was seen that should not have been there.
    pub(super) overlaps: u64,
    /// Sections in which the two copies of the payload differed.
    pub(super) torn: u64,
}

impl Faults {
    /// Nothing went wrong.
    pub(super) fn is_none(&self) -> bool {
        self.overlaps == 0 && self.torn == 0
    }
}

impl AddAssign for Faults {
    fn add_assign(&mut self, other: Self) {
        self.overlaps = self.overlaps.saturating_add(other.overlaps);
        self.torn = self.torn.saturating_add(other.torn);
    }
}

/// What the lock under test protects, on a cache line of its own.
#[repr(C, align(64))]
pub(super) struct Payload {
    first: Atomic<u64>,
    second: Atomic<u64>,
    /// The writer inside; 0 for none.
    writer: Atomic<u32>,
}

impl Payload {
    pub(super) const fn new() -> Self {
        Self {
            first: Atomic::new(0),
            second: Atomic::new(0),
            writer: Atomic::new(0),
        }
    }

    /// How many writes there were: for who is inside; for others a hint.
    pub(super) fn writes(&self) -> u64 {
        self.first.load(Relaxed)
    }

    /// A reader's section with `inside` in its middle.
    #[inline(always)]
    pub(super) fn read(&self, faults: &mut Faults, inside: impl FnOnce()) {
        kcsan::reads(self);
        let before = self.writer.load(Relaxed);
        let first = self.first.load(Relaxed);
        inside();
        let second = self.second.load(Relaxed);
        let after = self.writer.load(Relaxed);
        faults.overlaps = faults.overlaps.wrapping_add(u64::from(before | after != 0));
        faults.torn = faults.torn.wrapping_add(u64::from(first != second));
    }

    /// The section of writer `me`, not 0, with `inside` in its middle.
    #[inline(always)]
    pub(super) fn write(&self, me: u32, faults: &mut Faults, inside: impl FnOnce()) {
        kcsan::writes(self);
        let before = self.writer.load(Relaxed);
        self.writer.store(me, Relaxed);
        let first = self.first.load(Relaxed);
        let second = self.second.load(Relaxed);
        let next = first.wrapping_add(1);
        self.first.store(next, Relaxed);
        inside();
        // Both copies get the same number, so that one fault is not seen for ever after.
        self.second.store(next, Relaxed);
        let after = self.writer.load(Relaxed);
        self.writer.store(0, Relaxed);
        let overlap = before != 0 || after != me;
        faults.overlaps = faults.overlaps.wrapping_add(u64::from(overlap));
        faults.torn = faults.torn.wrapping_add(u64::from(first != second));
    }
}

#[kunit_tests(klocks_bench_checks)]
mod tests {
    use super::*;

    #[test]
    fn alone_is_clean() {
        let payload = Payload::new();
        let mut faults = Faults::default();
        for _ in 0..3 {
            payload.write(1, &mut faults, || ());
            payload.read(&mut faults, || ());
        }
        assert!(faults.is_none());
    }

    // Each nested section stands for one that another CPU runs meanwhile.

    #[test]
    fn writer_within_writer() {
        let payload = Payload::new();
        let (mut outer, mut inner) = (Faults::default(), Faults::default());
        payload.write(1, &mut outer, || payload.write(2, &mut inner, || ()));
        assert_eq!((outer.overlaps, inner.overlaps, inner.torn), (1, 1, 1));
        payload.read(&mut outer, || ());
        assert_eq!(outer.torn, 1);
    }

    #[test]
    fn reader_within_writer() {
        let payload = Payload::new();
        let (mut outer, mut inner) = (Faults::default(), Faults::default());
        payload.write(1, &mut outer, || payload.read(&mut inner, || ()));
        assert!(outer.is_none());
        assert_eq!((inner.overlaps, inner.torn), (1, 1));
    }

    #[test]
    fn writer_within_reader() {
        let payload = Payload::new();
        let (mut outer, mut inner) = (Faults::default(), Faults::default());
        payload.read(&mut outer, || payload.write(1, &mut inner, || ()));
        assert!(inner.is_none());
        assert_eq!((outer.overlaps, outer.torn), (0, 1));
    }
}
