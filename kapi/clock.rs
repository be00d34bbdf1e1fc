// SPDX-License-Identifier: GPL-2.0

//! The monotonic clock as plain numbers, which threads can share in atomics.
//!
//! C header: [`include/linux/timekeeping.h`](srctree/include/linux/timekeeping.h).

use super::shim;
use kernel::bindings;

/// Nanoseconds of `CLOCK_MONOTONIC`. Not for NMI context.
#[inline]
pub(crate) fn now_ns() -> u64 {
    // SAFETY: Callable in every context but NMI.
    let now = unsafe { bindings::ktime_get() };
    // CAST: The monotonic clock starts at 0.
    now as u64
}

/// Nanoseconds of the scheduler's clock: quick, for any context, to be compared on one CPU only.
#[inline]
pub(crate) fn sched_ns() -> u64 {
    // SAFETY: Callable in every context.
    unsafe { shim::kapi_sched_clock() }
}

/// A time in jiffies.
#[derive(Clone, Copy)]
pub(crate) struct Jiffies(usize);

/// For how long a waiter may be passed over: 4 ms, or one jiffy if that is longer.
///
/// `bindings::HZ` is the constant of the user-space interface, 100 on all machines.
pub(crate) const HANDOFF_JIFFIES: usize = shim::KAPI_HZ.div_ceil(250);

impl Jiffies {
    /// The present.
    #[inline]
    pub(crate) fn now() -> Self {
        // SAFETY: A C variable that the timer interrupt changes, as volatile as in C.
        Self(unsafe { (&raw const bindings::jiffies).read_volatile() })
    }

    /// Jiffies since then.
    #[inline]
    pub(crate) fn elapsed(self) -> usize {
        Self::now().0.wrapping_sub(self.0)
    }

    /// Milliseconds since then.
    pub(crate) fn elapsed_ms(self) -> usize {
        self.elapsed().saturating_mul(1000) / shim::KAPI_HZ
    }
}
