// SPDX-License-Identifier: GPL-2.0

//! What a run is to do.

use super::{
    crew::Seat,
    cycle::{
        Cycle,
        Ratio,
        Roles, //
    },
    locks::Selection,
    scenario::{
        Scenario,
        SCENARIOS, //
    }, //
};
use kernel::prelude::*;

/// The settings of a run. Each has the limits of the file that sets it.
#[derive(Clone, Copy)]
pub(super) struct Knobs {
    pub(super) scenario: &'static Scenario,
    /// The locks that take turns.
    pub(super) locks: Selection,
    pub(super) threads: u32,
    /// Reads to writes.
    pub(super) ratio: Ratio,
    /// Whether each thread does both.
    pub(super) roles: Roles,
    /// PAUSEs while the lock is held.
    pub(super) load: u32,
    /// Half the most PAUSEs between two operations; their number is random.
    pub(super) think: u32,
    /// Milliseconds between two writes, in scenarios that write at a distance.
    pub(super) gap: u32,
    /// Operations of each thread in each block.
    pub(super) ops: u64,
    /// Measured rounds; one more warms up.
    pub(super) blocks: u32,
    pub(super) seed: u64,
    /// PAUSEs by which each thread starts later than the one before it.
    pub(super) skew: u32,
    /// Whether threads stay on one CPU each.
    pub(super) pin: bool,
    /// Whether workers check that the lock excludes.
    pub(super) check: bool,
}

impl Knobs {
    pub(super) fn new() -> Self {
        Self {
            scenario: &SCENARIOS[0],
            locks: Selection::sound(),
            threads: 2,
            ratio: Ratio::EVEN,
            roles: Roles::Mixed,
            load: 1,
            think: 0,
            gap: 0,
            ops: 100_000,
            blocks: 4,
            seed: 1,
            skew: 0,
            pin: true,
            check: true,
        }
    }

    /// What the worker at `seat` does, for scenarios in which threads read and write.
    pub(super) fn cycle(&self, seat: &Seat<'_>) -> Cycle {
        self.ratio.cycle(self.roles, seat.index(), seat.threads())
    }

    /// Whether the threads can be given such roles: none is rounded off silently.
    ///
    /// # Errors
    ///
    /// `EINVAL` when they cannot.
    pub(super) fn check_roles(&self) -> Result {
        match self.roles {
            Roles::Mixed => Ok(()),
            Roles::Split => self
                .ratio
                .writers_of(self.threads)
                .map(|_| ())
                .ok_or(EINVAL),
        }
    }
}
