// SPDX-License-Identifier: GPL-2.0

//! Scenarios `mmap_storm` and `sleeping_readers`: readers that sleep while they hold the lock.
//!
//! What the reviewers of the 2014 series feared for: page faults share `mmap_sem`, some of them for
//! as long as a disk takes, and calls such as `mprotect()` have it alone, often and shortly. Writers
//! that spin meanwhile take the CPUs that the readers need.
//!
//! - `mmap_storm`: each task does both, in the given ratio; one fault of eight sleeps. This is the
//!   profile of xfs_repair, which spinning on readers once made five times slower.
//! - `sleeping_readers`: some tasks only read and always sleep, the others only write, for as long as
//!   the readers are at work; the ratio is that of the tasks. What counts are the reads, beside
//!   the writes that went on meanwhile.
//!
//! A sampler looks every now and then whether the lock's wait lock is taken: its share of the samples
//! is its share of the time. Each block tells how many writes went past a writer that waited, at most, and how long a wait was.

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
    cycle::Roles,
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
    subject::Subject,
    tally::EventTally, //
};
use crate::kapi::{
    clock,
    kthread::{
        self,
        Body,
        Kthread,
        Placement, //
    },
    machine, //
};
use kernel::{
    fmt,
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

/// How long a reader sleeps.
const SLEEP: Delta = Delta::from_micros(100);
/// PAUSEs of a write.
const WRITE_LOAD: u32 = 2;
/// How long the sampler sleeps.
const SAMPLE_EVERY: Delta = Delta::from_micros(50);

/// Who does what.
#[derive(Clone, Copy)]
struct Shape {
    /// The scenario's name in lines of results.
    name: &'static str,
    /// Of so many reads one sleeps.
    sleeps_one_of: u32,
    /// Writers go on until all readers are done, instead of doing as much.
    write_until_read: bool,
}

pub(super) const STORM: Scenario = Scenario {
    name: "mmap_storm",
    check: Knobs::check_roles,
    blocks: blocks_of_rounds,
    run: |knobs, session| {
        let shape = Shape {
            name: "MmapStorm",
            sleeps_one_of: 8,
            write_until_read: false,
        };
        shape.run(knobs, session)
    },
};

pub(super) const SLEEPING_READERS: Scenario = Scenario {
    name: "sleeping_readers",
    check: |knobs| match knobs.ratio.writers_of(knobs.threads) {
        Some(writers) if writers != 0 && writers != knobs.threads => Ok(()),
        _ => Err(EINVAL),
    },
    blocks: blocks_of_rounds,
    run: |knobs, session| {
        let split = Knobs {
            roles: Roles::Split,
            ..*knobs
        };
        let shape = Shape {
            name: "SleepingReaders",
            sleeps_one_of: 1,
            write_until_read: true,
        };
        shape.run(&split, session)
    },
};

impl Shape {
    fn run(self, knobs: &Knobs, session: &Session<'_>) -> Result {
        play_rounds(knobs, session, |lock, round| {
            self.block(knobs, session, lock, round)
        })
    }

    /// One block: all tasks on a new lock.
    fn block(self, knobs: &Knobs, session: &Session<'_>, lock: &LockType, round: u32) -> Result {
        let writers = knobs.ratio.writers_of(knobs.threads).unwrap_or(0);
        let subject = Arc::new(lock.create()?, GFP_KERNEL)?;
        let sampler = Sampler::start(&subject)?;
        let storm = Storm {
            shape: self,
            lock: subject,
            payload: Payload::new(),
            reading: Atomic::new(knobs.threads.saturating_sub(writers)),
            knobs: *knobs,
            round,
        };
        let events = EventTally::of(lock);
        let report = crew::run(storm, knobs, session)?;
        let events = events.so_far();
        let samples = sampler.map(Sampler::end);
        let Tally {
            reads,
            writes,
            faults,
            bypassed,
            longest,
        } = report.tally;
        session.count_ops(reads.saturating_add(writes));
        judge(session, lock, round, &report.job().lock, &faults);
        if session.stopped() {
            return Ok(());
        }
        let measures = Measures {
            ops: if self.write_until_read {
                reads
            } else {
                reads.saturating_add(writes)
            },
            threads: knobs.threads,
            elapsed: report.elapsed,
        };
        session.put(fmt!(
            "Benchmark{}/lock={}/threads={}/ratio={}/load={} {measures} {round} block {} overlaps {} torn {reads} reads {writes} writes {bypassed} most-bypassed {longest} longest-write-ns{}{events}\n",
            self.name,
            lock.name(),
            knobs.threads,
            knobs.ratio,
            knobs.load,
            faults.overlaps,
            faults.torn,
            Shown(samples)
        ))
    }
}

/// The job of a block.
struct Storm {
    shape: Shape,
    lock: Arc<Subject>,
    payload: Payload,
    /// Tasks that have still to read, where those that write wait for them.
    reading: Atomic<u32>,
    knobs: Knobs,
    round: u32,
}

#[derive(Default)]
struct Tally {
    reads: u64,
    writes: u64,
    faults: Faults,
    /// Most writes of others during the wait of a writer.
    bypassed: u64,
    /// Longest wait of a writer, in nanoseconds.
    longest: u64,
}

impl Job for Storm {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        let Knobs {
            seed, ops, think, ..
        } = self.knobs;
        let mut rng = Rng::new(seed, u64::from(self.round) << 32 | u64::from(seat.index()));
        let mut cycle = self.knobs.cycle(seat);
        let me = seat.index().wrapping_add(1);
        let follows = self.shape.write_until_read && cycle.only_writes();
        let mut tally = Tally::default();
        seat.measure(|| {
            let mut done = 0u64;
            // Relaxed: only the number counts.
            while !seat.stopped()
                && if follows {
                    self.reading.load(Relaxed) != 0
                } else {
                    done < ops
                }
            {
                if cycle.next_is_read() {
                    self.read(&mut rng, &mut tally);
                } else {
                    self.write(me, &mut tally);
                }
                pause(rng.up_to(think.saturating_mul(2)));
                done = done.wrapping_add(1);
                seat.progress(done);
            }
        });
        // Relaxed: as above.
        if !follows {
            self.reading.fetch_sub(1, Relaxed);
        }
        tally
    }

    fn add(total: &mut Tally, other: Tally) {
        total.reads = total.reads.saturating_add(other.reads);
        total.writes = total.writes.saturating_add(other.writes);
        total.faults += other.faults;
        total.bypassed = total.bypassed.max(other.bypassed);
        total.longest = total.longest.max(other.longest);
    }
}

impl Storm {
    /// A page fault.
    fn read(&self, rng: &mut Rng, tally: &mut Tally) {
        let sleeps = rng.up_to(self.shape.sleeps_one_of.wrapping_sub(1)) == 0;
        let _hold = self.lock.read();
        self.payload.read(&mut tally.faults, || {
            pause(self.knobs.load);
            if sleeps {
                fsleep(SLEEP);
            }
        });
        tally.reads = tally.reads.wrapping_add(1);
    }

    /// A call that changes the mappings.
    fn write(&self, me: u32, tally: &mut Tally) {
        let (writes, began) = (self.payload.writes(), clock::now_ns());
        let _hold = self.lock.write();
        tally.longest = tally.longest.max(clock::now_ns().saturating_sub(began));
        let since = self.payload.writes().wrapping_sub(writes);
        tally.bypassed = tally.bypassed.max(since);
        self.payload
            .write(me, &mut tally.faults, || pause(WRITE_LOAD));
        tally.writes = tally.writes.wrapping_add(1);
    }
}

/// A real-time task that wakes up often to look at the wait lock of a lock.
struct Sampler {
    lock: Arc<Subject>,
    samples: Atomic<u64>,
    taken: Atomic<u64>,
}

impl Sampler {
    /// On the first CPU, where no worker is if there is one to spare; `None` for locks that have no
    /// wait lock that can be looked at.
    fn start(lock: &Arc<Subject>) -> Result<Option<(Arc<Self>, Kthread<Self>)>> {
        if lock.wait_lock_is_taken().is_none() {
            return Ok(None);
        }
        let sampler = Arc::new(
            Self {
                lock: lock.clone(),
                samples: Atomic::new(0),
                taken: Atomic::new(0),
            },
            GFP_KERNEL,
        )?;
        let placement = Placement {
            cpu: machine::online_cpus().next(),
            fifo: true,
        };
        let thread = Kthread::create(c"klocks_sampler", 0, placement, sampler.clone())?;
        thread.wake();
        Ok(Some((sampler, thread)))
    }

    /// How many of a million samples found it taken.
    fn end((sampler, thread): (Arc<Self>, Kthread<Self>)) -> u64 {
        drop(thread);
        // Relaxed: the thread has been joined.
        let taken = sampler.taken.load(Relaxed);
        taken.saturating_mul(1_000_000) / sampler.samples.load(Relaxed).max(1)
    }
}

impl Body for Sampler {
    fn run(&self) {
        let (mut samples, mut taken) = (0u64, 0u64);
        while !kthread::should_stop() {
            fsleep(SAMPLE_EVERY);
            samples = samples.wrapping_add(1);
            taken = taken.wrapping_add(u64::from(self.lock.wait_lock_is_taken() == Some(true)));
        }
        // Relaxed: read when the thread has been joined.
        self.samples.store(samples, Relaxed);
        self.taken.store(taken, Relaxed);
    }
}

/// ` 120 wait-lock-ppm`, or nothing.
struct Shown(Option<u64>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ppm) => write!(f, " {ppm} wait-lock-ppm"),
            None => Ok(()),
        }
    }
}
