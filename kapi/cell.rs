// SPDX-License-Identifier: GPL-2.0

//! Plain memory under a lock.

use super::kcsan;
use core::cell::UnsafeCell;

/// A plain word that a lock protects. The host model replaces it by one that reports races.
pub(crate) struct LockCell<T>(UnsafeCell<T>);

// SAFETY: Access is by contract of the methods under a lock.
unsafe impl<T: Send> Send for LockCell<T> {}
// SAFETY: As above.
unsafe impl<T: Send> Sync for LockCell<T> {}

impl<T: Copy> LockCell<T> {
    /// A cell that holds `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// What it holds.
    ///
    /// # Safety
    ///
    /// The caller holds the lock that protects the cell.
    #[inline(always)]
    pub(crate) unsafe fn get(&self) -> T {
        kcsan::reads(self);
        // SAFETY: No one writes meanwhile, by the caller's contract.
        unsafe { *self.0.get() }
    }

    /// Stores `value`.
    ///
    /// # Safety
    ///
    /// The caller holds the lock that protects the cell.
    #[inline(always)]
    pub(crate) unsafe fn set(&self, value: T) {
        kcsan::writes(self);
        // SAFETY: No one else accesses it meanwhile, by the caller's contract.
        unsafe { *self.0.get() = value };
    }
}
