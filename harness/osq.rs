// SPDX-License-Identifier: GPL-2.0

//! Scenario `osq`: does the optimistic spin queue have one head at a time, and does it survive
//! waiters that leave?
//!
//! One thread a CPU tries to become head, with preemption off, and raises a counter in two steps
//! when it is. A real-time thread on each of these CPUs wakes up every 50 to 150 us, so that the
//! waiter there has to give way: it leaves the queue. In the end the counter must say how often
//! someone was head, and the queue must be free.

use super::{
    bench::Session,
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
        events::EventSource,
        kthread::{
            self,
            Body,
            Kthread,
            Placement, //
        },
        machine,
        preempt, //
    },
    osq::{
        self,
        Osq, //
    },
};
use core::ops::AddAssign;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        barrier::{
            smp_mb,
            Full, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "osq",
    check,
    blocks: blocks_of_one,
    run,
};

/// Two threads on one CPU would wait for each other's preemption.
fn check(knobs: &Knobs) -> Result {
    if knobs.threads > machine::cpu_count() {
        return Err(EINVAL);
    }
    Ok(())
}

fn run(knobs: &Knobs, session: &Session<'_>) -> Result {
    let before = counts()?;
    let mut total = Tally::default();
    play_blocks(knobs, session, |round| {
        block(knobs, session, round, &mut total)
    })?;
    total.put(session)?;
    put_events(session, &before)
}

/// One block: a new queue, with tickers on all CPUs that take part.
fn block(knobs: &Knobs, session: &Session<'_>, round: u32, total: &mut Tally) -> Result {
    let tickers = Ticker::start(knobs, round)?;
    let contest = Contest {
        osq: Osq::new(),
        holder: Atomic::new(0),
        x: Atomic::new(0),
        knobs: *knobs,
        round,
    };
    let pinned = Knobs {
        pin: true,
        ..*knobs
    };
    let report = crew::run(contest, &pinned, session)?;
    drop(tickers);

    let contest = report.job();
    // Relaxed: the threads have been joined.
    let x = contest.x.load(Relaxed);
    let tail_left = u64::from(contest.osq.is_locked());
    let tally = Tally {
        x,
        tail_left,
        ..report.tally
    };
    if tally.is_wrong() {
        session.fail(fmt!(
            "the queue had {} heads, counted {}, {} overlaps, locked at the end: {}, in block {round}",
            tally.successes, tally.x, tally.overlaps, tally.tail_left
        ));
    }
    session.count_ops(tally.successes);
    let ops = tally.successes.saturating_add(tally.give_ups);
    if ops == u64::from(knobs.threads).saturating_mul(knobs.ops) {
        let measures = Measures {
            ops,
            threads: knobs.threads,
            elapsed: report.elapsed,
        };
        session.put(fmt!(
            "BenchmarkOsq/lock=osq/threads={}/load={} {measures} {round} block {} overlaps {} give-ups\n",
            knobs.threads, knobs.load, tally.overlaps, tally.give_ups
        ))?;
    }
    *total += tally;
    Ok(())
}

/// What happened, in one thread or in all.
#[derive(Default)]
struct Tally {
    successes: u64,
    give_ups: u64,
    /// Successes during which someone else was head.
    overlaps: u64,
    /// The counter that heads raise.
    x: u64,
    /// Queues that were not free in the end.
    tail_left: u64,
}

impl Tally {
    fn is_wrong(&self) -> bool {
        self.x != self.successes || self.overlaps != 0 || self.tail_left != 0
    }

    fn put(&self, session: &Session<'_>) -> Result {
        session.put(fmt!(
            "x: {}\nsuccesses: {}\ngive_ups: {}\ntail: {}\n",
            self.x,
            self.successes,
            self.give_ups,
            self.tail_left
        ))
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        let add = |sum: &mut u64, n| *sum = sum.saturating_add(n);
        add(&mut self.successes, other.successes);
        add(&mut self.give_ups, other.give_ups);
        add(&mut self.overlaps, other.overlaps);
        add(&mut self.x, other.x);
        add(&mut self.tail_left, other.tail_left);
    }
}

/// The queue's events until now, in their order.
fn counts() -> Result<KVec<u64>> {
    let mut counts = KVec::new();
    for index in 0..osq::EVENTS.names().len() {
        counts.push(osq::EVENTS.read(index), GFP_KERNEL)?;
    }
    Ok(counts)
}

/// Tells the queue's events since `before`, where the kernel counts them.
fn put_events(session: &Session<'_>, before: &[u64]) -> Result {
    if !machine::COUNTS_EVENTS {
        return Ok(());
    }
    let names = osq::EVENTS.names().iter();
    for ((name, now), before) in names.zip(&counts()?).zip(before) {
        session.put(fmt!("{name}: {}\n", now.wrapping_sub(*before)))?;
    }
    Ok(())
}

/// The job of a block.
struct Contest {
    osq: Osq,
    /// The worker that is head; 0 for none.
    holder: Atomic<u32>,
    /// How often someone was head, if there was one at a time.
    x: Atomic<u64>,
    knobs: Knobs,
    round: u32,
}

impl Job for Contest {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        let stream = u64::from(self.round) << 32 | u64::from(seat.index());
        let mut rng = Rng::new(self.knobs.seed, stream);
        let mut tally = Tally::default();
        let me = seat.index().wrapping_add(1);
        seat.measure(|| {
            let mut done = 0u64;
            while done < self.knobs.ops && !seat.stopped() {
                self.attempt(me, rng.up_to(self.knobs.load), &mut tally);
                done = done.wrapping_add(1);
                seat.progress(done);
            }
        });
        tally
    }

    fn add(total: &mut Tally, other: Tally) {
        *total += other;
    }
}

impl Contest {
    /// Tries once to become head. The end of the preempt-off region lets the ticker run.
    fn attempt(&self, me: u32, load: u32, tally: &mut Tally) {
        let pin = preempt::disable();
        if !self.osq.lock(&pin) {
            tally.give_ups = tally.give_ups.wrapping_add(1);
            return;
        }
        // ORDERING: Full, pairs with the one below of the head before: the queue itself promises
        // no order between heads.
        smp_mb(Full);
        // Relaxed, and a load and a store where one operation would do: with two heads, values
        // get lost as they would in plain memory.
        let before = self.holder.load(Relaxed);
        self.holder.store(me, Relaxed);
        let x = self.x.load(Relaxed);
        pause(load);
        self.x.store(x.wrapping_add(1), Relaxed);
        let after = self.holder.load(Relaxed);
        self.holder.store(0, Relaxed);
        // ORDERING: Full, pairs with the one above of the next head.
        smp_mb(Full);
        self.osq.unlock(&pin);
        tally.successes = tally.successes.wrapping_add(1);
        let overlap = before != 0 || after != me;
        tally.overlaps = tally.overlaps.wrapping_add(u64::from(overlap));
    }
}

/// A real-time thread that makes whoever runs on its CPU give way every now and then.
struct Ticker {
    seed: u64,
    stream: u64,
}

impl Ticker {
    /// One on each CPU; they end when they are dropped.
    fn start(knobs: &Knobs, round: u32) -> Result<KVec<Kthread<Self>>> {
        let mut tickers = KVec::new();
        for cpu in machine::online_cpus() {
            let ticker = Arc::new(
                Self {
                    seed: !knobs.seed,
                    stream: u64::from(round) << 32 | u64::from(cpu),
                },
                GFP_KERNEL,
            )?;
            let placement = Placement {
                cpu: Some(cpu),
                fifo: true,
            };
            let ticker = Kthread::create(c"klocks_tick", cpu, placement, ticker)?;
            ticker.wake();
            tickers.push(ticker, GFP_KERNEL)?;
        }
        Ok(tickers)
    }
}

impl Body for Ticker {
    fn run(&self) {
        let mut rng = Rng::new(self.seed, self.stream);
        while !kthread::should_stop() {
            let us = 50 + i64::from(rng.up_to(100));
            fsleep(Delta::from_micros(us));
        }
    }
}
