// SPDX-License-Identifier: GPL-2.0

//! A spinlock that shares a word with 32 bits of its user's.
//!
//! The lock's half is 0 only when nobody holds the lock and nobody waits for it, as in the queued
//! spinlock; who waits is blocked. Stores to one half are read-modify-writes of the word here, which
//! see the newest value of the other half, as the stores of one half leave it alone.

use super::task;
use core::pin::Pin;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Ordering,
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        LockClassKey, //
    }, //
};

/// Someone holds the lock.
const LOCKED: u64 = 1;
/// One who waits for it.
const WAITER: u64 = 1 << 8;

/// The lock in the low half, the user's in the high half.
pub(crate) struct SharedWord(Atomic<u64>);

impl SharedWord {
    /// A free lock, beside `high`.
    pub(crate) fn new(
        high: u32,
        _: &'static CStr,
        _: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        Self(Atomic::new(u64::from(high) << 32))
    }

    /// Both halves.
    #[track_caller]
    pub(crate) fn load(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Replaces `old`, the whole word, by `new`, or gives what it is instead.
    #[track_caller]
    pub(crate) fn cmpxchg<O: Ordering>(
        &self,
        old: u64,
        new: u64,
        ordering: O,
    ) -> core::result::Result<u64, u64> {
        assert_eq!(old as u32, new as u32, "the lock's half is changed");
        self.0.cmpxchg(old, new, ordering)
    }

    /// The high half.
    #[track_caller]
    pub(crate) fn high(&self) -> u32 {
        (self.load() >> 32) as u32
    }

    /// Sets the high half.
    ///
    /// # Safety
    ///
    /// As in the module; a violation is reported.
    #[track_caller]
    pub(crate) unsafe fn set_high(&self, value: u32) {
        let set = |word: u64| Some(u64::from(value) << 32 | u64::from(word as u32));
        let before = self.0.update_blocking(self.load(), set, Relaxed);
        assert_ne!(before & LOCKED, 0, "the count is set without the lock");
    }

    /// Takes the lock.
    #[track_caller]
    pub(crate) fn lock(&self) {
        if !self.take_free() {
            let word = self.0.fetch_add(WAITER, Relaxed) + WAITER;
            let step = |word| (word & LOCKED == 0).then_some(word - WAITER + LOCKED);
            self.0.update_blocking(word, step, Acquire);
            task::this().enter_atomic();
        }
    }

    /// Takes the lock if it is free and nobody waits for it.
    #[track_caller]
    pub(crate) fn try_lock(&self) -> bool {
        self.take_free()
    }

    #[track_caller]
    fn take_free(&self) -> bool {
        let word = self.load();
        let taken = word as u32 == 0 && self.0.cmpxchg(word, word + LOCKED, Acquire).is_ok();
        if taken {
            task::this().enter_atomic();
        }
        taken
    }

    /// Gives up the lock.
    ///
    /// # Safety
    ///
    /// As in the module; a violation is reported.
    #[track_caller]
    pub(crate) unsafe fn unlock(&self) {
        let before = self.0.fetch_sub(LOCKED, Release);
        assert_ne!(before & LOCKED, 0, "a lock is given up that is not held");
        task::this().leave_atomic();
    }
}
