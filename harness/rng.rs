// SPDX-License-Identifier: GPL-2.0

//! Random numbers that a seed decides.

/// A xorshift generator with a multiplied output.
///
/// # Invariants
///
/// The state is not 0.
pub(super) struct Rng(u64);

impl Rng {
    /// The generator number `stream` of those that `seed` stands for.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        // Neighbouring seeds and streams give unlike states (splitmix64).
        let mut z = seed.wrapping_add(stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // INVARIANT: 0 is replaced.
        Self(if z == 0 { 1 } else { z })
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        // INVARIANT: The three shifts are a bijection that maps only 0 to 0.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 to `max`, both included.
    #[inline(always)]
    pub(super) fn up_to(&mut self, max: u32) -> u32 {
        let range = u64::from(max).wrapping_add(1);
        // CAST: The product of two numbers of 32 and 33 bits, shifted by 32; at most `max`.
        ((self.next() >> 32).wrapping_mul(range) >> 32) as u32
    }
}
