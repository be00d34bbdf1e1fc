// SPDX-License-Identifier: GPL-2.0

//! A lock under torture, with what it protects and who is there.

use super::{
    super::{
        checks::{
            Faults,
            Payload, //
        },
        locks::LockType,
        subject::Subject, //
    },
    desk::{
        Desk,
        Stage, //
    },
    knobs::Stress,
    roles::Role, //
};
use crate::kapi::kcsan;
use core::ops::Range;
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// Numbers that are all the same outside of a writer's section.
const WORDS: usize = 8;

/// A lock, its payload, and the desks of its workers.
pub(super) struct Arena {
    pub(super) kind: &'static LockType,
    pub(super) subject: Subject,
    /// The numbers of its workers among all.
    pub(super) workers: Range<usize>,
    /// Workers of other locks, who take this one in addition, that are here now.
    pub(super) guests: Atomic<u32>,
    failed: Atomic<bool>,
    payload: Payload,
    words: [Atomic<u64>; WORDS],
}

impl Arena {
    /// A free lock. Its first worker has the number `first`.
    pub(super) fn new(kind: &'static LockType, stress: &Stress, first: usize) -> Result<Self> {
        let count = Role::ALL
            .iter()
            .map(|&role| stress.workers(kind, role) as usize)
            .sum::<usize>();
        Ok(Self {
            kind,
            subject: kind.create()?,
            workers: first..first.saturating_add(count),
            guests: Atomic::new(0),
            failed: Atomic::new(false),
            payload: Payload::new(),
            words: [const { Atomic::new(0) }; WORDS],
        })
    }

    /// Notes that something is wrong with the lock.
    pub(super) fn mark_failed(&self) {
        // Relaxed: no data comes with it.
        self.failed.store(true, Relaxed);
    }

    /// Whether something is.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// A reader's section with `inside` in its middle.
    pub(super) fn read(&self, faults: &mut Faults, inside: impl FnOnce()) {
        kcsan::reads(&self.words);
        let mut words = Faults::default();
        self.payload.read(faults, || {
            let before = self.look(&mut words);
            inside();
            let after = self.look(&mut words);
            words.torn = words.torn.wrapping_add(u64::from(before != after));
        });
        *faults += words;
    }

    /// The section of writer `me`, not 0, with `inside` in its middle. `desks` are those of the lock's
    /// own workers; `mine` is the writer's, if it is one of them.
    pub(super) fn write(
        &self,
        me: u32,
        faults: &mut Faults,
        desks: &[Desk],
        mine: Option<&Desk>,
        inside: impl FnOnce(),
    ) {
        kcsan::writes(&self.words);
        let mut words = Faults::default();
        self.payload.write(me, faults, || {
            Self::alone(&mut words, desks, mine);
            let next = self.look(&mut words).wrapping_add(1);
            let (first, second) = self.words.split_at(WORDS / 2);
            // Relaxed, here and below: it is for the lock under test to order them.
            first.iter().for_each(|word| word.store(next, Relaxed));
            inside();
            second.iter().for_each(|word| word.store(next, Relaxed));
            Self::alone(&mut words, desks, mine);
        });
        *faults += words;
    }

    /// The number in the words. A fault when it is not the same in all.
    fn look(&self, faults: &mut Faults) -> u64 {
        let mut words = self.words.iter().map(|word| word.load(Relaxed));
        let first = words.next().unwrap_or(0);
        let torn = words.any(|word| word != first);
        faults.torn = faults.torn.wrapping_add(u64::from(torn));
        first
    }

    /// A fault when another worker is inside while a writer is.
    fn alone(faults: &mut Faults, desks: &[Desk], mine: Option<&Desk>) {
        let others = desks
            .iter()
            .filter(|desk| !mine.is_some_and(|mine| core::ptr::eq(*desk, mine)))
            .any(|desk| matches!(desk.stage(), Stage::Reading | Stage::Writing));
        faults.overlaps = faults.overlaps.wrapping_add(u64::from(others));
    }
}
