// SPDX-License-Identifier: GPL-2.0

//! Tasks to wake once the wait lock is dropped.
//!
//! The kernel's own functions are not exported; this is their protocol on the same field,
//! `task_struct.wake_q`, so both may be at work on one task.
//!
//! C header: [`include/linux/sched/wake_q.h`](srctree/include/linux/sched/wake_q.h).

use super::{
    barrier,
    task::{
        Task,
        TaskRef, //
    }, //
};
use core::ptr;
use kernel::{
    bindings,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    },
};

/// End of a chain: not null, since null in a node says "in no chain".
const TAIL: *mut bindings::wake_q_node = ptr::without_provenance_mut(1);

/// A chain of tasks to wake, each once.
///
/// # Invariants
///
/// `first` starts a chain, linked through `task_struct.wake_q.next`, that ends with [`TAIL`]; the
/// chain owns a reference of each task in it; `last` is its last node or null when it is empty.
#[must_use = "dropping the chain wakes the tasks: do it where no lock is held"]
pub(crate) struct WakeQ {
    first: *mut bindings::wake_q_node,
    last: *mut bindings::wake_q_node,
}

/// The `next` word of a node.
///
/// # Safety
///
/// `node` belongs to a live task for as long as `'a`.
unsafe fn next<'a>(node: *mut bindings::wake_q_node) -> &'a Atomic<*mut bindings::wake_q_node> {
    // SAFETY: Valid by the caller's contract; both kernel and this file access it atomically.
    unsafe { Atomic::from_ptr(&raw mut (*node).next) }
}

impl WakeQ {
    /// An empty chain.
    pub(crate) fn new() -> Self {
        // INVARIANT: The empty chain.
        Self {
            first: TAIL,
            last: ptr::null_mut(),
        }
    }

    /// Whether no task is in the chain.
    pub(crate) fn is_empty(&self) -> bool {
        self.first == TAIL
    }

    /// Adds a task. When it is in some chain already, that one's wake-up serves for this as well:
    /// it comes after whatever the caller has stored before.
    pub(crate) fn add(&mut self, task: TaskRef) {
        // SAFETY: `task` is alive, it is a reference.
        if unsafe { self.link(task.as_ptr()) } {
            // INVARIANT: The chain takes over the reference.
            let _ = task.into_raw();
        }
    }

    /// As [`WakeQ::add`], with a reference that is only taken when the task is in no chain yet.
    ///
    /// # Safety
    ///
    /// The task is alive.
    pub(crate) unsafe fn add_alive(&mut self, task: Task) {
        // SAFETY: By the contract.
        unsafe {
            if self.link(task.as_ptr()) {
                // INVARIANT: The chain has a reference of its own, before anybody wakes the task.
                let _ = task.get().into_raw();
            }
        }
    }

    /// Makes the node of `task` the chain's new end: `false` when it is in some chain already.
    /// The caller adds a reference to go with it.
    ///
    /// # Safety
    ///
    /// The task is alive.
    unsafe fn link(&mut self, task: *mut bindings::task_struct) -> bool {
        // SAFETY: By the contract.
        let node = unsafe { &raw mut (*task).wake_q };
        // SAFETY: As above.
        let word = unsafe { next(node) };
        // ORDERING: Full, also when the exchange fails: the caller's stores (a grant) come before
        // the wake-up by whoever owns the node. Partner: the full barrier in `wake_up_process()`.
        barrier::before_atomic();
        if word.cmpxchg(ptr::null_mut(), TAIL, Full).is_err() {
            return false;
        }
        if self.last.is_null() {
            self.first = node;
        } else {
            // Relaxed: others only ask whether it is null, which does not change.
            // SAFETY: A node in the chain, whose task is referenced.
            unsafe { next(self.last) }.store(node, Relaxed);
        }
        self.last = node;
        true
    }

    /// Wakes all tasks of the chain.
    #[inline]
    pub(crate) fn wake_all(self) {
        drop(self);
    }

    #[cold]
    fn drain(&mut self) {
        while self.first != TAIL {
            let node = self.first;
            // SAFETY: A node in the chain is the `wake_q` field of a task, whose reference the
            // chain owns.
            unsafe {
                let task =
                    TaskRef::from_raw(kernel::container_of!(node, bindings::task_struct, wake_q));
                let word = next(node);
                // Relaxed: only this chain's owner writes it while it is in the chain.
                self.first = word.load(Relaxed);
                // Relaxed: the wake-up below is a full barrier, so that whoever finds the node
                // free has its own stores seen by the woken task or wakes it itself.
                word.store(ptr::null_mut(), Relaxed);
                bindings::wake_up_process(task.as_ptr());
            }
        }
        self.last = ptr::null_mut();
    }
}

impl Drop for WakeQ {
    #[inline]
    fn drop(&mut self) {
        if self.first != TAIL {
            self.drain();
        }
    }
}
