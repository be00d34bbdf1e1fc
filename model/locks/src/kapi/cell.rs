// SPDX-License-Identifier: GPL-2.0

//! Plain memory under a lock, whose races are reported.

use kernel::model::Data;

/// A plain word that a lock protects.
pub(crate) struct LockCell<T>(Data<T>);

impl<T: Copy> LockCell<T> {
    /// A cell that holds `value`.
    #[track_caller]
    pub(crate) fn new(value: T) -> Self {
        Self(Data::new(value))
    }

    /// What it holds.
    ///
    /// # Safety
    ///
    /// As in the module; a violation is reported.
    #[track_caller]
    pub(crate) unsafe fn get(&self) -> T {
        self.0.get()
    }

    /// Stores `value`.
    ///
    /// # Safety
    ///
    /// As in the module; a violation is reported.
    #[track_caller]
    pub(crate) unsafe fn set(&self, value: T) {
        self.0.set(value);
    }
}
