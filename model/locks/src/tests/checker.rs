// SPDX-License-Identifier: GPL-2.0

//! The checker itself: of the classic litmus programs it finds each outcome that C11 allows, but
//! those of load buffering, which loom does not have, and none that C11 forbids.
//!
//! A program's outcome is what its loads returned; the sets are the whole of what is allowed.

use kernel::{
    model::{self, explore, Data},
    processor::cpu_relax,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        barrier::{
            self,
            smp_mb, //
        }, //
    }, //
};
use std::{
    collections::BTreeSet,
    panic::{catch_unwind, AssertUnwindSafe},
    sync::{Arc, Mutex},
};

type Words = [Atomic<u32>; 2];
type Outcome = Vec<u32>;
type Thread = fn(&Words) -> Outcome;

/// All outcomes of `threads`, each what they return in their order.
fn outcomes(name: &str, threads: &'static [Thread]) -> BTreeSet<Outcome> {
    let all = Arc::new(Mutex::new(BTreeSet::new()));
    let found = Arc::clone(&all);
    explore(&format!("checker::{name}"), move || {
        let words: Arc<Words> = Arc::new([Atomic::new(0), Atomic::new(0)]);
        let results = Arc::new(Mutex::new(vec![Outcome::new(); threads.len()]));
        let handles: Vec<_> = (0..threads.len())
            .map(|i| {
                let (words, results) = (Arc::clone(&words), Arc::clone(&results));
                model::spawn(move || {
                    let result = threads[i](&words);
                    results.lock().expect("not poisoned")[i] = result;
                })
            })
            .collect();
        handles.into_iter().for_each(model::JoinHandle::join);
        let outcome = results.lock().expect("not poisoned").concat();
        found.lock().expect("not poisoned").insert(outcome);
    });
    let all = all.lock().expect("not poisoned");
    all.clone()
}

#[track_caller]
fn check(name: &str, threads: &'static [Thread], allowed: &[&[u32]]) {
    let allowed: BTreeSet<Outcome> = allowed.iter().map(|o| o.to_vec()).collect();
    assert_eq!(outcomes(name, threads), allowed);
}

#[test]
fn store_buffering() {
    check(
        "store_buffering",
        &[
            |w| {
                w[0].store(1, Release);
                vec![w[1].load(Acquire)]
            },
            |w| {
                w[1].store(1, Release);
                vec![w[0].load(Acquire)]
            },
        ],
        &[&[0, 0], &[0, 1], &[1, 0], &[1, 1]],
    );
}

#[test]
fn store_buffering_with_fences() {
    check(
        "store_buffering_with_fences",
        &[
            |w| {
                w[0].store(1, Relaxed);
                smp_mb(barrier::Full);
                vec![w[1].load(Relaxed)]
            },
            |w| {
                w[1].store(1, Relaxed);
                smp_mb(barrier::Full);
                vec![w[0].load(Relaxed)]
            },
        ],
        &[&[0, 1], &[1, 0], &[1, 1]],
    );
}

#[test]
fn store_buffering_with_one_fence() {
    check(
        "store_buffering_with_one_fence",
        &[
            |w| {
                w[0].store(1, Relaxed);
                smp_mb(barrier::Full);
                vec![w[1].load(Relaxed)]
            },
            |w| {
                w[1].store(1, Relaxed);
                vec![w[0].load(Relaxed)]
            },
        ],
        &[&[0, 0], &[0, 1], &[1, 0], &[1, 1]],
    );
}

#[test]
fn store_buffering_with_full_exchanges() {
    check(
        "store_buffering_with_full_exchanges",
        &[
            |w| {
                w[0].xchg(1, Full);
                vec![w[1].load(Relaxed)]
            },
            |w| {
                w[1].xchg(1, Full);
                vec![w[0].load(Relaxed)]
            },
        ],
        &[&[0, 1], &[1, 0], &[1, 1]],
    );
}

#[test]
fn message_passing() {
    check(
        "message_passing",
        &[
            |w| {
                w[0].store(1, Relaxed);
                w[1].store(1, Release);
                vec![]
            },
            |w| vec![w[1].load(Acquire), w[0].load(Relaxed)],
        ],
        &[&[0, 0], &[0, 1], &[1, 1]],
    );
}

#[test]
fn message_passing_without_release() {
    check(
        "message_passing_without_release",
        &[
            |w| {
                w[0].store(1, Relaxed);
                w[1].store(1, Relaxed);
                vec![]
            },
            |w| vec![w[1].load(Acquire), w[0].load(Relaxed)],
        ],
        &[&[0, 0], &[0, 1], &[1, 0], &[1, 1]],
    );
}

#[test]
fn message_passing_without_acquire() {
    check(
        "message_passing_without_acquire",
        &[
            |w| {
                w[0].store(1, Relaxed);
                w[1].store(1, Release);
                vec![]
            },
            |w| vec![w[1].load(Relaxed), w[0].load(Relaxed)],
        ],
        &[&[0, 0], &[0, 1], &[1, 0], &[1, 1]],
    );
}

#[test]
fn message_passing_with_fences() {
    check(
        "message_passing_with_fences",
        &[
            |w| {
                w[0].store(1, Relaxed);
                smp_mb(barrier::Write);
                w[1].store(1, Relaxed);
                vec![]
            },
            |w| {
                let flag = w[1].load(Relaxed);
                smp_mb(barrier::Read);
                vec![flag, w[0].load(Relaxed)]
            },
        ],
        &[&[0, 0], &[0, 1], &[1, 1]],
    );
}

#[test]
fn message_passing_through_a_relaxed_rmw() {
    // The RMW continues the release sequence.
    let found = outcomes(
        "message_passing_through_a_relaxed_rmw",
        &[
            |w| {
                w[0].store(1, Relaxed);
                w[1].store(1, Release);
                vec![]
            },
            |w| {
                w[1].fetch_add(1, Relaxed);
                vec![]
            },
            |w| vec![w[1].load(Acquire), w[0].load(Relaxed)],
        ],
    );
    assert!(found.contains(&vec![2, 1]));
    assert!(!found.contains(&vec![2, 0]));
    // It may come before the store as well, and then the sum is never there.
    assert!(found.contains(&vec![1, 0]) && found.contains(&vec![1, 1]));
}

#[test]
fn independent_reads_of_independent_writes() {
    let found = outcomes(
        "independent_reads_of_independent_writes",
        &[
            |w| {
                w[0].store(1, Release);
                vec![]
            },
            |w| {
                w[1].store(1, Release);
                vec![]
            },
            |w| vec![w[0].load(Acquire), w[1].load(Acquire)],
            |w| vec![w[1].load(Acquire), w[0].load(Acquire)],
        ],
    );
    assert_eq!(
        found.len(),
        16,
        "all, as C11 has no common order of such writes"
    );
}

#[test]
fn independent_reads_with_fences() {
    let found = outcomes(
        "independent_reads_with_fences",
        &[
            |w| {
                w[0].store(1, Relaxed);
                vec![]
            },
            |w| {
                w[1].store(1, Relaxed);
                vec![]
            },
            |w| {
                let first = w[0].load(Relaxed);
                smp_mb(barrier::Full);
                vec![first, w[1].load(Relaxed)]
            },
            |w| {
                let first = w[1].load(Relaxed);
                smp_mb(barrier::Full);
                vec![first, w[0].load(Relaxed)]
            },
        ],
    );
    assert!(!found.contains(&vec![1, 0, 1, 0]));
    assert_eq!(found.len(), 15);
}

#[test]
fn coherence_of_reads() {
    check(
        "coherence_of_reads",
        &[
            |w| {
                w[0].store(1, Relaxed);
                w[0].store(2, Relaxed);
                vec![]
            },
            |w| vec![w[0].load(Relaxed), w[0].load(Relaxed)],
        ],
        &[&[0, 0], &[0, 1], &[0, 2], &[1, 1], &[1, 2], &[2, 2]],
    );
}

#[test]
fn coherence_of_writes_seen_by_two() {
    let found = outcomes(
        "coherence_of_writes_seen_by_two",
        &[
            |w| {
                w[0].store(1, Relaxed);
                vec![]
            },
            |w| {
                w[0].store(2, Relaxed);
                vec![]
            },
            |w| vec![w[0].load(Relaxed), w[0].load(Relaxed)],
            |w| vec![w[0].load(Relaxed), w[0].load(Relaxed)],
        ],
    );
    assert!(found.contains(&vec![1, 2, 1, 2]) && found.contains(&vec![2, 1, 2, 1]));
    assert!(!found.contains(&vec![1, 2, 2, 1]) && !found.contains(&vec![2, 1, 1, 2]));
}

#[test]
fn reads_of_own_writes() {
    check(
        "reads_of_own_writes",
        &[
            |w| {
                w[0].store(1, Relaxed);
                vec![w[0].load(Relaxed)]
            },
            |w| {
                w[0].store(2, Relaxed);
                vec![w[0].load(Relaxed)]
            },
        ],
        &[&[1, 1], &[1, 2], &[2, 2]],
    );
}

#[test]
fn rmws_do_not_miss_each_other() {
    check(
        "rmws_do_not_miss_each_other",
        &[
            |w| vec![w[0].fetch_add(1, Relaxed)],
            |w| vec![w[0].fetch_add(1, Relaxed)],
            |w| vec![w[0].fetch_add(1, Relaxed)],
        ],
        &[
            &[0, 1, 2],
            &[0, 2, 1],
            &[1, 0, 2],
            &[1, 2, 0],
            &[2, 0, 1],
            &[2, 1, 0],
        ],
    );
}

#[test]
fn no_store_comes_between_an_rmws_read_and_its_write() {
    // The exchange has read 0: whoever sees both 1 and 2 sees 2 first only if 1 was stored later,
    // and the one who stored 1 agrees.
    let found = outcomes(
        "no_store_comes_between_an_rmws_read_and_its_write",
        &[
            |w| {
                w[0].store(1, Relaxed);
                vec![]
            },
            |w| vec![w[0].xchg(2, Relaxed)],
            |w| vec![w[0].load(Relaxed), w[0].load(Relaxed)],
        ],
    );
    assert!(found.contains(&vec![0, 2, 1]) && found.contains(&vec![1, 1, 2]));
    assert!(!found.contains(&vec![0, 1, 2]) && !found.contains(&vec![1, 2, 1]));
}

#[test]
fn a_store_is_never_lost_to_an_earlier_rmw() {
    // A store that comes after the exchange stays; the word ends as it says.
    let found = outcomes(
        "a_store_is_never_lost_to_an_earlier_rmw",
        &[
            |w| {
                w[0].store(1, Relaxed);
                vec![w[0].cmpxchg(1, 3, Relaxed).is_ok().into()]
            },
            |w| vec![w[0].xchg(2, Relaxed), w[0].load(Relaxed)],
        ],
    );
    // The exchange came first and read 0: the other's 1 was there for its cmpxchg, which succeeds.
    assert!(found.iter().all(|o| o[1] != 0 || o[0] == 1), "{found:?}");
    // The exchange came between: the cmpxchg fails, and 2 stays.
    assert!(
        found.iter().all(|o| o[1] != 1 || o[0] == 0 && o[2] == 2),
        "{found:?}"
    );
    assert!(found.contains(&vec![0, 1, 2]) && found.contains(&vec![1, 3, 2]));
}

#[test]
fn a_failed_cmpxchg_orders_nothing() {
    let found = outcomes(
        "a_failed_cmpxchg_orders_nothing",
        &[
            |w| {
                w[0].store(1, Relaxed);
                w[1].store(1, Release);
                vec![]
            },
            |w| {
                let seen = w[1].cmpxchg(7, 8, Full).unwrap_or_else(|now| now);
                vec![seen, w[0].load(Relaxed)]
            },
        ],
    );
    assert!(found.contains(&vec![1, 0]));
}

#[test]
fn spinning_ends() {
    // Two spin for a third: neither starves the others of their turns.
    check(
        "spinning_ends",
        &[
            |w| {
                while w[0].load(Acquire) == 0 {
                    cpu_relax();
                }
                vec![w[1].load(Relaxed)]
            },
            |w| {
                while w[0].load(Acquire) == 0 {
                    cpu_relax();
                }
                vec![w[1].load(Relaxed)]
            },
            |w| {
                w[1].store(1, Relaxed);
                w[0].store(1, Release);
                vec![]
            },
        ],
        &[&[1, 1]],
    );
}

/// What a program that has to fail fails with.
fn failure(name: &str, program: impl Fn() + Send + Sync + 'static) -> String {
    let run = || explore(&format!("checker::{name}"), program);
    let panic = catch_unwind(AssertUnwindSafe(run))
        .err()
        .expect("it does not fail");
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic
            .downcast::<&str>()
            .map_or("?".into(), |text| text.to_string()),
    }
}

#[test]
fn plain_memory_races_are_found() {
    let message = failure("plain_memory_races_are_found", || {
        let shared = Arc::new((Data::new(0), Atomic::new(0_u32)));
        let other = Arc::clone(&shared);
        let thread = model::spawn(move || {
            other.0.set(1);
            other.1.store(1, Relaxed);
        });
        while shared.1.load(Acquire) == 0 {
            cpu_relax();
        }
        shared.0.get();
        thread.join();
    });
    assert!(message.contains("Causality violation"), "{message}");
}

#[test]
fn a_lost_wake_up_is_a_deadlock() {
    let message = failure("a_lost_wake_up_is_a_deadlock", || {
        let word = Arc::new(Atomic::new(1_u32));
        let other = Arc::clone(&word);
        let thread = model::spawn(move || {
            if other.load(Relaxed) == 0 {
                other.store(2, Release);
            }
        });
        word.store(0, Relaxed);
        word.update_blocking(2, |word| (word == 2).then_some(3), Acquire);
        thread.join();
    });
    assert!(message.contains("deadlock"), "{message}");
}

#[test]
fn all_choices_are_explored() {
    let all = Arc::new(Mutex::new(BTreeSet::new()));
    let found = Arc::clone(&all);
    explore("checker::all_choices_are_explored", move || {
        let choice = [model::choose(3), model::choose(2)];
        found.lock().expect("not poisoned").insert(choice);
    });
    assert_eq!(all.lock().expect("not poisoned").len(), 6);
}

#[test]
fn a_lock_that_does_not_lock_is_found() {
    let message = failure("a_lock_that_does_not_lock_is_found", || {
        let section = Arc::new(super::Section::new());
        let other = Arc::clone(&section);
        let thread = model::spawn(move || other.write());
        section.write();
        thread.join();
    });
    assert!(
        message.contains("Causality violation") || message.contains("inside"),
        "{message}"
    );
}
