// SPDX-License-Identifier: GPL-2.0

//! Optimistic spin queue: of all who spin for a sleeping lock, one spins on the lock, the others
//! wait in line, each on a cache line of its own.
//!
//! C counterpart: [`kernel/locking/osq_lock.c`](srctree/kernel/locking/osq_lock.c).
//!
//! # Protocol
//!
//! An MCS queue whose nodes are static and per CPU, one a CPU: who queues has preemption off, and
//! sleeping locks are not taken in interrupts. Unlike in an MCS lock, a waiter may leave the
//! queue from any place, since it must not spin when it should let others run.
//!
//! ```text
//!      Osq.tail ─────────────────────────────┐  CPU number + 1, 0 when nobody is here
//!                                            v
//!      CPU 2 (head) ── next ──> CPU 0 ── next ──> CPU 5 ── next = 0
//!                   <── prev ──        <── prev ──
//! ```
//!
//! Nodes name each other by CPU number plus one rather than by address, so that 0 says "none",
//! no word of the queue can point astray, and none of this needs `unsafe`.
//!
//! # Invariants
//!
//! 1. A node that is not in a queue is clean: `next` is 0. Hence joining a free queue writes the tail
//!    and no more.
//! 2. While a CPU waits, `prev` of its node names its predecessor, and the tail names it or one
//!    behind it.
//! 3. `locked` is 0 when a CPU begins to wait, by itself, and becomes 1 if the wait ends in the head's
//!    place. It stays 1 until the next wait: nobody looks at it then.
//!
//! # Memory ordering
//!
//! Joining and the uncontended end are ordered through the tail as a lock's are. The hand-over to
//! a waiter is release and acquire as well: free on x86, and it makes the queue testable by
//! itself. C has it relaxed, so no user may rely on more than that one CPU at a time is head.
//!
//! # Differences from C
//!
//! Clean nodes (invariant 1), where C writes two fields of its node on each join; links by
//! number; the node remembers its predecessor's number, where C looks for it in the predecessor's
//! node at each turn of the loop. Events are counted where C counts none.

use crate::kapi::{
    events::{
        event_set,
        events,
        Events, //
    },
    percpu::percpu_static,
    preempt::PreemptDisabled,
    stall::stall,
    task, //
};
use kernel::{
    processor::cpu_relax,
    sync::atomic::{
        Acquire,
        Atomic,
        Full,
        Relaxed,
        Release, //
    }, //
};

/// A CPU in the queue's words: its number plus one, so that 0 is none.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Code(u32);

impl Code {
    const NONE: Self = Self(0);

    #[inline(always)]
    fn of_cpu(cpu: u32) -> Self {
        Self(cpu.wrapping_add(1))
    }

    #[inline(always)]
    fn cpu(self) -> u32 {
        self.0.wrapping_sub(1)
    }

    #[inline(always)]
    fn node(self) -> &'static Node {
        NODES.of(self.cpu())
    }
}

/// A CPU's place in a queue. One serves all queues: a CPU is in one at a time.
struct Node {
    next: Atomic<u32>,
    prev: Atomic<u32>,
    locked: Atomic<u32>,
}

percpu_static! {
    static NODES: PerCpu<Node> = Node {
        // INVARIANT: 1, a clean node.
        next: Atomic::new(0),
        prev: Atomic::new(0),
        locked: Atomic::new(0),
    };
}

event_set! {
    /// What can happen to a waiter that wants to leave.
    pub(crate) enum Event {
        /// It was last: the tail went back to its predecessor.
        UnqueueTail = "unqueue_tail",
        /// It had a successor: its neighbours were linked.
        UnqueueMiddle = "unqueue_middle",
        /// The head's place came first: it stayed.
        GrantedLeaving = "granted_leaving",
    }
}

/// Counts over all queues of the module.
pub(crate) static EVENTS: Events<Event> = events!(Event);

/// The queue's word.
///
/// It guards no data: being head says that nobody else is, nothing about what the last head did.
pub(crate) struct Osq {
    tail: Atomic<u32>,
}

impl Osq {
    /// A free queue.
    pub(crate) const fn new() -> Self {
        Self {
            tail: Atomic::new(Code::NONE.0),
        }
    }

    /// Whether someone is head or waits.
    #[inline(always)]
    pub(crate) fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date as soon as it is read. Who acts on it brings the barrier.
        self.tail.load(Relaxed) != Code::NONE.0
    }

    /// The CPU that joined last, while someone is head or waits: a hint.
    pub(crate) fn last_cpu(&self) -> Option<u32> {
        // Relaxed: as in `is_locked`.
        let tail = Code(self.tail.load(Relaxed));
        (tail != Code::NONE).then(|| tail.cpu())
    }

    /// Joins the queue and waits to be its head. `false` when the wait was given up, because this
    /// CPU should run another task or the predecessor's virtual CPU does not run.
    #[must_use = "the head of the queue has to unlock it"]
    #[inline]
    pub(crate) fn lock(&self, pin: &PreemptDisabled) -> bool {
        let me = Code::of_cpu(pin.cpu());
        // ORDERING: Acquire pairs with the release in `unlock`. Release pairs with the tail's
        // read by whoever comes next: it finds our node clean (invariant 1).
        let old = Code(self.tail.xchg(me.0, Full));
        old == Code::NONE || self.wait(me, old)
    }

    #[cold]
    fn wait(&self, me: Code, prev: Code) -> bool {
        let node = me.node();
        // INVARIANT: 3 and 2. Relaxed: the predecessor finds us later, by the release below.
        node.locked.store(0, Relaxed);
        node.prev.store(prev.0, Relaxed);
        stall!(SP5);
        // ORDERING: Release, after the store of `node.prev`: when `prev` leaves, its step C
        // writes `node.prev` as well, and it finds us by `prev.next`. Partner: the full exchange
        // of `next` in `take_named`.
        prev.node().next.store(me.0, Release);

        loop {
            if node.is_granted() {
                return true;
            }
            // Relaxed: `prev` changes under us when the predecessor leaves (its step C); the old
            // one costs a turn of the loop.
            let prev = Code(node.prev.load(Relaxed));
            if task::need_resched() || task::vcpu_is_preempted(prev.cpu()) {
                return self.unqueue(me, node);
            }
            cpu_relax();
        }
    }

    /// Leaves the queue from any place but the head's. `true` if that came first.
    #[inline(never)]
    fn unqueue(&self, me: Code, node: &Node) -> bool {
        let Some(prev) = node.detach_from_prev(me) else {
            EVENTS.inc(Event::GrantedLeaving);
            return true;
        };

        stall!(SP5);
        // Step B: the successor, held still; or we are last, and the tail goes back.
        let Some(next) = self.take_next(me, node, prev) else {
            EVENTS.inc(Event::UnqueueTail);
            return false;
        };

        stall!(SP5);
        // Step C: link the neighbours. `prev` waits for a `next` (step A took ours from it), and
        // `next` waits in its step A or for a grant, since our `next` no longer names it.
        next.node().prev.store(prev.0, Relaxed);
        // ORDERING: Release, as in `wait`: `next.prev` is set before `prev` can find `next`.
        prev.node().next.store(next.0, Release);
        EVENTS.inc(Event::UnqueueMiddle);
        false
    }

    /// Takes the successor out of `node.next`, or moves the tail from `me` to `back`, the one
    /// before us, when nobody is behind us.
    ///
    /// It has to be taken and not just read: the successor's step A competes for it, and would
    /// otherwise succeed later against a node that is gone.
    fn take_next(&self, me: Code, node: &Node, back: Code) -> Option<Code> {
        loop {
            // Relaxed: only a look whether the exchange is worth it.
            if node.next.load(Relaxed) != Code::NONE.0 {
                if let Some(next) = node.take_named() {
                    return Some(next);
                }
            }
            // Relaxed: the exchange decides.
            if self.tail.load(Relaxed) == me.0
                // ORDERING: Full. Acquire: after this, `back` may unlock or leave, which must come
                // after our step A. Release pairs with the exchange in `lock`: our node is clean.
                && self.tail.cmpxchg(me.0, back.0, Full).is_ok()
            {
                return None;
            }
            // The successor is between its exchange of the tail and its store to `next`, or it is
            // leaving: then the tail comes back to us or step C brings another.
            cpu_relax();
        }
    }

    /// Gives up the head's place, to the next in line if there is one.
    #[inline]
    pub(crate) fn unlock(&self, pin: &PreemptDisabled) {
        let me = Code::of_cpu(pin.cpu());
        // ORDERING: Release pairs with the exchange in `lock`.
        if self.tail.cmpxchg(me.0, Code::NONE.0, Release).is_err() {
            self.hand_over(me);
        }
    }

    #[cold]
    fn hand_over(&self, me: Code) {
        let node = me.node();
        // Nearly always the successor is there, and its line is better written than first looked at.
        let next = node
            .take_named()
            .or_else(|| self.take_next(me, node, Code::NONE));
        if let Some(next) = next {
            // INVARIANT: 3.
            // ORDERING: Release pairs with the acquire in `is_granted`.
            next.node().locked.store(1, Release);
        }
    }
}

impl Node {
    /// Takes the successor out of `next`, if there is one.
    #[inline(always)]
    fn take_named(&self) -> Option<Code> {
        // INVARIANT: 1, `next` is clean again.
        // ORDERING: Full, acquire pairs with the release of our `next` in `wait` and in step C: the
        // successor's `prev` is set before we overwrite it.
        let next = Code(self.next.xchg(Code::NONE.0, Full));
        (next != Code::NONE).then_some(next)
    }

    /// Whether the head's place was given to us.
    #[inline(always)]
    fn is_granted(&self) -> bool {
        // ORDERING: Acquire pairs with the release in `hand_over`.
        self.locked.load(Acquire) != 0
    }

    /// Step A of leaving: takes ourselves out of the predecessor's `next`, so that it can neither
    /// grant us the head's place nor leave before we are gone. The predecessor, or `None` when it
    /// granted the place first.
    fn detach_from_prev(&self, me: Code) -> Option<Code> {
        loop {
            // Relaxed: it names a node at any time, ours to try.
            let prev = Code(self.prev.load(Relaxed));
            let link = &prev.node().next;
            // Relaxed: the exchange decides.
            if link.load(Relaxed) == me.0
                // ORDERING: Full, before step B: the predecessor, which finds its `next` empty,
                // waits for our step C or for the tail. Partner: the exchange in `take_named`.
                && link.cmpxchg(me.0, Code::NONE.0, Full).is_ok()
            {
                return Some(prev);
            }
            // Only two things take us out of `prev.next`: its `unlock`, and then the grant comes;
            if self.is_granted() {
                return None;
            }
            cpu_relax();
            // or its own step B, and then its step C gives us another `prev`.
        }
    }
}
