// SPDX-License-Identifier: GPL-2.0

//! CPUs that come and go during a run.

use super::{
    super::rng::Rng,
    shared::Shared, //
};
use crate::kapi::{
    clock,
    kthread::Body,
    machine, //
};
use kernel::{
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

const NS_PER_S: u64 = 1_000_000_000;
/// How often it looks whether the run is over.
const STEP: Delta = Delta::from_millis(100);

/// The thread that takes CPUs away, one at a time, and gives each back.
pub(super) struct Hotplug {
    pub(super) shared: Arc<Shared>,
    /// How often a CPU went, and came.
    pub(super) offline: Atomic<u64>,
    pub(super) online: Atomic<u64>,
}

impl Body for Hotplug {
    fn run(&self) {
        let stress = &self.shared.stress;
        let mut rng = Rng::new(stress.seed, u64::MAX - 1);
        self.sleep(stress.onoff_holdoff);
        while !self.shared.is_over() {
            self.sleep(stress.onoff_interval);
            // Not the first, which may not go.
            let others = machine::cpu_count().saturating_sub(1);
            let Some(cpu) = machine::online_cpus()
                .skip(1)
                .nth(rng.up_to(others.saturating_sub(1)) as usize)
            else {
                continue;
            };
            if machine::set_cpu_online(cpu, false).is_err() {
                continue;
            }
            // Relaxed: statistics.
            self.offline.fetch_add(1, Relaxed);
            self.sleep(stress.onoff_interval);
            // A CPU that does not come back is missed in the count; there is nothing else to do.
            if machine::set_cpu_online(cpu, true).is_ok() {
                self.online.fetch_add(1, Relaxed);
            }
        }
    }
}

impl Hotplug {
    /// Sleeps for so many seconds, or until the run is over.
    fn sleep(&self, seconds: u32) {
        let end = clock::now_ns().saturating_add(u64::from(seconds).saturating_mul(NS_PER_S));
        while clock::now_ns() < end && !self.shared.is_over() {
            fsleep(STEP);
        }
    }
}
