// SPDX-License-Identifier: GPL-2.0

//! What both read-write semaphores have in common: their words and their entry points, which are the
//! protocol's operations with what debuggers are told around them.
//!
//! C counterpart: the second half of [`kernel/locking/rwsem.c`](srctree/kernel/locking/rwsem.c).
//!
//! A file of a semaphore has the protocol ([`Protocol`]): what the count means, who may have the
//! lock, whom to wake. Whatever is the same for all of them stands here: the words ([`Words`]), what
//! a variant is ([`Policy`]), lockdep's annotations, `might_sleep`, the forms for nesting and for
//! locks that one task takes and another gives up. All annotations are empty on kernels without
//! those options.
//!
//! The functions are not inlined: each lock has one copy of each, as in C, so that a module that
//! takes locks in many places does not carry the fast path in each.

use crate::{
    kapi::{
        annotate::{
            self,
            might_sleep,
            Blocked,
            DepMap,
            Mode,
            Taking, //
        },
        check::check,
        events::Events,
        raw_spinlock::Interrupts,
        task::{
            Sleep,
            Task, //
        },
        wake_q::WakeQ, //
    },
    rwlock::{
        RawRwLock,
        RawRwSem, //
    },
    spin::{
        Owner,
        OwnerLook,
        OwnerWord,
        Spun, //
    },
    waiters::{
        Event,
        RingLook,
        WaitGuard,
        WaitQueue,
        Wake, //
    }, //
};
use core::{
    marker::PhantomData,
    ops::Deref,
    pin::Pin, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Ordering,
            Acquire,
            Atomic,
            Relaxed, //
        },
        LockClassKey, //
    }, //
};

/// What the file of a semaphore is written in.
pub(crate) mod prelude {
    pub(crate) use super::{
        policies,
        semaphore,
        spin_event,
        Holders,
        Protocol,
        Wakes,
        Word,
        Words, //
    };
    pub(crate) use crate::{
        kapi::{
            annotate::{
                self,
                Mode, //
            },
            check::check,
            events::{
                events,
                Events, //
            },
            preempt::{
                self,
                PreemptDisabled,
                PreemptGuard, //
            },
            raw_spinlock::{
                Interrupts,
                Irq, //
            },
            task::{
                self,
                Sleep,
                Task, //
            },
            wake_q::WakeQ, //
        },
        osq::Osq,
        spin::{
            self,
            Owner,
            OwnerWord,
            Patience,
            Spinnable,
            Spun,
            Try, //
        },
        waiters::{
            Event,
            Kind,
            Readers,
            WaitGuard,
            Waiter,
            Wake, //
        }, //
    };
    pub(crate) use core::{
        marker::PhantomData,
        ops::Deref,
        pin::Pin, //
    };
    pub(crate) use kernel::{
        prelude::*,
        sync::{
            atomic::{
                Acquire,
                Full,
                Relaxed,
                Release, //
            },
            barrier::{
                self,
                smp_mb, //
            },
            LockClassKey, //
        }, //
    };
}

/// A variant of a semaphore, as a type: what is off costs nothing.
pub trait Policy: Send + Sync + 'static {
    /// What variants of this semaphore can differ in.
    type Features;

    /// The name under which the harness knows it.
    const NAME: &'static CStr;

    /// What it does.
    const FEATURES: Self::Features;

    /// Counts what happens in the slow paths.
    #[doc(hidden)]
    const EVENTS: &'static Events<Event>;
}

/// Declares policies of a semaphore whose file has a type `Features`.
macro_rules! policies {
    ($(
        $(#[$doc:meta])*
        $policy:ident = $name:literal: $features:expr;
    )*) => {$(
        $(#[$doc])*
        pub struct $policy;

        impl $crate::semaphore::Policy for $policy {
            type Features = Features;

            const NAME: &'static CStr = $name;
            const FEATURES: Features = $features;
            const EVENTS: &'static Events<Event> = {
                static EVENTS: Events<Event> = events!(Event);
                &EVENTS
            };
        }
    )*};
}
pub(crate) use policies;

/// A value of a semaphore's count.
pub trait Word: Copy {
    /// The value as a number.
    fn raw(self) -> i64;

    /// The value that is this number.
    fn from_raw(raw: i64) -> Self;
}

/// The words of a semaphore with a count `C`: 32 bytes without debug options. Count and owner share a
/// line and come first, where the kernel's hung-task report looks for them.
#[pin_data]
#[repr(C)]
pub struct Words<C> {
    pub(crate) count: Atomic<i64>,
    pub(crate) owner: OwnerWord,
    #[pin]
    pub(crate) queue: WaitQueue,
    #[pin]
    pub(crate) dep_map: DepMap,
    _count: PhantomData<C>,
}

impl<C: Word> Words<C> {
    /// Those of a free lock, known to lockdep by `name` and `key`.
    pub(crate) fn new(
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            count: Atomic::new(0),
            owner: OwnerWord::new(),
            queue <- WaitQueue::new(),
            dep_map <- DepMap::new(name, key),
            _count: PhantomData,
        })
    }

    /// Whether someone has the lock, waits for it, or has just tried to take it: a hint.
    pub fn is_locked(&self) -> bool {
        self.load().raw() != 0
    }

    /// Whether someone sleeps for the lock: a hint.
    pub fn is_contended(&self) -> bool {
        self.queue.is_contended()
    }

    #[inline(always)]
    pub(crate) fn load(&self) -> C {
        // Relaxed: who acts on it does so by a read-modify-write that decides.
        C::from_raw(self.count.load(Relaxed))
    }

    /// Adds to the count, which is `(before, after)`.
    #[inline(always)]
    pub(crate) fn add<O: Ordering>(&self, bias: i64, ordering: O) -> (C, C) {
        let before = self.count.fetch_add(bias, ordering);
        (C::from_raw(before), C::from_raw(before.wrapping_add(bias)))
    }

    /// Takes the lock by the transition `step`, as long as that allows it: the word before, or the
    /// one with which it does not.
    #[inline(always)]
    pub(crate) fn try_take(&self, step: impl Fn(C) -> Option<C>) -> Result<C, C> {
        let mut count = self.load();
        while let Some(new) = step(count) {
            // ORDERING: Acquire pairs with the release in `read_unlock`, `write_unlock` and
            // `downgrade`.
            match self.count.cmpxchg(count.raw(), new.raw(), Acquire) {
                Ok(_) => return Ok(count),
                Err(now) => count = C::from_raw(now),
            }
        }
        Err(count)
    }
}

/// Who has a lock and what its count tells of those who wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holders {
    /// A writer has it.
    pub writer: bool,
    /// So many readers have it, or have left a share in the count that they are going to undo.
    pub readers: u64,
    /// Tasks wait.
    pub waiters: bool,
    /// It is promised to one of them.
    pub handoff: bool,
}

impl Holders {
    /// Whether anyone has the lock.
    pub fn any(self) -> bool {
        self.writer || self.readers != 0
    }
}

/// A semaphore as someone else sees it.
pub(crate) struct Look {
    pub(crate) count: i64,
    pub(crate) holders: Holders,
    pub(crate) owner: OwnerLook,
    /// The CPU that joined the spinners last, if there are any.
    pub(crate) spinner: Option<u32>,
    /// Who sleeps.
    pub(crate) ring: Option<RingLook>,
    /// The count fits those who sleep, if these are told.
    pub(crate) agrees: bool,
}

/// Looks at `lock` with the wait lock held, under which ring, flags and grants change; without, when
/// that is taken: then the ring is not told. It never waits, and changes nothing.
pub(crate) fn look<L: Protocol>(lock: &L) -> Look {
    let guard = lock.queue.try_lock_irqsave();
    let ring = guard.as_ref().map(WaitGuard::look);
    let queued = ring
        .as_ref()
        .map_or_else(|| lock.is_contended(), |ring| ring.waiters != 0);
    let count = lock.load();
    Look {
        count: count.raw(),
        holders: L::holders(count, queued),
        owner: lock.owner.look(),
        spinner: lock.queue.osq().last_cpu(),
        agrees: ring.is_none() || L::agrees(count, queued),
        ring,
    }
}

/// Declares the semaphore of a file, which has a trait `Policy`: its type, and that of its count.
macro_rules! semaphore {
    ($(#[$doc:meta])* $semaphore:ident, $(#[$count_doc:meta])* $count:ident) => {
        $(#[$doc])*
        #[pin_data]
        #[repr(transparent)]
        pub struct $semaphore<P: Policy> {
            #[pin]
            words: Words<$count>,
            _policy: PhantomData<P>,
        }

        impl<P: Policy> $semaphore<P> {
            /// A free lock, known to lockdep by `name` and `key`.
            pub fn new(
                name: &'static CStr,
                key: Pin<&'static LockClassKey>,
            ) -> impl PinInit<Self, Error> {
                try_pin_init!(Self {
                    words <- Words::new(name, key),
                    _policy: PhantomData,
                })
            }
        }

        impl<P: Policy> Deref for $semaphore<P> {
            type Target = Words<$count>;

            #[inline(always)]
            fn deref(&self) -> &Words<$count> {
                &self.words
            }
        }

        $(#[$count_doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $count(i64);

        impl Word for $count {
            #[inline(always)]
            fn raw(self) -> i64 {
                self.0
            }

            #[inline(always)]
            fn from_raw(raw: i64) -> Self {
                Self(raw)
            }
        }
    };
}
pub(crate) use semaphore;

/// What the end of a spin is counted as; `taken` is for one with the lock.
pub(crate) fn spin_event(spun: Spun, taken: Event) -> Event {
    match spun {
        Spun::Taken => taken,
        Spun::GaveUp => Event::OptFail,
        Spun::Exhausted => Event::ReaderSpinExhausted,
        Spun::Promised => Event::OptHandoff,
        Spun::NotTried => Event::OptNospin,
    }
}

/// Runs `wait`, in which the running task waits for `lock`. Tracers are told, and a report that the
/// task hangs names the lock's owner (not if a signal can end the wait: such tasks never hang).
#[inline(always)]
pub(crate) fn waiting<L: Protocol>(
    lock: &L,
    mode: Mode,
    sleep: Sleep,
    wait: impl FnOnce() -> Result,
) -> Result {
    let words: &Words<L::Count> = lock;
    annotate::contended(lock, mode, || {
        // SAFETY: The words begin with count and owner, and are borrowed here.
        let _blocked =
            (sleep == Sleep::Uninterruptible).then(|| unsafe { Blocked::on(words, mode) });
        wait()
    })
}

/// Waking those who wait for a semaphore.
pub(crate) trait Wakes: Protocol {
    /// Collects into `wakes` who can go on of those whom `whom` says; readers are granted the lock.
    fn mark_wake<I: Interrupts>(&self, ring: &mut WaitGuard<'_, I>, whom: Wake, wakes: &mut WakeQ);

    /// Wakes `whom` from the ring, after unlocking it.
    fn wake_from<I: Interrupts>(&self, mut ring: WaitGuard<'_, I>, whom: Wake) {
        let mut wakes = WakeQ::new();
        self.mark_wake(&mut ring, whom, &mut wakes);
        drop(ring);
        wakes.wake_all();
    }

    /// Wakes from the ring after a downgrade.
    #[cold]
    #[inline(never)]
    fn wake_readers_beside_us(&self) {
        annotate::contended_release(self);
        self.wake_from(self.queue.lock_irqsave(), Wake::ReadersBesideUs);
    }
}

/// The operations of a read-write semaphore, without annotations.
///
/// # Safety
///
/// As [`RawRwLock`]: whoever has taken the lock for writing by one of these is alone until it
/// gives the lock up, with acquire and release.
pub unsafe trait Protocol: Deref<Target = Words<Self::Count>> + Send + Sync + Sized {
    /// Its count.
    type Count: Word;

    /// A free lock.
    fn init(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error>;

    /// Counts what happens in the slow paths.
    #[doc(hidden)]
    const EVENTS: &'static Events<Event>;

    /// Whether readers can have the lock when the count is that, and the owner word says `marked`,
    /// that readers were the last to take it.
    fn may_be_read(count: Self::Count, marked: bool) -> bool;

    /// Whether a writer can have the lock when the count is that.
    fn may_be_written(count: Self::Count) -> bool;

    /// What `count` says when tasks do or do not wait in the ring.
    fn holders(count: Self::Count, queued: bool) -> Holders;

    /// Whether it can say that then, under the wait lock, as far as it tells of those who wait.
    fn agrees(count: Self::Count, queued: bool) -> bool;

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

/// In builds with checks: the lock, about to be given up, is held, for writing by this task.
#[inline(always)]
fn check_held<L: Protocol>(lock: &L, mode: Mode) {
    check(
        || {
            let (count, owner) = (lock.load(), lock.owner.load());
            match mode {
                Mode::Read => L::may_be_read(count, owner.is_reader()),
                Mode::Write => L::may_be_written(count) && owner == Owner::writer(Task::current()),
            }
        },
        || L::EVENTS.inc(Event::CheckFailed),
    );
}

/// Takes the lock by `take`; where the kernel keeps lock statistics, only if `try_take` does not, so
/// that they see who had to wait: C's `LOCK_CONTENDED()`.
#[inline(always)]
fn counted<L: Protocol>(
    lock: &L,
    try_take: impl FnOnce(&L) -> bool,
    take: impl FnOnce(&L) -> Result,
) -> Result {
    if DepMap::HAS_STATISTICS {
        if try_take(lock) {
            return Ok(());
        }
        lock.dep_map.not_free();
    }
    take(lock)
}

#[inline(always)]
fn down_read<L: Protocol>(lock: &L, sleep: Sleep, subclass: u32) -> Result {
    might_sleep();
    lock.dep_map
        .taking(Mode::Read, Taking::Waits, subclass, || {
            counted(lock, L::try_read_lock, |lock| lock.read_lock(sleep))
        })
}

#[inline(always)]
fn down_write<L: Protocol>(lock: &L, sleep: Sleep, subclass: u32) -> Result {
    might_sleep();
    lock.dep_map
        .taking(Mode::Write, Taking::Waits, subclass, || {
            counted(lock, L::try_write_lock, |lock| lock.write_lock(sleep))
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
            .then(|| self.dep_map.taken_at_once(Mode::Read))
    }

    #[inline(never)]
    unsafe fn up_read(&self, _token: ()) {
        check_held(self, Mode::Read);
        self.dep_map.giving_up();
        self.read_unlock();
    }

    #[inline(never)]
    fn down_write(&self) {
        // An uninterruptible wait has no failure.
        let _ = down_write(self, Sleep::Uninterruptible, 0);
    }

    #[inline(never)]
    unsafe fn up_write(&self) {
        check_held(self, Mode::Write);
        self.dep_map.giving_up();
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
            self.dep_map.taken_at_once(Mode::Write);
        }
        taken
    }

    #[inline(never)]
    unsafe fn downgrade_write(&self) {
        check_held(self, Mode::Write);
        self.dep_map.downgrading();
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
        check_held(self, Mode::Read);
        self.read_unlock();
    }
}
