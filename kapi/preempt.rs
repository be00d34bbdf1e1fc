// SPDX-License-Identifier: GPL-2.0

//! Preemption as a proof: what must not be preempted takes a [`PreemptDisabled`].
//!
//! C header: [`include/linux/preempt.h`](srctree/include/linux/preempt.h).

use super::shim;
use core::{
    mem::ManuallyDrop,
    ops::Deref, //
};
use kernel::types::NotThreadSafe;

/// Proof that preemption is off in the running task for as long as this is borrowed.
///
/// With preemption off the task stays on its CPU, its per-CPU data is its own (but for
/// interrupts), and RCU read-side protection holds, so that no task structure seen meanwhile goes
/// away.
pub(crate) struct PreemptDisabled(NotThreadSafe);

impl PreemptDisabled {
    /// The CPU that the task stays on.
    #[inline(always)]
    pub(crate) fn cpu(&self) -> u32 {
        // SAFETY: Preemption is off by the type's meaning, so the answer stays right.
        unsafe { shim::kapi_smp_processor_id() }
    }
}

/// Turns preemption off until the guard is dropped. Nests.
#[inline(always)]
pub(crate) fn disable() -> PreemptGuard {
    // SAFETY: Callable anywhere; the guard's end balances it.
    unsafe { shim::kapi_preempt_disable() };
    PreemptGuard(PreemptDisabled(NotThreadSafe))
}

/// Keeps preemption off. A leaked guard leaves it off for good: the task can never sleep again.
#[must_use = "preemption is enabled again at once when the guard is unused"]
pub(crate) struct PreemptGuard(PreemptDisabled);

impl PreemptGuard {
    /// Turns preemption on again, but leaves a reschedule that came due meanwhile to the next
    /// preemption point.
    ///
    /// Right only directly before `schedule()`: anywhere else it delays whoever is to run here by
    /// an unknown time.
    #[inline(always)]
    pub(crate) fn enable_no_resched(self) {
        let _this = ManuallyDrop::new(self);
        // SAFETY: Balances `disable`; the destructor does not run.
        unsafe { shim::kapi_preempt_enable_no_resched() };
    }
}

impl Deref for PreemptGuard {
    type Target = PreemptDisabled;

    #[inline(always)]
    fn deref(&self) -> &PreemptDisabled {
        &self.0
    }
}

impl Drop for PreemptGuard {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: Balances `disable`.
        unsafe { shim::kapi_preempt_enable() };
    }
}
