// SPDX-License-Identifier: GPL-2.0

//! Reader-writer locks around data: the traits that every lock here implements, and the one data
//! lock with its guards.
//!
//! What [`kernel::sync::lock::Lock`] is to exclusive locks, [`Locked`] is to these. The traits are
//! split by what a lock can do: all have [`RawRwLock`], read-write semaphores also [`RawRwSem`].
//!
//! # A leaked guard
//!
//! Leaking a guard (`mem::forget`) is safe and leaves the lock held for good: a leaked read guard
//! shuts out writers, a leaked write guard everyone, and the lock must not be freed, since those
//! who wait on it would be left in freed memory. That cannot happen in safe code: who waits holds
//! a borrow of the lock.

use core::{
    cell::UnsafeCell,
    marker::PhantomPinned,
    mem::ManuallyDrop,
    ops::{
        Deref,
        DerefMut, //
    },
    pin::Pin, //
};
use kernel::{
    prelude::*,
    sync::LockClassKey,
    types::NotThreadSafe, //
};

/// Makes data under a free lock, with a lockdep class for each place in the source where it stands:
/// `new_locked!(data)` or `new_locked!(data, "name")`. An initialiser as [`Locked::new`] returns it;
/// which lock it is says the type of what is initialised.
#[macro_export]
macro_rules! new_locked {
    ($data:expr $(, $name:literal)? $(,)?) => {
        $crate::rwlock::Locked::new(
            $data,
            ::kernel::optional_name!($($name)?),
            ::kernel::static_lock_class!(),
        )
    };
}

/// A sleeping reader-writer lock without data.
///
/// # Safety
///
/// Between the return of a function that takes the lock for writing and the call that gives it
/// up, no other task holds it in any way; and what the one did before giving it up happens before
/// what the other does after taking it.
pub unsafe trait RawRwLock: Send + Sync {
    /// What a reader has to remember until it gives the lock up.
    type ReadToken;

    /// An initialiser of a free lock, known to lockdep by `name` and `key`.
    ///
    /// Fails with `ENOMEM` where the lock needs memory of its own.
    fn init(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error>
    where
        Self: Sized;

    /// Takes the lock for reading. Sleeps; process context only.
    fn down_read(&self) -> Self::ReadToken;

    /// Takes the lock for reading if that needs no wait. For any context but NMI.
    fn down_read_trylock(&self) -> Option<Self::ReadToken>;

    /// Gives up a lock held for reading.
    ///
    /// # Safety
    ///
    /// The caller holds the lock for reading, by the call that returned `token`.
    unsafe fn up_read(&self, token: Self::ReadToken);

    /// Takes the lock for writing. Sleeps; process context only.
    fn down_write(&self);

    /// Gives up a lock held for writing.
    ///
    /// # Safety
    ///
    /// The caller holds the lock for writing.
    unsafe fn up_write(&self);
}

/// What a read-write semaphore can do beyond [`RawRwLock`].
///
/// # Safety
///
/// As [`RawRwLock`], for the functions added here too.
pub unsafe trait RawRwSem: RawRwLock {
    /// Takes the lock for reading, or gives up with `EINTR` when a signal comes.
    fn down_read_interruptible(&self) -> Result<Self::ReadToken>;

    /// Takes the lock for reading, or gives up with `EINTR` when a fatal signal comes.
    fn down_read_killable(&self) -> Result<Self::ReadToken>;

    /// Takes the lock for writing, or gives up with `EINTR` when a fatal signal comes.
    fn down_write_killable(&self) -> Result;

    /// Takes the lock for writing if that needs no wait. For any context but NMI.
    fn down_write_trylock(&self) -> bool;

    /// Turns a lock held for writing into one held for reading, without letting a writer between.
    ///
    /// # Safety
    ///
    /// The caller holds the lock for writing; from here on it holds it for reading.
    unsafe fn downgrade_write(&self) -> Self::ReadToken;
}

/// Data under a reader-writer lock of type `R`: an [`RwSemaphore`](crate::rwsem::RwSemaphore), an
/// [`RwSemaphoreXadd`](crate::rwsem_xadd::RwSemaphoreXadd), or a
/// [`PercpuRwSemaphore`](crate::percpu_rwsem::PercpuRwSemaphore).
///
/// Pinned, since tasks that wait keep the lock's address. Made by [`new_locked!`](crate::new_locked).
///
/// Functions that take the lock sleep, and so are for process context; the `try_` forms do not, and are for
/// any context but NMI, as is giving the lock up by dropping a guard. A task must not take a lock that it
/// holds, not even for reading twice: a writer may have come between. Lockdep reports that.
#[pin_data]
pub struct Locked<T, R: RawRwLock> {
    #[pin]
    raw: R,
    #[pin]
    _pin: PhantomPinned,
    data: UnsafeCell<T>,
}

// SAFETY: The lock is `Send`; the data goes with it.
unsafe impl<T: Send, R: RawRwLock> Send for Locked<T, R> {}
// SAFETY: Readers share the data (`T: Sync`), a writer reaches it mutably from its own task
// (`T: Send`), never both, as `RawRwLock` promises.
unsafe impl<T: Send + Sync, R: RawRwLock> Sync for Locked<T, R> {}

impl<T, R: RawRwLock> Locked<T, R> {
    /// Data under a free lock, known to lockdep by `name` and `key`.
    ///
    /// # Errors
    ///
    /// Those of [`RawRwLock::init`]: `ENOMEM` for per-CPU semaphores, none for the others.
    pub fn new(
        data: T,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            raw <- R::init(name, key),
            _pin: PhantomPinned,
            data: UnsafeCell::new(data),
        })
    }

    /// Takes the lock for reading. Sleeps; no signal ends that.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, T, R> {
        ReadGuard::new(self, self.raw.down_read())
    }

    /// Takes the lock for reading if that needs no wait.
    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_, T, R>> {
        Some(ReadGuard::new(self, self.raw.down_read_trylock()?))
    }

    /// Takes the lock for writing. Sleeps; no signal ends that.
    #[inline]
    pub fn write(&self) -> WriteGuard<'_, T, R> {
        self.raw.down_write();
        WriteGuard::new(self)
    }
}

impl<T, R: RawRwSem> Locked<T, R> {
    /// Takes the lock for reading, unless a signal comes first. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINTR`, with the lock not taken, when a signal came.
    #[inline]
    pub fn read_interruptible(&self) -> Result<ReadGuard<'_, T, R>> {
        Ok(ReadGuard::new(self, self.raw.down_read_interruptible()?))
    }

    /// Takes the lock for reading, unless a fatal signal comes first. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINTR`, with the lock not taken, when a fatal signal came.
    #[inline]
    pub fn read_killable(&self) -> Result<ReadGuard<'_, T, R>> {
        Ok(ReadGuard::new(self, self.raw.down_read_killable()?))
    }

    /// Takes the lock for writing, unless a fatal signal comes first. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINTR`, with the lock not taken, when a fatal signal came.
    #[inline]
    pub fn write_killable(&self) -> Result<WriteGuard<'_, T, R>> {
        self.raw.down_write_killable()?;
        Ok(WriteGuard::new(self))
    }

    /// Takes the lock for writing if that needs no wait.
    #[inline]
    pub fn try_write(&self) -> Option<WriteGuard<'_, T, R>> {
        self.raw.down_write_trylock().then(|| WriteGuard::new(self))
    }
}

/// Shares the data until it is dropped. Leaked, it shuts out writers for good.
#[must_use = "the lock is given up at once when the guard is unused"]
pub struct ReadGuard<'a, T, R: RawRwLock> {
    lock: &'a Locked<T, R>,
    token: ManuallyDrop<R::ReadToken>,
    _not_send: NotThreadSafe,
}

impl<'a, T, R: RawRwLock> ReadGuard<'a, T, R> {
    /// Only with a lock that the caller has just taken for reading.
    #[inline]
    fn new(lock: &'a Locked<T, R>, token: R::ReadToken) -> Self {
        Self {
            lock,
            token: ManuallyDrop::new(token),
            _not_send: NotThreadSafe,
        }
    }
}

impl<T, R: RawRwLock> Deref for ReadGuard<'_, T, R> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: The guard holds the lock for reading: no writer has a reference.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T, R: RawRwLock> Drop for ReadGuard<'_, T, R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: The token is not used again. The guard holds the lock for reading by it.
        unsafe {
            let token = ManuallyDrop::take(&mut self.token);
            self.lock.raw.up_read(token);
        }
    }
}

/// Has the data to itself until it is dropped. Leaked, it shuts out everyone for good.
#[must_use = "the lock is given up at once when the guard is unused"]
pub struct WriteGuard<'a, T, R: RawRwLock> {
    lock: &'a Locked<T, R>,
    _not_send: NotThreadSafe,
}

impl<'a, T, R: RawRwLock> WriteGuard<'a, T, R> {
    /// Only with a lock that the caller has just taken for writing.
    #[inline]
    fn new(lock: &'a Locked<T, R>) -> Self {
        Self {
            lock,
            _not_send: NotThreadSafe,
        }
    }
}

impl<'a, T, R: RawRwSem> WriteGuard<'a, T, R> {
    /// Goes on as a reader, without letting a writer between.
    #[inline]
    pub fn downgrade(self) -> ReadGuard<'a, T, R> {
        let this = ManuallyDrop::new(self);
        // SAFETY: The guard holds the lock for writing, and gives it up in no other way.
        let token = unsafe { this.lock.raw.downgrade_write() };
        ReadGuard::new(this.lock, token)
    }
}

impl<T, R: RawRwLock> Deref for WriteGuard<'_, T, R> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: The guard holds the lock for writing: it alone has references.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T, R: RawRwLock> DerefMut for WriteGuard<'_, T, R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As in `deref`.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T, R: RawRwLock> Drop for WriteGuard<'_, T, R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: The guard holds the lock for writing.
        unsafe { self.lock.raw.up_write() };
    }
}
