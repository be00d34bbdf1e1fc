// SPDX-License-Identifier: GPL-2.0

//! Scenario `percpu_slow`: does the per-CPU rwsem exclude, and lose no wake-up, when no reader ever
//! takes the fast path?
//!
//! The gate is entered once for the whole block. Of the workers, which have no CPU of their own, the
//! first writes, three read and two try to. Two more, if there are so many, shut readers out together,
//! and all others read. All leave again at once, so that what happens between a count and the next
//! look at a word happens as often as can be.
//!
//! ```text
//! reader              writer               without A or D: both in
//!   count up            claim
//!   A                   D
//!   claimed? no: in     sum 0? yes: in
//!
//! reader              writer               without E or F: the writer sleeps for good
//!   count down          slot = me, asleep
//!   E                   F
//!   slot? wake          sum 0? no: sleep
//! ```

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
    knobs::Knobs,
    pause,
    rng::Rng,
    scenario::{
        blocks_of_one,
        play_blocks,
        Measures,
        Scenario, //
    }, //
};
use crate::{
    kapi::{
        clock,
        task, //
    },
    percpu_rwsem::{
        Percpu,
        PercpuRwSem, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        static_lock_class, //
    }, //
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "percpu_slow",
    check: |knobs| {
        // A writer, three readers and two that try.
        if knobs.threads < 6 {
            return Err(EINVAL);
        }
        Ok(())
    },
    blocks: blocks_of_one,
    run,
};

fn run(knobs: &Knobs, session: &Session<'_>) -> Result {
    play_blocks(knobs, session, |round| block(knobs, session, round))
}

fn block(knobs: &Knobs, session: &Session<'_>, round: u32) -> Result {
    let loose = Knobs {
        pin: false,
        ..*knobs
    };
    let slow = Slow {
        lock: KBox::pin_init(
            PercpuRwSem::new(c"klocks_percpu_slow", static_lock_class!()),
            GFP_KERNEL,
        )?,
        payload: Payload::new(),
        excluders: Atomic::new(0),
        knobs: loose,
        round,
    };
    slow.lock.gate().enter();
    let report = crew::run(slow, &loose, session)?;
    let lock = &report.job().lock;
    lock.gate().exit();
    let tally = &report.tally;
    session.count_ops(tally.ops);
    let faults = tally.faults;
    if !faults.is_none() {
        session.fail(fmt!(
            "percpu_rwsem does not exclude: {} overlaps, {} torn in block {round}",
            faults.overlaps,
            faults.torn
        ));
    }
    if lock.is_read_locked() || lock.is_write_locked() || !lock.down_read_trylock() {
        session.fail(fmt!("percpu_rwsem is not free at rest in block {round}"));
    } else {
        // SAFETY: Just taken.
        unsafe { lock.up_read() };
    }
    let measures = Measures {
        ops: tally.ops,
        threads: knobs.threads,
        elapsed: report.elapsed,
    };
    session.put(fmt!(
        "BenchmarkPercpuSlow/lock=percpu_rwsem/threads={}/load={} {measures} {round} block {} overlaps {} torn {} refused {} shared {} longest-write-ns\n",
        knobs.threads,
        knobs.load,
        faults.overlaps,
        faults.torn,
        tally.refused,
        tally.shared,
        tally.longest
    ))
}

/// The job of a block.
struct Slow {
    lock: Pin<KBox<PercpuRwSem<Percpu>>>,
    payload: Payload,
    /// Workers that shut readers out now.
    excluders: Atomic<u32>,
    knobs: Knobs,
    round: u32,
}

#[derive(Default)]
struct Tally {
    ops: u64,
    faults: Faults,
    /// Tries that failed.
    refused: u64,
    /// Times that two shut readers out together.
    shared: u64,
    /// Longest wait of a writer, in nanoseconds.
    longest: u64,
}

/// What a worker does.
enum Role {
    Write,
    Exclude,
    Read,
    Try,
}

impl Role {
    fn of(index: u32) -> Self {
        match index {
            0 => Self::Write,
            4 | 5 => Self::Try,
            6 | 7 => Self::Exclude,
            _ => Self::Read,
        }
    }
}

impl Job for Slow {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        let stream = u64::from(self.round) << 32 | u64::from(seat.index());
        let mut rng = Rng::new(self.knobs.seed, stream);
        let role = Role::of(seat.index());
        let mut tally = Tally::default();
        seat.measure(|| {
            while tally.ops < self.knobs.ops && !seat.stopped() {
                let load = rng.up_to(self.knobs.load);
                match role {
                    Role::Write => self.write(load, &mut tally),
                    Role::Exclude => self.exclude(load, &mut tally),
                    Role::Read => {
                        self.lock.down_read();
                        self.read(load, &mut tally);
                    }
                    Role::Try => {
                        if !self.lock.down_read_trylock() {
                            tally.refused = tally.refused.wrapping_add(1);
                            // Whoever has the lock may need this CPU.
                            task::schedule();
                            continue;
                        }
                        self.read(load, &mut tally);
                    }
                }
                // Random, so that the workers do not fall into step.
                pause(rng.up_to(self.knobs.think.saturating_mul(2)));
                tally.ops = tally.ops.wrapping_add(1);
                seat.progress(tally.ops);
            }
        });
        tally
    }

    fn add(total: &mut Tally, other: Tally) {
        total.ops = total.ops.saturating_add(other.ops);
        total.faults += other.faults;
        total.refused = total.refused.saturating_add(other.refused);
        total.shared = total.shared.saturating_add(other.shared);
        total.longest = total.longest.max(other.longest);
    }
}

impl Slow {
    /// Gives up a lock that was just taken for reading.
    fn read(&self, load: u32, tally: &mut Tally) {
        // Relaxed: for the lock to order, as the payload is.
        let before = self.excluders.load(Relaxed);
        self.payload.read(&mut tally.faults, || pause(load));
        let after = self.excluders.load(Relaxed);
        tally.faults.overlaps = tally
            .faults
            .overlaps
            .wrapping_add(u64::from(before | after != 0));
        // SAFETY: The caller has taken it.
        unsafe { self.lock.up_read() };
    }

    fn write(&self, load: u32, tally: &mut Tally) {
        let began = clock::now_ns();
        self.lock.down_write();
        let took = clock::now_ns().saturating_sub(began);
        tally.longest = tally.longest.max(took);
        // Relaxed: as in `read`.
        let excluders = self.excluders.load(Relaxed);
        self.payload.write(1, &mut tally.faults, || pause(load));
        tally.faults.overlaps = tally
            .faults
            .overlaps
            .wrapping_add(u64::from(excluders != 0));
        // SAFETY: Taken above.
        unsafe { self.lock.up_write() };
    }

    fn exclude(&self, load: u32, tally: &mut Tally) {
        let _out = self.lock.exclude_readers();
        // Relaxed: as in `read`; several are here at a time, so that it has to be one operation.
        let others = self.excluders.fetch_add(1, Relaxed);
        // Beside others of its kind, but no writer.
        self.payload.read(&mut tally.faults, || pause(load));
        self.excluders.fetch_sub(1, Relaxed);
        tally.shared = tally.shared.wrapping_add(u64::from(others != 0));
    }
}
