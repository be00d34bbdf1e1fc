// SPDX-License-Identifier: GPL-2.0

//! Time: it stands still, but for the events of limits that pass.

use super::task;

/// Nanoseconds of the scheduler's clock.
pub(crate) fn sched_ns() -> u64 {
    if task::this().happens(|plan| &mut plan.patience_ends) {
        u64::MAX
    } else {
        0
    }
}

/// A time in jiffies.
#[derive(Clone, Copy)]
pub(crate) struct Jiffies(());

/// For how long a waiter may be passed over.
pub(crate) const HANDOFF_JIFFIES: usize = 1;

impl Jiffies {
    /// The present.
    pub(crate) fn now() -> Self {
        Self(())
    }

    /// Jiffies since then.
    pub(crate) fn elapsed(self) -> usize {
        if task::this().happens(|plan| &mut plan.waited_long) {
            HANDOFF_JIFFIES + 1
        } else {
            0
        }
    }

    /// Milliseconds since then.
    pub(crate) fn elapsed_ms(self) -> usize {
        self.elapsed()
    }
}
