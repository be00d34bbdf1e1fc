// SPDX-License-Identifier: GPL-2.0

//! Scenario `rcu_sync`: does the gate keep its word about grace periods?
//!
//! All workers but the last enter and leave, twice in each round, at random distances within a grace
//! period. The last one watches. RCU itself says whether a grace period has passed since a point in time: one has
//! when an enter returns that found the gate idle, and one has since the latest exit when the gate
//! is idle again. An enter that follows an exit closely finds readers still off their fast path, and
//! does not wait.
//!
//! ```text
//! player              RCU                 watcher
//!   exit, cookie 1
//!                       grace period 1
//!   enter, no wait
//!   exit, cookie 2
//!                       end of 1            idle? Not yet: cookie 2 is not over
//!                       grace period 2
//!                       end of 2            idle? It may be
//!   cookie 3
//!   enter               grace period 3
//!   cookie 3 is over
//! ```

use super::{
    bench::Session,
    crew::{
        self,
        Job,
        Seat, //
    },
    knobs::Knobs,
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
        preempt,
        rcu::{
            self,
            Cookie, //
        }, //
    },
    rcu_sync::{
        RcuSync,
        Sched, //
    }, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// An enter that takes longer has waited, in nanoseconds.
const QUICK_NS: u64 = 100_000;
/// Longest distance of two steps, in microseconds.
const GAP_US: u32 = 2_000;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "rcu_sync",
    // All combinations make sense; there are two threads at least.
    check: |_| Ok(()),
    blocks: blocks_of_one,
    run,
};

fn run(knobs: &Knobs, session: &Session<'_>) -> Result {
    play_blocks(knobs, session, |round| block(knobs, session, round))
}

fn block(knobs: &Knobs, session: &Session<'_>, round: u32) -> Result {
    let crowd = Knobs {
        threads: knobs.threads.max(2),
        ..*knobs
    };
    let script = Script {
        stage: Arc::pin_init(
            pin_init!(Stage {
                gate <- RcuSync::new(),
                latest <- new_mutex!(None),
                players: Atomic::new(crowd.threads.wrapping_sub(1)),
            }),
            GFP_KERNEL,
        )?,
        knobs: crowd,
        round,
    };
    let report = crew::run(script, &crowd, session)?;
    // Two, since the first may find the replay.
    rcu::barrier();
    rcu::barrier();
    let at_rest = report.job().stage.is_idle();
    let tally = &report.tally;
    session.count_ops(tally.rounds);
    if tally.early_enter != 0 || tally.early_idle != 0 || !at_rest {
        session.fail(fmt!(
            "rcu_sync: {} enters and {} returns to idle without a grace period, idle in the end: {at_rest}, in block {round}",
            tally.early_enter,
            tally.early_idle
        ));
    }
    if tally.quick.saturating_mul(2) < tally.closely {
        session.fail(fmt!(
            "rcu_sync: of {} enters right after an exit {} took less than 100 us, in block {round}",
            tally.closely,
            tally.quick
        ));
    }
    let measures = Measures {
        ops: tally.rounds,
        threads: crowd.threads.wrapping_sub(1),
        elapsed: report.elapsed,
    };
    session.put(fmt!(
        "BenchmarkRcuSync/lock=rcu_sync/threads={} {measures} {round} block {} early-enters {} early-idles {} idles {} cold-enters {} close-enters {} quick-enters\n",
        crowd.threads,
        tally.early_enter,
        tally.early_idle,
        tally.idles,
        tally.cold,
        tally.closely,
        tally.quick
    ))
}

/// What both workers look at.
#[pin_data]
struct Stage {
    #[pin]
    gate: RcuSync<Sched>,
    /// Taken right before the latest exit, under the lock.
    #[pin]
    latest: Mutex<Option<Cookie>>,
    /// Workers that have not done their rounds: without one no exit follows.
    players: Atomic<u32>,
}

impl Stage {
    fn is_idle(&self) -> bool {
        let _pin = preempt::disable();
        self.gate.is_idle()
    }

    fn exit(&self) {
        let mut latest = self.latest.lock();
        *latest = Some(Cookie::now());
        self.gate.exit();
    }
}

/// The job of a block.
struct Script {
    stage: Arc<Stage>,
    knobs: Knobs,
    round: u32,
}

#[derive(Default)]
struct Tally {
    rounds: u64,
    /// Enters that found the gate idle,
    cold: u64,
    /// and returned without a grace period.
    early_enter: u64,
    /// Enters right after an exit,
    closely: u64,
    /// and those of them that did not wait.
    quick: u64,
    /// Times that the gate was seen to be idle again,
    idles: u64,
    /// and was too early.
    early_idle: u64,
}

impl Job for Script {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        seat.measure(|| {
            if seat.index() != seat.threads().wrapping_sub(1) {
                let tally = self.play(seat);
                // Relaxed: the watcher only ends by it.
                self.stage.players.fetch_sub(1, Relaxed);
                tally
            } else {
                self.watch(seat)
            }
        })
    }

    fn add(total: &mut Tally, other: Tally) {
        let add = |sum: &mut u64, n| *sum = sum.saturating_add(n);
        add(&mut total.rounds, other.rounds);
        add(&mut total.cold, other.cold);
        add(&mut total.early_enter, other.early_enter);
        add(&mut total.closely, other.closely);
        add(&mut total.quick, other.quick);
        add(&mut total.idles, other.idles);
        add(&mut total.early_idle, other.early_idle);
    }
}

impl Script {
    /// Enters and leaves.
    fn play(&self, seat: &Seat<'_>) -> Tally {
        let stage = &*self.stage;
        let stream = u64::from(self.round) << 32 | u64::from(seat.index());
        let mut rng = Rng::new(self.knobs.seed, stream);
        let mut gap = || {
            let us = rng.up_to(GAP_US);
            if us != 0 {
                fsleep(Delta::from_micros(us.into()));
            }
        };
        let mut tally = Tally::default();
        while tally.rounds < self.knobs.ops && !seat.stopped() {
            // In this order: who enters from idle, maybe faster than us, does so after the cookie.
            let (before, idle) = (Cookie::now(), stage.is_idle());
            stage.gate.enter();
            if idle {
                tally.cold = tally.cold.wrapping_add(1);
                let early = u64::from(!before.is_over());
                tally.early_enter = tally.early_enter.wrapping_add(early);
            }
            gap();
            stage.exit();
            let began = clock::now_ns();
            stage.gate.enter();
            let took = clock::now_ns().saturating_sub(began);
            tally.closely = tally.closely.wrapping_add(1);
            tally.quick = tally.quick.wrapping_add(u64::from(took < QUICK_NS));
            gap();
            stage.exit();
            // Every fourth round gives the gate the time to become idle.
            if tally.rounds % 4 == 3 {
                rcu::barrier();
                rcu::barrier();
                fsleep(Delta::from_millis(1));
            } else {
                gap();
            }
            tally.rounds = tally.rounds.wrapping_add(1);
            seat.progress(tally.rounds);
        }
        tally
    }

    /// Watches for the gate to become idle.
    fn watch(&self, seat: &Seat<'_>) -> Tally {
        let stage = &*self.stage;
        let mut tally = Tally::default();
        let mut was_idle = true;
        // Relaxed: nothing follows from it.
        while stage.players.load(Relaxed) != 0 && !seat.stopped() {
            {
                // No exit comes between the two looks.
                let latest = stage.latest.lock();
                let idle = stage.is_idle();
                if idle && !was_idle {
                    tally.idles = tally.idles.wrapping_add(1);
                    let early = latest.is_some_and(|exit| !exit.is_over());
                    tally.early_idle = tally.early_idle.wrapping_add(u64::from(early));
                }
                was_idle = idle;
            }
            fsleep(Delta::from_micros(20));
        }
        tally
    }
}
