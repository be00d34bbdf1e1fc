// SPDX-License-Identifier: GPL-2.0

//! Scenario `percpu_toggle`: writes at a distance, and what they do to the rest of the machine.
//!
//! A thread takes the lock for writing and waits for a while, over and over: the series' example was
//! a probe that is switched on and off. On each CPU runs a bystander, a thread that gives way to
//! all others and only watches how much of its time it loses. Expedited grace periods interrupt
//! each CPU: a write is soon done, but at the bystanders' expense.
//!
//! A block without a lock shows what bystanders lose when there is nothing to see.

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
    rcu::Cookie, //
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

/// Milliseconds between two writes.
const SPACINGS: [u32; 5] = [0, 1, 5, 20, 100];
/// The same where there is no lock.
const QUIET_SPACING: u32 = 20;
/// Longest time of a block, in nanoseconds.
const BUDGET_NS: u64 = 10_000_000_000;
/// Shorter gaps in a bystander's time are its own loop's, in nanoseconds.
const GAP_NS: u64 = 5_000;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "percpu_toggle",
    // All combinations make sense; there is one thread.
    check: |_| Ok(()),
    blocks: |knobs| {
        let locks = knobs.locks.indices().count() as u64;
        let rounds = u64::from(knobs.blocks).saturating_add(1);
        rounds.saturating_mul(locks)
    },
    run,
};

fn run(knobs: &Knobs, session: &Session<'_>) -> Result {
    let alone = Knobs {
        threads: 1,
        ..*knobs
    };
    block(&alone, session, None, QUIET_SPACING, 0)?;
    play_rounds(&alone, session, |lock, round| {
        for spacing in SPACINGS {
            block(&alone, session, Some(lock), spacing, round)?;
            if session.stopped() {
                break;
            }
        }
        Ok(())
    })
}

/// One block: a new lock, a writer at its pace.
fn block(
    knobs: &Knobs,
    session: &Session<'_>,
    lock: Option<&LockType>,
    spacing: u32,
    round: u32,
) -> Result {
    let toggle = Toggle {
        lock: lock.map(LockType::create).transpose()?,
        // The warm-up need not be as long.
        ops: if round == 0 && lock.is_some() {
            knobs.ops.min(20)
        } else {
            knobs.ops
        },
        spacing: Delta::from_millis(spacing.into()),
    };
    let bystanders = Bystander::start()?;
    let before = Cookie::now();
    let report = crew::run(toggle, knobs, session)?;
    let (normal, expedited) = Cookie::now().since(&before);
    let loss = Loss::of(bystanders);
    let ops = report.tally.ops;
    session.count_ops(ops);
    if session.stopped() {
        return Ok(());
    }
    let measures = Measures {
        ops,
        threads: 1,
        elapsed: report.tally.in_lock,
    };
    // Each by the second and CPU, but time, which is in parts of a million.
    let per_second = |n: u64| n.saturating_mul(1_000_000) / (loss.watched / 1000).max(1);
    session.put(fmt!(
        "BenchmarkPercpuToggle/lock={}/threads=1/spacing={spacing}ms {measures} {round} block {normal} grace-periods {expedited} expedited {} lost-ppm {} switches/s {} interrupts/s {} longest-gap-ns\n",
        lock.map_or("none", LockType::name),
        per_second(loss.lost) / 1000,
        per_second(loss.switches),
        per_second(loss.interrupts),
        loss.longest
    ))
}

/// The job of a block.
struct Toggle {
    /// `None`: only the pace.
    lock: Option<Subject>,
    ops: u64,
    spacing: Delta,
}

struct Tally {
    ops: u64,
    /// Nanoseconds spent in the lock's functions.
    in_lock: u64,
}

impl Job for Toggle {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        let begin = clock::now_ns();
        seat.measure(|| {
            let mut tally = Tally { ops: 0, in_lock: 0 };
            while tally.ops < self.ops && !seat.stopped() {
                let before = clock::now_ns();
                if let Some(lock) = &self.lock {
                    drop(lock.write());
                }
                let now = clock::now_ns();
                tally.in_lock = tally.in_lock.saturating_add(now.saturating_sub(before));
                tally.ops = tally.ops.wrapping_add(1);
                seat.progress(tally.ops);
                if now.saturating_sub(begin) > BUDGET_NS {
                    break;
                }
                if self.spacing > Delta::ZERO {
                    fsleep(self.spacing);
                }
            }
            tally
        })
    }

    fn add(total: &mut Tally, other: Tally) {
        total.ops = total.ops.saturating_add(other.ops);
        total.in_lock = total.in_lock.saturating_add(other.in_lock);
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
