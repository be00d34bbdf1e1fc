// SPDX-License-Identifier: GPL-2.0

//! The kernel's own lockref, to be measured and tested by the same code as ours. Each method is one
//! call of the C function.
//!
//! C header: [`include/linux/lockref.h`](srctree/include/linux/lockref.h).

use super::shim;
use kernel::{
    bindings,
    prelude::*,
    sync::LockClassKey,
    types::Opaque, //
};

/// `struct lockref`.
#[pin_data]
pub(crate) struct CLockRef {
    #[pin]
    raw: Opaque<bindings::lockref>,
}

// SAFETY: A counter with a lock is there to be used from many tasks.
unsafe impl Send for CLockRef {}
// SAFETY: As above.
unsafe impl Sync for CLockRef {}

impl CLockRef {
    /// A free lock, known to lockdep by `name` and `key`, and a count of 1.
    pub(crate) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self {
            // SAFETY: `slot` is valid for writes; `name` and `key` live for ever.
            raw <- Opaque::ffi_init(|slot| unsafe {
                shim::kapi_lockref_init(slot, name.as_char_ptr(), key.as_ptr())
            }),
        })
    }

    #[inline(always)]
    pub(crate) fn get(&self) {
        // SAFETY: Initialised, since the only constructor does it in place.
        unsafe { bindings::lockref_get(self.raw.get()) };
    }

    #[inline(always)]
    pub(crate) fn get_not_zero(&self) -> bool {
        // SAFETY: As in `get`.
        unsafe { bindings::lockref_get_not_zero(self.raw.get()) }
    }

    #[inline(always)]
    pub(crate) fn get_not_dead(&self) -> bool {
        // SAFETY: As in `get`.
        unsafe { bindings::lockref_get_not_dead(self.raw.get()) }
    }

    #[inline(always)]
    pub(crate) fn put_return(&self) -> i32 {
        // SAFETY: As in `get`.
        unsafe { bindings::lockref_put_return(self.raw.get()) }
    }

    #[inline(always)]
    pub(crate) fn put_or_lock(&self) -> bool {
        // SAFETY: As in `get`.
        unsafe { bindings::lockref_put_or_lock(self.raw.get()) }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) {
        // SAFETY: As in `get`.
        unsafe { shim::kapi_lockref_lock(self.raw.get()) };
    }

    #[inline(always)]
    pub(crate) fn try_lock(&self) -> bool {
        // SAFETY: As in `get`.
        unsafe { shim::kapi_lockref_trylock(self.raw.get()) }
    }

    /// # Safety
    ///
    /// The calling task holds the lock.
    #[inline(always)]
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: By the contract.
        unsafe { shim::kapi_lockref_unlock(self.raw.get()) };
    }

    /// # Safety
    ///
    /// The calling task holds the lock.
    #[inline(always)]
    pub(crate) unsafe fn mark_dead(&self) {
        // SAFETY: By the contract.
        unsafe { bindings::lockref_mark_dead(self.raw.get()) };
    }

    /// The count; out of date at once unless the caller holds the lock.
    #[inline(always)]
    pub(crate) fn count(&self) -> i32 {
        // SAFETY: As in `get`.
        unsafe { shim::kapi_lockref_count(self.raw.get()) }
    }

    /// # Safety
    ///
    /// The calling task holds the lock.
    #[inline(always)]
    pub(crate) unsafe fn set_count(&self, count: i32) {
        // SAFETY: By the contract.
        unsafe { shim::kapi_lockref_set_count(self.raw.get(), count) };
    }
}
