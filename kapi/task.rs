// SPDX-License-Identifier: GPL-2.0

//! Tasks as locks see them: who runs, on a CPU or not, sleeping, signalled.
//!
//! C headers: [`include/linux/sched.h`](srctree/include/linux/sched.h),
//! [`include/linux/sched/signal.h`](srctree/include/linux/sched/signal.h).

use super::{
    preempt::PreemptDisabled,
    shim, //
};
use kernel::bindings;

/// The identity of a task. It may be gone: compare freely, look inside only as [`Task::is_on_cpu`]
/// says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task(*mut bindings::task_struct);

impl Task {
    /// The running task.
    #[inline(always)]
    pub(crate) fn current() -> Self {
        Self(kernel::task::Task::current_raw())
    }

    /// Its address, for owner words. Task structures are aligned to 64 bytes at least, so the low
    /// six bits are free.
    #[inline(always)]
    pub(crate) fn addr(self) -> usize {
        self.0 as usize
    }

    pub(super) fn as_ptr(self) -> *mut bindings::task_struct {
        self.0
    }

    /// The task of that address.
    #[inline(always)]
    pub(crate) fn from_addr(addr: usize) -> Self {
        Self(addr as *mut bindings::task_struct)
    }

    /// Whether the task runs on a CPU that itself runs (not a preempted virtual one).
    ///
    /// # Safety
    ///
    /// The task must have been seen alive (as the owner of a lock, say) since preemption went
    /// off as `_pin` proves: RCU then keeps its structure.
    #[inline(always)]
    pub(crate) unsafe fn is_on_cpu(self, _pin: &PreemptDisabled) -> bool {
        // SAFETY: The structure is there by the caller's contract.
        unsafe { shim::kapi_owner_on_cpu(self.0) }
    }

    /// Its number, as user space knows it.
    ///
    /// # Safety
    ///
    /// The task is alive, or as in [`Task::is_on_cpu`].
    pub(crate) unsafe fn pid(self) -> i32 {
        // SAFETY: The structure is there by the caller's contract; the number never changes.
        unsafe { (*self.0).pid }
    }

    /// Takes a reference, so that the task can be woken after it may have gone on.
    ///
    /// # Safety
    ///
    /// The task is alive.
    #[inline(always)]
    pub(crate) unsafe fn get(self) -> TaskRef {
        // SAFETY: Alive by the caller's contract.
        unsafe { bindings::get_task_struct(self.0) };
        // INVARIANT: The reference was just taken.
        TaskRef(self.0)
    }
}

/// A counted reference to a task.
///
/// # Invariants
///
/// Owns one reference of the task.
pub(crate) struct TaskRef(*mut bindings::task_struct);

impl TaskRef {
    pub(super) fn as_ptr(&self) -> *mut bindings::task_struct {
        self.0
    }

    /// Gives the reference to the caller as a plain pointer.
    pub(super) fn into_raw(self) -> *mut bindings::task_struct {
        core::mem::ManuallyDrop::new(self).0
    }

    /// # Safety
    ///
    /// The caller hands over a reference that it owns.
    pub(super) unsafe fn from_raw(task: *mut bindings::task_struct) -> Self {
        // INVARIANT: By the caller's contract.
        Self(task)
    }
}

impl Drop for TaskRef {
    fn drop(&mut self) {
        // SAFETY: Owns a reference by the invariant.
        unsafe { bindings::put_task_struct(self.0) };
    }
}

/// Whether the running task should let another run.
#[inline(always)]
pub(crate) fn need_resched() -> bool {
    // SAFETY: Callable anywhere.
    unsafe { shim::kapi_need_resched() }
}

/// Whether the hypervisor took the CPU away from virtual CPU `cpu`.
#[inline(always)]
pub(crate) fn vcpu_is_preempted(cpu: u32) -> bool {
    // SAFETY: Callable anywhere; any possible CPU number is fine.
    unsafe { shim::kapi_vcpu_is_preempted(cpu) }
}

/// Whether the running task is real-time or deadline: it would keep a normal task off its CPU.
#[inline(always)]
pub(crate) fn current_is_rt() -> bool {
    // SAFETY: The running task is alive.
    unsafe { shim::kapi_rt_or_dl_task(Task::current().0) }
}

/// How a waiter sleeps, that is, which signals end its wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    /// No signal does.
    Uninterruptible,
    /// Any signal does.
    Interruptible,
    /// A fatal signal does.
    Killable,
    /// No signal does, but the task may be frozen meanwhile.
    Freezable,
}

impl Sleep {
    const fn state(self) -> u32 {
        match self {
            Sleep::Uninterruptible => bindings::TASK_UNINTERRUPTIBLE,
            Sleep::Interruptible => bindings::TASK_INTERRUPTIBLE,
            Sleep::Killable => bindings::TASK_KILLABLE,
            Sleep::Freezable => bindings::TASK_UNINTERRUPTIBLE | bindings::TASK_FREEZABLE,
        }
    }

    /// Whether a signal that ends this kind of wait is pending for the running task.
    pub(crate) fn signal_pending(self) -> bool {
        // SAFETY: The running task is alive.
        unsafe { shim::kapi_signal_pending_state(self.state(), Task::current().0) }
    }

    /// Declares the running task about to sleep. A wake-up from here on is not lost.
    ///
    /// ORDERING: Implies a full barrier after the store of the state, so that what the task then
    /// reads (its grant, the lock word) is not older than the state; the partner is the barrier in
    /// the waker's `wake_up_process()`.
    #[inline(always)]
    pub(crate) fn prepare(self) {
        // SAFETY: Process context.
        unsafe { shim::kapi_set_current_state(self.state()) };
    }
}

/// Takes back [`Sleep::prepare`]: the task runs on.
#[inline(always)]
pub(crate) fn set_running() {
    // SAFETY: Process context.
    unsafe { shim::kapi___set_current_state(bindings::TASK_RUNNING) };
}

/// Sleeps until woken, or not at all when a wake-up came since [`Sleep::prepare`].
#[inline(always)]
pub(crate) fn schedule() {
    // SAFETY: Process context; no spinlock is held.
    unsafe { bindings::schedule() };
}

/// Lets another run on this CPU if one should: a step of each loop that goes on until someone else has done
/// something. Preemption does the same, but not in User-mode Linux, where interrupts do not preempt
/// the kernel.
#[inline(always)]
pub(crate) fn give_way() {
    if need_resched() {
        schedule();
    }
}
