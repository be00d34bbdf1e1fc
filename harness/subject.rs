// SPDX-License-Identifier: GPL-2.0

//! A lock under test, of whatever type.
//!
//! Workers see [`Subject`], whose operations return guards. Behind it stands one adapter for each
//! capability of a lock; each of its methods is one call into the lock, which the compiler makes a
//! jump, so that a lock in C and one in Rust are reached alike: through one indirect call.

use super::dump::{
    self,
    Inspect,
    Standing, //
};
use crate::{
    kapi::debugfs::Text,
    rwlock::{
        RawRwLock,
        RawRwSem, //
    }, //
};
use core::mem::ManuallyDrop;
use kernel::{
    prelude::*,
    sync::{
        Arc,
        LockClassKey, //
    },
    types::NotThreadSafe, //
};

/// The lock's name and class for lockdep.
pub(super) type Class = (&'static CStr, Pin<&'static LockClassKey>);

/// A lock that workers can share.
pub(super) struct Subject {
    lock: Arc<dyn TestLock>,
}

impl Drop for Subject {
    fn drop(&mut self) {
        dump::unlist(&self.lock);
    }
}

impl Subject {
    /// A new lock of type `R`, which can only be taken and given up.
    pub(super) fn plain<R: RawRwLock<ReadToken = ()> + Inspect + 'static>(
        (name, key): Class,
    ) -> Result<Self> {
        let lock = Arc::pin_init(
            try_pin_init!(Plain {
                lock <- R::init(name, key),
            }),
            GFP_KERNEL,
        )?;
        Ok(Self { lock })
    }

    /// A new lock of type `R` with all that a read-write semaphore can do.
    pub(super) fn semaphore<R: RawRwSem<ReadToken = ()> + Inspect + 'static>(
        (name, key): Class,
    ) -> Result<Self> {
        let lock = Arc::pin_init(
            try_pin_init!(Semaphore {
                lock <- R::init(name, key),
            }),
            GFP_KERNEL,
        )?;
        Ok(Self { lock })
    }

    /// Nothing that locks, for tests of the checks themselves.
    pub(super) fn busted() -> Result<Self> {
        Ok(Self {
            lock: Arc::new(Busted, GFP_KERNEL)?,
        })
    }

    /// The same, to be found by `dump/<name>` until it is dropped.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn listed(self, name: &'static str) -> Result<Self> {
        dump::list(name, &self.lock)?;
        Ok(self)
    }

    /// Who has the lock and how many sleep for it, at one moment. `None` when that cannot be told: now,
    /// since a task changes the queue, or at all for this type of lock.
    pub(super) fn standing(&self) -> Option<Standing> {
        self.lock.standing()
    }

    /// Whether the lock under its queue is taken: a hint. `None` where there is none to look at.
    pub(super) fn wait_lock_is_taken(&self) -> Option<bool> {
        self.lock.wait_lock_is_taken()
    }

    /// Takes the lock for reading.
    #[inline(always)]
    pub(super) fn read(&self) -> ReadHold<'_> {
        self.lock.read();
        ReadHold::new(&*self.lock)
    }

    /// Takes the lock for reading if that needs no wait.
    pub(super) fn try_read(&self) -> Option<ReadHold<'_>> {
        self.lock.try_read().then(|| ReadHold::new(&*self.lock))
    }

    /// Takes the lock for writing.
    #[inline(always)]
    pub(super) fn write(&self) -> WriteHold<'_> {
        self.lock.write();
        WriteHold::new(&*self.lock)
    }

    /// What it can do beyond that, if it is a read-write semaphore.
    #[inline]
    pub(super) fn ops(&self) -> Option<SemaphoreOps<'_>> {
        self.lock.semaphore().map(|sem| SemaphoreOps {
            lock: &*self.lock,
            sem,
        })
    }

    /// Tries each operation that does not wait on a lock that no one else uses any more.
    ///
    /// # Errors
    ///
    /// What went wrong: the lock was not left free, or an operation does not do what it should.
    pub(super) fn check_at_rest(&self) -> Result<(), &'static str> {
        if self.standing().is_some_and(|now| now != Standing::AT_REST) {
            return Err("not at rest: its words say that someone uses it");
        }
        // Blocking operations come after a trylock that shows that they need not wait.
        drop(
            self.try_read()
                .ok_or("not free at rest: refuses a reader")?,
        );
        let Some(sem) = self.ops() else {
            return Ok(());
        };
        let writer = sem
            .try_write()
            .ok_or("not free at rest: refuses a writer")?;
        if self.try_read().is_some() || sem.try_write().is_some() {
            return Err("lets others in while written");
        }
        let reader = sem.downgrade(writer);
        drop(self.try_read().ok_or("refuses a reader after downgrade")?);
        if sem.try_write().is_some() {
            return Err("lets a writer in while read");
        }
        drop(reader);
        // One after the other: a task that reads twice could deadlock with a writer between.
        for read in [
            SemaphoreOps::read_interruptible,
            SemaphoreOps::read_killable,
        ] {
            drop(read(&sem).map_err(|_| "fails to read without a signal")?);
        }
        drop(
            sem.write_killable()
                .map_err(|_| "fails to write without a signal")?,
        );
        Ok(())
    }
}

/// What read-write semaphores can do beyond what all locks can.
pub(super) struct SemaphoreOps<'a> {
    lock: &'a dyn TestLock,
    sem: &'a dyn TestSemaphore,
}

impl<'a> SemaphoreOps<'a> {
    /// Takes the lock for writing if that needs no wait.
    pub(super) fn try_write(&self) -> Option<WriteHold<'a>> {
        self.sem.try_write().then(|| WriteHold::new(self.lock))
    }

    /// Takes the lock for reading; `EINTR` when a signal comes first.
    pub(super) fn read_interruptible(&self) -> Result<ReadHold<'a>> {
        self.sem.read_interruptible()?;
        Ok(ReadHold::new(self.lock))
    }

    /// Takes the lock for reading; `EINTR` when a fatal signal comes first.
    pub(super) fn read_killable(&self) -> Result<ReadHold<'a>> {
        self.sem.read_killable()?;
        Ok(ReadHold::new(self.lock))
    }

    /// Takes the lock for writing; `EINTR` when a fatal signal comes first.
    pub(super) fn write_killable(&self) -> Result<WriteHold<'a>> {
        self.sem.write_killable()?;
        Ok(WriteHold::new(self.lock))
    }

    /// Goes on as a reader; `hold` is of this lock.
    pub(super) fn downgrade(&self, hold: WriteHold<'a>) -> ReadHold<'a> {
        let hold = ManuallyDrop::new(hold);
        // SAFETY: Held for writing since it was made, and not given up otherwise.
        unsafe { self.sem.downgrade() };
        ReadHold::new(hold.lock)
    }
}

/// Held for reading until dropped.
#[must_use = "the lock is given up at once when this is unused"]
pub(super) struct ReadHold<'a> {
    lock: &'a dyn TestLock,
    _not_send: NotThreadSafe,
}

impl<'a> ReadHold<'a> {
    /// Only for a `lock` that the caller has just taken for reading.
    #[inline(always)]
    fn new(lock: &'a dyn TestLock) -> Self {
        Self {
            lock,
            _not_send: NotThreadSafe,
        }
    }
}

impl Drop for ReadHold<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: Held for reading since `new`.
        unsafe { self.lock.read_unlock() };
    }
}

/// Held for writing until dropped.
#[must_use = "the lock is given up at once when this is unused"]
pub(super) struct WriteHold<'a> {
    lock: &'a dyn TestLock,
    _not_send: NotThreadSafe,
}

impl<'a> WriteHold<'a> {
    /// Only for a `lock` that the caller has just taken for writing.
    #[inline(always)]
    fn new(lock: &'a dyn TestLock) -> Self {
        Self {
            lock,
            _not_send: NotThreadSafe,
        }
    }
}

impl Drop for WriteHold<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: Held for writing since `new`.
        unsafe { self.lock.write_unlock() };
    }
}

/// What every lock under test can do.
pub(super) trait TestLock: Inspect + Send + Sync {
    fn read(&self);
    fn try_read(&self) -> bool;
    /// # Safety
    ///
    /// The calling task holds the lock for reading.
    unsafe fn read_unlock(&self);
    fn write(&self);
    /// # Safety
    ///
    /// The calling task holds the lock for writing.
    unsafe fn write_unlock(&self);

    /// What it can do beyond that, if it is a read-write semaphore.
    fn semaphore(&self) -> Option<&dyn TestSemaphore> {
        None
    }
}

/// What read-write semaphores can do beyond [`TestLock`].
pub(super) trait TestSemaphore {
    fn try_write(&self) -> bool;
    fn read_interruptible(&self) -> Result;
    fn read_killable(&self) -> Result;
    fn write_killable(&self) -> Result;
    /// # Safety
    ///
    /// The calling task holds the lock for writing; it goes on as a reader.
    unsafe fn downgrade(&self);
}

/// A [`RawRwLock`], on cache lines that it shares with nothing.
#[pin_data]
#[repr(align(64))]
struct Plain<R> {
    #[pin]
    lock: R,
}

impl<R: Inspect> Inspect for Plain<R> {
    fn dump(&self, out: &mut Text) -> Result {
        self.lock.dump(out)
    }

    fn standing(&self) -> Option<Standing> {
        self.lock.standing()
    }
}

impl<R: RawRwLock<ReadToken = ()> + Inspect> TestLock for Plain<R> {
    fn read(&self) {
        self.lock.down_read();
    }

    fn try_read(&self) -> bool {
        self.lock.down_read_trylock().is_some()
    }

    unsafe fn read_unlock(&self) {
        // SAFETY: Held for reading by the contract; the token is `()`.
        unsafe { self.lock.up_read(()) };
    }

    fn write(&self) {
        self.lock.down_write();
    }

    unsafe fn write_unlock(&self) {
        // SAFETY: Held for writing by the contract.
        unsafe { self.lock.up_write() };
    }
}

/// A [`RawRwSem`], on cache lines that it shares with nothing.
#[pin_data]
#[repr(align(64))]
struct Semaphore<R> {
    #[pin]
    lock: R,
}

impl<R: Inspect> Inspect for Semaphore<R> {
    fn dump(&self, out: &mut Text) -> Result {
        self.lock.dump(out)
    }

    fn standing(&self) -> Option<Standing> {
        self.lock.standing()
    }

    fn wait_lock_is_taken(&self) -> Option<bool> {
        self.lock.wait_lock_is_taken()
    }
}

impl<R: RawRwSem<ReadToken = ()> + Inspect> TestLock for Semaphore<R> {
    fn read(&self) {
        self.lock.down_read();
    }

    fn try_read(&self) -> bool {
        self.lock.down_read_trylock().is_some()
    }

    unsafe fn read_unlock(&self) {
        // SAFETY: Held for reading by the contract; the token is `()`.
        unsafe { self.lock.up_read(()) };
    }

    fn write(&self) {
        self.lock.down_write();
    }

    unsafe fn write_unlock(&self) {
        // SAFETY: Held for writing by the contract.
        unsafe { self.lock.up_write() };
    }

    fn semaphore(&self) -> Option<&dyn TestSemaphore> {
        Some(self)
    }
}

impl<R: RawRwSem<ReadToken = ()> + Inspect> TestSemaphore for Semaphore<R> {
    fn try_write(&self) -> bool {
        self.lock.down_write_trylock()
    }

    fn read_interruptible(&self) -> Result {
        self.lock.down_read_interruptible()
    }

    fn read_killable(&self) -> Result {
        self.lock.down_read_killable()
    }

    fn write_killable(&self) -> Result {
        self.lock.down_write_killable()
    }

    unsafe fn downgrade(&self) {
        // SAFETY: Held for writing by the contract.
        unsafe { self.lock.downgrade_write() };
    }
}

/// Lets everyone in at any time. A run with it that is not reported broken shows that the checks
/// are.
struct Busted;

impl Inspect for Busted {
    fn dump(&self, out: &mut Text) -> Result {
        out.put(fmt!("no words\n"))
    }
}

impl TestLock for Busted {
    fn read(&self) {}

    fn try_read(&self) -> bool {
        true
    }

    unsafe fn read_unlock(&self) {}

    fn write(&self) {}

    unsafe fn write_unlock(&self) {}
}
