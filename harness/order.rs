// SPDX-License-Identifier: GPL-2.0

//! In which order the locks of a measurement take their turns.
//!
//! A round gives each lock one block. Round 0 warms up. The others come in pairs, a random order
//! and then its mirror image (A B C, C B A), so that a steady drift of the machine's speed meets
//! all locks of a pair alike.

use super::rng::Rng;
use kernel::prelude::*;

/// The order of `round`, as a permutation of the numbers from 0 to `order.len() - 1`.
pub(super) fn fill(seed: u64, round: u32, order: &mut [u8]) {
    // Rounds 1 and 2 are pair 1, 3 and 4 pair 2, and so on.
    let pair = round.div_ceil(2);
    let mut rng = Rng::new(seed, pair.into());
    for (number, slot) in (0..).zip(order.iter_mut()) {
        *slot = number;
    }
    for last in (1..order.len()).rev() {
        // CAST: The lock table has far fewer than 2^32 entries.
        order.swap(last, rng.up_to(last as u32) as usize);
    }
    if round != 0 && round % 2 == 0 {
        order.reverse();
    }
}

#[kunit_tests(klocks_bench_order)]
mod tests {
    use super::*;

    #[test]
    fn gives_each_lock_a_turn() {
        for round in 0..20 {
            let mut order = [0; 5];
            fill(42, round, &mut order);
            let seen = order.iter().fold(0u32, |seen, &lock| seen | 1 << lock);
            assert_eq!(seen, 0b11111);
        }
    }

    #[test]
    fn mirrors_pairs() {
        for pair in 0..10 {
            let (mut first, mut second) = ([0; 7], [0; 7]);
            fill(7, 2 * pair + 1, &mut first);
            fill(7, 2 * pair + 2, &mut second);
            second.reverse();
            assert_eq!(first, second);
        }
    }

    #[test]
    fn depends_on_seed_and_pair() {
        let order = |seed, round| {
            let mut order = [0; 16];
            fill(seed, round, &mut order);
            order
        };
        assert_eq!(order(1, 1), order(1, 1));
        assert!(order(1, 1) != order(2, 1));
        assert!(order(1, 1) != order(1, 3));
    }

    #[test]
    fn takes_few_locks() {
        fill(1, 1, &mut []);
        let mut one = [9];
        fill(1, 2, &mut one);
        assert_eq!(one, [0]);
    }
}
