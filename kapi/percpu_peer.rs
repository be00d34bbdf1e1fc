// SPDX-License-Identifier: GPL-2.0

//! The kernel's own per-CPU rwsem, to be measured and tested by the same code as ours.
//!
//! C header: [`include/linux/percpu-rwsem.h`](srctree/include/linux/percpu-rwsem.h). Its readers are
//! inline functions, which the compiler sees here as it does in C.

use super::shim;
use crate::rwlock::RawRwLock;
use kernel::{
    bindings,
    error::to_result,
    prelude::*,
    sync::LockClassKey,
    types::Opaque, //
};

/// `struct percpu_rw_semaphore`.
#[pin_data(PinnedDrop)]
pub(crate) struct PercpuRwSemaphore {
    #[pin]
    raw: Opaque<bindings::percpu_rw_semaphore>,
}

// SAFETY: A lock is there to be used from many tasks.
unsafe impl Send for PercpuRwSemaphore {}
// SAFETY: As above.
unsafe impl Sync for PercpuRwSemaphore {}

#[pinned_drop]
impl PinnedDrop for PercpuRwSemaphore {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Initialised, since the only constructor does it in place.
        unsafe { bindings::percpu_free_rwsem(self.raw.get()) };
    }
}

impl PercpuRwSemaphore {
    /// Takes it shared, sleeping if need be.
    #[inline(never)]
    pub(crate) fn down_read(&self) {
        // SAFETY: Initialised, since the only constructor does it in place.
        unsafe { shim::kapi_percpu_down_read(self.raw.get()) };
    }

    /// Takes it shared if that needs no sleep.
    #[inline(never)]
    pub(crate) fn down_read_trylock(&self) -> bool {
        // SAFETY: As in `down_read`.
        unsafe { shim::kapi_percpu_down_read_trylock(self.raw.get()) }
    }

    /// # Safety
    ///
    /// The calling task holds it shared.
    #[inline(never)]
    pub(crate) unsafe fn up_read(&self) {
        // SAFETY: By the contract.
        unsafe { shim::kapi_percpu_up_read(self.raw.get()) };
    }

    /// Takes it exclusively, sleeping if need be.
    #[inline(always)]
    pub(crate) fn down_write(&self) {
        // SAFETY: As in `down_read`.
        unsafe { bindings::percpu_down_write(self.raw.get()) };
    }

    /// # Safety
    ///
    /// The calling task holds it exclusively.
    #[inline(always)]
    pub(crate) unsafe fn up_write(&self) {
        // SAFETY: By the contract.
        unsafe { bindings::percpu_up_write(self.raw.get()) };
    }
}

// SAFETY: C's semaphore lets in one writer or any number of readers, and orders them.
unsafe impl RawRwLock for PercpuRwSemaphore {
    type ReadToken = ();

    fn init(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // SAFETY: `slot` is valid for writes; `name` and `key` live for ever.
            raw <- Opaque::try_ffi_init(|slot| to_result(unsafe {
                bindings::__percpu_init_rwsem(slot, name.as_char_ptr(), key.as_ptr())
            })),
        })
    }

    #[inline(always)]
    fn down_read(&self) {
        Self::down_read(self);
    }

    #[inline(always)]
    fn down_read_trylock(&self) -> Option<()> {
        Self::down_read_trylock(self).then_some(())
    }

    #[inline(always)]
    unsafe fn up_read(&self, _token: ()) {
        // SAFETY: By the contract.
        unsafe { Self::up_read(self) };
    }

    #[inline(always)]
    fn down_write(&self) {
        Self::down_write(self);
    }

    #[inline(always)]
    unsafe fn up_write(&self) {
        // SAFETY: By the contract.
        unsafe { Self::up_write(self) };
    }
}
