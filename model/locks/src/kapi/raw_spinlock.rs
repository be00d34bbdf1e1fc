// SPDX-License-Identifier: GPL-2.0

//! The spinlock under sleeping locks. Who waits for it is blocked rather than spins, which makes
//! no difference to who gets it.

use super::task;
use core::{
    marker::PhantomData,
    pin::Pin, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        LockClassKey, //
    }, //
};

/// `raw_spinlock_t`.
pub(crate) struct RawSpinLock(Atomic<u32>);

fn taken(word: u32) -> Option<u32> {
    (word == 0).then_some(1)
}

impl RawSpinLock {
    /// A free lock.
    pub(crate) fn new(_: &'static CStr, _: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        Self(Atomic::new(0))
    }

    /// Takes the lock.
    #[track_caller]
    pub(crate) fn lock_irq(&self) -> Guard<'_, Irq> {
        self.0.update_blocking(0, taken, Acquire);
        Guard::new(self)
    }

    /// Takes the lock.
    #[track_caller]
    pub(crate) fn lock_irqsave(&self) -> Guard<'_, IrqSave> {
        self.0.update_blocking(0, taken, Acquire);
        Guard::new(self)
    }

    /// Takes the lock if it is free.
    #[track_caller]
    pub(crate) fn try_lock_irqsave(&self) -> Option<Guard<'_, IrqSave>> {
        self.0.cmpxchg(0, 1, Acquire).ok().map(|_| Guard::new(self))
    }
}

/// What the guard's end does to interrupts: there are none here.
pub(crate) trait Interrupts {}

/// They go on again.
pub(crate) struct Irq(());

impl Interrupts for Irq {}

/// They go back to what they were.
pub(crate) struct IrqSave(());

impl Interrupts for IrqSave {}

/// The lock is held until this is dropped.
#[must_use = "the lock is dropped at once when the guard is unused"]
pub(crate) struct Guard<'a, I: Interrupts> {
    lock: &'a RawSpinLock,
    _interrupts: PhantomData<I>,
}

impl<'a, I: Interrupts> Guard<'a, I> {
    fn new(lock: &'a RawSpinLock) -> Self {
        task::this().enter_atomic();
        Self {
            lock,
            _interrupts: PhantomData,
        }
    }
}

impl<I: Interrupts> Drop for Guard<'_, I> {
    fn drop(&mut self) {
        self.lock.0.store(0, Release);
        task::this().leave_atomic();
    }
}
