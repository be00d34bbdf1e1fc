// SPDX-License-Identifier: GPL-2.0

//! The kernel's own sleeping locks without their data and guards, to be measured and tested by the
//! same code as ours. Each method is one call of the C function.

use super::shim;
use kernel::{
    bindings,
    error::to_result,
    prelude::*,
    sync::LockClassKey,
    types::Opaque, //
};

/// `struct mutex`.
#[pin_data]
pub(crate) struct Mutex {
    #[pin]
    raw: Opaque<bindings::mutex>,
}

// SAFETY: A lock is there to be used from many tasks.
unsafe impl Send for Mutex {}
// SAFETY: As above.
unsafe impl Sync for Mutex {}

impl Mutex {
    /// A free mutex, known to lockdep by `name` and `key`.
    pub(crate) fn new(
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // SAFETY: `slot` is valid for writes; `name` and `key` live for ever.
            raw <- Opaque::ffi_init(|slot| unsafe {
                bindings::__mutex_init(slot, name.as_char_ptr(), key.as_ptr())
            }),
        })
    }

    /// The owner word: the address of a task, or 0, and flags.
    pub(crate) fn owner(&self) -> u64 {
        // SAFETY: As in `lock`; a word that only changes as a whole.
        unsafe {
            (&raw const (*self.raw.get()).owner)
                .cast::<u64>()
                .read_volatile()
        }
    }

    /// Takes the mutex, sleeping if need be.
    #[inline(always)]
    pub(crate) fn lock(&self) {
        // SAFETY: Initialised, since the only constructor does it in place.
        unsafe { bindings::mutex_lock(self.raw.get()) };
    }

    /// Takes the mutex if it is free.
    #[inline(always)]
    pub(crate) fn trylock(&self) -> bool {
        // SAFETY: As in `lock`.
        unsafe { bindings::mutex_trylock(self.raw.get()) != 0 }
    }

    /// # Safety
    ///
    /// The calling task has taken the mutex.
    #[inline(always)]
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: By the contract.
        unsafe { bindings::mutex_unlock(self.raw.get()) };
    }
}

/// `struct rw_semaphore`.
#[pin_data]
pub(crate) struct RwSemaphore {
    #[pin]
    raw: Opaque<bindings::rw_semaphore>,
}

// SAFETY: A lock is there to be used from many tasks.
unsafe impl Send for RwSemaphore {}
// SAFETY: As above.
unsafe impl Sync for RwSemaphore {}

impl RwSemaphore {
    /// A free semaphore, known to lockdep by `name` and `key`.
    pub(crate) fn new(
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // SAFETY: `slot` is valid for writes; `name` and `key` live for ever.
            raw <- Opaque::ffi_init(|slot| unsafe {
                bindings::__init_rwsem(slot, name.as_char_ptr(), key.as_ptr())
            }),
        })
    }

    /// Count and owner word, read one after the other.
    pub(crate) fn words(&self) -> (u64, u64) {
        let raw = self.raw.get();
        // SAFETY: As in `down_read`; words that only change as a whole.
        unsafe {
            (
                (&raw const (*raw).count).cast::<u64>().read_volatile(),
                (&raw const (*raw).owner).cast::<u64>().read_volatile(),
            )
        }
    }

    /// Whether its wait lock is taken: a hint.
    pub(crate) fn wait_lock_is_taken(&self) -> bool {
        // SAFETY: As in `down_read`; the word is only read.
        unsafe { shim::kapi_raw_spin_is_locked(&raw mut (*self.raw.get()).wait_lock) }
    }

    /// Takes it shared, sleeping if need be.
    #[inline(always)]
    pub(crate) fn down_read(&self) {
        // SAFETY: Initialised, since the only constructor does it in place.
        unsafe { bindings::down_read(self.raw.get()) };
    }

    /// Takes it shared if that needs no sleep.
    #[inline(always)]
    pub(crate) fn down_read_trylock(&self) -> bool {
        // SAFETY: As in `down_read`.
        unsafe { bindings::down_read_trylock(self.raw.get()) != 0 }
    }

    /// Takes it shared; `EINTR` on a signal.
    #[inline(always)]
    pub(crate) fn down_read_interruptible(&self) -> Result {
        // SAFETY: As in `down_read`.
        to_result(unsafe { bindings::down_read_interruptible(self.raw.get()) })
    }

    /// Takes it shared; `EINTR` on a fatal signal.
    #[inline(always)]
    pub(crate) fn down_read_killable(&self) -> Result {
        // SAFETY: As in `down_read`.
        to_result(unsafe { bindings::down_read_killable(self.raw.get()) })
    }

    /// # Safety
    ///
    /// The calling task holds it shared.
    #[inline(always)]
    pub(crate) unsafe fn up_read(&self) {
        // SAFETY: By the contract.
        unsafe { bindings::up_read(self.raw.get()) };
    }

    /// Takes it exclusively, sleeping if need be.
    #[inline(always)]
    pub(crate) fn down_write(&self) {
        // SAFETY: As in `down_read`.
        unsafe { bindings::down_write(self.raw.get()) };
    }

    /// Takes it exclusively if it is free.
    #[inline(always)]
    pub(crate) fn down_write_trylock(&self) -> bool {
        // SAFETY: As in `down_read`.
        unsafe { bindings::down_write_trylock(self.raw.get()) != 0 }
    }

    /// Takes it exclusively; `EINTR` on a fatal signal.
    #[inline(always)]
    pub(crate) fn down_write_killable(&self) -> Result {
        // SAFETY: As in `down_read`.
        to_result(unsafe { bindings::down_write_killable(self.raw.get()) })
    }

    /// # Safety
    ///
    /// The calling task holds it exclusively.
    #[inline(always)]
    pub(crate) unsafe fn up_write(&self) {
        // SAFETY: By the contract.
        unsafe { bindings::up_write(self.raw.get()) };
    }

    /// Turns an exclusive hold into a shared one.
    ///
    /// # Safety
    ///
    /// The calling task holds it exclusively.
    #[inline(always)]
    pub(crate) unsafe fn downgrade_write(&self) {
        // SAFETY: By the contract.
        unsafe { bindings::downgrade_write(self.raw.get()) };
    }
}
