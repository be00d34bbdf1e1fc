// SPDX-License-Identifier: GPL-2.0

// Long random sequences of steps of the gate's word, beside a model that knows when who entered and
// left and which grace periods have passed. Included in rcu_sync.rs's test module, for `Gp` is private
// there.

mod sequences {
    use super::super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Enter,
        Exit,
        /// Of a grace period that was asked for.
        GracePeriodOver,
    }

    fn step() -> impl proptest::strategy::Strategy<Value = Step> {
        prop::sample::select(vec![Step::Enter, Step::Exit, Step::GracePeriodOver])
    }

    /// What happened, by the numbers of steps.
    #[derive(Debug)]
    struct World {
        entered: u32,
        /// Since when readers are off the fast path.
        closed: Option<usize>,
        last_exit: usize,
        /// When the grace period began that is waited for.
        pending: Option<usize>,
        /// Whether a grace period lies between the closing and now.
        settled: bool,
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn readers_are_let_in_and_out_in_time(steps in prop::collection::vec(step(), 1..400)) {
            let mut gp = Gp::IDLE;
            let mut world = World {
                entered: 0,
                closed: None,
                last_exit: 0,
                pending: None,
                settled: false,
            };
            for (now, step) in steps.into_iter().enumerate() {
                let then = match step {
                    Step::Enter => {
                        let (after, then) = gp.enter();
                        gp = after;
                        world.entered += 1;
                        if world.closed.is_none() {
                            world.closed = Some(now);
                            world.settled = false;
                            prop_assert_eq!(then, Then::Begin, "nobody waits for the readers");
                        } else if world.settled {
                            prop_assert_eq!(then, Then::Done, "a grace period for nothing");
                        } else {
                            prop_assert_eq!(then, Then::Wait, "let through beside readers");
                        }
                        then
                    }
                    Step::Exit => match gp.exit() {
                        Err(misuse) => {
                            prop_assert_eq!(misuse, Misuse::ExitWithoutEnter);
                            prop_assert_eq!(world.entered, 0);
                            continue;
                        }
                        Ok((after, then)) => {
                            gp = after;
                            prop_assert!(world.entered > 0);
                            world.entered -= 1;
                            world.last_exit = now;
                            then
                        }
                    },
                    Step::GracePeriodOver => {
                        let Some(begun) = world.pending.take() else { continue };
                        let (after, then) = gp.grace_period_over();
                        gp = after;
                        if world.closed.is_some_and(|closed| closed <= begun) {
                            world.settled = true;
                        }
                        if gp.state == State::Idle {
                            prop_assert_eq!(world.entered, 0, "let in beside one who has entered");
                            // One that has left without having been let through has done nothing.
                            prop_assert!(
                                begun >= world.last_exit || after.entered == 0,
                                "let in too early"
                            );
                            world.closed = None;
                        }
                        then
                    }
                };
                if then == Then::Begin {
                    prop_assert!(world.pending.is_none(), "two callbacks at once");
                    world.pending = Some(now);
                }
                prop_assert_eq!(gp.entered, world.entered);
                prop_assert_eq!(gp.pack() == 0, world.closed.is_none());
                prop_assert_eq!(gp.is_pending(), world.pending.is_some());
                prop_assert_eq!(Gp::unpack(gp.pack()), gp);
                // Someone sees to it that readers get back.
                prop_assert!(world.closed.is_none() || world.entered > 0 || world.pending.is_some());
                match gp.wind_up() {
                    Err(misuse) => {
                        prop_assert_eq!(misuse, Misuse::DropWhileEntered);
                        prop_assert!(world.entered > 0);
                    }
                    Ok(last) => {
                        prop_assert_eq!(world.entered, 0);
                        prop_assert_eq!(last.grace_period_over(), (Gp::IDLE, Then::Done));
                    }
                }
            }
        }
    }
}
