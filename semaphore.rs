// SPDX-License-Identifier: GPL-2.0

//! The entry points of both read-write semaphores: the protocol's operations, with what debuggers
//! are told around them.
//!
//! C counterpart: the second half of [`kernel/locking/rwsem.c`](srctree/kernel/locking/rwsem.c).
//!
//! A file of a semaphore has the protocol ([`Protocol`]); whatever is the same for all of them
//! stands here: lockdep's annotations, `might_sleep`, the forms for nesting and for locks that one
//! task takes and another gives up. All of that is empty on kernels without those options.
//!
//! The functions are not inlined: each lock has one copy of each, as in C, so that a module that
//! takes locks in many places does not carry the fast path in each.

use crate::{
    kapi::{
        annotate::{
            might_sleep,
            DepMap,
            Mode,
            Taking, //
        },
        task::Sleep, //
    },
    rwlock::{
        RawRwLock,
        RawRwSem, //
    }, //
};
use core::pin::Pin;
use kernel::{
    prelude::*,
    sync::LockClassKey, //
};

/// The operations of a read-write semaphore, without annotations.
///
/// # Safety
///
/// As [`RawRwLock`]: whoever has taken the lock for writing by one of these is alone until it
/// gives the lock up, with acquire and release.
pub unsafe trait Protocol: Send + Sync + Sized {
    /// A free lock.
    fn init(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error>;

    /// The lock as lockdep knows it.
    #[doc(hidden)]
    fn dep_map(&self) -> &DepMap;

    /// Takes the lock for reading. `EINTR` when a signal that `sleep` allows comes first.
    #[doc(hidden)]
    fn read_lock(&self, sleep: Sleep) -> Result;

    /// Takes the lock for reading if that needs no wait.
    fn try_read_lock(&self) -> bool;

    /// Gives up a lock held for reading, by whatever task.
    fn read_unlock(&self);

    /// Takes the lock for writing. `EINTR` when a signal that `sleep` allows comes first.
    #[doc(hidden)]
    fn write_lock(&self, sleep: Sleep) -> Result;

    /// Takes the lock for writing if that needs no wait.
    fn try_write_lock(&self) -> bool;

    /// Gives up a lock held for writing.
    fn write_unlock(&self);

    /// Turns a lock held for writing into one held for reading.
    fn downgrade(&self);
}

#[inline(always)]
fn down_read<L: Protocol>(lock: &L, sleep: Sleep, subclass: u32) -> Result {
    might_sleep();
    lock.dep_map()
        .taking(Mode::Read, Taking::Waits, subclass, || {
            lock.read_lock(sleep)
        })
}

#[inline(always)]
fn down_write<L: Protocol>(lock: &L, sleep: Sleep, subclass: u32) -> Result {
    might_sleep();
    lock.dep_map()
        .taking(Mode::Write, Taking::Waits, subclass, || {
            lock.write_lock(sleep)
        })
}

// SAFETY: Exclusion and ordering are `Protocol`'s promise.
unsafe impl<L: Protocol> RawRwLock for L {
    type ReadToken = ();

    fn init(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error> {
        <L as Protocol>::init(name, key)
    }

    #[inline(never)]
    fn down_read(&self) {
        // An uninterruptible wait has no failure.
        let _ = down_read(self, Sleep::Uninterruptible, 0);
    }

    #[inline(never)]
    fn down_read_trylock(&self) -> Option<()> {
        self.try_read_lock()
            .then(|| self.dep_map().taken_at_once(Mode::Read))
    }

    #[inline(never)]
    unsafe fn up_read(&self, _token: ()) {
        self.dep_map().giving_up();
        self.read_unlock();
    }

    #[inline(never)]
    fn down_write(&self) {
        // An uninterruptible wait has no failure.
        let _ = down_write(self, Sleep::Uninterruptible, 0);
    }

    #[inline(never)]
    unsafe fn up_write(&self) {
        self.dep_map().giving_up();
        self.write_unlock();
    }
}

// SAFETY: As above.
unsafe impl<L: Protocol> RawRwSem for L {
    #[inline(never)]
    fn down_read_interruptible(&self) -> Result {
        down_read(self, Sleep::Interruptible, 0)
    }

    #[inline(never)]
    fn down_read_killable(&self) -> Result {
        down_read(self, Sleep::Killable, 0)
    }

    #[inline(never)]
    fn down_write_killable(&self) -> Result {
        down_write(self, Sleep::Killable, 0)
    }

    #[inline(never)]
    fn down_write_trylock(&self) -> bool {
        let taken = self.try_write_lock();
        if taken {
            self.dep_map().taken_at_once(Mode::Write);
        }
        taken
    }

    #[inline(never)]
    unsafe fn downgrade_write(&self) {
        self.dep_map().downgrading();
        self.downgrade();
    }
}

/// The forms of taking a read-write semaphore that few need.
pub trait RareForms: RawRwSem {
    /// [`RawRwLock::down_read`] while another lock of the same class is held: `subclass` (0 to 7)
    /// tells lockdep the place in their order.
    fn down_read_nested(&self, subclass: u32);

    /// [`RawRwSem::down_read_killable`], nested as in [`RareForms::down_read_nested`].
    fn down_read_killable_nested(&self, subclass: u32) -> Result;

    /// [`RawRwLock::down_write`], nested as in [`RareForms::down_read_nested`].
    fn down_write_nested(&self, subclass: u32);

    /// [`RawRwSem::down_write_killable`], nested as in [`RareForms::down_read_nested`].
    fn down_write_killable_nested(&self, subclass: u32) -> Result;

    /// [`RawRwLock::down_read`] for a lock that another task will give up, by
    /// [`RareForms::up_read_non_owner`]. Lockdep, which thinks of owners, does not see it.
    fn down_read_non_owner(&self);

    /// Gives up a lock taken by [`RareForms::down_read_non_owner`], from any task.
    ///
    /// # Safety
    ///
    /// The lock was taken in that way and not given up since.
    unsafe fn up_read_non_owner(&self);
}

impl<L: Protocol> RareForms for L {
    #[inline(never)]
    fn down_read_nested(&self, subclass: u32) {
        // An uninterruptible wait has no failure.
        let _ = down_read(self, Sleep::Uninterruptible, subclass);
    }

    #[inline(never)]
    fn down_read_killable_nested(&self, subclass: u32) -> Result {
        down_read(self, Sleep::Killable, subclass)
    }

    #[inline(never)]
    fn down_write_nested(&self, subclass: u32) {
        // An uninterruptible wait has no failure.
        let _ = down_write(self, Sleep::Uninterruptible, subclass);
    }

    #[inline(never)]
    fn down_write_killable_nested(&self, subclass: u32) -> Result {
        down_write(self, Sleep::Killable, subclass)
    }

    #[inline(never)]
    fn down_read_non_owner(&self) {
        might_sleep();
        // An uninterruptible wait has no failure.
        let _ = self.read_lock(Sleep::Uninterruptible);
    }

    #[inline(never)]
    unsafe fn up_read_non_owner(&self) {
        self.read_unlock();
    }
}
