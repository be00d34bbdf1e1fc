// SPDX-License-Identifier: GPL-2.0

//! The machine and the kernel that a run took place on.

use super::shim;
use kernel::{
    bindings,
    cpu::nr_cpu_ids,
    prelude::*,
    types::NotThreadSafe, //
};

/// Ticks a second (`CONFIG_HZ`).
pub(crate) const HZ: usize = shim::KAPI_HZ;

/// Whether the kernel's C helpers, atomics among them, are inlined into Rust code.
pub(crate) const INLINE_HELPERS: bool = cfg!(CONFIG_RUST_INLINE_HELPERS);

/// Whether locks, ours and C's, count the events of their slow paths.
pub(crate) const COUNTS_EVENTS: bool = cfg!(CONFIG_LOCK_EVENT_COUNTS);

/// How this module was built: with stall points and shims as calls, or without.
pub(crate) const MODULE_BUILD: &str = if cfg!(klocks_debug) {
    "klocks debug"
} else {
    "klocks"
};

/// The numbers of the CPUs that run now. They may change at once where CPUs can be unplugged.
pub(crate) fn online_cpus() -> impl Iterator<Item = u32> {
    (0..nr_cpu_ids()).filter(|&cpu| {
        // SAFETY: Reads a C bitmap, which is valid for all numbers below `nr_cpu_ids`.
        unsafe {
            bindings::cpumask_test_cpu(cpu as c_int, (&raw mut bindings::__cpu_online_mask).cast())
        }
    })
}

/// Whether CPUs can be taken away.
pub(crate) const HOTPLUG: bool = cfg!(CONFIG_HOTPLUG_CPU);

/// Takes `cpu` away, or gives it back. Sleeps.
///
/// # Errors
///
/// The kernel's reason why not, such as `EBUSY` for the last one.
pub(crate) fn set_cpu_online(cpu: u32, online: bool) -> Result {
    #[cfg(CONFIG_HOTPLUG_CPU)]
    // SAFETY: Callable in process context with the number of a possible CPU.
    return kernel::error::to_result(unsafe {
        if online {
            bindings::add_cpu(cpu)
        } else {
            bindings::remove_cpu(cpu)
        }
    });
    #[cfg(not(CONFIG_HOTPLUG_CPU))]
    {
        let _ = (cpu, online);
        Err(EOPNOTSUPP)
    }
}

/// CPUs neither come nor go while it is there.
#[must_use = "CPUs may go at once when the guard is unused"]
pub(crate) struct CpusStay(NotThreadSafe);

impl CpusStay {
    /// Waits until none is on its way. Sleeps.
    pub(crate) fn new() -> Self {
        #[cfg(CONFIG_HOTPLUG_CPU)]
        // SAFETY: Process context; the caller may sleep. The guard stays with this task.
        unsafe {
            bindings::cpus_read_lock()
        };
        Self(NotThreadSafe)
    }
}

impl Drop for CpusStay {
    fn drop(&mut self) {
        #[cfg(CONFIG_HOTPLUG_CPU)]
        // SAFETY: Locked by `new`, by this task.
        unsafe {
            bindings::cpus_read_unlock()
        };
    }
}

/// How many CPUs run now; never 0.
pub(crate) fn cpu_count() -> u32 {
    let mut count: u32 = 0;
    for _ in online_cpus() {
        count = count.saturating_add(1);
    }
    count.max(1)
}

/// The kernel's release, as `uname -r` prints it.
pub(crate) fn kernel_release() -> &'static str {
    // SAFETY: A NUL-terminated string that the kernel never changes.
    text(unsafe { CStr::from_char_ptr(shim::kapi_kernel_release()) })
}

/// The compiler of the kernel's Rust code, hence of this module: `rustc --version`.
pub(crate) fn rustc_version() -> &'static str {
    // SAFETY: A string literal.
    text(unsafe { CStr::from_char_ptr(shim::kapi_rustc_version()) })
}

/// The preemption model in force: `none`, `voluntary`, `full`, `lazy` or `rt`.
pub(crate) fn preempt_model() -> &'static str {
    // SAFETY: A string literal.
    text(unsafe { CStr::from_char_ptr(shim::kapi_preempt_model()) })
}

fn text(s: &'static CStr) -> &'static str {
    s.to_str().unwrap_or("unknown")
}
