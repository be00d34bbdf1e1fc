// SPDX-License-Identifier: GPL-2.0

//! The table of what a run can do, and what most scenarios have in common.

use super::{
    bench::Session,
    checks::Faults,
    freeze3,
    handoff_storm,
    knobs::Knobs,
    locks::{
        LockType,
        LOCKS, //
    },
    mmap_storm,
    order,
    osq,
    percpu_irq,
    percpu_life,
    percpu_read,
    percpu_slow,
    percpu_toggle,
    percpu_write,
    rcu_sync,
    ref_burst,
    ref_kill,
    ref_storm,
    ref_torture,
    ref_walk,
    rt_wake,
    rwsem_mix,
    subject::Subject, //
};
use crate::kapi::debugfs::Text;
use kernel::{
    fmt,
    prelude::*, //
};

/// One kind of run.
pub(super) struct Scenario {
    /// The name in files and results.
    pub(super) name: &'static str,
    /// Whether it can be run with such settings; `EINVAL` when not.
    pub(super) check: fn(&Knobs) -> Result,
    /// How many blocks it has.
    pub(super) blocks: fn(&Knobs) -> u64,
    /// Runs it to its end, or to the session's.
    pub(super) run: fn(&Knobs, &Session<'_>) -> Result,
}

/// All of them; the first is chosen at the start.
pub(super) static SCENARIOS: &[Scenario] = &[
    rwsem_mix::SCENARIO,
    mmap_storm::STORM,
    mmap_storm::SLEEPING_READERS,
    handoff_storm::SCENARIO,
    rt_wake::SCENARIO,
    osq::SCENARIO,
    percpu_write::SCENARIO,
    percpu_toggle::SCENARIO,
    percpu_read::SCENARIO,
    freeze3::SCENARIO,
    percpu_slow::SCENARIO,
    percpu_life::SCENARIO,
    percpu_irq::SCENARIO,
    rcu_sync::SCENARIO,
    ref_storm::SCENARIO,
    ref_walk::SCENARIO,
    ref_burst::SCENARIO,
    ref_torture::SCENARIO,
    ref_kill::SCENARIO, //
];

impl Scenario {
    /// The scenario called `name`.
    ///
    /// # Errors
    ///
    /// `EINVAL` when there is none.
    pub(super) fn find(name: &str) -> Result<&'static Self> {
        SCENARIOS.iter().find(|s| s.name == name).ok_or(EINVAL)
    }

    /// All names, this one in brackets.
    pub(super) fn show(&self, out: &mut Text) -> Result {
        super::show_choice(out, SCENARIOS.iter().map(|s| (s.name, s.name == self.name)))
    }
}

/// Of how many rounds the order is told beforehand. The order of the blocks' lines tells it of all.
const TOLD_ROUNDS: usize = 32;

/// The number of blocks when each selected lock has one in each round.
pub(super) fn blocks_of_rounds(knobs: &Knobs) -> u64 {
    let locks = knobs.locks.indices().count() as u64;
    rounds(knobs).map(|_| locks).sum()
}

/// The rounds' numbers. Round 0 warms up.
fn rounds(knobs: &Knobs) -> impl Iterator<Item = u32> {
    0..=knobs.blocks
}

/// The number of blocks when each round is one.
pub(super) fn blocks_of_one(knobs: &Knobs) -> u64 {
    rounds(knobs).map(|_| 1).sum()
}

/// Runs `block` once in each round, for scenarios that have locks of their own.
pub(super) fn play_blocks(
    knobs: &Knobs,
    session: &Session<'_>,
    mut block: impl FnMut(u32) -> Result,
) -> Result {
    for round in rounds(knobs) {
        block(round)?;
        if session.stopped() {
            break;
        }
        session.block_done();
    }
    Ok(())
}

/// Runs `block` for each lock of each round, in the order that the seed decides, and tells the
/// order beforehand.
pub(super) fn play_rounds(
    knobs: &Knobs,
    session: &Session<'_>,
    mut block: impl FnMut(&'static LockType, u32) -> Result,
) -> Result {
    let mut selected: KVec<&'static LockType> = KVec::new();
    for lock in knobs.locks.indices() {
        selected.push(LOCKS.get(usize::from(lock)).ok_or(EINVAL)?, GFP_KERNEL)?;
    }
    let mut order = KVec::from_elem(0u8, selected.len(), GFP_KERNEL)?;

    session.put(fmt!("order:"))?;
    for round in rounds(knobs).take(TOLD_ROUNDS) {
        order::fill(knobs.seed, round, &mut order);
        let lead = if round == 0 { "" } else { " /" };
        session.put(fmt!("{lead}"))?;
        for lock in order.iter().filter_map(|&i| selected.get(usize::from(i))) {
            session.put(fmt!(" {}", lock.name()))?;
        }
    }
    let more = rounds(knobs).nth(TOLD_ROUNDS).is_some();
    session.put(fmt!("{}\n", if more { " / ..." } else { "" }))?;

    for round in rounds(knobs) {
        order::fill(knobs.seed, round, &mut order);
        for lock in order.iter().filter_map(|&i| selected.get(usize::from(i))) {
            block(lock, round)?;
            if session.stopped() {
                return Ok(());
            }
            session.block_done();
        }
    }
    Ok(())
}

/// Fails the run when `lock` let someone in that it should not have, or was not left free.
pub(super) fn judge(
    session: &Session<'_>,
    lock: &LockType,
    round: u32,
    subject: &Subject,
    faults: &Faults,
) {
    let name = lock.name();
    let Faults { overlaps, torn } = faults;
    if !faults.is_none() {
        session.fail(fmt!(
            "{name} does not exclude: {overlaps} overlaps, {torn} torn in block {round}"
        ));
    } else if let Err(what) = subject.check_at_rest() {
        session.fail(fmt!("{name} {what} in block {round}"));
    }
}

/// The measures that every block's line has.
pub(super) struct Measures {
    /// Operations of all threads.
    pub(super) ops: u64,
    pub(super) threads: u32,
    /// Nanoseconds from the common start to the last thread's end.
    pub(super) elapsed: u64,
}

impl fmt::Display for Measures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The time of one operation of one thread, in thousandths.
        let each = (self.ops / u64::from(self.threads.max(1))).max(1);
        let milli = self.elapsed.saturating_mul(1000) / each;
        write!(
            f,
            "{} {}.{:03} ns/op {} elapsed-ns",
            self.ops,
            milli / 1000,
            milli % 1000,
            self.elapsed
        )
    }
}
