// SPDX-License-Identifier: GPL-2.0

//! Scenario `ref_walk`: walks from a node of a [`tree`](super::tree) up to its root.
//!
//! ```text
//!          root
//!         /    \
//!     dir 0    dir 1      the leaf is below one of them
//!         \
//!         leaf
//! ```
//!
//! A read walks: two parents got, two nodes put. A write moves the leaf to the other directory and
//! retires the one that it was in, if nobody has a reference of that: from then on until the leaf
//! comes back no walk may find it.

use super::{
    bench::Session,
    counted::{
        self,
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
    scenario::{
        blocks_of_rounds,
        Measures,
        Scenario, //
    },
    tree::{
        Ledger,
        NodeRef, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "ref_walk",
    check: counted::check,
    blocks: blocks_of_rounds,
    run: |knobs, session| counted::play(knobs, session, |blocks| blocks.walk),
};

/// One block: all threads on a new tree.
pub(super) fn block<R: Counted>(
    knobs: &Knobs,
    session: &Session<'_>,
    lock: &LockType,
    round: u32,
) -> Result {
    let ledger = Ledger::new()?;
    let before = Falls::now(lock);
    let report = crew::run(Walk::<R>::new(knobs, &ledger)?, knobs, session)?;
    let now = Falls::now(lock);
    let elapsed = report.elapsed;
    let Tally {
        ops,
        moves,
        retired,
        astray,
        extremes,
    } = report.tally;
    session.count_ops(ops);
    drop(report);
    let (made, freed) = ledger.settle();
    if astray != 0 || made != freed {
        session.fail(fmt!(
            "{}: {astray} walks went astray, {freed} of {made} nodes were freed in block {round}",
            lock.name()
        ));
    }
    if ops != u64::from(knobs.threads).saturating_mul(knobs.ops) {
        return Ok(());
    }
    let measures = Measures {
        ops,
        threads: knobs.threads,
        elapsed,
    };
    session.put(fmt!(
        "BenchmarkRefWalk/lock={}/threads={}/ratio={} {measures} {round} block {moves} moves {retired} retired {astray} astray {extremes}",
        lock.name(),
        knobs.threads,
        knobs.ratio
    ))?;
    if let Some((now, before)) = now.zip(before) {
        now.since(before).put(session, ops)?;
    }
    session.put(fmt!("\n"))
}

/// The job of a block.
struct Walk<R: Counted> {
    leaf: NodeRef<R>,
    dirs: [NodeRef<R>; 2],
    /// Whether someone moves the leaf.
    moving: Atomic<bool>,
    /// The directory that it is in.
    at: Atomic<u32>,
    ops: u64,
    cycles: Knobs,
}

#[derive(Default)]
struct Tally {
    ops: u64,
    moves: u64,
    /// Moves that left a directory nobody had a reference of.
    retired: u64,
    /// Walks that met a retired directory, or a node without a parent.
    astray: u64,
    extremes: Extremes,
}

impl<R: Counted> Walk<R> {
    fn new(knobs: &Knobs, ledger: &Arc<Ledger>) -> Result<Self> {
        let root = NodeRef::new(None, ledger)?;
        let dirs = [
            NodeRef::new(Some(&root), ledger)?,
            NodeRef::new(Some(&root), ledger)?,
        ];
        let leaf = NodeRef::new(dirs.first(), ledger)?;
        Ok(Self {
            leaf,
            dirs,
            moving: Atomic::new(false),
            at: Atomic::new(0),
            ops: knobs.ops,
            cycles: *knobs,
        })
    }

    /// From the leaf to the root: whether all was as it should be.
    #[inline(always)]
    fn walk(&self) -> bool {
        let Some(dir) = self.leaf.parent() else {
            return false;
        };
        let valid = !dir.is_retired();
        valid & dir.parent().is_some()
    }

    /// Moves the leaf, unless someone else does: whether it did, and whether the old directory was
    /// retired.
    fn move_leaf(&self) -> Option<bool> {
        // ORDERING: Acquire pairs with the release of whoever moved before.
        if self.moving.xchg(true, Acquire) {
            return None;
        }
        // Relaxed: of this mover alone.
        let at = self.at.load(Relaxed) & 1;
        self.at.store(at ^ 1, Relaxed);
        let [first, second] = &self.dirs;
        let (old, new) = if at == 0 {
            (first, second)
        } else {
            (second, first)
        };
        new.revive();
        self.leaf.move_to(new);
        let retired = old.retire();
        // ORDERING: Release pairs with the acquire above.
        self.moving.store(false, Release);
        Some(retired)
    }
}

impl<R: Counted> Job for Walk<R> {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        let cycle = self.cycles.cycle(seat);
        self.measured(seat, cycle)
    }

    fn add(total: &mut Tally, other: Tally) {
        let add = |sum: &mut u64, n| *sum = sum.saturating_add(n);
        add(&mut total.ops, other.ops);
        add(&mut total.moves, other.moves);
        add(&mut total.retired, other.retired);
        add(&mut total.astray, other.astray);
        total.extremes.add(other.extremes);
    }
}

impl<R: Counted> Walk<R> {
    #[inline(never)]
    fn measured(&self, seat: &Seat<'_>, mut cycle: Cycle) -> Tally {
        let mut tally = Tally::default();
        seat.measure(|| {
            while tally.ops < self.ops && !seat.stopped() {
                if cycle.next_is_read() {
                    let astray = u64::from(!self.walk());
                    tally.astray = tally.astray.wrapping_add(astray);
                } else if let Some(retired) = self.move_leaf() {
                    tally.moves = tally.moves.wrapping_add(1);
                    tally.retired = tally.retired.wrapping_add(u64::from(retired));
                }
                tally.ops = tally.ops.wrapping_add(1);
                seat.progress(tally.ops);
            }
        });
        tally.extremes = Extremes::of(seat);
        tally
    }
}
