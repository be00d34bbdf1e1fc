// SPDX-License-Identifier: GPL-2.0

//! Synchronisation.

pub mod atomic;
pub mod barrier;

pub use crate::static_lock_class;

/// What lockdep knows a lock by: nothing here.
pub struct LockClassKey(());

impl LockClassKey {
    /// A key.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(())
    }
}
