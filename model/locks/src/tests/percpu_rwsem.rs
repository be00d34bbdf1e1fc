// SPDX-License-Identifier: GPL-2.0

//! The per-CPU semaphore: on the slow path with each of its barriers, and together with its gate.

use super::{
    pinned,
    Section, //
};
use crate::{
    kapi::{
        events::{
            events,
            Events, //
        },
        rcu,
        task::{
            self,
            Plan,
            When::Within, //
        }, //
    },
    percpu_rwsem::{
        Event,
        Percpu,
        PercpuRwSem,
        Policy,
        ReaderMb, //
    },
    rcu_sync::ReaderGate,
    rwlock::RawRwLock, //
};
use core::pin::Pin;
use kernel::{
    model::{
        self,
        explore,
        sample,
        Report, //
    },
    prelude::*,
    static_lock_class, //
};
use std::sync::{
    atomic::{
        AtomicU32,
        Ordering::SeqCst, //
    },
    Arc, //
};

/// A gate that is never idle: all readers take the slow path, and there are no grace periods that
/// would order anything.
struct Closed;

impl ReaderGate for Closed {
    fn init() -> impl PinInit<Self> {
        Self
    }
    fn is_idle(&self) -> bool {
        false
    }
    fn enter(&self) {}
    fn exit(&self) {}
}

/// The lock with such a gate.
struct Slow;

impl Policy for Slow {
    const NAME: &'static CStr = c"slow";
    type Gate = Closed;
    const EVENTS: &'static Events<Event> = {
        static EVENTS: Events<Event> = events!(Event);
        &EVENTS
    };
}

/// What a task does with the lock.
#[derive(Clone, Copy)]
enum Op {
    Read,
    /// The same by the name that says that the task may be frozen.
    FreezableRead,
    TryRead,
    Write,
    /// Changes what readers see, among others that do.
    Exclude,
}
use Op::*;

struct Guarded<P: Policy> {
    lock: Pin<Box<PercpuRwSem<P>>>,
    section: Section,
    writes: AtomicU32,
}

impl<P: Policy> Guarded<P> {
    fn run(&self, op: Op) {
        // As a user of any lock sees it.
        let lock = &*self.lock;
        match op {
            Read => {
                RawRwLock::down_read(lock);
                self.section.read();
                // SAFETY: Just taken.
                unsafe { RawRwLock::up_read(lock, ()) };
            }
            FreezableRead => {
                self.lock.down_read_freezable();
                self.section.read();
                // SAFETY: Just taken.
                unsafe { RawRwLock::up_read(lock, ()) };
            }
            TryRead => {
                if RawRwLock::down_read_trylock(lock).is_some() {
                    self.section.read();
                    // SAFETY: Just taken.
                    unsafe { RawRwLock::up_read(lock, ()) };
                }
            }
            Write => {
                RawRwLock::down_write(lock);
                self.section.write();
                self.writes.fetch_add(1, SeqCst);
                // SAFETY: Just taken.
                unsafe { RawRwLock::up_write(lock) };
            }
            Exclude => {
                let _excluder = self.lock.exclude_readers();
                // It looks like a reader to writers and like a writer to readers.
                self.section.exclude();
            }
        }
    }

    /// Nobody is left, and nothing forgotten.
    fn check_quiescent(&self) {
        assert!(!self.lock.is_read_locked(), "the sum is not 0");
        assert!(!self.lock.is_write_locked(), "the block word is claimed");
        assert_eq!(
            self.section.read(),
            self.writes.load(SeqCst),
            "an update is lost"
        );
    }
}

const QUIET: Plan = Plan::QUIET;

/// Wakes for no reason.
const SPURIOUS: Plan = Plan {
    spurious: Within(1),
    ..QUIET
};

/// A task for each entry; and one of RCU where the lock's gate is a real one.
fn tasks<P: Policy>(
    tasks: &'static [(Plan, &'static [Op])],
    has_rcu: bool,
) -> impl Fn() + Send + Sync {
    move || {
        let plans = tasks.iter().map(|(plan, _)| *plan);
        let mut plans: Vec<_> = plans.collect();
        plans.extend(has_rcu.then_some(QUIET));
        task::begin(&plans);
        if has_rcu {
            rcu::begin();
        }
        let shared = Arc::new(Guarded::<P> {
            lock: pinned(PercpuRwSem::new(c"model", static_lock_class!())),
            section: Section::new(),
            writes: AtomicU32::new(0),
        });
        let others: Vec<_> = (1..tasks.len())
            .map(|number| {
                let shared = Arc::clone(&shared);
                task::start(number, move || {
                    tasks[number].1.iter().for_each(|&op| shared.run(op));
                })
            })
            .collect();
        let rcu = has_rcu.then(|| task::start(tasks.len(), rcu::serve));
        tasks[0].1.iter().for_each(|&op| shared.run(op));
        others.into_iter().for_each(model::JoinHandle::join);
        shared.check_quiescent();
        drop(shared);
        if let Some(rcu) = rcu {
            rcu::close();
            rcu.join();
        }
    }
}

fn slow(name: &str, program: &'static [(Plan, &'static [Op])]) -> Report {
    explore(
        &format!("percpu_rwsem::{name}"),
        tasks::<Slow>(program, false),
    )
}

#[track_caller]
fn happened(report: &Report, events: &[Event]) {
    for &event in events {
        let name = <Event as crate::kapi::events::EventSet>::NAMES[event as usize];
        assert!(Slow::EVENTS.happened(event, report), "no {name}");
    }
}

#[test]
fn reader_and_writer() {
    let report = slow("reader_and_writer", &[(QUIET, &[Write]), (QUIET, &[Read])]);
    happened(
        &report,
        &[Event::WriteDrain, Event::ReadQueue, Event::Grant],
    );
}

#[test]
fn reader_and_writer_twice() {
    slow(
        "reader_and_writer_twice",
        &[(QUIET, &[Write, Write]), (QUIET, &[Read, Read])],
    );
}

#[test]
fn freezable_reader_and_writer() {
    slow(
        "freezable_reader_and_writer",
        &[(QUIET, &[Write]), (QUIET, &[FreezableRead])],
    );
}

#[test]
fn reader_and_writer_spurious() {
    slow(
        "reader_and_writer_spurious",
        &[(SPURIOUS, &[Write]), (SPURIOUS, &[Read])],
    );
}

#[test]
fn two_readers_and_writer() {
    slow(
        "two_readers_and_writer",
        &[(QUIET, &[Write]), (QUIET, &[Read]), (QUIET, &[Read])],
    );
}

/// One that backs out may be seen in the sum, and then has to wake who waits for that.
#[test]
fn trying_reader_and_writer() {
    let report = slow(
        "trying_reader_and_writer",
        &[(QUIET, &[Write]), (QUIET, &[TryRead])],
    );
    happened(&report, &[Event::ReadTryFailed, Event::WriteDrain]);
}

#[test]
fn trying_reader_reader_and_writer() {
    slow(
        "trying_reader_reader_and_writer",
        &[(QUIET, &[Write]), (QUIET, &[TryRead]), (QUIET, &[Read])],
    );
}

#[test]
fn two_writers() {
    let report = slow("two_writers", &[(QUIET, &[Write]), (QUIET, &[Write])]);
    happened(&report, &[Event::WriteQueue, Event::Grant]);
}

#[test]
fn two_writers_twice() {
    slow(
        "two_writers_twice",
        &[(QUIET, &[Write, Write]), (QUIET, &[Write, Write])],
    );
}

#[test]
fn two_writers_and_reader() {
    slow(
        "two_writers_and_reader",
        &[(QUIET, &[Write]), (QUIET, &[Write]), (QUIET, &[Read])],
    );
}

#[test]
fn excluder_and_reader() {
    slow(
        "excluder_and_reader",
        &[(QUIET, &[Exclude]), (QUIET, &[Read])],
    );
}

#[test]
fn excluder_and_writer() {
    slow(
        "excluder_and_writer",
        &[(QUIET, &[Exclude]), (QUIET, &[Write])],
    );
}

#[test]
fn two_excluders() {
    slow("two_excluders", &[(QUIET, &[Exclude]), (QUIET, &[Exclude])]);
}

#[test]
fn two_excluders_and_reader() {
    slow(
        "two_excluders_and_reader",
        &[(QUIET, &[Exclude]), (QUIET, &[Exclude]), (QUIET, &[Read])],
    );
}

/// From the fast path on, and back to it.
#[test]
fn reader_and_writer_with_gate() {
    explore(
        "percpu_rwsem::reader_and_writer_with_gate",
        tasks::<Percpu>(&[(QUIET, &[Write]), (QUIET, &[Read])], true),
    );
}

#[test]
fn reader_and_writer_with_fenced_gate() {
    explore(
        "percpu_rwsem::reader_and_writer_with_fenced_gate",
        tasks::<ReaderMb>(&[(QUIET, &[Write]), (QUIET, &[Read])], true),
    );
}

#[test]
fn many() {
    let report = sample(
        "percpu_rwsem::many",
        tasks::<Slow>(
            &[
                (SPURIOUS, &[Write, Read, TryRead, Write]),
                (SPURIOUS, &[Read, Write, Read, Exclude]),
                (SPURIOUS, &[Exclude, Read, Exclude, Write]),
                (SPURIOUS, &[Read, Exclude, TryRead, FreezableRead]),
            ],
            false,
        ),
    );
    happened(
        &report,
        &[
            Event::ReadQueue,
            Event::ReadTryFailed,
            Event::WriteQueue,
            Event::WriteDrain,
            Event::Grant,
            Event::GrantStolen,
        ],
    );
}

#[test]
fn many_with_gate() {
    sample(
        "percpu_rwsem::many_with_gate",
        tasks::<Percpu>(
            &[
                (SPURIOUS, &[Write, Read, Write]),
                (SPURIOUS, &[Read, TryRead, Write, Read]),
                (SPURIOUS, &[Read, Read, Exclude, Read]),
            ],
            true,
        ),
    );
}
