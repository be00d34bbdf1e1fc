// SPDX-License-Identifier: GPL-2.0

//! Barriers that the `kernel` crate lacks.
//!
//! C header: [`include/asm-generic/barrier.h`](srctree/include/asm-generic/barrier.h).

use super::shim;

/// A full barrier before the atomic read-modify-write that follows it, whether that succeeds or not.
/// Nothing but a barrier for the compiler where such operations are full barriers, as on x86.
#[inline(always)]
pub(crate) fn before_atomic() {
    // SAFETY: Callable anywhere.
    unsafe { shim::kapi_smp_mb__before_atomic() };
}
