// SPDX-License-Identifier: GPL-2.0

//! A reference count with a lock, of whatever type, and what a run can do with it.
//!
//! Unlike locks ([`subject`](super::subject)), counts are not reached through a trait object: being
//! inlined is what their users expect of them. Each scenario has one generic source for all types.

use super::{
    bench::Session,
    crew::Seat,
    knobs::Knobs,
    locks::LockType,
    ref_burst,
    ref_kill,
    ref_storm,
    ref_torture,
    ref_walk,
    scenario::play_rounds,
    subject::Class, //
};
use crate::{
    kapi::{
        events::EventSet,
        lockref::CLockRef, //
    },
    lockref::{
        self,
        LockRef,
        Rfc2,
        C73, //
    },
    rwlock::RawRwLock, //
};
use core::mem;
use kernel::{
    fmt,
    prelude::*,
    sync::{
        static_lock_class,
        LockClassKey, //
    },
    types::NotThreadSafe, //
};

/// A count with its lock; its operations do what those of the same names in [`LockRef`] do.
pub(super) trait Counted: Send + Sync + Sized + 'static {
    /// Holds the lock.
    type Guard<'a>: CountGuard;

    /// A name and class for lockdep.
    fn class() -> Class;

    /// A free lock and one reference.
    fn new(class: Class) -> impl PinInit<Self>;

    fn get(&self);
    fn get_not_zero(&self) -> bool;
    fn get_not_dead(&self) -> bool;
    fn put_return(&self) -> Option<i32>;
    fn put_or_lock(&self) -> Option<Self::Guard<'_>>;
    fn lock(&self) -> Self::Guard<'_>;
    fn try_lock(&self) -> Option<Self::Guard<'_>>;

    /// # Safety
    ///
    /// The calling task holds the lock, and has leaked its guard.
    unsafe fn assume_locked(&self) -> Self::Guard<'_>;
}

/// What the holder of the lock can do.
pub(super) trait CountGuard {
    fn count(&self) -> i32;
    fn set_count(&mut self, count: i32);
    fn mark_dead(&mut self);
}

/// A block of a scenario on one type of count.
type Block = fn(&Knobs, &Session<'_>, &'static LockType, u32) -> Result;

/// The blocks of all scenarios, for one type of count.
pub(super) struct Blocks {
    pub(super) storm: Block,
    pub(super) burst: Block,
    pub(super) walk: Block,
    pub(super) kill: Block,
    pub(super) torture: Block,
}

impl Blocks {
    pub(super) const fn of<R: Counted>() -> Self {
        Self {
            storm: ref_storm::block::<R>,
            burst: ref_burst::block::<R>,
            walk: ref_walk::block::<R>,
            kill: ref_kill::block::<R>,
            torture: ref_torture::block::<R>,
        }
    }
}

/// `EINVAL` unless all selected locks count references and the threads can have such roles.
pub(super) fn check(knobs: &Knobs) -> Result {
    knobs.check_roles()?;
    if knobs.locks.types().all(|lock| lock.refs().is_some()) {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

/// Plays the rounds of one scenario.
pub(super) fn play(
    knobs: &Knobs,
    session: &Session<'_>,
    block: impl Fn(&'static Blocks) -> Block,
) -> Result {
    play_rounds(knobs, session, |lock, round| {
        let blocks = lock.refs().ok_or(EINVAL)?;
        block(blocks)(knobs, session, lock, round)
    })
}

/// The events of a lockref until now: failed compare-exchanges, and operations that took the lock.
#[derive(Clone, Copy, Default)]
pub(super) struct Falls {
    pub(super) retries: u64,
    pub(super) fallbacks: u64,
}

impl Falls {
    /// `None` when the lock counts no such events, or the kernel none at all.
    pub(super) fn now(lock: &LockType) -> Option<Self> {
        let source = lock.events().filter(|_| cfg!(CONFIG_LOCK_EVENT_COUNTS))?;
        let read = |event: lockref::Event| source.read(event.index());
        Some(Self {
            retries: read(lockref::Event::CmpxchgRetry),
            fallbacks: read(lockref::Event::LockFallback),
        })
    }

    /// What came after `earlier`.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            retries: self.retries.wrapping_sub(earlier.retries),
            fallbacks: self.fallbacks.wrapping_sub(earlier.fallbacks),
        }
    }

    /// As results show it, for `ops` operations.
    pub(super) fn put(self, session: &Session<'_>, ops: u64) -> Result {
        let ops = ops.max(1);
        let milli = self.retries.saturating_mul(1000) / ops;
        session.put(fmt!(
            " {}.{:03} retries/op {} fallbacks/Mop",
            milli / 1000,
            milli % 1000,
            self.fallbacks.saturating_mul(1_000_000) / ops
        ))
    }
}

/// The times of the threads that took least and longest for the same work, in nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    fastest: u64,
    slowest: u64,
}

impl Extremes {
    /// Those of one thread that has measured its part.
    pub(super) fn of(seat: &Seat<'_>) -> Self {
        Self {
            fastest: seat.elapsed(),
            slowest: seat.elapsed(),
        }
    }

    /// Takes in those of others.
    pub(super) fn add(&mut self, other: Self) {
        self.fastest = self.fastest.min(other.fastest);
        self.slowest = self.slowest.max(other.slowest);
    }
}

impl Default for Extremes {
    /// Those of nobody.
    fn default() -> Self {
        Self {
            fastest: u64::MAX,
            slowest: 0,
        }
    }
}

impl fmt::Display for Extremes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fastest, slowest } = self;
        write!(f, "{fastest} fastest-ns {slowest} slowest-ns")
    }
}

/// Implements [`Counted`] for a policy of our own lockref; each type has its own class.
macro_rules! counted {
    ($policy:ty) => {
        impl Counted for LockRef<$policy> {
            type Guard<'a> = lockref::Guard<'a, $policy>;

            fn class() -> Class {
                (<$policy as lockref::Policy>::NAME, static_lock_class!())
            }

            fn new((name, key): Class) -> impl PinInit<Self> {
                Self::new(name, key)
            }

            #[inline(always)]
            fn get(&self) {
                self.get();
            }

            #[inline(always)]
            fn get_not_zero(&self) -> bool {
                self.get_not_zero()
            }

            #[inline(always)]
            fn get_not_dead(&self) -> bool {
                self.get_not_dead()
            }

            #[inline(always)]
            fn put_return(&self) -> Option<i32> {
                self.put_return()
            }

            #[inline(always)]
            fn put_or_lock(&self) -> Option<Self::Guard<'_>> {
                self.put_or_lock()
            }

            #[inline(always)]
            fn lock(&self) -> Self::Guard<'_> {
                self.lock()
            }

            #[inline(always)]
            fn try_lock(&self) -> Option<Self::Guard<'_>> {
                self.try_lock()
            }

            #[inline(always)]
            unsafe fn assume_locked(&self) -> Self::Guard<'_> {
                // SAFETY: By the contract.
                unsafe { self.assume_locked() }
            }
        }
    };
}

counted!(C73);
counted!(Rfc2);

impl<P: lockref::Policy> CountGuard for lockref::Guard<'_, P> {
    #[inline(always)]
    fn count(&self) -> i32 {
        self.count()
    }

    #[inline(always)]
    fn set_count(&mut self, count: i32) {
        self.set_count(count);
    }

    #[inline(always)]
    fn mark_dead(&mut self) {
        self.mark_dead();
    }
}

/// Holds the lock of a lockref in C.
pub(super) struct CGuard<'a> {
    lockref: &'a CLockRef,
    _not_send: NotThreadSafe,
}

impl<'a> CGuard<'a> {
    /// Only for a lock that the caller has just taken.
    #[inline(always)]
    fn new(lockref: &'a CLockRef) -> Self {
        Self {
            lockref,
            _not_send: NotThreadSafe,
        }
    }
}

impl CountGuard for CGuard<'_> {
    #[inline(always)]
    fn count(&self) -> i32 {
        self.lockref.count()
    }

    #[inline(always)]
    fn set_count(&mut self, count: i32) {
        // SAFETY: Held since `new`.
        unsafe { self.lockref.set_count(count) };
    }

    #[inline(always)]
    fn mark_dead(&mut self) {
        // SAFETY: Held since `new`.
        unsafe { self.lockref.mark_dead() };
    }
}

impl Drop for CGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: Held since `new`.
        unsafe { self.lockref.unlock() };
    }
}

impl Counted for CLockRef {
    type Guard<'a> = CGuard<'a>;

    fn class() -> Class {
        (c"lockref_c", static_lock_class!())
    }

    fn new((name, key): Class) -> impl PinInit<Self> {
        Self::new(name, key)
    }

    #[inline(always)]
    fn get(&self) {
        self.get();
    }

    #[inline(always)]
    fn get_not_zero(&self) -> bool {
        self.get_not_zero()
    }

    #[inline(always)]
    fn get_not_dead(&self) -> bool {
        self.get_not_dead()
    }

    #[inline(always)]
    fn put_return(&self) -> Option<i32> {
        let left = self.put_return();
        (left >= 0).then_some(left)
    }

    #[inline(always)]
    fn put_or_lock(&self) -> Option<CGuard<'_>> {
        if self.put_or_lock() {
            None
        } else {
            Some(CGuard::new(self))
        }
    }

    #[inline(always)]
    fn lock(&self) -> CGuard<'_> {
        self.lock();
        CGuard::new(self)
    }

    #[inline(always)]
    fn try_lock(&self) -> Option<CGuard<'_>> {
        self.try_lock().then(|| CGuard::new(self))
    }

    #[inline(always)]
    unsafe fn assume_locked(&self) -> CGuard<'_> {
        CGuard::new(self)
    }
}

/// A spinlock and a plain count beside it: what a lockref replaces.
#[pin_data]
pub(super) struct SpinRef {
    #[pin]
    both: CLockRef,
}

impl SpinRef {
    /// Adds `by` under the lock if the count is at least `least`: whether it was.
    #[inline(always)]
    fn add_from(&self, least: i32, by: i32) -> bool {
        let mut guard = Counted::lock(self);
        let count = guard.count();
        if count < least {
            return false;
        }
        guard.set_count(count.wrapping_add(by));
        true
    }
}

impl Counted for SpinRef {
    type Guard<'a> = CGuard<'a>;

    fn class() -> Class {
        (c"spin_ref", static_lock_class!())
    }

    fn new((name, key): Class) -> impl PinInit<Self> {
        pin_init!(Self {
            both <- CLockRef::new(name, key),
        })
    }

    #[inline(always)]
    fn get(&self) {
        self.add_from(i32::MIN, 1);
    }

    #[inline(always)]
    fn get_not_zero(&self) -> bool {
        self.add_from(1, 1)
    }

    #[inline(always)]
    fn get_not_dead(&self) -> bool {
        self.add_from(0, 1)
    }

    #[inline(always)]
    fn put_return(&self) -> Option<i32> {
        let mut guard = Counted::lock(self);
        let left = guard.count().wrapping_sub(1);
        (left >= 0).then(|| guard.set_count(left))?;
        Some(left)
    }

    #[inline(always)]
    fn put_or_lock(&self) -> Option<CGuard<'_>> {
        let mut guard = Counted::lock(self);
        let count = guard.count();
        if count <= 1 {
            return Some(guard);
        }
        guard.set_count(count.wrapping_sub(1));
        None
    }

    #[inline(always)]
    fn lock(&self) -> CGuard<'_> {
        Counted::lock(&self.both)
    }

    #[inline(always)]
    fn try_lock(&self) -> Option<CGuard<'_>> {
        Counted::try_lock(&self.both)
    }

    #[inline(always)]
    unsafe fn assume_locked(&self) -> CGuard<'_> {
        CGuard::new(&self.both)
    }
}

/// The lock of a count as an exclusive lock, for the scenarios and tests of locks: readers take it
/// as writers do. It spins, and preemption is off while it is held.
#[pin_data]
pub(super) struct AsLock<R> {
    #[pin]
    counted: R,
}

impl<R: Counted> AsLock<R> {
    /// Takes the lock if it is free.
    pub(super) fn try_lock(&self) -> Option<R::Guard<'_>> {
        self.counted.try_lock()
    }
}

// SAFETY: The lock lets in one at a time, and orders them.
unsafe impl<R: Counted> RawRwLock for AsLock<R> {
    type ReadToken = ();

    fn init(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            counted <- R::new((name, key)),
        })
    }

    #[inline(always)]
    fn down_read(&self) {
        self.down_write();
    }

    #[inline(always)]
    fn down_read_trylock(&self) -> Option<()> {
        self.counted.try_lock().map(mem::forget)
    }

    #[inline(always)]
    unsafe fn up_read(&self, _token: ()) {
        // SAFETY: By the contract.
        unsafe { self.up_write() };
    }

    #[inline(always)]
    fn down_write(&self) {
        mem::forget(self.counted.lock());
    }

    #[inline(always)]
    unsafe fn up_write(&self) {
        // SAFETY: Held by the contract; `down_write` and `down_read_trylock` leak the guards.
        drop(unsafe { self.counted.assume_locked() });
    }
}
