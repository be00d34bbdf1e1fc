// SPDX-License-Identifier: GPL-2.0

//! Who waits for a read-write semaphore: those who spin and those who sleep. Shared by both.
//!
//! C counterpart: the waiter and wake-up parts of
//! [`kernel/locking/rwsem.c`](srctree/kernel/locking/rwsem.c).
//!
//! # Protocol
//!
//! A task that has to sleep puts a [`Waiter`] on its stack and enters it at the tail of the ring.
//! A reader sleeps until it is granted the lock: by then whoever granted it has its share in the
//! count and has taken it out of the ring. A writer takes the lock itself when it is woken, and
//! leaves the ring itself.
//!
//! # Invariants
//!
//! 1. Ring and links are touched under the wait lock only; `first` alone may be read without, as
//!    a hint.
//! 2. A waiter in the ring, or taken out of it to be granted, is alive: its task leaves the frame
//!    that holds it only when it was granted or has taken it out itself, under the wait lock.
//! 3. A grant is the last access to its waiter: its frame may be gone right after.

use crate::{
    kapi::{
        annotate::lock_name,
        cell::LockCell,
        clock::{
            Jiffies,
            HANDOFF_JIFFIES, //
        },
        events::event_set,
        raw_spinlock::{
            self,
            Interrupts,
            Irq,
            IrqSave,
            RawSpinLock, //
        },
        stall::stall,
        task::{
            self,
            Sleep,
            Task, //
        },
        wake_q::WakeQ, //
    },
    osq::Osq, //
};
use core::ptr;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        static_lock_class, //
    }, //
};

event_set! {
    /// What the slow paths of a read-write semaphore count; the names are those of
    /// [`kernel/locking/lock_events_list.h`](srctree/kernel/locking/lock_events_list.h) without
    /// their prefix.
    pub enum Event {
        /// A reader slept.
        SleepReader = "sleep_reader",
        /// A writer slept.
        SleepWriter = "sleep_writer",
        /// A reader was granted the lock and woken.
        WakeReader = "wake_reader",
        /// A writer was woken.
        WakeWriter = "wake_writer",
        /// A spinning writer took the lock.
        OptLock = "opt_lock",
        /// A spinner gave up.
        OptFail = "opt_fail",
        /// Spinning was not tried: another task was to run, or the owner did not run or was not
        /// known.
        OptNospin = "opt_nospin",
        /// A reader got the lock after having queued.
        Rlock = "rlock",
        /// A writer got the lock after having queued.
        Wlock = "wlock",
        /// A wait was given up because of a signal.
        Cancel = "cancel",
        /// A spinner took the lock while tasks queued.
        Steal = "steal",
        /// A wake-up was left to a writer that had the lock again.
        WakeAborted = "wake_aborted",
        /// A wake-up was left to a spinner, since someone else had the wait lock.
        WakeTrylockFailed = "wake_trylock_failed",
        /// A spinner gave up because readers outlasted its patience.
        ReaderSpinExhausted = "reader_spin_exhausted",
        /// A spinning reader took the lock.
        ReaderOptLock = "reader_opt_lock",
        /// A woken writer left the queue to spin.
        Respin = "respin",
        /// It got nothing and queued again, at the tail.
        Requeue = "requeue",
        /// A reschedule was due when a spin ended, and was left to the next preemption point.
        ReschedLeft = "resched_left",
        /// A reader joined others although tasks queued.
        RlockSteal = "rlock_steal",
        /// A reader found the lock free after all when it was about to queue.
        RlockFast = "rlock_fast",
        /// A reader that waited for long was promised the lock.
        RlockHandoff = "rlock_handoff",
        /// A writer that waited for long was promised the lock.
        WlockHandoff = "wlock_handoff",
        /// The lock went to the waiter to which it was promised.
        HandoffGranted = "handoff_granted",
        /// A spinner gave up because the lock was promised to a waiter.
        OptHandoff = "opt_handoff",
        /// A reader found more readers than the count has room for.
        Overflow = "overflow",
        /// A lock was given up that the task cannot have held: builds of `make DEBUG=1` look.
        CheckFailed = "check_failed",
    }
}

/// What a waiter waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// To share the lock.
    Reader,
    /// To have it alone.
    Writer,
}

/// Whom to wake.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Whoever waits longest.
    Any,
    /// Readers only.
    Readers,
    /// Readers only, and the waker itself is one: no writer can have the lock.
    ReadersBesideUs,
}

/// Which readers a wake-up grants the lock to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Those that came before the first writer.
    BeforeFirstWriter,
    /// So many, whatever writers came before them: a phase of readers.
    UpTo(u32),
}

/// Readers that were taken out of the ring to be granted the lock.
#[must_use = "who is in no ring sleeps until it is granted the lock"]
pub(crate) struct Batch {
    /// How many.
    pub(crate) readers: u32,
    /// The first of them. So many are linked by their `next`.
    first: *const Waiter,
}

/// A task in the ring, on a cache line of its own: who walks the ring fetches one line a waiter. The
/// places of its members are what `scripts/drgn-lock` knows.
#[repr(C, align(64))]
pub(crate) struct Waiter {
    pub(crate) task: Task,
    pub(crate) kind: Kind,
    since: Jiffies,
    granted: Atomic<u32>,
    pub(crate) handoff: Atomic<u32>,
    pub(crate) next: LockCell<*const Waiter>,
    prev: LockCell<*const Waiter>,
}

impl Waiter {
    /// The running task, not in any ring.
    pub(crate) fn new(kind: Kind) -> Self {
        stall!(SP4);
        Self {
            task: Task::current(),
            kind,
            since: Jiffies::now(),
            granted: Atomic::new(0),
            handoff: Atomic::new(0),
            next: LockCell::new(ptr::null()),
            prev: LockCell::new(ptr::null()),
        }
    }

    /// The task that waits.
    pub(crate) fn task(&self) -> Task {
        self.task
    }

    /// What it waits for.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it has waited for longer than others may pass it over.
    pub(crate) fn has_waited_long(&self) -> bool {
        self.since.elapsed() > HANDOFF_JIFFIES
    }

    /// Whether the lock is promised to it.
    pub(crate) fn has_handoff(&self) -> bool {
        // Relaxed: changes under the wait lock; its task looks without, and then tries under it.
        self.handoff.load(Relaxed) != 0
    }

    fn is_granted(&self) -> bool {
        // ORDERING: Acquire pairs with the release in `WaitGuard::grant`: what was done
        // under the lock before the grant is seen after it.
        self.granted.load(Acquire) != 0
    }
}

/// A waiter as someone else sees it.
#[derive(Clone, Copy)]
pub(crate) struct WaiterLook {
    /// The number of its task.
    pub(crate) pid: i32,
    pub(crate) kind: Kind,
    pub(crate) waited_ms: usize,
    /// Whether the lock is promised to it.
    pub(crate) handoff: bool,
}

/// A ring as someone else sees it.
pub(crate) struct RingLook {
    /// How many wait.
    pub(crate) waiters: usize,
    /// Those who wait longest.
    pub(crate) first: [Option<WaiterLook>; Self::MOST],
}

impl RingLook {
    /// Of how many waiters more is told than that they are there.
    pub(crate) const MOST: usize = 16;
}

/// The spinners' queue and the sleepers' ring of one lock.
#[pin_data]
#[repr(C)]
pub(crate) struct WaitQueue {
    osq: Osq,
    #[pin]
    wait_lock: RawSpinLock,
    first: Atomic<*const Waiter>,
}

// SAFETY: Waiters are accessed under the wait lock, from whatever task.
unsafe impl Send for WaitQueue {}
// SAFETY: As above.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// Nobody spins or sleeps.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            osq: Osq::new(),
            wait_lock <- RawSpinLock::new(lock_name!(c"wait_lock"), static_lock_class!()),
            first: Atomic::new(ptr::null()),
        })
    }

    /// The spinners' queue.
    #[inline(always)]
    pub(crate) fn osq(&self) -> &Osq {
        &self.osq
    }

    /// The wait lock, for those who only look at it.
    pub(crate) fn wait_lock(&self) -> &RawSpinLock {
        &self.wait_lock
    }

    /// Whether someone sleeps: a hint.
    pub(crate) fn is_contended(&self) -> bool {
        // Relaxed: out of date as soon as it is read.
        !self.first.load(Relaxed).is_null()
    }

    /// Locks the ring, in a task that may sleep.
    pub(crate) fn lock(&self) -> WaitGuard<'_, Irq> {
        WaitGuard {
            queue: self,
            _lock: self.wait_lock.lock_irq(),
        }
    }

    /// Locks the ring in any context, if nobody else has.
    pub(crate) fn try_lock_irqsave(&self) -> Option<WaitGuard<'_, IrqSave>> {
        Some(WaitGuard {
            queue: self,
            _lock: self.wait_lock.try_lock_irqsave()?,
        })
    }

    /// Locks the ring, in any context.
    pub(crate) fn lock_irqsave(&self) -> WaitGuard<'_, IrqSave> {
        stall!(SP3);
        WaitGuard {
            queue: self,
            _lock: self.wait_lock.lock_irqsave(),
        }
    }

    /// Sleeps until `waiter`, a reader in the ring, is granted the lock. When a signal comes first,
    /// the wait lock, held, for taking it out.
    pub(crate) fn sleep_until_granted(
        &self,
        waiter: &Waiter,
        sleep: Sleep,
        mut on_sleep: impl FnMut(),
    ) -> core::result::Result<(), WaitGuard<'_, Irq>> {
        loop {
            sleep.prepare();
            if waiter.is_granted() {
                break;
            }
            if sleep.signal_pending() {
                task::set_running();
                let ring = self.lock();
                if !waiter.is_granted() {
                    return Err(ring);
                }
                break;
            }
            task::schedule();
            on_sleep();
        }
        task::set_running();
        Ok(())
    }
}

/// The ring, locked.
#[must_use = "the ring is unlocked at once when the guard is unused"]
pub(crate) struct WaitGuard<'a, I: Interrupts> {
    queue: &'a WaitQueue,
    _lock: raw_spinlock::Guard<'a, I>,
}

impl<I: Interrupts> WaitGuard<'_, I> {
    /// Who waits longest.
    pub(crate) fn first(&self) -> Option<&Waiter> {
        // Relaxed: under the wait lock (invariant 1).
        // SAFETY: Null or a waiter in the ring, which is alive (invariant 2).
        unsafe { self.queue.first.load(Relaxed).as_ref() }
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// Whether `waiter` waits longest.
    pub(crate) fn is_first(&self, waiter: &Waiter) -> bool {
        self.first().is_some_and(|first| ptr::eq(first, waiter))
    }

    /// Whether exactly one waits.
    pub(crate) fn is_singular(&self) -> bool {
        self.first()
            // SAFETY: Under the wait lock (invariant 1).
            .is_some_and(|first| ptr::eq(unsafe { first.next.get() }, first))
    }

    fn set_first(&mut self, waiter: *const Waiter) {
        // Relaxed: under the wait lock, or a hint (invariant 1).
        self.queue.first.store(waiter, Relaxed);
    }

    /// Enters `waiter` at the end.
    ///
    /// # Safety
    ///
    /// It is in no ring, and stays where it is until it was granted or removed.
    pub(crate) unsafe fn push(&mut self, waiter: &Waiter) {
        // INVARIANT: 2, by the caller's contract.
        let this = ptr::from_ref(waiter);
        let (first, last) = match self.first() {
            // SAFETY: Under the wait lock (invariant 1), here and below.
            Some(first) => (ptr::from_ref(first), unsafe { first.prev.get() }),
            None => (this, this),
        };
        // SAFETY: As above; the links of a ring point to waiters in it (invariant 2), and those of
        // an empty one to `waiter` itself.
        unsafe {
            waiter.next.set(first);
            waiter.prev.set(last);
            (*first).prev.set(this);
            (*last).next.set(this);
        }
        if ptr::eq(first, this) {
            self.set_first(this);
        }
    }

    /// Takes `waiter`, which is in this ring, out of it.
    pub(crate) fn remove(&mut self, waiter: &Waiter) {
        // SAFETY: Under the wait lock (invariant 1); the links point to waiters in the ring
        // (invariant 2).
        let next = unsafe {
            let (next, prev) = (waiter.next.get(), waiter.prev.get());
            (*prev).next.set(next);
            (*next).prev.set(prev);
            next
        };
        if self.is_first(waiter) {
            let alone = ptr::eq(next, waiter);
            self.set_first(if alone { ptr::null() } else { next });
        }
    }

    /// Who waits, to be shown.
    pub(crate) fn look(&self) -> RingLook {
        let mut look = RingLook {
            waiters: 0,
            first: [None; RingLook::MOST],
        };
        let Some(first) = self.first() else {
            return look;
        };
        let mut waiter = first;
        loop {
            if let Some(slot) = look.first.get_mut(look.waiters) {
                *slot = Some(WaiterLook {
                    // SAFETY: In the ring: its task is alive.
                    pid: unsafe { waiter.task.pid() },
                    kind: waiter.kind,
                    waited_ms: waiter.since.elapsed_ms(),
                    handoff: waiter.has_handoff(),
                });
            }
            look.waiters = look.waiters.wrapping_add(1);
            // SAFETY: Under the wait lock (invariant 1), links point into the ring (invariant 2).
            waiter = unsafe { &*waiter.next.get() };
            if ptr::eq(waiter, first) {
                return look;
            }
        }
    }

    /// Whether the lock is promised to the first waiter.
    pub(crate) fn first_has_handoff(&self) -> bool {
        self.first().is_some_and(Waiter::has_handoff)
    }

    /// Promises the lock to the first waiter.
    pub(crate) fn promise_to_first(&mut self) {
        if let Some(first) = self.first() {
            // Relaxed: as in `has_handoff`.
            first.handoff.store(1, Relaxed);
        }
    }

    /// Takes the readers out of the ring that are to be granted the lock now.
    ///
    /// Taking one out writes to the next before that is looked at: its line, which the grant is going
    /// to write, comes over once and not twice.
    pub(crate) fn take_readers(&mut self, which: Readers) -> Batch {
        let mut batch = Batch {
            readers: 0,
            first: ptr::null(),
        };
        let Some(first) = self.first().map(ptr::from_ref) else {
            return batch;
        };
        let mut taken = ptr::null::<Waiter>();
        let mut next = first;
        // SAFETY: Under the wait lock (invariant 1).
        let last = unsafe { (*first).prev.get() };
        loop {
            // SAFETY: In the ring (invariant 2).
            let waiter = unsafe { &*next };
            // SAFETY: Under the wait lock (invariant 1).
            next = unsafe { waiter.next.get() };
            match (waiter.kind, which) {
                (Kind::Reader, Readers::UpTo(most)) if batch.readers == most => return batch,
                (Kind::Reader, _) => {
                    self.remove(waiter);
                    if taken.is_null() {
                        batch.first = waiter;
                    } else {
                        // SAFETY: Taken above and not granted yet: alive. As above.
                        unsafe { (*taken).next.set(waiter) };
                    }
                    taken = waiter;
                    batch.readers = batch.readers.wrapping_add(1);
                }
                (Kind::Writer, Readers::UpTo(_)) => {}
                (Kind::Writer, Readers::BeforeFirstWriter) => return batch,
            }
            if ptr::eq(waiter, last) {
                return batch;
            }
        }
    }

    /// Grants the lock to the readers of `batch`, whose shares are in the count already, and collects
    /// whom to wake.
    pub(crate) fn grant(&mut self, batch: Batch, wakes: &mut WakeQ) {
        let mut next = batch.first;
        for _ in 0..batch.readers {
            // SAFETY: Taken out of the ring and not granted yet: alive until its grant below.
            let waiter = unsafe { &*next };
            // SAFETY: Under the wait lock (invariant 1).
            next = unsafe { waiter.next.get() };
            // SAFETY: The task sleeps in the slow path: alive. The reference keeps it so after the
            // grant, when it may return from there and exit.
            let task = unsafe { waiter.task.get() };
            // INVARIANT: 3.
            // ORDERING: Release pairs with the acquire in `is_granted`. It comes before the
            // wake-up: `WakeQ::add` is a full barrier.
            waiter.granted.store(1, Release);
            wakes.add(task);
            stall!(SP2);
        }
    }

    /// Wakes the first waiter, which stays in the ring: a writer takes the lock itself.
    pub(crate) fn wake_first(&self, wakes: &mut WakeQ) {
        if let Some(first) = self.first() {
            // SAFETY: In the ring: its task is alive.
            unsafe { wakes.add_alive(first.task) };
        }
    }
}
