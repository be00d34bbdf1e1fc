// SPDX-License-Identifier: GPL-2.0

//! Marks in the instruction stream, for tools that count instructions from outside.
//!
//! A mark is an 8-byte NOP, `0f 1f 84 00` and a 32-bit displacement that says which mark it is. It
//! costs one instruction and touches neither flags nor memory. Nothing on other architectures.

/// What each displacement has in its upper half: "KL".
#[cfg(CONFIG_X86_64)]
const MAGIC: u32 = 0x4b4c_0000;

/// The controller is about to let a block's workers go.
pub(crate) const RUN_OPEN: u32 = 1;
/// The controller has joined the workers of a block.
pub(crate) const RUN_CLOSE: u32 = 2;
/// A worker is about to start its first measured operation.
pub(crate) const WORK_BEGIN: u32 = 3;
/// A worker that has begun is one that only writes.
pub(crate) const WORK_WRITES: u32 = 5;
/// A worker has ended its last measured operation.
pub(crate) const WORK_END: u32 = 4;

/// Executes mark `CODE`, below 256.
#[inline(always)]
pub(crate) fn mark<const CODE: u32>() {
    const { assert!(CODE < 256) };
    // SAFETY: A NOP. It is taken to access memory, so that the compiler moves no work across it.
    #[cfg(CONFIG_X86_64)]
    unsafe {
        core::arch::asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00",
            ".long {mark}",
            mark = const MAGIC | CODE << 8,
            options(nostack, preserves_flags)
        )
    };
}
