// SPDX-License-Identifier: GPL-2.0

// Long random sequences of what tasks do to the count, beside a model that knows who is at the lock.
// Included at the end of rwsem.rs's KUnit suite, for `Count` is private there.

mod sequences {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A step of some task; it is skipped where nobody is in the position to do it.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// A reader adds its share: it has the lock, may steal it, or is going to undo.
        AddRead {
            steals: bool,
        },
        /// It undoes by queuing, unless it has the lock after all.
        QueueReader,
        TryRead,
        TryWriteSpinning,
        TryWriteFree,
        QueueWriter,
        /// A writer in the ring, the one at that place, tries.
        TryQueued {
            place: usize,
            late: bool,
        },
        EndRead,
        EndWrite,
        Downgrade,
        /// A waker of readers.
        Grant {
            late: bool,
        },
        /// The one at that place gives up.
        Cancel {
            place: usize,
        },
    }
    use Step::*;

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => any::<bool>().prop_map(|steals| AddRead { steals }),
            3 => Just(QueueReader),
            1 => Just(TryRead),
            1 => Just(TryWriteSpinning),
            1 => Just(TryWriteFree),
            2 => Just(QueueWriter),
            4 => (0..4_usize, any::<bool>()).prop_map(|(place, late)| TryQueued { place, late }),
            4 => Just(EndRead),
            4 => Just(EndWrite),
            1 => Just(Downgrade),
            2 => any::<bool>().prop_map(|late| Grant { late }),
            1 => (0..4_usize).prop_map(|place| Cancel { place }),
        ]
    }

    #[derive(Clone, Copy, Debug)]
    struct Waiting {
        writer: bool,
        promised: bool,
    }

    /// Who is where.
    #[derive(Default, Debug)]
    struct World {
        readers: i64,
        writer: bool,
        trying: i64,
        promised: bool,
        ring: VecDeque<Waiting>,
    }

    impl World {
        /// The word, whatever the order of events was.
        fn count(&self) -> Count {
            let flag = |is: bool, bit: i64| if is { bit } else { 0 };
            Count(
                (self.readers + self.trying) * READER
                    + flag(self.writer, WRITER)
                    + flag(!self.ring.is_empty(), WAITERS)
                    + flag(self.promised, HANDOFF),
            )
        }

        fn is_free(&self) -> bool {
            self.readers == 0 && !self.writer
        }

        fn let_reader_in(&mut self) {
            assert!(!self.writer, "a reader beside a writer");
            self.readers += 1;
        }

        fn let_writer_in(&mut self) {
            assert!(self.is_free() && self.trying == 0, "a writer beside others");
            self.writer = true;
        }

        fn remove(&mut self, place: usize) {
            self.ring.remove(place);
        }

        fn check_release(&self, new: Count) {
            let wake = self.is_free() && self.trying == 0 && !self.ring.is_empty();
            assert_eq!(new.is_free_with_waiters(), wake, "waiters overlooked");
        }

        /// The word after `step`, done to `count` as the lock does it.
        fn apply(&mut self, step: Step, count: Count) -> Count {
            let mut new = count;
            match step {
                AddRead { steals } => {
                    new = Count(count.0 + READER);
                    if new.reader_got_it() {
                        assert!(self.ring.is_empty(), "waiters passed over unasked");
                        self.let_reader_in();
                    } else if steals && new.reader_may_steal() {
                        assert!(!self.promised, "a promised lock is stolen");
                        self.let_reader_in();
                    } else {
                        self.trying += 1;
                    }
                }
                QueueReader if self.trying > 0 => {
                    self.trying -= 1;
                    let first = self.ring.is_empty();
                    if first && !count.has_writer() && !count.has_overflow() {
                        self.let_reader_in();
                    } else {
                        let waiters = if first { WAITERS } else { 0 };
                        new = Count(count.0 + waiters - READER);
                        self.ring.push_back(Waiting {
                            writer: false,
                            promised: false,
                        });
                    }
                }
                TryRead => {
                    if let Some(word) = count.try_read() {
                        assert!(self.ring.is_empty() && !self.promised);
                        self.let_reader_in();
                        new = word;
                    }
                }
                TryWriteSpinning => {
                    if let Some(word) = count.try_write_spinning() {
                        assert!(!self.promised, "a promised lock is stolen");
                        self.let_writer_in();
                        new = word;
                    } else {
                        assert!(!self.is_free() || self.trying > 0 || self.promised);
                    }
                }
                TryWriteFree if count == Count::FREE => {
                    assert!(self.ring.is_empty());
                    self.let_writer_in();
                    new = Count(WRITER);
                }
                QueueWriter if self.ring.len() < 4 => {
                    if self.ring.is_empty() {
                        new = Count(count.0 + WAITERS);
                    }
                    self.ring.push_back(Waiting {
                        writer: true,
                        promised: false,
                    });
                }
                TryQueued { place, late } if self.ring.get(place).is_some_and(|w| w.writer) => {
                    let alone = self.ring.len() == 1;
                    let to_other = place != 0 && self.ring[0].promised;
                    match count.try_write_queued(alone, to_other, late) {
                        QueuedTry::Take(word) => {
                            assert!(!(self.promised && to_other), "a promise is broken");
                            self.let_writer_in();
                            self.promised = false;
                            self.remove(place);
                            new = word;
                        }
                        QueuedTry::AskHandoff(word) => {
                            assert!(late && !self.promised);
                            assert!(!self.is_free() || self.trying > 0);
                            self.promised = true;
                            self.ring[0].promised = true;
                            new = word;
                        }
                        QueuedTry::Wait => assert!(
                            !self.is_free() || self.trying > 0 || to_other,
                            "the lock is free and not taken"
                        ),
                    }
                }
                EndRead if self.readers > 0 => {
                    self.readers -= 1;
                    new = Count(count.0 - READER);
                    self.check_release(new);
                }
                EndWrite if self.writer => {
                    self.writer = false;
                    new = Count(count.0 - WRITER);
                    self.check_release(new);
                }
                Downgrade if self.writer => {
                    self.writer = false;
                    self.readers = 1;
                    new = Count(count.0 + READER - WRITER);
                    assert!(!new.is_free_with_waiters());
                }
                Grant { late } if self.ring.front().is_some_and(|w| !w.writer) => {
                    if count.has_writer() {
                        // The claim is undone, at most with a promise for the next time.
                        if late {
                            new = Count(count.0 | HANDOFF);
                            self.promised = true;
                            self.ring[0].promised = true;
                        }
                    } else {
                        assert!(!self.writer, "readers granted beside a writer");
                        let before = self.ring.len();
                        self.ring.retain(|w| w.writer);
                        let readers = (before - self.ring.len()) as i64;
                        let waiters = if self.ring.is_empty() { WAITERS } else { 0 };
                        new = Count(count.0 + readers * READER - waiters - (count.0 & HANDOFF));
                        self.readers += readers;
                        self.promised = false;
                    }
                }
                Cancel { place } if place < self.ring.len() => {
                    self.remove(place);
                    if self.ring.is_empty() {
                        new = count.without_waiters();
                        self.promised = false;
                    }
                }
                _ => {}
            }
            new
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn count_says_who_is_there(steps in prop::collection::vec(step(), 1..400)) {
            let mut world = World::default();
            let mut count = Count::FREE;
            for step in steps {
                count = world.apply(step, count);
                prop_assert_eq!(count, world.count(), "{:?}: {:?}", step, world);
                prop_assert_eq!(count.readers(), world.readers + world.trying);
                prop_assert!(!world.promised || !world.ring.is_empty());
                prop_assert!(!count.has_overflow());
            }
        }
    }
}
