// SPDX-License-Identifier: GPL-2.0

//! Distributions of times, in constant memory: what share of them was at most how long.
//!
//! A bucket is an eighth of a power of two wide, so that a percentile is right to one part in eight.

use kernel::prelude::*;

/// Buckets of each power of two, as a power of two.
const STEPS: u32 = 3;
const BUCKETS: usize = ((u64::BITS - STEPS + 1) as usize) << STEPS;

/// How often which value was seen.
pub(super) struct Histogram {
    buckets: KVec<u32>,
    count: u64,
    max: u64,
}

impl Histogram {
    /// Of nothing.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            buckets: KVec::from_elem(0, BUCKETS, GFP_KERNEL)?,
            count: 0,
            max: 0,
        })
    }

    /// Adds one value.
    pub(super) fn add(&mut self, value: u64) {
        if let Some(bucket) = self.buckets.get_mut(bucket_of(value)) {
            *bucket = bucket.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.max = self.max.max(value);
    }

    /// Adds all that `other` has seen.
    pub(super) fn merge(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket = bucket.saturating_add(*more);
        }
        self.count = self.count.saturating_add(other.count);
        self.max = self.max.max(other.max);
    }

    /// How many values there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The greatest value, exactly; 0 when there is none.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// The value that `permille` thousandths of all do not exceed: the upper end of its bucket.
    pub(super) fn percentile(&self, permille: u32) -> u64 {
        let wanted = self
            .count
            .saturating_mul(u64::from(permille))
            .div_ceil(1000);
        let mut seen = 0u64;
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen = seen.saturating_add(u64::from(*bucket));
            if seen >= wanted {
                return last_of(index).min(self.max);
            }
        }
        self.max
    }
}

/// The bucket of a value: its leading bit and the [`STEPS`] bits behind it.
fn bucket_of(value: u64) -> usize {
    let octave = u64::BITS
        .saturating_sub(value.leading_zeros())
        .saturating_sub(STEPS + 1);
    // CAST: At most `BUCKETS`.
    (octave as usize)
        .wrapping_shl(STEPS)
        .wrapping_add((value >> octave) as usize)
}

/// The greatest value of a bucket.
fn last_of(bucket: usize) -> u64 {
    let step = 1usize << STEPS;
    let octave = (bucket >> STEPS).saturating_sub(1);
    let lead = bucket.wrapping_sub(octave.wrapping_mul(step)) as u64;
    // CAST: Below 64.
    lead.wrapping_add(1)
        .wrapping_shl(octave as u32)
        .wrapping_sub(1)
}

#[kunit_tests(klocks_bench_histogram)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other() {
        let mut ok = bucket_of(0) == 0 && bucket_of(u64::MAX) == BUCKETS - 1;
        for bucket in 0..BUCKETS {
            let last = last_of(bucket);
            ok &= bucket_of(last) == bucket;
            ok &= last == u64::MAX || bucket_of(last + 1) == bucket + 1;
        }
        assert!(ok);
    }

    #[test]
    fn percentiles_are_close() -> Result {
        let mut all = Histogram::new()?;
        let mut half = Histogram::new()?;
        for value in 1..=1000 {
            if value % 2 == 0 {
                all.add(value);
            } else {
                half.add(value);
            }
        }
        all.merge(&half);
        assert_eq!(all.count(), 1000);
        assert_eq!(all.max(), 1000);
        assert!((500..=512).contains(&all.percentile(500)));
        assert_eq!(all.percentile(1000), 1000);
        assert_eq!(Histogram::new()?.percentile(500), 0);
        Ok(())
    }
}
