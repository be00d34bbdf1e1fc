// SPDX-License-Identifier: GPL-2.0

//! Scenario `percpu_toggle`: writes at a distance, and what they do to the rest of the machine.
//!
//! A thread takes the lock for writing and waits for a while, over and over: the series' example was
//! a probe that is switched on and off. On each CPU runs a bystander, a thread that gives way to
//! all others and only watches how much of its time it loses. Expedited grace periods interrupt
//! each CPU: a write is soon done, but at the bystanders' expense. What they lose when there is
//! nothing to see, `lock_busted` shows.
//!
//! What counts of grace periods are those that a write waited for, one in taking the lock and one in
//! giving it up at most. The system has more: those that callbacks wait for, and those of others.

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
    },
    subject::Subject, //
};
use crate::kapi::{
    bystander,
    clock,
    kthread::{
        self,
        Body,
        Kthread,
        Placement, //
    },
    machine,
    rcu::Cookie,
    task, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// The warm-up need not be as long: its operations at most.
const WARM_UP: u64 = 20;
/// Shorter gaps in a bystander's time are its own loop's, in nanoseconds.
const GAP_NS: u64 = 5_000;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "percpu_toggle",
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

/// One block: a new lock, a writer at its pace.
fn block(knobs: &Knobs, session: &Session<'_>, lock: &LockType, round: u32) -> Result {
    let most = if round == 0 { WARM_UP } else { u64::MAX };
    let toggle = Toggle {
        lock: lock.create()?,
        ops: knobs.ops.min(most),
        gap: Delta::from_millis(knobs.gap.into()),
    };
    let bystanders = Bystander::start()?;
    let before = Cookie::now();
    let report = crew::run(toggle, knobs, session)?;
    let (normal, expedited) = Cookie::now().since(&before);
    let loss = Loss::of(bystanders);
    let Tally {
        ops,
        in_lock,
        waits,
    } = report.tally;
    session.count_ops(ops);
    if session.stopped() {
        return Ok(());
    }
    let measures = Measures {
        ops,
        threads: 1,
        elapsed: in_lock,
    };
    // Each by the second and CPU, but time, which is in parts of a million.
    let per_second = |n: u64| n.saturating_mul(1_000_000) / (loss.watched / 1000).max(1);
    session.put(fmt!(
        "BenchmarkPercpuToggle/lock={}/threads=1/gap={} {measures} {round} block {} run-ns {waits} waits {normal} grace-periods {expedited} expedited {} lost-ppm {} switches/s {} interrupts/s {} longest-gap-ns\n",
        lock.name(),
        knobs.gap,
        report.elapsed,
        per_second(loss.lost) / 1000,
        per_second(loss.switches),
        per_second(loss.interrupts),
        loss.longest
    ))
}

/// The job of a block.
struct Toggle {
    lock: Subject,
    ops: u64,
    gap: Delta,
}

#[derive(Default)]
struct Tally {
    ops: u64,
    /// Nanoseconds spent in the lock's functions.
    in_lock: u64,
    /// How many of these calls lasted for a whole grace period.
    waits: u64,
}

impl Tally {
    /// Notes the time of a call, and whether it waited for a grace period.
    fn watch<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let (cookie, began) = (Cookie::now(), clock::now_ns());
        let value = call();
        let took = clock::now_ns().saturating_sub(began);
        self.in_lock = self.in_lock.saturating_add(took);
        self.waits = self.waits.saturating_add(u64::from(cookie.is_over()));
        value
    }
}

impl Job for Toggle {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        seat.measure(|| {
            let mut tally = Tally::default();
            while tally.ops < self.ops && !seat.stopped() {
                let hold = tally.watch(|| self.lock.write());
                tally.watch(|| drop(hold));
                tally.ops = tally.ops.wrapping_add(1);
                seat.progress(tally.ops);
                if self.gap > Delta::ZERO {
                    fsleep(self.gap);
                }
            }
            tally
        })
    }

    fn add(total: &mut Tally, other: Tally) {
        total.ops = total.ops.saturating_add(other.ops);
        total.in_lock = total.in_lock.saturating_add(other.in_lock);
        total.waits = total.waits.saturating_add(other.waits);
    }
}

/// Watches one CPU until it is joined.
struct Bystander {
    cpu: u32,
    watched: Atomic<u64>,
    lost: Atomic<u64>,
    longest: Atomic<u64>,
    switches: Atomic<u64>,
    interrupts: Atomic<u64>,
}

impl Bystander {
    /// One on each CPU.
    fn start() -> Result<KVec<(Arc<Self>, Kthread<Self>)>> {
        let mut all = KVec::new();
        for cpu in machine::online_cpus() {
            let body = Arc::new(
                Self {
                    cpu,
                    watched: Atomic::new(0),
                    lost: Atomic::new(0),
                    longest: Atomic::new(0),
                    switches: Atomic::new(0),
                    interrupts: Atomic::new(0),
                },
                GFP_KERNEL,
            )?;
            let placement = Placement {
                cpu: Some(cpu),
                fifo: false,
            };
            let thread = Kthread::create(c"klocks_by", cpu, placement, body.clone())?;
            all.push((body, thread), GFP_KERNEL)?;
        }
        for (_, thread) in &all {
            thread.wake();
        }
        Ok(all)
    }
}

impl Body for Bystander {
    fn run(&self) {
        bystander::be_nice();
        let (switches, interrupts) = (bystander::switches(), bystander::interrupts(self.cpu));
        let (mut lost, mut longest) = (0u64, 0u64);
        // The quick clock, good on one CPU: others take longer to read than what is to be seen.
        let began = clock::sched_ns();
        let mut last = began;
        while !kthread::should_stop() {
            let now = clock::sched_ns();
            let gap = now.saturating_sub(last);
            if gap > GAP_NS {
                lost = lost.saturating_add(gap);
                longest = longest.max(gap);
            }
            last = now;
            task::give_way();
        }
        // Relaxed: read when the thread has been joined.
        self.watched.store(last.saturating_sub(began), Relaxed);
        self.lost.store(lost, Relaxed);
        self.longest.store(longest, Relaxed);
        let switches = bystander::switches().wrapping_sub(switches);
        self.switches.store(switches, Relaxed);
        let interrupts = bystander::interrupts(self.cpu).wrapping_sub(interrupts);
        self.interrupts.store(interrupts, Relaxed);
    }
}

/// What all bystanders together have lost.
#[derive(Default)]
struct Loss {
    /// Nanoseconds.
    watched: u64,
    lost: u64,
    longest: u64,
    switches: u64,
    interrupts: u64,
}

impl Loss {
    fn of(bystanders: KVec<(Arc<Bystander>, Kthread<Bystander>)>) -> Self {
        let mut loss = Self::default();
        for (body, thread) in bystanders {
            drop(thread);
            // Relaxed: the thread has been joined.
            let add = |sum: &mut u64, n: &Atomic<u64>| *sum = sum.saturating_add(n.load(Relaxed));
            add(&mut loss.watched, &body.watched);
            add(&mut loss.lost, &body.lost);
            add(&mut loss.switches, &body.switches);
            add(&mut loss.interrupts, &body.interrupts);
            loss.longest = loss.longest.max(body.longest.load(Relaxed));
        }
        loss
    }
}
