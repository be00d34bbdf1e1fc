// SPDX-License-Identifier: GPL-2.0

//! A counter with a part for each CPU.

use super::{
    preempt::PreemptDisabled,
    task, //
};
use kernel::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed, //
    }, //
};

/// The parts: each is changed on its CPU alone, and only their sum means anything.
pub(crate) struct Counter(Option<Vec<Atomic<u32>>>);

impl Counter {
    /// A counter that has no memory.
    ///
    /// # Safety
    ///
    /// As in the module; a violation is reported.
    pub(crate) const unsafe fn none() -> Self {
        Self(None)
    }

    /// A counter whose parts are 0.
    pub(crate) fn new() -> Result<Self> {
        let parts = (0..task::count()).map(|_| Atomic::new(0));
        Ok(Self(Some(parts.collect())))
    }

    /// Whether it has memory.
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    fn parts(&self) -> &[Atomic<u32>] {
        self.0.as_deref().expect("a counter without memory is used")
    }

    /// Adds 1 to this CPU's part.
    #[track_caller]
    pub(crate) fn inc(&self, pin: &PreemptDisabled) {
        self.parts()[pin.cpu() as usize].fetch_add(1, Relaxed);
    }

    /// Takes 1 from this CPU's part.
    #[track_caller]
    pub(crate) fn dec(&self, pin: &PreemptDisabled) {
        self.parts()[pin.cpu() as usize].fetch_sub(1, Relaxed);
    }

    /// The sum over all CPUs, each part read with acquire.
    #[track_caller]
    pub(crate) fn sum_acquire(&self) -> u32 {
        self.parts()
            .iter()
            .fold(0, |sum: u32, part| sum.wrapping_add(part.load(Acquire)))
    }
}
