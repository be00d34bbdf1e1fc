// SPDX-License-Identifier: GPL-2.0

//! Grace periods, for tests that [have them](begin): the end of each waits, task by task, until the
//! task is seen outside of a read-side section.
//!
//! A section orders nothing by itself. What orders it is the look at the task's word: of a section
//! that it finds over it acquires all that was done there, and one that begins later acquires what
//! came before the look. Readers are those that have preemption off by
//! [`preempt::disable`](super::preempt::disable); that a spinlock keeps a grace period off as well is
//! left out, so that here one may end sooner.
//!
//! Callbacks run in a task of their own, the last one, whose body is [`serve`].

use super::task;
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Full,
    Relaxed,
    Release, //
};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc, //
};

/// What there is of RCU in an execution.
struct State {
    /// One a task: odd in a section.
    sections: Vec<Atomic<u32>>,
    /// How many callbacks were requested, and [`CLOSED`].
    requested: Atomic<u64>,
    /// How many have returned.
    returned: Atomic<u64>,
    callbacks: RefCell<VecDeque<Box<dyn FnOnce()>>>,
}

/// No more callbacks will be requested.
const CLOSED: u64 = 1 << 63;

thread_local! {
    static STATE: RefCell<Option<Rc<State>>> = const { RefCell::new(None) };
}

fn state() -> Option<Rc<State>> {
    STATE.with_borrow(Option::clone)
}

fn expect_state() -> Rc<State> {
    state().expect("the test has no RCU")
}

/// The execution that has begun has grace periods.
pub(crate) fn begin() {
    STATE.set(Some(Rc::new(State {
        sections: (0..task::count()).map(|_| Atomic::new(0)).collect(),
        requested: Atomic::new(0),
        returned: Atomic::new(0),
        callbacks: RefCell::default(),
    })));
}

/// The execution that begins has none, unless it says so.
pub(super) fn reset() {
    STATE.take();
}

/// A section of the running task begins.
#[track_caller]
pub(super) fn enter_section() {
    if let Some(state) = state() {
        // Acquire from the last look, see the module's documentation.
        state.sections[task::this().cpu() as usize].fetch_add(1, Acquire);
    }
}

/// It ends.
#[track_caller]
pub(super) fn leave_section() {
    if let Some(state) = state() {
        // Release to the next look.
        state.sections[task::this().cpu() as usize].fetch_add(1, Release);
    }
}

/// Waits for a grace period.
#[track_caller]
pub(crate) fn synchronize() {
    task::this().assert_may_sleep();
    let state = expect_state();
    let me = task::this().cpu() as usize;
    for (number, section) in state.sections.iter().enumerate() {
        if number != me {
            let outside = |count: u32| (count % 2 == 0).then_some(count);
            section.update_blocking(0, outside, Full);
        }
    }
}

/// As [`synchronize`].
#[track_caller]
pub(crate) fn synchronize_expedited() {
    synchronize();
}

/// Waits until all callbacks requested so far have returned.
#[track_caller]
pub(crate) fn barrier() {
    task::this().assert_may_sleep();
    let state = expect_state();
    let requested = state.requested.fetch_add(0, Relaxed);
    let enough = |returned: u64| (returned >= requested).then_some(returned);
    state.returned.update_blocking(requested, enough, Acquire);
}

/// Runs callbacks, each after a grace period, until [`close`].
pub(crate) fn serve() {
    let state = expect_state();
    let mut returned = 0;
    loop {
        let any = |requested: u64| (requested != returned).then_some(requested);
        let requested = state.requested.update_blocking(returned, any, Acquire);
        let count = (requested & !CLOSED) - returned;
        if count == 0 {
            return;
        }
        synchronize();
        task::this().enter_atomic();
        for _ in 0..count {
            let callback = state.callbacks.borrow_mut().pop_front();
            callback.expect("as many as were requested")();
            returned += 1;
        }
        task::this().leave_atomic();
        state.returned.fetch_add(count, Release);
    }
}

/// Lets [`serve`] return when all callbacks have run, also those that callbacks request.
pub(crate) fn close() {
    expect_state().requested.fetch_add(CLOSED, Release);
}

/// What RCU keeps of a requested callback.
pub(crate) struct Head {
    pending: Cell<bool>,
}

// SAFETY: The checkers run their threads in one thread of the system.
unsafe impl Send for Head {}
// SAFETY: As above.
unsafe impl Sync for Head {}

impl Head {
    /// No callback requested.
    pub(crate) const fn new() -> Self {
        Self {
            pending: Cell::new(false),
        }
    }
}

/// An object that can ask to be called after a grace period.
///
/// # Safety
///
/// As in the module.
pub(crate) unsafe trait Callback: Sync {
    /// Where the head is.
    const HEAD: usize;

    /// Runs after the grace period.
    fn grace_period_over(&self);
}

/// Asks RCU to call `object` after a grace period.
///
/// # Safety
///
/// As in the module; that an earlier request is pending is reported.
#[track_caller]
pub(crate) unsafe fn call_hurry<T: Callback + 'static>(object: &T) {
    let object = core::ptr::from_ref(object);
    // SAFETY: By the trait's contract.
    let pending = unsafe { &(*object.byte_add(T::HEAD).cast::<Head>()).pending };
    assert!(!pending.replace(true), "a callback is requested twice");
    let state = expect_state();
    state.callbacks.borrow_mut().push_back(Box::new(move || {
        // SAFETY: Still there by the contract.
        let object = unsafe { &*object };
        // SAFETY: As above.
        unsafe { &(*core::ptr::from_ref(object).byte_add(T::HEAD).cast::<Head>()).pending }
            .set(false);
        object.grace_period_over();
    }));
    state.requested.fetch_add(1, Release);
}

/// What a reader of RCU holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// `rcu_read_lock()`.
    Rcu,
    /// Preemption or interrupts off.
    Sched,
    /// Bottom halves off.
    Bh,
    /// Any of these.
    Any,
}

/// Reports callers that are no readers: here all have preemption off.
#[track_caller]
pub(crate) fn assert_reader(_: Reader) {
    assert!(task::this().is_atomic(), "asks outside of a section");
}
