// SPDX-License-Identifier: GPL-2.0

//! Scenario `percpu_irq`: is a read lock that an interrupt gives up counted right?
//!
//! A task hands read locks over to a timer, as file systems do to the end of an asynchronous write,
//! and goes on reading on the same CPU, so that the interrupt comes between its own counts. A writer
//! comes by every millisecond: a count that got lost would keep it out for good.
//!
//! ```text
//! task                timer, same CPU
//!   load part
//!                       part -= 1
//!   store part + 1                         the timer's is lost, unless a count is one instruction
//! ```

use super::{
    bench::Session,
    crew::{
        self,
        Job,
        Seat, //
    },
    knobs::Knobs,
    scenario::{
        blocks_of_one,
        play_blocks,
        Measures,
        Scenario, //
    }, //
};
use crate::percpu_rwsem::{
    Percpu,
    PercpuRwSem, //
};
use kernel::{
    impl_has_hr_timer,
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
        ArcBorrow, //
    },
    time::{
        delay::fsleep,
        hrtimer::{
            HrTimer,
            HrTimerCallback,
            HrTimerCallbackContext,
            HrTimerPointer,
            HrTimerRestart,
            RelativePinnedHardMode, //
        },
        Delta,
        Monotonic, //
    }, //
};

/// The timer's period.
const PERIOD: Delta = Delta::from_micros(100);
/// The writer's.
const WRITES: Delta = Delta::from_millis(1);

pub(super) const SCENARIO: Scenario = Scenario {
    name: "percpu_irq",
    // All combinations make sense; there are two threads.
    check: |_| Ok(()),
    blocks: blocks_of_one,
    run,
};

fn run(knobs: &Knobs, session: &Session<'_>) -> Result {
    play_blocks(knobs, session, |round| block(knobs, session, round))
}

fn block(knobs: &Knobs, session: &Session<'_>, round: u32) -> Result {
    let pair = Knobs {
        threads: 2,
        pin: true,
        ..*knobs
    };
    let handover = Handover {
        stage: Arc::pin_init(
            try_pin_init!(Stage {
                lock <- PercpuRwSem::new(c"klocks_percpu_irq", static_lock_class!()),
                handed: Atomic::new(false),
                over: Atomic::new(false),
                timer <- HrTimer::new(),
            }),
            GFP_KERNEL,
        )?,
        ops: knobs.ops,
    };
    let report = crew::run(handover, &pair, session)?;
    let Tally {
        reads,
        handed,
        writes,
    } = report.tally;
    session.count_ops(reads);
    let lock = &report.job().stage.lock;
    if lock.is_read_locked() || lock.is_write_locked() {
        session.fail(fmt!("percpu_rwsem is not free at rest in block {round}"));
    }
    let measures = Measures {
        ops: reads,
        threads: 1,
        elapsed: report.elapsed,
    };
    session.put(fmt!(
        "BenchmarkPercpuIrq/lock=percpu_rwsem/threads=2 {measures} {round} block {handed} handed-over {writes} writes\n"
    ))
}

/// What task, timer and writer share.
#[pin_data]
struct Stage {
    #[pin]
    lock: PercpuRwSem<Percpu>,
    /// The lock is held for reading, and for the timer to give up.
    handed: Atomic<bool>,
    /// The task has ended.
    over: Atomic<bool>,
    #[pin]
    timer: HrTimer<Self>,
}

impl Stage {
    /// Gives up the lock that was handed over, if one was.
    fn give_up(&self) {
        // ORDERING: Acquire pairs with the release in `hand_over`.
        if self.handed.xchg(false, Acquire) {
            // SAFETY: `hand_over` has taken the lock for reading and leaves it to whoever turns the
            // flag back.
            unsafe {
                self.lock.take_over(false);
                self.lock.up_read();
            }
        }
    }

    /// Takes the lock and leaves it to the timer, which has given up the last one.
    fn hand_over(&self) {
        self.lock.down_read();
        // SAFETY: Just taken; `give_up` takes over what the flag tells of.
        unsafe { self.lock.hand_over() };
        // ORDERING: Release pairs with the acquire in `give_up`.
        self.handed.store(true, Release);
    }
}

impl HrTimerCallback for Stage {
    type Pointer<'a> = Arc<Self>;

    fn run(
        this: ArcBorrow<'_, Self>,
        mut context: HrTimerCallbackContext<'_, Self>,
    ) -> HrTimerRestart {
        this.give_up();
        context.forward_now(PERIOD);
        HrTimerRestart::Restart
    }
}

impl_has_hr_timer! {
    impl HasHrTimer<Self> for Stage {
        mode: RelativePinnedHardMode<Monotonic>, field: self.timer
    }
}

/// The job of a block.
struct Handover {
    stage: Arc<Stage>,
    ops: u64,
}

#[derive(Default)]
struct Tally {
    reads: u64,
    /// Reads that the timer gave up.
    handed: u64,
    writes: u64,
}

impl Job for Handover {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        seat.measure(|| {
            if seat.index() == 0 {
                let tally = self.read(seat);
                // Relaxed: the writer only ends by it.
                self.stage.over.store(true, Relaxed);
                tally
            } else {
                self.write(seat)
            }
        })
    }

    fn add(total: &mut Tally, other: Tally) {
        total.reads = total.reads.saturating_add(other.reads);
        total.handed = total.handed.saturating_add(other.handed);
        total.writes = total.writes.saturating_add(other.writes);
    }
}

impl Handover {
    /// Reads, and hands over as often as the timer takes.
    fn read(&self, seat: &Seat<'_>) -> Tally {
        let stage = &*self.stage;
        let mut tally = Tally::default();
        let timer = self.stage.clone().start(PERIOD);
        while tally.reads < self.ops && !seat.stopped() {
            // Relaxed: the timer's last access to what it was handed is a count of its own.
            if !stage.handed.load(Relaxed) {
                stage.hand_over();
                tally.handed = tally.handed.wrapping_add(1);
            }
            stage.lock.down_read();
            // SAFETY: Just taken.
            unsafe { stage.lock.up_read() };
            tally.reads = tally.reads.wrapping_add(1);
            seat.progress(tally.reads);
        }
        // Waits for the callback.
        drop(timer);
        stage.give_up();
        tally
    }

    /// Writes now and then.
    fn write(&self, seat: &Seat<'_>) -> Tally {
        let stage = &*self.stage;
        let mut tally = Tally::default();
        // Relaxed: nothing follows from it.
        while !stage.over.load(Relaxed) && !seat.stopped() {
            stage.lock.down_write();
            // SAFETY: Just taken.
            unsafe { stage.lock.up_write() };
            tally.writes = tally.writes.wrapping_add(1);
            seat.progress(tally.writes);
            fsleep(WRITES);
        }
        tally
    }
}
