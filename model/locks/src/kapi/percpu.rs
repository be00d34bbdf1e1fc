// SPDX-License-Identifier: GPL-2.0

//! Static per-CPU data.

/// One CPU for each thread that loom can have.
pub(crate) const NR_CPUS: usize = 5;

/// One `T` a CPU.
pub(crate) struct PerCpu<T>([T; NR_CPUS]);

impl<T: Sync> PerCpu<T> {
    /// For [`percpu_static`].
    pub(crate) const fn new(slots: [T; NR_CPUS]) -> Self {
        Self(slots)
    }

    /// That of `cpu`.
    pub(crate) fn of(&'static self, cpu: u32) -> &'static T {
        &self.0[cpu as usize]
    }
}

/// Declares per-CPU statics.
macro_rules! percpu_static {
    ($($(#[$meta:meta])* $vis:vis static $name:ident: PerCpu<$t:ty> = $init:expr;)*) => {$(
        $(#[$meta])*
        $vis static $name: $crate::kapi::percpu::PerCpu<$t> =
            $crate::kapi::percpu::PerCpu::new([const { $init }; $crate::kapi::percpu::NR_CPUS]);
    )*};
}
pub(crate) use percpu_static;
