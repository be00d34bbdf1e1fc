// SPDX-License-Identifier: GPL-2.0

//! Waiting for something to become true, and waking tasks that nobody holds a reference to.

use super::{
    preempt::PreemptDisabled,
    raw_spinlock::RawSpinLock,
    task::{
        self,
        Sleep,
        Task, //
    }, //
};
use core::pin::Pin;
use kernel::{
    prelude::*,
    sync::LockClassKey, //
};
use std::cell::RefCell;

/// A wait queue.
#[pin_data]
pub(crate) struct Event {
    #[pin]
    lock: RawSpinLock,
    waiters: RefCell<Vec<Task>>,
}

// SAFETY: The checkers run their threads in one thread of the system.
unsafe impl Send for Event {}
// SAFETY: As above.
unsafe impl Sync for Event {}

impl Event {
    /// Nobody waits.
    pub(crate) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self {
            lock <- RawSpinLock::new(name, key),
            waiters: RefCell::default(),
        })
    }

    /// Sleeps until `reached`, which is asked at first and after each [`Event::wake_all`].
    #[track_caller]
    pub(crate) fn wait_until(&self, reached: impl Fn() -> bool) {
        if reached() {
            return;
        }
        let me = Task::current();
        loop {
            {
                let _locked = self.lock.lock_irqsave();
                let mut waiters = self.waiters.borrow_mut();
                if !waiters.contains(&me) {
                    waiters.push(me);
                }
                drop(waiters);
                Sleep::Uninterruptible.prepare();
            }
            if reached() {
                break;
            }
            task::schedule();
        }
        task::set_running();
        let _locked = self.lock.lock_irqsave();
        self.waiters.borrow_mut().retain(|waiter| *waiter != me);
    }

    /// Wakes all who wait.
    #[track_caller]
    pub(crate) fn wake_all(&self) {
        let _locked = self.lock.lock_irqsave();
        for waiter in self.waiters.take() {
            waiter.wake_up();
        }
    }
}

/// Wakes `task`.
///
/// # Safety
///
/// As in the module.
#[track_caller]
pub(crate) unsafe fn wake_up(task: Task, _pin: &PreemptDisabled) {
    task.wake_up();
}
