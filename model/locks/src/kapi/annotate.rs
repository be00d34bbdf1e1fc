// SPDX-License-Identifier: GPL-2.0

//! What debuggers and tracers are told: here only that who may sleep may.

use super::task;
use core::pin::Pin;
use kernel::{
    prelude::*,
    sync::LockClassKey, //
};

/// The name alone: there is no lockdep.
macro_rules! lock_name {
    ($name:literal) => {
        $name
    };
}
pub(crate) use lock_name;

/// How a lock is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Shared.
    Read,
    /// Exclusive.
    Write,
}

/// Whether taking a lock may wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taking {
    /// It may.
    Waits,
    /// It does not.
    Tries,
}

/// The caller may sleep here.
#[track_caller]
pub(crate) fn might_sleep() {
    task::this().assert_may_sleep();
}

/// A lock as lockdep knows it.
pub struct DepMap(());

impl DepMap {
    /// A lock.
    pub(crate) fn new(_: &'static CStr, _: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        Self(())
    }

    /// Takes the lock by `take`.
    pub(crate) fn taking(
        &self,
        _mode: Mode,
        _taking: Taking,
        _subclass: u32,
        take: impl FnOnce() -> Result,
    ) -> Result {
        take()
    }

    /// The lock was taken without waiting.
    pub(crate) fn taken_at_once(&self, _mode: Mode) {}

    /// The lock is about to be given up.
    pub(crate) fn giving_up(&self) {}

    /// The lock, held for writing, is about to be held for reading.
    pub(crate) fn downgrading(&self) {}

    /// No statistics.
    pub(crate) const HAS_STATISTICS: bool = false;

    /// The lock that is being taken is not free.
    pub(crate) fn not_free(&self) {}
}

/// Runs `wait`, in which the task waits for the lock.
pub(crate) fn contended<L>(_lock: &L, _mode: Mode, wait: impl FnOnce() -> Result) -> Result {
    wait()
}

/// As [`contended`], of a lock that counts its readers per CPU.
pub(crate) fn contended_percpu<L>(lock: &L, mode: Mode, wait: impl FnOnce() -> Result) -> Result {
    contended(lock, mode, wait)
}

/// `lock`, for which someone waits, is given up.
pub(crate) fn contended_release<L>(_lock: &L) {}

/// What names the owner of a lock on which a task hangs.
pub(crate) struct Blocked(());

impl Blocked {
    /// The task waits for the lock.
    ///
    /// # Safety
    ///
    /// Nothing is looked at.
    pub(crate) unsafe fn on<L>(_lock: &L, _mode: Mode) -> Self {
        Self(())
    }
}
