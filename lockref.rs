// SPDX-License-Identifier: GPL-2.0

//! A reference count and the spinlock that protects it in one word, so that counting need not take
//! the lock.
//!
//! C counterpart: [`lib/lockref.c`](srctree/lib/lockref.c); the policy [`Rfc2`] is the form in which
//! the idea was first posted.
//!
//! # Protocol
//!
//! ```text
//!   63            32 31                 0
//!  ┌────────────────┬────────────────────┐
//!  │ count (signed) │ queued spinlock    │  0: free and nobody waits for it
//!  └────────────────┴────────────────────┘
//! ```
//!
//! | count | meaning |
//! |---|---|
//! | 0 < n | n references |
//! | 0 | no reference: the object may be kept for later |
//! | < 0 | dead: nobody may get a reference ever again |
//!
//! While the lock half is 0, the count is changed by a compare-and-exchange of the whole word: it
//! succeeds only if the lock was free up to that very moment. Anything else in the lock half, also
//! a mere waiter, means that the count belongs to a holder, and the operation takes the lock like
//! one. So does one that has lost against others too often: the lock is fair.
//!
//! Each operation is one pure step, from a count to the next or to "not from here". The lockless
//! try and the holder of the lock apply the same step.
//!
//! # Invariants
//!
//! 1. The count changes by a compare-and-exchange that found the lock free, or by the holder of
//!    the lock. Hence it stands still while the lock is held.
//! 2. No operation on the count changes the lock half.
//! 3. An operation that can be refused leaves a negative count as it is.
//!
//! # Memory ordering
//!
//! The compare-and-exchange is full, which on x86 it is anyway. Putting a reference needs release:
//! what was done by way of it happens before what is done by whoever puts the last one, who takes
//! the lock (acquire) for that. Getting one needs acquire for those who then look again at what has
//! led them to the object: they see what the last holder of the lock did to that.
//!
//! # Differences from C
//!
//! - Lockless also in kernels that debug spinlocks, as the 2013 form was: lockdep's map lies beside
//!   the word, the state of `DEBUG_SPINLOCK` is left out. C's operations take the lock there. On
//!   UML, where C has no lockless operations either, ours work the same.
//! - The first try is inlined into the caller, which needs neither the number of tries nor the
//!   lock.
//! - The compare-and-exchange is full; in C it is relaxed (on x86 the same instruction).
//! - What needs the lock (changing the count by hand, [`Guard::mark_dead`]) is a method of the guard.

use crate::kapi::{
    events::{
        event_set,
        events,
        Events, //
    },
    qspinlock::SharedWord, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::{
        Deref,
        DerefMut, //
    },
    pin::Pin, //
};
use kernel::{
    prelude::*,
    processor::cpu_relax,
    sync::{
        atomic::Full,
        LockClassKey, //
    },
    types::NotThreadSafe, //
};

/// A value of the count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Count(i32);

impl Count {
    /// What a new object has: its maker's reference.
    const ONE: Self = Self(1);
    /// The dead object. Far from 0, so that no stray operation reaches that.
    const DEAD: Self = Self(-128);

    #[inline(always)]
    fn plus(self, value: i32) -> Self {
        Self(self.0.wrapping_add(value))
    }

    /// Another reference for someone who has one.
    #[inline(always)]
    fn get(self) -> Option<Self> {
        Some(self.plus(1))
    }

    /// Another reference, if there is one.
    #[inline(always)]
    fn get_not_zero(self) -> Option<Self> {
        (self.0 > 0).then(|| self.plus(1))
    }

    /// A reference, unless the object is dead.
    #[inline(always)]
    fn get_not_dead(self) -> Option<Self> {
        (self.0 >= 0).then(|| self.plus(1))
    }

    /// One reference less, if there is one.
    #[inline(always)]
    fn put(self) -> Option<Self> {
        (self.0 > 0).then(|| self.plus(-1))
    }

    /// One reference less, if it is not the last.
    #[inline(always)]
    fn put_not_last(self) -> Option<Self> {
        (self.0 > 1).then(|| self.plus(-1))
    }

    /// The RFC's only step: adds `value`, unless `threshold` is not negative and the count equals
    /// it.
    #[inline(always)]
    fn add_unless(self, value: i32, threshold: i32) -> Option<Self> {
        (threshold < 0 || self.0 != threshold).then(|| self.plus(value))
    }
}

/// A value of the whole word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word(u64);

impl Word {
    /// Whether nobody holds the lock or waits for it.
    #[inline(always)]
    fn is_unlocked(self) -> bool {
        // CAST: The low half.
        self.0 as u32 == 0
    }

    #[inline(always)]
    fn count(self) -> Count {
        // CAST: The high half, signed.
        Count((self.0 >> 32) as i32)
    }

    /// An unlocked word with `count`.
    #[inline(always)]
    fn unlocked(count: Count) -> Self {
        // CAST: Its 32 bits, as the high half.
        Self(u64::from(count.0 as u32) << 32)
    }
}

/// How a lockless try ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tried {
    /// With this count in the word.
    Done(Count),
    /// The step is not possible from the count that was there.
    Not,
    /// The lock is not free, or others were faster each time.
    Busy,
}

event_set! {
    /// What happens off the fast path.
    pub enum Event {
        /// A compare-and-exchange failed: another changed the word.
        CmpxchgRetry = "cmpxchg_retry",
        /// No try was left.
        TriesExhausted = "tries_exhausted",
        /// An operation on the count took the lock.
        LockFallback = "lock_fallback",
        /// An operation first waited until the lock was free.
        UnlockWait = "unlock_wait",
    }
}

/// How hard to try without the lock, as a type: what is off costs nothing.
pub trait Policy: Send + Sync + 'static {
    /// The name under which the harness knows it.
    const NAME: &'static CStr;

    /// How many compare-and-exchanges may fail.
    const TRIES: u32;

    /// Waits until the lock is free before the first try.
    const WAIT_FOR_UNLOCK: bool;

    /// Pauses after a failed try, and reads the word anew.
    const PAUSE: bool;

    /// Counts what happens off the fast path.
    #[doc(hidden)]
    const EVENTS: &'static Events<Event>;
}

/// As C 7.3: a hundred tries without a pause, none if the lock is not free. The one to use.
pub struct C73;

impl Policy for C73 {
    const NAME: &'static CStr = c"lockref";
    const TRIES: u32 = 100;
    const WAIT_FOR_UNLOCK: bool = false;
    const PAUSE: bool = false;
    const EVENTS: &'static Events<Event> = {
        static EVENTS: Events<Event> = events!(Event);
        &EVENTS
    };
}

/// As posted in 2013: waits for the unlock, tries twice, then takes the lock.
///
/// The wait keeps holders and counters apart at the price of a line that all who wait read; the
/// second try is there "because there will still be some fair amount of contention with only one".
pub struct Rfc2;

impl Policy for Rfc2 {
    const NAME: &'static CStr = c"lockref.rfc2";
    const TRIES: u32 = 2;
    const WAIT_FOR_UNLOCK: bool = true;
    const PAUSE: bool = true;
    const EVENTS: &'static Events<Event> = {
        static EVENTS: Events<Event> = events!(Event);
        &EVENTS
    };
}

/// A reference count with its lock: 8 bytes, aligned to 8, in kernels without lockdep.
#[pin_data]
#[repr(C)]
pub struct LockRef<P: Policy = C73> {
    #[pin]
    word: SharedWord,
    _policy: PhantomData<P>,
}

impl<P: Policy> LockRef<P> {
    /// A free lock, known to lockdep by `name` and `key`, and one reference: the caller's.
    pub fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        Self::with_count(Count::ONE, name, key)
    }

    fn with_count(
        count: Count,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            // CAST: Its 32 bits.
            word <- SharedWord::new(count.0 as u32, name, key),
            _policy: PhantomData,
        })
    }

    /// Adds a reference, for a caller who has one.
    #[inline]
    pub fn get(&self) {
        if !self.is_done(Count::get) {
            self.step_locked(Count::get);
        }
    }

    /// Adds a reference unless there is none or the object is dead: whether it did.
    #[inline]
    #[must_use = "without a reference the object may be gone"]
    pub fn get_not_zero(&self) -> bool {
        self.get_if(Count::get_not_zero)
    }

    /// Adds a reference unless the object is dead: whether it did.
    #[inline]
    #[must_use = "without a reference the object may be gone"]
    pub fn get_not_dead(&self) -> bool {
        self.get_if(Count::get_not_dead)
    }

    /// Takes a reference away without ever waiting: how many are left. `None`, with nothing done,
    /// when there was none, the object is dead, or the lock is not free.
    #[inline]
    #[must_use = "the reference is still there when this is `None`"]
    pub fn put_return(&self) -> Option<i32> {
        match self.try_now(Count::put) {
            Tried::Done(left) => Some(left.0),
            Tried::Not | Tried::Busy => None,
        }
    }

    /// Takes a reference away if it is not the last; else does not, and returns with the lock held.
    #[inline]
    #[must_use = "the reference is still there when the lock is returned"]
    pub fn put_or_lock(&self) -> Option<Guard<'_, P>> {
        match self.try_lockless(Count::put_not_last) {
            Tried::Done(_) => None,
            Tried::Not | Tried::Busy => self.put_locked(),
        }
    }

    /// The 2013 form: adds `value` without the lock, unless `threshold` is not negative and the
    /// count equals it. `false`, with nothing done, then and when the lock is not free: the caller
    /// takes it and decides.
    ///
    /// There it was used three ways: (1, -1) adds a reference, (1, 0) adds one if there is one,
    /// (-1, 1) takes one away if it is not the last. It knows of no dead objects.
    #[inline]
    #[must_use = "nothing was done when this is `false`"]
    pub fn add_unless(&self, value: i32, threshold: i32) -> bool {
        self.is_done(|count| count.add_unless(value, threshold))
    }

    /// Takes the lock, spinning. The count then stands still.
    #[inline]
    pub fn lock(&self) -> Guard<'_, P> {
        self.word.lock();
        Guard {
            lockref: self,
            _not_send: NotThreadSafe,
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, P>> {
        self.word.try_lock().then(|| Guard {
            lockref: self,
            _not_send: NotThreadSafe,
        })
    }

    /// The guard of a lock whose guard was leaked.
    ///
    /// # Safety
    ///
    /// The calling task holds the lock, and no guard of it is there.
    #[inline]
    pub unsafe fn assume_locked(&self) -> Guard<'_, P> {
        Guard {
            lockref: self,
            _not_send: NotThreadSafe,
        }
    }

    /// The count: out of date at once.
    #[inline]
    pub fn count(&self) -> i32 {
        // CAST: The count's 32 bits.
        self.word.high() as i32
    }

    /// Whether the object is dead. Reliable under the lock, see [`Guard`]; else a hint, of which
    /// "yes" stays true.
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.count() == Count::DEAD.0
    }

    /// Whether the object is dead or has no references: a hint.
    #[inline]
    pub fn is_dead_or_zero(&self) -> bool {
        let count = self.count();
        count == Count::DEAD.0 || count == 0
    }

    /// A lockless try, done or not.
    #[inline(always)]
    fn is_done(&self, step: impl Fn(Count) -> Option<Count> + Copy) -> bool {
        matches!(self.try_lockless(step), Tried::Done(_))
    }

    #[inline(always)]
    fn get_if(&self, step: impl Fn(Count) -> Option<Count> + Copy) -> bool {
        match self.try_lockless(step) {
            Tried::Done(_) => true,
            Tried::Not => false,
            Tried::Busy => self.step_locked(step),
        }
    }

    #[inline(always)]
    fn load(&self) -> Word {
        Word(self.word.load())
    }

    /// Takes `step` without the lock, after a wait for its unlock if the policy says so.
    #[inline(always)]
    fn try_lockless(&self, step: impl Fn(Count) -> Option<Count> + Copy) -> Tried {
        if P::WAIT_FOR_UNLOCK {
            self.wait_for_unlock();
        }
        self.try_now(step)
    }

    /// Takes `step` as long as the lock is free, and until no try is left.
    #[inline(always)]
    fn try_now(&self, step: impl Fn(Count) -> Option<Count> + Copy) -> Tried {
        match self.try_once(self.load(), step) {
            Ok(tried) => tried,
            Err(now) => self.try_again(now, step),
        }
    }

    /// One try from the word `old`; the word that came between if that failed.
    #[inline(always)]
    fn try_once(
        &self,
        old: Word,
        step: impl Fn(Count) -> Option<Count>,
    ) -> core::result::Result<Tried, Word> {
        if !old.is_unlocked() {
            return Ok(Tried::Busy);
        }
        let Some(count) = step(old.count()) else {
            return Ok(Tried::Not);
        };
        // INVARIANT: 1 and 2: `old` has the lock half free, and so does the new word.
        // ORDERING: Full. Release, for steps that put a reference, pairs with the acquire of the lock
        // by whoever puts the last one. Acquire, for steps that get one, pairs with the release of
        // the lock by whoever held it before.
        match self.word.cmpxchg(old.0, Word::unlocked(count).0, Full) {
            Ok(_) => Ok(Tried::Done(count)),
            Err(now) => Err(Word(now)),
        }
    }

    /// All tries after the first.
    #[cold]
    #[inline(never)]
    fn try_again(&self, mut now: Word, step: impl Fn(Count) -> Option<Count>) -> Tried {
        P::EVENTS.inc(Event::CmpxchgRetry);
        for _ in 1..P::TRIES {
            if P::PAUSE {
                cpu_relax();
                now = self.load();
            }
            match self.try_once(now, &step) {
                Ok(tried) => return tried,
                Err(word) => now = word,
            }
            P::EVENTS.inc(Event::CmpxchgRetry);
        }
        if P::PAUSE {
            cpu_relax();
        }
        P::EVENTS.inc(Event::TriesExhausted);
        Tried::Busy
    }

    #[inline(always)]
    fn wait_for_unlock(&self) {
        if !self.load().is_unlocked() {
            self.spin_until_unlocked();
        }
    }

    #[cold]
    #[inline(never)]
    fn spin_until_unlocked(&self) {
        P::EVENTS.inc(Event::UnlockWait);
        while !self.load().is_unlocked() {
            cpu_relax();
        }
    }

    /// Takes `step` under the lock: whether it was possible.
    #[cold]
    #[inline(never)]
    fn step_locked(&self, step: impl Fn(Count) -> Option<Count>) -> bool {
        P::EVENTS.inc(Event::LockFallback);
        self.lock().step(step)
    }

    /// Takes a reference away under the lock if it is not the last; else the lock.
    #[cold]
    #[inline(never)]
    fn put_locked(&self) -> Option<Guard<'_, P>> {
        P::EVENTS.inc(Event::LockFallback);
        let mut guard = self.lock();
        if guard.step(Count::put_not_last) {
            None
        } else {
            Some(guard)
        }
    }
}

/// Holds the lock until it is dropped; preemption is off meanwhile. Leaked, it leaves both so for
/// good.
#[must_use = "the lock is given up at once when the guard is unused"]
pub struct Guard<'a, P: Policy = C73> {
    lockref: &'a LockRef<P>,
    _not_send: NotThreadSafe,
}

impl<P: Policy> Guard<'_, P> {
    /// The count, which nobody else changes.
    #[inline]
    pub fn count(&self) -> i32 {
        self.lockref.count()
    }

    /// Changes the count. To kill the object, see [`Guard::mark_dead`].
    #[inline]
    pub fn set_count(&mut self, count: i32) {
        // INVARIANT: 1, we hold the lock.
        // SAFETY: As above.
        // CAST: Its 32 bits.
        unsafe { self.lockref.word.set_high(count as u32) };
    }

    /// From here on nobody gets a reference any more.
    #[inline]
    pub fn mark_dead(&mut self) {
        self.set_count(Count::DEAD.0);
    }

    /// Takes `step`: whether it was possible.
    #[inline(always)]
    fn step(&mut self, step: impl Fn(Count) -> Option<Count>) -> bool {
        match step(Count(self.count())) {
            Some(count) => {
                self.set_count(count.0);
                true
            }
            None => false,
        }
    }
}

impl<P: Policy> Drop for Guard<'_, P> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: We hold the lock, since the guard was made.
        unsafe { self.lockref.word.unlock() };
    }
}

/// Data under the lock, and a count of those who refer to it.
///
/// The memory is not this count's business: whoever borrows the object keeps it. The count says who
/// uses it, so that the last user can retire it: a new object has none, a dead one accepts no more.
#[pin_data]
pub struct RefLock<T, P: Policy = C73> {
    #[pin]
    lockref: LockRef<P>,
    data: UnsafeCell<T>,
}

// SAFETY: The data goes with the object.
unsafe impl<T: Send, P: Policy> Send for RefLock<T, P> {}
// SAFETY: The data is reached by one task at a time, the holder of the lock.
unsafe impl<T: Send, P: Policy> Sync for RefLock<T, P> {}

impl<T, P: Policy> RefLock<T, P> {
    /// Data under a free lock, known to lockdep by `name` and `key`, without references.
    pub fn new(
        data: T,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            lockref <- LockRef::with_count(Count(0), name, key),
            data: UnsafeCell::new(data),
        })
    }

    /// A reference, unless the object is dead.
    #[inline]
    pub fn get(&self) -> Option<Ref<'_, T, P>> {
        self.lockref.get_not_dead().then(|| Ref { object: self })
    }

    /// A reference, if there is one already.
    #[inline]
    pub fn get_not_zero(&self) -> Option<Ref<'_, T, P>> {
        self.lockref.get_not_zero().then(|| Ref { object: self })
    }

    /// Takes the lock, spinning.
    #[inline]
    pub fn lock(&self) -> DataGuard<'_, T, P> {
        DataGuard {
            object: self,
            guard: self.lockref.lock(),
        }
    }

    /// How many references there are; negative when the object is dead. Out of date at once.
    #[inline]
    pub fn count(&self) -> i32 {
        self.lockref.count()
    }
}

/// One of the references to a [`RefLock`]. Dropping the last one leaves the object without any; who
/// wants to retire it then uses [`Ref::put`]. A leaked one counts for good.
#[must_use = "the reference is put at once when it is unused"]
pub struct Ref<'a, T, P: Policy = C73> {
    object: &'a RefLock<T, P>,
}

impl<'a, T, P: Policy> Ref<'a, T, P> {
    /// Takes the lock, spinning.
    #[inline]
    pub fn lock(&self) -> DataGuard<'a, T, P> {
        self.object.lock()
    }

    /// Puts the reference, unless it is the last: that one comes back with the lock held.
    #[inline]
    pub fn put(self) -> Option<Last<'a, T, P>> {
        let object = ManuallyDrop::new(self).object;
        let guard = object.lockref.put_or_lock()?;
        Some(Last {
            data: DataGuard { object, guard },
        })
    }
}

impl<T, P: Policy> Clone for Ref<'_, T, P> {
    #[inline]
    fn clone(&self) -> Self {
        self.object.lockref.get();
        Self {
            object: self.object,
        }
    }
}

impl<T, P: Policy> Drop for Ref<'_, T, P> {
    #[inline]
    fn drop(&mut self) {
        if let Some(mut guard) = self.object.lockref.put_or_lock() {
            guard.step(Count::put);
        }
    }
}

/// Has the data to itself until it is dropped. Leaked, it shuts out everyone for good.
#[must_use = "the lock is given up at once when the guard is unused"]
pub struct DataGuard<'a, T, P: Policy = C73> {
    object: &'a RefLock<T, P>,
    guard: Guard<'a, P>,
}

impl<T, P: Policy> DataGuard<'_, T, P> {
    /// How many references there are.
    #[inline]
    pub fn count(&self) -> i32 {
        self.guard.count()
    }
}

impl<T, P: Policy> Deref for DataGuard<'_, T, P> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: The guard holds the lock: no one else reaches the data.
        unsafe { &*self.object.data.get() }
    }
}

impl<T, P: Policy> DerefMut for DataGuard<'_, T, P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As in `deref`.
        unsafe { &mut *self.object.data.get() }
    }
}

/// The last reference, with the lock held. Dropping it puts the reference: the object stays,
/// without any.
#[must_use = "the last reference is put at once when this is unused"]
pub struct Last<'a, T, P: Policy = C73> {
    data: DataGuard<'a, T, P>,
}

impl<'a, T, P: Policy> Last<'a, T, P> {
    /// Puts the reference and retires the object: no one gets another. The lock stays with the
    /// caller.
    #[inline]
    pub fn kill(self) -> DataGuard<'a, T, P> {
        let this = ManuallyDrop::new(self);
        // SAFETY: Moved out of what is neither used again nor dropped.
        let mut data = unsafe { core::ptr::read(&this.data) };
        data.guard.mark_dead();
        data
    }
}

impl<'a, T, P: Policy> Deref for Last<'a, T, P> {
    type Target = DataGuard<'a, T, P>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.data
    }
}

impl<T, P: Policy> DerefMut for Last<'_, T, P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.data
    }
}

impl<T, P: Policy> Drop for Last<'_, T, P> {
    #[inline]
    fn drop(&mut self) {
        // The lock goes with `data`, after this.
        self.data.guard.step(Count::put);
    }
}

#[kunit_tests(klocks_lockref)]
mod tests {
    use super::*;
    use crate::kapi::{
        events::{
            EventSet,
            EventSource, //
        },
        kthread::{
            Body,
            Kthread,
            Placement, //
        },
        machine,
        preempt,
        task, //
    };
    use core::cell::Cell;
    use kernel::{
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Relaxed,
                Release, //
            },
            static_lock_class,
            Arc, //
        },
        time::{
            delay::{
                fsleep,
                udelay, //
            },
            Delta, //
        }, //
    };
    use pin_init::stack_pin_init;

    const COUNTS: [i32; 7] = [-128, -127, -1, 0, 1, 2, i32::MAX];

    /// The lock half: held, held with a pending waiter, held with a queue, given up with a pending
    /// waiter, given up with a queue, all of them.
    const TAKEN: [u32; 6] = [1, 0x101, 0x4_0001, 0x100, 0x4_0000, 0xfffc_0101];

    fn word(count: i32, lock: u32) -> u64 {
        u64::from(count as u32) << 32 | u64::from(lock)
    }

    /// What an operation makes of each of [`COUNTS`]; `None`: it is refused, and changes nothing.
    type Table = [Option<i32>; COUNTS.len()];

    const GET: Table = [
        Some(-127),
        Some(-126),
        Some(0),
        Some(1),
        Some(2),
        Some(3),
        Some(i32::MIN),
    ];
    const GET_NOT_ZERO: Table = [None, None, None, None, Some(2), Some(3), Some(i32::MIN)];
    const GET_NOT_DEAD: Table = [None, None, None, Some(1), Some(2), Some(3), Some(i32::MIN)];
    const PUT_RETURN: Table = [None, None, None, None, Some(0), Some(1), Some(i32::MAX - 1)];
    const PUT_OR_LOCK: Table = [None, None, None, None, None, Some(1), Some(i32::MAX - 1)];
    /// (value, threshold) as in the RFC's three uses, and one that is refused at another count.
    const ADD_UNLESS: [((i32, i32), Table); 4] = [
        ((1, -1), GET),
        (
            (1, 0),
            [
                Some(-127),
                Some(-126),
                Some(0),
                None,
                Some(2),
                Some(3),
                Some(i32::MIN),
            ],
        ),
        (
            (-1, 1),
            [
                Some(-129),
                Some(-128),
                Some(-2),
                Some(-1),
                None,
                Some(1),
                Some(i32::MAX - 1),
            ],
        ),
        (
            (-1, i32::MAX),
            [
                Some(-129),
                Some(-128),
                Some(-2),
                Some(-1),
                Some(0),
                Some(1),
                None,
            ],
        ),
    ];

    /// Whether `op` does on a free lock what `table` says: it returns whether it was done, and
    /// leaves that count beside a free lock.
    fn follows<P: Policy>(table: &Table, op: impl Fn(&LockRef<P>) -> Option<bool>) -> bool {
        stack_pin_init!(let lockref = LockRef::<P>::new(c"test", static_lock_class!()));
        COUNTS.iter().zip(table).all(|(&before, &after)| {
            lockref.word.pretend(word(before, 0));
            op(&lockref) == Some(after.is_some())
                && lockref.load().0 == word(after.unwrap_or(before), 0)
        })
    }

    /// All operations on a free lock; the results that do not fit their count are `None`.
    fn free_lock_follows_the_tables<P: Policy>() -> bool {
        let mut ok = follows::<P>(&GET, |l| {
            l.get();
            Some(true)
        });
        ok &= follows::<P>(&GET_NOT_ZERO, |l| Some(l.get_not_zero()));
        ok &= follows::<P>(&GET_NOT_DEAD, |l| Some(l.get_not_dead()));
        ok &= follows::<P>(&PUT_RETURN, |l| match l.put_return() {
            Some(left) => (left == l.count()).then_some(true),
            None => Some(false),
        });
        ok &= follows::<P>(&PUT_OR_LOCK, |l| match l.put_or_lock() {
            None => Some(true),
            // Not put, and the lock is held: the low half says so.
            Some(guard) => (l.load().0 == word(guard.count(), 1)).then_some(false),
        });
        for ((value, threshold), table) in &ADD_UNLESS {
            ok &= follows::<P>(table, |l| Some(l.add_unless(*value, *threshold)));
        }
        ok
    }

    #[test]
    fn free_lock_as_in_c() {
        assert!(free_lock_follows_the_tables::<C73>());
    }

    #[test]
    fn free_lock_as_posted() {
        assert!(free_lock_follows_the_tables::<Rfc2>());
    }

    #[test]
    fn a_taken_lock_stops_every_lockless_step() {
        stack_pin_init!(let lockref = LockRef::<C73>::new(c"test", static_lock_class!()));
        let steps: [fn(Count) -> Option<Count>; 7] = [
            Count::get,
            Count::get_not_zero,
            Count::get_not_dead,
            Count::put,
            Count::put_not_last,
            |count| count.add_unless(1, 0),
            |count| count.add_unless(-1, 1),
        ];
        let mut ok = true;
        for count in COUNTS {
            for lock in TAKEN {
                let before = word(count, lock);
                lockref.word.pretend(before);
                for step in steps {
                    ok &= lockref.try_lockless(step) == Tried::Busy;
                    ok &= lockref.load().0 == before;
                }
                // The operations that never take the lock.
                ok &= lockref.put_return().is_none();
                ok &= !lockref.add_unless(1, -1);
                ok &= lockref.load().0 == before;
            }
        }
        assert!(ok);
        lockref.word.pretend(word(1, 0));
    }

    #[test]
    fn put_return_as_posted_waits_for_nobody() {
        stack_pin_init!(let lockref = LockRef::<Rfc2>::new(c"test", static_lock_class!()));
        let mut ok = true;
        for count in COUNTS {
            for lock in TAKEN {
                lockref.word.pretend(word(count, lock));
                ok &= lockref.put_return().is_none();
                ok &= lockref.load().0 == word(count, lock);
            }
        }
        assert!(ok);
        lockref.word.pretend(word(1, 0));
    }

    #[test]
    fn questions_have_one_answer_whatever_the_lock() {
        stack_pin_init!(let lockref = LockRef::<C73>::new(c"test", static_lock_class!()));
        let mut ok = true;
        for count in COUNTS {
            for lock in Iterator::chain(TAKEN.into_iter(), [0]) {
                let before = word(count, lock);
                lockref.word.pretend(before);
                ok &= lockref.count() == count;
                ok &= lockref.is_dead() == (count == -128);
                ok &= lockref.is_dead_or_zero() == (count == -128 || count == 0);
                ok &= lockref.load().0 == before;
                // A waiter alone keeps others from the lock as well.
                let guard = lockref.try_lock();
                ok &= guard.is_some() == (lock == 0);
                ok &= lockref.load().0 == word(count, if lock == 0 { 1 } else { lock });
                drop(guard);
            }
        }
        assert!(ok);
        lockref.word.pretend(word(1, 0));
    }

    #[test]
    fn the_holder_changes_the_count_alone() {
        stack_pin_init!(let lockref = LockRef::<C73>::new(c"test", static_lock_class!()));
        let mut ok = true;
        for before in COUNTS {
            for lock in TAKEN.into_iter().filter(|lock| lock & 1 != 0) {
                lockref.word.pretend(word(before, lock));
                // SAFETY: As far as the word says, the lock is held, and nobody else looks at it.
                let mut guard = ManuallyDrop::new(unsafe { lockref.assume_locked() });
                ok &= guard.count() == before;
                for after in COUNTS {
                    guard.set_count(after);
                    ok &= lockref.load().0 == word(after, lock);
                }
                guard.set_count(before);
                guard.mark_dead();
                ok &= lockref.load().0 == word(-128, lock);
            }
        }
        assert!(ok);
        lockref.word.pretend(word(1, 0));
    }

    #[test]
    fn steps_leave_the_lock_half_alone() {
        let mut ok = true;
        for count in COUNTS {
            let new = Word::unlocked(Count(count));
            ok &= new.is_unlocked() && new.count() == Count(count);
            for lock in TAKEN {
                ok &= !Word(word(count, lock)).is_unlocked();
                ok &= Word(word(count, lock)).count() == Count(count);
            }
        }
        assert!(ok);
    }

    /// A step that others beat `times` times: before each they get a reference.
    struct Beaten<'a, P: Policy> {
        lockref: &'a LockRef<P>,
        times: u32,
        tries: Cell<u32>,
    }

    impl<'a, P: Policy> Beaten<'a, P> {
        fn new(lockref: &'a LockRef<P>, times: u32) -> Self {
            Self {
                lockref,
                times,
                tries: Cell::new(0),
            }
        }

        fn step(&self, count: Count) -> Option<Count> {
            if self.tries.get() < self.times {
                let others = count.plus(1);
                self.lockref.word.pretend(Word::unlocked(others).0);
            }
            self.tries.set(self.tries.get() + 1);
            count.get()
        }
    }

    /// ```text
    ///   CPU 0                                CPU 1
    ///   reads the word: free, count n
    ///                                        n -> n+1
    ///   n -> n+1 fails, the word is in hand
    ///                                        n+1 -> n+2
    ///   n+1 -> n+2 fails
    ///   ...
    ///   after the last try: takes the lock
    ///                                        waits
    ///   n+100 -> n+101, unlocks
    /// ```
    fn b23_falls_to_the_lock_after<P: Policy>(tries: u32) -> bool {
        stack_pin_init!(let lockref = LockRef::<P>::new(c"test", static_lock_class!()));
        let events = || {
            [
                Event::CmpxchgRetry,
                Event::TriesExhausted,
                Event::LockFallback,
            ]
            .map(|event| P::EVENTS.read(event.index()))
        };
        let before = events();

        // The last try can win.
        let beaten = Beaten::new(&*lockref, tries - 1);
        let mut ok = lockref.get_if(|count| beaten.step(count));
        ok &= beaten.tries.get() == tries;
        ok &= events() == [before[0] + counted(tries - 1), before[1], before[2]];
        ok &= lockref.load().0 == word(1 + tries as i32, 0);

        // When it does not, nobody can beat the holder of the lock.
        lockref.word.pretend(word(1, 0));
        let between = events();
        let beaten = Beaten::new(&*lockref, tries);
        ok &= lockref.get_if(|count| beaten.step(count));
        ok &= beaten.tries.get() == tries + 1;
        ok &= events()
            == [
                between[0] + counted(tries),
                between[1] + counted(1),
                between[2] + counted(1),
            ];
        ok & (lockref.load().0 == word(2 + tries as i32, 0))
    }

    /// That many events, where the kernel counts any.
    fn counted(events: u32) -> u64 {
        u64::from(if cfg!(CONFIG_LOCK_EVENT_COUNTS) {
            events
        } else {
            0
        })
    }

    #[test]
    fn b23_bounded_tries_as_in_c() {
        assert!(b23_falls_to_the_lock_after::<C73>(100));
    }

    #[test]
    fn b23_bounded_tries_as_posted() {
        assert!(b23_falls_to_the_lock_after::<Rfc2>(2));
    }

    /// Where operations meet the holder of a lock, one a round.
    #[pin_data]
    struct Scene<P: Policy> {
        #[pin]
        lockref: LockRef<P>,
        /// The last cue given: two a round.
        cue: Atomic<u32>,
    }

    impl<P: Policy> Scene<P> {
        /// Gives the cue.
        fn say(&self, cue: u32) {
            // ORDERING: Release pairs with the acquire in `Actor::run`: who hears it finds the stage set.
            self.cue.store(cue, Release);
        }
    }

    /// The last cue of all: the scene is over.
    const OVER: u32 = u32::MAX;

    /// An operation: whether it was done.
    type Op<P> = fn(&LockRef<P>) -> bool;

    /// Does an operation in each round, in a thread of its own.
    struct Actor<P: Policy> {
        scene: Arc<Scene<P>>,
        /// Its cue in the first round: 1 or 2.
        cue: u32,
        op: Op<P>,
        /// The last cue at which it has begun,
        begun: Atomic<u32>,
        /// and that to which it has come to an end, done or refused.
        ended: Atomic<u32>,
        done: Atomic<bool>,
    }

    impl<P: Policy> Actor<P> {
        /// A thread that waits for its cue on `cpu`.
        fn new(scene: &Arc<Scene<P>>, cue: u32, op: Op<P>, cpu: Option<u32>) -> Result<Player<P>> {
            let actor = Self {
                scene: scene.clone(),
                cue,
                op,
                begun: Atomic::new(0),
                ended: Atomic::new(0),
                done: Atomic::new(false),
            };
            let placement = Placement {
                cpu,
                ..Placement::default()
            };
            let actor = Arc::new(actor, GFP_KERNEL)?;
            let thread = Kthread::create(c"klocks_lockref", cue, placement, actor.clone())?;
            Ok((actor, thread))
        }

        /// Whether it has begun at `cue`.
        fn has_begun(&self, cue: u32) -> bool {
            // ORDERING: Acquire pairs with the release in `run`.
            self.begun.load(Acquire) == cue
        }

        /// Whether what it began at `cue` has come to an end.
        fn has_ended(&self, cue: u32) -> bool {
            // ORDERING: Acquire pairs with the release in `run`: `done` is that of this cue.
            self.ended.load(Acquire) == cue
        }
    }

    impl<P: Policy> Body for Actor<P> {
        fn run(&self) {
            let mut next = self.cue;
            loop {
                // ORDERING: Acquire pairs with the release in `Scene::say`.
                let cue = self.scene.cue.load(Acquire);
                if cue == OVER {
                    return;
                }
                if cue >= next {
                    // ORDERING: Release pairs with the acquire in `has_begun`.
                    self.begun.store(next, Release);
                    let done = (self.op)(&self.scene.lockref);
                    // Relaxed: the next store releases it.
                    self.done.store(done, Relaxed);
                    // ORDERING: Release pairs with the acquire in `has_ended`.
                    self.ended.store(next, Release);
                    next += 2;
                }
                udelay(Delta::from_micros(5));
                task::give_way();
            }
        }
    }

    /// Whether `condition` comes true within that many microseconds.
    fn soon(micros: u32, condition: impl Fn() -> bool) -> bool {
        (0..micros / 5).any(|_| {
            udelay(Delta::from_micros(5));
            condition()
        })
    }

    /// What became of an operation that began while the lock was held.
    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Outcome {
        /// It ended before the unlock.
        at_once: bool,
        done: bool,
        /// The word after both.
        word: u64,
    }

    type Player<P> = (Arc<Actor<P>>, Kthread<Actor<P>>);

    /// All who play in a scene, but for the holder, who is the caller.
    struct Cast<P: Policy> {
        scene: Arc<Scene<P>>,
        /// Does the operation.
        actor: Player<P>,
        /// Takes the lock and gives it up again, and comes before the actor.
        waiter: Option<Player<P>>,
        /// Where these two are.
        cpus: [Option<u32>; 2],
        rounds: u32,
    }

    impl<P: Policy> Drop for Cast<P> {
        fn drop(&mut self) {
            self.scene.say(OVER);
        }
    }

    impl<P: Policy> Cast<P> {
        /// Each on a CPU of its own, other than the caller's.
        fn new(op: Op<P>, queue: bool) -> Result<Self> {
            let scene = Arc::pin_init(
                pin_init!(Scene {
                    lockref <- LockRef::new(c"test", static_lock_class!()),
                    cue: Atomic::new(0),
                }),
                GFP_KERNEL,
            )?;
            let here = preempt::disable().cpu();
            let mut others = machine::online_cpus().filter(|&cpu| cpu != here);
            let cpus = [others.next(), others.next().filter(|_| queue)];
            let actor = Actor::new(&scene, 2, op, cpus[0])?;
            let waiter = if queue {
                let lock_and_unlock = |lockref: &LockRef<P>| {
                    drop(lockref.lock());
                    true
                };
                Some(Actor::new(&scene, 1, lock_and_unlock, cpus[1])?)
            } else {
                None
            };
            for (_, thread) in Iterator::chain([&actor].into_iter(), &waiter) {
                thread.wake();
            }
            Ok(Self {
                scene,
                actor,
                waiter,
                cpus,
                rounds: 0,
            })
        }

        /// Has the operation begin while the lock is held, with a count of `before`, and waited for
        /// when there is a waiter. `None` when that did not come about: the holder was moved to the CPU of
        /// another, or they did not come, or end when they should, in time.
        ///
        /// # Errors
        ///
        /// `EIO` when the count changed under the holder.
        fn meet(&mut self, before: i32, at_once: bool) -> Result<Option<Outcome>> {
            /// In microseconds. Who holds a spinlock keeps its CPU, and others may wait for that with
            /// theirs, as `stop_machine()` does: those whom we wait for come when we have gone.
            const PATIENCE: u32 = 20_000;
            let lockref = &self.scene.lockref;
            let (first, second) = (2 * self.rounds + 1, 2 * self.rounds + 2);

            let mut guard = lockref.lock();
            if self.cpus.contains(&Some(preempt::disable().cpu())) {
                drop(guard);
                fsleep(Delta::from_millis(10));
                return Ok(None);
            }
            self.rounds += 1;
            guard.set_count(before);
            self.scene.say(first);
            // In the lock's word a waiter is not to be seen where a virtual machine spins without a queue.
            let (actor, waiter) = (
                &self.actor.0,
                self.waiter.as_ref().map(|(waiter, _)| waiter),
            );
            let mut came = waiter.is_none_or(|waiter| soon(PATIENCE, || waiter.has_begun(first)));
            self.scene.say(second);
            came &= soon(PATIENCE, || actor.has_begun(second));
            let wait = if at_once { PATIENCE } else { 100 };
            let ended = soon(wait, || actor.has_ended(second));
            came &= ended || !at_once;
            let frozen = guard.count() == before;
            drop(guard);
            while !(actor.has_ended(second) && waiter.is_none_or(|waiter| waiter.has_ended(first)))
            {
                udelay(Delta::from_micros(5));
                task::give_way();
            }
            if !frozen {
                return Err(EIO);
            }
            let outcome = Outcome {
                at_once: ended,
                // Relaxed: ordered by its end.
                done: actor.done.load(Relaxed),
                word: lockref.load().0,
            };
            Ok(came.then_some(outcome))
        }

        /// Whether the operation follows `table` when it meets a holder, and whether it ends
        /// `at_once` then.
        fn follow(&mut self, table: &Table, at_once: bool) -> bool {
            COUNTS.iter().zip(table).all(|(&before, &after)| {
                let expected = Outcome {
                    at_once,
                    done: after.is_some(),
                    word: word(after.unwrap_or(before), 0),
                };
                (0..200)
                    .find_map(|_| self.meet(before, at_once).transpose())
                    .is_some_and(|outcome| outcome == Ok(expected))
            })
        }
    }

    /// ```text
    ///   CPU 0            CPU 1                CPU 2 (with a queue)
    ///   locks, count n
    ///                                         waits for the lock
    ///                    op begins, waits
    ///   count is n
    ///   unlocks
    ///                                         locks, unlocks
    ///                    op follows its table,
    ///                    the lock is free
    /// ```
    fn waits<P: Policy>(op: Op<P>, table: &Table, queue: bool) -> bool {
        Cast::new(op, queue).is_ok_and(|mut cast| cast.follow(table, false))
    }

    /// ```text
    ///   CPU 0            CPU 1                CPU 2 (with a queue)
    ///   locks, count n
    ///                                         waits for the lock
    ///                    op is refused
    ///   count is n
    ///   unlocks
    ///                                         locks, unlocks
    /// ```
    fn is_refused_at_once<P: Policy>(op: Op<P>, queue: bool) -> bool {
        Cast::new(op, queue).is_ok_and(|mut cast| cast.follow(&[None; COUNTS.len()], true))
    }

    fn operations_meet_a_holder<P: Policy>(queue: bool) -> bool {
        if machine::cpu_count() < 2 + u32::from(queue) {
            // They cannot.
            return true;
        }
        let mut ok = waits::<P>(
            |l| {
                l.get();
                true
            },
            &GET,
            queue,
        );
        ok &= waits::<P>(|l| l.get_not_zero(), &GET_NOT_ZERO, queue);
        ok &= waits::<P>(|l| l.get_not_dead(), &GET_NOT_DEAD, queue);
        ok &= waits::<P>(|l| l.put_or_lock().is_none(), &PUT_OR_LOCK, queue);
        ok &= is_refused_at_once::<P>(|l| l.put_return().is_some(), queue);
        let uses: [Op<P>; ADD_UNLESS.len()] = [
            |l| l.add_unless(1, -1),
            |l| l.add_unless(1, 0),
            |l| l.add_unless(-1, 1),
            |l| l.add_unless(-1, i32::MAX),
        ];
        for (op, (_, table)) in uses.into_iter().zip(&ADD_UNLESS) {
            ok &= if P::WAIT_FOR_UNLOCK {
                waits(op, table, queue)
            } else {
                is_refused_at_once(op, queue)
            };
        }
        ok
    }

    #[test]
    fn b25_operations_meet_a_holder() {
        assert!(operations_meet_a_holder::<C73>(false));
    }

    #[test]
    fn b25_operations_meet_a_holder_and_a_waiter() {
        assert!(operations_meet_a_holder::<C73>(true));
    }

    #[test]
    fn b25_operations_as_posted_meet_a_holder() {
        assert!(operations_meet_a_holder::<Rfc2>(false));
    }

    #[test]
    fn b25_operations_as_posted_meet_a_holder_and_a_waiter() {
        assert!(operations_meet_a_holder::<Rfc2>(true));
    }

    /// ```text
    ///   CPU 0                 CPU 1
    ///   locks, count 0
    ///   marks it dead
    ///   unlocks
    ///                         get_not_dead, get_not_zero: refused
    ///                         put_return: refused
    ///                         put_or_lock: refused, has the lock
    ///                         a stray get: -127, still refused
    /// ```
    #[test]
    fn b26_the_dead_are_not_revived() {
        stack_pin_init!(let lockref = LockRef::<C73>::new(c"test", static_lock_class!()));
        lockref.lock().set_count(0);
        assert!(!lockref.is_dead() && lockref.is_dead_or_zero());
        assert!(!lockref.get_not_zero() && lockref.get_not_dead());
        lockref.lock().set_count(0);

        lockref.lock().mark_dead();
        assert!(lockref.count() == -128 && lockref.is_dead() && lockref.is_dead_or_zero());
        assert!(!lockref.get_not_dead() && !lockref.get_not_zero());
        assert!(lockref.put_return().is_none() && lockref.put_or_lock().is_some());
        lockref.get();
        assert!(lockref.count() == -127 && !lockref.is_dead() && !lockref.is_dead_or_zero());
        assert!(!lockref.get_not_dead() && !lockref.get_not_zero());
        assert!(lockref.put_return().is_none() && lockref.put_or_lock().is_some());
        assert!(lockref.count() == -127);
    }

    #[test]
    fn the_last_reference_comes_with_the_lock() {
        stack_pin_init!(let object = RefLock::<u32>::new(7, c"test", static_lock_class!()));
        assert!(object.get_not_zero().is_none());
        let Some(first) = object.get() else {
            return;
        };
        let second = first.clone();
        assert!(object.count() == 2);
        assert!(first.put().is_none() && object.count() == 1);
        *second.lock() += 1;
        // Dropped, the object stays, without references.
        drop(second);
        assert!(object.count() == 0);
        let last = object.get().and_then(Ref::put);
        assert!(last
            .as_ref()
            .is_some_and(|last| ***last == 8 && last.count() == 1));
        drop(last);
        assert!(object.count() == 0);
        // Killed, it accepts no more.
        if let Some(last) = object.get().and_then(Ref::put) {
            *last.kill() = 9;
        }
        assert!(object.count() < 0 && object.get().is_none());
        assert!(*object.lock() == 9);
    }
}
