// SPDX-License-Identifier: GPL-2.0

//! Tasks to wake once the wait lock is dropped: the module's protocol, with a vector for the chain
//! and the word of the task's node only saying whether it is in one.

use super::task::{
    Task,
    TaskRef, //
};
use kernel::sync::{
    atomic::{
        Full,
        Relaxed, //
    },
    barrier::{
        self,
        smp_mb, //
    }, //
};

/// A chain of tasks to wake, each once.
#[must_use = "dropping the chain wakes the tasks: do it where no lock is held"]
pub(crate) struct WakeQ(Vec<TaskRef>);

impl WakeQ {
    /// An empty chain.
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a task.
    #[track_caller]
    pub(crate) fn add(&mut self, task: TaskRef) {
        smp_mb(barrier::Full);
        if task.in_wake_q().cmpxchg(0, 1, Full).is_ok() {
            self.0.push(task);
        }
    }

    /// As [`WakeQ::add`], with a reference that is only taken when the task is in no chain yet.
    ///
    /// # Safety
    ///
    /// The task is alive.
    #[track_caller]
    pub(crate) unsafe fn add_alive(&mut self, task: Task) {
        // SAFETY: By the contract.
        self.add(unsafe { task.get() });
    }

    /// Whether no task is in the chain.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wakes all tasks of the chain.
    pub(crate) fn wake_all(self) {
        drop(self);
    }
}

impl Drop for WakeQ {
    fn drop(&mut self) {
        for task in self.0.drain(..) {
            task.in_wake_q().store(0, Relaxed);
            task.wake_up();
        }
    }
}
