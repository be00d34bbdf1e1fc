// SPDX-License-Identifier: GPL-2.0

//! The controller's watch over the workers: it disturbs them, samples the locks, and notices who is
//! stuck.
//!
//! # The sampler
//!
//! A lock is *still* when nobody is inside or in an operation that gives it up, all who are in an
//! operation that takes it sleep, and nobody has had it since the last sample. A sound lock is still for
//! no longer than the instant in which who gives it up goes: it has a waiter woken by then. One that is
//! still in three samples in a row has lost a wake-up. Those whose writers sleep for other things than
//! the lock are left to the watchdog.
//!
//! # The watchdog
//!
//! Who has waited for longer than the knob `watchdog_ms` is stuck. With a lock that may pass some over for as
//! long as others come, only if nobody had it for that long.
//!
//! # What else is looked at
//!
//! Each sample also looks at the lock under its wait lock, if that is to be had: its word has to fit its
//! queue.

use super::{
    super::{
        dump,
        engine::Session,
        rng::Rng, //
    },
    arena::Arena,
    desk::Stage,
    roles::Role,
    shared::Shared,
    worker::Worker, //
};
use crate::kapi::{
    clock::{
        self,
        Jiffies, //
    },
    debugfs::Text,
    kthread::{
        Kthread,
        Signal, //
    },
    machine, //
};
use kernel::{
    cpu::CpuId,
    cpumask::CpumaskVar,
    fmt,
    prelude::*,
    sync::atomic::Relaxed, //
};

/// How often the controller looks around, in milliseconds.
const TICK_MS: u32 = 10;
/// How often it samples the locks, in nanoseconds.
const SAMPLE_NS: u64 = 20_000_000;
/// When workers that are to stop because something is wrong are called stuck, in nanoseconds.
const STOP_NS: u64 = 4_000_000_000;
/// In how many samples in a row a lock may not be still.
const STILL_SAMPLES: u32 = 3;
const NS_PER_MS: u64 = 1_000_000;

/// See the module.
pub(super) struct Watch<'a> {
    shared: &'a Shared,
    threads: &'a [Kthread<Worker>],
    session: &'a Session<'a>,
    rng: Rng,
    sampled_at: u64,
    /// One a lock.
    stills: KVVec<Still>,
    shuffled_at: Jiffies,
    /// When workers were last told to halt or to go on.
    turned_at: Jiffies,
    halted: bool,
}

/// What samples of a lock have shown.
#[derive(Clone, Copy)]
struct Still {
    /// How often it had been taken at the last one.
    acquired: u64,
    /// In how many it was still.
    samples: u32,
    /// When a sample last found that it had been taken.
    moved_at: u64,
}

impl Still {
    /// Notes a sample: that it had been `acquired` so often, and whether it was `still` but for that. In
    /// how many in a row it has been.
    fn note(&mut self, now: u64, acquired: u64, still: bool) -> u32 {
        let moved = acquired != self.acquired;
        self.samples = match (still, moved) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => self.samples.wrapping_add(1),
        };
        if moved {
            self.moved_at = now;
        }
        self.acquired = acquired;
        self.samples
    }
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        threads: &'a [Kthread<Worker>],
        session: &'a Session<'a>,
    ) -> Result<Self> {
        let still = Still {
            acquired: 0,
            samples: 0,
            moved_at: clock::now_ns(),
        };
        Ok(Self {
            shared,
            threads,
            session,
            rng: Rng::new(shared.stress.seed, u64::MAX),
            sampled_at: 0,
            stills: KVVec::from_elem(still, shared.arenas.len(), GFP_KERNEL)?,
            shuffled_at: Jiffies::now(),
            turned_at: Jiffies::now(),
            halted: false,
        })
    }

    /// Watches until the time is up, the run is stopped, or something is wrong; then makes all workers
    /// end, and waits for that.
    pub(super) fn run(&mut self) {
        let begin = clock::now_ns();
        let duration = u64::from(self.shared.stress.duration_ms);
        let bad = loop {
            self.shared.wait_for_end(TICK_MS);
            let now = clock::now_ns();
            let elapsed = now.saturating_sub(begin) / NS_PER_MS;
            self.session.set_done(elapsed.min(duration));
            if self.is_bad(now) {
                break true;
            }
            if elapsed >= duration || self.session.stopped() {
                break false;
            }
            self.stutter();
            self.cancel();
            self.shuffle();
        };
        self.shared.end();
        self.drain(if bad { STOP_NS } else { self.patience() });
    }

    /// How long a wait may take, in nanoseconds.
    fn patience(&self) -> u64 {
        u64::from(self.shared.stress.watchdog_ms).saturating_mul(NS_PER_MS)
    }

    /// Waits for the workers' end. Who is still there after `limit` nanoseconds is stuck, and keeps the
    /// run.
    fn drain(&mut self, limit: u64) {
        let begin = clock::now_ns();
        let mut told = false;
        loop {
            let left = self.shared.wait_for_end(TICK_MS);
            if left == 0 {
                return;
            }
            let now = clock::now_ns();
            if !told && now.saturating_sub(begin) > limit {
                told = true;
                self.find_stuck(now, 0);
                // CAST: There are at most `MOST_WORKERS`.
                self.session.stuck(left as u32, "did not stop");
            }
        }
    }

    /// Whether a check has failed, a lock has lost a wake-up, or someone waits for too long.
    fn is_bad(&mut self, now: u64) -> bool {
        let faulty = self.shared.is_faulty();
        let lost = now.saturating_sub(self.sampled_at) >= SAMPLE_NS && {
            self.sampled_at = now;
            self.sample(now)
        };
        faulty || lost || self.find_stuck(now, self.patience())
    }

    /// Samples all locks; whether one has lost a wake-up or contradicts itself.
    fn sample(&mut self, now: u64) -> bool {
        let mut lost = false;
        let shared = self.shared;
        for (place, arena) in shared.arenas.iter().enumerate() {
            let Some(still) = self.stills.get_mut(place) else {
                continue;
            };
            let desks = shared.desks_of(arena);
            let acquired = desks
                .iter()
                .fold(0u64, |sum, desk| sum.wrapping_add(desk.acquired()));
            let sleepers = sleepers(shared, self.threads, arena);
            let samples = still.note(now, acquired, sleepers.is_some());
            let name = arena.kind.name();
            if arena.subject.standing().is_some_and(|look| !look.agrees) {
                lost = true;
                self.blame(arena, fmt!("{name}: its word does not fit its queue"));
            }
            if samples == STILL_SAMPLES {
                lost = true;
                let count = sleepers.unwrap_or(0);
                self.blame(
                    arena,
                    fmt!("{name} is free, and {count} workers sleep for it"),
                );
            }
        }
        lost
    }

    /// Reports all who have waited for `limit` nanoseconds; whether there are any.
    fn find_stuck(&self, now: u64, limit: u64) -> bool {
        let mut stuck = false;
        for (index, desk) in self.shared.desks.iter().enumerate() {
            let (stage, since) = desk.look();
            let waited = now.saturating_sub(since);
            if stage != Stage::Waiting || waited < limit {
                continue;
            }
            let Some(&(place, role)) = self.shared.posts.get(index) else {
                continue;
            };
            let (Some(arena), Some(still)) =
                (self.shared.arenas.get(place), self.stills.get(place))
            else {
                continue;
            };
            if !arena.kind.bounds_waits() && now.saturating_sub(still.moved_at) < limit {
                continue;
            }
            stuck = true;
            self.blame(
                arena,
                fmt!(
                    "{}: {} {index} is stuck, it has waited for {} ms",
                    arena.kind.name(),
                    role.name(),
                    waited / NS_PER_MS
                ),
            );
        }
        stuck
    }

    /// Says what is wrong with a lock, and at the first time shows its words and its queue.
    fn blame(&self, arena: &Arena, what: fmt::Arguments<'_>) {
        self.session.fail(what);
        if arena.has_failed() {
            return;
        }
        arena.mark_failed();
        let mut text = Text::new();
        // Without memory for it the failure still stands.
        let _ = dump::show(arena.kind.name(), &mut text).and_then(|()| self.session.append(&text));
    }

    /// Makes workers halt, or go on, when it is time for that.
    fn stutter(&mut self) {
        let stutter = self.shared.stress.stutter as usize;
        if stutter != 0 && self.turned_at.elapsed() >= stutter {
            self.turned_at = Jiffies::now();
            self.halted = !self.halted;
            self.shared.halt(self.halted);
        }
    }

    /// Sends signals to some of those who wait and mind them.
    fn cancel(&mut self) {
        for (index, desk) in self.shared.desks.iter().enumerate() {
            let signal = match self.shared.posts.get(index) {
                Some((_, Role::Killable)) => Signal::Kill,
                Some((_, Role::Interruptible)) => Signal::Interrupt,
                _ => continue,
            };
            if desk.stage() == Stage::Waiting && self.rng.up_to(1) == 0 {
                if let Some(thread) = self.threads.get(index) {
                    thread.signal(signal);
                }
            }
        }
    }

    /// Keeps all workers off a CPU, each time another, when it is time for that.
    fn shuffle(&mut self) {
        let interval = self.shared.stress.shuffle_interval as usize;
        if interval == 0 || self.shuffled_at.elapsed() < interval {
            return;
        }
        self.shuffled_at = Jiffies::now();
        let stay = machine::CpusStay::new();
        let count = machine::cpu_count();
        let idle = self.rng.up_to(count.saturating_sub(1)) as usize;
        let Ok(mut cpus) = CpumaskVar::new_zero(GFP_KERNEL) else {
            return;
        };
        for (_, cpu) in machine::online_cpus()
            .enumerate()
            .filter(|&(n, _)| n != idle)
        {
            if let Some(cpu) = CpuId::from_u32(cpu) {
                cpus.set(cpu);
            }
        }
        if cpus.empty() {
            return;
        }
        for thread in self.threads {
            // They are there; and without it this is but a turn less.
            let _ = thread.move_to(&cpus, &stay);
        }
    }
}

/// How many workers sleep for a lock that is still, as the module says; `None` for one that is not.
fn sleepers(shared: &Shared, threads: &[Kthread<Worker>], arena: &Arena) -> Option<u32> {
    // Relaxed: a sample.
    if !arena.kind.sleeps_for_the_lock_only() || arena.guests.load(Relaxed) != 0 {
        return None;
    }
    let mut sleepers = 0u32;
    for index in arena.workers.clone() {
        let (desk, thread) = (shared.desks.get(index)?, threads.get(index)?);
        let &(_, role) = shared.posts.get(index)?;
        match desk.stage() {
            Stage::Idle => {}
            // Of a short-lived task only its parent is known here, which sleeps in any case.
            Stage::Waiting if role != Role::ShortLived && thread.is_asleep() => {
                sleepers = sleepers.wrapping_add(1);
            }
            _ => return None,
        }
    }
    (sleepers != 0).then_some(sleepers)
}
