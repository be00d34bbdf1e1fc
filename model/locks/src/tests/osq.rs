// SPDX-License-Identifier: GPL-2.0

//! The spin queue: one head at a time, nobody forgotten, nobody leaves unasked.

use super::Section;
use crate::{
    kapi::{
        preempt,
        task::{
            self,
            Plan,
            When::{
                After,
                Never,
                Within, //
            }, //
        }, //
    },
    osq::{
        Event,
        Osq,
        EVENTS, //
    },
};
use kernel::model::{explore, sample};
use std::sync::Arc;

const STAYS: Plan = Plan::QUIET;

/// May leave at one of its first so many polls.
const fn may_leave(polls: u32) -> Plan {
    Plan {
        resched: Within(polls),
        ..Plan::QUIET
    }
}

/// Leaves after so many polls if it still waits.
const fn leaves(polls: u32) -> Plan {
    Plan {
        resched: After(polls),
        ..Plan::QUIET
    }
}

struct Guarded {
    queue: Osq,
    section: Section,
}

impl Guarded {
    /// Goes through the queue so many times; how often it was head.
    fn pass(&self, plan: Plan, rounds: u32) -> u32 {
        let mut head = 0;
        for _ in 0..rounds {
            let pin = preempt::disable();
            if self.queue.lock(&pin) {
                self.section.write();
                self.queue.unlock(&pin);
                head += 1;
            } else {
                assert!(
                    plan.resched != Never || plan.vcpu_preempted != Never,
                    "left unasked"
                );
            }
        }
        head
    }
}

/// A task for each plan, all through one queue.
fn queue<const N: usize>(plans: [Plan; N], rounds: u32) -> impl Fn() + Send + Sync {
    move || {
        task::begin(&plans);
        let shared = Arc::new(Guarded {
            queue: Osq::new(),
            section: Section::new(),
        });
        let counts = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let others: Vec<_> = (1..N)
            .map(|number| {
                let (shared, counts) = (Arc::clone(&shared), Arc::clone(&counts));
                task::start(number, move || {
                    let head = shared.pass(plans[number], rounds);
                    counts.fetch_add(head, std::sync::atomic::Ordering::SeqCst);
                })
            })
            .collect();
        let mut head = shared.pass(plans[0], rounds);
        for other in others {
            other.join();
        }
        head += counts.load(std::sync::atomic::Ordering::SeqCst);
        assert!(!shared.queue.is_locked(), "the tail is left");
        assert_eq!(shared.section.read(), head, "an update is lost");
    }
}

/// Task 0 stays the head until all others have left.
fn leave_all<const N: usize>(plans: [Plan; N]) -> impl Fn() + Send + Sync {
    move || {
        task::begin(&plans);
        let queue = Arc::new(Osq::new());
        let pin = preempt::disable();
        assert!(queue.lock(&pin));
        let others: Vec<_> = (1..N)
            .map(|number| {
                let queue = Arc::clone(&queue);
                task::start(number, move || {
                    assert!(!queue.lock(&preempt::disable()), "two heads");
                })
            })
            .collect();
        for other in others {
            other.join();
        }
        queue.unlock(&pin);
        assert!(!queue.is_locked(), "the tail is left");
    }
}

#[test]
fn two_tasks() {
    explore("osq::two_tasks", queue([STAYS, STAYS], 1));
}

#[test]
fn two_tasks_two_rounds() {
    explore("osq::two_tasks_two_rounds", queue([STAYS, STAYS], 2));
}

#[test]
fn one_of_two_may_leave() {
    let report = explore("osq::one_of_two_may_leave", queue([STAYS, may_leave(3)], 2));
    assert!(EVENTS.happened(Event::UnqueueTail, &report));
    assert!(EVENTS.happened(Event::GrantedLeaving, &report));
}

#[test]
fn both_may_leave() {
    explore(
        "osq::both_may_leave",
        queue([may_leave(2), may_leave(2)], 2),
    );
}

#[test]
fn three_tasks() {
    explore("osq::three_tasks", queue([STAYS, STAYS, STAYS], 1));
}

#[test]
fn one_of_three_may_leave() {
    let report = explore(
        "osq::one_of_three_may_leave",
        queue([STAYS, may_leave(2), STAYS], 1),
    );
    assert!(EVENTS.happened(Event::UnqueueMiddle, &report));
}

#[test]
fn one_of_three_loses_its_virtual_cpu() {
    const PREEMPTED: Plan = Plan {
        vcpu_preempted: Within(1),
        ..Plan::QUIET
    };
    explore(
        "osq::one_of_three_loses_its_virtual_cpu",
        queue([STAYS, PREEMPTED, STAYS], 1),
    );
}

#[test]
fn two_of_three_may_leave() {
    explore(
        "osq::two_of_three_may_leave",
        queue([STAYS, may_leave(1), may_leave(1)], 1),
    );
}

#[test]
fn one_of_three_leaves_in_one_of_two_rounds() {
    explore(
        "osq::one_of_three_leaves_in_one_of_two_rounds",
        queue([STAYS, may_leave(1), STAYS], 2),
    );
}

#[test]
fn two_leave_while_the_head_stays() {
    let report = explore(
        "osq::two_leave_while_the_head_stays",
        leave_all([STAYS, leaves(0), leaves(0)]),
    );
    assert!(EVENTS.happened(Event::UnqueueMiddle, &report));
}

#[test]
fn two_leave_one_later() {
    explore(
        "osq::two_leave_one_later",
        leave_all([STAYS, leaves(1), leaves(0)]),
    );
}

#[test]
fn three_leave_while_the_head_stays() {
    explore(
        "osq::three_leave_while_the_head_stays",
        leave_all([STAYS, leaves(0), leaves(0), leaves(0)]),
    );
}

#[test]
fn many() {
    let report = sample(
        "osq::many",
        queue([STAYS, may_leave(2), may_leave(8), STAYS], 8),
    );
    assert!(EVENTS.happened(Event::UnqueueTail, &report));
    assert!(EVENTS.happened(Event::UnqueueMiddle, &report));
    assert!(EVENTS.happened(Event::GrantedLeaving, &report));
}
