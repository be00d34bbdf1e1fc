// SPDX-License-Identifier: GPL-2.0

//! A counter with a part for each CPU, in memory of its own.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h).

use super::{
    percpu::possible_cpus,
    preempt::PreemptDisabled,
    shim, //
};
use kernel::{
    bindings,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic, //
    }, //
};

#[cfg(CONFIG_KUNIT = "y")]
use kernel::sync::atomic::Relaxed;

/// The parts: each is changed by one instruction on its CPU alone, so interrupts do no harm, and
/// only their sum means anything.
///
/// # Invariants
///
/// The per-CPU address of a `u32` that it owns; or null, for one of [`Counter::none`].
#[repr(transparent)]
pub(crate) struct Counter(*mut u32);

// SAFETY: The parts are changed by single instructions and read atomically, from anywhere.
unsafe impl Send for Counter {}
// SAFETY: As above.
unsafe impl Sync for Counter {}

/// Makes the next allocation fail, once.
#[cfg(CONFIG_KUNIT = "y")]
pub(crate) static FAIL_NEXT: Atomic<bool> = Atomic::new(false);
/// How many counters have memory.
#[cfg(CONFIG_KUNIT = "y")]
pub(crate) static LIVE: Atomic<i64> = Atomic::new(0);

impl Counter {
    /// A counter that has no memory, which is also what zeroed memory is.
    ///
    /// # Safety
    ///
    /// It is never used, only asked for [`Counter::is_some`] and dropped.
    pub(crate) const unsafe fn none() -> Self {
        // INVARIANT: The exception in it.
        Self(core::ptr::null_mut())
    }

    /// A counter whose parts are 0.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        #[cfg(CONFIG_KUNIT = "y")]
        if FAIL_NEXT.xchg(false, Relaxed) {
            return Err(ENOMEM);
        }
        // SAFETY: Process context. The memory comes zeroed.
        let parts = unsafe {
            bindings::pcpu_alloc_noprof(
                size_of::<u32>(),
                align_of::<u32>(),
                false,
                bindings::GFP_KERNEL,
            )
        };
        if parts.is_null() {
            return Err(ENOMEM);
        }
        #[cfg(CONFIG_KUNIT = "y")]
        LIVE.fetch_add(1, Relaxed);
        // INVARIANT: Just allocated, of that size.
        Ok(Self(parts.cast()))
    }

    /// Whether it has memory.
    pub(crate) fn is_some(&self) -> bool {
        !self.0.is_null()
    }

    /// Adds 1 to this CPU's part.
    #[inline(always)]
    pub(crate) fn inc(&self, _pin: &PreemptDisabled) {
        // SAFETY: Owned by the invariant.
        unsafe { shim::kapi_this_cpu_inc_u32(self.0) };
    }

    /// Takes 1 from this CPU's part.
    #[inline(always)]
    pub(crate) fn dec(&self, _pin: &PreemptDisabled) {
        // SAFETY: As in `inc`.
        unsafe { shim::kapi_this_cpu_dec_u32(self.0) };
    }

    /// The sum over all CPUs that can ever run, each part read with acquire.
    pub(crate) fn sum_acquire(&self) -> u32 {
        possible_cpus().fold(0, |sum, cpu| {
            // SAFETY: The part of a possible CPU, by the invariant; it is changed by single
            // instructions and read atomically.
            let part =
                unsafe { Atomic::from_ptr(shim::kapi_per_cpu_ptr(self.0.cast(), cpu).cast()) };
            // ORDERING: Acquire pairs with the barrier before `dec` that the caller names.
            sum.wrapping_add(part.load(Acquire))
        })
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        #[cfg(CONFIG_KUNIT = "y")]
        LIVE.fetch_sub(i64::from(self.is_some()), Relaxed);
        // SAFETY: Owned by the invariant; null is allowed.
        unsafe { bindings::free_percpu(self.0.cast()) };
    }
}
