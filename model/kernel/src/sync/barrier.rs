// SPDX-License-Identifier: GPL-2.0

//! Memory barriers.

pub use super::atomic::ordering::Full;
use crate::model::fence;
use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};

/// Orders reads among each other.
pub struct Read;

/// Orders writes among each other.
pub struct Write;

/// A kind of barrier.
pub trait MemoryBarrier {
    /// Executes it.
    fn run();
}

impl MemoryBarrier for Full {
    fn run() {
        fence(SeqCst);
    }
}

// The weakest fence of C11 that orders reads.
impl MemoryBarrier for Read {
    fn run() {
        fence(Acquire);
    }
}

impl MemoryBarrier for Write {
    fn run() {
        fence(Release);
    }
}

/// A barrier between CPUs.
pub fn smp_mb<T: MemoryBarrier>(_: T) {
    T::run();
}
