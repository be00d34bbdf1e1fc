// SPDX-License-Identifier: GPL-2.0

//! What the `kernel` crate lacks: the only place, beside the exported C interface, that knows
//! `bindings` and the C shim.
//!
//! Locks see safe, named operations and proofs of context, such as [`preempt::PreemptDisabled`].
//! The first group below is what lock files use; it is small, since the host model replaces it.
//! The second group serves the harness alone.

pub(crate) mod annotate;
mod barrier;
pub(crate) mod cell;
pub(crate) mod check;
pub(crate) mod clock;
pub(crate) mod events;
pub(crate) mod percpu;
pub(crate) mod percpu_alloc;
pub(crate) mod preempt;
pub(crate) mod qspinlock;
pub(crate) mod raw_spinlock;
pub(crate) mod rcu;
pub(crate) mod stall;
pub(crate) mod task;
pub(crate) mod wait;
pub(crate) mod wake_q;

pub(crate) mod bystander;
pub(crate) mod debugfs;
pub(crate) mod kcsan;
pub(crate) mod kthread;
pub(crate) mod lockref;
pub(crate) mod machine;
pub(crate) mod mark;
pub(crate) mod module;
pub(crate) mod peers;
pub(crate) mod percpu_peer;
pub(crate) mod torture_ko;

/// Declarations of `kapi/shim.h`, made by bindgen from Kbuild.
#[expect(unreachable_pub, reason = "generated")]
#[allow(
    improper_ctypes,
    dead_code,
    reason = "depends on the kernel configuration"
)]
mod shim {
    include!(concat!(env!("KLOCKS_OBJ"), "/shim_bindings.rs"));
}
