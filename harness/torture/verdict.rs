// SPDX-License-Identifier: GPL-2.0

//! The lines that say how a run was and how it ended, in the shape of locktorture's.

use super::{
    super::engine::Session,
    arena::Arena,
    knobs::Stress,
    roles::Role,
    shared::Shared,
    tally::Shares, //
};
use kernel::prelude::*;

/// Says what is about to begin.
pub(super) fn put_start(session: &Session<'_>, stress: &Stress) -> Result {
    session.put_machine()?;
    session.put(fmt!("klocks-torture:--- Start of test:"))?;
    for role in Role::ALL {
        session.put(fmt!(" n{}s_stress={}", role.name(), stress.wanted(role)))?;
    }
    let numbers = [
        ("load", stress.load),
        ("think", stress.think),
        ("long_hold", stress.long_hold),
        ("nested_locks", stress.nested_locks),
        ("stutter", stress.stutter),
        ("shuffle_interval", stress.shuffle_interval),
        ("onoff_interval", stress.onoff_interval),
        ("onoff_holdoff", stress.onoff_holdoff),
        ("rt_boost", stress.rt_boost.into()),
        ("rt_boost_factor", stress.rt_boost_factor),
        ("acq_writer_lim", stress.acq_writer_lim),
        ("watchdog_ms", stress.watchdog_ms),
        ("duration_ms", stress.duration_ms),
    ];
    for (name, value) in numbers {
        session.put(fmt!(" {name}={value}"))?;
    }
    session.put(fmt!(" seed={}\n", stress.seed))
}

/// What the workers of a lock did together.
#[derive(Default)]
struct Sum {
    reads: u64,
    writes: u64,
    refused: u64,
    late: u64,
    faults: u64,
}

/// Says how lock number `place` fared, which no one uses any more. Whether all is well with it.
pub(super) fn put_lock(
    session: &Session<'_>,
    shared: &Shared,
    place: usize,
    arena: &Arena,
) -> Result<bool> {
    let name = arena.kind.name();
    let mut sum = Sum::default();
    for role in Role::ALL {
        let line = shared.with_tally(place, role, |tally| {
            let faults = tally
                .faults
                .overlaps
                .saturating_add(tally.faults.torn);
            sum.reads = sum.reads.saturating_add(tally.reads);
            sum.writes = sum.writes.saturating_add(tally.writes);
            sum.refused = sum.refused.saturating_add(tally.refused);
            sum.late = sum.late.saturating_add(tally.late);
            sum.faults = sum.faults.saturating_add(faults);
            let waits = &tally.waits;
            if waits.count() == 0 && tally.refused == 0 {
                return Ok(());
            }
            session.put(fmt!(
                "{name}-torture: {}: reads={} writes={} refused={} wait-ns: p50={} p99={} p999={} max={}\n",
                role.name(),
                tally.reads,
                tally.writes,
                tally.refused,
                waits.percentile(500),
                waits.percentile(990),
                waits.percentile(999),
                waits.most()
            ))
        });
        line.unwrap_or(Ok(()))?;
    }
    put_shares(
        session,
        shared,
        arena,
        "Writes: ",
        Role::Writer,
        sum.writes,
        sum.faults,
    )?;
    put_shares(
        session,
        shared,
        arena,
        "Reads : ",
        Role::Reader,
        sum.reads,
        sum.faults,
    )?;
    judge(session, arena, &sum)?;
    let Sum {
        reads,
        writes,
        refused,
        late,
        faults,
    } = sum;
    let good = !arena.has_failed();
    let verdict = verdict(good);
    session.count_ops(reads.saturating_add(writes));
    session.put(fmt!(
        "{name}-torture:--- End of test: {verdict}: reads={reads} writes={writes} refused={refused} late={late} faults={faults}\n"
    ))?;
    Ok(good)
}

/// The line of totals that locktorture has: `Max/Min` are of one worker of `role` each.
fn put_shares(
    session: &Session<'_>,
    shared: &Shared,
    arena: &Arena,
    what: &str,
    role: Role,
    total: u64,
    faults: u64,
) -> Result {
    let shares = arena
        .workers
        .clone()
        .filter(|&index| shared.posts.get(index).is_some_and(|post| post.1 == role))
        .filter_map(|index| shared.desks.get(index).map(|desk| desk.acquired()));
    let shares = Shares::of(shares);
    session.put(fmt!(
        "{}-torture: {what} Total: {total}  Max/Min: {}/{}   Fail: {faults}  jain={}\n",
        arena.kind.name(),
        shares.most(),
        shares.least(),
        shares.jain()
    ))
}

/// Looks for what only shows in the end, and says what there is.
fn judge(session: &Session<'_>, arena: &Arena, sum: &Sum) -> Result {
    let name = arena.kind.name();
    if sum.faults != 0 {
        session.fail(fmt!("{name} does not exclude: {} faults", sum.faults));
        arena.mark_failed();
    } else if let Err(what) = arena.subject.check_at_rest() {
        session.fail(fmt!("{name} {what}"));
        arena.mark_failed();
    }
    if sum.late != 0 {
        session.fail(fmt!("{name}: {} writes waited for too long", sum.late));
        arena.mark_failed();
    }
    if sum.reads == 0 && sum.writes == 0 && !session.stopped() {
        session.fail(fmt!("{name} was never acquired"));
        arena.mark_failed();
    }
    Ok(())
}

/// Says how the whole run ended: the last line.
pub(super) fn put_end(
    session: &Session<'_>,
    locks: usize,
    failed: usize,
    (offline, online): (u64, u64),
) -> Result {
    let verdict = verdict(failed == 0);
    session.put(fmt!(
        "klocks-torture:--- End of test: {verdict}: locks={locks} failed={failed} offlines={offline} onlines={online}\n"
    ))
}

fn verdict(good: bool) -> &'static str {
    if good {
        "SUCCESS"
    } else {
        "FAILURE"
    }
}
