// SPDX-License-Identifier: GPL-2.0

//! Tasks to wake once the wait lock is dropped.
//!
//! The kernel's own functions are not exported; this is their protocol on the same field,
//! `task_struct.wake_q`, so both may be at work on one task.
//!
//! C header: [`include/linux/sched/wake_q.h`](srctree/include/linux/sched/wake_q.h).

use super::task::TaskRef;
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

    /// Adds a task. When it is in some chain already, that one's wake-up serves for this as well:
    /// it comes after whatever the caller has stored before.
    pub(crate) fn add(&mut self, task: TaskRef) {
        // SAFETY: `task` is alive, it is a reference.
        let node = unsafe { &raw mut (*task.as_ptr()).wake_q };
        // SAFETY: As above.
        let word = unsafe { next(node) };
        // ORDERING: Full, also when it fails: the caller's stores (a grant) come before the
        // wake-up by whoever owns the node. Partner: the full barrier in `wake_up_process()`.
        kernel::sync::barrier::smp_mb(kernel::sync::barrier::Full);
        if word.cmpxchg(ptr::null_mut(), TAIL, Full).is_err() {
            return;
        }
        // INVARIANT: The chain takes over the reference, and the node is its new end.
        let _ = task.into_raw();
        if self.last.is_null() {
            self.first = node;
        } else {
            // Relaxed: others only ask whether it is null, which does not change.
            // SAFETY: A node in the chain, whose task is referenced.
            unsafe { next(self.last) }.store(node, Relaxed);
        }
        self.last = node;
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
