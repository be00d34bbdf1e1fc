// SPDX-License-Identifier: GPL-2.0

//! What a task notices of others that use its CPU, and how much it minds them.
//!
//! C headers: [`include/linux/sched.h`](srctree/include/linux/sched.h),
//! [`arch/x86/include/asm/hardirq.h`](srctree/arch/x86/include/asm/hardirq.h).

use super::shim;
use kernel::{
    bindings,
    task::Task, //
};

/// Makes the running task give way to all normal ones.
pub(crate) fn be_nice() {
    // SAFETY: The running task is alive.
    unsafe { bindings::set_user_nice(Task::current_raw(), bindings::MAX_NICE as isize) };
}

/// Makes the running task real-time, at the lowest of those priorities, or normal again.
pub(crate) fn be_realtime(yes: bool) {
    // SAFETY: The running task is alive.
    unsafe {
        if yes {
            bindings::sched_set_fifo_low(Task::current_raw());
        } else {
            bindings::sched_set_normal(Task::current_raw(), 0);
        }
    }
}

/// How often the running task has been taken off a CPU.
pub(crate) fn switches() -> u64 {
    // SAFETY: Callable anywhere.
    unsafe { shim::kapi_current_switches() as u64 }
}

/// How many timer ticks and interrupts by other CPUs `cpu`, a possible one, has had. 0 where the
/// kernel does not count them.
pub(crate) fn interrupts(cpu: u32) -> u64 {
    // SAFETY: Reads counters of a possible CPU.
    unsafe { shim::kapi_cpu_interrupts(cpu) }
}
