// SPDX-License-Identifier: GPL-2.0

//! Checks of what must hold, in builds of `make DEBUG=1` only: elsewhere they are no code at all.

/// Reports with a backtrace that what `holds` says does not hold, after `failed` has counted it: where
/// the kernel is built without `CONFIG_BUG` the counter is all that is seen.
#[inline(always)]
pub(crate) fn check(holds: impl FnOnce() -> bool, failed: impl FnOnce()) {
    #[cfg(klocks_debug)]
    if !holds() {
        failed();
        kernel::warn_on!(true);
    }
    #[cfg(not(klocks_debug))]
    let _ = (holds, failed);
}
