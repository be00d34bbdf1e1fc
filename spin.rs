// SPDX-License-Identifier: GPL-2.0

//! Optimistic spinning: waiting for a sleeping lock without sleeping, for as long as its owner
//! runs. Shared by both read-write semaphores.
//!
//! C counterpart: the `CONFIG_RWSEM_SPIN_ON_OWNER` parts of
//! [`kernel/locking/rwsem.c`](srctree/kernel/locking/rwsem.c).
//!
//! # Protocol
//!
//! Next to its count, a lock keeps an [`OwnerWord`], a hint at who holds it. A spinner joins the
//! lock's [`Osq`], and as its head alternates between waiting while the owner runs and trying to
//! take the lock, until it has it or should stop: because another task is to run here, because
//! the owner sleeps, or because the owner is not known and may never run while we spin.
//!
//! # Invariants
//!
//! 1. Count and owner word change within one preempt-off region, so that a task that finds the
//!    lock held by nobody known does not keep the holder off its CPU between the two.
//! 2. A task in the owner word is looked at only with preemption off since before it was read
//!    there: a writer clears the word before it can exit, so RCU keeps the structure.
//!
//! # Memory ordering
//!
//! The owner word is a hint and all its accesses are relaxed. The lock is taken by its count.

use crate::{
    kapi::{
        clock,
        preempt::{
            self,
            PreemptDisabled, //
        },
        stall::stall,
        task::{
            self,
            Task, //
        }, //
    },
    osq::Osq, //
};
use kernel::{
    prelude::*,
    processor::cpu_relax,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// A value of the owner word.
///
/// | bits 63-6 | bit 1 | bit 0 | meaning |
/// |---|---|---|---|
/// | 0 | 0 | 0 | free, or held by someone not (yet) known |
/// | task | 0 | 0 | that task holds the lock for writing |
/// | task or 0 | x | 1 | the last to take the lock were readers, that task among them; they may have given it up since |
/// | task or 0 | 1 | 1 | the same, and spinners have waited for them long enough |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner(usize);

impl Owner {
    pub(crate) const NONE: Self = Self(0);
    /// Readers, none of them named.
    pub(crate) const READERS: Self = Self(Self::READER);

    const READER: usize = 1 << 0;
    const NONSPINNABLE: usize = 1 << 1;
    const FLAGS: usize = Self::READER | Self::NONSPINNABLE;

    /// The writer `task`.
    #[inline(always)]
    pub(crate) fn writer(task: Task) -> Self {
        Self(task.addr())
    }

    /// Readers, `task` among them, with the spinners' mark of what was there before.
    #[inline(always)]
    pub(crate) fn reader_after(task: Task, before: Self) -> Self {
        Self(task.addr() | Self::READER | (before.0 & Self::NONSPINNABLE))
    }

    /// The word as a number.
    pub(crate) fn raw(self) -> usize {
        self.0
    }

    /// Whether readers were the last to take the lock.
    #[inline(always)]
    pub(crate) fn is_reader(self) -> bool {
        self.0 & Self::READER != 0
    }

    /// Whether spinning for the lock is pointless until its readers are gone.
    #[inline(always)]
    pub(crate) fn is_nonspinnable(self) -> bool {
        self.0 & Self::NONSPINNABLE != 0
    }

    /// The task that holds the lock for writing, if it is known.
    #[inline(always)]
    pub(crate) fn as_writer(self) -> Option<Task> {
        (self.0 != 0 && self.0 & Self::FLAGS == 0).then(|| Task::from_addr(self.0))
    }
}

/// An owner word as someone else sees it.
pub(crate) struct OwnerLook {
    pub(crate) owner: Owner,
    /// The number of the task that holds the lock for writing, if it is known.
    pub(crate) writer: Option<i32>,
}

/// Who holds a lock, as far as is known.
pub(crate) struct OwnerWord(Atomic<usize>);

impl OwnerWord {
    /// Nobody known.
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(Owner::NONE.0))
    }

    #[inline(always)]
    pub(crate) fn load(&self) -> Owner {
        // Relaxed: a hint, see the module's notes on ordering.
        Owner(self.0.load(Relaxed))
    }

    /// What the word says, to be shown.
    pub(crate) fn look(&self) -> OwnerLook {
        let _pin = preempt::disable();
        let owner = self.load();
        OwnerLook {
            owner,
            // SAFETY: Invariant 2: read with preemption off.
            writer: owner.as_writer().map(|task| unsafe { task.pid() }),
        }
    }

    /// Enters `owner`; in the region in which the lock changes hands, or while the caller holds
    /// it.
    #[inline(always)]
    pub(crate) fn set(&self, owner: Owner, _pin: &PreemptDisabled) {
        stall!(SP1);
        // INVARIANT: 1 and 2, by the caller's region.
        // Relaxed: a hint.
        self.0.store(owner.0, Relaxed);
    }

    /// Changes the word to what `step` says, unless that says to leave it.
    fn update(&self, step: impl Fn(Owner) -> Option<Owner>) {
        let mut owner = self.load();
        while let Some(new) = step(owner) {
            // Relaxed: a hint.
            match self.0.cmpxchg(owner.0, new.0, Relaxed) {
                Ok(_) => return,
                Err(now) => owner = Owner(now),
            }
        }
    }

    /// Tells spinners not to wait for the present readers.
    pub(crate) fn set_nonspinnable(&self) {
        self.update(|owner| {
            (owner.is_reader() && !owner.is_nonspinnable())
                .then_some(Owner(owner.0 | Owner::NONSPINNABLE))
        });
    }

    /// Lets spinners wait again: the readers are gone.
    #[inline(always)]
    pub(crate) fn clear_nonspinnable(&self) {
        if self.load().is_nonspinnable() {
            self.update(|owner| {
                owner
                    .is_nonspinnable()
                    .then_some(Owner(owner.0 & !Owner::NONSPINNABLE))
            });
        }
    }

    /// Whether spinning has a chance: nobody else is to run here, and the owner, if there is a
    /// writer, runs. `unknown` is the answer when no writer is known.
    #[inline]
    pub(crate) fn can_spin(&self, unknown: bool, pin: &PreemptDisabled) -> bool {
        if task::need_resched() {
            return false;
        }
        let owner = self.load();
        match owner.as_writer() {
            // SAFETY: Invariant 2: read with preemption off.
            Some(owner) => unsafe { owner.is_on_cpu(pin) },
            None => unknown && !owner.is_nonspinnable(),
        }
    }
}

/// How long a spinner bears with readers, of whom it cannot know whether they run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// For as long as nobody else is to run here.
    Unbounded,
    /// That many turns of the loop in all.
    Turns(u32),
    /// That many turns in a row without a change of the count.
    UnchangedTurns(u32),
    /// 10 us and 0.5 us a reader, 25 us at most, as C does since 5.3.
    Time,
}

/// What [`Patience`] has to remember in one spin.
struct Endurance {
    turns: u32,
    count: i64,
    until: u64,
}

impl Endurance {
    /// At the first turn in which readers have the lock.
    fn new(patience: Patience, count: i64, readers: u64) -> Self {
        let until = match patience {
            Patience::Time => clock::sched_ns().wrapping_add(time_limit(readers)),
            _ => 0,
        };
        Self {
            turns: 1,
            count,
            until,
        }
    }

    /// Another turn with readers: whether to go on.
    fn bear(&mut self, patience: Patience, count: i64) -> bool {
        /// Reading the clock at each turn would cost more than the turn. C has 16, which take as long. The
        /// first turn, number 1, has just read it.
        const TURNS_PER_CLOCK: u32 = 24;
        self.turns = self.turns.wrapping_add(1);
        match patience {
            Patience::Unbounded => true,
            Patience::Turns(most) => self.turns <= most,
            Patience::UnchangedTurns(most) => {
                if self.count != count {
                    self.count = count;
                    self.turns = 1;
                }
                self.turns <= most
            }
            Patience::Time => self.turns % TURNS_PER_CLOCK != 1 || clock::sched_ns() <= self.until,
        }
    }
}

/// The nanoseconds of [`Patience::Time`].
fn time_limit(readers: u64) -> u64 {
    const BASE: u64 = 10_000;
    const PER_READER: u64 = 500;
    const MOST: u64 = 25_000;
    readers
        .saturating_mul(PER_READER)
        .saturating_add(BASE)
        .min(MOST)
}

/// How a spinner's try for the lock ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Try {
    /// With the lock.
    Taken,
    /// Without it, because of this count.
    Held(i64),
    /// Without it, and it is promised to someone else.
    Promised,
}

/// How an optimistic spin ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spun {
    /// With the lock.
    Taken,
    /// Without it, given up.
    GaveUp,
    /// Without it, because readers outlasted the spinner's patience.
    Exhausted,
    /// Without it, because it is promised to someone else.
    Promised,
    /// At once: there was no point.
    NotTried,
}

/// A lock as its spinners see it.
pub(crate) trait Spinnable {
    /// Whether to spin when no writer is known at the start.
    const UNKNOWN: bool;
    /// Whether to go on when another writer has taken the lock meanwhile. That it changes hands
    /// among writers means that many want it.
    const FOLLOW: bool;
    /// How long to bear with readers.
    const PATIENCE: Patience;
    /// Whether a reschedule that came due during the spin happens at its end, as it should.
    const RESCHED: bool;

    /// Its owner word and its spinners' queue.
    fn spin_words(&self) -> (&OwnerWord, &Osq);

    /// When no writer is known, `owner` was in the owner word and then this count was found: how many
    /// readers have the lock, if readers have it.
    fn readers(owner: Owner, count: i64) -> Option<u64>;

    /// Whether the lock is promised to someone, so that there is no point in spinning for it. The head
    /// of the queue asks while it waits for the owner; who is behind it finds out as the next head:
    /// meanwhile each looks at nothing but its own line.
    fn is_promised(&self) -> bool;
}

/// Spins for the lock until `try_take` has taken it or spinning has to end.
///
/// `try_take` runs with preemption off, at the head of the queue, and is given the proof so that
/// it can enter the owner in the region in which it takes the lock.
#[inline]
pub(crate) fn optimistic_spin<L: Spinnable>(
    lock: &L,
    try_take: impl FnMut(&PreemptDisabled) -> Try,
) -> Spun {
    let (owner, osq) = lock.spin_words();
    let pin = preempt::disable();
    let end = if lock.is_promised() || !owner.can_spin(L::UNKNOWN, &pin) {
        Spun::NotTried
    } else if !osq.lock(&pin) {
        Spun::GaveUp
    } else {
        let end = spin_as_head(lock, try_take, &pin);
        osq.unlock(&pin);
        end
    };
    if !L::RESCHED {
        pin.enable_no_resched();
    }
    end
}

fn spin_as_head<L: Spinnable>(
    lock: &L,
    mut try_take: impl FnMut(&PreemptDisabled) -> Try,
    pin: &PreemptDisabled,
) -> Spun {
    let mut endurance = None;
    let mut had_writer = false;
    loop {
        let Some(owner) = spin_on_owner(lock, || lock.is_promised(), pin) else {
            return if lock.is_promised() {
                Spun::Promised
            } else {
                Spun::GaveUp
            };
        };
        let count = match try_take(pin) {
            Try::Taken => return Spun::Taken,
            Try::Promised => return Spun::Promised,
            Try::Held(count) => count,
        };
        match L::readers(owner, count) {
            Some(readers) => match &mut endurance {
                None => endurance = Some(Endurance::new(L::PATIENCE, count, readers)),
                Some(endurance) => {
                    if !endurance.bear(L::PATIENCE, count) {
                        return Spun::Exhausted;
                    }
                }
            },
            // A new phase of readers gets new patience.
            None if L::FOLLOW => endurance = None,
            None => {}
        }
        // The lock is held by someone unknown: a writer before its store to the owner word or
        // after it has cleared it, or readers. If we are real-time we may keep it off this CPU:
        // one more try is all that this allows, and only if a writer was there just before, which
        // may be about to give the lock up.
        let has_writer = owner.as_writer().is_some();
        if !has_writer && (task::need_resched() || (task::current_is_rt() && !had_writer)) {
            return Spun::GaveUp;
        }
        had_writer = has_writer;
        cpu_relax();
    }
}

/// Waits while the lock's owner is a writer that runs and `stop` does not say otherwise. The owner
/// then: none known, readers, or, for locks that [follow](Spinnable::FOLLOW), another writer.
/// `None` when spinning has to end.
pub(crate) fn spin_on_owner<L: Spinnable>(
    lock: &L,
    stop: impl Fn() -> bool,
    pin: &PreemptDisabled,
) -> Option<Owner> {
    let (word, _) = lock.spin_words();
    let first = word.load();
    let mut owner = first;
    if let Some(writer) = first.as_writer() {
        loop {
            owner = word.load();
            if owner != first {
                break;
            }
            // SAFETY: Invariant 2: the writer was still in the word, with preemption off.
            let runs = unsafe { writer.is_on_cpu(pin) };
            if !runs || task::need_resched() || stop() {
                return None;
            }
            cpu_relax();
        }
    }
    let stop = owner.is_nonspinnable()
        || (!L::FOLLOW && first.as_writer().is_some() && owner != Owner::NONE);
    (!stop).then_some(owner)
}

#[kunit_tests(klocks_spin)]
mod tests {
    use super::*;

    /// All words without a task.
    const NO_TASK: [Owner; 4] = [
        Owner::NONE,
        Owner::READERS,
        Owner(Owner::NONSPINNABLE),
        Owner(Owner::READER | Owner::NONSPINNABLE),
    ];

    // Readers leave their address behind when they go, and exit: who looks at that task reads freed
    // memory. Nor is there a task in a word with marks only.

    #[test]
    fn only_writers_are_looked_at() {
        let task = Task::current().addr();
        assert_eq!(Owner::writer(Task::current()).raw(), task);
        assert_eq!(NO_TASK.map(Owner::raw), [0, 1, 2, 3]);
        for word in NO_TASK {
            assert!(word.as_writer().is_none());
            // The same marks beside the address of a task, which may be gone.
            let stale = Owner(word.0 | task);
            assert_eq!(stale.as_writer().is_some(), word == Owner::NONE);
        }
    }

    #[test]
    fn spinning_for_an_unknown_owner() {
        let pin = preempt::disable();
        for word in NO_TASK {
            let owner = OwnerWord::new();
            owner.set(word, &pin);
            // Something else may have to run here: then nobody spins.
            let spins = owner.can_spin(true, &pin);
            assert!(!(spins && word.is_nonspinnable()));
            assert!(!owner.can_spin(false, &pin));
        }
    }

    #[test]
    fn marks_of_the_spinners() {
        let pin = preempt::disable();
        let owner = OwnerWord::new();
        // Only readers are marked: a writer is not waited for without end.
        owner.set_nonspinnable();
        assert_eq!(owner.load(), Owner::NONE);
        owner.set(Owner::READERS, &pin);
        owner.set_nonspinnable();
        assert!(owner.load().is_nonspinnable());
        // The mark stays with the readers that join.
        let joined = Owner::reader_after(Task::current(), owner.load());
        assert!(joined.is_reader() && joined.is_nonspinnable());
        owner.clear_nonspinnable();
        assert_eq!(owner.load(), Owner::READERS);
    }

    /// How many turns are borne when the count is what `count` says at each.
    fn borne(patience: Patience, most: u32, count: impl Fn(u32) -> i64) -> u32 {
        let mut endurance = Endurance::new(patience, count(0), 1);
        let more = (1..most).take_while(|&turn| endurance.bear(patience, count(turn)));
        1 + more.count() as u32
    }

    #[test]
    fn patience_is_counted_in_turns() {
        assert_eq!(borne(Patience::Turns(100), 1000, |_| 1), 100);
        // Whatever the count does.
        assert_eq!(borne(Patience::Turns(100), 1000, i64::from), 100);
        assert_eq!(borne(Patience::Unbounded, 1000, |_| 1), 1000);
    }

    #[test]
    fn patience_in_turns_without_a_change() {
        assert_eq!(borne(Patience::UnchangedTurns(16), 1000, |_| 1), 16);
        // A change at each 16th turn is one in time.
        let in_time = |turn| i64::from(turn / 16);
        assert_eq!(borne(Patience::UnchangedTurns(16), 1000, in_time), 1000);
        let late = |turn| i64::from(turn / 17);
        assert_eq!(borne(Patience::UnchangedTurns(16), 1000, late), 16);
    }

    #[test]
    fn patience_in_time_has_bounds() {
        assert_eq!(time_limit(0), 10_000);
        assert_eq!(time_limit(1), 10_500);
        assert_eq!(time_limit(30), 25_000);
        assert_eq!(time_limit(u64::MAX), 25_000);
    }
}
