// SPDX-License-Identifier: GPL-2.0

//! Waiting for something to become true, and waking tasks that nobody holds a reference to.
//!
//! C headers: [`include/linux/wait.h`](srctree/include/linux/wait.h),
//! [`include/linux/rcuwait.h`](srctree/include/linux/rcuwait.h).

use super::{
    preempt::PreemptDisabled,
    task::Task, //
};
use core::pin::Pin;
use kernel::{
    bindings,
    prelude::*,
    sync::LockClassKey,
    types::Opaque, //
};

/// The kernel's wait queue.
#[pin_data]
pub(crate) struct Event {
    #[pin]
    queue: Opaque<bindings::wait_queue_head>,
}

// SAFETY: A wait queue is there to be used from many tasks.
unsafe impl Send for Event {}
// SAFETY: As above.
unsafe impl Sync for Event {}

impl Event {
    /// Nobody waits. Lockdep knows the queue's lock by `name` and `key`.
    pub(crate) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self {
            // SAFETY: `slot` is valid for writes; `name` and `key` live for ever.
            queue <- Opaque::ffi_init(|slot| unsafe {
                bindings::__init_waitqueue_head(slot, name.as_char_ptr(), key.as_ptr())
            }),
        })
    }

    /// Sleeps until `reached`, which is asked at first and after each [`Event::wake_all`].
    pub(crate) fn wait_until(&self, reached: impl Fn() -> bool) {
        if reached() {
            return;
        }
        let entry = Opaque::<bindings::wait_queue_entry>::uninit();
        // SAFETY: The entry is initialised first; it is taken out of the queue before it goes.
        unsafe {
            bindings::init_wait_entry(entry.get(), 0);
            loop {
                // CAST: Task states are small positive numbers.
                bindings::prepare_to_wait_event(
                    self.queue.get(),
                    entry.get(),
                    bindings::TASK_UNINTERRUPTIBLE as c_int,
                );
                if reached() {
                    break;
                }
                bindings::schedule();
            }
            bindings::finish_wait(self.queue.get(), entry.get());
        }
    }

    /// Wakes all who wait, after the caller has made it true. For any context but NMI.
    pub(crate) fn wake_all(&self) {
        // SAFETY: Initialised, since the only constructor does it in place.
        unsafe {
            bindings::__wake_up(
                self.queue.get(),
                bindings::TASK_NORMAL,
                0,
                core::ptr::null_mut(),
            )
        };
    }
}

/// Wakes `task`.
///
/// # Safety
///
/// The task was seen in a word of a lock, which it clears before it can exit, since preemption went
/// off as `_pin` proves: RCU then keeps its structure.
pub(crate) unsafe fn wake_up(task: Task, _pin: &PreemptDisabled) {
    // SAFETY: The structure is there by the caller's contract.
    unsafe { bindings::wake_up_process(task.addr() as *mut bindings::task_struct) };
}
