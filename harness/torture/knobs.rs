// SPDX-License-Identifier: GPL-2.0

//! What a torture run is to do. Knobs that locktorture has bear its names and units.

use super::{
    super::locks::{
        LockType,
        Selection, //
    },
    roles::Role, //
};
use kernel::prelude::*;

/// The most workers of a run.
pub(in super::super) const MOST_WORKERS: u32 = 1024;

/// The settings of a run. Each has the limits of the file that sets it.
#[derive(Clone, Copy)]
pub(in super::super) struct Stress {
    /// All at once, each with workers of its own.
    pub(in super::super) locks: Selection,
    pub(in super::super) seed: u64,
    pub(in super::super) duration_ms: u32,
    /// Workers of each kind on each lock.
    pub(in super::super) nreaders_stress: u32,
    pub(in super::super) nwriters_stress: u32,
    pub(in super::super) ntrylocks_stress: u32,
    pub(in super::super) nkillables_stress: u32,
    pub(in super::super) ninterruptibles_stress: u32,
    pub(in super::super) ndowngraders_stress: u32,
    pub(in super::super) nrtwriters_stress: u32,
    pub(in super::super) nshortlived_stress: u32,
    /// The most PAUSEs while a lock is held.
    pub(in super::super) load: u32,
    /// The most PAUSEs between two operations.
    pub(in super::super) think: u32,
    /// Milliseconds for which a lock is held now and then; 0: never.
    pub(in super::super) long_hold: u32,
    /// The most further locks that are taken while one is held.
    pub(in super::super) nested_locks: u32,
    /// Jiffies to run and to halt; 0: never halt.
    pub(in super::super) stutter: u32,
    /// Jiffies between two changes of the CPU that workers must keep off; 0: none.
    pub(in super::super) shuffle_interval: u32,
    /// Seconds between two times that a CPU goes or comes; 0: none.
    pub(in super::super) onoff_interval: u32,
    /// Seconds until the first.
    pub(in super::super) onoff_holdoff: u32,
    /// Whether writers are real-time now and then,
    pub(in super::super) rt_boost: bool,
    /// namely at one of so many operations.
    pub(in super::super) rt_boost_factor: u32,
    /// Jiffies that a write may wait; 0: any number.
    pub(in super::super) acq_writer_lim: u32,
    /// Milliseconds after which a wait counts as stuck.
    pub(in super::super) watchdog_ms: u32,
}

impl Stress {
    pub(super) fn new() -> Self {
        Self {
            locks: Selection::sound(),
            seed: 1,
            duration_ms: 10_000,
            nreaders_stress: 2,
            nwriters_stress: 2,
            ntrylocks_stress: 1,
            nkillables_stress: 1,
            ninterruptibles_stress: 1,
            ndowngraders_stress: 1,
            nrtwriters_stress: 0,
            nshortlived_stress: 1,
            load: 100,
            think: 200,
            long_hold: 10,
            nested_locks: 0,
            stutter: 50,
            shuffle_interval: 3,
            onoff_interval: 0,
            onoff_holdoff: 0,
            rt_boost: false,
            rt_boost_factor: 50,
            acq_writer_lim: 0,
            watchdog_ms: 20_000,
        }
    }

    /// How many workers of that role `lock` gets: none of those that need what it lacks.
    pub(super) fn workers(&self, lock: &LockType, role: Role) -> u32 {
        if lock.can(role.needs()) {
            self.wanted(role)
        } else {
            0
        }
    }

    /// How many workers of that role each lock is to have.
    pub(super) fn wanted(&self, role: Role) -> u32 {
        match role {
            Role::Reader => self.nreaders_stress,
            Role::Writer => self.nwriters_stress,
            Role::Trylock => self.ntrylocks_stress,
            Role::Killable => self.nkillables_stress,
            Role::Interruptible => self.ninterruptibles_stress,
            Role::Downgrader => self.ndowngraders_stress,
            Role::RtWriter => self.nrtwriters_stress,
            Role::ShortLived => self.nshortlived_stress,
        }
    }

    /// `EINVAL` when a lock would have no worker, or all together have too many.
    pub(super) fn check(&self) -> Result {
        let mut total = 0u32;
        for lock in self.locks.types() {
            let workers = Role::ALL.iter().fold(0u32, |sum, &role| {
                sum.saturating_add(self.workers(lock, role))
            });
            if workers == 0 {
                return Err(EINVAL);
            }
            total = total.saturating_add(workers);
        }
        if total > MOST_WORKERS {
            return Err(EINVAL);
        }
        Ok(())
    }
}
