// SPDX-License-Identifier: GPL-2.0

//! Sleeping reader-writer locks and their helpers in Rust, and a harness that tests and measures
//! them beside their C counterparts.
//!
//! Each lock is a file of its own at the top level. [`rwlock`] has the traits that they implement
//! and the data lock with guards; [`spin`] and [`waiters`] are what the read-write semaphores
//! share; [`kapi`] is what all stand on; [`harness`] is reached through debugfs.
//!
//! # For other modules
//!
//! Take a data lock, an alias of [`rwlock::Locked`]: [`rwsem::RwSemaphore`], [`rwsem_xadd::RwSemaphoreXadd`]
//! or [`percpu_rwsem::PercpuRwSemaphore`]; made by [`new_locked!`], it gives its data out by guards.
//! [`lockref::RefLock`] is data with a reference count, [`rcu_sync::RcuSync`] a gate for one's own fast
//! path. Errors are the kernel's codes; nothing panics. In C the same locks are in `include/klocks.h`.

use kernel::prelude::*;

mod capi;
mod harness;
mod kapi;
mod layout;
pub mod lockref;
mod osq;
pub mod percpu_rwsem;
pub mod rcu_sync;
pub mod rwlock;
pub mod rwsem;
pub mod rwsem_xadd;
pub mod semaphore;
mod spin;
mod waiters;

module! {
    type: Klocks,
    name: "klocks",
    authors: ["klocks developers"],
    description: "Sleeping reader-writer locks in Rust, with torture tests and benchmarks",
    license: "GPL v2",
}

kapi::module::version!("0.1.0");

struct Klocks {
    _harness: harness::Harness,
    /// Goes last.
    _callbacks: Callbacks,
}

/// The module's RCU callbacks. Its end waits for theirs: one that has done its work, so that its lock
/// could go, may still be in its last instructions.
struct Callbacks;

impl Drop for Callbacks {
    fn drop(&mut self) {
        kapi::rcu::barrier();
    }
}

impl kernel::Module for Klocks {
    fn init(module: &'static ThisModule) -> Result<Self> {
        Ok(Self {
            _harness: harness::Harness::new(module)?,
            _callbacks: Callbacks,
        })
    }
}
