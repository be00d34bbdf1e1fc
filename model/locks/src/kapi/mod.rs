// SPDX-License-Identifier: GPL-2.0

//! Host stand-in for the module's `kapi`: the part that lock files use, with the same interface.
//!
//! A thread of the checker is a task on a CPU of its own. What depends on time or on the rest of
//! the system (a reschedule that comes due, an owner that loses its CPU) is an event: each task has
//! a [`task::Plan`] of those that may happen to it, and the checker explores when.

pub(crate) mod annotate;
pub(crate) mod cell;
pub(crate) mod check;
pub(crate) mod clock;
pub(crate) mod events;
pub(crate) mod percpu;
pub(crate) mod percpu_alloc;
pub(crate) mod preempt;
pub(crate) mod qspinlock;
pub(crate) mod raw_spinlock;
pub(crate) mod rcu;
pub(crate) mod stall;
pub(crate) mod task;
pub(crate) mod wait;
pub(crate) mod wake_q;
