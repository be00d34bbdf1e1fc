// SPDX-License-Identifier: GPL-2.0

//! The workers: each takes its lock again and again in the way of its role, and checks that it has it.

use super::{
    super::{
        checks::Faults,
        pause,
        rng::Rng,
        subject::{
            SemaphoreOps,
            Subject, //
        },
    },
    arena::Arena,
    desk::{
        Desk,
        Stage, //
    },
    roles::Role,
    shared::Shared,
    tally::Tally, //
};
use crate::kapi::{
    bystander,
    clock::{
        self,
        Jiffies, //
    },
    kthread::{
        self,
        Body,
        Kthread,
        Placement, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// The longest sleep of a worker that sleeps in or between sections, in microseconds.
const NAP_US: u32 = 500;
/// The longest sleep of a real-time writer between two sections, in microseconds.
const RT_NAP_US: u32 = 2000;
/// For how many operations a boosted writer stays so.
const BOOSTED: u32 = 10;

/// A thread that works on one lock.
pub(super) struct Worker {
    pub(super) index: usize,
    pub(super) shared: Arc<Shared>,
}

impl Body for Worker {
    fn run(&self) {
        let shared = &*self.shared;
        if let Some(mut hand) = Hand::new(&self.shared, self.index, 0) {
            let role = hand.role;
            if matches!(role, Role::Killable | Role::Interruptible) {
                kthread::allow_signals();
            }
            bystander::be_realtime(role == Role::RtWriter);
            while shared.goes_on() {
                hand.turn();
            }
            kthread::flush_signals();
            bystander::be_realtime(false);
            shared.report(hand.place, role, &hand.tally);
        }
        shared.leave();
    }
}

/// A task that does one operation in a worker's place.
struct Errand {
    index: usize,
    stream: u32,
    shared: Arc<Shared>,
}

impl Body for Errand {
    fn run(&self) {
        if let Some(mut hand) = Hand::new(&self.shared, self.index, self.stream) {
            if hand.coin(2) {
                hand.write();
            } else {
                hand.read();
            }
            self.shared.report(hand.place, hand.role, &hand.tally);
        }
    }
}

/// A worker at work.
struct Hand<'a> {
    shared: &'a Arc<Shared>,
    index: usize,
    role: Role,
    /// The number of its lock, and the lock.
    place: usize,
    arena: &'a Arena,
    desk: &'a Desk,
    rng: Rng,
    tally: Tally,
    /// Operations that it stays real-time for.
    boosted: u32,
    errands: u32,
}

impl<'a> Hand<'a> {
    /// The worker of that number; `stream` tells its errands apart.
    fn new(shared: &'a Arc<Shared>, index: usize, stream: u32) -> Option<Self> {
        let &(place, role) = shared.posts.get(index)?;
        let stream = u64::from(stream) << 32 | index as u64;
        Some(Self {
            shared,
            index,
            role,
            place,
            arena: shared.arenas.get(place)?,
            desk: shared.desks.get(index)?,
            rng: Rng::new(shared.stress.seed, stream),
            tally: Tally::new(),
            boosted: 0,
            errands: 0,
        })
    }

    /// Whether something happens that does at one of `of` times.
    fn coin(&mut self, of: u32) -> bool {
        self.rng.up_to(of.saturating_sub(1)) == 0
    }

    /// One operation, and what comes between two.
    fn turn(&mut self) {
        match self.role {
            Role::Reader => self.read(),
            Role::Writer => {
                self.boost();
                self.write();
            }
            Role::RtWriter => self.write(),
            Role::Trylock => self.trylock(),
            Role::Killable => self.killable(),
            Role::Interruptible => self.interruptible(),
            Role::Downgrader => self.downgrade(),
            Role::ShortLived => self.send_errand(),
        }
        match self.role {
            Role::Killable | Role::Interruptible => kthread::flush_signals(),
            Role::RtWriter => self.nap(RT_NAP_US),
            _ => {}
        }
        pause(self.rng.up_to(self.shared.stress.think));
        if self.coin(64) {
            self.nap(NAP_US);
        }
    }

    fn nap(&mut self, most_us: u32) {
        fsleep(Delta::from_micros(self.rng.up_to(most_us).into()));
    }

    /// Becomes real-time now and then, for a few operations.
    fn boost(&mut self) {
        let stress = &self.shared.stress;
        if self.boosted != 0 {
            self.boosted = self.boosted.wrapping_sub(1);
            if self.boosted == 0 {
                bystander::be_realtime(false);
            }
        } else if stress.rt_boost && self.coin(stress.rt_boost_factor) {
            self.boosted = BOOSTED;
            bystander::be_realtime(true);
        }
    }

    fn read(&mut self) {
        self.reads(|lock| Some(lock.read()));
    }

    fn write(&mut self) {
        self.writes(|lock| Some(lock.write()));
    }

    fn trylock(&mut self) {
        let semaphore = self.arena.subject.ops();
        match semaphore.filter(|_| self.coin(2)) {
            Some(sem) => self.writes(|_| sem.try_write()),
            None => self.reads(Subject::try_read),
        }
    }

    fn killable(&mut self) {
        let write = self.coin(2);
        self.with_semaphore(|this, sem| {
            if write {
                this.writes(|_| sem.write_killable().ok());
            } else {
                this.reads(|_| sem.read_killable().ok());
            }
        });
    }

    fn interruptible(&mut self) {
        self.with_semaphore(|this, sem| this.reads(|_| sem.read_interruptible().ok()));
    }

    fn with_semaphore(&mut self, act: impl FnOnce(&mut Self, SemaphoreOps<'a>)) {
        // The role needs one, so a lock without has no such workers.
        if let Some(sem) = self.arena.subject.ops() {
            act(self, sem);
        }
    }

    fn downgrade(&mut self) {
        self.with_semaphore(|this, sem| {
            let Some(hold) = this.take(Stage::Writing, |lock| Some(lock.write())) else {
                return;
            };
            this.in_write();
            // As a reader from before others may come in: they look for writers.
            this.desk.go(Stage::Reading);
            let hold = sem.downgrade(hold);
            this.in_read();
            this.give_up(hold);
        });
    }

    fn send_errand(&mut self) {
        self.errands = self.errands.wrapping_add(1);
        let errand = Arc::new(
            Errand {
                index: self.index,
                stream: self.errands,
                shared: self.shared.clone(),
            },
            GFP_KERNEL,
        );
        let thread = errand
            .map_err(Error::from)
            .and_then(|errand| Kthread::create(c"klocks_short", 0, Placement::default(), errand));
        match thread {
            Ok(thread) => thread.wake(),
            // No memory for it now; there may be later.
            Err(_) => self.nap(NAP_US),
        }
    }

    /// A reader's part: takes the lock by `take`, which may fail.
    fn reads<H>(&mut self, take: impl FnOnce(&'a Subject) -> Option<H>) {
        if let Some(hold) = self.take(Stage::Reading, take) {
            self.in_read();
            self.give_up(hold);
        }
    }

    /// A writer's part: as [`Hand::reads`].
    fn writes<H>(&mut self, take: impl FnOnce(&'a Subject) -> Option<H>) {
        if let Some(hold) = self.take(Stage::Writing, take) {
            self.in_write();
            self.give_up(hold);
        }
    }

    /// Takes the lock by `take`, to be at `stage` then.
    fn take<H>(&mut self, stage: Stage, take: impl FnOnce(&'a Subject) -> Option<H>) -> Option<H> {
        let begin = Jiffies::now();
        let since = self.desk.begin_wait();
        let Some(hold) = take(&self.arena.subject) else {
            self.desk.go(Stage::Idle);
            self.tally.refused = self.tally.refused.wrapping_add(1);
            return None;
        };
        self.desk.got_it(stage);
        self.tally.waited(clock::now_ns().saturating_sub(since));
        let limit = self.shared.stress.acq_writer_lim as usize;
        let late = stage == Stage::Writing && limit != 0 && begin.elapsed() > limit;
        self.tally.late = self.tally.late.wrapping_add(u64::from(late));
        Some(hold)
    }

    fn give_up<H>(&mut self, hold: H) {
        self.desk.go(Stage::Leaving);
        drop(hold);
        self.desk.go(Stage::Idle);
        if !self.tally.faults.is_none() {
            self.shared.fault();
        }
    }

    fn in_read(&mut self) {
        let (arena, mut faults) = (self.arena, Faults::default());
        arena.read(&mut faults, || self.inside());
        self.tally.faults += faults;
        self.tally.reads = self.tally.reads.wrapping_add(1);
    }

    fn in_write(&mut self) {
        let (arena, mut faults) = (self.arena, Faults::default());
        let (me, desks, mine) = (self.name(), self.shared.desks_of(arena), self.desk);
        arena.write(me, &mut faults, desks, Some(mine), || self.inside());
        self.tally.faults += faults;
        self.tally.writes = self.tally.writes.wrapping_add(1);
    }

    /// What it calls itself in payloads: not 0.
    fn name(&self) -> u32 {
        // CAST: There are at most `MOST_WORKERS`.
        (self.index as u32).wrapping_add(1)
    }

    /// Stays inside for a while: mostly briefly, sometimes asleep, now and then for long.
    fn inside(&mut self) {
        let stress = self.shared.stress;
        if stress.nested_locks != 0 && self.coin(4) {
            return self.nest(self.place, stress.nested_locks);
        }
        pause(self.rng.up_to(stress.load));
        if !self.arena.kind.is_sleeping() {
            return;
        }
        if self.coin(64) {
            self.nap(NAP_US);
        }
        if stress.long_hold != 0 && self.coin(512) {
            fsleep(Delta::from_millis(stress.long_hold.into()));
        }
    }

    /// Takes up to `left` of the locks behind number `place` as well. All do so in the order of the
    /// numbers, so none waits for one that waits for it.
    fn nest(&mut self, place: usize, left: u32) {
        let shared = self.shared;
        let behind = shared.arenas.len().saturating_sub(place.saturating_add(1));
        // CAST: There are at most 64 locks.
        let step = self.rng.up_to(behind as u32) as usize;
        let next = place.saturating_add(step);
        let Some(arena) = shared.arenas.get(next).filter(|_| step != 0 && left != 0) else {
            return pause(self.rng.up_to(shared.stress.load));
        };
        // A spinning lock holder must not sleep.
        if !shared
            .arenas
            .get(place)
            .is_some_and(|a| a.kind.is_sleeping())
        {
            return;
        }
        let mut faults = Faults::default();
        arena.guests.fetch_add(1, Relaxed);
        if self.coin(2) {
            let _hold = arena.subject.write();
            let (me, desks) = (self.name(), shared.desks_of(arena));
            arena.write(me, &mut faults, desks, None, || {
                self.nest(next, left.wrapping_sub(1));
            });
        } else {
            let _hold = arena.subject.read();
            arena.read(&mut faults, || self.nest(next, left.wrapping_sub(1)));
        }
        arena.guests.fetch_sub(1, Relaxed);
        self.tally.faults += faults;
    }
}
