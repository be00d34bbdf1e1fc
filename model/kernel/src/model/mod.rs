// SPDX-License-Identifier: GPL-2.0

//! The model checkers behind the stand-ins. Not part of the kernel's interface.
//!
//! [`explore`] runs a program under loom: all interleavings with at most so many preemptions, and
//! all weak-memory outcomes of them. [`sample`] runs it under shuttle: random interleavings of
//! larger programs, sequentially consistent. Both run the program's threads in one thread of the
//! system, where this module keeps what belongs to a run.

mod data;
mod mutant;
mod run;
mod word;

pub use data::Data;
pub use mutant::{is_mutant, Weaken, Weakened};
pub use run::{cover, explore, limits, sample, Limits, Report};
pub use word::Word;

use std::{cell::Cell, sync::atomic::Ordering};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Checker {
    Loom,
    Shuttle,
}

thread_local! {
    static CHECKER: Cell<Option<Checker>> = const { Cell::new(None) };
    static TIME_PASSES: Cell<bool> = const { Cell::new(false) };
}

fn checker() -> Checker {
    CHECKER
        .get()
        .expect("a shared word is used outside of explore() and sample()")
}

/// A C11 fence.
pub fn fence(ordering: Ordering) {
    match checker() {
        Checker::Loom => loom::sync::atomic::fence(ordering),
        Checker::Shuttle => shuttle::sync::atomic::fence(ordering),
    }
}

/// The end of a turn of a spin loop.
pub fn relax() {
    match checker() {
        Checker::Loom if TIME_PASSES.take() => loom::thread::yield_for_time(),
        Checker::Loom => loom::thread::yield_now(),
        Checker::Shuttle => shuttle::thread::yield_now(),
    }
}

/// To be called by what ends a spin by itself, after so many turns: the next [`relax`] then does
/// not wait for another thread to change something.
pub fn time_passes() {
    TIME_PASSES.set(true);
}

/// A point where another thread may go on: for sections that are otherwise one step.
pub fn step() {
    if checker() == Checker::Shuttle {
        shuttle::thread::yield_now();
    }
}

/// One of 0 to `n - 1`: all of them are explored, or one is drawn.
pub fn choose(n: usize) -> usize {
    match checker() {
        Checker::Loom => loom::choose(n),
        Checker::Shuttle => shuttle::rand::Rng::gen_range(&mut shuttle::rand::thread_rng(), 0..n),
    }
}

/// The number of the running thread: 0 for the first, then in the order of their creation.
pub fn thread_index() -> usize {
    match checker() {
        Checker::Loom => loom::thread_index(),
        Checker::Shuttle => shuttle::current::me().into(),
    }
}

/// A thread to be joined.
pub enum JoinHandle {
    /// In loom.
    Loom(loom::thread::JoinHandle<()>),
    /// In shuttle.
    Shuttle(shuttle::thread::JoinHandle<()>),
}

impl JoinHandle {
    /// Waits for its end.
    pub fn join(self) {
        match self {
            JoinHandle::Loom(thread) => thread.join().expect("panics end the whole run"),
            JoinHandle::Shuttle(thread) => thread.join().expect("panics end the whole run"),
        }
    }
}

/// Starts a thread.
pub fn spawn(body: impl FnOnce() + Send + 'static) -> JoinHandle {
    match checker() {
        Checker::Loom => JoinHandle::Loom(loom::thread::spawn(body)),
        Checker::Shuttle => JoinHandle::Shuttle(shuttle::thread::spawn(body)),
    }
}
