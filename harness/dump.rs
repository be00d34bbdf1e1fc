// SPDX-License-Identifier: GPL-2.0

//! Locks under test as someone else sees them: `dump/<lock>`.
//!
//! A run that is stuck is the one that this is for. So nothing here waits for the lock: its words are
//! read as they are, and its queue under the wait lock if that is free at one of a few tries. The
//! list of locks keeps those that are looked at, so that a run may end meanwhile.

use super::{
    counted::{
        AsLock,
        CountGuard,
        Counted, //
    },
    subject::TestLock, //
};
use crate::{
    kapi::{
        debugfs::Text,
        peers,
        percpu_peer, //
    },
    percpu_rwsem,
    semaphore::{
        self,
        Look,
        Protocol, //
    },
    waiters::{
        Kind,
        WaiterLook, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        global_lock,
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// Who has a lock and waits for it, at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    /// Someone has it, or is about to take back a try.
    pub(super) held: bool,
    /// So many sleep for it.
    pub(super) sleepers: usize,
    /// Someone spins for it.
    pub(super) spinners: bool,
    /// It is promised to one who sleeps.
    pub(super) handoff: bool,
    /// Its word fits those who sleep.
    pub(super) agrees: bool,
}

impl Standing {
    /// Nobody uses the lock.
    pub(super) const AT_REST: Self = Self {
        held: false,
        sleepers: 0,
        spinners: false,
        handoff: false,
        agrees: true,
    };
}

/// A lock that can be looked at while others use it, or are stuck in it.
pub(super) trait Inspect {
    /// Shows words and queue, a line `key: value` each.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn dump(&self, out: &mut Text) -> Result;

    /// See [`Subject::standing`](super::subject::Subject::standing).
    fn standing(&self) -> Option<Standing> {
        None
    }

    /// Whether the lock under its queue is taken: a hint. `None` where there is none to look at.
    fn wait_lock_is_taken(&self) -> Option<bool> {
        None
    }
}

/// A lock in use.
struct Live {
    name: &'static str,
    lock: Arc<dyn TestLock>,
}

global_lock! {
    // SAFETY: `init` is called before anything that uses it.
    unsafe(uninit) static LIVE: Mutex<KVec<Live>> = KVec::new();
}

/// Makes the list ready.
///
/// # Safety
///
/// Called once, before any lock is listed or shown.
pub(super) unsafe fn init() {
    // SAFETY: By the contract.
    unsafe { LIVE.init() };
}

/// Lists `lock`, of the type `name`.
///
/// # Errors
///
/// `ENOMEM`.
pub(super) fn list(name: &'static str, lock: &Arc<dyn TestLock>) -> Result {
    let live = Live {
        name,
        lock: lock.clone(),
    };
    Ok(LIVE.lock().push(live, GFP_KERNEL)?)
}

/// Takes `lock` off the list, if it is there.
pub(super) fn unlist(lock: &Arc<dyn TestLock>) {
    let mut live = LIVE.lock();
    let at = live.iter().position(|live| Arc::ptr_eq(&live.lock, lock));
    let gone = at.and_then(|at| live.remove(at).ok());
    if live.is_empty() {
        // A static is never dropped: the module would leave the list's memory behind.
        *live = KVec::new();
    }
    drop(live);
    // Its memory goes when nobody looks at it any more.
    drop(gone);
}

/// Shows all locks of the type `name` that are in use.
///
/// # Errors
///
/// `ENOMEM`.
pub(super) fn show(name: &str, out: &mut Text) -> Result {
    let mut found: KVec<Arc<dyn TestLock>> = KVec::new();
    for live in LIVE.lock().iter().filter(|live| live.name == name) {
        found.push(live.lock.clone(), GFP_KERNEL)?;
    }
    for lock in &found {
        out.put(fmt!("lock: {name}\n"))?;
        lock.dump(out)?;
    }
    Ok(())
}

/// How often the wait lock is tried for, a millisecond apart.
const TRIES: u32 = 50;

/// Looks at `lock` until the queue is seen, or was tried for often enough.
fn look_patiently<L: Protocol>(lock: &L) -> Look {
    let mut look = semaphore::look(lock);
    for _ in 1..TRIES {
        if look.ring.is_some() {
            break;
        }
        fsleep(Delta::from_millis(1));
        look = semaphore::look(lock);
    }
    look
}

impl<L: Protocol> Inspect for L {
    fn wait_lock_is_taken(&self) -> Option<bool> {
        Some(self.queue.wait_lock().is_locked())
    }

    fn dump(&self, out: &mut Text) -> Result {
        let look = look_patiently(self);
        // For debuggers: these files are root's.
        out.put(fmt!("address: {:#x}\n", core::ptr::from_ref(self).addr()))?;
        out.put(fmt!("count: {:#x}\n", look.count))?;
        put_holders(out, look.holders.writer, look.holders.readers)?;
        if look.holders.handoff {
            out.put(fmt!("handoff: yes\n"))?;
        }
        let owner = look.owner.owner;
        out.put(fmt!("owner: {:#x}", owner.raw()))?;
        match look.owner.writer {
            Some(pid) => out.put(fmt!(" writer pid {pid}"))?,
            None if owner.is_reader() => out.put(fmt!(" readers"))?,
            None => {}
        }
        if owner.is_nonspinnable() {
            out.put(fmt!(" nonspinnable"))?;
        }
        match look.spinner {
            Some(cpu) => out.put(fmt!("\nspinners: last on CPU {cpu}\n"))?,
            None => out.put(fmt!("\nspinners: none\n"))?,
        }
        let Some(ring) = look.ring else {
            return out.put(fmt!("sleepers: unknown, the wait lock is taken\n"));
        };
        out.put(fmt!("sleepers: {}\n", ring.waiters))?;
        for waiter in ring.first.iter().flatten() {
            put_waiter(out, waiter)?;
        }
        Ok(())
    }

    fn standing(&self) -> Option<Standing> {
        let look = semaphore::look(self);
        Some(Standing {
            held: look.holders.any(),
            sleepers: look.ring?.waiters,
            spinners: look.spinner.is_some(),
            handoff: look.holders.handoff,
            agrees: look.agrees,
        })
    }
}

fn put_holders(out: &mut Text, writer: bool, readers: u64) -> Result {
    match (writer, readers) {
        (true, _) => out.put(fmt!("holder: writer\n")),
        (false, 0) => out.put(fmt!("holder: none\n")),
        (false, readers) => out.put(fmt!("holder: {readers} readers\n")),
    }
}

fn put_waiter(out: &mut Text, waiter: &WaiterLook) -> Result {
    let kind = match waiter.kind {
        Kind::Reader => "reader",
        Kind::Writer => "writer",
    };
    let promised = if waiter.handoff { " handoff" } else { "" };
    out.put(fmt!(
        "sleeper: {kind} pid {} for {} ms{promised}\n",
        waiter.pid,
        waiter.waited_ms
    ))
}

impl Inspect for peers::RwSemaphore {
    fn wait_lock_is_taken(&self) -> Option<bool> {
        Some(self.wait_lock_is_taken())
    }

    fn dump(&self, out: &mut Text) -> Result {
        let (count, owner) = self.words();
        out.put(fmt!("count: {count:#x}\nowner: {owner:#x}\n"))
    }
}

impl Inspect for peers::Mutex {
    fn dump(&self, out: &mut Text) -> Result {
        out.put(fmt!("owner: {:#x}\n", self.owner()))
    }
}

impl Inspect for percpu_peer::PercpuRwSemaphore {
    fn dump(&self, out: &mut Text) -> Result {
        out.put(fmt!("no words\n"))
    }
}

impl<P: percpu_rwsem::Policy> Inspect for percpu_rwsem::PercpuRwSem<P> {
    fn dump(&self, out: &mut Text) -> Result {
        let look = self.look();
        out.put(fmt!("block: {:#x}\n", look.block))?;
        put_holders(out, look.writer, look.readers.into())?;
        out.put(fmt!(
            "excluders: {}\nsleepers: {}\n",
            look.excluders,
            if look.waiters { "some" } else { "0" }
        ))
    }
}

impl<R: Counted> Inspect for AsLock<R> {
    /// The lock is taken for a moment if it is free: it spins, and nobody sleeps with it.
    fn dump(&self, out: &mut Text) -> Result {
        match self.try_lock() {
            Some(guard) => {
                let count = guard.count();
                drop(guard);
                out.put(fmt!("holder: none\ncount: {count}\n"))
            }
            None => out.put(fmt!("holder: someone\n")),
        }
    }
}
