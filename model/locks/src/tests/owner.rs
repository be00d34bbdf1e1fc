// SPDX-License-Identifier: GPL-2.0

//! The owner word's values: long random sequences beside the plain facts.

use crate::{
    kapi::task::Task,
    spin::Owner, //
};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Writer(usize),
    Reader(usize),
    Readers,
    Nobody,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..9_usize).prop_map(Step::Writer),
        (1..9_usize).prop_map(Step::Reader),
        Just(Step::Readers),
        Just(Step::Nobody),
    ]
}

fn task(number: usize) -> Task {
    Task::from_addr(number * 64)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn owner_says_who_was_last(steps in prop::collection::vec(step(), 1..400)) {
        let mut owner = Owner::NONE;
        for step in steps {
            let before = owner;
            owner = match step {
                Step::Writer(number) => Owner::writer(task(number)),
                Step::Reader(number) => Owner::reader_after(task(number), before),
                Step::Readers => Owner::READERS,
                Step::Nobody => Owner::NONE,
            };
            let writer = match step {
                Step::Writer(number) => Some(task(number).addr()),
                _ => None,
            };
            prop_assert_eq!(owner.as_writer().map(Task::addr), writer);
            prop_assert_eq!(owner.is_reader(), matches!(step, Step::Reader(_) | Step::Readers));
            // A reader hands the spinners' mark on; there is none to hand on without them.
            prop_assert!(!owner.is_nonspinnable());
            prop_assert_eq!(owner == Owner::NONE, matches!(step, Step::Nobody));
        }
    }
}
