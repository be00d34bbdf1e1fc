// SPDX-License-Identifier: GPL-2.0

//! A queued spinlock that shares a 64-bit word with 32 bits of its user's.
//!
//! C headers: [`include/asm-generic/qspinlock.h`](srctree/include/asm-generic/qspinlock.h),
//! [`include/linux/spinlock_api_smp.h`](srctree/include/linux/spinlock_api_smp.h).
//!
//! C has this only in kernels where `spinlock_t` is no larger than its 32 bits. This is the kernel's
//! lock without the debug state that C keeps around it, so the word is the same in all kernels;
//! lockdep's map lies beside it. As under `spin_lock()`, preemption is off while the lock is held.

use super::shim;
use core::pin::Pin;
use kernel::{
    bindings,
    prelude::*,
    sync::{
        atomic::{
            ordering::Ordering,
            Atomic,
            Relaxed, //
        },
        LockClassKey, //
    },
    types::Opaque, //
};

/// A word whose low half is a queued spinlock, 0 when it is free and nobody waits, and whose high
/// half is the user's.
///
/// The lock's own operations touch nothing but the low half. Both halves change at once by
/// [`SharedWord::cmpxchg`]; the caller sees to it that this leaves the low half alone.
#[pin_data]
#[repr(C)]
pub(crate) struct SharedWord {
    word: Atomic<u64>,
    /// Empty in kernels without lockdep.
    #[pin]
    map: Opaque<bindings::lockdep_map>,
}

const _: () = assert!(align_of::<Atomic<u64>>() == 8 && size_of::<Atomic<u64>>() == 8);
const _: () = assert!(core::mem::offset_of!(SharedWord, word) == 0);
const _: () = assert!(size_of::<SharedWord>() == 8 || cfg!(CONFIG_DEBUG_LOCK_ALLOC));
// The halves of the word are found by address.
const _: () = assert!(cfg!(target_endian = "little"));

// SAFETY: A lock is there to be used from many tasks.
unsafe impl Send for SharedWord {}
// SAFETY: As above.
unsafe impl Sync for SharedWord {}

impl SharedWord {
    /// A free lock, known to lockdep by `name` and `key`, beside `high`.
    pub(crate) fn new(
        high: u32,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            word: Atomic::new(u64::from(high) << 32),
            // SAFETY: `map` is valid for writes; `name` and `key` live for ever.
            map <- Opaque::ffi_init(|map| unsafe {
                shim::kapi_word_init_map(map, name.as_char_ptr(), key.as_ptr())
            }),
        })
    }

    /// Both halves.
    #[inline(always)]
    pub(crate) fn load(&self) -> u64 {
        // Relaxed: who acts on it does so by `cmpxchg`, which decides.
        self.word.load(Relaxed)
    }

    /// Replaces `old`, the whole word, by `new`, or gives what it is instead.
    #[inline(always)]
    pub(crate) fn cmpxchg<O: Ordering>(
        &self,
        old: u64,
        new: u64,
        ordering: O,
    ) -> core::result::Result<u64, u64> {
        self.word.cmpxchg(old, new, ordering)
    }

    /// The high half.
    #[inline(always)]
    pub(crate) fn high(&self) -> u32 {
        // Relaxed: a hint, unless the caller holds the lock, which then orders it.
        self.high_half().load(Relaxed)
    }

    /// Sets the high half.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, and so keeps all others from changing the high half.
    #[inline(always)]
    pub(crate) unsafe fn set_high(&self, value: u32) {
        // Relaxed: the lock orders it. A store to one half, since waiters change the other.
        self.high_half().store(value, Relaxed);
    }

    /// The word's high half by itself, which C accesses in the same way.
    #[inline(always)]
    fn high_half(&self) -> &Atomic<u32> {
        // SAFETY: Within the word, aligned; all accesses to the word are atomic.
        unsafe { Atomic::from_ptr(self.word.as_ptr().cast::<u32>().add(1)) }
    }

    /// Takes the lock, spinning, and turns preemption off.
    ///
    /// A call of its own under lockdep, whose reports name the caller.
    #[cfg_attr(CONFIG_DEBUG_LOCK_ALLOC, inline(never))]
    #[cfg_attr(not(CONFIG_DEBUG_LOCK_ALLOC), inline(always))]
    pub(crate) fn lock(&self) {
        // SAFETY: Initialised, since the only constructor does it in place.
        unsafe { shim::kapi_word_lock(self.word.as_ptr(), self.map.get()) };
    }

    /// Takes the lock if it is free, and turns preemption off then.
    #[cfg_attr(CONFIG_DEBUG_LOCK_ALLOC, inline(never))]
    #[cfg_attr(not(CONFIG_DEBUG_LOCK_ALLOC), inline(always))]
    pub(crate) fn try_lock(&self) -> bool {
        // SAFETY: As in `lock`.
        unsafe { shim::kapi_word_trylock(self.word.as_ptr(), self.map.get()) }
    }

    /// Gives up the lock and turns preemption on again.
    ///
    /// # Safety
    ///
    /// The calling task has taken the lock.
    #[cfg_attr(CONFIG_DEBUG_LOCK_ALLOC, inline(never))]
    #[cfg_attr(not(CONFIG_DEBUG_LOCK_ALLOC), inline(always))]
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: By the contract.
        unsafe { shim::kapi_word_unlock(self.word.as_ptr(), self.map.get()) };
    }
}

#[cfg(CONFIG_KUNIT = "y")]
impl SharedWord {
    /// Makes the word one that the lock's users could have brought about, for tests of what others
    /// do with it.
    pub(crate) fn pretend(&self, word: u64) {
        // Relaxed: within a test's own thread.
        self.word.store(word, Relaxed);
    }
}
