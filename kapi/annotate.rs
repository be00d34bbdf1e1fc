// SPDX-License-Identifier: GPL-2.0

//! What debuggers and tracers are told around a lock's operations: lockdep, lock statistics,
//! tracepoints, sleeping in the wrong place.
//!
//! C headers: [`include/linux/lockdep.h`](srctree/include/linux/lockdep.h),
//! [`include/trace/events/lock.h`](srctree/include/trace/events/lock.h). The events are the
//! kernel's own, so `perf lock contention` sees these locks as it sees C's.

use super::shim;
use core::{
    cell::UnsafeCell,
    ffi::c_void,
    mem::MaybeUninit,
    pin::Pin, //
};
use kernel::{
    bindings,
    prelude::*,
    sync::LockClassKey, //
};

/// What lockdep calls a lock whose class belongs to this module, whoever initialises it.
///
/// Lockdep compares the addresses of names. A literal has one in each crate in which the initialiser is
/// instantiated, as its class has not; so this is kept in a static as that is.
macro_rules! lock_name {
    ($name:literal) => {{
        static NAME: &::kernel::prelude::CStr = $name;
        NAME
    }};
}
pub(crate) use lock_name;

/// How a lock is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Shared.
    Read,
    /// Exclusive.
    Write,
}

impl Mode {
    /// What the tracepoints call it.
    #[inline(always)]
    fn flag(self) -> u32 {
        match self {
            Self::Read => shim::KAPI_LCB_F_READ,
            Self::Write => shim::KAPI_LCB_F_WRITE,
        }
    }
}

/// Whether taking a lock may wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taking {
    /// It may, so it can be part of a deadlock.
    Waits,
    /// It does not.
    Tries,
}

/// The caller may sleep here: checked on debug kernels, a preemption point on some others.
#[track_caller]
#[inline(always)]
pub(crate) fn might_sleep() {
    kernel::task::might_sleep();
}

/// A lock as lockdep knows it. Nothing, of no size, on kernels without lockdep.
#[repr(transparent)]
pub(crate) struct DepMap(UnsafeCell<MaybeUninit<bindings::lockdep_map>>);

// SAFETY: Lockdep's functions bring their own synchronisation.
unsafe impl Send for DepMap {}
// SAFETY: As above.
unsafe impl Sync for DepMap {}

impl DepMap {
    /// A sleeping lock of the class `key`, called `name`.
    pub(crate) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        let init = move |slot: *mut Self| {
            // SAFETY: `slot` is valid for writes; `name` and `key` live for ever.
            unsafe { shim::kapi_lockdep_init(slot.cast(), name.as_char_ptr(), key.as_ptr()) };
            Ok(())
        };
        // SAFETY: The closure initialises the map, and cannot fail.
        unsafe { pin_init::pin_init_from_closure(init) }
    }

    #[inline(always)]
    fn as_ptr(&self) -> *mut bindings::lockdep_map {
        self.0.get().cast()
    }

    #[inline(always)]
    fn acquire(&self, mode: Mode, taking: Taking, subclass: u32) {
        let tries = taking == Taking::Tries;
        // SAFETY: Initialised, since the only constructor does it in place.
        unsafe {
            match mode {
                Mode::Read => shim::kapi_lockdep_acquire_read(self.as_ptr(), subclass, tries),
                Mode::Write => shim::kapi_lockdep_acquire(self.as_ptr(), subclass, tries),
            }
        }
    }

    #[inline(always)]
    fn release(&self) {
        // SAFETY: As in `acquire`.
        unsafe { shim::kapi_lockdep_release(self.as_ptr()) };
    }

    /// Takes the lock by `take`. What would deadlock is reported before it does.
    #[inline(always)]
    pub(crate) fn taking(
        &self,
        mode: Mode,
        taking: Taking,
        subclass: u32,
        take: impl FnOnce() -> Result,
    ) -> Result {
        self.acquire(mode, taking, subclass);
        let result = take();
        match result {
            // SAFETY: As in `acquire`.
            Ok(()) => unsafe { shim::kapi_lock_acquired(self.as_ptr()) },
            Err(_) => self.release(),
        }
        result
    }

    /// The lock was taken without waiting.
    #[inline(always)]
    pub(crate) fn taken_at_once(&self, mode: Mode) {
        self.acquire(mode, Taking::Tries, 0);
    }

    /// The lock is about to be given up.
    #[inline(always)]
    pub(crate) fn giving_up(&self) {
        self.release();
    }

    /// The lock, held for writing, is about to be held for reading.
    #[inline(always)]
    pub(crate) fn downgrading(&self) {
        // SAFETY: As in `acquire`.
        unsafe { shim::kapi_lockdep_downgrade(self.as_ptr()) };
    }

    /// Whether the kernel keeps lock statistics, for which taking a lock is tried first.
    pub(crate) const HAS_STATISTICS: bool = cfg!(CONFIG_LOCK_STAT);

    /// The lock that is being taken is not free.
    #[inline(always)]
    pub(crate) fn not_free(&self) {
        // SAFETY: As in `acquire`.
        unsafe { shim::kapi_lock_contended(self.as_ptr()) };
    }
}

fn address<L>(lock: &L) -> *mut c_void {
    core::ptr::from_ref(lock).cast_mut().cast()
}

/// Runs `wait`, in which the task waits for `lock`, between the events `contention_begin` and
/// `contention_end`. Nothing on kernels without tracepoints, two patched-out branches elsewhere.
#[inline(always)]
pub(crate) fn contended<L>(lock: &L, mode: Mode, wait: impl FnOnce() -> Result) -> Result {
    contended_as(lock, mode.flag(), wait)
}

/// As [`contended`], of a lock that counts its readers per CPU.
#[inline(always)]
pub(crate) fn contended_percpu<L>(lock: &L, mode: Mode, wait: impl FnOnce() -> Result) -> Result {
    contended_as(lock, shim::KAPI_LCB_F_PERCPU | mode.flag(), wait)
}

#[inline(always)]
fn contended_as<L>(lock: &L, flags: u32, wait: impl FnOnce() -> Result) -> Result {
    // SAFETY: The address is only recorded.
    unsafe { shim::kapi_trace_contention_begin(address(lock), flags) };
    let result = wait();
    let ret = result.as_ref().map_or_else(|e| e.to_errno(), |()| 0);
    // SAFETY: As above.
    unsafe { shim::kapi_trace_contention_end(address(lock), ret) };
    result
}

/// While it lives, the kernel's report on hung tasks names the owner of the lock for which the
/// running task waits. Nothing on kernels without `CONFIG_DETECT_HUNG_TASK_BLOCKER`.
#[must_use = "the report names nobody once this is dropped"]
pub(crate) struct Blocked(());

impl Blocked {
    /// The running task waits for `lock` without minding signals.
    ///
    /// # Safety
    ///
    /// `lock` begins with the words of a `struct rw_semaphore`: its count, and its owner, a task
    /// with flags in the two lowest bits. It lives as long as what is returned.
    #[inline(always)]
    pub(crate) unsafe fn on<L>(lock: &L, mode: Mode) -> Self {
        // SAFETY: The kernel looks at nothing else, by the contract, and takes the owner for a task
        // only if there is one of that address.
        unsafe { shim::kapi_hung_task_set_blocker(address(lock), mode == Mode::Write) };
        Self(())
    }
}

impl Drop for Blocked {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: Set by this task, of which there is one at a time.
        unsafe { shim::kapi_hung_task_clear_blocker() };
    }
}

/// `lock`, for which someone waits, is given up.
#[inline(always)]
pub(crate) fn contended_release<L>(lock: &L) {
    // SAFETY: The address is only recorded.
    unsafe { shim::kapi_trace_contended_release(address(lock)) };
}
