// SPDX-License-Identifier: GPL-2.0

//! The read-write semaphore of 5.3 and later: one count word of flags and readers, lock stealing
//! and optimistic spinning, and a handoff that bounds how long the first waiter is passed over.
//!
//! C counterpart: [`kernel/locking/rwsem.c`](srctree/kernel/locking/rwsem.c).
//!
//! # Protocol
//!
//! | bits of the count | meaning | who changes it |
//! |---|---|---|
//! | 0 | a writer has the lock | the writer |
//! | 1 | tasks wait in the ring | under the wait lock |
//! | 2 | handoff: the lock is promised to the first waiter | under the wait lock |
//! | 3-7 | reserved, 0 | |
//! | 8-62 | readers | readers, or who grants them the lock |
//! | 63 | too many readers: none is let in | |
//!
//! A reader adds its share and has the lock if no bit says otherwise; if one does, it may still
//! have it (stealing, see [`RwSem::read_lock_slow`]) or takes its share out and waits. A writer
//! takes a free lock by one compare-and-exchange, and never leaves anything behind when it fails.
//!
//! Readers are granted the lock by who wakes them. When the first waiter is a reader, all readers
//! in the ring are let in, also those behind a writer: phases of readers and writers alternate.
//! A writer that is woken takes the lock itself, and anyone may have been faster. Whoever waits
//! first for longer than 4 ms (a jiffy if that is longer) asks for a handoff, a real-time writer at
//! once: from then on nobody but the first waiter takes the lock.
//!
//! # Invariants
//!
//! 1. The waiters bit is set exactly while the ring is not empty, outside of the wait lock.
//! 2. The handoff bit is set only while the waiters bit is, and set and cleared within one section
//!    of the wait lock in which that was decided.
//! 3. Only the first waiter carries the handoff mark, and only it may act on it.
//! 4. A reader's share is in the count before the reader can notice that it was granted the lock.
//!
//! # Memory ordering
//!
//! The lock is taken with acquire and given up with release on the count. A granted reader gets it
//! through its waiter: the waker acquires the count, then grants with release. A reader that finds
//! in the slow path that it has the lock has acquired it by the addition in the fast path or by
//! the fence that follows its look at the count.
//!
//! # Differences from C
//!
//! - The policies change where spinning ends; [`C73`] does as C does.
//! - Tracers hear of a release if it wakes; C also tells of a reader's that leaves others inside, by a
//!   branch in its fast path.

use crate::semaphore::{
    self,
    prelude::*, //
};
use kernel::processor::cpu_relax;

semaphore! {
    /// The lock: 32 bytes without debug options. Count and owner share a line and come first, where
    /// the kernel's hung-task report looks for them.
    RwSem,
    /// A value of the count.
    Count
}

/// A writer has the lock.
const WRITER: i64 = 1 << 0;
/// Tasks wait.
const WAITERS: i64 = 1 << 1;
/// The lock is promised to the first of them.
const HANDOFF: i64 = 1 << 2;
/// No bits of anything.
const RESERVED: i64 = (1 << READER_SHIFT) - (1 << 3);
/// Where the number of readers starts.
const READER_SHIFT: u32 = 8;
/// A reader's share.
const READER: i64 = 1 << READER_SHIFT;
/// What makes the reader's fast path fail: the three flags and the sign.
const READ_FAILED: i64 = WRITER | WAITERS | HANDOFF | i64::MIN;
/// What means that the lock is taken: the writer, and all bits of readers including the sign.
const TAKEN: i64 = WRITER | -READER;
/// The most readers that one wake-up lets in.
const MOST_WOKEN: u32 = 256;

impl Count {
    const FREE: Self = Self(0);

    #[inline(always)]
    fn has(self, bits: i64) -> bool {
        self.0 & bits != 0
    }

    #[inline(always)]
    fn has_writer(self) -> bool {
        self.has(WRITER)
    }

    #[inline(always)]
    fn has_handoff(self) -> bool {
        self.has(HANDOFF)
    }

    /// Whether there are more readers than the word has room for.
    #[inline(always)]
    fn has_overflow(self) -> bool {
        self.0 < 0
    }

    /// Invariants 1 and 2, and that reserved bits are 0, when tasks do or do not wait in the ring.
    fn fits(self, queued: bool) -> bool {
        self.has(WAITERS) == queued && (queued || !self.has_handoff()) && !self.has(RESERVED)
    }

    /// How many readers have the lock, or have left a share there that they are going to undo.
    #[inline(always)]
    fn readers(self) -> i64 {
        self.0 >> READER_SHIFT
    }

    /// After a reader's share was added: whether the reader has the lock without further ado.
    #[inline(always)]
    fn reader_got_it(self) -> bool {
        !self.has(READ_FAILED)
    }

    /// After a reader's share was added: whether it may have the lock although tasks wait.
    fn reader_may_steal(self) -> bool {
        !self.has(WRITER | HANDOFF) && !self.has_overflow()
    }

    /// After a release: whether waiters are to be woken, since the lock is free.
    #[inline(always)]
    fn is_free_with_waiters(self) -> bool {
        self.0 & (TAKEN | WAITERS) == WAITERS
    }

    /// A reader's try: the word with its share.
    #[inline(always)]
    fn try_read(self) -> Option<Self> {
        self.reader_got_it()
            .then(|| Self(self.0.wrapping_add(READER)))
    }

    /// The try of a writer that spins: it may steal the lock from those who wait, unless it is
    /// promised to one of them.
    fn try_write_spinning(self) -> Option<Self> {
        (!self.has(TAKEN | HANDOFF)).then_some(Self(self.0 | WRITER))
    }

    /// What a writer in the ring makes of the word: takes a free lock, or asks for a handoff.
    ///
    /// `alone` says that it is the only one in the ring, `promised_to_other` that the first waiter
    /// has the handoff mark and is not the one who asks, `late` that it is time for a handoff.
    fn try_write_queued(self, alone: bool, promised_to_other: bool, late: bool) -> QueuedTry {
        if self.has_handoff() && promised_to_other {
            return QueuedTry::Wait;
        }
        if !self.has(TAKEN) {
            let waiters = if alone { WAITERS } else { 0 };
            return QueuedTry::Take(Self((self.0 | WRITER) & !HANDOFF & !waiters));
        }
        if self.has_handoff() || !late {
            return QueuedTry::Wait;
        }
        QueuedTry::AskHandoff(Self(self.0 | HANDOFF))
    }

    /// The word once the ring is empty.
    fn without_waiters(self) -> Self {
        Self(self.0 & !(WAITERS | HANDOFF))
    }
}

/// See [`Count::try_write_queued`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum QueuedTry {
    /// Takes the lock by this word.
    Take(Count),
    /// Asks for a handoff by this word.
    AskHandoff(Count),
    /// Leaves the word and waits.
    Wait,
}

/// What a policy does.
#[derive(Clone, Copy)]
pub struct Features {
    /// The spinner at the head of the spin queue stops when its try fails on the handoff bit.
    head_stops_on_handoff: bool,
    /// It also stops waiting for the owner then, and no one starts to spin.
    all_stop_on_handoff: bool,
    /// A reader that finds readers in the owner word leaves it alone.
    mark_if_absent: bool,
}

/// A variant of this lock.
pub trait Policy: semaphore::Policy<Features = Features> {}

impl<P: semaphore::Policy<Features = Features>> Policy for P {}

policies! {
    /// As C in 7.3.
    C73 = c"rwsem.c73": Features {
        head_stops_on_handoff: false,
        all_stop_on_handoff: false,
        mark_if_absent: false,
    };

    /// The 2024 patch as posted: the head of the spin queue leaves when it finds the lock promised.
    ///
    /// Those behind it come up one by one, try once, and leave as well.
    HandoffStop = c"rwsem.handoff_stop": Features {
        head_stops_on_handoff: true,
        ..C73::FEATURES
    };

    /// The same for everyone: no one starts to spin, or waits for the owner as the head of the spin
    /// queue, while the lock is promised to a waiter.
    HandoffStopFull = c"rwsem.handoff_stop_full": Features {
        all_stop_on_handoff: true,
        ..HandoffStop::FEATURES
    };

    /// The lock to use: [`HandoffStopFull`], and readers share the line of the owner word instead
    /// of each writing it.
    Rwsem = c"rwsem": Features {
        mark_if_absent: true,
        ..HandoffStopFull::FEATURES
    };
}

impl<P: Policy> Spinnable for RwSem<P> {
    const UNKNOWN: bool = true;
    const FOLLOW: bool = true;
    const PATIENCE: Patience = Patience::Time;
    const RESCHED: bool = true;

    #[inline(always)]
    fn spin_words(&self) -> (&OwnerWord, &Osq) {
        (&self.owner, self.queue.osq())
    }

    #[inline(always)]
    fn readers(owner: Owner, count: i64) -> Option<u64> {
        owner
            .is_reader()
            .then(|| u64::try_from(Count(count).readers()).unwrap_or(0))
    }

    #[inline(always)]
    fn is_promised(&self) -> bool {
        P::FEATURES.all_stop_on_handoff && self.load().has_handoff()
    }
}

impl<P: Policy> RwSem<P> {
    /// Changes the count to what `step` makes of it.
    fn update(&self, step: impl Fn(Count) -> Count) {
        let mut count = self.load();
        // Relaxed: ordered by the wait lock, under which flags change.
        while let Err(now) = self.count.cmpxchg(count.0, step(count).0, Relaxed) {
            count = Count(now);
        }
    }

    /// Takes a lock that is free and that nobody waits for.
    #[inline(always)]
    fn try_take_free(&self, pin: &PreemptDisabled) -> bool {
        // ORDERING: Acquire pairs with the release in `up_read` and `up_write`.
        let taken = self.count.cmpxchg(Count::FREE.0, WRITER, Acquire).is_ok();
        if taken {
            self.owner.set(Owner::writer(Task::current()), pin);
        }
        taken
    }

    /// Enters the running task as a reader into the owner word.
    #[inline(always)]
    fn mark_reader(&self, pin: &PreemptDisabled) {
        self.mark_reader_as(Task::current(), pin);
    }

    #[inline(always)]
    fn mark_reader_as(&self, task: Task, pin: &PreemptDisabled) {
        let before = self.owner.load();
        if !(P::FEATURES.mark_if_absent && before.is_reader()) {
            self.owner.set(Owner::reader_after(task, before), pin);
        }
    }

    /// Joins the readers, or waits, with the reader's share in the count already; `count` is the
    /// word after that. Preemption stays off until the share is accounted for.
    #[cold]
    #[inline(never)]
    fn read_lock_slow(&self, count: Count, pin: PreemptGuard, sleep: Sleep) -> Result {
        if count.has_overflow() {
            P::EVENTS.inc(Event::Overflow);
            self.owner.set_nonspinnable();
            check(|| false, || P::EVENTS.inc(Event::CheckFailed));
        }
        // A steady stream of readers that join each other would keep writers out for good.
        let readers_own =
            self.owner.load().is_reader() && count.readers() > 1 && !count.has_writer();
        if !readers_own && count.reader_may_steal() {
            self.mark_reader(&pin);
            P::EVENTS.inc(Event::RlockSteal);
            // The first reader of a phase brings along those who wait.
            if count.readers() == 1 && count.has(WAITERS) {
                self.wake_from(self.queue.lock(), Wake::ReadersBesideUs);
            }
            return Ok(());
        }
        let waiter = Waiter::new(Kind::Reader);
        if self.enqueue_reader(&waiter, &pin) {
            return Ok(());
        }
        drop(pin);
        semaphore::waiting(self, Mode::Read, sleep, || {
            self.queue
                .sleep_until_granted(&waiter, sleep, || P::EVENTS.inc(Event::SleepReader))
                .map_err(|ring| self.cancel(ring, &waiter))?;
            P::EVENTS.inc(Event::Rlock);
            Ok(())
        })
    }

    /// Enters a reader into the ring and takes its share out of the count. Or leaves it there, when
    /// the lock has become free for it meanwhile: then true.
    fn enqueue_reader(&self, waiter: &Waiter, pin: &PreemptDisabled) -> bool {
        let mut wakes = WakeQ::new();
        let mut ring = self.queue.lock();
        let first = ring.is_empty();
        let count = self.load();
        if first && !count.has_writer() && !count.has_overflow() {
            // ORDERING: Read barrier, after the load of the count: acquires the lock. Partner: the
            // release in `up_write`.
            smp_mb(barrier::Read);
            drop(ring);
            self.mark_reader(pin);
            P::EVENTS.inc(Event::RlockFast);
            return true;
        }
        // SAFETY: In no ring; it stays in its frame until granted or, in `cancel`, removed.
        unsafe { ring.push(waiter) };
        // INVARIANT: 1.
        let waiters = if first { WAITERS } else { 0 };
        // Relaxed: ordered by the wait lock against others in the ring.
        let (_, count) = self.add(waiters - READER, Relaxed);
        self.mark_wake_if_unlocked(&mut ring, count, &mut wakes);
        drop(ring);
        wakes.wake_all();
        false
    }

    /// `pin` is the fast path's: given up here, where a call does not burden that.
    #[cold]
    #[inline(never)]
    fn write_lock_slow(&self, pin: PreemptGuard, sleep: Sleep) -> Result {
        drop(pin);
        if self.spin_for_write() {
            return Ok(());
        }
        semaphore::waiting(self, Mode::Write, sleep, || self.sleep_for_write(sleep))
    }

    #[inline(never)]
    fn spin_for_write(&self) -> bool {
        let spun =
            spin::optimistic_spin(self, |pin| match self.try_take(Count::try_write_spinning) {
                Ok(_) => {
                    self.owner.set(Owner::writer(Task::current()), pin);
                    Try::Taken
                }
                Err(count) if P::FEATURES.head_stops_on_handoff && count.has_handoff() => {
                    Try::Promised
                }
                Err(count) => Try::Held(count.0),
            });
        if spun == Spun::Exhausted {
            self.owner.set_nonspinnable();
        }
        P::EVENTS.inc(spin_event(spun, Event::OptLock));
        spun == Spun::Taken
    }

    /// Enters the ring, and sleeps there until the lock is free and this task has taken it.
    fn sleep_for_write(&self, sleep: Sleep) -> Result {
        let waiter = Waiter::new(Kind::Writer);
        let mut ring = self.enqueue_writer(&waiter);
        sleep.prepare();
        while !self.take_queued(&mut ring, &waiter) {
            drop(ring);
            if sleep.signal_pending() {
                task::set_running();
                return Err(self.cancel(self.queue.lock(), &waiter));
            }
            // The lock is promised to us: it is ours as soon as its owner, if it runs, is done.
            if waiter.has_handoff() && self.wait_for_owner() {
                cpu_relax();
            } else {
                task::schedule();
                P::EVENTS.inc(Event::SleepWriter);
                sleep.prepare();
            }
            ring = self.queue.lock();
        }
        task::set_running();
        drop(ring);
        P::EVENTS.inc(Event::Wlock);
        Ok(())
    }

    /// Enters a writer into the ring, which stays locked: its first try follows at once.
    fn enqueue_writer(&self, waiter: &Waiter) -> WaitGuard<'_, Irq> {
        let mut ring = self.queue.lock();
        let first = ring.is_empty();
        // SAFETY: In no ring; it stays in its frame until `sleep_for_write` has removed it.
        unsafe { ring.push(waiter) };
        if first {
            // INVARIANT: 1.
            // Relaxed: ordered by the wait lock against others in the ring.
            self.add(WAITERS, Relaxed);
            return ring;
        }
        let mut wakes = WakeQ::new();
        self.mark_wake_if_unlocked(&mut ring, self.load(), &mut wakes);
        if !wakes.is_empty() {
            // There may be many to wake.
            drop(ring);
            wakes.wake_all();
            ring = self.queue.lock();
        }
        ring
    }

    /// Takes the lock for a writer in the ring, which it then leaves; or asks for a handoff.
    fn take_queued(&self, ring: &mut WaitGuard<'_, Irq>, waiter: &Waiter) -> bool {
        let pin = preempt::disable();
        let mut count = self.load();
        loop {
            // Other tasks' waiters are on lines of their own: not looked at in vain.
            let (taken, handoff) = (count.has(TAKEN), count.has_handoff());
            let alone = !taken && ring.is_singular();
            let promised_to_other = handoff && !ring.is_first(waiter) && ring.first_has_handoff();
            let late = taken && !handoff && Self::is_late(waiter);
            let step = count.try_write_queued(alone, promised_to_other, late);
            let new = match step {
                QueuedTry::Wait => return false,
                QueuedTry::Take(new) | QueuedTry::AskHandoff(new) => new,
            };
            // ORDERING: Acquire pairs with the release in `read_unlock` and `write_unlock`.
            if let Err(now) = self.count.cmpxchg(count.0, new.0, Acquire) {
                count = Count(now);
                continue;
            }
            if step == QueuedTry::AskHandoff(new) {
                // INVARIANT: 2 and 3.
                ring.promise_to_first();
                P::EVENTS.inc(Event::WlockHandoff);
                return false;
            }
            if count.has_handoff() {
                P::EVENTS.inc(Event::HandoffGranted);
            }
            // INVARIANT: 1.
            ring.remove(waiter);
            self.owner.set(Owner::writer(Task::current()), &pin);
            return true;
        }
    }

    /// Whether the running task, which is `waiter`, is to ask for a handoff.
    fn is_late(waiter: &Waiter) -> bool {
        task::current_is_rt() || waiter.has_waited_long()
    }

    /// Spins while the owner is a writer that runs: whether it has given the lock up.
    #[inline(never)]
    fn wait_for_owner(&self) -> bool {
        let pin = preempt::disable();
        spin::spin_on_owner(self, || false, &pin) == Some(Owner::NONE)
    }

    /// Takes `waiter` out of the ring after a signal.
    fn cancel(&self, mut ring: WaitGuard<'_, Irq>, waiter: &Waiter) -> Error {
        P::EVENTS.inc(Event::Cancel);
        let first = ring.is_first(waiter);
        ring.remove(waiter);
        if ring.is_empty() {
            // INVARIANT: 1 and 2.
            self.update(Count::without_waiters);
        } else if first {
            // A handoff goes to the new head, which may also be able to have the lock at once.
            self.wake_from(ring, Wake::Any);
        }
        EINTR
    }

    /// Wakes from the ring after a release.
    #[cold]
    #[inline(never)]
    fn wake(&self) {
        annotate::contended_release(self);
        self.wake_from(self.queue.lock_irqsave(), Wake::Any);
    }

    /// After a waiter was entered, with `count` the word since: collects into `wakes` who can go
    /// on, if no writer has the lock.
    fn mark_wake_if_unlocked(
        &self,
        ring: &mut WaitGuard<'_, Irq>,
        count: Count,
        wakes: &mut WakeQ,
    ) {
        if count.has_writer() {
            return;
        }
        if count.readers() != 0 {
            self.mark_wake(ring, Wake::Readers, wakes);
        } else {
            self.owner.clear_nonspinnable();
            self.mark_wake(ring, Wake::Any, wakes);
        }
    }

    /// Adds a reader's share on behalf of the first waiter, a reader, unless a writer has the lock;
    /// then asks for a handoff if the reader has waited for long.
    fn claim_read<I: Interrupts>(&self, ring: &mut WaitGuard<'_, I>) -> bool {
        // ORDERING: Acquire pairs with the release in `up_write`, on behalf of the readers.
        let (before, _) = self.add(READER, Acquire);
        let Some(first) = ring.first() else {
            return false;
        };
        if !before.has_writer() {
            // Spinners learn early that readers have the lock.
            self.mark_reader_as(first.task(), &preempt::disable());
            return true;
        }
        let mut bias = -READER;
        if first.has_waited_long() {
            if !before.has_handoff() {
                bias += HANDOFF;
                P::EVENTS.inc(Event::RlockHandoff);
            }
            // INVARIANT: 2 and 3.
            ring.promise_to_first();
        }
        // Relaxed: undoes, publishes nothing.
        self.add(bias, Relaxed);
        false
    }
}

impl<P: Policy> Wakes for RwSem<P> {
    /// Collects into `wakes` who can go on: the first waiter if it is a writer, else readers, which
    /// are granted the lock.
    fn mark_wake<I: Interrupts>(&self, ring: &mut WaitGuard<'_, I>, whom: Wake, wakes: &mut WakeQ) {
        let Some(first) = ring.first() else {
            return;
        };
        if first.kind() == Kind::Writer {
            if whom == Wake::Any {
                P::EVENTS.inc(Event::WakeWriter);
                ring.wake_first(wakes);
            }
            return;
        }
        if self.load().has_overflow() {
            return;
        }
        // A writer may steal the lock up to here, unless we hold it. So one share goes in first.
        let claimed = if whom == Wake::ReadersBesideUs {
            0
        } else {
            READER
        };
        if claimed != 0 && !self.claim_read(ring) {
            return;
        }
        let batch = ring.take_readers(Readers::UpTo(MOST_WOKEN));
        // A reader phase begins, so no writer has to be forced to give way any more. The flags
        // change under the wait lock only: what is subtracted is there.
        let handoff = self.load().0 & HANDOFF;
        let waiters = if ring.is_empty() { WAITERS } else { 0 };
        // INVARIANT: 1, 2 and 4.
        let bias = READER * i64::from(batch.readers) - claimed - handoff - waiters;
        if bias != 0 {
            // Relaxed: the claim, or our own lock, has acquired; the grant releases.
            self.add(bias, Relaxed);
        }
        if handoff != 0 {
            P::EVENTS.inc(Event::HandoffGranted);
        }
        P::EVENTS.add(Event::WakeReader, batch.readers);
        ring.grant(batch, wakes);
    }
}

/// Data under the lock to use.
pub type RwSemaphore<T> = crate::rwlock::Locked<T, RwSem<Rwsem>>;

// SAFETY: A writer's bit goes into the count only while neither it nor readers are there; a
// reader is let in only with its share in the count and no writer's bit there. Acquire when
// taking, release when giving up, as the module documentation says.
unsafe impl<P: Policy> Protocol for RwSem<P> {
    type Count = Count;

    fn init(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error> {
        Self::new(name, key)
    }

    const EVENTS: &'static Events<Event> = P::EVENTS;

    fn may_be_read(count: Count, marked: bool) -> bool {
        count.readers() > 0 && !count.has_writer() && marked
    }

    fn may_be_written(count: Count) -> bool {
        count.has_writer()
    }

    fn agrees(count: Count, queued: bool) -> bool {
        count.fits(queued)
    }

    fn holders(count: Count, _queued: bool) -> Holders {
        Holders {
            writer: count.has_writer(),
            readers: u64::try_from(count.readers()).unwrap_or(0),
            waiters: count.has(WAITERS),
            handoff: count.has_handoff(),
        }
    }

    #[inline(always)]
    fn read_lock(&self, sleep: Sleep) -> Result {
        let pin = preempt::disable();
        // ORDERING: Acquire pairs with the release in `up_write`.
        let (_, count) = self.add(READER, Acquire);
        if count.reader_got_it() {
            self.mark_reader(&pin);
            return Ok(());
        }
        self.read_lock_slow(count, pin, sleep)
    }

    #[inline(always)]
    fn try_read_lock(&self) -> bool {
        let pin = preempt::disable();
        let taken = self.try_take(Count::try_read).is_ok();
        if taken {
            self.mark_reader(&pin);
        }
        taken
    }

    #[inline(always)]
    fn read_unlock(&self) {
        // ORDERING: Release pairs with the acquire of the next writer.
        let (_, count) = self.add(-READER, Release);
        if count.is_free_with_waiters() {
            self.owner.clear_nonspinnable();
            self.wake();
        }
    }

    #[inline(always)]
    fn write_lock(&self, sleep: Sleep) -> Result {
        let pin = preempt::disable();
        if self.try_take_free(&pin) {
            return Ok(());
        }
        self.write_lock_slow(pin, sleep)
    }

    #[inline(always)]
    fn try_write_lock(&self) -> bool {
        self.try_take_free(&preempt::disable())
    }

    #[inline(always)]
    fn write_unlock(&self) {
        let pin = preempt::disable();
        self.owner.set(Owner::NONE, &pin);
        // ORDERING: Release pairs with the acquire of whoever takes the lock next.
        let (before, _) = self.add(-WRITER, Release);
        drop(pin);
        if before.has(WAITERS) {
            self.wake();
        }
    }

    #[inline(always)]
    fn downgrade(&self) {
        let pin = preempt::disable();
        // ORDERING: Release pairs with the acquire of the readers that join us.
        let (before, _) = self.add(READER - WRITER, Release);
        // A writer was there: the word has no reader's mark, so this writes in any policy.
        self.mark_reader(&pin);
        drop(pin);
        if before.has(WAITERS) {
            self.wake_readers_beside_us();
        }
    }
}

#[kunit_tests(klocks_rwsem)]
mod tests {
    use super::*;

    /// All words with up to two readers or one writer, each flag, and up to two readers that are
    /// about to take their share out again.
    fn for_all_words(mut check: impl FnMut(Count, i64, bool)) {
        for (readers, writer) in [(0, false), (1, false), (2, false), (0, true)] {
            for trying in 0..3 {
                for flags in [0, WAITERS, WAITERS | HANDOFF] {
                    let taken = (readers + trying) * READER + if writer { WRITER } else { 0 };
                    check(Count(taken | flags), readers + trying, writer);
                }
            }
        }
    }

    #[test]
    fn fields_do_not_overlap() {
        assert_eq!(WRITER | WAITERS | HANDOFF, 7);
        assert_eq!(RESERVED, 0xf8);
        assert_eq!(READER, 1 << 8);
        assert_eq!(TAKEN & (WAITERS | HANDOFF), 0);
        assert_eq!(TAKEN, WRITER | !0xff);
        assert!(READ_FAILED < 0);
        // The last reader before the overflow bit, and the first on it.
        let last = Count((i64::MAX >> READER_SHIFT) << READER_SHIFT);
        assert!(last.reader_got_it());
        assert!(!Count(last.0.wrapping_add(READER)).reader_got_it());
        assert!(Count(last.0.wrapping_add(READER)).has_overflow());
        assert!(!Count(last.0.wrapping_add(READER)).reader_may_steal());
    }

    #[test]
    fn reader_fast_path() {
        let mut ok = true;
        for_all_words(|count, _, writer| {
            let after = Count(count.0 + READER);
            ok &= after.reader_got_it() == (!writer && !count.has(WAITERS));
            ok &= count.try_read() == after.reader_got_it().then_some(after);
            ok &= after.reader_may_steal() == (!writer && !count.has_handoff());
        });
        assert!(ok);
    }

    #[test]
    fn spinning_writer() {
        let mut ok = true;
        for_all_words(|count, readers, writer| {
            let free = readers == 0 && !writer && !count.has_handoff();
            ok &= count.try_write_spinning() == free.then_some(Count(count.0 | WRITER));
        });
        assert!(ok);
    }

    #[test]
    fn queued_writer() {
        let mut ok = true;
        for_all_words(|count, readers, writer| {
            if !count.has(WAITERS) {
                return;
            }
            for alone in [false, true] {
                for other in [false, true] {
                    for late in [false, true] {
                        let free = readers == 0 && !writer;
                        let promised = count.has_handoff();
                        let waiters = if alone { 0 } else { WAITERS };
                        let expected = match (promised && other, free, promised || !late) {
                            (true, _, _) => QueuedTry::Wait,
                            (_, true, _) => QueuedTry::Take(Count(WRITER | waiters)),
                            (_, _, true) => QueuedTry::Wait,
                            _ => QueuedTry::AskHandoff(Count(count.0 | HANDOFF)),
                        };
                        ok &= count.try_write_queued(alone, other, late) == expected;
                    }
                }
            }
        });
        assert!(ok);
    }

    #[test]
    fn word_fits_queue() {
        let mut ok = true;
        for_all_words(|count, _, _| {
            ok &= count.fits(count.has(WAITERS)) && !count.fits(!count.has(WAITERS));
            ok &= !Count(count.0 | HANDOFF).fits(false);
            ok &= (3..READER_SHIFT).all(|bit| !Count(count.0 | 1 << bit).fits(count.has(WAITERS)));
        });
        assert!(ok);
    }

    #[test]
    fn release_wakes_when_free_and_waited_for() {
        let mut ok = true;
        for_all_words(|count, readers, writer| {
            ok &= count.is_free_with_waiters() == (readers == 0 && !writer && count.has(WAITERS));
            ok &= count.without_waiters().0 == count.0 & !(WAITERS | HANDOFF);
        });
        assert!(ok);
    }
}
