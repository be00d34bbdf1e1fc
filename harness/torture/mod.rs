// SPDX-License-Identifier: GPL-2.0

//! Torture: all selected locks at once, each with workers of its own that take it in every way there is,
//! while tasks halt, change CPUs, are killed, become real-time, and CPUs come and go.
//!
//! What the workers do is the table in [`roles`]; how a broken lock shows, the checks in [`arena`], the
//! sampler and the watchdog in [`watch`], and the look at the lock that nobody uses any more in
//! [`verdict`]. The first fault ends the run. What is random depends on the seed, so a run can be
//! repeated as far as the scheduler repeats it.
//!
//! A worker that does not come back keeps the run, and with it the module, for good.
//!
//! C counterpart: [`kernel/locking/locktorture.c`](srctree/kernel/locking/locktorture.c).

mod arena;
mod desk;
mod hotplug;
pub(super) mod knobs;
mod roles;
mod shared;
mod tally;
mod verdict;
mod watch;
mod worker;

use super::engine::{
    Plan,
    Session, //
};
use crate::kapi::{
    kthread::{
        Kthread,
        Placement, //
    },
    machine,
    stall,
    torture_ko::Claim, //
};
use hotplug::Hotplug;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
use knobs::Stress;
use shared::Shared;
use watch::Watch;
use worker::Worker;

impl Plan for Stress {
    const THREAD: &'static CStr = c"klocks_torture";
    /// It has to come through when all workers are real-time and spin.
    const PLACEMENT: Placement = Placement {
        cpu: None,
        fifo: true,
    };

    fn new() -> Self {
        Stress::new()
    }

    fn check(&self) -> Result {
        Stress::check(self)
    }

    fn claim() -> Result<Option<Claim>> {
        Claim::take()
    }

    fn steps(&self) -> u64 {
        self.duration_ms.into()
    }

    fn run(&self, session: &Session<'_>) -> Result {
        stall::seed(self.seed);
        verdict::put_start(session, self)?;
        let shared = Shared::new(self)?;
        let threads = create_threads(&shared)?;
        let hotplug = Arc::new(
            Hotplug {
                shared: shared.clone(),
                offline: Atomic::new(0),
                online: Atomic::new(0),
            },
            GFP_KERNEL,
        )?;
        // A thread that nobody wakes would in time count as hung.
        let hotplug_thread = (self.onoff_interval != 0 && machine::HOTPLUG)
            .then(|| Kthread::create(c"klocks_onoff", 0, Placement::default(), hotplug.clone()))
            .transpose()?;
        let mut watch = Watch::new(&shared, &threads, session)?;

        if let Some(thread) = &hotplug_thread {
            thread.wake();
        }
        for thread in &threads {
            thread.wake();
        }
        watch.run();
        drop(threads);
        drop(hotplug_thread);

        let mut failed = 0usize;
        for (place, arena) in shared.arenas.iter().enumerate() {
            let good = verdict::put_lock(session, &shared, place, arena)?;
            failed = failed.wrapping_add(usize::from(!good));
        }
        // Relaxed: the thread has been joined.
        let onoffs = (hotplug.offline.load(Relaxed), hotplug.online.load(Relaxed));
        verdict::put_end(session, shared.arenas.len(), failed, onoffs)
    }
}

/// One thread a worker, still asleep.
fn create_threads(shared: &Arc<Shared>) -> Result<KVVec<Kthread<Worker>>> {
    let mut threads = KVVec::with_capacity(shared.desks.len(), GFP_KERNEL)?;
    for index in 0..shared.desks.len() {
        let worker = Worker {
            index,
            shared: shared.clone(),
        };
        let worker = Arc::new(worker, GFP_KERNEL)?;
        // CAST: There are at most `MOST_WORKERS`.
        let thread = Kthread::create(c"klocks_tort", index as u32, Placement::default(), worker)?;
        threads.push(thread, GFP_KERNEL)?;
    }
    Ok(threads)
}
