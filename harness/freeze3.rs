// SPDX-License-Identifier: GPL-2.0

//! Scenario `freeze3`: three semaphores taken for writing one after the other, as a file system's
//! three levels are when it is frozen, from a state in which readers are on their fast path.
//!
//! With gates of their own each costs a grace period, with a common one all three cost one.

use super::{
    bench::Session,
    crew::{
        self,
        Job,
        Seat, //
    },
    knobs::Knobs,
    scenario::{
        Measures,
        Scenario, //
    }, //
};
use crate::{
    kapi::{
        clock,
        percpu_peer::PercpuRwSemaphore as Peer,
        rcu::{
            self,
            Cookie, //
        }, //
    },
    percpu_rwsem::{
        GateSource,
        Percpu,
        PercpuRwSem, //
    },
    rcu_sync::{
        RcuSync,
        Sched, //
    },
    rwlock::RawRwLock, //
};
use kernel::{
    prelude::*,
    sync::{
        static_lock_class,
        Arc, //
    }, //
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "freeze3",
    // All combinations make sense; there is one thread, and the locks are given.
    check: |_| Ok(()),
    blocks: |knobs| u64::from(knobs.blocks).saturating_add(1).saturating_mul(3),
    run,
};

/// The most freezes of a block: each waits for several grace periods.
const MOST: u64 = 200;

fn run(knobs: &Knobs, session: &Session<'_>) -> Result {
    for round in 0..=knobs.blocks {
        block(knobs, session, round, "percpu_rwsem_c", Levels::peers()?)?;
        block(knobs, session, round, "percpu_rwsem", Levels::own()?)?;
        block(
            knobs,
            session,
            round,
            "percpu_rwsem.shared",
            Levels::shared()?,
        )?;
        if session.stopped() {
            break;
        }
    }
    Ok(())
}

fn block(
    knobs: &Knobs,
    session: &Session<'_>,
    round: u32,
    name: &'static str,
    levels: Levels,
) -> Result {
    let knobs = Knobs {
        threads: 1,
        ..*knobs
    };
    let freezes = Freezes {
        levels,
        ops: knobs.ops.min(MOST),
    };
    let report = crew::run(freezes, &knobs, session)?;
    let Tally {
        ops,
        in_freeze,
        normal,
        expedited,
    } = report.tally;
    session.count_ops(ops);
    if session.stopped() {
        return Ok(());
    }
    session.block_done();
    let measures = Measures {
        ops,
        threads: 1,
        elapsed: in_freeze,
    };
    session.put(fmt!(
        "BenchmarkFreeze3/lock={name}/threads=1 {measures} {round} block {normal} grace-periods {expedited} expedited\n"
    ))
}

/// A lock at one of the levels.
trait Level: Send + Sync {
    fn freeze(&self);

    /// # Safety
    ///
    /// The level is frozen.
    unsafe fn thaw(&self);
}

impl Level for Peer {
    fn freeze(&self) {
        self.down_write();
    }

    unsafe fn thaw(&self) {
        // SAFETY: By the contract.
        unsafe { self.up_write() };
    }
}

impl<S: GateSource> Level for PercpuRwSem<Percpu, S> {
    fn freeze(&self) {
        self.down_write();
    }

    unsafe fn thaw(&self) {
        // SAFETY: By the contract.
        unsafe { self.up_write() };
    }
}

/// The three levels.
struct Levels([Arc<dyn Level>; 3]);

/// Levels made by a function of their class; each has its own, since one task takes all.
macro_rules! levels {
    ($new:expr) => {{
        let new = $new;
        Ok(Self([
            new(static_lock_class!())?,
            new(static_lock_class!())?,
            new(static_lock_class!())?,
        ]))
    }};
}

impl Levels {
    fn own() -> Result<Self> {
        levels!(|key| -> Result<Arc<dyn Level>> {
            Ok(Arc::pin_init(
                PercpuRwSem::<Percpu>::new(c"klocks_freeze3", key),
                GFP_KERNEL,
            )?)
        })
    }

    fn peers() -> Result<Self> {
        levels!(|key| -> Result<Arc<dyn Level>> {
            Ok(Arc::pin_init(
                <Peer as RawRwLock>::init(c"klocks_freeze3_c", key),
                GFP_KERNEL,
            )?)
        })
    }

    fn shared() -> Result<Self> {
        let gate = Arc::pin_init(RcuSync::<Sched>::new(), GFP_KERNEL)?;
        levels!(|key| -> Result<Arc<dyn Level>> {
            Ok(Arc::pin_init(
                PercpuRwSem::<Percpu, _>::with_gate(gate.clone(), c"klocks_freeze3_shared", key),
                GFP_KERNEL,
            )?)
        })
    }
}

/// The job of a block.
struct Freezes {
    levels: Levels,
    ops: u64,
}

struct Tally {
    ops: u64,
    /// Nanoseconds until all three levels were frozen.
    in_freeze: u64,
    /// Grace periods that the system had in that time.
    normal: u64,
    expedited: u64,
}

impl Job for Freezes {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        seat.measure(|| {
            let mut tally = Tally {
                ops: 0,
                in_freeze: 0,
                normal: 0,
                expedited: 0,
            };
            while tally.ops < self.ops && !seat.stopped() {
                let (before, began) = (Cookie::now(), clock::now_ns());
                for level in &self.levels.0 {
                    level.freeze();
                }
                let took = clock::now_ns().saturating_sub(began);
                let (normal, expedited) = Cookie::now().since(&before);
                for level in self.levels.0.iter().rev() {
                    // SAFETY: Frozen above.
                    unsafe { level.thaw() };
                }
                // Readers are back on the fast path when the callbacks have run.
                rcu::barrier();
                tally.in_freeze = tally.in_freeze.saturating_add(took);
                tally.normal = tally.normal.saturating_add(normal);
                tally.expedited = tally.expedited.saturating_add(expedited);
                tally.ops = tally.ops.wrapping_add(1);
                seat.progress(tally.ops);
            }
            tally
        })
    }

    fn add(total: &mut Tally, other: Tally) {
        total.ops = total.ops.saturating_add(other.ops);
        total.in_freeze = total.in_freeze.saturating_add(other.in_freeze);
        total.normal = total.normal.saturating_add(other.normal);
        total.expedited = total.expedited.saturating_add(other.expedited);
    }
}
