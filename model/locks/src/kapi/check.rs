// SPDX-License-Identifier: GPL-2.0

//! Checks of what must hold: here one that fails ends the execution.

/// Panics when what `holds` says does not hold.
#[track_caller]
pub(crate) fn check(holds: impl FnOnce() -> bool, failed: impl FnOnce()) {
    if !holds() {
        failed();
        panic!("a check of the lock itself fails");
    }
}
