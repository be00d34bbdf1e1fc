// SPDX-License-Identifier: GPL-2.0

// Long random sequences of steps of the count, and of the word around it, beside a plain number.
// Included in lockref.rs's test module, for `Count` and `Word` are private there.

mod sequences {
    use super::super::*;
    use proptest::prelude::*;

    /// A step, and what it is to do to a count: `None` where it is to refuse.
    type Step = (fn(Count) -> Option<Count>, fn(i64) -> Option<i64>);

    const STEPS: [Step; 9] = [
        (Count::get, |n| Some(n + 1)),
        (Count::get_not_zero, |n| (n > 0).then_some(n + 1)),
        (Count::get_not_dead, |n| (n >= 0).then_some(n + 1)),
        (Count::put, |n| (n > 0).then_some(n - 1)),
        (Count::put_not_last, |n| (n > 1).then_some(n - 1)),
        (|c| c.add_unless(1, -1), |n| Some(n + 1)),
        (|c| c.add_unless(1, 0), |n| (n != 0).then_some(n + 1)),
        (|c| c.add_unless(-1, 1), |n| (n != 1).then_some(n - 1)),
        (|_| Some(Count::DEAD), |_| Some(-128)),
    ];

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn word_counts(
            start in prop_oneof![-200..200, any::<i32>()],
            steps in prop::collection::vec(0..STEPS.len(), 1..400),
            lock in any::<u32>(),
        ) {
            let mut number = i64::from(start);
            let mut word = Word::unlocked(Count(start));
            for step in steps {
                let (taken, expected) = STEPS[step];
                let after = taken(word.count());
                let expected = expected(number);
                // The number has no end where the count wraps.
                let wrapped = expected.map(|n| n as i32);
                prop_assert_eq!(after.map(|count| count.0), wrapped, "step {} of {}", step, number);
                if let Some(count) = after {
                    word = Word::unlocked(count);
                    number = i64::from(count.0);
                }
                prop_assert_eq!(i64::from(word.count().0), number);
                prop_assert!(word.is_unlocked());
                // The lock's half leaves the count alone, and is seen.
                let locked = Word(word.0 | u64::from(lock));
                prop_assert_eq!(locked.count(), word.count());
                prop_assert_eq!(locked.is_unlocked(), lock == 0);
            }
        }

        #[test]
        fn refusals_leave_the_dead_dead(count in i32::MIN..0) {
            for step in [Count::get_not_zero, Count::get_not_dead, Count::put, Count::put_not_last] {
                prop_assert_eq!(step(Count(count)), None);
            }
        }
    }
}
