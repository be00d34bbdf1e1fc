// SPDX-License-Identifier: GPL-2.0

//! Kernel threads that are always joined.
//!
//! C header: [`include/linux/kthread.h`](srctree/include/linux/kthread.h).

use core::ptr::NonNull;
use kernel::{
    bindings,
    error::from_err_ptr,
    prelude::*,
    sync::Arc, //
};

/// What a thread does.
pub(crate) trait Body: Send + Sync + 'static {
    /// Runs in the thread, once at most. The thread ends when this returns.
    fn run(&self);
}

/// How a thread is to run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Placement {
    /// The only CPU that it may run on; any when `None`.
    pub(crate) cpu: Option<u32>,
    /// `SCHED_FIFO` at the kernel's default priority, instead of `SCHED_NORMAL`.
    pub(crate) fifo: bool,
}

/// A kernel thread. Dropping it waits for the thread's end, without a time limit: the owner first
/// sees to it that the body returns. A leaked one leaks the body too, so that a thread which is
/// never joined keeps what it uses.
///
/// # Invariants
///
/// `task` is a thread of [`Kthread::create`] that nobody has stopped, and a reference to it is
/// held. The thread uses `body` only, which is not dropped before the thread's end.
pub(crate) struct Kthread<B: Body> {
    task: NonNull<bindings::task_struct>,
    /// Kept for the thread.
    _body: Arc<B>,
}

// SAFETY: A thread may be woken and joined from any other.
unsafe impl<B: Body> Send for Kthread<B> {}
// SAFETY: As above.
unsafe impl<B: Body> Sync for Kthread<B> {}

impl<B: Body> Kthread<B> {
    /// A thread called `name/index` that does not run before [`Kthread::wake`].
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EINTR` when the caller is being killed.
    pub(crate) fn create(
        name: &'static CStr,
        index: u32,
        placement: Placement,
        body: Arc<B>,
    ) -> Result<Self> {
        // SAFETY: `entry` gets the pointer that it asks for, see the type's invariants; the format
        // consumes a string and an unsigned number.
        let task = from_err_ptr(unsafe {
            bindings::kthread_create_on_node(
                Some(entry::<B>),
                core::ptr::from_ref::<B>(&body).cast_mut().cast(),
                bindings::NUMA_NO_NODE,
                c"%s/%u".as_char_ptr(),
                name.as_char_ptr(),
                index,
            )
        })?;
        let task = NonNull::new(task).ok_or(ENOMEM)?;
        // SAFETY: The task is new and not yet awake, as binding it asks for.
        unsafe {
            bindings::get_task_struct(task.as_ptr());
            if let Some(cpu) = placement.cpu {
                bindings::kthread_bind(task.as_ptr(), cpu);
            }
            if placement.fifo {
                bindings::sched_set_fifo(task.as_ptr());
            }
        }
        // INVARIANT: Just created, reference taken; `body` is stored beside.
        Ok(Self { task, _body: body })
    }

    /// Lets the thread run.
    pub(crate) fn wake(&self) {
        // SAFETY: We hold a reference.
        unsafe { bindings::wake_up_process(self.task.as_ptr()) };
    }
}

impl<B: Body> Drop for Kthread<B> {
    fn drop(&mut self) {
        // SAFETY: By the invariants not stopped before and referenced. A thread that was never
        // woken ends without running its body.
        unsafe {
            bindings::kthread_stop(self.task.as_ptr());
            bindings::put_task_struct(self.task.as_ptr());
        }
    }
}

/// Whether the owner of the running thread waits for its end. For threads of [`Kthread`] only.
pub(crate) fn should_stop() -> bool {
    // SAFETY: In a kthread, by the above.
    unsafe { bindings::kthread_should_stop() }
}

/// # Safety
///
/// `body` points to a `B` that lives until this returns.
unsafe extern "C" fn entry<B: Body>(body: *mut c_void) -> c_int {
    // SAFETY: By the contract.
    let body = unsafe { &*body.cast_const().cast::<B>() };
    body.run();
    0
}
