// SPDX-License-Identifier: GPL-2.0

//! Both read-write semaphores: exclusion, no lost wake-up, nothing left behind.

use super::{
    pinned,
    Section, //
};
use crate::{
    kapi::{
        events::{
            EventSet,
            Events, //
        },
        task::{
            self,
            Plan,
            When::{
                After,
                Within, //
            }, //
        }, //
    },
    rwlock::{
        RawRwLock,
        RawRwSem, //
    },
    rwsem,
    rwsem_xadd,
    semaphore::Protocol,
    spin::Spinnable,
    waiters::Event, //
};
use core::pin::Pin;
use kernel::{
    model::{
        explore,
        sample,
        Report, //
    },
    prelude::*,
    processor::cpu_relax,
    static_lock_class, //
};
use std::sync::{
    atomic::{
        AtomicU32,
        Ordering::SeqCst, //
    },
    Arc, //
};

/// A read-write semaphore whose events are known.
trait Subject: Protocol + Spinnable + 'static {
    fn events() -> &'static Events<Event>;
}

macro_rules! subjects {
    ($($module:ident)*) => {$(
        impl<P: $module::Policy> Subject for $module::RwSem<P> {
            fn events() -> &'static Events<Event> {
                P::EVENTS
            }
        }
    )*};
}

subjects!(rwsem rwsem_xadd);

/// What a task does with the lock.
#[derive(Clone, Copy)]
enum Op {
    Read,
    Write,
    /// A write that a signal may end before it begins.
    KillableWrite,
    /// The same for a read.
    KillableRead,
    /// A write that goes on as a read.
    Downgrade,
    TryRead,
    TryWrite,
}
use Op::*;

/// Events of a kind that most tests leave out.
const QUIET: Plan = Plan::QUIET;

/// The lock and what it protects.
struct Guarded<L: Subject> {
    lock: Pin<Box<L>>,
    section: Section,
    writes: AtomicU32,
}

impl<L: Subject> Guarded<L> {
    fn new() -> Self {
        Self {
            lock: pinned(<L as Protocol>::init(c"model", static_lock_class!())),
            section: Section::new(),
            writes: AtomicU32::new(0),
        }
    }

    /// As the holder of the lock.
    fn write(&self) {
        self.section.write();
        self.writes.fetch_add(1, SeqCst);
    }

    fn run(&self, op: Op) {
        let lock = &self.lock;
        // SAFETY: Each function that gives the lock up follows the one that has taken it.
        unsafe {
            match op {
                Read => {
                    lock.down_read();
                    self.section.read();
                    lock.up_read(());
                }
                TryRead => {
                    if lock.down_read_trylock().is_some() {
                        self.section.read();
                        lock.up_read(());
                    }
                }
                KillableRead => match lock.down_read_killable() {
                    Ok(()) => {
                        self.section.read();
                        lock.up_read(());
                    }
                    Err(error) => assert_eq!(error, EINTR),
                },
                Write => {
                    lock.down_write();
                    self.write();
                    lock.up_write();
                }
                TryWrite => {
                    if lock.down_write_trylock() {
                        self.write();
                        lock.up_write();
                    }
                }
                KillableWrite => match lock.down_write_killable() {
                    Ok(()) => {
                        self.write();
                        lock.up_write();
                    }
                    Err(error) => assert_eq!(error, EINTR),
                },
                Downgrade => {
                    lock.down_write();
                    self.write();
                    let value = self.section.read();
                    lock.downgrade_write();
                    assert_eq!(self.section.read(), value, "a writer came between");
                    lock.up_read(());
                }
            }
        }
    }

    /// Nobody is left, and nothing forgotten.
    fn check_quiescent(&self) {
        assert!(!self.lock.is_locked(), "the count is not 0");
        assert!(!self.lock.is_contended(), "a waiter is left");
        assert!(
            !self.lock.queue.osq().is_locked(),
            "the spin queue is not empty"
        );
        assert!(
            self.lock.owner.load().as_writer().is_none(),
            "an owner is left"
        );
        assert_eq!(
            self.section.read(),
            self.writes.load(SeqCst),
            "an update is lost"
        );
    }
}

/// A task for each entry, that does its operations one after the other. Task 0, which starts the
/// others, then kills `victim`, if there is one.
fn tasks<L: Subject>(
    tasks: &'static [(Plan, &'static [Op])],
    victim: Option<usize>,
) -> impl Fn() + Send + Sync {
    move || {
        let plans: Vec<_> = tasks.iter().map(|(plan, _)| *plan).collect();
        task::begin(&plans);
        let shared = Arc::new(Guarded::<L>::new());
        let others: Vec<_> = (1..tasks.len())
            .map(|number| {
                let shared = Arc::clone(&shared);
                task::start(number, move || {
                    tasks[number].1.iter().for_each(|&op| shared.run(op));
                })
            })
            .collect();
        if let Some(victim) = victim {
            task::kill(victim);
        }
        tasks[0].1.iter().for_each(|&op| shared.run(op));
        for other in others {
            other.join();
        }
        shared.check_quiescent();
    }
}

/// Other tasks are to run while it spins.
const RESCHED: Plan = Plan {
    resched: Within(2),
    ..QUIET
};

/// It may find the owner not running, and then has to sleep.
const OFF_CPU: Plan = Plan {
    owner_off_cpu: Within(1),
    ..QUIET
};

/// It sleeps rather than spins where it can, and wakes for no reason.
const SPURIOUS: Plan = Plan {
    owner_off_cpu: Within(1),
    spurious: Within(1),
    ..QUIET
};

/// It sleeps rather than spins where it can, and then is late.
const WAITED_LONG: Plan = Plan {
    waited_long: Within(2),
    owner_off_cpu: Within(1),
    ..QUIET
};

fn all<L: Subject>(
    name: &str,
    program: &'static [(Plan, &'static [Op])],
    victim: Option<usize>,
) -> Report {
    explore(name, tasks::<L>(program, victim))
}

// The cases of two tasks, and those of three that come to an end with two preemptions.

fn two_writers<L: Subject>(name: &str) {
    all::<L>(name, &[(OFF_CPU, &[Write]), (OFF_CPU, &[Write])], None);
}

fn two_writers_resched<L: Subject>(name: &str) {
    all::<L>(name, &[(RESCHED, &[Write]), (RESCHED, &[Write])], None);
}

fn two_writers_spurious<L: Subject>(name: &str) {
    all::<L>(name, &[(QUIET, &[Write]), (SPURIOUS, &[Write])], None);
}

fn writer_and_reader<L: Subject>(name: &str) {
    all::<L>(name, &[(OFF_CPU, &[Write]), (RESCHED, &[Read])], None);
}

fn writer_and_reader_twice<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[(OFF_CPU, &[Write, Write]), (QUIET, &[Read, Read])],
        None,
    );
}

fn writer_and_two_readers<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[(QUIET, &[Write]), (QUIET, &[Read]), (QUIET, &[Read])],
        None,
    );
}

fn two_writers_and_reader<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[(QUIET, &[Write]), (QUIET, &[Write]), (QUIET, &[Read])],
        None,
    );
}

fn killed_writer<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[(QUIET, &[Write]), (OFF_CPU, &[KillableWrite])],
        Some(1),
    );
}

fn killed_reader<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[(QUIET, &[Write]), (RESCHED, &[KillableRead])],
        Some(1),
    );
}

fn downgrade<L: Subject>(name: &str) {
    all::<L>(name, &[(QUIET, &[Downgrade]), (RESCHED, &[Read])], None);
}

fn downgrade_before_writer<L: Subject>(name: &str) {
    all::<L>(name, &[(QUIET, &[Downgrade]), (OFF_CPU, &[Write])], None);
}

fn trylocks<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[(QUIET, &[TryWrite, TryRead]), (OFF_CPU, &[Write])],
        None,
    );
}

/// A waiter that has waited for long is promised the lock.
fn handoff<L: Subject>(name: &str) {
    let report = all::<L>(
        name,
        &[(QUIET, &[Write, Write]), (WAITED_LONG, &[Write])],
        None,
    );
    assert!(L::events().happened(Event::WlockHandoff, &report));
}

/// Who is promised the lock is killed.
fn handoff_to_killed_writer<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[(QUIET, &[Write, Write]), (WAITED_LONG, &[KillableWrite])],
        Some(1),
    );
}

/// Two readers that wait for a writer are let in together, and one that is quick tries to write. One
/// that has the lock before its share is in the count gives that of the other up.
fn granted_together<L: Subject>(name: &str) {
    const SLEEPS: Plan = Plan {
        resched: After(0),
        ..QUIET
    };
    explore(name, || {
        task::begin(&[QUIET, SLEEPS, SLEEPS]);
        let shared = Arc::new(Guarded::<L>::new());
        shared.lock.down_write();
        let readers = [1, 2].map(|number| {
            let shared = Arc::clone(&shared);
            task::start(number, move || {
                shared.run(Read);
                shared.run(TryWrite);
            })
        });
        while shared.lock.queue.lock().look().waiters < readers.len() {
            cpu_relax();
        }
        shared.write();
        // SAFETY: Taken above.
        unsafe { shared.lock.up_write() };
        for reader in readers {
            reader.join();
        }
        shared.check_quiescent();
    });
}

// More tasks, or more that happens to them: for a night.

fn events_writer_and_two_readers<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[(OFF_CPU, &[Write]), (RESCHED, &[Read]), (QUIET, &[Read])],
        None,
    );
}

fn events_two_writers_and_reader<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[(OFF_CPU, &[Write]), (RESCHED, &[Write]), (RESCHED, &[Read])],
        None,
    );
}

fn killed_writer_beside_reader<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[
            (QUIET, &[Write]),
            (OFF_CPU, &[KillableWrite]),
            (QUIET, &[Read]),
        ],
        Some(1),
    );
}

fn killed_writer_before_others<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[
            (QUIET, &[]),
            (QUIET, &[Write]),
            (OFF_CPU, &[KillableWrite]),
            (QUIET, &[Read]),
        ],
        Some(2),
    );
}

fn downgrade_before_both<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[
            (QUIET, &[Downgrade]),
            (RESCHED, &[Read]),
            (OFF_CPU, &[Write]),
        ],
        None,
    );
}

fn trylocks_beside_writer<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[
            (QUIET, &[TryWrite, TryRead]),
            (OFF_CPU, &[Write]),
            (QUIET, &[TryRead]),
        ],
        None,
    );
}

fn handoff_beside_reader<L: Subject>(name: &str) {
    let report = all::<L>(
        name,
        &[
            (QUIET, &[Write, Write]),
            (WAITED_LONG, &[Write]),
            (OFF_CPU, &[Read]),
        ],
        None,
    );
    assert!(L::events().happened(Event::WlockHandoff, &report));
}

/// A reader that has waited for long is found by its waker.
fn handoff_to_reader<L: Subject>(name: &str) {
    const FINDS_LATE: Plan = Plan {
        waited_long: Within(1),
        ..QUIET
    };
    all::<L>(
        name,
        &[
            (FINDS_LATE, &[Write]),
            (FINDS_LATE, &[Write]),
            (QUIET, &[Read]),
        ],
        None,
    );
}

fn handoff_past_killed_writer<L: Subject>(name: &str) {
    all::<L>(
        name,
        &[
            (QUIET, &[Write]),
            (WAITED_LONG, &[KillableWrite]),
            (OFF_CPU, &[Write]),
        ],
        Some(1),
    );
}

/// More tasks, longer, at random.
fn many<L: Subject>(name: &str) {
    const BUSY: Plan = Plan {
        resched: Within(20),
        owner_off_cpu: Within(20),
        spurious: Within(5),
        patience_ends: Within(5),
        waited_long: Within(5),
        ..QUIET
    };
    let report = sample(
        name,
        tasks::<L>(
            &[
                (BUSY, &[Write, Read, TryRead, Write]),
                (BUSY, &[Read, Write, TryWrite, Read]),
                (
                    BUSY,
                    &[KillableWrite, KillableRead, KillableWrite, KillableRead],
                ),
                (BUSY, &[Downgrade, Write, Downgrade, Read]),
                (BUSY, &[Read, Read, Write, Read]),
            ],
            Some(2),
        ),
    );
    for event in [
        Event::SleepReader,
        Event::SleepWriter,
        Event::WakeReader,
        Event::WakeWriter,
        Event::Rlock,
        Event::Wlock,
        Event::Cancel,
    ] {
        let name = <Event as EventSet>::NAMES[event.index()];
        assert!(L::events().happened(event, &report), "no {name}");
    }
}

/// Readers that are let in together, and write when they have read: one that has the lock before its
/// share is in the count gives that of another up.
fn many_readers<L: Subject>(name: &str) {
    sample(
        name,
        tasks::<L>(
            &[
                (QUIET, &[Write, Write]),
                (QUIET, &[Read, Write]),
                (QUIET, &[Read, Write]),
                (QUIET, &[Read, Write]),
            ],
            None,
        ),
    );
}

macro_rules! locks {
    ($($module:ident: $lock:ty { $($case:ident)* } deep { $($deep:ident)* })*) => {$(
        mod $module {
            use super::{self as cases, *};

            locks!(@cases $lock: two_writers two_writers_resched two_writers_spurious
                writer_and_reader writer_and_reader_twice writer_and_two_readers
                two_writers_and_reader killed_writer killed_reader downgrade
                downgrade_before_writer trylocks granted_together many many_readers $($case)*);

            mod deep {
                use super::{cases, *};

                locks!(@cases $lock: events_writer_and_two_readers events_two_writers_and_reader
                    killed_writer_beside_reader killed_writer_before_others downgrade_before_both
                    trylocks_beside_writer $($deep)*);
            }
        }
    )*};
    (@cases $lock:ty: $($case:ident)*) => {$(
        #[test]
        fn $case() {
            cases::$case::<$lock>(concat!(module_path!(), "::", stringify!($case)));
        }
    )*};
}

locks! {
    xadd_base: rwsem_xadd::RwSem<rwsem_xadd::Base> {} deep {}
    xadd_p3: rwsem_xadd::RwSem<rwsem_xadd::P3> {} deep {}
    xadd_p7: rwsem_xadd::RwSem<rwsem_xadd::P7> {} deep {}
    xadd_posted: rwsem_xadd::RwSem<rwsem_xadd::Posted> {} deep {}
    xadd: rwsem_xadd::RwSem<rwsem_xadd::Xadd> {} deep {}
    c73: rwsem::RwSem<rwsem::C73> { handoff handoff_to_killed_writer }
    deep { handoff_beside_reader handoff_to_reader handoff_past_killed_writer }
    handoff_stop_full: rwsem::RwSem<rwsem::HandoffStopFull> { handoff handoff_to_killed_writer }
    deep { handoff_beside_reader handoff_to_reader handoff_past_killed_writer }
    rwsem_default: rwsem::RwSem<rwsem::Rwsem> { handoff handoff_to_killed_writer }
    deep { handoff_beside_reader handoff_to_reader handoff_past_killed_writer }
}
