// SPDX-License-Identifier: GPL-2.0

//! The read-write semaphore of 2014: one signed count that readers and writers add to, lock
//! stealing, and optimistic spinning by writers.
//!
//! C counterpart: `kernel/locking/rwsem-xadd.c` and the x86 fast paths of Linux 3.16.
//!
//! # Protocol
//!
//! | count | meaning |
//! |---|---|
//! | 0 | free |
//! | `0 < n` | n readers |
//! | `WAITING_BIAS` (-2^32) | free, tasks wait in the ring |
//! | `WAITING_BIAS + n`, `0 < n` | n readers and waiters; or (n = 1) one writer and no waiter |
//! | `2 * WAITING_BIAS + n` and below | a writer and waiters; or writers that are about to undo |
//!
//! A reader adds 1, and has the lock when the sum is not negative: no writer, nobody waiting. A
//! writer adds `WRITE_BIAS` (-2^32 + 1), and has the lock when the low half was 0: nobody active.
//! Who fails undoes its bias and waits. As long as the ring is not empty, `WAITING_BIAS` is in the
//! count once. Releasing is subtracting what was added, and when the rest says "waiters, nobody
//! active", waking the first ones in the ring.
//!
//! A writer that is woken has been given nothing: it takes the lock itself, from `WAITING_BIAS`,
//! and anyone may have been faster. Readers are granted the lock by who wakes them.
//!
//! Every task that finds the lock held leaves its bias in the count for a moment. A release that
//! sees only such a bias as "active" wakes nobody: whoever undoes it then looks at the count, and
//! takes the lock or wakes the waiters.
//!
//! # Memory ordering
//!
//! The lock is taken with acquire and given up with release on the count, in one place each
//! ([`Words::add`](crate::semaphore::Words::add) names the ordering). A granted reader gets it
//! through its waiter: the waker acquires the count, then grants with release. Wake-ups cannot be
//! missed since all decisions are about one word, the count, and the ring is changed under the wait
//! lock.
//!
//! # Differences from 3.16
//!
//! - Writers change count and owner word with preemption off. 3.16 could be preempted between the
//!   two, and a real-time task on the same CPU then spun on "held, owner unknown" for good. It
//!   costs two per-CPU increments each way.
//! - A spinner that is real-time gives up after one try on an unknown owner, 3.16 as well; here
//!   spinning also stops at once when another task is to run.
//! - Waiters are woken after the wait lock is dropped.
//! - A queued writer takes the lock by one compare-and-exchange, where 3.16 exchanges and then
//!   adds the waiting bias back for those behind it.
//! - Killable and interruptible forms, which 3.16 lacks. Who leaves the ring from its head looks
//!   at the new head: readers behind a writer that is gone may be able to join the holders.

use crate::semaphore::{
    self,
    prelude::*, //
};

semaphore! {
    /// The lock: 32 bytes without debug options. Count and owner share a line and come first.
    RwSem,
    /// A value of the count.
    Count
}

/// The low half: how many are active, or try to be.
const ACTIVE_MASK: i64 = 0xffff_ffff;
/// A reader's share.
const READ_BIAS: i64 = 1;
/// There once while the ring is not empty.
pub(crate) const WAITING_BIAS: i64 = -(1 << 32);
/// A writer's share.
const WRITE_BIAS: i64 = WAITING_BIAS + 1;

impl Count {
    /// How many have the lock, or have left a bias there that they are going to undo.
    #[inline(always)]
    fn active(self) -> u64 {
        (self.0 & ACTIVE_MASK) as u64
    }

    /// Whether there is one at all.
    #[inline(always)]
    fn is_active(self) -> bool {
        self.active() != 0
    }

    /// After a reader's share was added: whether the reader has the lock.
    #[inline(always)]
    fn reader_got_it(self) -> bool {
        self.0 >= 0
    }

    /// Before a writer's share was added: whether the writer has the lock.
    #[inline(always)]
    fn writer_gets_it(self) -> bool {
        !self.is_active()
    }

    /// After a release or a downgrade: whether tasks wait, or a writer tries.
    #[inline(always)]
    fn is_contended(self) -> bool {
        self.0 < 0
    }

    /// With tasks in the ring: whether the lock is free.
    fn is_free_with_waiters(self) -> bool {
        self.0 == WAITING_BIAS
    }

    /// With tasks in the ring: whether readers have the lock.
    fn has_readers_with_waiters(self) -> bool {
        self.0 > WAITING_BIAS
    }

    /// With tasks in the ring, before a reader's share was added: whether no writer has the lock.
    fn reader_can_be_granted(self) -> bool {
        self.0 >= WAITING_BIAS
    }

    /// A reader's try: the word with its share, if it can have the lock at once.
    fn try_read(self) -> Option<Self> {
        (self.0 >= 0).then(|| Self(self.0.wrapping_add(READ_BIAS)))
    }

    /// A spinning reader's try: the word with its share, if the word alone tells that no writer has
    /// the lock. It may steal the lock from those who wait.
    fn try_read_spinning(self) -> Option<Self> {
        (self.0 >= 0 || self.is_free_with_waiters()).then(|| Self(self.0.wrapping_add(READ_BIAS)))
    }

    /// A spinning reader's try under the wait lock, which tells whether tasks wait: in the range
    /// from `WAITING_BIAS` to 0 a writer without waiters and readers with waiters look alike.
    fn try_read_ring_locked(self, waiters: bool) -> Option<Self> {
        let least = if waiters { WAITING_BIAS } else { 0 };
        (self.0 >= least).then(|| Self(self.0.wrapping_add(READ_BIAS)))
    }

    /// Whether the word alone leaves it open who has the lock, see [`Self::try_read_ring_locked`].
    fn is_ambiguous(self) -> bool {
        WAITING_BIAS < self.0 && self.0 < 0
    }

    /// A writer's try from outside the ring: the word with its share, stealing the lock from
    /// those who wait.
    fn try_write(self) -> Option<Self> {
        self.writer_gets_it()
            .then(|| Self(self.0.wrapping_add(WRITE_BIAS)))
    }

    /// A writer's try from the ring: the word with its share and, unless it is the only one there
    /// and hence leaves the ring empty, the waiting bias.
    fn try_write_queued(self, alone: bool) -> Option<Self> {
        let waiting = if alone { 0 } else { WAITING_BIAS };
        self.is_free_with_waiters()
            .then_some(Self(WRITE_BIAS.wrapping_add(waiting)))
    }
}

/// How the owner word tells of readers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReaderMark {
    /// Not at all.
    None,
    /// Each reader enters [`Owner::READERS`], which stays until a writer takes over.
    Always,
    /// The same, but a reader that finds it there does not write it again.
    IfAbsent,
    /// No writer known and the lock taken is held to mean readers.
    Inferred,
}

/// What a stage does; each is built from the one before it.
#[derive(Clone, Copy)]
pub struct Features {
    /// Writers spin before they sleep.
    writers_spin: bool,
    /// They do so also if no writer is known.
    spin_on_unknown: bool,
    /// A reschedule that came due during a spin happens when it ends.
    resched_after_spin: bool,
    /// A wake-up is left to a writer that has the lock again, or to a spinner.
    check_before_wake: bool,
    /// How spinners know that readers have the lock,
    reader_mark: ReaderMark,
    /// and how long they bear with them.
    patience: Patience,
    /// Readers spin before they sleep.
    readers_spin: bool,
    /// A woken writer that finds the lock taken leaves the queue to spin.
    writers_respin: bool,
}

/// A stage of this lock.
pub trait Policy: semaphore::Policy<Features = Features> {}

impl<P: semaphore::Policy<Features = Features>> Policy for P {}

policies! {
    /// No spinning: what 3.16 is on machines that cannot tell whether an owner runs.
    Nospin = c"rwsem_xadd.nospin": Features {
        writers_spin: false,
        spin_on_unknown: false,
        resched_after_spin: true,
        check_before_wake: false,
        reader_mark: ReaderMark::None,
        patience: Patience::Unbounded,
        readers_spin: false,
        writers_respin: false,
    };

    /// Linux 3.16, the "before" of the series: a writer spins if the owner is known and runs; a
    /// writer that was woken and finds the lock taken sleeps again.
    Base = c"rwsem_xadd.base": Features {
        writers_spin: true,
        ..Nospin::FEATURES
    };

    /// 1/7: no reschedule when a spin ends, since the task has the lock or is about to sleep.
    ///
    /// Review: "actively harmful", it delays whoever is to run here by an unknown time. Withdrawn;
    /// nothing is built on it.
    P1 = c"rwsem_xadd.p1": Features {
        resched_after_spin: false,
        ..Base::FEATURES
    };

    /// 2/7: assume that spinning is worth it unless proved otherwise, so also if no owner is known.
    ///
    /// Review: that had just been taken out because xfs_repair, whose readers hold the lock for
    /// long, became five times slower; p4 is the answer. 5.3 has it, bounded by time.
    P2 = c"rwsem_xadd.p2": Features {
        spin_on_unknown: true,
        ..Base::FEATURES
    };

    /// 3/7: two checks before waking. Under the wait lock, a known writer means that the lock was
    /// stolen, and its unlock will wake. In unlock, with a spinner present, the wait lock is only
    /// tried for: the spinner takes the lock, or looks at the queue when it gives up.
    ///
    /// Merged in 3.20 (the second check), found to miss wake-ups and repaired in 4.14 by the
    /// barrier that `wake` has here; removed in 5.3, since a handoff needs every wake-up.
    P3 = c"rwsem_xadd.p3": Features {
        check_before_wake: true,
        ..P2::FEATURES
    };

    /// 4/7: readers mark the owner word, and a spinner bears with readers for 100 turns.
    ///
    /// Review disliked a fixed number of turns and the store to the owner word on each read lock;
    /// see the three variants. 4.8 has the mark.
    P4 = c"rwsem_xadd.p4": Features {
        reader_mark: ReaderMark::Always,
        patience: Patience::Turns(100),
        ..P3::FEATURES
    };

    /// [`P4`] with what the author then proposed: 16 turns in a row without a change of the count.
    P4_16 = c"rwsem_xadd.p4_16": Features {
        patience: Patience::UnchangedTurns(16),
        ..P4::FEATURES
    };

    /// [`P4`] with a limit in time, as the reviewer wished and as 5.3 has it.
    P4Time = c"rwsem_xadd.p4_time": Features {
        patience: Patience::Time,
        ..P4::FEATURES
    };

    /// [`P4`] with the reviewer's alternative to the mark: no writer known and the lock taken.
    ///
    /// The two words are read one after the other. A writer between its count and its owner word
    /// is taken for readers, and costs the spinner a turn; readers that leave between the two
    /// reads cost nothing, since the spinner then tries for the lock anyway.
    P4Null = c"rwsem_xadd.p4_null": Features {
        reader_mark: ReaderMark::Inferred,
        ..P4::FEATURES
    };

    /// 6/7: readers spin too. (5/7 only moves code.)
    ///
    /// 5.3 has it, 5.11 took it out again: readers that spin come in small groups between writers,
    /// readers that queue all at once.
    P6 = c"rwsem_xadd.p6": Features {
        readers_spin: true,
        ..P4::FEATURES
    };

    /// 7/7: a woken writer that finds the lock taken leaves the queue and spins, and enters at the
    /// tail when it gets nothing.
    P7 = c"rwsem_xadd.p7": Features {
        writers_respin: true,
        ..P6::FEATURES
    };

    /// 1/7 to 7/7 as mailed: the series' "after".
    Posted = c"rwsem_xadd.posted": Features {
        resched_after_spin: false,
        ..P7::FEATURES
    };

    /// The lock to use: the series without what review has rejected.
    ///
    /// Nothing bounds for how long spinners pass over those who sleep: with readers that sleep inside,
    /// a writer was seen to wait for 79 ms (docs/ablation.md). The lock with a bound is
    /// [`rwsem`](crate::rwsem).
    Xadd = c"rwsem_xadd": Features {
        reader_mark: ReaderMark::IfAbsent,
        ..P7::FEATURES
    };
}

/// How a writer's sleep ended.
enum Woken {
    /// It has taken the lock.
    WithLock,
    /// It has left the ring, to spin.
    ToSpin,
}

impl<P: Policy> Spinnable for RwSem<P> {
    const UNKNOWN: bool = P::FEATURES.spin_on_unknown;
    const FOLLOW: bool = false;
    const PATIENCE: Patience = P::FEATURES.patience;
    const RESCHED: bool = P::FEATURES.resched_after_spin;

    #[inline(always)]
    fn spin_words(&self) -> (&OwnerWord, &Osq) {
        (&self.owner, self.queue.osq())
    }

    #[inline(always)]
    fn readers(owner: Owner, count: i64) -> Option<u64> {
        let count = Count(count);
        let readers = match P::FEATURES.reader_mark {
            ReaderMark::None => false,
            ReaderMark::Always | ReaderMark::IfAbsent => owner.is_reader(),
            ReaderMark::Inferred => owner == Owner::NONE && count.is_active(),
        };
        readers.then(|| count.active())
    }

    /// It never is: whoever is first has it.
    #[inline(always)]
    fn is_promised(&self) -> bool {
        false
    }
}

impl<P: Policy> RwSem<P> {
    /// Takes the lock as a writer by the transition `step`, and enters the owner in the same
    /// preempt-off region.
    #[inline]
    fn try_take_write(
        &self,
        pin: &PreemptDisabled,
        step: impl Fn(Count) -> Option<Count>,
    ) -> Result<Count, Count> {
        let before = self.try_take(step)?;
        self.owner.set(Owner::writer(Task::current()), pin);
        Ok(before)
    }

    /// Enters readers into the owner word, where the policy has that.
    #[inline(always)]
    fn mark_reader(&self, pin: &PreemptDisabled) {
        match P::FEATURES.reader_mark {
            ReaderMark::None | ReaderMark::Inferred => {}
            ReaderMark::Always => self.owner.set(Owner::READERS, pin),
            ReaderMark::IfAbsent => {
                // The line stays shared among readers.
                if self.owner.load() != Owner::READERS {
                    self.owner.set(Owner::READERS, pin);
                }
            }
        }
    }

    /// Preemption off for a read lock and its mark, where the policy has one.
    #[inline(always)]
    fn pin_for_mark() -> Option<PreemptGuard> {
        match P::FEATURES.reader_mark {
            ReaderMark::None | ReaderMark::Inferred => None,
            ReaderMark::Always | ReaderMark::IfAbsent => Some(preempt::disable()),
        }
    }

    /// Waits for the lock with a reader's share already in the count, which has to come out first.
    /// `pin` is the fast path's: given up here, where a call does not burden that.
    #[cold]
    #[inline(never)]
    fn read_lock_slow(&self, pin: Option<PreemptGuard>, sleep: Sleep) -> Result {
        drop(pin);
        semaphore::waiting(self, Mode::Read, sleep, || {
            let mut bias = -READ_BIAS;
            if P::FEATURES.readers_spin {
                // Relaxed: nothing was done under the lock that it would publish.
                self.add(-READ_BIAS, Relaxed);
                if self.spin_for_read() {
                    return Ok(());
                }
                bias = 0;
            }
            let waiter = Waiter::new(Kind::Reader);
            self.enqueue_reader(&waiter, bias);
            self.queue
                .sleep_until_granted(&waiter, sleep, || P::EVENTS.inc(Event::SleepReader))
                .map_err(|ring| self.cancel(ring, &waiter))?;
            P::EVENTS.inc(Event::Rlock);
            if let Some(pin) = Self::pin_for_mark() {
                self.mark_reader(&pin);
            }
            Ok(())
        })
    }

    /// Spins for a read lock; marks it and brings those along who queue for one.
    fn spin_for_read(&self) -> bool {
        let spun = spin::optimistic_spin(self, |pin| match self.try_read_spinning(pin) {
            Ok(()) => Try::Taken,
            Err(count) => Try::Held(count.0),
        });
        self.count_spin(spun, Event::ReaderOptLock)
    }

    /// A spinning reader's try for the lock. Without it, the count that is why.
    fn try_read_spinning(&self, pin: &PreemptDisabled) -> Result<(), Count> {
        loop {
            let count = match self.try_take(Count::try_read_spinning) {
                Ok(before) => {
                    self.mark_reader(pin);
                    if before.is_free_with_waiters() {
                        P::EVENTS.inc(Event::Steal);
                        // Whoever has the wait lock is about to look at the queue itself.
                        if let Some(ring) = self.queue.try_lock_irqsave() {
                            self.wake_from(ring, Wake::ReadersBesideUs);
                        }
                    }
                    return Ok(());
                }
                Err(count) => count,
            };
            // Who has the lock is only worth finding out if the last ones were readers.
            if self.owner.load() != Owner::READERS || !count.is_ambiguous() {
                return Err(count);
            }
            let ring = self.queue.lock_irqsave();
            let count = self.load();
            let Some(new) = count.try_read_ring_locked(!ring.is_empty()) else {
                return Err(count);
            };
            // ORDERING: Acquire pairs with the release in `up_write`.
            if self.count.cmpxchg(count.0, new.0, Acquire).is_ok() {
                self.mark_reader(pin);
                self.wake_from(ring, Wake::ReadersBesideUs);
                return Ok(());
            }
        }
    }

    /// Enters a reader into the ring and adds `bias` to the count; `bias` takes out its share if
    /// that is still there.
    fn enqueue_reader(&self, waiter: &Waiter, bias: i64) {
        let mut wakes = WakeQ::new();
        let mut ring = self.queue.lock();
        let first = ring.is_empty();
        // SAFETY: In no ring; it stays in its frame until granted or, in `cancel`, removed.
        unsafe { ring.push(waiter) };
        let bias = bias + if first { WAITING_BIAS } else { 0 };
        // ORDERING: Full pairs with the barrier in `wake`: if the releaser found us in the spin
        // queue and left waking to us, we find here what it has released.
        let (_, count) = self.add(bias, Full);
        // Nobody is active, so nobody else wakes the ring. Or readers have the lock and we are
        // first in line: we can join them.
        if count.is_free_with_waiters() || (first && count.has_readers_with_waiters()) {
            self.mark_wake(&mut ring, Wake::Any, &mut wakes);
        }
        drop(ring);
        wakes.wake_all();
    }

    /// Waits for the lock with a writer's share already in the count, which has to come out first.
    /// `pin` is as in `read_lock_slow`.
    #[cold]
    #[inline(never)]
    fn write_lock_slow(&self, pin: PreemptGuard, sleep: Sleep) -> Result {
        drop(pin);
        semaphore::waiting(self, Mode::Write, sleep, || {
            // Relaxed: nothing was done under the lock that it would publish.
            self.add(-WRITE_BIAS, Relaxed);
            let mut respun = false;
            loop {
                if P::FEATURES.writers_spin && self.spin_for_write() {
                    return Ok(());
                }
                if respun {
                    P::EVENTS.inc(Event::Requeue);
                }
                let waiter = Waiter::new(Kind::Writer);
                self.enqueue_writer(&waiter);
                match self.sleep_for_write(&waiter, sleep)? {
                    Woken::WithLock => {
                        P::EVENTS.inc(Event::Wlock);
                        return Ok(());
                    }
                    Woken::ToSpin => {
                        P::EVENTS.inc(Event::Respin);
                        respun = true;
                    }
                }
            }
        })
    }

    fn spin_for_write(&self) -> bool {
        let spun = spin::optimistic_spin(self, |pin| {
            match self.try_take_write(pin, Count::try_write) {
                Ok(before) => {
                    if before.is_free_with_waiters() {
                        P::EVENTS.inc(Event::Steal);
                    }
                    Try::Taken
                }
                Err(count) => Try::Held(count.0),
            }
        });
        self.count_spin(spun, Event::OptLock)
    }

    /// Counts how a spin ended, with `taken` for the lock; whether it was.
    fn count_spin(&self, spun: Spun, taken: Event) -> bool {
        P::EVENTS.inc(spin_event(spun, taken));
        if !P::FEATURES.resched_after_spin {
            P::EVENTS.inc_if(Event::ReschedLeft, task::need_resched);
        }
        spun == Spun::Taken
    }

    fn enqueue_writer(&self, waiter: &Waiter) {
        let mut wakes = WakeQ::new();
        let mut ring = self.queue.lock();
        let first = ring.is_empty();
        // SAFETY: In no ring; it stays in its frame until `sleep_for_write` has removed it.
        unsafe { ring.push(waiter) };
        let bias = if first { WAITING_BIAS } else { 0 };
        // ORDERING: Full pairs with the barrier in `wake`, as in `enqueue_reader`.
        let (_, count) = self.add(bias, Full);
        if !first && count.has_readers_with_waiters() {
            // Readers have the lock and tasks queue: readers at the head may join.
            self.mark_wake(&mut ring, Wake::Readers, &mut wakes);
        }
        drop(ring);
        wakes.wake_all();
    }

    /// Sleeps until the lock is free and `waiter` has taken it; or, where the policy has that, until
    /// it is woken and may spin instead. Either way it has left the ring.
    fn sleep_for_write(&self, waiter: &Waiter, sleep: Sleep) -> Result<Woken> {
        let mut slept = false;
        loop {
            sleep.prepare();
            // The wait lock is taken only when there is a chance.
            if !self.load().is_active() {
                let mut ring = self.queue.lock();
                let alone = ring.is_singular();
                let pin = preempt::disable();
                let step = |count: Count| count.try_write_queued(alone);
                if self.try_take_write(&pin, step).is_ok() {
                    ring.remove(waiter);
                    task::set_running();
                    return Ok(Woken::WithLock);
                }
            } else if P::FEATURES.writers_respin && slept && self.may_respin() {
                let mut ring = self.queue.lock();
                task::set_running();
                self.leave_ring(&mut ring, waiter);
                return Ok(Woken::ToSpin);
            }
            if sleep.signal_pending() {
                task::set_running();
                return Err(self.cancel(self.queue.lock(), waiter));
            }
            task::schedule();
            slept = true;
            P::EVENTS.inc(Event::SleepWriter);
        }
    }

    fn may_respin(&self) -> bool {
        let pin = preempt::disable();
        self.owner.can_spin(P::FEATURES.spin_on_unknown, &pin)
    }

    /// Takes `waiter` out of the ring, and the waiting bias out of the count if it was the last.
    fn leave_ring(&self, ring: &mut WaitGuard<'_, Irq>, waiter: &Waiter) {
        ring.remove(waiter);
        if ring.is_empty() {
            // Relaxed: ordered by the wait lock against others in the ring.
            self.add(-WAITING_BIAS, Relaxed);
        }
    }

    /// Takes `waiter` out of the ring after a signal.
    fn cancel(&self, mut ring: WaitGuard<'_, Irq>, waiter: &Waiter) -> Error {
        P::EVENTS.inc(Event::Cancel);
        let first = ring.is_first(waiter);
        self.leave_ring(&mut ring, waiter);
        if first {
            // The new head may be able to have the lock at once.
            self.wake_from(ring, Wake::Any);
        }
        EINTR
    }

    /// Wakes from the ring after a release that left `count`, unless someone active will.
    #[cold]
    #[inline(never)]
    fn wake(&self, count: Count) {
        annotate::contended_release(self);
        if count.is_active() {
            return;
        }
        if P::FEATURES.check_before_wake {
            // ORDERING: Full, between the count that we have released and the look at the spin
            // queue. Partner: a spinner that gives up leaves the spin queue and then looks at the
            // count, in `enqueue_reader` or `enqueue_writer`. So we find it gone, and wake, or it
            // finds the lock free.
            smp_mb(barrier::Full);
            if self.queue.osq().is_locked() {
                // It is not worth waiting for the wait lock: the spinner takes the lock, or looks
                // at the queue when it gives up.
                match self.queue.try_lock_irqsave() {
                    Some(ring) => self.wake_from(ring, Wake::Any),
                    None => P::EVENTS.inc(Event::WakeTrylockFailed),
                }
                return;
            }
        }
        self.wake_from(self.queue.lock_irqsave(), Wake::Any);
    }

    /// Adds a reader's share on behalf of the first reader in the ring, unless a writer has the
    /// lock.
    fn claim_read(&self) -> bool {
        loop {
            // ORDERING: Acquire pairs with the release in `up_write`, on behalf of the readers.
            let (before, _) = self.add(READ_BIAS, Acquire);
            if before.reader_can_be_granted() {
                return true;
            }
            // Relaxed: undoes, publishes nothing.
            let (_, after) = self.add(-READ_BIAS, Relaxed);
            if after.is_active() {
                return false;
            }
            // The writer gave the lock up between the two, and saw our share as someone active:
            // waking is left to us.
        }
    }
}

impl<P: Policy> Wakes for RwSem<P> {
    /// Collects into `wakes` who can go on: the first waiter if it is a writer, else all readers
    /// before the first writer, which are granted the lock.
    fn mark_wake<I: Interrupts>(&self, ring: &mut WaitGuard<'_, I>, whom: Wake, wakes: &mut WakeQ) {
        // A writer clears the word before it gives the lock up, and then wakes: if one is there,
        // the lock was stolen.
        if P::FEATURES.check_before_wake && self.owner.load().as_writer().is_some() {
            P::EVENTS.inc(Event::WakeAborted);
            return;
        }
        match ring.first().map(Waiter::kind) {
            None => return,
            Some(Kind::Writer) => {
                if whom == Wake::Any {
                    P::EVENTS.inc(Event::WakeWriter);
                    ring.wake_first(wakes);
                }
                return;
            }
            Some(Kind::Reader) => {}
        }
        // A writer may steal the lock up to here, unless we hold it. So one share goes in first.
        let claimed = if whom == Wake::ReadersBesideUs { 0 } else { 1 };
        if claimed != 0 && !self.claim_read() {
            return;
        }
        let batch = ring.take_readers(Readers::BeforeFirstWriter);
        let waiting = if ring.is_empty() { -WAITING_BIAS } else { 0 };
        // All shares are in the count before any reader can notice its grant and give it up.
        let bias = READ_BIAS * (i64::from(batch.readers) - claimed) + waiting;
        if bias != 0 {
            // Relaxed: the claim, or our own lock, has acquired; the grant releases.
            self.add(bias, Relaxed);
        }
        P::EVENTS.add(Event::WakeReader, batch.readers);
        ring.grant(batch, wakes);
    }
}

/// Data under the lock to use.
pub type RwSemaphoreXadd<T> = crate::rwlock::Locked<T, RwSem<Xadd>>;

// SAFETY: A reader's share goes into the count only while no writer's is there, and a writer's
// only while none is; whoever's attempt fails is not let in. Acquire when taking, release when
// giving up, as the module documentation says.
unsafe impl<P: Policy> Protocol for RwSem<P> {
    type Count = Count;

    fn init(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error> {
        Self::new(name, key)
    }

    const EVENTS: &'static Events<Event> = P::EVENTS;

    fn may_be_read(count: Count, _marked: bool) -> bool {
        count.is_active()
    }

    fn may_be_written(count: Count) -> bool {
        count.is_active() && count.is_contended()
    }

    /// Shares of writers that are about to take them back look like waiters.
    fn agrees(_count: Count, _queued: bool) -> bool {
        true
    }

    fn holders(count: Count, queued: bool) -> Holders {
        let waiting = if queued { WAITING_BIAS } else { 0 };
        let shares = Count(count.0.wrapping_sub(waiting));
        let writer = shares.is_contended();
        Holders {
            writer,
            readers: if writer { 0 } else { shares.active() },
            waiters: queued,
            handoff: false,
        }
    }

    #[inline(always)]
    fn read_lock(&self, sleep: Sleep) -> Result {
        let pin = Self::pin_for_mark();
        // ORDERING: Acquire pairs with the release in `up_write`.
        let (_, count) = self.add(READ_BIAS, Acquire);
        if count.reader_got_it() {
            if let Some(pin) = &pin {
                self.mark_reader(pin);
            }
            return Ok(());
        }
        self.read_lock_slow(pin, sleep)
    }

    #[inline(always)]
    fn try_read_lock(&self) -> bool {
        let pin = Self::pin_for_mark();
        let taken = self.try_take(Count::try_read).is_ok();
        if let (true, Some(pin)) = (taken, &pin) {
            self.mark_reader(pin);
        }
        taken
    }

    #[inline(always)]
    fn read_unlock(&self) {
        // ORDERING: Release pairs with the acquire of the next writer.
        let (_, count) = self.add(-READ_BIAS, Release);
        if count.is_contended() {
            self.wake(count);
        }
    }

    #[inline(always)]
    fn write_lock(&self, sleep: Sleep) -> Result {
        let pin = preempt::disable();
        // ORDERING: Acquire pairs with the release in `up_read`, `up_write`, `downgrade_write`.
        let (count, _) = self.add(WRITE_BIAS, Acquire);
        if count.writer_gets_it() {
            self.owner.set(Owner::writer(Task::current()), &pin);
            return Ok(());
        }
        self.write_lock_slow(pin, sleep)
    }

    #[inline(always)]
    fn try_write_lock(&self) -> bool {
        let pin = preempt::disable();
        self.try_take_write(&pin, Count::try_write).is_ok()
    }

    #[inline(always)]
    fn write_unlock(&self) {
        let pin = preempt::disable();
        self.owner.set(Owner::NONE, &pin);
        // ORDERING: Release pairs with the acquire of whoever takes the lock next.
        let (_, count) = self.add(-WRITE_BIAS, Release);
        drop(pin);
        if count.is_contended() {
            self.wake(count);
        }
    }

    #[inline(always)]
    fn downgrade(&self) {
        let pin = preempt::disable();
        self.owner.set(Owner::NONE, &pin);
        // ORDERING: Release pairs with the acquire of the readers that join us.
        let (_, count) = self.add(READ_BIAS - WRITE_BIAS, Release);
        self.mark_reader(&pin);
        drop(pin);
        if count.is_contended() {
            self.wake_readers_beside_us();
        }
    }
}

#[kunit_tests(klocks_rwsem_xadd)]
mod tests {
    use super::*;

    /// Who is at the lock: the count is made of this, whatever the order of events was.
    #[derive(Clone, Copy)]
    struct State {
        readers: i64,
        writers: i64,
        waiting: bool,
        trying_readers: i64,
        trying_writers: i64,
    }

    impl State {
        fn count(self) -> Count {
            let waiting = if self.waiting { WAITING_BIAS } else { 0 };
            Count(
                (self.readers + self.trying_readers) * READ_BIAS
                    + (self.writers + self.trying_writers) * WRITE_BIAS
                    + waiting,
            )
        }

        fn trying(self) -> i64 {
            self.trying_readers + self.trying_writers
        }

        fn active(self) -> i64 {
            self.readers + self.writers + self.trying()
        }
    }

    /// All states with up to three readers or one writer, waiters or none, and up to two tasks of
    /// each kind that have added their share and are about to take it out.
    fn for_all_states(mut check: impl FnMut(State)) {
        for (readers, writers) in [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1)] {
            for waiting in [false, true] {
                for trying_readers in 0..3 {
                    for trying_writers in 0..3 {
                        check(State {
                            readers,
                            writers,
                            waiting,
                            trying_readers,
                            trying_writers,
                        });
                    }
                }
            }
        }
    }

    #[test]
    fn biases_have_their_signs() {
        assert!(WAITING_BIAS < 0);
        assert!(WRITE_BIAS < 0);
        assert_eq!(WAITING_BIAS & ACTIVE_MASK, 0);
        assert_eq!(WRITE_BIAS & ACTIVE_MASK, 1);
        assert_eq!(WRITE_BIAS - WAITING_BIAS, READ_BIAS);
        assert_eq!(READ_BIAS & ACTIVE_MASK, 1);
    }

    #[test]
    fn there_is_room_for_every_task() {
        /// `PID_MAX_LIMIT`: as many tasks as a kernel can have.
        const TASKS: i64 = 4 << 20;
        let full = State {
            readers: TASKS,
            writers: 0,
            waiting: false,
            trying_readers: 0,
            trying_writers: 0,
        };
        let waited_for = State {
            waiting: true,
            ..full
        };
        let trying = State {
            readers: 1,
            trying_writers: TASKS,
            ..waited_for
        };
        for state in [full, waited_for, trying] {
            assert_eq!(state.count().active(), state.active() as u64);
        }
        assert!(full.count().reader_got_it());
        assert!(waited_for.count().has_readers_with_waiters());
        assert!(trying.count().is_contended());
        assert!(trying.count().0 < 0 && !trying.count().writer_gets_it());
    }

    /// Every release in every state: exactly the giver's share goes, and the ring is looked at when it
    /// was the last one active, by nobody else.
    #[test]
    fn release_from_every_state() {
        let mut ok = true;
        for_all_states(|before| {
            let after = match before {
                State { readers: 1.., .. } => State {
                    readers: before.readers - 1,
                    ..before
                },
                State { writers: 1, .. } => State {
                    writers: 0,
                    ..before
                },
                _ => return,
            };
            let bias = if before.writers == 1 {
                WRITE_BIAS
            } else {
                READ_BIAS
            };
            let word = Count(before.count().0 - bias);
            ok &= word == after.count();
            // `read_unlock` and `write_unlock` look further when this is set, `wake` when that is not.
            let wakes = word.is_contended() && !word.is_active();
            ok &= wakes == (after.waiting && after.active() == 0);
            // Whoever tries is active, and looks when it takes its share out again.
            ok &= !wakes || after.trying() == 0;
        });
        assert!(ok);
    }

    #[test]
    fn downgrade_from_every_state() {
        let mut ok = true;
        for_all_states(|before| {
            if before.writers == 0 {
                return;
            }
            let after = State {
                readers: 1,
                writers: 0,
                ..before
            };
            let word = Count(before.count().0 + READ_BIAS - WRITE_BIAS);
            ok &= word == after.count();
            // Readers in the ring are looked for whenever there are any.
            ok &= word.is_contended() == (after.waiting || after.trying_writers != 0);
        });
        assert!(ok);
    }

    #[test]
    fn active_counts_holders_and_triers() {
        let mut ok = true;
        for_all_states(|s| ok &= s.count().active() == s.active() as u64);
        assert!(ok);
    }

    #[test]
    fn reader_fast_path() {
        let mut ok = true;
        for_all_states(|s| {
            let got = Count(s.count().0 + READ_BIAS).reader_got_it();
            // Nobody waits, has the lock for writing, or tries to.
            ok &= got == (!s.waiting && s.writers == 0 && s.trying_writers == 0);
            ok &= s.count().try_read().is_some() == got;
        });
        assert!(ok);
    }

    #[test]
    fn writer_fast_path() {
        let mut ok = true;
        for_all_states(|s| {
            ok &= s.count().writer_gets_it() == (s.active() == 0);
            ok &=
                s.count().try_write() == (s.active() == 0).then(|| Count(s.count().0 + WRITE_BIAS));
        });
        assert!(ok);
    }

    #[test]
    fn queued_writer_takes_a_free_lock_only() {
        let mut ok = true;
        for_all_states(|s| {
            if !s.waiting {
                return;
            }
            let free = s.active() == 0;
            // Alone in the ring it leaves none behind, else the bias of those behind stays.
            ok &= s.count().try_write_queued(true) == free.then_some(Count(WRITE_BIAS));
            ok &= s.count().try_write_queued(false)
                == free.then_some(Count(WRITE_BIAS + WAITING_BIAS));
            ok &= s.count().is_free_with_waiters() == free;
        });
        assert!(ok);
    }

    #[test]
    fn readers_are_never_granted_beside_a_writer() {
        let mut ok = true;
        for_all_states(|s| {
            if !s.waiting {
                return;
            }
            let granted = s.count().reader_can_be_granted();
            ok &= !(granted && s.writers != 0);
            // And always when it is clear that none is there.
            ok &= granted || s.writers != 0 || s.trying_writers != 0;
            ok &= s.count().has_readers_with_waiters() == (granted && s.active() != 0);
        });
        assert!(ok);
    }

    #[test]
    fn spinning_reader_and_the_ambiguous_range() {
        let mut ok = true;
        for_all_states(|s| {
            let count = s.count();
            let clear = s.writers == 0 && s.trying_writers == 0;
            // The word alone: only if it says so without doubt.
            let alone = count.try_read_spinning().is_some();
            ok &= !alone || clear;
            ok &= alone == (clear && (!s.waiting || s.active() == 0));
            // Under the wait lock the doubt is gone.
            ok &= count.try_read_ring_locked(s.waiting).is_some() == clear;
            // Doubt is where either of the two can be.
            ok &= !count.is_ambiguous() || (s.waiting != (s.writers + s.trying_writers == 1));
        });
        assert!(ok);
    }

    #[test]
    fn release_words() {
        // (holders, what they give up, word afterwards without and with waiters, wake).
        for (before, bias, after) in [
            (WRITE_BIAS, -WRITE_BIAS, 0),
            (READ_BIAS, -READ_BIAS, 0),
            (2 * READ_BIAS, -READ_BIAS, READ_BIAS),
            (WRITE_BIAS, READ_BIAS - WRITE_BIAS, READ_BIAS),
        ] {
            let alone = Count(before + bias);
            assert_eq!(alone, Count(after));
            assert!(!alone.is_contended());
            let waited_for = Count(before + WAITING_BIAS + bias);
            assert_eq!(waited_for, Count(after + WAITING_BIAS));
            assert!(waited_for.is_contended());
            assert_eq!(waited_for.is_active(), after != 0);
        }
    }
}
