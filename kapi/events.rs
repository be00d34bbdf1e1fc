// SPDX-License-Identifier: GPL-2.0

//! Counters of what happens in slow paths, one set a lock type, kept per CPU.
//!
//! They count on kernels with `CONFIG_LOCK_EVENT_COUNTS`, as C's do
//! ([`kernel/locking/lock_events.h`](srctree/kernel/locking/lock_events.h)), and are empty code on
//! all others.

use super::percpu::{
    possible_cpus,
    PerCpu, //
};
use core::marker::PhantomData;
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// The most events that a set can have. Static per-CPU memory is scarce: 8 KiB a module.
pub(crate) const MAX: usize = 28;

const SLOTS: usize = if cfg!(CONFIG_LOCK_EVENT_COUNTS) {
    MAX
} else {
    0
};

/// One CPU's counters.
pub(crate) struct Counters([Atomic<u64>; SLOTS]);

impl Counters {
    pub(crate) const fn new() -> Self {
        Self([const { Atomic::new(0) }; SLOTS])
    }
}

/// The events of a kind of lock, numbered from 0 in the order of their names.
pub trait EventSet: Copy + 'static {
    /// The names, as debugfs shows them.
    const NAMES: &'static [&'static str];

    /// The number of this event, below `NAMES.len()`.
    fn index(self) -> usize;
}

/// The events of one lock type.
pub struct Events<E> {
    counters: &'static PerCpu<Counters>,
    _set: PhantomData<fn(E)>,
}

impl<E: EventSet> Events<E> {
    /// The set that counts in `counters`.
    pub(crate) const fn new(counters: &'static PerCpu<Counters>) -> Self {
        const { assert!(E::NAMES.len() <= MAX) };
        Self {
            counters,
            _set: PhantomData,
        }
    }

    /// Counts `event` once. For any context; nothing where the kernel does not count.
    #[inline(always)]
    pub(crate) fn inc(&self, event: E) {
        self.add(event, 1);
    }

    /// Counts `event` once if `happened`, which is asked only where the kernel counts.
    #[inline(always)]
    pub(crate) fn inc_if(&self, event: E, happened: impl FnOnce() -> bool) {
        if cfg!(CONFIG_LOCK_EVENT_COUNTS) && happened() {
            self.inc(event);
        }
    }

    /// Counts `event` that many times at once.
    #[inline(always)]
    pub(crate) fn add(&self, event: E, times: u32) {
        #[cfg(CONFIG_LOCK_EVENT_COUNTS)]
        self.counters.add(event.index(), times);
        #[cfg(not(CONFIG_LOCK_EVENT_COUNTS))]
        let _ = (event.index(), self.counters, times);
    }
}

#[cfg(CONFIG_LOCK_EVENT_COUNTS)]
impl PerCpu<Counters> {
    fn add(&'static self, index: usize, times: u32) {
        let offset = index.min(MAX - 1) * size_of::<Atomic<u64>>();
        let first = core::ptr::from_ref(self).cast_mut().cast::<u64>();
        // SAFETY: The counters start the per-CPU object, and the offset stays within them; one
        // instruction adds on whatever CPU it runs.
        unsafe { super::shim::kapi_this_cpu_add_u64(first.byte_add(offset), times.into()) };
    }
}

/// A set of events whose type does not matter: for those who read.
pub(crate) trait EventSource: Sync {
    /// The names in the order of their numbers.
    fn names(&self) -> &'static [&'static str];

    /// The sum over all CPUs of event `index`; 0 when there is no such event.
    fn read(&self, index: usize) -> u64;

    /// Sets all to 0. An event that happens meanwhile may be lost, as in C.
    fn reset(&self);
}

impl<E: EventSet> EventSource for Events<E> {
    fn names(&self) -> &'static [&'static str] {
        E::NAMES
    }

    fn read(&self, index: usize) -> u64 {
        possible_cpus()
            .filter_map(|cpu| self.counters.of(cpu).0.get(index))
            // Relaxed: a statistic, which orders nothing.
            .fold(0, |sum, c| sum.wrapping_add(c.load(Relaxed)))
    }

    fn reset(&self) {
        for cpu in possible_cpus() {
            for counter in &self.counters.of(cpu).0 {
                // Relaxed: as in `read`.
                counter.store(0, Relaxed);
            }
        }
    }
}

/// Declares the enum of an [`EventSet`] together with the names.
macro_rules! event_set {
    (
        $(#[$meta:meta])*
        $vis:vis enum $set:ident {
            $($(#[$emeta:meta])* $event:ident = $name:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        $vis enum $set {
            $($(#[$emeta])* $event,)*
        }

        impl $crate::kapi::events::EventSet for $set {
            const NAMES: &'static [&'static str] = &[$($name),*];

            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
        }
    };
}
pub(crate) use event_set;

/// The [`Events`] of one lock type, with counters of its own.
macro_rules! events {
    ($set:ty) => {{
        $crate::kapi::percpu::percpu_static! {
            static COUNTERS: PerCpu<$crate::kapi::events::Counters> =
                $crate::kapi::events::Counters::new();
        }
        $crate::kapi::events::Events::<$set>::new(&COUNTERS)
    }};
}
pub(crate) use events;
