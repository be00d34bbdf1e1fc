// SPDX-License-Identifier: GPL-2.0

//! A shared word of 64 bits.

use super::{checker, run, Checker};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::atomic::Ordering, //
};

thread_local! {
    /// The words of statics in the current execution, by address.
    static STATICS: RefCell<HashMap<usize, Rc<Word>>> = RefCell::default();
}

/// Forgets the statics' words: an execution begins.
pub(super) fn reset_statics() {
    STATICS.take();
}

/// A shared word.
pub enum Word {
    /// In loom.
    Loom(loom::sync::atomic::AtomicU64),
    /// In shuttle.
    Shuttle(Blocking),
}

/// A word of shuttle that threads can wait for without spinning.
pub struct Blocking {
    word: shuttle::sync::atomic::AtomicU64,
    changes: Cell<u64>,
    waiters: RefCell<Vec<shuttle::thread::Thread>>,
}

impl Blocking {
    fn changed<R>(&self, result: R) -> R {
        self.changes.set(self.changes.get() + 1);
        for waiter in self.waiters.take() {
            waiter.unpark();
        }
        result
    }
}

impl Word {
    /// A word of the current execution.
    #[track_caller]
    pub fn new(value: u64) -> Self {
        match checker() {
            Checker::Loom => Word::Loom(loom::sync::atomic::AtomicU64::new(value)),
            Checker::Shuttle => Self::new_shuttle(value),
        }
    }

    fn new_shuttle(value: u64) -> Self {
        Word::Shuttle(Blocking {
            word: shuttle::sync::atomic::AtomicU64::new(value),
            changes: Cell::new(0),
            waiters: RefCell::default(),
        })
    }

    /// Does `operation` on the word of the static at `address`, which begins with `init`.
    #[track_caller]
    pub fn of_static<R>(address: usize, init: u64, operation: impl FnOnce(&Word) -> R) -> R {
        let word = STATICS.with_borrow_mut(|words| {
            let word = words.entry(address).or_insert_with(|| {
                Rc::new(match checker() {
                    Checker::Loom => Word::Loom(loom::sync::atomic::AtomicU64::new_static(init)),
                    Checker::Shuttle => Self::new_shuttle(init),
                })
            });
            Rc::clone(word)
        });
        operation(&word)
    }

    #[track_caller]
    pub(crate) fn load(&self, ordering: Ordering) -> u64 {
        let value = match self {
            Word::Loom(word) => word.load(ordering),
            Word::Shuttle(b) => b.word.load(ordering),
        };
        run::trace(self, format_args!("load {value:x}"));
        value
    }

    #[track_caller]
    pub(crate) fn store(&self, value: u64, ordering: Ordering) {
        match self {
            Word::Loom(word) => word.store(value, ordering),
            Word::Shuttle(b) => {
                b.word.store(value, ordering);
                b.changed(())
            }
        }
        run::trace(self, format_args!("store {value:x}"));
    }

    #[track_caller]
    pub(crate) fn swap(&self, value: u64, ordering: Ordering) -> u64 {
        let before = match self {
            Word::Loom(word) => word.swap(value, ordering),
            Word::Shuttle(b) => b.changed(b.word.swap(value, ordering)),
        };
        run::trace(self, format_args!("xchg {before:x} -> {value:x}"));
        before
    }

    #[track_caller]
    pub(crate) fn fetch_add(&self, value: u64, ordering: Ordering) -> u64 {
        let before = match self {
            Word::Loom(word) => word.fetch_add(value, ordering),
            Word::Shuttle(b) => b.changed(b.word.fetch_add(value, ordering)),
        };
        run::trace(self, format_args!("add {before:x} + {value:x}"));
        before
    }

    #[track_caller]
    pub(crate) fn exchange_if(&self, old: u64, new: u64, ordering: Ordering) -> Result<u64, u64> {
        let failure = Ordering::Relaxed;
        let result = match self {
            Word::Loom(word) => word.compare_exchange(old, new, ordering, failure),
            Word::Shuttle(b) => {
                let result = b.word.compare_exchange(old, new, ordering, failure);
                result.map(|old| b.changed(old))
            }
        };
        run::trace(
            self,
            format_args!("cmpxchg {old:x} -> {new:x}: {result:x?}"),
        );
        result
    }

    /// Blocks until `step` makes something of it, and stores that; what it was. `now` is what it is
    /// taken for at first.
    #[track_caller]
    pub(crate) fn update_when(
        &self,
        mut now: u64,
        step: impl Fn(u64) -> Option<u64>,
        ordering: Ordering,
    ) -> u64 {
        loop {
            let changes = match self {
                Word::Loom(_) => 0,
                Word::Shuttle(b) => b.changes.get(),
            };
            // Looks by an RMW, also by one that fails: a wait right after it misses no store.
            let found = match step(now) {
                Some(new) => match self.exchange_if(now, new, ordering) {
                    Ok(before) => return before,
                    Err(found) => found,
                },
                None => match self.exchange_if(NEVER, NEVER, Ordering::Relaxed) {
                    Ok(found) | Err(found) => found,
                },
            };
            if step(found).is_some() {
                now = found;
                continue;
            }
            match self {
                Word::Loom(word) => word.wait_for_store(),
                Word::Shuttle(b) if b.changes.get() == changes => {
                    b.waiters.borrow_mut().push(shuttle::thread::current());
                    shuttle::thread::park();
                }
                Word::Shuttle(_) => {}
            }
        }
    }
}

/// A value that no word has.
const NEVER: u64 = 0x6e65_7665_7221_2121;
