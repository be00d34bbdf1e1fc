// SPDX-License-Identifier: GPL-2.0

//! What the watchdog and others see of a worker while it works.

use crate::kapi::clock;
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};

/// Where a worker is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not in the lock.
    Idle,
    /// In an operation that takes it.
    Waiting,
    /// Holding it for reading.
    Reading,
    /// Holding it for writing.
    Writing,
    /// In an operation that gives it up.
    Leaving,
}

impl Stage {
    const ALL: [Self; 5] = [
        Self::Idle,
        Self::Waiting,
        Self::Reading,
        Self::Writing,
        Self::Leaving,
    ];
}

/// A worker's state, on a cache line that only it writes.
///
/// The stage is a flag in the sense of the checks: written by plain stores within the section and
/// read by writers, it shows a lock that lets two in, or that does not order who comes after whom.
#[repr(align(64))]
pub(super) struct Desk {
    stage: Atomic<u32>,
    /// When it went there.
    since: Atomic<u64>,
    /// How often it has had the lock.
    acquired: Atomic<u64>,
}

impl Desk {
    pub(super) const fn new() -> Self {
        Self {
            stage: Atomic::new(Stage::Idle as u32),
            since: Atomic::new(0),
            acquired: Atomic::new(0),
        }
    }

    /// Goes on to `stage`.
    pub(super) fn go(&self, stage: Stage) {
        // ORDERING: Release pairs with the acquire in `Desk::look`: the time is not older than the
        // stage.
        self.stage.store(stage as u32, Release);
    }

    /// Begins to wait for the lock, now.
    pub(super) fn begin_wait(&self) -> u64 {
        let now = clock::now_ns();
        // Relaxed: published with the stage.
        self.since.store(now, Relaxed);
        self.go(Stage::Waiting);
        now
    }

    /// Has the lock, and `stage` says how.
    pub(super) fn got_it(&self, stage: Stage) {
        self.go(stage);
        // Relaxed: a statistic that one thread at a time writes.
        self.acquired
            .store(self.acquired.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Where it is.
    pub(super) fn stage(&self) -> Stage {
        // Relaxed: the lock under test orders it, or nothing need.
        Self::decode(self.stage.load(Relaxed))
    }

    /// Where it is, and since when if it waits.
    pub(super) fn look(&self) -> (Stage, u64) {
        // ORDERING: Acquire pairs with the release in `go`.
        let stage = Self::decode(self.stage.load(Acquire));
        (stage, self.since.load(Relaxed))
    }

    /// How often it has had the lock.
    pub(super) fn acquired(&self) -> u64 {
        // Relaxed: a statistic.
        self.acquired.load(Relaxed)
    }

    fn decode(stage: u32) -> Stage {
        Stage::ALL
            .get(stage as usize)
            .copied()
            .unwrap_or(Stage::Idle)
    }
}
