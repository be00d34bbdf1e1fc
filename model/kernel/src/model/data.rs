// SPDX-License-Identifier: GPL-2.0

//! Plain shared memory, whose races loom reports.

use super::{checker, Checker};

/// A plain value under a lock.
pub enum Data<T> {
    /// In loom.
    Loom(loom::cell::UnsafeCell<T>),
    /// In shuttle, where only the order of accesses can go wrong.
    Shuttle(std::cell::UnsafeCell<T>),
}

// SAFETY: The checkers run their threads in one thread of the system.
unsafe impl<T> Send for Data<T> {}
// SAFETY: As above.
unsafe impl<T> Sync for Data<T> {}

impl<T: Copy> Data<T> {
    /// A cell that holds `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        match checker() {
            Checker::Loom => Data::Loom(loom::cell::UnsafeCell::new(value)),
            Checker::Shuttle => Data::Shuttle(std::cell::UnsafeCell::new(value)),
        }
    }

    /// What it holds. A race when someone writes meanwhile.
    #[track_caller]
    pub fn get(&self) -> T {
        match self {
            // SAFETY: Valid, and loom has looked for a writer.
            Data::Loom(cell) => cell.with(|value| unsafe { *value }),
            // SAFETY: Valid; no other thread runs meanwhile.
            Data::Shuttle(cell) => unsafe { *cell.get() },
        }
    }

    /// Stores `value`. A race when someone else is there.
    #[track_caller]
    pub fn set(&self, value: T) {
        match self {
            // SAFETY: As in `get`.
            Data::Loom(cell) => cell.with_mut(|slot| unsafe { *slot = value }),
            // SAFETY: As in `get`.
            Data::Shuttle(cell) => unsafe { *cell.get() = value },
        }
    }
}
