// SPDX-License-Identifier: GPL-2.0

//! Scenario `percpu_read`: what the read side costs around a small piece of work, alone and beside a
//! writer at a distance.
//!
//! The work is like a write of one byte to a file: a spinlock of its own, a byte, the time. At that
//! work a barrier in the reader has been found to cost an eighth. While a writer is about, readers
//! take the slow path for a while: how often, the lock's events say, where the kernel counts them.

use super::{
    bench::Session,
    crew::{
        self,
        Job,
        Seat, //
    },
    knobs::Knobs,
    locks::{
        self,
        LockType, //
    },
    scenario::{
        blocks_of_rounds,
        play_rounds,
        Measures,
        Scenario, //
    },
    subject::Subject, //
};
use crate::kapi::{
    clock,
    events::EventSource,
    kthread::{
        self,
        Body,
        Kthread,
        Placement, //
    },
    machine,
    rcu::Cookie, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "percpu_read",
    // All combinations make sense.
    check: |_| Ok(()),
    blocks: blocks_of_rounds,
    run,
};

fn run(knobs: &Knobs, session: &Session<'_>) -> Result {
    play_rounds(knobs, session, |lock, round| {
        block(knobs, session, lock, round)
    })
}

/// One block: readers on a new lock, and a writer unless the ratio has none.
fn block(knobs: &Knobs, session: &Session<'_>, lock: &LockType, round: u32) -> Result {
    let subject = Arc::new(lock.create()?, GFP_KERNEL)?;
    let reads = Reads {
        lock: subject.clone(),
        files: Reads::files(knobs.threads)?,
        ops: knobs.ops,
    };
    let writes = knobs.ratio.writes() != 0;
    let writer = writes
        .then(|| Writer::start(&subject, knobs.gap))
        .transpose()?;
    let slow = SlowReads::of(lock);
    let before = Cookie::now();
    let report = crew::run(reads, knobs, session)?;
    let (normal, expedited) = Cookie::now().since(&before);
    let slow = slow.since();
    let writes = writer.map_or(0, |(body, thread)| {
        drop(thread);
        // Relaxed: the thread has been joined.
        body.writes.load(Relaxed)
    });

    let ops = report.tally;
    session.count_ops(ops);
    if let Err(what) = report.job().lock.check_at_rest() {
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
        "BenchmarkPercpuRead/lock={}/threads={}/ratio={}/gap={}",
        lock.name(),
        knobs.threads,
        knobs.ratio,
        knobs.gap
    ))?;
    session.put(fmt!(
        " {measures} {round} block {writes} writes {normal} grace-periods {expedited} expedited"
    ))?;
    if let Some(slow) = slow {
        session.put(fmt!(" {slow} slow-reads"))?;
    }
    session.put(fmt!("\n"))
}

/// The reads of a lock that took the slow path, where that is counted.
struct SlowReads(Option<(&'static dyn EventSource, usize, u64)>);

impl SlowReads {
    /// Those of `lock` so far.
    fn of(lock: &LockType) -> Self {
        if !machine::COUNTS_EVENTS {
            return Self(None);
        }
        let events = locks::event_sources().find(|(name, _)| *name == lock.name());
        Self(events.and_then(|(_, events)| {
            let index = events
                .names()
                .iter()
                .position(|&name| name == "read_slow")?;
            Some((events, index, events.read(index)))
        }))
    }

    /// How many there have been since.
    fn since(&self) -> Option<u64> {
        let (events, index, before) = self.0?;
        Some(events.read(index).wrapping_sub(before))
    }
}

/// What a reader works on.
struct File {
    bytes: [u8; 64],
    size: u64,
    changed: u64,
}

/// One worker's file, on cache lines of its own.
#[pin_data]
#[repr(align(64))]
struct Inode {
    #[pin]
    file: SpinLock<File>,
}

/// The job of a block.
struct Reads {
    lock: Arc<Subject>,
    files: KVec<Pin<KBox<Inode>>>,
    ops: u64,
}

impl Reads {
    /// A file for each of `threads`.
    fn files(threads: u32) -> Result<KVec<Pin<KBox<Inode>>>> {
        let mut files = KVec::new();
        for _ in 0..threads {
            let inode = KBox::pin_init(
                pin_init!(Inode {
                    file <- new_spinlock!(File {
                        bytes: [0; 64],
                        size: 0,
                        changed: 0,
                    }),
                }),
                GFP_KERNEL,
            )?;
            files.push(inode, GFP_KERNEL)?;
        }
        Ok(files)
    }
}

impl Job for Reads {
    type Tally = u64;

    #[inline(never)]
    fn work(&self, seat: &Seat<'_>) -> u64 {
        let Some(inode) = self.files.get(seat.index() as usize) else {
            return 0;
        };
        seat.measure(|| {
            let mut done = 0u64;
            while done < self.ops && !seat.stopped() {
                let hold = self.lock.read();
                let mut file = inode.file.lock();
                let at = file.size as usize % file.bytes.len();
                if let Some(byte) = file.bytes.get_mut(at) {
                    // CAST: The lowest byte.
                    *byte = done as u8;
                }
                file.size = file.size.wrapping_add(1);
                file.changed = clock::sched_ns();
                drop(file);
                drop(hold);
                done = done.wrapping_add(1);
                seat.progress(done);
            }
            done
        })
    }

    fn add(total: &mut u64, other: u64) {
        *total = total.saturating_add(other);
    }
}

/// Writes at a distance until it is joined.
struct Writer {
    lock: Arc<Subject>,
    gap: Delta,
    writes: Atomic<u64>,
}

impl Writer {
    fn start(lock: &Arc<Subject>, gap: u32) -> Result<(Arc<Self>, Kthread<Self>)> {
        let body = Arc::new(
            Self {
                lock: lock.clone(),
                gap: Delta::from_millis(gap.into()),
                writes: Atomic::new(0),
            },
            GFP_KERNEL,
        )?;
        let thread = Kthread::create(c"klocks_wr", 0, Placement::default(), body.clone())?;
        thread.wake();
        Ok((body, thread))
    }
}

impl Body for Writer {
    fn run(&self) {
        let mut writes = 0u64;
        while !kthread::should_stop() {
            drop(self.lock.write());
            writes = writes.wrapping_add(1);
            if self.gap > Delta::ZERO {
                fsleep(self.gap);
            }
        }
        // Relaxed: read when the thread has been joined.
        self.writes.store(writes, Relaxed);
    }
}
