// SPDX-License-Identifier: GPL-2.0

//! Grace periods: waiting for them, being called after them, asking whether one is over.
//!
//! C headers: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h),
//! [`include/linux/rcutree.h`](srctree/include/linux/rcutree.h).

use super::shim;
use kernel::{
    bindings,
    types::Opaque, //
};

/// Waits for a grace period. Sleeps.
///
/// ORDERING: A full barrier before the grace period and after it; and every read-side section is
/// either over by then, all of it seen, or it sees all that came before.
pub(crate) fn synchronize() {
    // SAFETY: Process context; the caller may sleep.
    unsafe { bindings::synchronize_rcu() };
}

/// As [`synchronize`], sooner, by interrupting the other CPUs.
pub(crate) fn synchronize_expedited() {
    // SAFETY: Process context; the caller may sleep.
    unsafe { bindings::synchronize_rcu_expedited() };
}

/// Waits until all callbacks requested so far have returned. Sleeps.
pub(crate) fn barrier() {
    // SAFETY: Process context; the caller may sleep.
    unsafe { bindings::rcu_barrier() };
}

/// What RCU keeps of a requested callback. Two words.
#[repr(transparent)]
pub(crate) struct Head(Opaque<bindings::callback_head>);

// SAFETY: A head is RCU's while a callback is requested, and nobody's otherwise.
unsafe impl Send for Head {}
// SAFETY: As above.
unsafe impl Sync for Head {}

impl Head {
    /// No callback requested.
    pub(crate) const fn new() -> Self {
        Self(Opaque::zeroed())
    }
}

/// An object that can ask to be called after a grace period.
///
/// # Safety
///
/// `HEAD` is the offset of a [`Head`] in `Self`, which nothing but [`call_hurry`] uses.
pub(crate) unsafe trait Callback: Sync {
    /// Where the head is.
    const HEAD: usize;

    /// Runs after the grace period, with bottom halves off: it must not sleep.
    fn grace_period_over(&self);
}

/// Asks RCU to call `object` after a grace period, without the delay that saves power.
///
/// # Safety
///
/// No earlier request is pending, and `object` stays where it is until the callback has returned
/// or made its last access to it.
pub(crate) unsafe fn call_hurry<T: Callback>(object: &T) {
    /// # Safety
    ///
    /// `head` is the head of a `T` that is still there.
    unsafe extern "C" fn entry<T: Callback>(head: *mut bindings::callback_head) {
        // SAFETY: By the contract; `HEAD` is the head's offset by that of the trait.
        unsafe { &*head.byte_sub(T::HEAD).cast::<T>() }.grace_period_over();
    }
    let object = core::ptr::from_ref(object).cast_mut();
    // SAFETY: The head is in the object by the trait's contract, and free and long-lived enough by
    // that of this function.
    unsafe { shim::kapi_call_rcu_hurry(object.byte_add(T::HEAD).cast(), Some(entry::<T>)) };
}

/// What a reader of RCU holds. All are waited for by one kind of grace period; they differ in what
/// a debug kernel accepts as being a reader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// `rcu_read_lock()`.
    Rcu,
    /// Preemption or interrupts off.
    Sched,
    /// Bottom halves off.
    Bh,
    /// One of these.
    Any,
}

/// Has a debug kernel report callers that are no readers in the sense of `kind`, once. Nothing on
/// other kernels.
#[inline(always)]
pub(crate) fn assert_reader(kind: Reader) {
    // SAFETY: Callable anywhere.
    unsafe {
        match kind {
            Reader::Rcu => shim::kapi_rcu_assert_reader(),
            Reader::Sched => shim::kapi_rcu_assert_reader_sched(),
            Reader::Bh => shim::kapi_rcu_assert_reader_bh(),
            Reader::Any => shim::kapi_rcu_assert_reader_any(),
        }
    }
}

/// A point in time, for asking later whether a full grace period has passed since.
#[derive(Clone, Copy)]
pub(crate) struct Cookie(bindings::rcu_gp_seq);

impl Cookie {
    /// Now.
    pub(crate) fn now() -> Self {
        let mut seq = bindings::rcu_gp_seq { norm: 0, exp: 0 };
        // SAFETY: `seq` is valid for writes.
        unsafe { bindings::get_state_synchronize_rcu_full(&mut seq) };
        Self(seq)
    }

    /// Whether a grace period, normal or expedited, has begun and ended since.
    pub(crate) fn is_over(&self) -> bool {
        let mut seq = self.0;
        // SAFETY: `seq` is valid.
        unsafe { bindings::poll_state_synchronize_rcu_full(&mut seq) }
    }

    /// How many grace periods, normal and expedited, the whole system began or had ahead of it
    /// between `earlier` and this one.
    pub(crate) fn since(&self, earlier: &Self) -> (u64, u64) {
        // The lowest two bits of a sequence number say whether one is under way.
        let count = |now: usize, then: usize| (now.wrapping_sub(then) >> 2) as u64;
        (
            count(self.0.norm, earlier.0.norm),
            count(self.0.exp, earlier.0.exp),
        )
    }
}
