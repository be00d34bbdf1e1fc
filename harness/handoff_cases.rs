// SPDX-License-Identifier: GPL-2.0

//! Cases that once went wrong in the handoff of read-write semaphores, played by the tasks of
//! [`cases`]. A real-time writer asks for a handoff as soon as it has queued, so that no
//! case has to wait for a time-out; C's own semaphore has to pass them too.

use super::cases::{
    self,
    expect,
    stays,
    Actor,
    Found,
    How,
    Stage, //
};
use crate::kapi::{
    kthread::{
        Placement,
        Signal, //
    },
    machine, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Runs real-time, wherever.
const RT: Placement = Placement {
    cpu: None,
    fifo: true,
};

/// Plays `case` with the semaphores that have a handoff.
fn each(what: &str, case: impl Fn(&Arc<Stage>) -> Result<Found>) -> bool {
    cases::each(what, |stage, lock| {
        if lock.bounds_waits() {
            case(stage)
        } else {
            Ok(Ok(()))
        }
    })
}

/// Whether `want` says if the lock is promised to a waiter; so it is for C's, which does not tell.
fn promised(stage: &Stage, want: bool) -> bool {
    stage.lock.standing().is_none_or(|now| now.handoff == want)
}

/// A handoff that nobody waits for any more is forgotten, whoever of those in the queue gives up.
///
/// ```text
/// holder            first (killable)    second (real-time, killable)
/// has the lock
///                   queues
///                                       queues, asks for a handoff to the first
///                   killed: leaves
///                                       is first now; killed: leaves, the queue is empty
/// gives it up: nobody to hand it to
/// ```
///
/// A mark that stays behind keeps all others out for good; one that is taken out twice turns into
/// bits that mean something else.
fn forgotten(stage: &Arc<Stage>, first: How) -> Result<Found> {
    let holder = Actor::start(stage, How::Write, 1)?;
    let first = Actor::start(stage, first, 2)?;
    let second = Actor::start_as(stage, How::WriteKillable, 3, RT)?;
    let play = || {
        expect(promised(stage, true), "did not ask for a handoff")?;
        first.is_signalled(Signal::Kill)?;
        expect(
            stays(|| second.waits()),
            "lets the second in beside the holder",
        )?;
        second.is_signalled(Signal::Kill)?;
        expect(
            promised(stage, false),
            "keeps a handoff that nobody waits for",
        )?;
        holder.leaves()
    };
    Ok(play())
}

/// A handoff whose task gives up goes to the next in the queue.
///
/// ```text
/// holder            first (killable)    second (real-time)     thief
/// has the lock
///                   queues
///                                       queues, asks for a handoff to the first
///                   killed: leaves
///                                       is first now
/// gives it up
///                                       gets the lock          waits
/// ```
fn inherited(stage: &Arc<Stage>, first: How) -> Result<Found> {
    let holder = Actor::start(stage, How::Write, 1)?;
    let first = Actor::start(stage, first, 2)?;
    let second = Actor::start_as(stage, How::Write, 3, RT)?;
    let third = Actor::start(stage, How::Write, 4)?;
    let play = || {
        first.is_signalled(Signal::Kill)?;
        holder.leaves()?;
        second.gets_in("forgets who comes after one that was killed")?;
        expect(stays(|| third.waits()), "lets two writers in")?;
        second.leaves()?;
        third.gets_in("forgets the last in the queue")
    };
    Ok(play())
}

/// A real-time writer that is not first in the queue asks for a handoff on behalf of the first, and
/// sleeps. On the CPU of the first it would otherwise keep that from ever running.
///
/// ```text
/// CPU 0: holder         CPU 1: first            CPU 1: second (real-time)
/// has the lock
///                       queues, sleeps
///                                               queues, asks for a handoff, sleeps
/// runs
///                                               woken for nothing: sleeps again
/// gives it up, wakes
///                       gets the lock
/// ```
///
/// Nothing is promised to the second. If it waited for the owner that runs, as the first may, it would
/// go on when that is gone, be refused each time, and keep the first from running: for good where no fair server
/// lends a CPU to those who are not real-time.
fn asks_for_the_first(stage: &Arc<Stage>) -> Result<Found> {
    let mut cpus = machine::online_cpus();
    let (Some(other), Some(cpu)) = (cpus.next(), cpus.next()) else {
        return Ok(Ok(()));
    };
    let there = Placement {
        cpu: Some(other),
        fifo: false,
    };
    let here = |fifo| Placement {
        cpu: Some(cpu),
        fifo,
    };
    for _ in 0..20 {
        let holder = Actor::start_as(stage, How::Write, 1, there)?;
        let first = Actor::start_as(stage, How::Write, 2, here(false))?;
        let second = Actor::start_as(stage, How::Write, 3, here(true))?;
        let play = || {
            expect(promised(stage, true), "did not ask for a handoff")?;
            holder.runs()?;
            second.is_disturbed();
            holder.leaves()?;
            first.gets_in("starves the first in the queue")?;
            expect(!second.holds(), "lets two writers in")?;
            first.leaves()?;
            second.gets_in("forgets the second in the queue")?;
            second.leaves()
        };
        if let Err(why) = play() {
            return Ok(Err(why));
        }
    }
    Ok(Ok(()))
}

/// A reader that comes while others have the lock and a writer queues gets behind the writer: a
/// stream of readers that join each other would keep it out for good.
///
/// ```text
/// reader 1        writer           reader 2
/// has the lock
///                 queues
///                                  comes: queues, does not join reader 1
/// gives it up
///                 gets the lock
/// ```
fn readers_do_not_pass(stage: &Arc<Stage>) -> Result<Found> {
    let one = Actor::start(stage, How::Read, 1)?;
    let writer = Actor::start(stage, How::Write, 2)?;
    let two = Actor::start(stage, How::Read, 3)?;
    let play = || {
        expect(two.waits(), "lets a reader pass a writer that waits")?;
        one.leaves()?;
        writer.gets_in("starves a writer")?;
        expect(stays(|| two.waits()), "lets a reader in beside a writer")?;
        writer.leaves()?;
        two.gets_in("forgets a reader")
    };
    Ok(play())
}

#[kunit_tests(klocks_handoff_cases)]
mod tests {
    use super::*;

    #[test]
    fn killed_writer_leaves_no_handoff() {
        assert!(each("handoff to nobody", |stage| forgotten(
            stage,
            How::WriteKillable
        )));
    }

    #[test]
    fn killed_reader_leaves_no_handoff() {
        assert!(each("handoff to nobody", |stage| forgotten(
            stage,
            How::ReadKillable
        )));
    }

    #[test]
    fn killed_writer_bequeaths_its_handoff() {
        assert!(each("handoff to the next", |stage| inherited(
            stage,
            How::WriteKillable
        )));
    }

    #[test]
    fn killed_reader_bequeaths_its_handoff() {
        assert!(each("handoff to the next", |stage| inherited(
            stage,
            How::ReadKillable
        )));
    }

    #[test]
    fn second_asks_for_the_first() {
        assert!(each("handoff on behalf", asks_for_the_first));
    }

    #[test]
    fn reader_does_not_pass_writer() {
        assert!(each("stream of readers", |stage| readers_do_not_pass(
            stage
        )));
    }
}
