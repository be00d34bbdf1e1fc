// SPDX-License-Identifier: GPL-2.0

//! Scenario `rwsem_mix`: the microbenchmark of the 2014 series.
//!
//! Each thread takes and gives up the lock a given number of times, reads and writes in a given
//! ratio; with split roles a thread only reads or only writes. The load is the number of PAUSEs while
//! the lock is held. What counts is the time from the common start to the last thread's end.

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
    cycle::Cycle,
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
use crate::kapi::mark::{
    self,
    mark, //
};
use kernel::prelude::*;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "rwsem_mix",
    check: Knobs::check_roles,
    blocks: blocks_of_rounds,
    run,
};

fn run(knobs: &Knobs, session: &Session<'_>) -> Result {
    play_rounds(knobs, session, |lock, round| {
        block(knobs, session, lock, round)
    })
}

/// One block: all threads on a new lock.
fn block(knobs: &Knobs, session: &Session<'_>, lock: &LockType, round: u32) -> Result {
    let mix = Mix {
        lock: lock.create()?,
        payload: Payload::new(),
        knobs: *knobs,
        round,
    };
    let events = EventTally::of(lock);
    let report = crew::run(mix, knobs, session)?;
    let events = events.so_far();
    let Tally { ops, faults } = report.tally;
    session.count_ops(ops);
    judge(session, lock, round, &report.job().lock, &faults);
    if ops != u64::from(knobs.threads).saturating_mul(knobs.ops) {
        // Stopped early: its time is that of no known amount of work.
        return Ok(());
    }
    let measures = Measures {
        ops,
        threads: knobs.threads,
        elapsed: report.elapsed,
    };
    session.put(fmt!(
        "BenchmarkRwsemMix/lock={}/threads={}/ratio={}/load={} {measures} {round} block {} overlaps {} torn{events}\n",
        lock.name(),
        knobs.threads,
        knobs.ratio,
        knobs.load,
        faults.overlaps,
        faults.torn
    ))
}

/// The job of a block.
struct Mix {
    lock: Subject,
    payload: Payload,
    knobs: Knobs,
    round: u32,
}

struct Tally {
    ops: u64,
    faults: Faults,
}

impl Job for Mix {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        let stream = u64::from(self.round) << 32 | u64::from(seat.index());
        let rng = Rng::new(self.knobs.seed, stream);
        let cycle = self.knobs.cycle(seat);
        if self.knobs.check {
            self.measured::<true>(seat, cycle, rng)
        } else {
            self.measured::<false>(seat, cycle, rng)
        }
    }

    fn add(total: &mut Tally, other: Tally) {
        total.ops = total.ops.saturating_add(other.ops);
        total.faults += other.faults;
    }
}

impl Mix {
    /// One loop for all locks, so that none has a better-compiled one.
    #[inline(never)]
    fn measured<const CHECK: bool>(
        &self,
        seat: &Seat<'_>,
        mut cycle: Cycle,
        mut rng: Rng,
    ) -> Tally {
        let Knobs {
            ops, load, think, ..
        } = self.knobs;
        let me = seat.index().wrapping_add(1);
        let most_thought = think.saturating_mul(2);
        let mut faults = Faults::default();
        let done = seat.measure(|| {
            if cycle.only_writes() {
                mark::<{ mark::WORK_WRITES }>();
            }
            let mut done = 0u64;
            while done < ops && !seat.stopped() {
                if cycle.next_is_read() {
                    let _hold = self.lock.read();
                    if CHECK {
                        self.payload.read(&mut faults, || pause(load));
                    } else {
                        pause(load);
                    }
                } else {
                    let _hold = self.lock.write();
                    if CHECK {
                        self.payload.write(me, &mut faults, || pause(load));
                    } else {
                        pause(load);
                    }
                }
                if most_thought != 0 {
                    pause(rng.up_to(most_thought));
                }
                done = done.wrapping_add(1);
                seat.progress(done);
            }
            done
        });
        Tally { ops: done, faults }
    }
}
