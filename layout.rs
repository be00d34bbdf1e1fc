// SPDX-License-Identifier: GPL-2.0

//! What others rely on of how locks lie in memory, checked when the module is built.
//!
//! The kernel's hung-task report reads the first word of a semaphore as its count and the second as
//! its owner (`kernel/hung_task.c`), and nobody wants a lock that is larger than C's.

use crate::{
    rwsem,
    rwsem_xadd,
    semaphore::Words,
    waiters::{
        Kind,
        Waiter, //
    }, //
};
use core::mem::offset_of;

/// Without debug options: count, owner, two words of spinners and wait lock, first waiter.
const PLAIN: usize = 32;

const fn is_plain() -> bool {
    !cfg!(any(CONFIG_DEBUG_SPINLOCK, CONFIG_DEBUG_LOCK_ALLOC))
}

const fn check<L, C>() {
    assert!(size_of::<L>() == size_of::<Words<C>>());
    assert!(offset_of!(Words<C>, count) == 0);
    assert!(offset_of!(Words<C>, owner) == 8);
    assert!(size_of::<L>() == PLAIN || !is_plain());
}

const _: () = check::<rwsem::RwSem<rwsem::Rwsem>, rwsem::Count>();
const _: () = check::<rwsem::RwSem<rwsem::C73>, rwsem::Count>();
const _: () = check::<rwsem_xadd::RwSem<rwsem_xadd::Xadd>, rwsem_xadd::Count>();

// What `scripts/drgn-lock` reads.
const _: () = assert!(
    offset_of!(Waiter, task) == 0
        && offset_of!(Waiter, kind) == 8
        && offset_of!(Waiter, handoff) == 28
        && offset_of!(Waiter, next) == 32
        && Kind::Reader as u8 == 0
        && Kind::Writer as u8 == 1
);
