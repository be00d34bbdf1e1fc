// SPDX-License-Identifier: GPL-2.0

//! The gate: who has entered it meets no reader on the fast path, and a reader that is on it sees all
//! that was done before the gate was left.

use super::pinned;
use crate::{
    kapi::{
        preempt,
        rcu,
        task::{
            self,
            Plan, //
        }, //
    },
    rcu_sync::{
        CounterGate,
        Expedited,
        Fenced,
        Normal,
        RcuSync,
        ReaderGate,
        Sched, //
    },
};
use core::{
    convert::Infallible,
    pin::Pin, //
};
use kernel::model::{
    self,
    explore,
    sample,
    Data, //
};
use std::sync::Arc;

/// A gate, and what those who enter it change behind the backs of readers on the fast path.
struct Guarded<G: ReaderGate> {
    gate: Pin<Box<G>>,
    data: [Data<u32>; 2],
}

/// What a task does.
#[derive(Clone, Copy)]
enum Op {
    /// Reads the data, if it may.
    Read,
    /// Enters, changes the data of that number, leaves.
    Change(usize),
    /// Enters in two steps, and does the same.
    ChangeLater(usize),
    /// Enters and leaves before it has waited.
    Withdraw,
}
use Op::*;

/// The step from a gate to what only [`RcuSync`] can do.
trait Gate: ReaderGate + 'static {
    /// Enters without a wait.
    fn enter_nowait(&self) {
        unreachable!()
    }
    /// Waits after that.
    fn wait(&self) {
        unreachable!()
    }
}

impl Gate for RcuSync<Sched> {
    fn enter_nowait(&self) {
        self.enter_nowait();
    }
    fn wait(&self) {
        self.wait();
    }
}
impl Gate for CounterGate<Normal> {}
impl Gate for CounterGate<Expedited> {}
impl Gate for CounterGate<Fenced> {}

impl<G: Gate> Guarded<G> {
    fn change(&self, which: usize) {
        let value = self.data[which].get();
        model::step();
        self.data[which].set(value + 1);
        self.gate.exit();
    }

    fn run(&self, op: Op) {
        match op {
            Read => {
                let _section = preempt::disable();
                if self.gate.is_idle() {
                    for data in &self.data {
                        let value = data.get();
                        model::step();
                        assert_eq!(data.get(), value, "it changed under a reader");
                    }
                }
            }
            Change(which) => {
                self.gate.enter();
                self.change(which);
            }
            ChangeLater(which) => {
                self.gate.enter_nowait();
                self.gate.wait();
                self.change(which);
            }
            Withdraw => {
                self.gate.enter_nowait();
                self.gate.exit();
            }
        }
    }
}

/// A task for each entry, and RCU's.
fn tasks<G: Gate>(tasks: &'static [&'static [Op]]) -> impl Fn() + Send + Sync {
    move || {
        task::begin(&vec![Plan::QUIET; tasks.len() + 1]);
        rcu::begin();
        let shared = Arc::new(Guarded {
            gate: pinned::<G, Infallible>(G::init()),
            data: [Data::new(0), Data::new(0)],
        });
        let mut others: Vec<_> = (1..tasks.len())
            .map(|number| {
                let shared = Arc::clone(&shared);
                task::start(number, move || {
                    tasks[number].iter().for_each(|&op| shared.run(op));
                })
            })
            .collect();
        others.push(task::start(tasks.len(), rcu::serve));
        tasks[0].iter().for_each(|&op| shared.run(op));
        let rcu = others.pop().expect("it was just pushed");
        others.into_iter().for_each(model::JoinHandle::join);
        // The gate's end waits for its callback.
        let changes: u32 = shared.data.iter().map(Data::get).sum();
        let all = tasks.iter().flat_map(|ops| ops.iter());
        let expected = all.filter(|op| matches!(op, Change(_) | ChangeLater(_)));
        assert_eq!(changes as usize, expected.count(), "a change is lost");
        drop(shared);
        rcu::close();
        rcu.join();
    }
}

fn all<G: Gate>(name: &str, program: &'static [&'static [Op]]) {
    explore(&format!("rcu_sync::{name}"), tasks::<G>(program));
}

type Gated = RcuSync<Sched>;

#[test]
fn reader_and_change() {
    all::<Gated>("reader_and_change", &[&[Change(0)], &[Read, Read]]);
}

#[test]
fn reader_and_two_changes() {
    all::<Gated>(
        "reader_and_two_changes",
        &[&[Change(0), Change(0)], &[Read, Read]],
    );
}

/// The second one enters while the first one's grace period has not passed, or after it has left.
#[test]
fn two_enter() {
    all::<Gated>("two_enter", &[&[Change(0)], &[Change(1)]]);
}

#[test]
fn two_enter_beside_a_reader() {
    all::<Gated>(
        "two_enter_beside_a_reader",
        &[&[Change(0)], &[Change(1)], &[Read]],
    );
}

/// Leaves and enters again before the callback has come: it has to start over.
#[test]
fn enter_exit_enter() {
    all::<Gated>("enter_exit_enter", &[&[Change(0), Change(0), Change(0)]]);
}

#[test]
fn enter_in_two_steps() {
    all::<Gated>("enter_in_two_steps", &[&[ChangeLater(0)], &[Read]]);
}

#[test]
fn enter_beside_one_in_two_steps() {
    all::<Gated>(
        "enter_beside_one_in_two_steps",
        &[&[ChangeLater(0)], &[Change(1)]],
    );
}

#[test]
fn withdraw() {
    all::<Gated>("withdraw", &[&[Withdraw, Change(0)], &[Read]]);
}

#[test]
fn counter_gate_normal() {
    all::<CounterGate<Normal>>(
        "counter_gate_normal",
        &[&[Change(0), Change(0)], &[Read, Read]],
    );
}

#[test]
fn counter_gate_expedited() {
    all::<CounterGate<Expedited>>("counter_gate_expedited", &[&[Change(0)], &[Read, Read]]);
}

#[test]
fn counter_gate_fenced() {
    all::<CounterGate<Fenced>>(
        "counter_gate_fenced",
        &[&[Change(0), Change(0)], &[Read, Read]],
    );
}

#[test]
fn many() {
    sample(
        "rcu_sync::many",
        tasks::<Gated>(&[
            &[Change(0), Change(0), ChangeLater(0), Change(0)],
            &[Read, Change(1), Read, Withdraw, Change(1), Read],
            &[Read, Read, Read, Read, Read, Read],
            &[Read, Read, Read, Read, Read, Read],
        ]),
    );
}
