// SPDX-License-Identifier: GPL-2.0

//! Scenario `ref_kill`: objects are looked up, killed and freed by all threads at once.
//!
//! A few slots each lead to an object whose count may be 0: it is kept. A read looks one up under
//! RCU, gets a reference unless it is dead, uses it and puts it. A write kills one that nobody uses:
//! under its lock it is marked dead and another is put into its slot; the memory is freed after a
//! grace period. No reference may be got of a dead object, and each is freed once.

use super::{
    bench::Session,
    counted::{
        self,
        CountGuard,
        Counted, //
    },
    crew::{
        self,
        Job,
        Seat, //
    },
    cycle::Cycle,
    knobs::Knobs,
    locks::LockType,
    pause,
    rng::Rng,
    scenario::{
        blocks_of_rounds,
        Measures,
        Scenario, //
    },
    tree::Ledger, //
};
use crate::kapi::rcu as grace;
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        rcu,
        Arc, //
    }, //
};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "ref_kill",
    check: counted::check,
    blocks: blocks_of_rounds,
    run: |knobs, session| counted::play(knobs, session, |blocks| blocks.kill),
};

/// One block: all threads on new slots.
pub(super) fn block<R: Counted>(
    knobs: &Knobs,
    session: &Session<'_>,
    lock: &LockType,
    round: u32,
) -> Result {
    let ledger = Ledger::new()?;
    let report = crew::run(Hunt::<R>::new(knobs, &ledger, round)?, knobs, session)?;
    let elapsed = report.elapsed;
    let Tally {
        ops,
        killed,
        refused,
        revived,
        no_memory,
    } = report.tally;
    session.count_ops(ops);
    drop(report);
    let (made, freed) = ledger.settle();
    if revived != 0 || made != freed {
        session.fail(fmt!(
            "{}: {revived} references of dead objects, {freed} of {made} objects were freed in block {round}",
            lock.name()
        ));
    }
    if no_memory {
        return Err(ENOMEM);
    }
    let measures = Measures {
        ops,
        threads: knobs.threads,
        elapsed,
    };
    session.put(fmt!(
        "BenchmarkRefKill/lock={}/threads={}/ratio={}/load={} {measures} {round} block {killed} killed {freed} freed {refused} refused {revived} revived\n",
        lock.name(),
        knobs.threads,
        knobs.ratio,
        knobs.load
    ))
}

const SLOTS: usize = 8;
/// What a live object's payload says.
const ALIVE: u64 = 0x6c69_7665_6c69_7665;

/// What is looked up.
///
/// # Invariants
///
/// The memory stays until a grace period after the object was marked dead and its slot given to
/// another.
#[pin_data]
#[repr(align(64))]
struct Object<R> {
    #[pin]
    refs: R,
    payload: Atomic<u64>,
    head: grace::Head,
    ledger: Arc<Ledger>,
}

// SAFETY: `HEAD` is the offset of the head, which is used once in an object's life, in
// `free_later`.
unsafe impl<R: Counted> grace::Callback for Object<R> {
    const HEAD: usize = core::mem::offset_of!(Self, head);

    fn grace_period_over(&self) {
        self.ledger.count_freed();
        let object = core::ptr::from_ref(self).cast_mut();
        // SAFETY: From the box that `new` leaked; nobody can find it any more.
        drop(unsafe { KBox::from_raw(object) });
    }
}

impl<R: Counted> Object<R> {
    /// An object without references.
    fn new(ledger: &Arc<Ledger>) -> Result<Pin<KBox<Self>>> {
        let object = KBox::pin_init(
            try_pin_init!(Self {
                refs <- R::new(R::class()),
                payload: Atomic::new(ALIVE),
                head: grace::Head::new(),
                ledger: ledger.clone(),
            }),
            GFP_KERNEL,
        )?;
        object.refs.lock().set_count(0);
        ledger.count_made();
        Ok(object)
    }

    /// The object as a slot has it.
    fn into_raw(object: Pin<KBox<Self>>) -> *mut Self {
        // SAFETY: Stays pinned: nobody moves it out of there.
        KBox::into_raw(unsafe { Pin::into_inner_unchecked(object) })
    }
}

/// Frees an object after a grace period.
///
/// # Safety
///
/// It came from [`Object::into_raw`], no slot leads to it, and nobody else frees it.
unsafe fn free_later<R: Counted>(object: NonNull<Object<R>>) {
    // SAFETY: By the contract.
    unsafe { grace::call_hurry(object.as_ref()) };
}

/// The job of a block.
///
/// # Invariants
///
/// Every slot leads to an object that was not given to [`free_later`].
struct Hunt<R: Counted> {
    slots: [Atomic<*mut Object<R>>; SLOTS],
    ledger: Arc<Ledger>,
    knobs: Knobs,
    round: u32,
}

// SAFETY: The objects are shared and change only by their counts and the payload's word.
unsafe impl<R: Counted> Send for Hunt<R> {}
// SAFETY: As above.
unsafe impl<R: Counted> Sync for Hunt<R> {}

impl<R: Counted> Drop for Hunt<R> {
    fn drop(&mut self) {
        for slot in &self.slots {
            // Relaxed: nobody else is there.
            if let Some(object) = NonNull::new(slot.load(Relaxed)) {
                // SAFETY: By the invariant; no slot is there after this.
                unsafe { free_later(object) };
            }
        }
    }
}

#[derive(Default)]
struct Tally {
    ops: u64,
    killed: u64,
    /// Lookups that found the object dead.
    refused: u64,
    /// References got of an object that was dead already, or died with the reference there.
    revived: u64,
    no_memory: bool,
}

impl<R: Counted> Hunt<R> {
    fn new(knobs: &Knobs, ledger: &Arc<Ledger>, round: u32) -> Result<Self> {
        let hunt = Self {
            slots: [const { Atomic::new(core::ptr::null_mut()) }; SLOTS],
            ledger: ledger.clone(),
            knobs: *knobs,
            round,
        };
        for slot in &hunt.slots {
            // INVARIANT: A new object. (Before all are there, nobody but `drop` looks.)
            slot.store(Object::into_raw(Object::new(ledger)?), Relaxed);
        }
        Ok(hunt)
    }

    /// Looks up the object in `slot`, uses and puts it.
    fn look_up(&self, slot: &Atomic<*mut Object<R>>, tally: &mut Tally) {
        let read_side = rcu::read_lock();
        // ORDERING: Acquire pairs with the exchange in `kill`: the object is complete.
        let Some(object) = NonNull::new(slot.load(Acquire)) else {
            return;
        };
        // SAFETY: It was in the slot within this read-side section: by the invariants of `Hunt` and
        // `Object` its memory stays until the section's end, and, with a reference, until that is
        // put.
        let object = unsafe { object.as_ref() };
        if !object.refs.get_not_dead() {
            tally.refused = tally.refused.wrapping_add(1);
            return;
        }
        drop(read_side);
        // Relaxed: the count orders it.
        let mut alive = object.payload.load(Relaxed) == ALIVE;
        pause(self.knobs.load);
        alive &= object.payload.load(Relaxed) == ALIVE;
        if let Some(mut guard) = object.refs.put_or_lock() {
            let left = guard.count().wrapping_sub(1);
            alive &= left == 0;
            guard.set_count(left);
        }
        tally.revived = tally.revived.wrapping_add(u64::from(!alive));
    }

    /// Kills the object in `slot` if nobody uses it, and puts `spare` there. The spare if not.
    fn kill(
        &self,
        slot: &Atomic<*mut Object<R>>,
        spare: Pin<KBox<Object<R>>>,
    ) -> Option<Pin<KBox<Object<R>>>> {
        let _read_side = rcu::read_lock();
        // ORDERING: Acquire, as in `look_up`.
        let Some(found) = NonNull::new(slot.load(Acquire)) else {
            return Some(spare);
        };
        // SAFETY: As in `look_up`.
        let object = unsafe { found.as_ref() };
        let mut guard = object.refs.lock();
        // In use, or another was faster and it is dead.
        if guard.count() != 0 {
            return Some(spare);
        }
        guard.mark_dead();
        // Relaxed: the lock orders it.
        object.payload.store(0, Relaxed);
        // INVARIANT: Of `Hunt`: the slot has the spare before the object is given away. Nobody else
        // takes this one out, since it was dead to them.
        // ORDERING: Release pairs with the acquire above and in `look_up`.
        slot.xchg(Object::into_raw(spare), Full);
        drop(guard);
        // SAFETY: Out of its slot, by us alone.
        unsafe { free_later(found) };
        None
    }

    #[inline(never)]
    fn measured(&self, seat: &Seat<'_>, mut cycle: Cycle, mut rng: Rng) -> Tally {
        let mut tally = Tally::default();
        let mut spare = None;
        seat.measure(|| {
            while tally.ops < self.knobs.ops && !seat.stopped() {
                // CAST: Below `SLOTS`.
                let Some(slot) = self.slots.get(rng.up_to(SLOTS as u32 - 1) as usize) else {
                    return;
                };
                if cycle.next_is_read() {
                    self.look_up(slot, &mut tally);
                } else {
                    let new = match spare.take() {
                        Some(object) => object,
                        None => match Object::new(&self.ledger) {
                            Ok(object) => object,
                            Err(_) => {
                                tally.no_memory = true;
                                return;
                            }
                        },
                    };
                    spare = self.kill(slot, new);
                    let killed = u64::from(spare.is_none());
                    tally.killed = tally.killed.wrapping_add(killed);
                }
                tally.ops = tally.ops.wrapping_add(1);
                seat.progress(tally.ops);
            }
        });
        if let Some(unused) = spare {
            // As the others, so that the account is right.
            if let Some(object) = NonNull::new(Object::into_raw(unused)) {
                // SAFETY: Never in a slot.
                unsafe { free_later(object) };
            }
        }
        tally
    }
}

impl<R: Counted> Job for Hunt<R> {
    type Tally = Tally;

    fn work(&self, seat: &Seat<'_>) -> Tally {
        let stream = u64::from(self.round) << 32 | u64::from(seat.index());
        let rng = Rng::new(self.knobs.seed, stream);
        let cycle = self.knobs.cycle(seat);
        self.measured(seat, cycle, rng)
    }

    fn add(total: &mut Tally, other: Tally) {
        let add = |sum: &mut u64, n| *sum = sum.saturating_add(n);
        add(&mut total.ops, other.ops);
        add(&mut total.killed, other.killed);
        add(&mut total.refused, other.refused);
        add(&mut total.revived, other.revived);
        total.no_memory |= other.no_memory;
    }
}
