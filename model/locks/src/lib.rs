// SPDX-License-Identifier: GPL-2.0

//! The lock files of the module, unchanged, on stand-ins of the kernel crate and of `kapi`.

#![cfg(test)]
#![allow(dead_code, reason = "a lock file has more than the tests use")]

mod kapi;
#[path = "../../../lockref.rs"]
pub mod lockref;
#[path = "../../../osq.rs"]
mod osq;
#[path = "../../../percpu_rwsem.rs"]
pub mod percpu_rwsem;
#[path = "../../../rcu_sync.rs"]
pub mod rcu_sync;
#[path = "../../../rwlock.rs"]
pub mod rwlock;
#[path = "../../../rwsem.rs"]
pub mod rwsem;
#[path = "../../../rwsem_xadd.rs"]
pub mod rwsem_xadd;
#[path = "../../../semaphore.rs"]
pub mod semaphore;
#[path = "../../../spin.rs"]
mod spin;
#[path = "../../../waiters.rs"]
mod waiters;

mod tests;
