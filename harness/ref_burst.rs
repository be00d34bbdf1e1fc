// SPDX-License-Identifier: GPL-2.0

//! Scenario `ref_burst`: how soon does counting recover from a burst of lock holding?
//!
//! Those who find the lock held take it themselves, and others find it held by them: a burst could
//! go on by itself. All threads get and put references of one object. After a third of its
//! operations the first thread holds the lock instead, for `load` PAUSEs each time. What counts is
//! the time of an operation in the other threads before, during and after the burst, in a third of
//! their operations each.

use super::{
    bench::Session,
    counted::{
        self,
        Counted,
        Falls, //
    },
    crew::{
        self,
        Job,
        Seat, //
    },
    knobs::Knobs,
    locks::LockType,
    pause,
    ref_storm::{
        pair,
        Object, //
    },
    scenario::{
        blocks_of_rounds,
        Measures,
        Scenario, //
    }, //
};
use crate::kapi::{
    clock,
    task, //
};
use core::ops::AddAssign;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "ref_burst",
    check: |knobs| {
        // The holder alone shows nothing.
        if knobs.threads < 2 || knobs.ops < 3 {
            return Err(EINVAL);
        }
        counted::check(knobs)
    },
    blocks: blocks_of_rounds,
    run: |knobs, session| counted::play(knobs, session, |blocks| blocks.burst),
};

/// One block: all threads on a new object.
pub(super) fn block<R: Counted>(
    knobs: &Knobs,
    session: &Session<'_>,
    lock: &'static LockType,
    round: u32,
) -> Result {
    let burst = Burst {
        object: Object::<R>::new()?,
        stage: Stage {
            ready: Atomic::new(0),
            over: Atomic::new(false),
        },
        knobs: *knobs,
        lock,
    };
    let report = crew::run(burst, knobs, session)?;
    let Tally { ops, phases, falls } = report.tally;
    session.count_ops(ops);
    if let Err(what) = report.job().object.check_at_rest() {
        session.fail(fmt!("{} {what} in block {round}", lock.name()));
    }
    if session.stopped() {
        return Ok(());
    }
    let measures = Measures {
        ops,
        threads: knobs.threads,
        elapsed: report.elapsed,
    };
    session.put(fmt!(
        "BenchmarkRefBurst/lock={}/threads={}/load={} {measures} {round} block",
        lock.name(),
        knobs.threads,
        knobs.load
    ))?;
    for (pace, name) in phases.iter().zip(["before", "during", "after"]) {
        let tenths = pace.ns.saturating_mul(10) / pace.ops.max(1);
        session.put(fmt!(" {}.{} ns-{name}/op", tenths / 10, tenths % 10))?;
    }
    if let Some((now, end)) = Falls::now(lock).zip(falls) {
        session.put(fmt!(" {} fallbacks-after", now.since(end).fallbacks))?;
    }
    session.put(fmt!("\n"))
}

/// How far the block is, on a line that is seldom written.
#[repr(align(64))]
struct Stage {
    /// Threads, but the first, that have counted enough for the burst to begin.
    ready: Atomic<u32>,
    /// The burst is over.
    over: Atomic<bool>,
}

/// The job of a block.
struct Burst<R> {
    object: Arc<Object<R>>,
    stage: Stage,
    knobs: Knobs,
    lock: &'static LockType,
}

/// Operations and their time.
#[derive(Clone, Copy, Default)]
struct Pace {
    ops: u64,
    ns: u64,
}

impl AddAssign for Pace {
    fn add_assign(&mut self, other: Self) {
        self.ops = self.ops.saturating_add(other.ops);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

#[derive(Default)]
struct Tally {
    ops: u64,
    /// Of all threads but the first, in the three phases.
    phases: [Pace; 3],
    /// The events at the end of the burst, from the first thread.
    falls: Option<Falls>,
}

impl<R: Counted> Job for Burst<R> {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        seat.measure(|| {
            if seat.index() == 0 {
                self.lead(seat)
            } else {
                self.follow(seat)
            }
        })
    }

    fn add(total: &mut Tally, other: Tally) {
        total.ops = total.ops.saturating_add(other.ops);
        for (phase, more) in total.phases.iter_mut().zip(other.phases) {
            *phase += more;
        }
        total.falls = total.falls.or(other.falls);
    }
}

impl<R: Counted> Burst<R> {
    /// `pairs` of references got and put, in some time.
    fn pace(&self, pairs: u64, seat: &Seat<'_>, done: &mut u64) -> Pace {
        let mut pace = Pace::default();
        let begin = clock::now_ns();
        while pace.ops < pairs && !seat.stopped() {
            pair(&self.object.refs);
            pace.ops = pace.ops.wrapping_add(1);
            seat.progress(done.wrapping_add(pace.ops));
        }
        pace.ns = clock::now_ns().saturating_sub(begin);
        *done = done.wrapping_add(pace.ops);
        pace
    }

    /// The first thread's part: it counts until all others are ready, holds, and counts.
    fn lead(&self, seat: &Seat<'_>) -> Tally {
        let each = self.knobs.ops / 3;
        let mut tally = Tally::default();
        self.pace(each, seat, &mut tally.ops);
        // Relaxed: no data comes with either word of the stage.
        while self.stage.ready.load(Relaxed) < seat.threads().saturating_sub(1) && !seat.stopped() {
            pair(&self.object.refs);
            task::give_way();
        }
        for _ in 0..each {
            let guard = self.object.refs.lock();
            pause(self.knobs.load);
            drop(guard);
            tally.ops = tally.ops.wrapping_add(1);
            seat.progress(tally.ops);
        }
        tally.falls = Falls::now(self.lock);
        self.stage.over.store(true, Relaxed);
        self.pace(each, seat, &mut tally.ops);
        tally
    }

    /// The other threads': they count all the time.
    fn follow(&self, seat: &Seat<'_>) -> Tally {
        const GROUP: u64 = 32;
        let each = self.knobs.ops / 3;
        let mut tally = Tally::default();
        let [before, during, after] = &mut tally.phases;
        *before = self.pace(each, seat, &mut tally.ops);
        // Relaxed: as in `lead`.
        self.stage.ready.fetch_add(1, Relaxed);
        while !self.stage.over.load(Relaxed) && !seat.stopped() {
            *during += self.pace(GROUP, seat, &mut tally.ops);
            task::give_way();
        }
        *after = self.pace(each, seat, &mut tally.ops);
        tally
    }
}
