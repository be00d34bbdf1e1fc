// SPDX-License-Identifier: GPL-2.0

// Long random sequences of what tasks do to the count, beside a model that knows who is at the lock.
// Included at the end of rwsem_xadd.rs's KUnit suite, for `Count` is private there.

mod sequences {
    use super::*;
    use proptest::prelude::*;

    /// A step of some task; it is skipped where nobody is in the position to do it.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// A reader adds its share; it has the lock or is going to undo.
        AddRead,
        AddWrite,
        UndoRead,
        UndoWrite,
        /// The tries that look before they change the word.
        TryRead,
        TryReadSpinning,
        TryReadRingLocked,
        TryWrite,
        EndRead,
        EndWrite,
        Downgrade,
        QueueReader,
        QueueWriter,
        /// The first writer in the ring tries.
        TakeQueued,
        /// Readers at the head are granted the lock after one share was claimed.
        Grant,
        /// The last in the ring gives up.
        Cancel,
    }
    use Step::*;

    fn step() -> impl Strategy<Value = Step> {
        prop::sample::select(vec![
            AddRead,
            AddWrite,
            UndoRead,
            UndoWrite,
            TryRead,
            TryReadSpinning,
            TryReadRingLocked,
            TryWrite,
            EndRead,
            EndWrite,
            Downgrade,
            QueueReader,
            QueueWriter,
            TakeQueued,
            Grant,
            Cancel,
        ])
    }

    /// Who is where.
    #[derive(Default, Debug)]
    struct World {
        readers: i64,
        writer: bool,
        trying_readers: i64,
        trying_writers: i64,
        /// Whether each waiter is a writer, the first one first.
        ring: std::collections::VecDeque<bool>,
    }

    impl World {
        fn count(&self) -> Count {
            State {
                readers: self.readers,
                writers: self.writer.into(),
                waiting: !self.ring.is_empty(),
                trying_readers: self.trying_readers,
                trying_writers: self.trying_writers,
            }
            .count()
        }

        fn is_free(&self) -> bool {
            self.readers == 0 && !self.writer
        }

        fn is_quiet(&self) -> bool {
            self.is_free() && self.trying_readers == 0 && self.trying_writers == 0
        }

        /// The word after `step`, done to `count` as the lock does it.
        fn apply(&mut self, step: Step, count: Count) -> Count {
            let waiting = |empty: bool| if empty { WAITING_BIAS } else { 0 };
            let mut new = count;
            match step {
                AddRead => {
                    new = Count(count.0 + READ_BIAS);
                    if new.reader_got_it() {
                        assert!(!self.writer, "a reader beside a writer");
                        self.readers += 1;
                    } else {
                        self.trying_readers += 1;
                    }
                }
                AddWrite => {
                    new = Count(count.0 + WRITE_BIAS);
                    if count.writer_gets_it() {
                        assert!(self.is_free(), "a writer beside others");
                        self.writer = true;
                    } else {
                        self.trying_writers += 1;
                    }
                }
                UndoRead if self.trying_readers > 0 => {
                    self.trying_readers -= 1;
                    new = Count(count.0 - READ_BIAS);
                }
                UndoWrite if self.trying_writers > 0 => {
                    self.trying_writers -= 1;
                    new = Count(count.0 - WRITE_BIAS);
                }
                TryRead | TryReadSpinning | TryReadRingLocked => {
                    let taken = match step {
                        TryRead => count.try_read(),
                        TryReadSpinning => count.try_read_spinning(),
                        _ => count.try_read_ring_locked(!self.ring.is_empty()),
                    };
                    if let Some(word) = taken {
                        assert!(!self.writer, "a reader beside a writer");
                        self.readers += 1;
                        new = word;
                    }
                }
                TryWrite => match count.try_write() {
                    Some(word) => {
                        assert!(self.is_free(), "a writer beside others");
                        self.writer = true;
                        new = word;
                    }
                    None => assert!(!self.is_quiet(), "the lock is free and not taken"),
                },
                EndRead if self.readers > 0 => {
                    self.readers -= 1;
                    new = Count(count.0 - READ_BIAS);
                    assert!(
                        new.is_contended() || self.ring.is_empty(),
                        "waiters overlooked"
                    );
                }
                EndWrite if self.writer => {
                    self.writer = false;
                    new = Count(count.0 - WRITE_BIAS);
                    assert!(
                        new.is_contended() || self.ring.is_empty(),
                        "waiters overlooked"
                    );
                }
                Downgrade if self.writer => {
                    self.writer = false;
                    self.readers = 1;
                    new = Count(count.0 + READ_BIAS - WRITE_BIAS);
                    assert!(
                        new.is_contended() || self.ring.is_empty(),
                        "waiters overlooked"
                    );
                }
                QueueReader if self.trying_readers > 0 => {
                    new = Count(count.0 - READ_BIAS + waiting(self.ring.is_empty()));
                    self.trying_readers -= 1;
                    self.ring.push_back(false);
                    assert_eq!(new.is_free_with_waiters(), self.is_quiet());
                }
                QueueWriter if self.ring.len() < 4 => {
                    new = Count(count.0 + waiting(self.ring.is_empty()));
                    self.ring.push_back(true);
                    assert!(!new.has_readers_with_waiters() || !self.writer);
                }
                TakeQueued if self.ring.front() == Some(&true) => {
                    match count.try_write_queued(self.ring.len() == 1) {
                        Some(word) => {
                            assert!(self.is_free(), "a writer beside others");
                            self.ring.pop_front();
                            self.writer = true;
                            new = word;
                        }
                        None => assert!(!self.is_quiet(), "the lock is free and not taken"),
                    }
                }
                Grant if self.ring.front() == Some(&false) && count.reader_can_be_granted() => {
                    assert!(!self.writer, "a reader beside a writer");
                    let readers = self.ring.iter().take_while(|&&writer| !writer).count();
                    self.ring.drain(..readers);
                    let bias = if self.ring.is_empty() {
                        -WAITING_BIAS
                    } else {
                        0
                    };
                    self.readers += readers as i64;
                    new = Count(count.0 + readers as i64 * READ_BIAS + bias);
                }
                Cancel if !self.ring.is_empty() => {
                    self.ring.pop_back();
                    new = Count(count.0 - waiting(self.ring.is_empty()));
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
            let mut count = Count(0);
            for step in steps {
                count = world.apply(step, count);
                prop_assert_eq!(count, world.count(), "{:?}: {:?}", step, world);
            }
        }
    }
}
