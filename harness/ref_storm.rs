// SPDX-License-Identifier: GPL-2.0

//! Scenario `ref_storm`: all threads count one object, as those of a path lookup do with the
//! directories that they share.
//!
//! A read is a reference got and put, a write is the lock held for `load` PAUSEs: at a ratio of 99:1
//! one operation of a hundred makes the count stand still. The shape of the benchmark for which the
//! first lockless count was posted, with the share of lock holders as a knob.

use super::{
    bench::Session,
    counted::{
        self,
        CountGuard,
        Counted,
        Extremes,
        Falls, //
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
        Measures,
        Scenario, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "ref_storm",
    check: counted::check,
    blocks: blocks_of_rounds,
    run: |knobs, session| counted::play(knobs, session, |blocks| blocks.storm),
};

/// One block: all threads on a new object.
pub(super) fn block<R: Counted>(
    knobs: &Knobs,
    session: &Session<'_>,
    lock: &LockType,
    round: u32,
) -> Result {
    let storm = Storm {
        object: Object::<R>::new()?,
        knobs: *knobs,
        round,
    };
    let before = Falls::now(lock);
    let report = crew::run(storm, knobs, session)?;
    let Tally {
        ops,
        holds,
        thawed,
        extremes,
    } = report.tally;
    session.count_ops(ops);
    if thawed != 0 {
        session.fail(fmt!(
            "{}: the count changed under {thawed} holders of the lock in block {round}",
            lock.name()
        ));
    }
    if let Err(what) = report.job().object.check_at_rest() {
        session.fail(fmt!("{} {what} in block {round}", lock.name()));
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
        "BenchmarkRefStorm/lock={}/threads={}/ratio={}/load={} {measures} {round} block {} ops/s {extremes} {holds} holds {thawed} thawed",
        lock.name(),
        knobs.threads,
        knobs.ratio,
        knobs.load,
        ops.saturating_mul(1_000_000_000) / report.elapsed.max(1)
    ))?;
    if let Some((now, before)) = Falls::now(lock).zip(before) {
        now.since(before).put(session, ops)?;
    }
    session.put(fmt!("\n"))
}

/// A counted object with one reference of its own, on cache lines that it shares with nothing.
#[pin_data]
#[repr(align(64))]
pub(super) struct Object<R> {
    #[pin]
    pub(super) refs: R,
}

impl<R: Counted> Object<R> {
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            try_pin_init!(Self {
                refs <- R::new(R::class()),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether all references but its own are put and the lock is free.
    pub(super) fn check_at_rest(&self) -> Result<(), &'static str> {
        let guard = self.refs.try_lock().ok_or("is locked at rest")?;
        if guard.count() == 1 {
            Ok(())
        } else {
            Err("has miscounted")
        }
    }
}

/// The job of a block.
struct Storm<R> {
    object: Arc<Object<R>>,
    knobs: Knobs,
    round: u32,
}

struct Tally {
    ops: u64,
    /// Those of them that held the lock,
    holds: u64,
    /// and during which the count changed.
    thawed: u64,
    extremes: Extremes,
}

impl<R: Counted> Job for Storm<R> {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        let stream = u64::from(self.round) << 32 | u64::from(seat.index());
        let rng = Rng::new(self.knobs.seed, stream);
        let cycle = self.knobs.cycle(seat);
        self.measured(seat, cycle, rng)
    }

    fn add(total: &mut Tally, other: Tally) {
        total.ops = total.ops.saturating_add(other.ops);
        total.holds = total.holds.saturating_add(other.holds);
        total.thawed = total.thawed.saturating_add(other.thawed);
        total.extremes.add(other.extremes);
    }
}

/// A reference got and put, of an object that has others: the lock does not come back. A call of its
/// own for every type of count, so that what it executes can be told from the harness' work.
#[inline(never)]
pub(super) fn pair<R: Counted>(refs: &R) {
    refs.get();
    drop(refs.put_or_lock());
}

/// The lock held for `load` PAUSEs: whether the count stood still. A call, as [`pair`].
#[inline(never)]
fn hold<R: Counted>(refs: &R, load: u32) -> bool {
    let guard = refs.lock();
    let count = guard.count();
    pause(load);
    guard.count() == count
}

impl<R: Counted> Storm<R> {
    #[inline(never)]
    fn measured(&self, seat: &Seat<'_>, mut cycle: Cycle, mut rng: Rng) -> Tally {
        let Knobs {
            ops, load, think, ..
        } = self.knobs;
        let refs = &self.object.refs;
        let most_thought = think.saturating_mul(2);
        let mut holds = 0u64;
        let mut thawed = 0u64;
        let done = seat.measure(|| {
            let mut done = 0u64;
            while done < ops && !seat.stopped() {
                if cycle.next_is_read() {
                    pair(refs);
                } else {
                    let still = hold(refs, load);
                    holds = holds.wrapping_add(1);
                    thawed = thawed.wrapping_add(u64::from(!still));
                }
                if most_thought != 0 {
                    pause(rng.up_to(most_thought));
                }
                done = done.wrapping_add(1);
                seat.progress(done);
            }
            done
        });
        Tally {
            ops: done,
            holds,
            thawed,
            extremes: Extremes::of(seat),
        }
    }
}
