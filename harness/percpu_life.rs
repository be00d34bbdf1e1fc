// SPDX-License-Identifier: GPL-2.0

//! Scenario `percpu_life`: locks that are made, written and freed at once, while a callback of theirs
//! is pending.
//!
//! ```text
//! task                RCU
//!   write
//!   give up             callback asked for, its head in the lock
//!   free: wait
//!                       callback
//!   free: go on
//! ```

use super::{
    bench::Session,
    crew::{
        self,
        Job,
        Seat, //
    },
    knobs::Knobs,
    locks::LockType,
    scenario::{
        blocks_of_rounds,
        play_rounds,
        Measures,
        Scenario, //
    }, //
};
use crate::kapi::clock;
use kernel::prelude::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "percpu_life",
    // All combinations make sense.
    check: |_| Ok(()),
    blocks: blocks_of_rounds,
    run,
};

fn run(knobs: &Knobs, session: &Session<'_>) -> Result {
    play_rounds(knobs, session, |lock, round| {
        block(knobs, session, lock, round)
    })
}

fn block(knobs: &Knobs, session: &Session<'_>, lock: &'static LockType, round: u32) -> Result {
    let lives = Lives {
        lock,
        ops: knobs.ops,
    };
    let report = crew::run(lives, knobs, session)?;
    let Tally {
        ops,
        failed,
        longest,
    } = report.tally;
    session.count_ops(ops);
    if failed != 0 {
        session.fail(fmt!(
            "{}: {failed} could not be made in block {round}",
            lock.name()
        ));
    }
    let measures = Measures {
        ops,
        threads: knobs.threads,
        elapsed: report.elapsed,
    };
    session.put(fmt!(
        "BenchmarkPercpuLife/lock={}/threads={} {measures} {round} block {longest} longest-free-ns\n",
        lock.name(),
        knobs.threads
    ))
}

/// The job of a block.
struct Lives {
    lock: &'static LockType,
    ops: u64,
}

struct Tally {
    ops: u64,
    failed: u64,
    /// Longest that a free took, in nanoseconds.
    longest: u64,
}

impl Job for Lives {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        seat.measure(|| {
            let mut tally = Tally {
                ops: 0,
                failed: 0,
                longest: 0,
            };
            while tally.ops < self.ops && !seat.stopped() {
                tally.ops = tally.ops.wrapping_add(1);
                seat.progress(tally.ops);
                let Ok(lock) = self.lock.create() else {
                    tally.failed = tally.failed.wrapping_add(1);
                    continue;
                };
                drop(lock.write());
                // Every other one leaves with two writes within a grace period.
                if tally.ops % 2 == 0 {
                    drop(lock.write());
                }
                let began = clock::now_ns();
                drop(lock);
                let took = clock::now_ns().saturating_sub(began);
                tally.longest = tally.longest.max(took);
            }
            tally
        })
    }

    fn add(total: &mut Tally, other: Tally) {
        total.ops = total.ops.saturating_add(other.ops);
        total.failed = total.failed.saturating_add(other.failed);
        total.longest = total.longest.max(other.longest);
    }
}
