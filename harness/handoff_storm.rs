// SPDX-License-Identifier: GPL-2.0

//! Scenario `handoff_storm`: a queue whose tasks have all waited too long, beside others that spin.
//!
//! The shape of the benchmark for which the 2024 patch was posted: many tasks, more than there are
//! CPUs, hold the lock for short, and one now and then for so long ([`LONG_NS`]) that whoever queues
//! meanwhile may be passed over no more. From then on each of them asks for a handoff as soon as
//! someone is faster, and whoever spins does so in vain until it has had its turn.
//!
//! Roles are split by the ratio. The first writer is the long holder, which goes on until all others
//! are done; they are what is measured.

use super::{
    bench::Session,
    checks::{
        Faults,
        Payload, //
    },
    crew::{
        self,
        Job,
        Seat, //
    },
    cycle::Roles,
    histogram::Histogram,
    knobs::Knobs,
    locks::LockType,
    pause,
    rng::Rng,
    scenario::{
        blocks_of_rounds,
        judge,
        play_rounds,
        Measures,
        Scenario, //
    },
    subject::Subject,
    tally::EventTally, //
};
use crate::kapi::clock;
use kernel::{
    fmt,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "handoff_storm",
    check: |knobs| match knobs.ratio.writers_of(knobs.threads) {
        // A writer besides the long holder, or a reader.
        Some(writers) if writers != 0 && knobs.threads > 1 => Ok(()),
        _ => Err(EINVAL),
    },
    blocks: blocks_of_rounds,
    run: |knobs, session| {
        let split = Knobs {
            roles: Roles::Split,
            ..*knobs
        };
        play_rounds(&split, session, |lock, round| {
            block(&split, session, lock, round)
        })
    },
};

/// How long the long holder holds the lock, at work, in nanoseconds: longer than the time after which a
/// waiter asks for a handoff, at any tick rate down to 250.
const LONG_NS: u64 = 10_000_000;
/// How long it stays away in between.
const AWAY: Delta = Delta::from_micros(100);

/// One block: all tasks on a new lock.
fn block(knobs: &Knobs, session: &Session<'_>, lock: &LockType, round: u32) -> Result {
    let others = knobs.threads.saturating_sub(1);
    let storm = Storm {
        lock: lock.create()?,
        payload: Payload::new(),
        working: Atomic::new(others),
        knobs: *knobs,
        round,
    };
    let events = EventTally::of(lock);
    let report = crew::run(storm, knobs, session)?;
    let events = events.so_far();
    let Tally {
        reads,
        writes,
        holds,
        faults,
    } = report.tally.as_ref().map_err(|e| *e)?;
    let ops = reads.count().saturating_add(writes.count());
    session.count_ops(ops);
    judge(session, lock, round, &report.job().lock, faults);
    if session.stopped() {
        return Ok(());
    }
    let measures = Measures {
        ops,
        threads: others,
        elapsed: report.elapsed,
    };
    session.put(fmt!(
        "BenchmarkHandoffStorm/lock={}/threads={}/ratio={}/load={} {measures} {round} block {} overlaps {} torn {holds} long-holds{}{}{events}\n",
        lock.name(),
        knobs.threads,
        knobs.ratio,
        knobs.load,
        faults.overlaps,
        faults.torn,
        Waits("read", reads),
        Waits("write", writes)
    ))
}

/// How long tasks of a class have waited, as results show it.
struct Waits<'a>(&'static str, &'a Histogram);

impl fmt::Display for Waits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(class, waits) = self;
        if waits.count() == 0 {
            return Ok(());
        }
        for (name, permille) in [("p50", 500), ("p99", 990), ("p99.9", 999)] {
            write!(f, " {} {class}-{name}-ns", waits.percentile(permille))?;
        }
        write!(f, " {} {class}-max-ns", waits.max())
    }
}

/// The job of a block.
struct Storm {
    lock: Subject,
    payload: Payload,
    /// Tasks besides the long holder that are not done.
    working: Atomic<u32>,
    knobs: Knobs,
    round: u32,
}

struct Tally {
    /// Times for which readers have waited,
    reads: Histogram,
    /// and writers.
    writes: Histogram,
    /// Of the long holder.
    holds: u64,
    faults: Faults,
}

impl Tally {
    fn new() -> Result<Self> {
        Ok(Self {
            reads: Histogram::new()?,
            writes: Histogram::new()?,
            holds: 0,
            faults: Faults::default(),
        })
    }
}

impl Job for Storm {
    /// Fails for want of memory.
    type Tally = Result<Tally>;

    fn work(&self, seat: &Seat<'_>) -> Result<Tally> {
        let tally = Tally::new();
        // The long holder waits for all others, with or without memory.
        if seat.index() == 0 {
            return self.hold_long(seat, tally);
        }
        let tally = tally.map(|tally| self.hold_short(seat, tally));
        // Relaxed: only the number counts.
        self.working.fetch_sub(1, Relaxed);
        tally
    }

    fn add(total: &mut Result<Tally>, other: Result<Tally>) {
        match (&mut *total, other) {
            (Ok(total), Ok(other)) => {
                total.reads.merge(&other.reads);
                total.writes.merge(&other.writes);
                total.holds = total.holds.saturating_add(other.holds);
                total.faults += other.faults;
            }
            (_, Err(e)) => *total = Err(e),
            (Err(_), Ok(_)) => {}
        }
    }
}

/// What the long holder does.
fn work_long() {
    let end = clock::now_ns().saturating_add(LONG_NS);
    while clock::now_ns() < end {
        pause(1);
    }
}

impl Storm {
    /// Is not part of what is measured: the others are, beside it.
    fn hold_long(&self, seat: &Seat<'_>, mut tally: Result<Tally>) -> Result<Tally> {
        seat.measure(|| ());
        let me = seat.index().wrapping_add(1);
        // Relaxed: only the number counts.
        while !seat.stopped() && self.working.load(Relaxed) != 0 {
            if let Ok(tally) = &mut tally {
                let _hold = self.lock.write();
                self.payload.write(me, &mut tally.faults, work_long);
                tally.holds = tally.holds.wrapping_add(1);
            }
            fsleep(AWAY);
        }
        tally
    }

    fn hold_short(&self, seat: &Seat<'_>, mut tally: Tally) -> Tally {
        let Knobs {
            seed,
            ops,
            load,
            think,
            ..
        } = self.knobs;
        let mut rng = Rng::new(seed, u64::from(self.round) << 32 | u64::from(seat.index()));
        let reads = !self.knobs.cycle(seat).only_writes();
        let me = seat.index().wrapping_add(1);
        seat.measure(|| {
            let mut done = 0u64;
            while done < ops && !seat.stopped() {
                let began = clock::now_ns();
                if reads {
                    let _hold = self.lock.read();
                    tally.reads.add(clock::now_ns().saturating_sub(began));
                    self.payload.read(&mut tally.faults, || pause(load));
                } else {
                    let _hold = self.lock.write();
                    tally.writes.add(clock::now_ns().saturating_sub(began));
                    self.payload.write(me, &mut tally.faults, || pause(load));
                }
                pause(rng.up_to(think.saturating_mul(2)));
                done = done.wrapping_add(1);
                seat.progress(done);
            }
        });
        tally
    }
}
