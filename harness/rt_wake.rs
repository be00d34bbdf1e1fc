// SPDX-License-Identifier: GPL-2.0

//! Scenario `rt_wake`: how late does a real-time task run that is woken on the CPU of a spinner?
//!
//! Each worker writes, over and over, and so spins for the lock while another one has it. On each
//! worker's CPU sleeps a task of `SCHED_FIFO`. At the end of its section a worker wakes the one of
//! the next worker, as someone who has just made work for it would, and gives the lock up: the
//! spinner there may get the lock and the reschedule at once. What counts is the time from the
//! wake-up until the task runs. A lock that does not reschedule when a spin ends (1/7 of the 2014
//! series) makes the task wait for the section, up to the next preemption point.

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
    subject::Subject, //
};
use crate::kapi::{
    clock,
    kthread::{
        self,
        Body,
        Kthread,
        Placement, //
    },
    machine,
    wait::Event, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        static_lock_class,
        Arc,
        Mutex, //
    }, //
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "rt_wake",
    check,
    blocks: blocks_of_rounds,
    run,
};

/// Each worker has its CPU and its sleeper, and one to wake.
fn check(knobs: &Knobs) -> Result {
    if knobs.threads < 2 || knobs.threads >= machine::cpu_count() {
        return Err(EINVAL);
    }
    Ok(())
}

fn run(knobs: &Knobs, session: &Session<'_>) -> Result {
    let pinned = Knobs {
        pin: true,
        ..*knobs
    };
    play_rounds(&pinned, session, |lock, round| {
        block(&pinned, session, lock, round)
    })
}

/// One block: a new lock, writers, and a sleeper beside each.
fn block(knobs: &Knobs, session: &Session<'_>, lock: &LockType, round: u32) -> Result {
    let (sleepers, threads) = Sleeper::start(knobs)?;
    let wakers = Wakers {
        lock: lock.create()?,
        payload: Payload::new(),
        sleepers,
        knobs: *knobs,
        round,
    };
    let report = crew::run(wakers, knobs, session)?;
    drop(threads);
    let Tally { ops, faults } = report.tally;
    session.count_ops(ops);
    judge(session, lock, round, &report.job().lock, &faults);
    let mut delays = Histogram::new()?;
    for sleeper in &report.job().sleepers {
        delays.merge(&sleeper.delays.lock());
    }
    if ops != u64::from(knobs.threads).saturating_mul(knobs.ops) {
        return Ok(());
    }
    let measures = Measures {
        ops,
        threads: knobs.threads,
        elapsed: report.elapsed,
    };
    session.put(fmt!(
        "BenchmarkRtWake/lock={}/threads={}/load={} {measures} {round} block {} overlaps {} torn {} wakes {} p50-ns {} p99-ns {} max-ns\n",
        lock.name(),
        knobs.threads,
        knobs.load,
        faults.overlaps,
        faults.torn,
        delays.count(),
        delays.percentile(500),
        delays.percentile(990),
        delays.max()
    ))
}

/// The job of a block.
struct Wakers {
    lock: Subject,
    payload: Payload,
    /// One beside each worker, in their order.
    sleepers: KVec<Arc<Sleeper>>,
    knobs: Knobs,
    round: u32,
}

struct Tally {
    ops: u64,
    faults: Faults,
}

impl Job for Wakers {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        let Knobs {
            seed,
            ops,
            load,
            think,
            ..
        } = self.knobs;
        let mut rng = Rng::new(seed, u64::from(self.round) << 32 | u64::from(seat.index()));
        let me = seat.index().wrapping_add(1);
        let next = self.sleepers.get(me as usize).or(self.sleepers.first());
        let mut tally = Tally {
            ops: 0,
            faults: Faults::default(),
        };
        seat.measure(|| {
            while tally.ops < ops && !seat.stopped() {
                let hold = self.lock.write();
                self.payload.write(me, &mut tally.faults, || pause(load));
                if let Some(sleeper) = next {
                    sleeper.wake();
                }
                drop(hold);
                pause(rng.up_to(think.saturating_mul(2)));
                tally.ops = tally.ops.wrapping_add(1);
                seat.progress(tally.ops);
            }
        });
        tally
    }

    fn add(total: &mut Tally, other: Tally) {
        total.ops = total.ops.saturating_add(other.ops);
        total.faults += other.faults;
    }
}

/// A real-time task that sleeps and, woken, notes how late it runs.
#[pin_data]
struct Sleeper {
    #[pin]
    event: Event,
    /// When it was woken; 0 while it sleeps.
    woken_at: Atomic<u64>,
    #[pin]
    delays: Mutex<Histogram>,
}

impl Sleeper {
    /// One on the CPU of each worker. The threads end when they are dropped.
    #[expect(clippy::type_complexity, reason = "what it does and who does it")]
    fn start(knobs: &Knobs) -> Result<(KVec<Arc<Self>>, KVec<Kthread<Self>>)> {
        let (mut sleepers, mut threads) = (KVec::new(), KVec::new());
        // Where `crew` puts the workers: from the second CPU on.
        for (index, cpu) in (0..knobs.threads).zip(machine::online_cpus().skip(1)) {
            let delays = Histogram::new()?;
            let sleeper = Arc::pin_init(
                pin_init!(Self {
                    event <- Event::new(c"klocks_rt_wake", static_lock_class!()),
                    woken_at: Atomic::new(0),
                    delays <- new_mutex!(delays),
                }),
                GFP_KERNEL,
            )?;
            let placement = Placement {
                cpu: Some(cpu),
                fifo: true,
            };
            let thread = Kthread::create(c"klocks_rt", index, placement, sleeper.clone())?;
            thread.wake();
            sleepers.push(sleeper, GFP_KERNEL)?;
            threads.push(thread, GFP_KERNEL)?;
        }
        Ok((sleepers, threads))
    }

    /// Wakes it, unless someone has and it has not run since.
    fn wake(&self) {
        // Relaxed: the exchange decides.
        if self.woken_at.load(Relaxed) != 0 {
            return;
        }
        // ORDERING: Release pairs with the acquire in `run`; nothing else comes with the time, and
        // the wake-up has barriers of its own.
        if self.woken_at.cmpxchg(0, clock::now_ns(), Release).is_ok() {
            self.event.wake_all();
        }
    }

    /// When it was woken, if it was.
    fn woken_at(&self) -> Option<u64> {
        // ORDERING: Acquire pairs with the release in `wake`.
        Some(self.woken_at.load(Acquire)).filter(|&at| at != 0)
    }
}

impl Body for Sleeper {
    fn run(&self) {
        while !kthread::should_stop() {
            self.event
                .wait_until(|| self.woken_at().is_some() || kthread::should_stop());
            if let Some(at) = self.woken_at() {
                let late = clock::now_ns().saturating_sub(at);
                self.delays.lock().add(late);
                // Relaxed: from here on it may be woken again.
                self.woken_at.store(0, Relaxed);
            }
        }
    }
}
