// SPDX-License-Identifier: GPL-2.0

//! Scenario `ref_torture`: does the count stand still while the lock is held, and is it right in
//! the end?
//!
//! All threads do random operations on one object and keep account of their own references. A write
//! (by the ratio) holds the lock, reads the count a thousand times, and changes it by hand.

use super::{
    bench::Session,
    counted::{
        self,
        CountGuard,
        Counted, //
    },
    crew::{
        self,
        Job,
        Seat, //
    },
    cycle::Cycle,
    knobs::Knobs,
    locks::LockType,
    ref_storm::Object,
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
    name: "ref_torture",
    check: counted::check,
    blocks: blocks_of_rounds,
    run: |knobs, session| counted::play(knobs, session, |blocks| blocks.torture),
};

/// How often a holder reads the count.
const READS: u32 = 1000;
/// The most references that a thread keeps.
const MOST: u32 = 64;

/// One block: all threads on a new object.
pub(super) fn block<R: Counted>(
    knobs: &Knobs,
    session: &Session<'_>,
    lock: &LockType,
    round: u32,
) -> Result {
    let torture = Torture {
        object: Object::<R>::new()?,
        knobs: *knobs,
        round,
    };
    let report = crew::run(torture, knobs, session)?;
    let Tally {
        ops,
        holds,
        thawed,
        refused,
        locked,
    } = report.tally;
    session.count_ops(ops);
    if thawed | refused | locked != 0 {
        session.fail(fmt!(
            "{}: the count changed under {thawed} holders, {refused} references were refused, {locked} puts took others for the last, in block {round}",
            lock.name()
        ));
    }
    if let Err(what) = report.job().object.check_at_rest() {
        session.fail(fmt!("{} {what} in block {round}", lock.name()));
    }
    let measures = Measures {
        ops,
        threads: knobs.threads,
        elapsed: report.elapsed,
    };
    session.put(fmt!(
        "BenchmarkRefTorture/lock={}/threads={}/ratio={} {measures} {round} block {holds} holds {thawed} thawed {refused} refused {locked} locked\n",
        lock.name(),
        knobs.threads,
        knobs.ratio
    ))
}

/// The job of a block.
struct Torture<R> {
    object: Arc<Object<R>>,
    knobs: Knobs,
    round: u32,
}

#[derive(Default)]
struct Tally {
    ops: u64,
    /// Times that the lock was held,
    holds: u64,
    /// and that the count changed meanwhile.
    thawed: u64,
    /// References refused though there were some.
    refused: u64,
    /// Puts that came back with the lock though others had references.
    locked: u64,
}

impl<R: Counted> Job for Torture<R> {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        let stream = u64::from(self.round) << 32 | u64::from(seat.index());
        let mut actor = Actor {
            refs: &self.object.refs,
            rng: Rng::new(self.knobs.seed, stream),
            mine: 0,
            tally: Tally::default(),
        };
        let cycle = self.knobs.cycle(seat);
        seat.measure(|| actor.act(self.knobs.ops, seat, cycle));
        actor.tally
    }

    fn add(total: &mut Tally, other: Tally) {
        let add = |sum: &mut u64, n| *sum = sum.saturating_add(n);
        add(&mut total.ops, other.ops);
        add(&mut total.holds, other.holds);
        add(&mut total.thawed, other.thawed);
        add(&mut total.refused, other.refused);
        add(&mut total.locked, other.locked);
    }
}

/// A thread with its account.
struct Actor<'a, R> {
    refs: &'a R,
    rng: Rng,
    /// References that it has.
    mine: u32,
    tally: Tally,
}

impl<R: Counted> Actor<'_, R> {
    fn act(&mut self, ops: u64, seat: &Seat<'_>, mut cycle: Cycle) {
        while self.tally.ops < ops && !seat.stopped() {
            if cycle.next_is_read() {
                self.count();
            } else {
                self.hold();
            }
            self.tally.ops = self.tally.ops.wrapping_add(1);
            seat.progress(self.tally.ops);
        }
        self.put_all();
    }

    /// A random operation on the count.
    fn count(&mut self) {
        let choice = self.rng.up_to(4);
        if self.mine == 0 || (choice < 3 && self.mine < MOST) {
            let got = match choice {
                0 => self.refs.get_not_zero(),
                1 => self.refs.get_not_dead(),
                _ => {
                    self.refs.get();
                    true
                }
            };
            // The object has a reference of its own at all times.
            self.tally.refused = self.tally.refused.wrapping_add(u64::from(!got));
            self.mine = self.mine.wrapping_add(u32::from(got));
        } else if choice == 3 && self.refs.put_return().is_some() {
            self.mine = self.mine.wrapping_sub(1);
        } else {
            self.put();
        }
    }

    /// Puts one of its references.
    fn put(&mut self) {
        self.mine = self.mine.wrapping_sub(1);
        if let Some(mut guard) = self.refs.put_or_lock() {
            self.tally.locked = self.tally.locked.wrapping_add(1);
            let left = guard.count().wrapping_sub(1);
            guard.set_count(left);
        }
    }

    /// Puts all that it has, by hand: one by one would take long where the lock changes hands slowly.
    fn put_all(&mut self) {
        let mut guard = self.refs.lock();
        // CAST: At most `MOST`.
        let left = guard.count().wrapping_sub(self.mine as i32);
        guard.set_count(left);
        self.mine = 0;
    }

    /// Holds the lock for a while, and gets or puts a reference by hand.
    fn hold(&mut self) {
        let mut guard = self.refs.lock();
        let count = guard.count();
        let mut still = true;
        for _ in 0..READS {
            still &= guard.count() == count;
        }
        self.tally.holds = self.tally.holds.wrapping_add(1);
        self.tally.thawed = self.tally.thawed.wrapping_add(u64::from(!still));
        if self.mine < MOST / 2 {
            guard.set_count(count.wrapping_add(1));
            self.mine = self.mine.wrapping_add(1);
        } else {
            guard.set_count(count.wrapping_sub(1));
            self.mine = self.mine.wrapping_sub(1);
        }
    }
}
