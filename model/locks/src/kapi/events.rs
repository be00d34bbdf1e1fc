// SPDX-License-Identifier: GPL-2.0

//! Event counters: here they tell which paths a run has come by.

use core::marker::PhantomData;
use kernel::model::{self, Report};

/// The events of a kind of lock, numbered from 0 in the order of their names.
pub trait EventSet: Copy + 'static {
    /// The names.
    const NAMES: &'static [&'static str];

    /// The number of this event, below `NAMES.len()`.
    fn index(self) -> usize;
}

/// The events of one lock type.
pub struct Events<E> {
    set: &'static u8,
    _events: PhantomData<fn(E)>,
}

impl<E: EventSet> Events<E> {
    /// The set with the identity `set`.
    pub(crate) const fn new(set: &'static u8) -> Self {
        Self {
            set,
            _events: PhantomData,
        }
    }

    fn group(&self) -> usize {
        core::ptr::from_ref(self.set).addr()
    }

    /// Counts `event` once.
    pub(crate) fn inc(&self, event: E) {
        model::cover(self.group(), E::NAMES[event.index()]);
    }

    /// Counts `event` once if `happened`.
    pub(crate) fn inc_if(&self, event: E, happened: impl FnOnce() -> bool) {
        if happened() {
            self.inc(event);
        }
    }

    /// Counts `event` that many times at once.
    pub(crate) fn add(&self, event: E, times: u32) {
        if times != 0 {
            self.inc(event);
        }
    }

    /// Whether `event` happened in the run of `report`, or may have in what was cut off.
    pub(crate) fn happened(&self, event: E, report: &Report) -> bool {
        !report.complete || report.covers(self.group(), E::NAMES[event.index()])
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

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}
pub(crate) use event_set;

/// The [`Events`] of one lock type. A mutable static is one of its own, whatever it holds.
macro_rules! events {
    ($set:ty) => {{
        static SET: ::core::sync::atomic::AtomicU8 = ::core::sync::atomic::AtomicU8::new(0);
        // SAFETY: Only its address is used.
        $crate::kapi::events::Events::<$set>::new(unsafe { &*SET.as_ptr() })
    }};
}
pub(crate) use events;
