// SPDX-License-Identifier: GPL-2.0

//! Scenario `percpu_write`: writes back to back, the loop of the 2015 series.
//!
//! One thread takes and gives up the lock for writing, a given number of times, or for as long as a
//! block may take where each write waits for grace periods. No reader is there.

use super::{
    bench::Session,
    crew::{
        self,
        Job,
        Seat, //
    },
    knobs::Knobs,
    locks::LockType,
    pause,
    scenario::{
        blocks_of_rounds,
        play_rounds,
        Measures,
        Scenario, //
    },
    subject::Subject, //
};
use crate::kapi::{
    clock,
    rcu::Cookie, //
};
use kernel::prelude::*;

/// Longest time of a block, in nanoseconds,
const BUDGET_NS: u64 = 10_000_000_000;
/// and of one that warms up.
const WARM_UP_NS: u64 = 1_000_000_000;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "percpu_write",
    // All combinations make sense; there is one thread.
    check: |_| Ok(()),
    blocks: blocks_of_rounds,
    run,
};

fn run(knobs: &Knobs, session: &Session<'_>) -> Result {
    let alone = Knobs {
        threads: 1,
        ..*knobs
    };
    play_rounds(&alone, session, |lock, round| {
        block(&alone, session, lock, round)
    })
}

/// One block: a new lock, a writer.
fn block(knobs: &Knobs, session: &Session<'_>, lock: &LockType, round: u32) -> Result {
    let writes = Writes {
        lock: lock.create()?,
        ops: knobs.ops,
        load: knobs.load,
        budget: if round == 0 { WARM_UP_NS } else { BUDGET_NS },
    };
    let before = Cookie::now();
    let report = crew::run(writes, knobs, session)?;
    let (normal, expedited) = Cookie::now().since(&before);
    let ops = report.tally;
    session.count_ops(ops);
    if let Err(what) = report.job().lock.check_at_rest() {
        session.fail(fmt!("{} {what} in block {round}", lock.name()));
    }
    if session.stopped() {
        return Ok(());
    }
    let measures = Measures {
        ops,
        threads: 1,
        elapsed: report.elapsed,
    };
    session.put(fmt!(
        "BenchmarkPercpuWrite/lock={}/threads=1/load={} {measures} {round} block {normal} grace-periods {expedited} expedited\n",
        lock.name(),
        knobs.load
    ))
}

/// The job of a block.
struct Writes {
    lock: Subject,
    ops: u64,
    load: u32,
    /// Nanoseconds.
    budget: u64,
}

impl Job for Writes {
    type Tally = u64;

    #[inline(never)]
    fn work(&self, seat: &Seat<'_>) -> u64 {
        /// Quick writes between two looks at the clock.
        const STRIDE: u64 = 256;
        let began = clock::now_ns();
        seat.measure(|| {
            let (mut done, mut stride) = (0u64, 1u64);
            while done < self.ops && !seat.stopped() {
                let hold = self.lock.write();
                pause(self.load);
                drop(hold);
                done = done.wrapping_add(1);
                seat.progress(done);
                if done % stride == 0 {
                    let took = clock::now_ns().wrapping_sub(began);
                    if took >= self.budget {
                        break;
                    }
                    // Writes of a millisecond are looked at one by one.
                    let each = took / done;
                    stride = if each < 100_000 { STRIDE } else { 1 };
                }
            }
            done
        })
    }

    fn add(total: &mut u64, other: u64) {
        *total = total.saturating_add(other);
    }
}
