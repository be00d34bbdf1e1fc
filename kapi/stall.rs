// SPDX-License-Identifier: GPL-2.0

//! Stall points: places in locks where a delay makes a race likely. Empty in normal builds; in those
//! of `make DEBUG=1` each takes up to 50 us, mostly none.
//!
//! C header: [`include/linux/delay.h`](srctree/include/linux/delay.h).

#[cfg(klocks_debug)]
use kernel::{
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::{
        delay::udelay,
        Delta, //
    }, //
};

/// Longest delay, in microseconds.
#[cfg(klocks_debug)]
const LONGEST: u64 = 50;

#[cfg(klocks_debug)]
static TURN: Atomic<u64> = Atomic::new(0);

/// Makes the delays from here on depend on `seed`.
pub(crate) fn seed(seed: u64) {
    // Relaxed: only for numbers that differ.
    #[cfg(klocks_debug)]
    TURN.store(seed << 32, Relaxed);
    #[cfg(not(klocks_debug))]
    let _ = seed;
}

/// Waits for a random time.
#[cfg(klocks_debug)]
pub(crate) fn pass() {
    // Relaxed: as in `seed`.
    let turn = TURN.fetch_add(1, Relaxed);
    let random = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    // Three of four pass, so that the lock also meets its other paths.
    if random & 3 == 0 {
        // CAST: Below 51.
        udelay(Delta::from_micros(((random >> 2) % (LONGEST + 1)) as i64));
    }
}

/// The stall point of that name:
///
/// | name | where |
/// |---|---|
/// | SP1 | semaphores: between the count and the owner word |
/// | SP2 | semaphores: between two readers that are granted the lock |
/// | SP3 | semaphores: between a release and the wait lock |
/// | SP4 | semaphores: before a waiter is entered |
/// | SP5 | spin queue: between the steps of joining and of leaving |
/// | SP6 | per-CPU rwsem, slow path: between the count and the next load |
/// | SP7 | rcu_sync: around the wait for a grace period |
macro_rules! stall {
    (SP1) => { $crate::kapi::stall::stall!(@) };
    (SP2) => { $crate::kapi::stall::stall!(@) };
    (SP3) => { $crate::kapi::stall::stall!(@) };
    (SP4) => { $crate::kapi::stall::stall!(@) };
    (SP5) => { $crate::kapi::stall::stall!(@) };
    (SP6) => { $crate::kapi::stall::stall!(@) };
    (SP7) => { $crate::kapi::stall::stall!(@) };
    (@) => {{
        #[cfg(klocks_debug)]
        $crate::kapi::stall::pass();
    }};
}
pub(crate) use stall;
