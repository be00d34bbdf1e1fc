// SPDX-License-Identifier: GPL-2.0

// Long random sequences of steps of the block word, beside a model that knows who is at the lock.
// Included in percpu_rwsem.rs's test module, for `Block` is private there.

mod sequences {
    use super::super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        ClaimWrite,
        ClaimExclude,
        ClaimExcludeUnqueued,
        /// The first excluder finds the readers gone.
        Drained,
        EndWrite,
        EndExclude,
        Queue,
        QueueIsEmpty,
    }
    use Step::*;

    fn step() -> impl Strategy<Value = Step> {
        prop::sample::select(vec![
            ClaimWrite,
            ClaimExclude,
            ClaimExcludeUnqueued,
            Drained,
            EndWrite,
            EndExclude,
            Queue,
            QueueIsEmpty,
        ])
    }

    #[derive(Default, Debug)]
    struct World {
        waiters: bool,
        writer: bool,
        excluders: u32,
        drained: bool,
    }

    impl World {
        fn is_free(&self) -> bool {
            !self.writer && self.excluders == 0
        }

        fn apply(&mut self, step: Step, block: Block) -> Block {
            let mut new = block;
            match step {
                ClaimWrite => match block.claim_write() {
                    Some(word) => {
                        assert!(self.is_free(), "a writer beside others");
                        self.writer = true;
                        new = word;
                    }
                    None => assert!(!self.is_free(), "free and not claimed"),
                },
                ClaimExclude | ClaimExcludeUnqueued => {
                    let claimed = match step {
                        ClaimExclude => block.claim_exclude(),
                        _ => block.claim_exclude_unqueued(),
                    };
                    match claimed {
                        Some(word) => {
                            assert!(!self.writer, "an excluder beside a writer");
                            assert!(self.excluders == 0 || self.drained, "readers may be inside");
                            self.excluders += 1;
                            new = word;
                        }
                        None => assert!(
                            self.writer
                                || (self.excluders > 0 && !self.drained)
                                || (self.waiters && matches!(step, ClaimExcludeUnqueued))
                        ),
                    }
                }
                Drained if self.excluders == 1 && !self.drained => {
                    self.drained = true;
                    new = Block(block.0 + DRAINED);
                }
                EndWrite if self.writer => {
                    self.writer = false;
                    new = Block(block.0 - WRITER);
                }
                EndExclude if self.drained => {
                    self.excluders -= 1;
                    self.drained = self.excluders > 0;
                    new = block.end_exclude();
                }
                Queue => {
                    self.waiters = true;
                    new = block.with_waiters();
                }
                QueueIsEmpty => {
                    self.waiters = false;
                    new = block.without_waiters();
                }
                _ => {}
            }
            new
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn block_says_who_is_there(steps in prop::collection::vec(step(), 1..400)) {
            let mut world = World::default();
            let mut block = Block::FREE;
            for step in steps {
                block = world.apply(step, block);
                let word = u32::from(world.waiters) * WAITERS
                    + u32::from(world.writer) * WRITER
                    + u32::from(world.drained) * DRAINED
                    + world.excluders * EXCLUDER;
                prop_assert_eq!(block, Block(word), "{:?}: {:?}", step, world);
                prop_assert_eq!(block.is_claimed(), !world.is_free());
                prop_assert_eq!(block.is_written(), world.writer);
                prop_assert_eq!(block.has_waiters(), world.waiters);
            }
        }
    }
}
