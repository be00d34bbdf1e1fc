// SPDX-License-Identifier: GPL-2.0

//! What the workers of a run and its controller share.

use super::{
    arena::Arena,
    desk::Desk,
    knobs::Stress,
    roles::Role,
    tally::Tally, //
};
use crate::kapi::wait::Event;
use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        static_lock_class,
        Arc,
        CondVar,
        Mutex, //
    },
    time::msecs_to_jiffies, //
};

/// See the module.
#[pin_data]
pub(super) struct Shared {
    pub(super) stress: Stress,
    pub(super) arenas: KVVec<Arena>,
    /// One a worker,
    pub(super) desks: KVVec<Desk>,
    /// and the number of its lock and its role.
    pub(super) posts: KVVec<(usize, Role)>,
    over: Atomic<bool>,
    halted: Atomic<bool>,
    faulty: Atomic<bool>,
    /// Workers need not halt any more.
    #[pin]
    resumed: Event,
    #[pin]
    ended: Mutex<Ended>,
    /// A worker has ended.
    #[pin]
    changed: CondVar,
}

/// What workers leave.
struct Ended {
    workers: usize,
    /// One a lock and role.
    tallies: KVVec<Tally>,
}

impl Shared {
    /// Free locks, and desks for all workers.
    pub(super) fn new(stress: &Stress) -> Result<Arc<Self>> {
        let (mut arenas, mut desks, mut posts) = (KVVec::new(), KVVec::new(), KVVec::new());
        let mut tallies = KVVec::new();
        for kind in stress.locks.types() {
            let place = arenas.len();
            arenas.push(Arena::new(kind, stress, posts.len())?, GFP_KERNEL)?;
            for role in Role::ALL {
                tallies.push(Tally::new(), GFP_KERNEL)?;
                for _ in 0..stress.workers(kind, role) {
                    desks.push(Desk::new(), GFP_KERNEL)?;
                    posts.push((place, role), GFP_KERNEL)?;
                }
            }
        }
        Arc::pin_init(
            pin_init!(Self {
                stress: *stress,
                arenas,
                desks,
                posts,
                over: Atomic::new(false),
                halted: Atomic::new(false),
                faulty: Atomic::new(false),
                resumed <- Event::new(c"klocks_resumed", static_lock_class!()),
                ended <- new_mutex!(Ended {
                    workers: 0,
                    tallies,
                }),
                changed <- new_condvar!(),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether to do another operation. Does not return while workers are to halt.
    pub(super) fn goes_on(&self) -> bool {
        // Relaxed, here and below: no data comes with the flags; the queue orders the wake-up.
        if self.halted.load(Relaxed) {
            self.resumed
                .wait_until(|| !self.halted.load(Relaxed) || self.over.load(Relaxed));
        }
        !self.over.load(Relaxed)
    }

    /// Makes workers halt, or go on.
    pub(super) fn halt(&self, yes: bool) {
        self.halted.store(yes, Relaxed);
        if !yes {
            self.resumed.wake_all();
        }
    }

    /// Makes all workers end.
    pub(super) fn end(&self) {
        self.over.store(true, Relaxed);
        self.resumed.wake_all();
    }

    /// Whether they are to end.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// Says that a check has failed.
    pub(super) fn fault(&self) {
        self.faulty.store(true, Relaxed);
    }

    /// Whether one has.
    pub(super) fn is_faulty(&self) -> bool {
        self.faulty.load(Relaxed)
    }

    /// The desks of a lock's own workers.
    pub(super) fn desks_of(&self, arena: &Arena) -> &[Desk] {
        self.desks.get(arena.workers.clone()).unwrap_or(&[])
    }

    /// Adds what was counted in a role on lock number `place`.
    pub(super) fn report(&self, place: usize, role: Role, tally: &Tally) {
        let mut ended = self.ended.lock();
        if let Some(sum) = ended.tallies.get_mut(tally_index(place, role)) {
            sum.add(tally);
        }
    }

    /// A worker has ended.
    pub(super) fn leave(&self) {
        let mut ended = self.ended.lock();
        ended.workers = ended.workers.saturating_add(1);
        if ended.workers == self.desks.len() {
            self.changed.notify_all();
        }
    }

    /// Waits for the last worker's end, `ms` at most; how many are left.
    pub(super) fn wait_for_end(&self, ms: u32) -> usize {
        let mut ended = self.ended.lock();
        if ended.workers < self.desks.len() {
            // No signal reaches the controller, and a time-out is no more than a look around.
            let _ = self
                .changed
                .wait_interruptible_timeout(&mut ended, msecs_to_jiffies(ms));
        }
        self.desks.len().saturating_sub(ended.workers)
    }

    /// What was counted in a role on lock number `place`.
    pub(super) fn with_tally<T>(
        &self,
        place: usize,
        role: Role,
        look: impl FnOnce(&Tally) -> T,
    ) -> Option<T> {
        self.ended
            .lock()
            .tallies
            .get(tally_index(place, role))
            .map(look)
    }
}

fn tally_index(place: usize, role: Role) -> usize {
    place
        .saturating_mul(Role::COUNT)
        .saturating_add(role.index())
}
