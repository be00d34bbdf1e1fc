// SPDX-License-Identifier: GPL-2.0

//! The events of a lock type during a block, as its line of results shows them.

use super::locks::LockType;
use crate::kapi::{
    events::{
        self,
        EventSource, //
    },
    machine, //
};
use kernel::fmt;

/// What a lock type had counted at some time. Nothing where it or the kernel does not count.
pub(super) struct EventTally {
    source: Option<&'static dyn EventSource>,
    counts: [u64; events::MAX],
}

impl EventTally {
    /// Until now.
    pub(super) fn of(lock: &LockType) -> Self {
        let source = lock.events().filter(|_| machine::COUNTS_EVENTS);
        let mut counts = [0; events::MAX];
        if let Some(source) = source {
            for (index, count) in counts.iter_mut().enumerate() {
                *count = source.read(index);
            }
        }
        Self { source, counts }
    }

    /// What came since then.
    pub(super) fn so_far(mut self) -> Self {
        if let Some(source) = self.source {
            for (index, count) in self.counts.iter_mut().enumerate() {
                *count = source.read(index).wrapping_sub(*count);
            }
        }
        self
    }
}

/// ` 12 opt_lock-events 3 sleep_reader-events`: what happened at all.
impl fmt::Display for EventTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.source.map_or(&[][..], EventSource::names);
        for (name, count) in names.iter().zip(self.counts) {
            if count != 0 {
                write!(f, " {count} {name}-events")?;
            }
        }
        Ok(())
    }
}
