// SPDX-License-Identifier: GPL-2.0

//! Keeps readers off their fast path while someone asks for it, at the price of a grace period only
//! when it cannot be avoided.
//!
//! C counterpart: [`kernel/rcu/sync.c`](srctree/kernel/rcu/sync.c).
//!
//! # Protocol
//!
//! A reader asks [`RcuSync::is_idle`] in a read-side section of RCU and takes its fast path there if
//! the answer is yes. Who has to exclude readers enters first: from then on all readers take the
//! slow path, until the last who entered has left and a grace period has passed.
//!
//! ```text
//!             enter: wait for          exit,            exit again:
//!             a grace period           last one out     the grace period is too old
//!      Idle ───────────> Enter ──> Passed ──> Exit ──> Replay
//!       ^                            ^         │ ^        │
//!       │   nobody has entered again │         │ │        │
//!       └────────────────────────────┼─────────┘ └────────┘ wait for another one
//!                                    └─────────┴──────────┘ someone has entered again
//! ```
//!
//! In `Exit` and `Replay` readers are still off the fast path, so that entering costs nothing: this
//! is what writers that follow each other closely live on. Only `Idle` lets readers in, only a
//! callback leads there, and it does so when a whole grace period lies behind the latest exit.
//!
//! # Invariants
//!
//! 1. The word is `Gp::IDLE`, 0, exactly when readers may take the fast path.
//! 2. A callback is pending exactly in `Exit` and `Replay`, and in an `Enter` that
//!    [`RcuSync::enter_nowait`] has begun. So one head is enough.
//! 3. Nobody's `enter` has returned in `Enter`.
//!
//! # Memory ordering
//!
//! Readers need none: they read the word relaxed. The grace period orders them both ways. One that
//! missed the step out of `Idle` is over when `enter` returns, and all it did is seen; one that sees
//! `Idle` again began after the grace period that followed the exit, and sees all that preceded it.
//! Those who enter and leave are ordered among each other by full read-modify-writes of the word.
//!
//! # Differences from C
//!
//! State and count are one word, changed by one compare-and-exchange, where C has two and a lock.
//! `enter` can be split into [`RcuSync::enter_nowait`] and [`RcuSync::wait`], as the series' author
//! meant to. Misuse is reported once and changes nothing; C warns and goes on. A reader says what
//! kind of reader it is ([`Flavor`]), as in the series; C takes any, since all are waited for alike.

use crate::kapi::{
    annotate::lock_name,
    rcu::{
        self,
        Reader, //
    },
    stall::stall,
    wait::Event, //
};
use core::{
    marker::PhantomData,
    mem::offset_of, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        barrier::{
            self,
            smp_mb, //
        },
        static_lock_class, //
    }, //
};

/// Whether readers may take the fast path, and if not, on the way to where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
enum State {
    /// They may.
    Idle = 0,
    /// They may not, but some may not know it yet.
    Enter = 1,
    /// All are on the slow path.
    Passed = 2,
    /// The same, but after a grace period they may take the fast path.
    Exit = 3,
    /// The same, but only after one more.
    Replay = 4,
}

/// A value of the word: the state, and how many have entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Gp {
    state: State,
    entered: u32,
}

/// What has to follow a step of the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// Nothing.
    Done,
    /// See to it that [`Gp::grace_period_over`] comes after a grace period. Whoever's step it was is
    /// the only one to do so.
    Begin,
    /// Wait until the state is no longer `Enter`.
    Wait,
    /// Wake those who wait for that.
    Wake,
}

/// What a caller must not do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Misuse {
    /// More have left than entered.
    ExitWithoutEnter,
    /// It is to go, but someone has not left.
    DropWhileEntered,
}

impl Gp {
    const IDLE: Self = Self {
        state: State::Idle,
        entered: 0,
    };

    /// As it is stored: the state below, the count above.
    #[inline(always)]
    const fn pack(self) -> u64 {
        (self.entered as u64) << 32 | self.state as u64
    }

    #[inline(always)]
    const fn unpack(word: u64) -> Self {
        // CAST: Its lower and its upper half.
        let state = match word as u32 {
            0 => State::Idle,
            1 => State::Enter,
            2 => State::Passed,
            3 => State::Exit,
            // Only `pack` makes words.
            _ => State::Replay,
        };
        Self {
            state,
            entered: (word >> 32) as u32,
        }
    }

    /// One more enters.
    fn enter(self) -> (Self, Then) {
        let (state, then) = match self.state {
            State::Idle => (State::Enter, Then::Begin),
            State::Enter => (State::Enter, Then::Wait),
            slow => (slow, Then::Done),
        };
        let gp = Self {
            state,
            // There are fewer tasks than that.
            entered: self.entered.wrapping_add(1),
        };
        (gp, then)
    }

    /// One leaves.
    fn exit(self) -> Result<(Self, Then), Misuse> {
        let entered = self
            .entered
            .checked_sub(1)
            .ok_or(Misuse::ExitWithoutEnter)?;
        let (state, then) = match self.state {
            State::Passed if entered == 0 => (State::Exit, Then::Begin),
            // The callback that is pending follows an older exit.
            State::Exit if entered == 0 => (State::Replay, Then::Done),
            // In `Enter` nobody has been told that readers are off the fast path.
            other => (other, Then::Done),
        };
        Ok((Self { state, entered }, then))
    }

    /// A grace period has passed since the last [`Then::Begin`].
    fn grace_period_over(self) -> (Self, Then) {
        let (state, then) = match self.state {
            // Nothing was begun.
            State::Idle | State::Passed => (self.state, Then::Done),
            State::Enter if self.entered != 0 => (State::Passed, Then::Wake),
            // Nobody waits: all who entered since were let through at once.
            State::Exit | State::Replay if self.entered != 0 => (State::Passed, Then::Done),
            State::Replay => (State::Exit, Then::Begin),
            State::Enter | State::Exit => (State::Idle, Then::Done),
        };
        let gp = Self { state, ..self };
        (gp, then)
    }

    /// It is to go: no other grace period than the pending one is worth waiting for.
    fn wind_up(self) -> Result<Self, Misuse> {
        if self.entered != 0 {
            return Err(Misuse::DropWhileEntered);
        }
        Ok(match self.state {
            State::Replay => Self {
                state: State::Exit,
                ..self
            },
            _ => self,
        })
    }

    /// Whether a callback may be pending.
    fn is_pending(self) -> bool {
        matches!(self.state, State::Enter | State::Exit | State::Replay)
    }
}

impl Misuse {
    /// Says so, once.
    #[cold]
    fn report(self) {
        static REPORTED: Atomic<bool> = Atomic::new(false);
        // Relaxed: only who comes first matters.
        if !REPORTED.xchg(true, Relaxed) {
            pr_warn!("rcu_sync: {:?}\n", self);
        }
    }
}

/// What kind of reader asks. Debug kernels report others.
pub trait Flavor: Send + Sync + 'static {
    #[doc(hidden)]
    fn assert_reader();
}

/// Readers hold `rcu_read_lock()`.
pub struct Rcu;

impl Flavor for Rcu {
    #[inline(always)]
    fn assert_reader() {
        rcu::assert_reader(Reader::Rcu);
    }
}

/// Readers have preemption off.
pub struct Sched;

impl Flavor for Sched {
    #[inline(always)]
    fn assert_reader() {
        rcu::assert_reader(Reader::Sched);
    }
}

/// Readers have bottom halves off.
pub struct Bh;

impl Flavor for Bh {
    #[inline(always)]
    fn assert_reader() {
        rcu::assert_reader(Reader::Bh);
    }
}

/// Readers of whatever kind, for those who cannot say: C's.
pub struct Any;

impl Flavor for Any {
    #[inline(always)]
    fn assert_reader() {
        rcu::assert_reader(Reader::Any);
    }
}

/// What tells readers whether they may take their fast path.
pub trait ReaderGate: Send + Sync {
    /// A gate that lets them.
    fn init() -> impl PinInit<Self>
    where
        Self: Sized;

    /// Whether the reader that asks may take its fast path. What it does there, up to the end of its
    /// read-side section, is over before an [`ReaderGate::enter`] returns that it has not seen.
    fn is_idle(&self) -> bool;

    /// Returns when all readers take the slow path, which they do until [`ReaderGate::exit`]. Sleeps;
    /// several may have entered.
    fn enter(&self);

    /// Takes back one [`ReaderGate::enter`]. Readers on the fast path see all that came before.
    fn exit(&self);
}

/// The gate of the series.
///
/// Dropping it waits for a pending callback: it may sleep.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct RcuSync<F: Flavor> {
    word: Atomic<u64>,
    head: rcu::Head,
    #[pin]
    passed: Event,
    _flavor: PhantomData<F>,
}

impl<F: Flavor> RcuSync<F> {
    /// An idle gate.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            word: Atomic::new(Gp::IDLE.pack()),
            head: rcu::Head::new(),
            passed <- Event::new(lock_name!(c"rcu_sync"), static_lock_class!()),
            _flavor: PhantomData,
        })
    }

    /// Whether readers may take their fast path. In a read-side section only.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        F::assert_reader();
        // Relaxed: the grace period orders, see the module's documentation.
        // INVARIANT: 1.
        self.word.load(Relaxed) == Gp::IDLE.pack()
    }

    /// Returns when all readers take their slow path. Sleeps for a grace period if they did not.
    #[inline]
    pub fn enter(&self) {
        match self.step_infallible(Gp::enter) {
            Then::Begin => self.wait_for_readers(),
            Then::Wait => self.wait(),
            Then::Done | Then::Wake => {}
        }
    }

    /// As [`RcuSync::enter`], but [`RcuSync::wait`] is left to the caller. For process context.
    pub fn enter_nowait(&self) {
        if self.step_infallible(Gp::enter) == Then::Begin {
            // SAFETY: `Begin` is given to one, when nothing is pending (invariant 2). The gate
            // is dropped only when the callback has returned, see `drop`.
            unsafe { rcu::call_hurry(self) };
        }
    }

    /// Waits for the readers whom an [`RcuSync::enter_nowait`] found on the fast path.
    #[cold]
    pub fn wait(&self) {
        // ORDERING: Acquire pairs with the full step to `Passed`, behind the grace period.
        self.passed
            .wait_until(|| Gp::unpack(self.word.load(Acquire)).state != State::Enter);
    }

    /// Takes back one enter. Readers get back to their fast path a grace period after the last one.
    #[inline]
    pub fn exit(&self) {
        match self.step(Gp::exit) {
            // SAFETY: As in `enter_nowait`.
            Ok(Then::Begin) => unsafe { rcu::call_hurry(self) },
            Ok(_) => {}
            Err(misuse) => misuse.report(),
        }
    }

    /// Waits for a grace period on behalf of all who have entered meanwhile.
    #[cold]
    fn wait_for_readers(&self) {
        stall!(SP7);
        // Not by callback: that would come later than this where grace periods are expedited.
        rcu::synchronize();
        stall!(SP7);
        self.grace_period_over();
    }

    fn grace_period_over(&self) {
        match self.step_infallible(Gp::grace_period_over) {
            Then::Wake => self.passed.wake_all(),
            // SAFETY: The pending callback is this one, and it uses its head no more; else as in
            // `enter_nowait`.
            Then::Begin => unsafe { rcu::call_hurry(self) },
            Then::Done | Then::Wait => {}
        }
    }

    /// Makes a step that is always allowed.
    #[inline(always)]
    fn step_infallible(&self, step: impl Fn(Gp) -> (Gp, Then)) -> Then {
        match self.step(|gp| Ok::<_, core::convert::Infallible>(step(gp))) {
            Ok(then) => then,
            Err(never) => match never {},
        }
    }

    /// Makes a step, unless it is not allowed; then nothing changes.
    #[inline(always)]
    fn step<E>(&self, step: impl Fn(Gp) -> Result<(Gp, Then), E>) -> Result<Then, E> {
        // Relaxed: the exchange decides.
        let mut word = self.word.load(Relaxed);
        loop {
            let (new, then) = step(Gp::unpack(word))?;
            // ORDERING: Full. Release: what was done before leaving is done before the grace
            // period that the last one out begins; pairs with the acquire of whoever's step comes
            // next. A full barrier comes between the step out of `Idle` and the grace period
            // anyway, that of `synchronize_rcu()`.
            match self.word.cmpxchg(word, new.pack(), Full) {
                Ok(_) => return Ok(then),
                Err(now) => word = now,
            }
        }
    }
}

// SAFETY: `head` is where `HEAD` says and only used by `call_hurry`.
unsafe impl<F: Flavor> rcu::Callback for RcuSync<F> {
    const HEAD: usize = offset_of!(Self, head);

    fn grace_period_over(&self) {
        Self::grace_period_over(self);
    }
}

#[pinned_drop]
impl<F: Flavor> PinnedDrop for RcuSync<F> {
    fn drop(self: Pin<&mut Self>) {
        if let Err(misuse) = self.step(|gp| gp.wind_up().map(|gp| (gp, Then::Done))) {
            misuse.report();
        }
        // ORDERING: Acquire pairs with the callback's last step: it is over if the gate is idle.
        while Gp::unpack(self.word.load(Acquire)).is_pending() {
            // Twice at most: a callback that has made its step from `Replay` before ours, but not asked
            // for the next one yet, does so before it returns; that one does not ask for another, by
            // the step above or because someone has entered.
            rcu::barrier();
        }
    }
}

impl<F: Flavor> ReaderGate for RcuSync<F> {
    fn init() -> impl PinInit<Self> {
        Self::new()
    }

    #[inline(always)]
    fn is_idle(&self) -> bool {
        Self::is_idle(self)
    }

    #[inline(always)]
    fn enter(&self) {
        Self::enter(self);
    }

    #[inline(always)]
    fn exit(&self) {
        Self::exit(self);
    }
}

/// How a [`CounterGate`] keeps readers and writers apart.
pub trait Strategy: Send + Sync + 'static {
    /// Waits for the readers that have not seen the counter.
    #[doc(hidden)]
    fn wait_on_enter();

    /// Makes sure that those who see the counter at 0 see what came before.
    #[doc(hidden)]
    fn wait_on_exit();

    /// The reader's share in that.
    #[doc(hidden)]
    fn reader_barrier();
}

/// A grace period in enter and one in exit: what 1/7 of the series says that [`RcuSync`] is
/// functionally equivalent to.
pub struct Normal;

impl Strategy for Normal {
    fn wait_on_enter() {
        rcu::synchronize();
    }

    fn wait_on_exit() {
        rcu::synchronize();
    }

    #[inline(always)]
    fn reader_barrier() {}
}

/// The same with expedited ones: what the per-CPU rwsem did before the series. Quick, but it
/// interrupts all CPUs.
pub struct Expedited;

impl Strategy for Expedited {
    fn wait_on_enter() {
        rcu::synchronize_expedited();
    }

    fn wait_on_exit() {
        rcu::synchronize_expedited();
    }

    #[inline(always)]
    fn reader_barrier() {}
}

/// A grace period in enter only, and a full barrier in the reader: the reviewer's alternative.
///
/// Its author had the barrier before the reader's look at the counter. It belongs behind it, where
/// it keeps the section from being read before the counter. An acquire would do, and cost nothing
/// on x86; what is measured here is what was proposed.
pub struct Fenced;

impl Strategy for Fenced {
    fn wait_on_enter() {
        rcu::synchronize();
    }

    fn wait_on_exit() {}

    #[inline(always)]
    fn reader_barrier() {
        // ORDERING: Full pairs with the full decrement in `CounterGate::exit`.
        smp_mb(barrier::Full);
    }
}

/// A gate that remembers nothing: a counter, and a wait each time.
#[pin_data]
pub struct CounterGate<S: Strategy> {
    entered: Atomic<u64>,
    _strategy: PhantomData<S>,
}

impl<S: Strategy> ReaderGate for CounterGate<S> {
    fn init() -> impl PinInit<Self> {
        pin_init!(Self {
            entered: Atomic::new(0),
            _strategy: PhantomData,
        })
    }

    #[inline(always)]
    fn is_idle(&self) -> bool {
        rcu::assert_reader(Reader::Sched);
        // Relaxed: the grace periods order, or the barrier does.
        let idle = self.entered.load(Relaxed) == 0;
        S::reader_barrier();
        idle
    }

    fn enter(&self) {
        // Relaxed: the grace period begins with a full barrier.
        self.entered.fetch_add(1, Relaxed);
        S::wait_on_enter();
    }

    fn exit(&self) {
        S::wait_on_exit();
        // Relaxed: the exchange decides.
        let mut now = self.entered.load(Relaxed);
        loop {
            let Some(less) = now.checked_sub(1) else {
                Misuse::ExitWithoutEnter.report();
                return;
            };
            // ORDERING: Full pairs with the barrier of a `Fenced` reader that sees 0: it sees what
            // was done before.
            match self.entered.cmpxchg(now, less, Full) {
                Ok(_) => return,
                Err(changed) => now = changed,
            }
        }
    }
}

#[kunit_tests(klocks_rcu_sync)]
mod tests {
    use super::*;
    use crate::kapi::{
        preempt,
        rcu::Cookie, //
    };

    const STATES: [State; 5] = [
        State::Idle,
        State::Enter,
        State::Passed,
        State::Exit,
        State::Replay,
    ];

    /// All words that can occur, with up to three inside.
    fn for_all(mut check: impl FnMut(Gp)) {
        for state in STATES {
            for entered in 0..4 {
                if (state == State::Idle && entered != 0)
                    || (state == State::Passed && entered == 0)
                {
                    continue;
                }
                check(Gp { state, entered });
            }
        }
    }

    #[test]
    fn words_survive_packing() {
        let mut ok = true;
        for_all(|gp| {
            ok &= Gp::unpack(gp.pack()) == gp;
            ok &= (gp.pack() == 0) == (gp.state == State::Idle);
        });
        assert!(ok);
    }

    #[test]
    fn enter_waits_only_for_readers_on_the_fast_path() {
        let mut ok = true;
        for_all(|gp| {
            let (after, then) = gp.enter();
            ok &= after.entered == gp.entered + 1 && after.state != State::Idle;
            ok &= match gp.state {
                State::Idle => (after.state, then) == (State::Enter, Then::Begin),
                State::Enter => (after.state, then) == (State::Enter, Then::Wait),
                _ => (after.state, then) == (gp.state, Then::Done),
            };
        });
        assert!(ok);
    }

    #[test]
    fn exit_counts_and_the_last_one_begins_the_way_back() {
        let mut ok = true;
        for_all(|gp| match gp.exit() {
            Err(misuse) => ok &= gp.entered == 0 && misuse == Misuse::ExitWithoutEnter,
            Ok((after, then)) => {
                ok &= after.entered + 1 == gp.entered;
                let expected = match (gp.state, gp.entered) {
                    (State::Passed, 1) => (State::Exit, Then::Begin),
                    (State::Exit, 1) => (State::Replay, Then::Done),
                    (state, _) => (state, Then::Done),
                };
                ok &= (after.state, then) == expected;
            }
        });
        assert!(ok);
    }

    #[test]
    fn idle_only_a_grace_period_after_the_latest_exit() {
        let mut ok = true;
        for_all(|gp| {
            let (after, then) = gp.grace_period_over();
            ok &= after.entered == gp.entered;
            let expected = match (gp.state, gp.entered) {
                (State::Enter, 0) | (State::Exit, 0) => (State::Idle, Then::Done),
                (State::Replay, 0) => (State::Exit, Then::Begin),
                (State::Enter, _) => (State::Passed, Then::Wake),
                (State::Exit | State::Replay, _) => (State::Passed, Then::Done),
                (state, _) => (state, Then::Done),
            };
            ok &= (after.state, then) == expected;
        });
        assert!(ok);
    }

    #[test]
    fn one_callback_at_a_time() {
        // `Begin` is given only where nothing is pending, and pending is what it leads to.
        let mut ok = true;
        for_all(|gp| {
            let (entered, then) = gp.enter();
            ok &= then != Then::Begin || (!gp.is_pending() && entered.is_pending());
            if let Ok((left, then)) = gp.exit() {
                ok &= then != Then::Begin || (!gp.is_pending() && left.is_pending());
                ok &= left.is_pending() == (gp.is_pending() || then == Then::Begin);
            }
            // The callback itself asks for another when it stays pending, and only then.
            let (over, then) = gp.grace_period_over();
            ok &= over.is_pending() == (then == Then::Begin);
        });
        assert!(ok);
    }

    #[test]
    fn winding_up_leaves_one_grace_period() {
        let mut ok = true;
        for_all(|gp| match gp.wind_up() {
            Err(misuse) => ok &= gp.entered != 0 && misuse == Misuse::DropWhileEntered,
            Ok(left) => {
                ok &= gp.entered == 0;
                ok &= left == Gp::IDLE || left.grace_period_over() == (Gp::IDLE, Then::Done);
            }
        });
        assert!(ok);
    }

    fn new_gate() -> Result<Pin<KBox<RcuSync<Sched>>>> {
        KBox::pin_init(RcuSync::new(), GFP_KERNEL)
    }

    /// Whether the gate is idle after `steps`, before a grace period can end.
    fn is_idle_after<F: Flavor>(gate: &RcuSync<F>, steps: impl FnOnce()) -> bool {
        let _pin = preempt::disable();
        steps();
        gate.is_idle()
    }

    fn is_idle<F: Flavor>(gate: &RcuSync<F>) -> bool {
        is_idle_after(gate, || ())
    }

    #[test]
    fn enter_from_idle_takes_a_grace_period() -> Result {
        let gate = new_gate()?;
        assert!(is_idle(&gate));
        let cookie = Cookie::now();
        gate.enter();
        assert!(cookie.is_over());
        assert!(!is_idle(&gate));
        assert!(!is_idle_after(&gate, || gate.exit()));
        Ok(())
    }

    /// How often the gate was entered and left within a grace period of others.
    fn rounds_in_a_grace_period(gate: &RcuSync<Sched>) -> u32 {
        gate.enter();
        gate.exit();
        let cookie = Cookie::now();
        let mut rounds = 0;
        while !cookie.is_over() {
            gate.enter();
            gate.exit();
            rounds += 1;
        }
        rounds
    }

    #[test]
    fn enter_after_exit_takes_none() -> Result {
        let gate = new_gate()?;
        // Never more than a few where each enter waits for one; now and then as few where others keep the
        // task from its CPU.
        assert!((0..100).any(|_| rounds_in_a_grace_period(&gate) > 10));
        Ok(())
    }

    #[test]
    fn split_enter() -> Result {
        let gate = new_gate()?;
        let cookie = Cookie::now();
        gate.enter_nowait();
        assert!(!is_idle(&gate));
        gate.wait();
        assert!(cookie.is_over());
        gate.exit();
        // And given up before the grace period's end.
        let gate = new_gate()?;
        gate.enter_nowait();
        gate.exit();
        rcu::barrier();
        assert!(is_idle(&gate));
        Ok(())
    }

    #[test]
    fn goes_idle_again() -> Result {
        let gate = new_gate()?;
        gate.enter();
        gate.exit();
        gate.enter();
        gate.exit();
        // The second one is for the replay.
        rcu::barrier();
        rcu::barrier();
        assert!(is_idle(&gate));
        Ok(())
    }

    #[test]
    fn misuse_changes_nothing() -> Result {
        let gate = new_gate()?;
        gate.exit();
        assert!(is_idle(&gate));
        gate.enter();
        let twice = || {
            gate.exit();
            gate.exit();
        };
        assert!(!is_idle_after(&gate, twice));
        assert_eq!(Gp::unpack(gate.word.load(Relaxed)).entered, 0);
        Ok(())
    }
}
