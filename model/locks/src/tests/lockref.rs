// SPDX-License-Identifier: GPL-2.0

//! The lockref: each operation is one step of a plain counter, whoever else is at it; the count stands
//! still under the lock; what was done by way of a reference is seen by who puts the last.

use super::pinned;
use crate::{
    kapi::task::{
        self,
        Plan, //
    },
    lockref::{
        Event,
        LockRef,
        Policy,
        RefLock,
        Rfc2,
        C73, //
    },
};
use core::pin::Pin;
use kernel::{
    model::{
        self,
        explore,
        sample,
        Data,
        Report, //
    },
    static_lock_class, //
};
use std::{
    cell::RefCell,
    rc::Rc,
    sync::Arc, //
};

/// An operation on the count.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Get,
    GetNotZero,
    GetNotDead,
    PutReturn,
    /// Puts the last one under the lock.
    PutOrLock,
    /// Kills what it puts the last reference of.
    PutOrKill,
    /// Under the lock.
    Kill,
    Set(i32),
}
use Op::*;

const DEAD: i32 = -128;

/// What an operation said: whether it was done, and the count if it tells.
type Answer = (bool, Option<i32>);

/// The reference: what `op` makes of `count`, and says. An operation that never waits may also find the
/// lock taken.
fn step(op: Op, count: &mut i32) -> Answer {
    let done = match op {
        Get | Kill | Set(_) => true,
        GetNotZero | PutReturn => *count > 0,
        GetNotDead => *count >= 0,
        PutOrLock | PutOrKill => *count > 1,
    };
    match op {
        Get => *count += 1,
        GetNotZero | GetNotDead if done => *count += 1,
        PutReturn if done => *count -= 1,
        PutOrLock | PutOrKill if done => *count -= 1,
        PutOrLock if *count == 1 => *count = 0,
        PutOrKill if *count == 1 => *count = DEAD,
        Kill => *count = DEAD,
        Set(to) => *count = to,
        _ => {}
    }
    let told = (op == PutReturn && done).then_some(*count);
    (done, told)
}

/// Whether the answers of all, each in its order, are those of some sequence that leads to `end`.
fn has_sequence(tasks: &[Vec<(Op, Answer)>], at: &mut [usize], count: i32, end: i32) -> bool {
    let mut over = true;
    for task in 0..tasks.len() {
        let Some(&(op, answer)) = tasks[task].get(at[task]) else {
            continue;
        };
        over = false;
        let mut after = count;
        let same = step(op, &mut after) == answer;
        // The lock was not free.
        let busy = op == PutReturn && answer == (false, None);
        at[task] += 1;
        let found = (same && has_sequence(tasks, at, after, end))
            || (busy && has_sequence(tasks, at, count, end));
        at[task] -= 1;
        if found {
            return true;
        }
    }
    over && count == end
}

fn run<P: Policy>(lockref: &LockRef<P>, op: Op) -> Answer {
    match op {
        Get => {
            lockref.get();
            (true, None)
        }
        GetNotZero => (lockref.get_not_zero(), None),
        GetNotDead => (lockref.get_not_dead(), None),
        PutReturn => {
            let left = lockref.put_return();
            (left.is_some(), left)
        }
        PutOrLock | PutOrKill => match lockref.put_or_lock() {
            None => (true, None),
            Some(mut guard) => {
                let count = guard.count();
                model::step();
                if count == 1 && op == PutOrKill {
                    guard.mark_dead();
                } else if count == 1 {
                    guard.set_count(0);
                } else {
                    assert!(count <= 0, "it was not the last");
                    assert_eq!(guard.count(), count, "it changed under the lock");
                }
                (false, None)
            }
        },
        Kill => {
            lockref.lock().mark_dead();
            (true, None)
        }
        Set(to) => {
            let mut guard = lockref.lock();
            let count = guard.count();
            model::step();
            assert_eq!(guard.count(), count, "it changed under the lock");
            guard.set_count(to);
            (true, None)
        }
    }
}

/// Tasks that do their operations at one count, which begins at 1.
fn tasks<P: Policy>(tasks: &'static [&'static [Op]]) -> impl Fn() + Send + Sync {
    move || {
        task::begin(&vec![Plan::QUIET; tasks.len()]);
        let lockref = Arc::new(pinned(LockRef::<P>::new(c"model", static_lock_class!())));
        let answers = Rc::new(RefCell::new(vec![Vec::new(); tasks.len()]));
        let body = |number: usize| {
            let (lockref, answers) = (Arc::clone(&lockref), Alone(Rc::clone(&answers)));
            move || {
                for &op in tasks[number] {
                    let answer = run(&lockref, op);
                    answers.get().borrow_mut()[number].push((op, answer));
                }
            }
        };
        let others: Vec<_> = (1..tasks.len())
            .map(|number| task::start(number, body(number)))
            .collect();
        body(0)();
        others.into_iter().for_each(model::JoinHandle::join);
        let answers = answers.borrow();
        assert!(
            has_sequence(&answers, &mut vec![0; tasks.len()], 1, lockref.count()),
            "no sequence gives {answers:?} and then {}",
            lockref.count()
        );
    }
}

/// What the checkers' threads share although it is not made for that: they are one of the system's.
struct Alone<T>(T);

// SAFETY: As said.
unsafe impl<T> Send for Alone<T> {}

impl<T> Alone<T> {
    fn get(&self) -> &T {
        &self.0
    }
}

fn all<P: Policy>(name: &str, program: &'static [&'static [Op]]) -> Report {
    explore(name, tasks::<P>(program))
}

fn gets_and_puts<P: Policy>(name: &str) {
    let report = all::<P>(
        name,
        &[&[Get, PutOrLock], &[GetNotZero, PutReturn], &[GetNotDead]],
    );
    assert!(P::EVENTS.happened(Event::CmpxchgRetry, &report));
}

fn puts<P: Policy>(name: &str) {
    all::<P>(name, &[&[Get, PutOrLock], &[PutOrLock], &[PutOrLock]]);
}

fn dead<P: Policy>(name: &str) {
    all::<P>(
        name,
        &[&[PutOrKill], &[GetNotDead, PutOrKill], &[GetNotZero]],
    );
}

fn killed<P: Policy>(name: &str) {
    let report = all::<P>(
        name,
        &[&[Kill], &[GetNotDead, GetNotDead], &[PutReturn, GetNotZero]],
    );
    assert!(P::EVENTS.happened(Event::LockFallback, &report) || P::WAIT_FOR_UNLOCK);
}

fn set<P: Policy>(name: &str) {
    all::<P>(name, &[&[Set(5)], &[Get], &[Set(2), PutReturn]]);
}

/// What users of an object did comes before its end, which is under the lock.
fn last_put<P: Policy>(name: &str) {
    explore(name, || {
        task::begin(&[Plan::QUIET; 3]);
        let object = Arc::new((
            pinned(LockRef::<P>::new(c"model", static_lock_class!())),
            [Data::new(0_u32), Data::new(0), Data::new(0)],
        ));
        object.0.get();
        object.0.get();
        let user = |number: usize| {
            let object = Arc::clone(&object);
            move || {
                object.1[number].set(1);
                if let Some(mut last) = object.0.put_or_lock() {
                    assert_eq!(last.count(), 1);
                    last.mark_dead();
                    let used: u32 = object.1.iter().map(Data::get).sum();
                    assert_eq!(used, 3, "someone still uses it");
                }
            }
        };
        let others = [task::start(1, user(1)), task::start(2, user(2))];
        user(0)();
        others.into_iter().for_each(model::JoinHandle::join);
        assert!(object.0.is_dead());
    });
}

/// Who gets a reference sees what was done under the lock before.
fn get_sees_the_last_holder<P: Policy>(name: &str) {
    explore(name, || {
        task::begin(&[Plan::QUIET; 2]);
        let object = Arc::new((
            pinned(LockRef::<P>::new(c"model", static_lock_class!())),
            Data::new(0_u32),
        ));
        object.0.lock().set_count(0);
        let other = {
            let object = Arc::clone(&object);
            task::start(1, move || {
                if object.0.get_not_zero() {
                    assert_eq!(object.1.get(), 1);
                }
            })
        };
        let mut guard = object.0.lock();
        object.1.set(1);
        guard.set_count(1);
        drop(guard);
        other.join();
    });
}

/// The object with its data: used by two, retired by who is last.
fn object<P: Policy>(name: &str) {
    explore(name, || {
        task::begin(&[Plan::QUIET; 2]);
        let object: Arc<Pin<Box<RefLock<Data<u32>, P>>>> = Arc::new(pinned(RefLock::new(
            Data::new(0),
            c"model",
            static_lock_class!(),
        )));
        let user = || {
            let object = Arc::clone(&object);
            move || {
                let Some(first) = object.get() else { return };
                let second = first.clone();
                {
                    let data = second.lock();
                    data.set(data.get() + 1);
                }
                drop(second);
                if let Some(last) = first.put() {
                    assert_eq!(last.count(), 1);
                    let data = last.kill();
                    data.set(data.get() + 100);
                }
            }
        };
        let other = task::start(1, user());
        user()();
        other.join();
        // Whoever was last has killed it; a second user may have come too late.
        let data = object.lock().get();
        assert!(object.count() < 0 && (data == 101 || data == 102));
        assert!(object.get().is_none() && object.get_not_zero().is_none());
    });
}

fn many<P: Policy>(name: &str) {
    let report = sample(
        name,
        tasks::<P>(&[
            &[Get, PutOrLock, Get],
            &[GetNotDead, Set(3), PutReturn],
            &[PutOrKill, GetNotZero, GetNotDead],
            &[Get, PutReturn, PutOrLock],
        ]),
    );
    for event in [Event::CmpxchgRetry, Event::LockFallback] {
        assert!(P::EVENTS.happened(event, &report));
    }
}

macro_rules! policies {
    ($($module:ident: $policy:ty;)*) => {$(
        mod $module {
            use super::*;

            policies!(@cases $policy: gets_and_puts puts dead killed set last_put
                get_sees_the_last_holder object many);
        }
    )*};
    (@cases $policy:ty: $($case:ident)*) => {$(
        #[test]
        fn $case() {
            super::$case::<$policy>(concat!(module_path!(), "::", stringify!($case)));
        }
    )*};
}

policies! {
    c73: C73;
    rfc2: Rfc2;
}
