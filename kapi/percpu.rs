// SPDX-License-Identifier: GPL-2.0

//! Static per-CPU data.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h). A module's static per-CPU
//! data is limited to 8 KiB.

use super::shim;

/// One `T` a CPU, each on cache lines of its own. Made by [`percpu_static!`](crate::kapi::percpu::percpu_static).
///
/// # Invariants
///
/// Lives in the section `.data..percpu`: its address is an offset, never looked at directly.
#[repr(C, align(64))]
pub(crate) struct PerCpu<T>(T);

impl<T: Sync> PerCpu<T> {
    /// # Safety
    ///
    /// Only for the initialiser of a static in `.data..percpu`.
    pub(crate) const unsafe fn in_section(value: T) -> Self {
        // INVARIANT: By the caller's contract.
        Self(value)
    }

    /// That of `cpu`, a number that [`PreemptDisabled::cpu`](super::preempt::PreemptDisabled::cpu) or
    /// [`possible_cpus`] gave.
    #[inline(always)]
    pub(crate) fn of(&'static self, cpu: u32) -> &'static T {
        // SAFETY: A per-CPU address by the invariant, and a possible CPU.
        unsafe { &*shim::kapi_per_cpu_ptr((&raw const self.0).cast_mut().cast(), cpu).cast::<T>() }
    }
}

/// The numbers of all CPUs that can ever run.
pub(crate) fn possible_cpus() -> impl Iterator<Item = u32> {
    (0..kernel::cpu::nr_cpu_ids()).filter(|&cpu| {
        // SAFETY: Reads a C bitmap that is constant after boot; `cpu` is below its size.
        unsafe {
            kernel::bindings::cpumask_test_cpu(
                cpu as i32,
                (&raw mut kernel::bindings::__cpu_possible_mask).cast(),
            )
        }
    })
}

/// Declares per-CPU statics.
macro_rules! percpu_static {
    ($($(#[$meta:meta])* $vis:vis static $name:ident: PerCpu<$t:ty> = $init:expr;)*) => {$(
        $(#[$meta])*
        #[link_section = ".data..percpu"]
        $vis static $name: $crate::kapi::percpu::PerCpu<$t> = {
            // SAFETY: The static is in that section.
            unsafe { $crate::kapi::percpu::PerCpu::in_section($init) }
        };
    )*};
}
pub(crate) use percpu_static;
