// SPDX-License-Identifier: GPL-2.0

//! A reader-writer semaphore whose readers share nothing: each counts on its own CPU, and writers do
//! the work of finding out that none is left.
//!
//! C counterpart: [`kernel/locking/percpu-rwsem.c`](srctree/kernel/locking/percpu-rwsem.c).
//!
//! # Protocol
//!
//! As long as the gate is idle, a reader adds 1 to the count of its CPU and is in. A writer enters
//! the gate, which makes all readers take the slow path; claims the block word; and waits until the
//! sum of the counts is 0. A reader on the slow path adds 1 too, but then looks at the block word: if
//! it is claimed, the reader takes its 1 back, has the writer look at the sum again, and queues.
//!
//! Who finds the block word claimed queues, and is granted the lock by who gives it up: that one
//! tries, on behalf of the first in the queue, what the sleeper would try, and goes on until it has
//! let in one writer or a try fails. Others may be faster than the first in the queue, but none
//! overtakes another in it.
//!
//! Besides readers and writers there are excluders ([`PercpuRwSem::exclude_readers`]): they share the
//! lock with each other and exclude readers and writers. The first of them drains the readers; who
//! comes before that is done queues.
//!
//! | block word | meaning |
//! |---|---|
//! | bit 0 | tasks queue |
//! | bit 1 | a writer has claimed the lock |
//! | bit 2 | the readers that the excluders found are gone |
//! | bits 3 to 31 | excluders that have claimed the lock |
//!
//! # Invariants
//!
//! 1. Bit 0 is set whenever the queue is not empty and its lock is not held. With bit 0 set, the lock
//!    is claimed, or someone who has given it up is about to look at the queue.
//! 2. Links and ends of the queue are touched under its lock only. A waiter in it is alive, and its
//!    grant is the last access to it: its frame may be gone right after.
//! 3. Only who claimed the lock last uses the drain slot, and empties it before it goes on.
//! 4. The parts of the count may be anything, their sum is the number of readers, and for a moment
//!    that of those who back out.
//!
//! # Memory ordering
//!
//! On the fast path there is none, the gate's grace periods do it. On the slow path, with C's names:
//!
//! | | here | there | so that |
//! |---|---|---|---|
//! | A | reader: count up, full barrier, look at block | D | either sees the other: the reader backs out, or the writer waits for it |
//! | D | writer: claim block (full), sum | A | |
//! | B | reader: section, full barrier, count down | C | who sees the sum at 0 sees all sections |
//! | C | writer: sum by acquires, section | B | |
//! | E | reader: count down, full barrier, look at drain slot | F | either sees the other: the reader wakes the writer, or the writer sees the count |
//! | F | writer: drain slot, task state (full), sum | E | |
//!
//! # Differences from C
//!
//! A release looks at the queue only if the word that it has just changed says that tasks wait in it,
//! where C takes the queue's lock each time; and a writer that finds no reader goes on without first
//! declaring itself asleep. C is an acquire, not a full barrier. A pair of warm writes has 4 locked
//! operations, where C's has 6 and a barrier. Also new are excluders, gates that several locks share,
//! and other gates than [`RcuSync`].

use crate::{
    kapi::{
        annotate::{
            self,
            lock_name,
            DepMap,
            Mode,
            Taking, //
        },
        cell::LockCell,
        events::{
            event_set,
            events,
            Events, //
        },
        percpu_alloc::Counter,
        preempt::{
            self,
            PreemptDisabled,
            PreemptGuard, //
        },
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
        wait,
        wake_q::WakeQ, //
    },
    rcu_sync::{
        CounterGate,
        Expedited,
        Fenced,
        Normal,
        RcuSync,
        ReaderGate,
        Sched, //
    },
    rwlock::{
        Locked,
        RawRwLock, //
    }, //
};
use core::{
    marker::PhantomData,
    ops::Deref,
    ptr, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        barrier::{
            self,
            smp_mb, //
        },
        static_lock_class,
        LockClassKey, //
    }, //
};

event_set! {
    /// What the slow paths count.
    pub enum Event {
        /// A reader found the gate closed.
        ReadSlow = "read_slow",
        /// A reader queued.
        ReadQueue = "read_queue",
        /// A trylock failed.
        ReadTryFailed = "read_try_failed",
        /// A writer or an excluder queued.
        WriteQueue = "write_queue",
        /// A writer or an excluder waited for readers.
        WriteDrain = "write_drain",
        /// A waiter was granted the lock.
        Grant = "grant",
        /// A waiter could not be granted the lock, someone else was faster.
        GrantStolen = "grant_stolen",
        /// A lock was taken for writing.
        Write = "write",
        /// Readers were excluded.
        Exclude = "exclude",
    }
}

/// A value of the block word, see the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Block(u32);

const WAITERS: u32 = 1;
const WRITER: u32 = 1 << 1;
const DRAINED: u32 = 1 << 2;
const EXCLUDER: u32 = 1 << 3;

impl Block {
    const FREE: Self = Self(0);

    /// Whether tasks queue.
    #[inline(always)]
    fn has_waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    /// Whether someone has claimed the lock, so that readers must not enter.
    #[inline(always)]
    fn is_claimed(self) -> bool {
        self.0 & !WAITERS != 0
    }

    /// Whether that is a writer.
    fn is_written(self) -> bool {
        self.0 & WRITER != 0
    }

    /// A writer's claim.
    #[inline(always)]
    fn claim_write(self) -> Option<Self> {
        (!self.is_claimed()).then_some(Self(self.0 | WRITER))
    }

    /// An excluder's claim: alone, or beside others that have drained the readers.
    fn claim_exclude(self) -> Option<Self> {
        (!self.is_claimed() || self.0 & DRAINED != 0)
            // There are fewer tasks than the count has room for.
            .then_some(Self(self.0.wrapping_add(EXCLUDER)))
    }

    /// The same by one that has not queued, and overtakes nobody who has.
    fn claim_exclude_unqueued(self) -> Option<Self> {
        if self.has_waiters() {
            return None;
        }
        self.claim_exclude()
    }

    /// An excluder's end. The last one takes the mark along.
    fn end_exclude(self) -> Self {
        if self.0 < 2 * EXCLUDER {
            Self(self.0 & WAITERS)
        } else {
            Self(self.0.wrapping_sub(EXCLUDER))
        }
    }

    fn with_waiters(self) -> Self {
        Self(self.0 | WAITERS)
    }

    fn without_waiters(self) -> Self {
        Self(self.0 & !WAITERS)
    }
}

/// A lock as someone else sees it.
pub(crate) struct Look {
    /// The block word.
    pub(crate) block: u32,
    /// A writer has claimed the lock.
    pub(crate) writer: bool,
    /// So many excluders have.
    pub(crate) excluders: u32,
    /// Tasks queue.
    pub(crate) waiters: bool,
    /// The sum of the counts: readers, and those who back out.
    pub(crate) readers: u32,
}

/// What a task wants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reader,
    Writer,
    Excluder,
}

/// What comes with a lock that was just claimed.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Grant {
    /// It is ready for use.
    Ready = 1,
    /// Readers may still be inside.
    Drain = 2,
}

/// A task in the queue.
struct Waiter {
    task: Task,
    kind: Kind,
    /// 0, or a [`Grant`].
    grant: Atomic<u32>,
    next: LockCell<*const Waiter>,
}

impl Waiter {
    /// The running task, in no queue.
    fn new(kind: Kind) -> Self {
        Self {
            task: Task::current(),
            kind,
            grant: Atomic::new(0),
            next: LockCell::new(ptr::null()),
        }
    }

    fn granted(&self) -> Option<Grant> {
        // ORDERING: Acquire pairs with the release in `QueueGuard::grant_first`.
        match self.grant.load(Acquire) {
            0 => None,
            1 => Some(Grant::Ready),
            // Only `Grant` is stored.
            _ => Some(Grant::Drain),
        }
    }
}

/// Who waits, first come first served. Waiters leave by a grant only.
#[pin_data]
struct Queue {
    #[pin]
    lock: RawSpinLock,
    first: LockCell<*const Waiter>,
    last: LockCell<*const Waiter>,
}

// SAFETY: Waiters are accessed under the lock, from whatever task.
unsafe impl Send for Queue {}
// SAFETY: As above.
unsafe impl Sync for Queue {}

impl Queue {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            // Of a class of its own: it is taken with the lock held.
            lock <- RawSpinLock::new(lock_name!(c"percpu_rwsem_queue"), static_lock_class!()),
            first: LockCell::new(ptr::null()),
            last: LockCell::new(ptr::null()),
        })
    }

    fn lock(&self) -> QueueGuard<'_, Irq> {
        QueueGuard {
            queue: self,
            _lock: self.lock.lock_irq(),
        }
    }

    fn lock_irqsave(&self) -> QueueGuard<'_, IrqSave> {
        QueueGuard {
            queue: self,
            _lock: self.lock.lock_irqsave(),
        }
    }
}

/// The queue, locked.
struct QueueGuard<'a, I: Interrupts> {
    queue: &'a Queue,
    _lock: raw_spinlock::Guard<'a, I>,
}

impl<I: Interrupts> QueueGuard<'_, I> {
    fn first(&self) -> Option<&Waiter> {
        // SAFETY: Under the lock; null or a waiter in the queue, which is alive (invariant 2).
        unsafe { self.queue.first.get().as_ref() }
    }

    fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// Enters `waiter` at the end.
    ///
    /// # Safety
    ///
    /// It is in no queue, and stays where it is until it was granted.
    unsafe fn push(&mut self, waiter: &Waiter) {
        let this = ptr::from_ref(waiter);
        // INVARIANT: 2, by the caller's contract.
        // SAFETY: Under the lock; `last` is in the queue if that is not empty.
        unsafe {
            if self.is_empty() {
                self.queue.first.set(this);
            } else {
                (*self.queue.last.get()).next.set(this);
            }
            self.queue.last.set(this);
        }
    }

    /// Takes out the first waiter, for which the lock has been claimed, and tells it.
    fn grant_first(&mut self, grant: Grant, wakes: &mut WakeQ) {
        let Some(waiter) = self.first().map(ptr::from_ref) else {
            return;
        };
        // SAFETY: Alive until it is granted (invariant 2); its links are ours under the lock. The
        // reference keeps its task when it goes on right after.
        let task = unsafe {
            self.queue.first.set((*waiter).next.get());
            (*waiter).task.get()
        };
        // SAFETY: As above.
        // INVARIANT: 2, the last access.
        // ORDERING: Release pairs with the acquire in `Waiter::granted`: what was done under the
        // lock before the claim is seen after the grant.
        unsafe { (*waiter).grant.store(grant as u32, Release) };
        wakes.add(task);
    }
}

/// The task that waits for readers to leave, if any: the kernel's `rcuwait`.
struct DrainSlot {
    /// Its address or 0.
    task: Atomic<usize>,
}

impl DrainSlot {
    const fn new() -> Self {
        Self {
            task: Atomic::new(0),
        }
    }

    /// Sleeps until `reached`, which is asked at first and after each [`DrainSlot::wake`].
    #[cold]
    fn wait_until(&self, reached: impl Fn() -> bool) {
        // ORDERING: Release pairs with the acquire in `wake`.
        self.task.store(Task::current().addr(), Release);
        loop {
            // ORDERING: F, the full barrier that this implies comes between the slot, the state and
            // what `reached` reads. Matches E.
            Sleep::Uninterruptible.prepare();
            if reached() {
                break;
            }
            task::schedule();
        }
        task::set_running();
        // Relaxed: one who still sees us wakes a task that is awake.
        self.task.store(0, Relaxed);
    }

    /// Has the task look again, after the caller has counted down.
    fn wake(&self, pin: &PreemptDisabled) -> bool {
        // ORDERING: E, between the count and the slot. Matches F.
        smp_mb(barrier::Full);
        // ORDERING: Acquire pairs with the release in `wait_until`.
        let addr = self.task.load(Acquire);
        if addr == 0 {
            return false;
        }
        // SAFETY: Seen in the slot with preemption off; the task empties the slot before it goes on.
        unsafe { wait::wake_up(Task::from_addr(addr), pin) };
        true
    }
}

/// A variant of the lock: the gate that it has, and how it is called.
pub trait Policy: Send + Sync + 'static {
    /// The name under which the harness knows it.
    const NAME: &'static CStr;

    /// What keeps readers off the fast path.
    type Gate: ReaderGate;

    /// Counts what happens in the slow paths.
    #[doc(hidden)]
    const EVENTS: &'static Events<Event>;
}

macro_rules! policies {
    ($(
        $(#[$doc:meta])*
        $policy:ident = $name:literal: $gate:ty;
    )*) => {$(
        $(#[$doc])*
        pub struct $policy;

        impl Policy for $policy {
            const NAME: &'static CStr = $name;
            type Gate = $gate;
            const EVENTS: &'static Events<Event> = {
                static EVENTS: Events<Event> = events!(Event);
                &EVENTS
            };
        }
    )*};
}

policies! {
    /// The lock to use: a grace period for a write that comes alone, none for those that follow.
    Percpu = c"percpu_rwsem": RcuSync<Sched>;

    /// A grace period before and one after each write, as the series' description of itself has it.
    TwoSync = c"percpu_rwsem.sync": CounterGate<Normal>;

    /// Expedited ones: what the series replaced.
    TwoExpedited = c"percpu_rwsem.expedited": CounterGate<Expedited>;

    /// A grace period before each write only, and barriers in readers: the reviewer's alternative.
    ReaderMb = c"percpu_rwsem.mb": CounterGate<Fenced>;
}

/// Where a lock has its gate.
pub trait GateSource: Send + Sync {
    /// What kind of gate.
    type Gate: ReaderGate;

    /// The gate.
    fn gate(&self) -> &Self::Gate;
}

/// In itself.
#[pin_data]
pub struct Own<G: ReaderGate> {
    #[pin]
    gate: G,
}

impl<G: ReaderGate> GateSource for Own<G> {
    type Gate = G;

    #[inline(always)]
    fn gate(&self) -> &G {
        &self.gate
    }
}

/// Elsewhere, for several locks that are taken together: whoever enters the gate for one of them has
/// entered it for all, so one grace period does. A lock never tears such a gate down, but lives no
/// longer than the pointer to it.
pub struct Shared<D>(pub D);

impl<D> GateSource for Shared<D>
where
    D: Deref + Send + Sync,
    D::Target: ReaderGate + Sized,
{
    type Gate = D::Target;

    #[inline(always)]
    fn gate(&self) -> &D::Target {
        &self.0
    }
}

/// The lock.
///
/// Dropping it waits for a pending callback of its own gate: it may sleep.
#[pin_data]
#[repr(C)]
pub struct PercpuRwSem<P: Policy, S: GateSource = Own<<P as Policy>::Gate>> {
    #[pin]
    source: S,
    /// Has memory while the lock can be used, see [`PercpuRwSem::init_at`].
    counts: Counter,
    block: Atomic<u32>,
    #[pin]
    queue: Queue,
    drain: DrainSlot,
    #[pin]
    pub(crate) dep: DepMap,
    _policy: PhantomData<P>,
}

/// Data under a per-CPU rwsem.
pub type PercpuRwSemaphore<T> = Locked<T, PercpuRwSem<Percpu>>;

impl<P: Policy> PercpuRwSem<P> {
    /// A free lock with a gate of its own, known to lockdep by `name` and `key`.
    ///
    /// Fails with `ENOMEM`.
    pub fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error> {
        let own = pin_init!(Own {
            gate <- P::Gate::init(),
        });
        Self::with_source(own, name, key)
    }

    /// Makes a lock in memory that is not Rust's, such as a C structure.
    ///
    /// # Errors
    ///
    /// `ENOMEM`. What is left then is good for [`PercpuRwSem::free_at`].
    ///
    /// # Safety
    ///
    /// `slot` is valid for writes, and stays where it is until it is freed.
    pub unsafe fn init_at(
        slot: *mut Self,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> Result {
        // SAFETY: By the contract. On failure only the count is ever looked at.
        unsafe {
            PinInit::__init(Self::new(name, key), slot)
                .inspect_err(|_| (&raw mut (*slot).counts).write(Counter::none()))
        }
    }

    /// Frees what a lock has, and leaves memory that can be freed again. Sleeps.
    ///
    /// # Safety
    ///
    /// `slot` is zeroed, or was made by [`PercpuRwSem::init_at`], whatever that returned. Nobody uses
    /// the lock.
    pub unsafe fn free_at(slot: *mut Self) {
        // SAFETY: By the contract. Without memory for the count there is nothing to free.
        unsafe {
            if (*slot).counts.is_some() {
                slot.drop_in_place();
                (&raw mut (*slot).counts).write(Counter::none());
            }
        }
    }
}

impl<P: Policy, D> PercpuRwSem<P, Shared<D>>
where
    D: Deref<Target = P::Gate> + Send + Sync,
{
    /// A free lock with a gate that others may have too, known to lockdep by `name` and `key`.
    ///
    /// Fails with `ENOMEM`.
    pub fn with_gate(
        gate: D,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self, Error> {
        Self::with_source(Shared(gate), name, key)
    }
}

impl<P: Policy, S: GateSource> PercpuRwSem<P, S> {
    fn with_source(
        source: impl PinInit<S>,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // First, since it can fail.
            counts: Counter::new()?,
            source <- source,
            block: Atomic::new(Block::FREE.0),
            queue <- Queue::new(),
            drain: DrainSlot::new(),
            dep <- DepMap::new(name, key),
            _policy: PhantomData,
        })
    }

    /// The gate, for keeping readers on the slow path beyond single writes: [`ReaderGate::enter`] and
    /// [`ReaderGate::exit`] go in pairs.
    pub fn gate(&self) -> &S::Gate {
        self.source.gate()
    }

    /// The lock as someone else sees it; the words are read one after the other.
    pub(crate) fn look(&self) -> Look {
        let block = self.load();
        Look {
            block: block.0,
            writer: block.is_written(),
            excluders: block.0 / EXCLUDER,
            waiters: block.has_waiters(),
            readers: self.counts.sum_acquire(),
        }
    }

    /// Whether readers have the lock: a hint.
    pub fn is_read_locked(&self) -> bool {
        self.counts.sum_acquire() != 0 && !self.load().is_claimed()
    }

    /// Whether a writer has the lock, or waits for readers only: a hint.
    pub fn is_write_locked(&self) -> bool {
        self.load().is_written()
    }

    /// Takes the lock for reading. Sleeps.
    #[inline(never)]
    pub fn down_read(&self) {
        self.read_lock(Sleep::Uninterruptible);
    }

    /// Takes the lock for reading, asleep in a way that lets the task be frozen. Sleeps.
    #[inline(never)]
    pub fn down_read_freezable(&self) {
        self.read_lock(Sleep::Freezable);
    }

    /// Takes the lock for reading if that needs no wait. For any context but NMI.
    #[inline(never)]
    #[must_use = "if it is true, the lock is held"]
    pub fn down_read_trylock(&self) -> bool {
        let pin = preempt::disable();
        if self.gate().is_idle() {
            self.counts.inc(&pin);
        } else if !self.try_read_gated(&pin) {
            return false;
        }
        drop(pin);
        self.dep.taken_at_once(Mode::Read);
        true
    }

    /// Gives up a lock held for reading.
    ///
    /// # Safety
    ///
    /// The caller holds it for reading.
    #[inline(never)]
    pub unsafe fn up_read(&self) {
        self.dep.giving_up();
        let pin = preempt::disable();
        if self.gate().is_idle() {
            self.counts.dec(&pin);
        } else {
            self.read_unlock_slow(pin);
        }
    }

    /// Takes the lock for writing. Sleeps.
    #[inline(never)]
    pub fn down_write(&self) {
        annotate::might_sleep();
        // An uninterruptible wait has no failure.
        let _ = self.dep.taking(Mode::Write, Taking::Waits, 0, || {
            // Readers take the slow path from here on.
            self.gate().enter();
            P::EVENTS.inc(Event::Write);
            // Readers on the slow path queue from here on.
            if self.claim(Block::claim_write).is_some() {
                self.finish(Kind::Writer, Grant::Drain);
            } else {
                self.claim_slow(Kind::Writer);
            }
            Ok(())
        });
    }

    /// Gives up a lock held for writing.
    ///
    /// # Safety
    ///
    /// The caller holds it for writing.
    #[inline(never)]
    pub unsafe fn up_write(&self) {
        self.dep.giving_up();
        // Readers stay on the slow path until the gate is idle again: there they see what was done
        // under the lock.
        // ORDERING: Release pairs with the acquire of whoever takes the lock next.
        let before = Block(self.block.fetch_sub(WRITER, Release));
        self.released(before);
    }

    /// Shuts readers out, and writers, but not others who do the same. Sleeps.
    #[must_use = "readers are let in again at once when the guard is unused"]
    pub fn exclude_readers(&self) -> Excluder<'_, P, S> {
        annotate::might_sleep();
        // An uninterruptible wait has no failure.
        let _ = self.dep.taking(Mode::Write, Taking::Waits, 0, || {
            self.gate().enter();
            P::EVENTS.inc(Event::Exclude);
            match self.claim(Block::claim_exclude_unqueued) {
                Some(before) => self.finish(Kind::Excluder, Self::grant_of(Kind::Excluder, before)),
                None => self.claim_slow(Kind::Excluder),
            }
            Ok(())
        });
        Excluder(self)
    }

    /// Has lockdep forget that this task holds the lock: another one will give it up.
    ///
    /// # Safety
    ///
    /// The caller holds the lock. Until another task calls [`PercpuRwSem::take_over`], nobody gives
    /// it up.
    pub unsafe fn hand_over(&self) {
        self.dep.giving_up();
    }

    /// Has lockdep know that this task now holds the lock, for writing or reading.
    ///
    /// # Safety
    ///
    /// Another task has taken it in that way and called [`PercpuRwSem::hand_over`].
    pub unsafe fn take_over(&self, write: bool) {
        self.dep
            .taken_at_once(if write { Mode::Write } else { Mode::Read });
    }

    #[inline(always)]
    fn load(&self) -> Block {
        // Relaxed: who acts on it does so by an exchange that decides.
        Block(self.block.load(Relaxed))
    }

    /// Makes a step of the block word, if it is allowed. The word before.
    #[inline(always)]
    fn claim(&self, step: impl Fn(Block) -> Option<Block>) -> Option<Block> {
        let mut block = self.load();
        loop {
            let new = step(block)?;
            // ORDERING: D, full, between the block word and the sum. Matches A. Its acquire pairs with
            // the release of whoever gave the lock up.
            match self.block.cmpxchg(block.0, new.0, Full) {
                Ok(_) => return Some(block),
                Err(now) => block = Block(now),
            }
        }
    }

    /// What comes with a claim of `kind` for which the word was `before`.
    #[inline(always)]
    fn grant_of(kind: Kind, before: Block) -> Grant {
        match kind {
            Kind::Reader => Grant::Ready,
            Kind::Excluder if before.is_claimed() => Grant::Ready,
            Kind::Writer | Kind::Excluder => Grant::Drain,
        }
    }

    #[inline(always)]
    fn read_lock(&self, sleep: Sleep) {
        annotate::might_sleep();
        // An uninterruptible wait has no failure.
        let _ = self.dep.taking(Mode::Read, Taking::Waits, 0, || {
            let pin = preempt::disable();
            if self.gate().is_idle() {
                self.counts.inc(&pin);
            } else {
                self.read_lock_slow(pin, sleep);
            }
            Ok(())
        });
    }

    /// A trylock with the gate closed.
    #[cold]
    #[inline(never)]
    fn try_read_gated(&self, pin: &PreemptDisabled) -> bool {
        P::EVENTS.inc(Event::ReadSlow);
        let taken = self.try_read_slow(pin);
        if !taken {
            P::EVENTS.inc(Event::ReadTryFailed);
        }
        taken
    }

    #[cold]
    #[inline(never)]
    fn read_lock_slow(&self, pin: PreemptGuard, sleep: Sleep) {
        P::EVENTS.inc(Event::ReadSlow);
        if self.try_read_slow(&pin) {
            return;
        }
        drop(pin);
        P::EVENTS.inc(Event::ReadQueue);
        // An uninterruptible wait has no failure.
        let _ = annotate::contended_percpu(self, Mode::Read, || {
            self.wait(Kind::Reader, sleep);
            Ok(())
        });
    }

    /// A reader's try with the gate closed.
    #[cold]
    fn try_read_slow(&self, pin: &PreemptDisabled) -> bool {
        self.counts.inc(pin);
        stall!(SP6);
        // ORDERING: A, between the count and the block word. Matches D.
        smp_mb(barrier::Full);
        // ORDERING: Acquire pairs with the release of whoever gave the lock up.
        if !Block(self.block.load(Acquire)).is_claimed() {
            return true;
        }
        stall!(SP6);
        // The same CPU, preemption is off. Nothing was done under the lock that B would be for.
        self.counts.dec(pin);
        // The one who drains may have seen our share.
        self.drain.wake(pin);
        false
    }

    #[cold]
    #[inline(never)]
    fn read_unlock_slow(&self, pin: PreemptGuard) {
        // ORDERING: B, between the section and the count. Matches C.
        smp_mb(barrier::Full);
        self.counts.dec(&pin);
        stall!(SP6);
        if self.drain.wake(&pin) {
            annotate::contended_release(self);
        }
    }

    /// Claims the lock as a writer or an excluder that has found it claimed.
    #[cold]
    #[inline(never)]
    fn claim_slow(&self, kind: Kind) {
        P::EVENTS.inc(Event::WriteQueue);
        // An uninterruptible wait has no failure.
        let _ = annotate::contended_percpu(self, Mode::Write, || {
            let grant = self.wait(kind, Sleep::Uninterruptible);
            self.finish(kind, grant);
            Ok(())
        });
    }

    /// Makes a lock that has been claimed ready for use.
    #[inline(always)]
    fn finish(&self, kind: Kind, grant: Grant) {
        if grant == Grant::Ready {
            return;
        }
        // ORDERING: C, the acquires of the sum. Matches B.
        if self.counts.sum_acquire() != 0 {
            self.wait_for_readers();
        }
        if kind == Kind::Excluder {
            self.set_drained();
        }
    }

    #[cold]
    fn wait_for_readers(&self) {
        P::EVENTS.inc(Event::WriteDrain);
        // INVARIANT: 3, the caller has claimed the lock.
        // ORDERING: C, the acquires of the sum. Matches B.
        self.drain.wait_until(|| self.counts.sum_acquire() == 0);
    }

    /// Says that the readers are gone, on behalf of the excluders that come.
    #[cold]
    fn set_drained(&self) {
        // ORDERING: Release pairs with the acquire in `claim`, by those excluders: they see all that
        // the readers did.
        let before = Block(self.block.fetch_add(DRAINED, Release));
        if before.has_waiters() {
            self.wake();
        }
    }

    /// Queues until the lock is granted, unless it can be claimed at once.
    #[cold]
    fn wait(&self, kind: Kind, sleep: Sleep) -> Grant {
        let waiter = Waiter::new(kind);
        let mut queue = self.queue.lock();
        // INVARIANT: 1. Who gives the lock up from here on sees the bit and comes for the queue's
        // lock; if it was given up before, the try below sees that.
        self.claim(|block| Some(block.with_waiters()));
        if queue.is_empty() {
            if let Some(grant) = self.try_for(kind) {
                self.claim(|block| Some(block.without_waiters()));
                return grant;
            }
        }
        // SAFETY: In no queue; its frame stays until it is granted.
        unsafe { queue.push(&waiter) };
        drop(queue);

        let grant = loop {
            sleep.prepare();
            if let Some(grant) = waiter.granted() {
                break grant;
            }
            task::schedule();
        };
        task::set_running();
        grant
    }

    /// Tries to claim the lock for whoever is first in the queue, which is locked.
    fn try_for(&self, kind: Kind) -> Option<Grant> {
        let before = match kind {
            // Its share is counted here, which is as good as there: only the sum matters.
            Kind::Reader => self
                .try_read_slow(&preempt::disable())
                .then_some(Block::FREE)?,
            Kind::Writer => self.claim(Block::claim_write)?,
            Kind::Excluder => self.claim(Block::claim_exclude)?,
        };
        Some(Self::grant_of(kind, before))
    }

    /// Grants the lock from the head of the queue: to readers or excluders, as many as there are, up
    /// to the first that cannot have it, or to one writer.
    #[cold]
    #[inline(never)]
    fn wake(&self) {
        let mut wakes = WakeQ::new();
        let mut queue = self.queue.lock_irqsave();
        while let Some(first) = queue.first() {
            let kind = first.kind;
            let Some(grant) = self.try_for(kind) else {
                // Who was faster has seen bit 0, or will.
                P::EVENTS.inc(Event::GrantStolen);
                break;
            };
            P::EVENTS.inc(Event::Grant);
            queue.grant_first(grant, &mut wakes);
            if kind == Kind::Writer {
                break;
            }
        }
        if queue.is_empty() {
            // INVARIANT: 1.
            self.claim(|block| Some(block.without_waiters()));
        }
        drop(queue);
        wakes.wake_all();
    }

    /// Wakes those who wait for a lock that was given up when the word was `before`.
    #[inline(always)]
    fn released(&self, before: Block) {
        if before.has_waiters() {
            annotate::contended_release(self);
            self.wake();
        }
        // Outside of the lock: the gate counts.
        self.gate().exit();
    }
}

/// Readers and writers are shut out until it is dropped. Leaked, for good.
#[must_use = "readers are let in again at once when the guard is unused"]
pub struct Excluder<'a, P: Policy, S: GateSource>(&'a PercpuRwSem<P, S>);

impl<P: Policy, S: GateSource> Drop for Excluder<'_, P, S> {
    fn drop(&mut self) {
        let lock = self.0;
        lock.dep.giving_up();
        // Always allowed; its release pairs with the acquire of whoever takes the lock next.
        if let Some(before) = lock.claim(|block| Some(block.end_exclude())) {
            if before.end_exclude().is_claimed() {
                lock.gate().exit();
            } else {
                lock.released(before);
            }
        }
    }
}

// SAFETY: A reader is let in only while the gate is idle or the block word is free, a writer only when
// it has claimed that and the sum of all readers is 0; who is not let in undoes what it did. The order
// of what they do is that of the module's documentation.
unsafe impl<P: Policy> RawRwLock for PercpuRwSem<P> {
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
        // SAFETY: By the caller's contract.
        unsafe { Self::up_read(self) };
    }

    #[inline(always)]
    fn down_write(&self) {
        Self::down_write(self);
    }

    #[inline(always)]
    unsafe fn up_write(&self) {
        // SAFETY: By the caller's contract.
        unsafe { Self::up_write(self) };
    }
}

#[kunit_tests(klocks_percpu_rwsem)]
mod tests {
    use super::*;
    use crate::kapi::{
        kthread::{
            Body,
            Kthread,
            Placement, //
        },
        percpu_alloc::{
            FAIL_NEXT,
            LIVE, //
        },
        rcu::{
            self,
            Cookie, //
        }, //
    };
    use core::mem::MaybeUninit;
    use kernel::{
        sync::{
            static_lock_class,
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    /// All words that can occur, with up to three excluders: (word, written, excluders, drained,
    /// waiters).
    fn for_all(mut check: impl FnMut(Block, bool, u32, bool, bool)) {
        for (written, excluders, drained) in [
            (false, 0, false),
            (true, 0, false),
            (false, 1, false),
            (false, 1, true),
            (false, 2, true),
            (false, 3, true),
        ] {
            for waiters in [false, true] {
                let word = u32::from(written) * WRITER
                    + excluders * EXCLUDER
                    + u32::from(drained) * DRAINED
                    + u32::from(waiters) * WAITERS;
                check(Block(word), written, excluders, drained, waiters);
            }
        }
    }

    #[test]
    fn block_says_who_is_in() {
        let mut ok = true;
        for_all(|block, written, excluders, _, waiters| {
            ok &= block.is_claimed() == (written || excluders != 0);
            ok &= block.is_written() == written;
            ok &= block.has_waiters() == waiters;
            ok &= block.with_waiters().has_waiters() && !block.without_waiters().has_waiters();
            ok &= block.with_waiters().without_waiters() == block.without_waiters();
        });
        assert!(ok);
    }

    #[test]
    fn writers_claim_a_free_lock_only() {
        let mut ok = true;
        for_all(|block, written, excluders, _, _| {
            let free = !written && excluders == 0;
            ok &= block.claim_write() == free.then_some(Block(block.0 + WRITER));
        });
        assert!(ok);
    }

    #[test]
    fn excluders_join_when_readers_are_gone() {
        let mut ok = true;
        for_all(|block, written, excluders, drained, waiters| {
            let claim = (!written && (excluders == 0 || drained))
                .then_some(Block(block.0.wrapping_add(EXCLUDER)));
            ok &= block.claim_exclude() == claim;
            ok &= block.claim_exclude_unqueued() == claim.filter(|_| !waiters);
        });
        assert!(ok);
    }

    #[test]
    fn last_excluder_leaves_only_the_waiters() {
        let mut ok = true;
        for_all(|block, _, excluders, drained, waiters| {
            // Nobody leaves before it has drained the readers.
            if excluders == 0 || !drained {
                return;
            }
            let after = block.end_exclude();
            ok &= after.has_waiters() == waiters;
            ok &= after.is_claimed() == (excluders != 1);
            ok &= excluders != 1 || after.without_waiters() == Block::FREE;
            ok &= excluders == 1 || after == Block(block.0 - EXCLUDER);
        });
        assert!(ok);
    }

    type Lock = PercpuRwSem<Percpu>;

    fn new_lock() -> Result<Pin<KBox<Lock>>> {
        KBox::pin_init(
            Lock::new(c"klocks_percpu_test", static_lock_class!()),
            GFP_KERNEL,
        )
    }

    /// Nobody has the lock or waits for it.
    fn is_at_rest(lock: &Lock) -> bool {
        lock.load() == Block::FREE
            && lock.counts.sum_acquire() == 0
            && lock.queue.lock().is_empty()
            && lock.drain.task.load(Relaxed) == 0
    }

    #[test]
    fn alone() -> Result {
        let lock = new_lock()?;
        for _ in 0..3 {
            // On the fast path the first time, then on the slow path.
            lock.down_read();
            assert!(lock.down_read_trylock());
            assert!(lock.is_read_locked() && !lock.is_write_locked());
            // SAFETY: Both just taken.
            unsafe {
                lock.up_read();
                lock.up_read();
            }
            lock.down_read_freezable();
            // SAFETY: Just taken.
            unsafe { lock.up_read() };
            assert!(!lock.is_read_locked());

            lock.down_write();
            assert!(lock.is_write_locked() && !lock.is_read_locked());
            assert!(!lock.down_read_trylock());
            // SAFETY: Just taken.
            unsafe { lock.up_write() };
            assert!(is_at_rest(&lock));
        }
        Ok(())
    }

    #[test]
    fn failed_init_can_be_freed_and_repeated() -> Result {
        let mut memory = KBox::new(MaybeUninit::<Lock>::zeroed(), GFP_KERNEL)?;
        let slot = memory.as_mut_ptr();
        // Relaxed: unit tests run one by one.
        let live = LIVE.load(Relaxed);
        // SAFETY: Zeroed at first, then what `init_at` and `free_at` leave; the box stays.
        unsafe {
            Lock::free_at(slot);
            FAIL_NEXT.store(true, Relaxed);
            let failed = Lock::init_at(slot, c"klocks_percpu_test", static_lock_class!());
            assert!(matches!(failed, Err(e) if e == ENOMEM));
            assert!(LIVE.load(Relaxed) == live);
            Lock::free_at(slot);
            Lock::init_at(slot, c"klocks_percpu_test", static_lock_class!())?;
            (*slot).down_write();
            (*slot).up_write();
            assert!(LIVE.load(Relaxed) == live + 1);
            Lock::free_at(slot);
            Lock::free_at(slot);
        }
        assert!(LIVE.load(Relaxed) == live);
        Ok(())
    }

    #[test]
    fn freed_right_after_use() -> Result {
        for _ in 0..5 {
            let lock = new_lock()?;
            lock.down_write();
            // SAFETY: Just taken.
            unsafe { lock.up_write() };
            // And once more, so that a replay is pending.
            lock.down_write();
            // SAFETY: Just taken.
            unsafe { lock.up_write() };
        }
        Ok(())
    }

    #[test]
    fn one_grace_period_for_all_behind_a_gate() -> Result {
        let gate = Arc::pin_init(RcuSync::<Sched>::new(), GFP_KERNEL)?;
        let new = |key| {
            KBox::pin_init(
                PercpuRwSem::<Percpu, _>::with_gate(gate.clone(), c"klocks_percpu_test", key),
                GFP_KERNEL,
            )
        };
        // Of a class each, since one task takes all.
        let locks = [
            new(static_lock_class!())?,
            new(static_lock_class!())?,
            new(static_lock_class!())?,
        ];
        let first = Cookie::now();
        locks[0].down_write();
        assert!(first.is_over());
        // The others need none: they do it faster than one can pass.
        let second = Cookie::now();
        let mut quick = false;
        for _ in 0..20 {
            locks[1].down_write();
            locks[2].down_write();
            // SAFETY: Just taken.
            unsafe {
                locks[2].up_write();
                locks[1].up_write();
            }
            quick |= !second.is_over();
        }
        assert!(quick);
        // SAFETY: Taken above.
        unsafe { locks[0].up_write() };
        // A lock that goes leaves the gate.
        drop(locks);
        gate.enter();
        gate.exit();
        Ok(())
    }

    /// Those who queue in a known order behind a writer, and when each was let in.
    #[pin_data]
    struct Scene {
        #[pin]
        lock: Lock,
        let_in: Atomic<u32>,
        inside: Atomic<u32>,
        at: [Atomic<u32>; PLAYERS],
        beside: [Atomic<u32>; PLAYERS],
    }

    const PLAYERS: usize = 7;

    struct Player {
        scene: Arc<Scene>,
        index: usize,
        kind: Kind,
        /// How many it waits for to be inside with it.
        company: u32,
    }

    impl Player {
        fn section(&self) {
            let scene = &self.scene;
            // ORDERING: Full here and in the next line pairs with the same of the other players: who comes
            // first, and who is inside with whom, is one order for all.
            scene.at[self.index].store(scene.let_in.fetch_add(1, Full), Relaxed);
            let mut most = scene.inside.fetch_add(1, Full) + 1;
            for _ in 0..2000 {
                if most >= self.company {
                    break;
                }
                fsleep(Delta::from_millis(1));
                most = most.max(scene.inside.load(Acquire));
            }
            scene.beside[self.index].store(most, Relaxed);
            // Company is there for long enough to be seen.
            if self.company > 1 {
                fsleep(Delta::from_millis(20));
            }
            scene.inside.fetch_sub(1, Full);
        }
    }

    impl Body for Player {
        fn run(&self) {
            let lock = &self.scene.lock;
            match self.kind {
                Kind::Reader => {
                    lock.down_read();
                    self.section();
                    // SAFETY: Just taken.
                    unsafe { lock.up_read() };
                }
                Kind::Writer => {
                    lock.down_write();
                    self.section();
                    // SAFETY: Just taken.
                    unsafe { lock.up_write() };
                }
                Kind::Excluder => {
                    let _out = lock.exclude_readers();
                    self.section();
                }
            }
        }
    }

    fn new_scene() -> Result<Arc<Scene>> {
        Arc::pin_init(
            try_pin_init!(Scene {
                lock <- Lock::new(c"klocks_percpu_test", static_lock_class!()),
                let_in: Atomic::new(0),
                inside: Atomic::new(0),
                at: [const { Atomic::new(0) }; PLAYERS],
                beside: [const { Atomic::new(0) }; PLAYERS],
            }),
            GFP_KERNEL,
        )
    }

    fn start_player(
        scene: &Arc<Scene>,
        index: usize,
        kind: Kind,
        company: u32,
    ) -> Result<Kthread<Player>> {
        let player = Player {
            scene: scene.clone(),
            index,
            kind,
            company,
        };
        let thread = Kthread::create(
            c"klocks_percpu",
            index as u32,
            Placement::default(),
            Arc::new(player, GFP_KERNEL)?,
        )?;
        thread.wake();
        Ok(thread)
    }

    fn queued(lock: &Lock) -> usize {
        let queue = lock.queue.lock();
        let mut count = 0;
        let mut next = queue.first().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: Under the lock all in the queue are alive.
        while let Some(waiter) = unsafe { next.as_ref() } {
            count += 1;
            // SAFETY: As above.
            next = unsafe { waiter.next.get() };
        }
        count
    }

    /// Whether `enough` became true within some seconds.
    fn soon(enough: impl Fn() -> bool) -> bool {
        for _ in 0..5000 {
            if enough() {
                return true;
            }
            fsleep(Delta::from_millis(1));
        }
        false
    }

    #[test]
    fn excluders_share() -> Result {
        let scene = new_scene()?;
        let lock = &scene.lock;
        let first = lock.exclude_readers();
        // Another task: the same one would wait for itself if a writer came in between.
        let thread = start_player(&scene, 0, Kind::Excluder, 2)?;
        let shared = soon(|| scene.inside.load(Acquire) == 1);
        let refused = !lock.down_read_trylock() && lock.load().claim_write().is_none();
        drop(first);
        let still_refused = !lock.down_read_trylock();
        // The company that it waits for.
        scene.inside.fetch_add(1, Full);
        let over = soon(|| is_at_rest(lock));
        drop(thread);
        assert!(shared && refused && still_refused && over);
        assert!(lock.down_read_trylock());
        // SAFETY: Just taken.
        unsafe { lock.up_read() };
        assert!(is_at_rest(lock));
        Ok(())
    }

    #[test]
    fn first_come_first_served() -> Result {
        let scene = new_scene()?;
        let lock = &scene.lock;
        lock.down_write();
        let mut threads = KVec::new();
        let mut all_queued = true;
        for (index, (kind, company)) in [
            (Kind::Reader, 2),
            (Kind::Reader, 2),
            (Kind::Writer, 1),
            (Kind::Excluder, 2),
            (Kind::Excluder, 2),
            (Kind::Reader, 1),
            (Kind::Writer, 1),
        ]
        .into_iter()
        .enumerate()
        {
            threads.push(start_player(&scene, index, kind, company)?, GFP_KERNEL)?;
            all_queued &= soon(|| queued(lock) == index + 1);
        }
        // SAFETY: Taken above.
        unsafe { lock.up_write() };
        let all_done = soon(|| scene.let_in.load(Relaxed) == PLAYERS as u32 && is_at_rest(lock));
        drop(threads);
        assert!(all_queued && all_done);
        let at = |index: usize| scene.at[index].load(Relaxed);
        let beside = |index: usize| scene.beside[index].load(Relaxed);
        // Two readers, a writer, two excluders, a reader, a writer.
        assert!(at(0).max(at(1)) == 1 && at(2) == 2);
        assert!(at(3).min(at(4)) == 3 && at(3).max(at(4)) == 4);
        assert!(at(5) == 5 && at(6) == 6);
        assert!(beside(0) == 2 && beside(1) == 2 && beside(3) == 2 && beside(4) == 2);
        assert!(beside(2) == 1 && beside(5) == 1 && beside(6) == 1);
        Ok(())
    }

    /// A waker whose try fails, since someone was faster, leaves the first in the queue alone:
    ///
    /// ```text
    /// holder              first in queue      newcomer
    ///   give up             asleep
    ///                                           claim
    ///   try for the first
    ///   fails: no reference
    ///                                           give up, try for the first, reference, wake
    /// ```
    #[test]
    fn late_grants_keep_no_task() -> Result {
        let scene = new_scene()?;
        let lock = &scene.lock;
        lock.down_write();
        let thread = start_player(&scene, 0, Kind::Writer, 1)?;
        let is_queued = soon(|| queued(lock) == 1 && thread.is_asleep());
        let before = thread.references();
        // The lock is claimed, as if by a newcomer.
        for _ in 0..10 {
            lock.wake();
        }
        let after = thread.references();
        let still_queued = queued(lock) == 1;
        // SAFETY: Taken above.
        unsafe { lock.up_write() };
        let is_done = soon(|| scene.let_in.load(Relaxed) == 1 && is_at_rest(lock));
        drop(thread);
        assert!(is_queued && still_queued && is_done);
        assert!(before == after);
        Ok(())
    }

    #[test]
    fn idle_gate_again_after_a_write() -> Result {
        let lock = new_lock()?;
        lock.down_write();
        // SAFETY: Just taken.
        unsafe { lock.up_write() };
        rcu::barrier();
        let _pin = preempt::disable();
        assert!(lock.gate().is_idle());
        Ok(())
    }
}
