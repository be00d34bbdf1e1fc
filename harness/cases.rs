// SPDX-License-Identifier: GPL-2.0

//! Cases that once went wrong in read-write semaphores, each played by tasks that do one thing at a
//! time: an [`Actor`] takes the lock when it is told to, and nobody goes on before it sleeps for it
//! or has it. So the order in which tasks queue is always the same.
//!
//! Every semaphore in the table of locks has to pass, C's own among them: it tells whether a case
//! asks for what is right.

use super::{
    checks::{
        Faults,
        Payload, //
    },
    locks::{
        LockType,
        LOCKS, //
    },
    subject::{
        SemaphoreOps,
        Subject, //
    }, //
};
use crate::{
    kapi::{
        clock,
        events::{
            EventSet,
            EventSource, //
        },
        kthread::{
            self,
            Body,
            Kthread,
            Placement,
            Signal, //
        },
        machine,
        module::ModuleRef,
        preempt,
        task, //
    },
    rwlock::RawRwLock,
    rwsem_xadd::{
        self,
        RwSem, //
    },
    waiters::Event, //
};
use core::mem;
use kernel::{
    module::this_module,
    new_mutex,
    prelude::*,
    processor::cpu_relax,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        static_lock_class,
        Arc,
        Completion,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// When something that must happen is taken not to: on a busy host it may take long.
const PATIENCE_NS: u64 = 30_000_000_000;
/// The same once something did not: a fault that many cases find is to be told of soon.
const IMPATIENCE_NS: u64 = 1_000_000_000;
/// Whether something did not.
static DISAPPOINTED: Atomic<bool> = Atomic::new(false);
/// How often is looked for it.
const STEP: Delta = Delta::from_micros(200);
/// How long nothing has to happen to be taken not to.
const QUIET: Delta = Delta::from_millis(5);

/// What a case finds: the reason when the lock did something wrong.
pub(super) type Found = Result<(), &'static str>;

/// Waits until `reached`; whether it came to that.
pub(super) fn eventually(reached: impl Fn() -> bool) -> bool {
    // Relaxed: publishes nothing.
    let patience = if DISAPPOINTED.load(Relaxed) {
        IMPATIENCE_NS
    } else {
        PATIENCE_NS
    };
    let deadline = clock::now_ns().saturating_add(patience);
    while !reached() {
        if clock::now_ns() > deadline {
            DISAPPOINTED.store(true, Relaxed);
            return false;
        }
        fsleep(STEP);
    }
    true
}

/// `Err(what)` unless `ok`.
pub(super) fn expect(ok: bool, what: &'static str) -> Found {
    if ok {
        Ok(())
    } else {
        Err(what)
    }
}

/// How an actor takes the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Read,
    ReadInterruptible,
    ReadKillable,
    Write,
    WriteKillable,
}

/// How far an actor has come.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Progress {
    Begins = 0,
    Takes = 1,
    Holds = 2,
    /// It has the lock, and does not sleep.
    Runs = 3,
    /// It has given the lock up.
    Left = 4,
    /// It got none, because of a signal.
    Cancelled = 5,
}

/// A lock, what it protects, and who is off the stage but not yet home.
#[pin_data]
pub(super) struct Stage {
    pub(super) lock: Subject,
    payload: Payload,
    #[pin]
    faults: Mutex<Faults>,
    #[pin]
    leaving: Mutex<KVec<(Arc<Part>, Kthread<Part>)>>,
}

impl Stage {
    fn new(lock: &LockType) -> Result<Arc<Self>> {
        let lock = lock.create()?;
        Arc::pin_init(
            pin_init!(Self {
                lock,
                payload: Payload::new(),
                faults <- new_mutex!(Faults::default()),
                leaving <- new_mutex!(KVec::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// What a semaphore can do.
    pub(super) fn ops(&self) -> Result<SemaphoreOps<'_>> {
        self.lock.ops().ok_or(EOPNOTSUPP)
    }

    /// A section of reader or writer `number`, with `inside` in its middle.
    pub(super) fn section(&self, reads: bool, number: u32, inside: impl FnOnce()) {
        let mut faults = Faults::default();
        if reads {
            self.payload.read(&mut faults, inside);
        } else {
            self.payload.write(number, &mut faults, inside);
        }
        *self.faults.lock() += faults;
    }

    /// Keeps a task that is told to leave until [`Stage::close`]: it may have to wait for others.
    fn leave(&self, part: Arc<Part>, thread: Kthread<Part>) {
        // Without memory for that it is waited for at once.
        let _ = self.leaving.lock().push((part, thread), GFP_KERNEL);
    }

    /// Waits for the tasks that leave. One that is stuck stays behind, and the module with it.
    fn close(&self) -> Found {
        let leaving = mem::replace(&mut *self.leaving.lock(), KVec::new());
        let mut found = Ok(());
        for (part, thread) in leaving {
            if eventually(|| part.is(Progress::Left) || part.is(Progress::Cancelled)) {
                continue;
            }
            found = Err("leaves a task stuck");
            mem::forget(thread);
            mem::forget(ModuleRef::get(this_module::<crate::LocalModule>()));
        }
        found
    }

    /// Whether the lock has excluded and is free.
    fn check(&self) -> Found {
        expect(self.faults.lock().is_none(), "did not exclude")?;
        self.lock.check_at_rest()
    }
}

/// What an actor does, and how far it has come.
#[pin_data]
struct Part {
    stage: Arc<Stage>,
    how: How,
    number: u32,
    progress: Atomic<u32>,
    /// It need not sleep with the lock any more.
    #[pin]
    awake: Completion,
    /// It is not to give the lock up then.
    stay: Atomic<bool>,
}

impl Part {
    fn is(&self, progress: Progress) -> bool {
        // ORDERING: Acquire pairs with the release in `reached`.
        self.progress.load(Acquire) == progress as u32
    }

    fn reached(&self, progress: Progress) {
        // ORDERING: Release pairs with the acquire in `is`: what the actor did before is done.
        self.progress.store(progress as u32, Release);
    }

    fn take(&self) -> Result {
        let lock = &self.stage.lock;
        let ops = self.stage.ops()?;
        match self.how {
            How::Read => self.hold(lock.read()),
            How::ReadInterruptible => self.hold(ops.read_interruptible()?),
            How::ReadKillable => self.hold(ops.read_killable()?),
            How::Write => self.hold(lock.write()),
            How::WriteKillable => self.hold(ops.write_killable()?),
        }
        Ok(())
    }

    /// Holds the lock, asleep and then perhaps awake, until it may leave.
    fn hold<H>(&self, hold: H) {
        let reads = !matches!(self.how, How::Write | How::WriteKillable);
        self.stage.section(reads, self.number, || {
            self.reached(Progress::Holds);
            self.awake.wait_for_completion();
            self.reached(Progress::Runs);
            // Relaxed: publishes nothing.
            while self.stay.load(Relaxed) {
                cpu_relax();
                task::give_way();
            }
        });
        drop(hold);
        self.reached(Progress::Left);
    }
}

impl Body for Part {
    fn run(&self) {
        kthread::allow_signals();
        self.reached(Progress::Takes);
        let taken = self.take();
        kthread::flush_signals();
        if taken.is_err() {
            self.reached(Progress::Cancelled);
        }
    }
}

/// A task in a case. Dropped, it gives the lock up as soon as it has it.
pub(super) struct Actor {
    part: Arc<Part>,
    /// `None` when it has gone off the stage.
    thread: Option<Kthread<Part>>,
}

impl Actor {
    /// One that takes the lock at once. When this returns it sleeps for it or has it.
    pub(super) fn start(stage: &Arc<Stage>, how: How, number: u32) -> Result<Self> {
        Self::start_as(stage, how, number, Placement::default())
    }

    /// The same, in a thread that runs as `placement` says.
    pub(super) fn start_as(
        stage: &Arc<Stage>,
        how: How,
        number: u32,
        placement: Placement,
    ) -> Result<Self> {
        let part = Arc::pin_init(
            pin_init!(Part {
                stage: stage.clone(),
                how,
                number,
                progress: Atomic::new(Progress::Begins as u32),
                awake <- Completion::new(),
                stay: Atomic::new(false),
            }),
            GFP_KERNEL,
        )?;
        let thread = Kthread::create(c"klocks_case", number, placement, part.clone())?;
        thread.wake();
        let actor = Self {
            part,
            thread: Some(thread),
        };
        if eventually(|| actor.holds() || actor.waits()) {
            Ok(actor)
        } else {
            Err(ETIMEDOUT)
        }
    }

    pub(super) fn holds(&self) -> bool {
        self.part.is(Progress::Holds) || self.part.is(Progress::Runs)
    }

    /// Whether it sleeps for the lock.
    pub(super) fn waits(&self) -> bool {
        // In this order: it does not go back to taking.
        let asleep = self.thread.as_ref().is_some_and(Kthread::is_asleep);
        asleep && self.part.is(Progress::Takes)
    }

    pub(super) fn cancelled(&self) -> bool {
        self.part.is(Progress::Cancelled)
    }

    pub(super) fn left(&self) -> bool {
        self.part.is(Progress::Left)
    }

    /// Waits until it has the lock.
    pub(super) fn gets_in(&self, what: &'static str) -> Found {
        expect(eventually(|| self.holds() || self.left()), what)
    }

    /// Tells it to give the lock up as soon as it has it.
    pub(super) fn may_leave(&self) {
        // Relaxed: publishes nothing.
        self.part.stay.store(false, Relaxed);
        self.part.awake.complete_all();
    }

    /// Tells it to stay awake with the lock that it has, and waits for that.
    pub(super) fn runs(&self) -> Found {
        // Relaxed: `complete_all` comes after it.
        self.part.stay.store(true, Relaxed);
        self.part.awake.complete_all();
        expect(eventually(|| self.part.is(Progress::Runs)), "does not run")
    }

    /// Wakes it for no reason.
    pub(super) fn is_disturbed(&self) {
        if let Some(thread) = &self.thread {
            thread.wake();
        }
    }

    /// Tells it to give the lock up, and waits for that.
    pub(super) fn leaves(&self) -> Found {
        self.may_leave();
        expect(eventually(|| self.left()), "gets stuck in giving it up")
    }

    /// Sends the signal that ends its wait, and waits for that.
    pub(super) fn is_signalled(&self, signal: Signal) -> Found {
        if let Some(thread) = &self.thread {
            thread.signal(signal);
        }
        expect(
            eventually(|| self.cancelled()),
            "does not give up on a signal",
        )
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.may_leave();
        if let Some(thread) = self.thread.take() {
            thread.signal(Signal::Kill);
            self.part.stage.leave(self.part.clone(), thread);
        }
    }
}

/// Plays `case` with each semaphore of the table.
pub(super) fn each(what: &str, case: impl Fn(&Arc<Stage>, &LockType) -> Result<Found>) -> bool {
    let mut ok = true;
    for lock in LOCKS.iter().filter(|lock| lock.can("downgrade")) {
        let found = Stage::new(lock).and_then(|stage| {
            let found = case(&stage, lock);
            let closed = stage.close();
            Ok(found?.and(closed).and_then(|()| stage.check()))
        });
        let name = lock.name();
        match found {
            Ok(Ok(())) => {}
            Ok(Err(why)) => {
                ok = false;
                pr_err!("{what}: {name} {why}\n");
            }
            Err(error) => {
                ok = false;
                pr_err!("{what}: {name}: error {}\n", error.to_errno());
            }
        }
    }
    ok
}

/// Whether nothing happens for a while that must not.
pub(super) fn stays(so: impl Fn() -> bool) -> bool {
    fsleep(QUIET);
    so()
}

/// A killed writer that waits alone leaves no trace.
fn killed_alone(stage: &Arc<Stage>) -> Result<Found> {
    let reader = stage.lock.read();
    let writer = Actor::start(stage, How::WriteKillable, 1)?;
    if let Err(why) = writer.is_signalled(Signal::Kill) {
        return Ok(Err(why));
    }
    if stage.lock.try_read().is_none() {
        return Ok(Err(
            "refuses readers after the only writer in the queue was killed",
        ));
    }
    let other = Actor::start(stage, How::Read, 2)?;
    let found = other.gets_in("makes a reader wait for a writer that was killed");
    drop(reader);
    Ok(found)
}

/// Readers behind a writer that is killed join the reader that holds the lock.
fn killed_before_readers(stage: &Arc<Stage>) -> Result<Found> {
    let reader = stage.lock.read();
    let writer = Actor::start(stage, How::WriteKillable, 1)?;
    let behind = [
        Actor::start(stage, How::Read, 2)?,
        Actor::start(stage, How::Read, 3)?,
    ];
    let mut found = writer.is_signalled(Signal::Kill);
    for actor in &behind {
        found = found.and_then(|()| actor.gets_in("leaves readers behind a killed writer asleep"));
    }
    drop(reader);
    Ok(found)
}

/// One that is killed in the middle of the queue lets nobody in, and keeps nobody out.
fn killed_in_the_middle(stage: &Arc<Stage>, how: How) -> Result<Found> {
    let holder = stage.lock.write();
    let before = Actor::start(stage, How::Read, 1)?;
    let killed = Actor::start(stage, how, 2)?;
    let behind = Actor::start(stage, How::Read, 3)?;
    let last = Actor::start(stage, How::Write, 4)?;
    let mut found = killed.is_signalled(Signal::Kill).and_then(|()| {
        let others = [&before, &behind, &last];
        expect(
            stays(|| others.iter().all(|actor| actor.waits())),
            "lets someone in because another one was killed",
        )
    });
    drop(holder);
    found = found
        .and_then(|()| before.gets_in("forgets the first in the queue"))
        .and_then(|()| behind.gets_in("forgets a reader behind one that was killed"))
        .and_then(|()| before.leaves())
        .and_then(|()| behind.leaves())
        .and_then(|()| last.gets_in("forgets a writer behind one that was killed"));
    Ok(found)
}

/// A reader that gives up at the head of the queue hands that on to who comes next.
fn cancelled_head(stage: &Arc<Stage>, how: How, signal: Signal, next: How) -> Result<Found> {
    let holder = stage.lock.write();
    let head = Actor::start(stage, how, 1)?;
    let next = Actor::start(stage, next, 2)?;
    // Longer than waiters may be passed over: where locks are promised, this one is.
    fsleep(Delta::from_millis(10));
    let mut found = head.is_signalled(signal);
    found = found.and_then(|()| {
        expect(
            stays(|| next.waits()),
            "lets someone in because another one gave up",
        )
    });
    drop(holder);
    Ok(found.and_then(|()| next.gets_in("forgets who came after one that gave up")))
}

/// Readers that queue behind a writer all get in together, and the writer behind them does not.
fn batch(stage: &Arc<Stage>) -> Result<Found> {
    const READERS: u32 = 6;
    let holder = stage.lock.write();
    let mut readers = KVec::new();
    for number in 1..=READERS {
        readers.push(Actor::start(stage, How::Read, number)?, GFP_KERNEL)?;
    }
    let writer = Actor::start(stage, How::Write, READERS + 1)?;
    drop(holder);
    let mut found = Ok(());
    // None leaves before the last is in.
    for reader in &readers {
        found = found.and_then(|()| reader.gets_in("lets queued readers in one by one"));
    }
    found = found.and_then(|()| expect(stays(|| writer.waits()), "lets a writer in with readers"));
    for reader in &readers {
        found = found
            .and_then(|()| {
                expect(
                    writer.waits(),
                    "lets a writer in before the last reader left",
                )
            })
            .and_then(|()| reader.leaves());
    }
    Ok(found.and_then(|()| writer.gets_in("forgets a writer behind readers")))
}

/// The same with readers that leave at once, while a writer outside of the queue tries all the time:
/// a reader that is let in before all shares are in the count makes the lock look free to it.
fn batch_against_thief(stage: &Arc<Stage>) -> Result<Found> {
    const READERS: u32 = 4;
    const THIEF: u32 = READERS + 1;
    let ops = stage.ops()?;
    let holder = stage.lock.write();
    let mut readers = KVec::new();
    for number in 1..=READERS {
        let reader = Actor::start(stage, How::Read, number)?;
        reader.may_leave();
        readers.push(reader, GFP_KERNEL)?;
    }
    drop(holder);
    let stolen = eventually(|| {
        for _ in 0..1000 {
            if let Some(hold) = ops.try_write() {
                stage.section(false, THIEF, || ());
                drop(hold);
            }
            cpu_relax();
        }
        readers.iter().all(Actor::left)
    });
    Ok(expect(stolen, "forgets readers when a writer steals"))
}

/// A writer that goes on as a reader lets readers join, and nobody else.
fn downgrade(stage: &Arc<Stage>) -> Result<Found> {
    let ops = stage.ops()?;
    let holder = stage.lock.write();
    let readers = [
        Actor::start(stage, How::Read, 1)?,
        Actor::start(stage, How::Read, 2)?,
    ];
    let writer = Actor::start(stage, How::Write, 3)?;
    let holder = ops.downgrade(holder);
    let mut found = Ok(());
    for reader in &readers {
        found = found.and_then(|()| reader.gets_in("lets nobody join after a downgrade"));
    }
    found = found
        .and_then(|()| {
            expect(
                stays(|| writer.waits()) && ops.try_write().is_none(),
                "lets a writer in beside a reader that was one",
            )
        })
        .and_then(|()| readers[0].leaves())
        .and_then(|()| readers[1].leaves())
        .and_then(|()| expect(stays(|| writer.waits()), "forgets who has downgraded"));
    drop(holder);
    Ok(found.and_then(|()| writer.gets_in("forgets a writer after a downgrade")))
}

/// A downgrade with only a writer in the queue wakes nobody, and readers still get in afterwards.
fn downgrade_before_writer(stage: &Arc<Stage>) -> Result<Found> {
    let holder = stage.lock.write();
    let writer = Actor::start(stage, How::Write, 1)?;
    let holder = stage.ops()?.downgrade(holder);
    let found = expect(
        stays(|| writer.waits()),
        "lets a writer in beside a reader that was one",
    );
    drop(holder);
    Ok(found
        .and_then(|()| writer.gets_in("forgets a writer after a downgrade"))
        .and_then(|()| writer.leaves()))
}

/// A woken writer finds the lock taken again by one that runs. One that may spin leaves the queue for
/// that, and is behind whoever came after it when it gets nothing; any other stays where it was.
fn requeue(stage: &Arc<Stage>, lock: &LockType) -> Result<Found> {
    const ATTEMPTS: u32 = 100;
    /// Until a woken task has looked, in nanoseconds.
    const LOOK_NS: u64 = 100_000_000;
    let respins = ["rwsem_xadd.p7", "rwsem_xadd.posted", "rwsem_xadd"].contains(&lock.name());
    if !lock.name().starts_with("rwsem_xadd") {
        // Others do not let anyone take the lock while someone waits, but by spinning for it.
        return Ok(Ok(()));
    }
    let ops = stage.ops()?;
    for _ in 0..ATTEMPTS {
        let here = preempt::disable().cpu();
        let there = machine::online_cpus().find(|&cpu| cpu != here);
        let holder = stage.lock.write();
        let placement = Placement {
            cpu: there,
            fifo: false,
        };
        let first = Actor::start_as(stage, How::Write, 1, placement)?;
        let second = Actor::start_as(stage, How::Write, 2, placement)?;
        let before = respun(lock);
        // Given up and taken back before the woken one can do so.
        let pin = preempt::disable();
        drop(holder);
        let again = ops.try_write();
        // It looks and finds us on a CPU.
        let until = clock::now_ns().saturating_add(LOOK_NS);
        let looked = || {
            if respins {
                respun(lock) != before
            } else {
                first.waits()
            }
        };
        while !looked() && clock::now_ns() < until {
            cpu_relax();
        }
        let as_wanted = Some(pin.cpu()) != there && looked();
        drop(pin);
        let Some(again) = again.filter(|_| as_wanted) else {
            // It was faster, for once, or too slow. The next attempt is for others, who find nobody in the queue.
            second.may_leave();
            match first.leaves().and_then(|()| second.leaves()) {
                Ok(()) => continue,
                stuck => return Ok(stuck),
            }
        };
        // When we sleep we are not worth spinning for.
        let settled = eventually(|| first.waits() && second.waits());
        drop(again);
        let (sooner, later) = if respins {
            (&second, &first)
        } else {
            (&first, &second)
        };
        return Ok(expect(settled, "does not let a spinner sleep in the end")
            .and_then(|()| sooner.gets_in("forgets a writer in the queue"))
            .and_then(|()| expect(later.waits(), "lets two writers in, or the wrong one"))
            .and_then(|()| sooner.leaves())
            .and_then(|()| later.gets_in("forgets a writer that has queued again")));
    }
    Ok(Err("is never stolen from a woken writer"))
}

/// Giving the lock up wakes the one who waits, once, and nobody while others have it.
fn unlock_wakes_once(stage: &Arc<Stage>, lock: &LockType) -> Result<Found> {
    for (holders, waits) in [
        (How::Write, None),
        (How::Write, Some(How::Read)),
        (How::Write, Some(How::Write)),
        (How::Read, None),
        (How::Read, Some(How::Write)),
    ] {
        for count in 1..=2 {
            if holders == How::Write && count == 2 {
                continue;
            }
            let mut inside = KVec::new();
            for number in 1..=count {
                inside.push(Actor::start(stage, holders, number)?, GFP_KERNEL)?;
            }
            let waiter = match waits {
                Some(how) => Some(Actor::start(stage, how, count + 1)?),
                None => None,
            };
            let before = woken(lock);
            let mut found = Ok(());
            for (left, actor) in (0..count).rev().zip(&inside) {
                found = found.and_then(|()| actor.leaves());
                if let Some(waiter) = &waiter {
                    found = found.and_then(|()| {
                        if left == 0 {
                            waiter.gets_in("forgets who waits")
                        } else {
                            expect(stays(|| waiter.waits()), "lets a writer in with a reader")
                        }
                    });
                }
                let wakes = woken(lock).wrapping_sub(before);
                let wanted = u64::from(left == 0 && waiter.is_some());
                let right = wakes == wanted || lock.events().is_none();
                found = found.and_then(|()| expect(right, "does not wake exactly who waits"));
            }
            if let Some(waiter) = &waiter {
                found = found.and_then(|()| waiter.leaves());
            }
            if found.is_err() {
                return Ok(found);
            }
        }
    }
    Ok(Ok(()))
}

/// How often `event` happened with locks of this type.
pub(super) fn happened(lock: &LockType, event: &str) -> u64 {
    lock.events().map_or(0, |events| {
        let index = events.names().iter().position(|&name| name == event);
        index.map_or(0, |index| events.read(index))
    })
}

/// How many readers and writers were woken.
fn woken(lock: &LockType) -> u64 {
    happened(lock, "wake_reader").wrapping_add(happened(lock, "wake_writer"))
}

/// How many woken writers have left the queue of a lock of this type to spin.
fn respun(lock: &LockType) -> u64 {
    happened(lock, "respin")
}

/// An unlock that finds a spinner and someone else at the wait lock leaves waking to them. This is one
/// task in all three roles; that someone waits, the count alone says.
fn unlock_beside_spinner<P: rwsem_xadd::Policy>() -> Result<bool> {
    let lock = RwSem::<P>::new(c"klocks_case", static_lock_class!());
    let lock = KBox::pin_init(lock, GFP_KERNEL)?;
    let left = || P::EVENTS.read(Event::WakeTrylockFailed.index());
    let before = left();
    lock.down_write();
    // Relaxed, here and below: nobody else has the lock.
    lock.count.fetch_add(rwsem_xadd::WAITING_BIAS, Relaxed);
    let pin = preempt::disable();
    let spins = lock.queue.osq().lock(&pin);
    let ring = lock.queue.try_lock_irqsave();
    // SAFETY: Taken above.
    unsafe { lock.up_write() };
    drop(ring);
    if spins {
        lock.queue.osq().unlock(&pin);
    }
    drop(pin);
    lock.count.fetch_sub(rwsem_xadd::WAITING_BIAS, Relaxed);
    Ok(spins && left() == before.wrapping_add(1) && !lock.is_locked())
}

#[kunit_tests(klocks_rwsem_cases)]
mod tests {
    use super::*;

    #[test]
    fn killed_writer_alone() {
        assert!(each("killed alone", |stage, _| killed_alone(stage)));
    }

    #[test]
    fn killed_writer_before_readers() {
        assert!(each("killed before readers", |stage, _| {
            killed_before_readers(stage)
        }));
    }

    #[test]
    fn killed_writer_in_the_middle() {
        assert!(each("killed writer in the middle", |stage, _| {
            killed_in_the_middle(stage, How::WriteKillable)
        }));
    }

    #[test]
    fn killed_reader_in_the_middle() {
        assert!(each("killed reader in the middle", |stage, _| {
            killed_in_the_middle(stage, How::ReadKillable)
        }));
    }

    #[test]
    fn cancelled_reader_before_writer() {
        assert!(each("cancelled reader before a writer", |stage, _| {
            cancelled_head(stage, How::ReadInterruptible, Signal::Interrupt, How::Write)
        }));
    }

    #[test]
    fn cancelled_reader_before_reader() {
        assert!(each("cancelled reader before a reader", |stage, _| {
            cancelled_head(stage, How::ReadKillable, Signal::Kill, How::Read)
        }));
    }

    #[test]
    fn cancelled_writer_before_writer() {
        assert!(each("cancelled writer before a writer", |stage, _| {
            cancelled_head(stage, How::WriteKillable, Signal::Kill, How::Write)
        }));
    }

    #[test]
    fn batch_grant() {
        assert!(each("batch", |stage, _| batch(stage)));
    }

    #[test]
    fn batch_grant_against_thief() {
        assert!(each("batch against a thief", |stage, _| {
            batch_against_thief(stage)
        }));
    }

    #[test]
    fn woken_writer_finds_it_taken() {
        // It is to look while we run; that it does is an event.
        if machine::cpu_count() > 1 && machine::COUNTS_EVENTS {
            assert!(each("requeue", requeue));
        }
    }

    #[test]
    fn unlock_wakes_who_waits_once() {
        if machine::COUNTS_EVENTS {
            assert!(each("unlock", unlock_wakes_once));
        }
    }

    #[test]
    fn unlock_leaves_waking_to_a_spinner() -> Result {
        if machine::COUNTS_EVENTS {
            assert!(unlock_beside_spinner::<rwsem_xadd::P3>()?);
            assert!(unlock_beside_spinner::<rwsem_xadd::P4>()?);
            assert!(unlock_beside_spinner::<rwsem_xadd::P4_16>()?);
            assert!(unlock_beside_spinner::<rwsem_xadd::P4Time>()?);
            assert!(unlock_beside_spinner::<rwsem_xadd::P4Null>()?);
            assert!(unlock_beside_spinner::<rwsem_xadd::P6>()?);
            assert!(unlock_beside_spinner::<rwsem_xadd::P7>()?);
            assert!(unlock_beside_spinner::<rwsem_xadd::Posted>()?);
            assert!(unlock_beside_spinner::<rwsem_xadd::Xadd>()?);
        }
        Ok(())
    }

    #[test]
    fn downgrade_lets_readers_join() {
        assert!(each("downgrade", |stage, _| downgrade(stage)));
    }

    #[test]
    fn downgrade_leaves_writer_asleep() {
        assert!(each("downgrade before a writer", |stage, _| {
            downgrade_before_writer(stage)
        }));
    }
}
