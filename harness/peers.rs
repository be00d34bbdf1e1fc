// SPDX-License-Identifier: GPL-2.0

//! The kernel's own locks as locks under test.

use crate::{
    kapi::peers::{
        Mutex,
        RwSemaphore, //
    },
    rwlock::{
        RawRwLock,
        RawRwSem, //
    },
};
use kernel::{
    prelude::*,
    sync::LockClassKey, //
};

// SAFETY: Readers are exclusive too, so that no two tasks are ever inside; C's mutex orders them.
unsafe impl RawRwLock for Mutex {
    type ReadToken = ();

    fn init(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error> {
        Self::new(name, key)
    }

    #[inline(always)]
    fn down_read(&self) {
        self.lock();
    }

    #[inline(always)]
    fn down_read_trylock(&self) -> Option<()> {
        self.trylock().then_some(())
    }

    #[inline(always)]
    unsafe fn up_read(&self, _token: ()) {
        // SAFETY: Held by the caller's contract.
        unsafe { self.unlock() };
    }

    #[inline(always)]
    fn down_write(&self) {
        self.lock();
    }

    #[inline(always)]
    unsafe fn up_write(&self) {
        // SAFETY: Held by the caller's contract.
        unsafe { self.unlock() };
    }
}

// SAFETY: C's rwsem lets in one writer or any number of readers, and orders them.
unsafe impl RawRwLock for RwSemaphore {
    type ReadToken = ();

    fn init(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error> {
        Self::new(name, key)
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
        // SAFETY: Held by the caller's contract.
        unsafe { Self::up_read(self) };
    }

    #[inline(always)]
    fn down_write(&self) {
        Self::down_write(self);
    }

    #[inline(always)]
    unsafe fn up_write(&self) {
        // SAFETY: Held by the caller's contract.
        unsafe { Self::up_write(self) };
    }
}

// SAFETY: As above.
unsafe impl RawRwSem for RwSemaphore {
    #[inline(always)]
    fn down_read_interruptible(&self) -> Result {
        Self::down_read_interruptible(self)
    }

    #[inline(always)]
    fn down_read_killable(&self) -> Result {
        Self::down_read_killable(self)
    }

    #[inline(always)]
    fn down_write_killable(&self) -> Result {
        Self::down_write_killable(self)
    }

    #[inline(always)]
    fn down_write_trylock(&self) -> bool {
        Self::down_write_trylock(self)
    }

    #[inline(always)]
    unsafe fn downgrade_write(&self) {
        // SAFETY: Held by the caller's contract.
        unsafe { Self::downgrade_write(self) };
    }
}
