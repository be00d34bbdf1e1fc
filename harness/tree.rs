// SPDX-License-Identifier: GPL-2.0

//! A tree of counted nodes in the manner of the dcache.
//!
//! A node has a reference of its parent. Who walks upwards has no lock on that link: the parent is
//! read under RCU, its count raised if there still is one, and the link read again, since the node
//! may have been moved in between: then the reference is of a node that is no parent any more, and
//! may have been retired before it was got. (The first form of this, posted in 2013, did not look
//! again.)
//!
//! The last reference of a node kills it: it is marked dead under its lock, memory is freed after a
//! grace period, and the node's reference of its parent is put.

use super::counted::{
    CountGuard,
    Counted, //
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

/// How many objects were made and how many freed.
pub(super) struct Ledger {
    made: Atomic<u64>,
    freed: Atomic<u64>,
}

impl Ledger {
    pub(super) fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                made: Atomic::new(0),
                freed: Atomic::new(0),
            },
            GFP_KERNEL,
        )?)
    }

    pub(super) fn count_made(&self) {
        // Relaxed: a statistic, read when all is over; here and below.
        self.made.fetch_add(1, Relaxed);
    }

    pub(super) fn count_freed(&self) {
        self.freed.fetch_add(1, Relaxed);
    }

    /// Waits for all that is to be freed after a grace period: how many objects were made and how
    /// many freed. They are as many, unless some have references left or were freed twice.
    pub(super) fn settle(&self) -> (u64, u64) {
        grace::barrier();
        (self.made.load(Relaxed), self.freed.load(Relaxed))
    }
}

/// A node of the tree.
///
/// # Invariants
///
/// As long as the count is positive, `parent` is null or a node of which this one has a reference.
/// The memory stays until a grace period after the count became negative.
#[pin_data]
#[repr(align(64))]
struct Node<R> {
    #[pin]
    refs: R,
    parent: Atomic<*const Node<R>>,
    retired: Atomic<bool>,
    head: grace::Head,
    ledger: Arc<Ledger>,
}

const _: () = assert!(
    size_of::<crate::lockref::LockRef>() == 8 || cfg!(CONFIG_DEBUG_LOCK_ALLOC),
    "a node's count and lock are one word"
);
const _: () = assert!(align_of::<crate::lockref::LockRef>() == 8);

// SAFETY: Nodes are shared; the link is atomic and keeps a reference of what it leads to.
unsafe impl<R: Counted> Send for Node<R> {}
// SAFETY: As above.
unsafe impl<R: Counted> Sync for Node<R> {}

// SAFETY: `HEAD` is the offset of the head, which is used in `kill` only.
unsafe impl<R: Counted> grace::Callback for Node<R> {
    const HEAD: usize = core::mem::offset_of!(Self, head);

    fn grace_period_over(&self) {
        self.ledger.count_freed();
        let node = core::ptr::from_ref(self).cast_mut();
        // SAFETY: From the box that `NodeRef::new` leaked. Dead for a grace period: nobody has a
        // reference or looks at it under RCU.
        drop(unsafe { KBox::from_raw(node) });
    }
}

/// A reference of a node; dropping it is `dput()`, cloning it `dget()`.
///
/// # Invariants
///
/// Owns one reference of the node, whose count is hence positive.
pub(super) struct NodeRef<R: Counted>(NonNull<Node<R>>);

// SAFETY: A reference may be put by any task.
unsafe impl<R: Counted> Send for NodeRef<R> {}
// SAFETY: It gives shared access only.
unsafe impl<R: Counted> Sync for NodeRef<R> {}

impl<R: Counted> NodeRef<R> {
    /// A node below `parent`, or one without.
    pub(super) fn new(parent: Option<&Self>, ledger: &Arc<Ledger>) -> Result<Self> {
        let node = KBox::pin_init(
            try_pin_init!(Node {
                refs <- R::new(R::class()),
                parent: Atomic::new(core::ptr::null()),
                retired: Atomic::new(false),
                head: grace::Head::new(),
                ledger: ledger.clone(),
            }),
            GFP_KERNEL,
        )?;
        ledger.count_made();
        // INVARIANT: The node's, before anyone else sees it.
        // Relaxed: as above; whoever publishes the node orders it.
        node.parent.store(parent.cloned().into_raw(), Relaxed);
        // SAFETY: Stays pinned: only the callback moves it, to free it.
        let node = KBox::into_raw(unsafe { Pin::into_inner_unchecked(node) });
        // INVARIANT: Ours is the reference that a new count has.
        // SAFETY: A box is not null.
        Ok(Self(unsafe { NonNull::new_unchecked(node) }))
    }

    fn node(&self) -> &Node<R> {
        // SAFETY: The count is positive by the invariant.
        unsafe { self.0.as_ref() }
    }

    fn is(&self, node: *const Node<R>) -> bool {
        core::ptr::eq(self.0.as_ptr(), node)
    }

    /// The parent, as it was at some moment at which the reference returned was there already.
    /// `None` when there is none. This is `dget_parent()`.
    pub(super) fn parent(&self) -> Option<Self> {
        let link = &self.node().parent;
        loop {
            let _rcu = rcu::read_lock();
            // ORDERING: Acquire pairs with the release in `move_to`: the node is complete.
            let found = NonNull::new(link.load(Acquire).cast_mut())?;
            // SAFETY: It was our parent within this read-side section, so it had our reference,
            // and its memory stays until the section's end (invariants of `Node`).
            if unsafe { found.as_ref() }.refs.get_not_zero() {
                // INVARIANT: The reference just got.
                let parent = Self(found);
                // ORDERING: Acquire, after the count's: if its former children were taken away
                // before we raised it, we see that here.
                if parent.is(link.load(Acquire)) {
                    return Some(parent);
                }
            }
            // It was moved, and the reference of the old parent, if there was one, is put.
        }
    }

    /// Moves the node below `parent`. One at a time, as under the dcache's rename lock, and never
    /// below itself.
    pub(super) fn move_to(&self, parent: &Self) {
        let new = Some(parent.clone()).into_raw();
        // INVARIANT: Of `Node`: the link takes over the reference.
        // ORDERING: Release pairs with the acquire in `parent`. Acquire: the old parent's node is
        // complete.
        let old = self.node().parent.xchg(new, Full);
        // INVARIANT: The reference that the link had.
        drop(NonNull::new(old.cast_mut()).map(Self));
    }

    /// Retires the node if this is its only reference: it then has no children, and nobody may find
    /// it as a parent until [`NodeRef::revive`]. Whether it did.
    pub(super) fn retire(&self) -> bool {
        let guard = self.node().refs.lock();
        let alone = guard.count() == 1;
        if alone {
            // Relaxed: the lock orders it.
            self.node().retired.store(true, Relaxed);
        }
        alone
    }

    /// Makes it one that may have children again.
    pub(super) fn revive(&self) {
        let _guard = self.node().refs.lock();
        // Relaxed: the lock orders it.
        self.node().retired.store(false, Relaxed);
    }

    /// Whether it is retired.
    pub(super) fn is_retired(&self) -> bool {
        // Relaxed: whoever has found it as a parent has the order from that.
        self.node().retired.load(Relaxed)
    }
}

/// A reference, or none, as a link keeps it.
trait IntoRaw<R> {
    fn into_raw(self) -> *const Node<R>;
}

impl<R: Counted> IntoRaw<R> for Option<NodeRef<R>> {
    fn into_raw(self) -> *const Node<R> {
        self.map_or(core::ptr::null(), |node| {
            core::mem::ManuallyDrop::new(node).0.as_ptr()
        })
    }
}

impl<R: Counted> Clone for NodeRef<R> {
    fn clone(&self) -> Self {
        self.node().refs.get();
        // INVARIANT: The reference just got.
        Self(self.0)
    }
}

impl<R: Counted> Drop for NodeRef<R> {
    #[inline]
    fn drop(&mut self) {
        if let Some(guard) = self.node().refs.put_or_lock() {
            // SAFETY: The last reference, ours, goes with it.
            unsafe { kill(self.0, guard) };
        }
    }
}

/// Kills a node whose last reference the caller has, with its lock held, and puts its reference of
/// its parent; and so on upwards.
///
/// # Safety
///
/// `guard` is of `node`, and the caller does not use its reference any more.
#[cold]
unsafe fn kill<R: Counted>(mut node: NonNull<Node<R>>, mut guard: R::Guard<'_>) {
    loop {
        guard.mark_dead();
        drop(guard);
        // SAFETY: We have the last reference; the memory stays until a grace period after
        // `call_hurry` below.
        let dead = unsafe { node.as_ref() };
        // Relaxed: who moves a node has a reference of it. There is none but ours.
        let parent = NonNull::new(dead.parent.load(Relaxed).cast_mut());
        // SAFETY: Once, by whoever has the last reference.
        unsafe { grace::call_hurry(dead) };
        let Some(parent) = parent else {
            return;
        };
        node = parent;
        // SAFETY: By the invariants of `Node` its reference of the parent is there; it is ours now.
        match unsafe { node.as_ref() }.refs.put_or_lock() {
            Some(last) => guard = last,
            None => return,
        }
    }
}
