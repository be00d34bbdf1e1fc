// SPDX-License-Identifier: GPL-2.0

//! What the locks have to show.

mod checker;
mod lockref;
mod osq;
mod owner;
mod percpu_rwsem;
mod rcu_sync;
mod rwsem;
mod source;

use core::pin::Pin;
use kernel::{
    model::{self, Data},
    prelude::*,
};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// What `init` makes, in a box.
fn pinned<T, E: core::fmt::Debug>(init: impl PinInit<T, E>) -> Pin<Box<T>> {
    let mut memory = Box::<T>::new_uninit();
    // SAFETY: The box is valid for writes, and never moves what it holds.
    let done = unsafe { init.__init(memory.as_mut_ptr()) };
    done.expect("there is memory");
    // SAFETY: It was just initialised.
    Box::into_pin(unsafe { memory.assume_init() })
}

/// What a lock protects: plain memory whose races the checker reports, and counts, no part of the
/// model, of who is inside.
struct Section {
    readers: AtomicU32,
    excluders: AtomicU32,
    writers: AtomicU32,
    data: Data<u32>,
}

impl Section {
    #[track_caller]
    fn new() -> Self {
        Self {
            readers: AtomicU32::new(0),
            excluders: AtomicU32::new(0),
            writers: AtomicU32::new(0),
            data: Data::new(0),
        }
    }

    /// Adds one, alone.
    #[track_caller]
    fn write(&self) {
        assert_eq!(self.writers.fetch_add(1, SeqCst), 0, "two writers inside");
        assert_eq!(self.readers.load(SeqCst), 0, "a writer inside with readers");
        assert_eq!(
            self.excluders.load(SeqCst),
            0,
            "a writer inside with excluders"
        );
        let value = self.data.get();
        model::step();
        self.data.set(value + 1);
        assert_eq!(
            self.readers.load(SeqCst),
            0,
            "a reader inside with a writer"
        );
        self.writers.fetch_sub(1, SeqCst);
    }

    /// Looks at it, among readers.
    #[track_caller]
    fn read(&self) -> u32 {
        self.readers.fetch_add(1, SeqCst);
        assert_eq!(
            self.excluders.load(SeqCst),
            0,
            "a reader inside with an excluder"
        );
        assert_eq!(
            self.writers.load(SeqCst),
            0,
            "a reader inside with a writer"
        );
        let value = self.data.get();
        model::step();
        assert_eq!(self.data.get(), value, "it changed under a reader");
        assert_eq!(
            self.writers.load(SeqCst),
            0,
            "a writer inside with a reader"
        );
        self.readers.fetch_sub(1, SeqCst);
        value
    }

    /// Keeps readers and writers out, but not others that do the same.
    #[track_caller]
    fn exclude(&self) {
        self.excluders.fetch_add(1, SeqCst);
        assert_eq!(self.writers.load(SeqCst), 0, "an excluder beside a writer");
        assert_eq!(self.readers.load(SeqCst), 0, "an excluder beside a reader");
        self.data.get();
        model::step();
        assert_eq!(self.readers.load(SeqCst), 0, "a reader beside an excluder");
        self.excluders.fetch_sub(1, SeqCst);
    }
}
