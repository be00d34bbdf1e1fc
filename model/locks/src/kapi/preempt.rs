// SPDX-License-Identifier: GPL-2.0

//! Preemption as a proof. A task has a CPU to itself, so all that is left of it is that who may
//! not be preempted may not sleep, that grace periods wait for its end, and that a reschedule that is
//! due happens there.

use super::{
    rcu,
    task, //
};
use core::{
    mem::ManuallyDrop,
    ops::Deref, //
};
use kernel::types::NotThreadSafe;

/// Proof that preemption is off in the running task.
pub(crate) struct PreemptDisabled(NotThreadSafe);

impl PreemptDisabled {
    /// The CPU that the task stays on.
    pub(crate) fn cpu(&self) -> u32 {
        task::this().cpu()
    }
}

/// Turns preemption off until the guard is dropped.
pub(crate) fn disable() -> PreemptGuard {
    if task::this().enter_unpreemptible() {
        rcu::enter_section();
    }
    PreemptGuard(PreemptDisabled(NotThreadSafe))
}

fn leave() {
    if task::this().leave_unpreemptible() {
        rcu::leave_section();
    }
}

/// Keeps preemption off.
#[must_use = "preemption is enabled again at once when the guard is unused"]
pub(crate) struct PreemptGuard(PreemptDisabled);

impl PreemptGuard {
    /// Turns preemption on again, but not for a reschedule that is due.
    pub(crate) fn enable_no_resched(self) {
        let _this = ManuallyDrop::new(self);
        leave();
    }
}

impl Deref for PreemptGuard {
    type Target = PreemptDisabled;

    fn deref(&self) -> &PreemptDisabled {
        &self.0
    }
}

impl Drop for PreemptGuard {
    fn drop(&mut self) {
        leave();
        task::this().preemption_point();
    }
}
