// SPDX-License-Identifier: GPL-2.0

//! The spinlock under sleeping locks: taken with interrupts off, never slept under.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h).

use super::shim;
use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    pin::Pin, //
};
use kernel::{
    bindings,
    prelude::*,
    sync::LockClassKey,
    types::NotThreadSafe, //
};

/// `raw_spinlock_t`: four bytes without debug options.
#[repr(transparent)]
pub(crate) struct RawSpinLock(UnsafeCell<MaybeUninit<bindings::raw_spinlock_t>>);

// SAFETY: A lock is there to be used from many tasks.
unsafe impl Send for RawSpinLock {}
// SAFETY: As above.
unsafe impl Sync for RawSpinLock {}

impl RawSpinLock {
    /// A free lock, known to lockdep by `name` and `key`.
    pub(crate) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        let init = move |slot: *mut Self| {
            // SAFETY: `slot` is valid for writes; `name` and `key` live for ever.
            unsafe { shim::kapi_raw_spin_lock_init(slot.cast(), name.as_char_ptr(), key.as_ptr()) };
            Ok(())
        };
        // SAFETY: The closure initialises the whole lock and cannot fail.
        unsafe { pin_init::pin_init_from_closure(init) }
    }

    fn as_ptr(&self) -> *mut bindings::raw_spinlock_t {
        self.0.get().cast()
    }

    /// Whether someone has the lock: a hint.
    pub(crate) fn is_locked(&self) -> bool {
        // SAFETY: Initialised, since the only constructor does it in place.
        unsafe { shim::kapi_raw_spin_is_locked(self.as_ptr()) }
    }

    /// Takes the lock and turns interrupts off. They must be on: for process context only.
    #[inline]
    pub(crate) fn lock_irq(&self) -> Guard<'_, Irq> {
        // SAFETY: Initialised, since the only constructor does it in place.
        unsafe { shim::kapi_raw_spin_lock_irq(self.as_ptr()) };
        Guard::new(self, Irq(()))
    }

    /// Takes the lock and turns interrupts off, whatever they were before.
    #[inline]
    pub(crate) fn lock_irqsave(&self) -> Guard<'_, IrqSave> {
        // SAFETY: As in `lock_irq`.
        let flags = unsafe { shim::kapi_raw_spin_lock_irqsave(self.as_ptr()) };
        Guard::new(self, IrqSave(flags))
    }

    /// Takes the lock if it is free, like [`RawSpinLock::lock_irqsave`].
    #[inline]
    pub(crate) fn try_lock_irqsave(&self) -> Option<Guard<'_, IrqSave>> {
        let mut flags = 0;
        // SAFETY: As in `lock_irq`; `flags` is valid for writes.
        let taken = unsafe { shim::kapi_raw_spin_trylock_irqsave(self.as_ptr(), &mut flags) };
        taken.then(|| Guard::new(self, IrqSave(flags)))
    }
}

/// What the guard's end does to interrupts.
pub(crate) trait Interrupts {
    /// # Safety
    ///
    /// `lock` is held by the caller, taken in the way of `Self`.
    unsafe fn unlock(&self, lock: *mut bindings::raw_spinlock_t);
}

/// Interrupts go on again.
pub(crate) struct Irq(());

impl Interrupts for Irq {
    #[inline]
    unsafe fn unlock(&self, lock: *mut bindings::raw_spinlock_t) {
        // SAFETY: Held by the caller's contract.
        unsafe { shim::kapi_raw_spin_unlock_irq(lock) };
    }
}

/// Interrupts go back to what they were.
pub(crate) struct IrqSave(usize);

impl Interrupts for IrqSave {
    #[inline]
    unsafe fn unlock(&self, lock: *mut bindings::raw_spinlock_t) {
        // SAFETY: Held by the caller's contract; the flags are those of its taking.
        unsafe { shim::kapi_raw_spin_unlock_irqrestore(lock, self.0) };
    }
}

/// The lock is held until this is dropped.
#[must_use = "the lock is dropped at once when the guard is unused"]
pub(crate) struct Guard<'a, I: Interrupts> {
    lock: &'a RawSpinLock,
    interrupts: I,
    _not_send: NotThreadSafe,
}

impl<'a, I: Interrupts> Guard<'a, I> {
    fn new(lock: &'a RawSpinLock, interrupts: I) -> Self {
        Self {
            lock,
            interrupts,
            _not_send: NotThreadSafe,
        }
    }
}

impl<I: Interrupts> Drop for Guard<'_, I> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: Held since `new`, in the way of `I`.
        unsafe { self.interrupts.unlock(self.lock.as_ptr()) };
    }
}
