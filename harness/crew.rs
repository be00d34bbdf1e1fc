// SPDX-License-Identifier: GPL-2.0

//! Worker threads that start together on one job, and the wait for their end.
//!
//! Workers sleep until all have arrived at the gate; the last one opens it. Where each has a CPU of
//! its own they then meet once more, spinning, so that nobody starts before all are awake. On
//! fewer CPUs that would only keep those from running that are waited for.
//!
//! A worker's end is its own affair: it reports and returns. The crew joins threads that have
//! reported, so that joining never takes long. One that does not report, stuck in a lock, keeps
//! the crew, the job, the lock and the module where they are.

use super::{
    bench::{
        Control,
        Session, //
    },
    knobs::Knobs,
    pause, //
};
use crate::kapi::{
    clock,
    kthread::{
        Body,
        Kthread,
        Placement, //
    },
    machine,
    mark::{
        self,
        mark, //
    }, //
};
use core::cell::Cell;
use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    processor::cpu_relax,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Completion,
        CondVar,
        Mutex, //
    },
    time::msecs_to_jiffies, //
};

/// Longest time for which workers spin at the gate, in nanoseconds.
const MEET_NS: u64 = 2_000_000;
/// How often the controller looks at its workers, in milliseconds.
const WATCH_MS: u32 = 200;
/// When workers that are to stop are called stuck, in nanoseconds.
const STOP_NS: u64 = 4_000_000_000;
/// When workers that do nothing any more are called stuck, in nanoseconds.
const STALL_NS: u64 = 30_000_000_000;

/// What a crew does.
pub(super) trait Job: Send + Sync + 'static {
    /// What a worker found and counted.
    type Tally: Send + Unpin + 'static;

    /// Does one worker's part. What is to be measured goes through [`Seat::measure`].
    fn work(&self, seat: &Seat<'_>) -> Self::Tally;

    /// Adds up what two workers or groups of workers counted.
    fn add(total: &mut Self::Tally, other: Self::Tally);
}

/// A block's outcome.
pub(super) struct Report<J: Job> {
    /// Nanoseconds from the first worker's start to the last one's end.
    pub(super) elapsed: u64,
    /// All workers' together.
    pub(super) tally: J::Tally,
    shared: Arc<Shared<J>>,
}

impl<J: Job> Report<J> {
    /// What the workers worked on, and work on no more.
    pub(super) fn job(&self) -> &J {
        &self.shared.job
    }
}

/// How far a worker has come, on a cache line that it shares with nobody.
#[repr(align(64))]
struct Progress(Atomic<u64>);

/// A worker's place in the crew.
pub(super) struct Seat<'a> {
    index: u32,
    threads: u32,
    skew: u32,
    control: &'a Control,
    progress: &'a Progress,
    begin: Cell<u64>,
    end: Cell<u64>,
}

impl Seat<'_> {
    /// The worker's number, from 0.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// How many workers there are.
    pub(super) fn threads(&self) -> u32 {
        self.threads
    }

    /// Whether to stop early. Cheap enough to be asked before every operation: the line is only
    /// read, until the run is stopped.
    #[inline(always)]
    pub(super) fn stopped(&self) -> bool {
        self.control.stopped()
    }

    /// Says that `done` operations are done, to those who look for workers that are stuck.
    #[inline(always)]
    pub(super) fn progress(&self, done: u64) {
        // Relaxed: a statistic of a thread that alone writes it.
        self.progress.0.store(done, Relaxed);
    }

    /// Nanoseconds that the measured part took in this worker.
    pub(super) fn elapsed(&self) -> u64 {
        self.end.get().saturating_sub(self.begin.get())
    }

    /// Runs `ops`, which is what the block's time is the time of.
    #[inline(always)]
    pub(super) fn measure<T>(&self, ops: impl FnOnce() -> T) -> T {
        pause(self.index.saturating_mul(self.skew));
        self.begin.set(clock::now_ns());
        mark::<{ mark::WORK_BEGIN }>();
        let result = ops();
        mark::<{ mark::WORK_END }>();
        self.end.set(clock::now_ns());
        result
    }
}

/// What workers and controller share.
#[pin_data]
struct Shared<J: Job> {
    job: J,
    threads: u32,
    skew: u32,
    /// Whether all can run at once.
    meet: bool,
    control: Arc<Control>,
    progress: KVec<Progress>,
    /// Workers at the gate.
    arrived: Atomic<u32>,
    /// Workers that came through and spin.
    awake: Atomic<u32>,
    #[pin]
    gate: Completion,
    #[pin]
    ended: Mutex<Ended<J::Tally>>,
    #[pin]
    changed: CondVar,
}

/// What workers report at their end.
struct Ended<T> {
    workers: u32,
    /// Earliest start.
    begin: u64,
    /// Latest end.
    end: u64,
    tally: Option<T>,
}

impl<J: Job> Shared<J> {
    fn new(job: J, knobs: &Knobs, session: &Session<'_>) -> Result<Arc<Self>> {
        let threads = knobs.threads;
        let meet = threads <= machine::cpu_count();
        let mut progress = KVec::with_capacity(threads as usize, GFP_KERNEL)?;
        for _ in 0..threads {
            progress.push(Progress(Atomic::new(0)), GFP_KERNEL)?;
        }
        Arc::pin_init(
            pin_init!(Self {
                job,
                threads,
                skew: knobs.skew,
                meet,
                control: session.control(),
                progress,
                arrived: Atomic::new(0),
                awake: Atomic::new(0),
                gate <- Completion::new(),
                ended <- new_mutex!(Ended {
                    workers: 0,
                    begin: u64::MAX,
                    end: 0,
                    tally: None,
                }),
                changed <- new_condvar!(),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns in all workers at about the same time.
    fn pass_gate(&self) {
        // Relaxed: only the number counts; the completion orders what follows it.
        if self.arrived.fetch_add(1, Relaxed).wrapping_add(1) == self.threads {
            self.gate.complete_all();
        } else {
            self.gate.wait_for_completion();
        }
        if !self.meet {
            return;
        }
        // Relaxed: as above.
        self.awake.fetch_add(1, Relaxed);
        let deadline = clock::now_ns().saturating_add(MEET_NS);
        while self.awake.load(Relaxed) < self.threads && clock::now_ns() < deadline {
            cpu_relax();
        }
    }

    /// All operations so far.
    fn total_progress(&self) -> u64 {
        // Relaxed: a statistic.
        self.progress
            .iter()
            .fold(0, |sum, p| sum.wrapping_add(p.0.load(Relaxed)))
    }
}

/// One thread's part.
struct Worker<J: Job> {
    index: u32,
    shared: Arc<Shared<J>>,
}

impl<J: Job> Body for Worker<J> {
    fn run(&self) {
        let shared = &*self.shared;
        let Some(progress) = shared.progress.get(self.index as usize) else {
            return;
        };
        let seat = Seat {
            index: self.index,
            threads: shared.threads,
            skew: shared.skew,
            control: &shared.control,
            progress,
            begin: Cell::new(0),
            end: Cell::new(0),
        };
        shared.pass_gate();
        let tally = shared.job.work(&seat);

        let mut ended = shared.ended.lock();
        ended.workers = ended.workers.saturating_add(1);
        ended.begin = ended.begin.min(seat.begin.get());
        ended.end = ended.end.max(seat.end.get());
        match &mut ended.tally {
            Some(total) => J::add(total, tally),
            None => ended.tally = Some(tally),
        }
        // Others may still be measuring: the controller is woken once.
        if ended.workers == shared.threads {
            shared.changed.notify_all();
        }
    }
}

/// Runs `job` in `knobs.threads` threads and returns when the last of them has been joined.
///
/// # Errors
///
/// `ENOMEM` and the like when the threads cannot be made; none has run then.
pub(super) fn run<J: Job>(job: J, knobs: &Knobs, session: &Session<'_>) -> Result<Report<J>> {
    let shared = Shared::new(job, knobs, session)?;
    let threads = create_threads(&shared, knobs.pin)?;
    mark::<{ mark::RUN_OPEN }>();
    for thread in &threads {
        thread.wake();
    }
    wait_for_end(&shared, session);
    drop(threads);
    mark::<{ mark::RUN_CLOSE }>();

    let mut ended = shared.ended.lock();
    let elapsed = ended.end.saturating_sub(ended.begin);
    let tally = ended.tally.take().ok_or(EINVAL)?;
    drop(ended);
    Ok(Report {
        elapsed,
        tally,
        shared,
    })
}

/// One thread a worker, still asleep.
fn create_threads<J: Job>(shared: &Arc<Shared<J>>, pin: bool) -> Result<KVec<Kthread<Worker<J>>>> {
    let mut cpus = KVec::new();
    for cpu in machine::online_cpus() {
        cpus.push(cpu, GFP_KERNEL)?;
    }
    // From the second CPU on: the first has the controller and the most interrupts.
    let mut cpus = cpus.iter().copied().cycle().skip(1);
    let mut threads = KVec::with_capacity(shared.threads as usize, GFP_KERNEL)?;
    for index in 0..shared.threads {
        let worker = Worker {
            index,
            shared: shared.clone(),
        };
        let placement = Placement {
            cpu: cpus.next().filter(|_| pin),
            fifo: false,
        };
        let worker = Arc::new(worker, GFP_KERNEL)?;
        threads.push(
            Kthread::create(c"klocks", index, placement, worker)?,
            GFP_KERNEL,
        )?;
    }
    Ok(threads)
}

/// Waits until all workers have reported, and tells the session when some seem stuck.
fn wait_for_end<J: Job>(shared: &Shared<J>, session: &Session<'_>) {
    let mut watch = Watch::new();
    let mut ended = shared.ended.lock();
    while ended.workers < shared.threads {
        // No signal reaches a kernel thread, and a time-out is no more than a look around.
        let _ = shared
            .changed
            .wait_interruptible_timeout(&mut ended, msecs_to_jiffies(WATCH_MS));
        let left = shared.threads.saturating_sub(ended.workers);
        if left != 0 {
            if let Some(what) = watch.look(shared) {
                session.stuck(left, what);
            }
        }
    }
}

/// Notices workers that are stuck.
struct Watch {
    progress: u64,
    /// When `progress` was new.
    progress_at: u64,
    /// When the run was seen to have been stopped.
    stopped_at: Option<u64>,
    /// Once is enough.
    told: bool,
}

impl Watch {
    fn new() -> Self {
        Self {
            progress: 0,
            progress_at: clock::now_ns(),
            stopped_at: None,
            told: false,
        }
    }

    /// What is wrong with the workers that have not reported, when that is first seen.
    fn look<J: Job>(&mut self, shared: &Shared<J>) -> Option<&'static str> {
        let now = clock::now_ns();
        let progress = shared.total_progress();
        if progress != self.progress {
            self.progress = progress;
            self.progress_at = now;
        }
        let (since, limit, what) = if shared.control.stopped() {
            let since = *self.stopped_at.get_or_insert(now);
            (since, STOP_NS, "did not stop within 4 s")
        } else {
            (self.progress_at, STALL_NS, "did nothing for 30 s")
        };
        if self.told || now.saturating_sub(since) < limit {
            return None;
        }
        self.told = true;
        Some(what)
    }
}
