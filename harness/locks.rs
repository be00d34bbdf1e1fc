// SPDX-License-Identifier: GPL-2.0

//! The table of all locks that can be measured and tested. A new lock gets an entry here.

use super::{
    counted::{
        AsLock,
        Blocks,
        Counted,
        SpinRef, //
    },
    lossy::Lossy,
    subject::Subject, //
};
use crate::{
    kapi::{
        debugfs::Text,
        events::EventSource,
        lockref::CLockRef,
        peers,
        percpu_peer, //
    },
    lockref::{
        self,
        LockRef, //
    },
    osq,
    percpu_rwsem,
    rwsem,
    rwsem_xadd,
    semaphore, //
};
use kernel::{
    prelude::*,
    sync::static_lock_class, //
};

/// A set of operations.
#[derive(Clone, Copy)]
pub(super) struct Ops(u32);

/// The operations in the order of their bits.
const OP_NAMES: [&str; 13] = [
    "read",
    "try_read",
    "write",
    "read_interruptible",
    "read_killable",
    "try_write",
    "write_killable",
    "downgrade",
    "get",
    "get_not_zero",
    "get_not_dead",
    "put_return",
    "put_or_lock",
];

impl Ops {
    /// What every lock has.
    const PLAIN: Self = Self(0b0000_0111);
    /// What a reference count with its lock has.
    const COUNT: Self = Self(Self::PLAIN.0 | 0b1_1111 << 8);
    /// What a read-write semaphore has.
    const SEMAPHORE: Self = Self(0b1111_1111);

    fn names(self) -> impl Iterator<Item = &'static str> {
        (0..)
            .zip(OP_NAMES)
            .filter(move |(bit, _)| self.0 >> bit & 1 != 0)
            .map(|(_, name)| name)
    }
}

/// A type of lock.
pub(super) struct LockType {
    name: &'static CStr,
    /// What it is, whoever made it.
    family: &'static str,
    ops: Ops,
    /// What it counts in its slow paths, if the harness can read that.
    events: Option<&'static dyn EventSource>,
    /// Whether it locks at all.
    sound: bool,
    new: fn() -> Result<Subject>,
    /// Its blocks in the scenarios of counts, if it is one.
    refs: Option<&'static Blocks>,
}

impl LockType {
    /// What it counts in its slow paths.
    pub(super) fn events(&self) -> Option<&'static dyn EventSource> {
        self.events
    }

    /// Its blocks in the scenarios of counts, if it is one.
    pub(super) fn refs(&self) -> Option<&'static Blocks> {
        self.refs
    }

    /// The name in files and results.
    pub(super) fn name(&self) -> &'static str {
        self.name.to_str().unwrap_or("?")
    }

    /// Whether it has that operation, by its name in the list of locks.
    pub(super) fn can(&self, op: &str) -> bool {
        self.ops.names().any(|name| name == op)
    }

    /// Whether who holds it may sleep.
    pub(super) fn is_sleeping(&self) -> bool {
        self.refs.is_none()
    }

    /// Whether who takes it sleeps for nothing but the lock. (A writer of the per-CPU semaphores may wait
    /// for RCU.)
    pub(super) fn sleeps_for_the_lock_only(&self) -> bool {
        self.family != "percpu_rwsem"
    }

    /// Whether there is an end to how often others may pass who waits for it. The semaphore of 2014 has
    /// no handoff.
    pub(super) fn bounds_waits(&self) -> bool {
        !self.name().starts_with("rwsem_xadd")
    }

    /// A free lock of this type.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn create(&self) -> Result<Subject> {
        (self.new)()?.listed(self.name())
    }
}

/// Without debug options a semaphore of ours takes no more memory than C's of 2014, whatever its policy.
#[cfg(not(any(CONFIG_DEBUG_LOCK_ALLOC, CONFIG_DEBUG_SPINLOCK)))]
const _: () = assert!(
    size_of::<rwsem_xadd::RwSem<rwsem_xadd::Xadd>>() <= 40
        && size_of::<rwsem_xadd::RwSem<rwsem_xadd::Nospin>>() <= 40
        && size_of::<rwsem::RwSem<rwsem::Rwsem>>() <= 40
);

/// An entry for a read-write semaphore of a policy. Each has a lock class of its own.
macro_rules! rwsem {
    ($lock:ident::$policy:ident) => {
        LockType {
            name: <$lock::$policy as semaphore::Policy>::NAME,
            family: "rwsem",
            ops: Ops::SEMAPHORE,
            events: Some(<$lock::$policy as semaphore::Policy>::EVENTS),
            sound: true,
            new: || {
                Subject::semaphore::<$lock::RwSem<$lock::$policy>>((
                    <$lock::$policy as semaphore::Policy>::NAME,
                    static_lock_class!(),
                ))
            },
            refs: None,
        }
    };
}

/// An entry for a per-CPU rwsem of a policy. Each has a lock class of its own.
macro_rules! percpu_rwsem {
    ($policy:ty) => {
        LockType {
            name: <$policy as percpu_rwsem::Policy>::NAME,
            family: "percpu_rwsem",
            ops: Ops::PLAIN,
            events: Some(<$policy as percpu_rwsem::Policy>::EVENTS),
            sound: true,
            new: || {
                Subject::plain::<percpu_rwsem::PercpuRwSem<$policy>>((
                    <$policy as percpu_rwsem::Policy>::NAME,
                    static_lock_class!(),
                ))
            },
            refs: None,
        }
    };
}

/// An entry for a reference count with its lock, which is also an exclusive lock.
macro_rules! counted {
    ($name:expr, $count:ty, $events:expr) => {
        LockType {
            name: $name,
            family: "lockref",
            ops: Ops::COUNT,
            events: $events,
            sound: true,
            new: || Subject::plain::<AsLock<$count>>(<$count>::class()),
            refs: Some(const { &Blocks::of::<$count>() }),
        }
    };
    ($policy:ident) => {
        counted!(
            <lockref::$policy as lockref::Policy>::NAME,
            LockRef<lockref::$policy>,
            Some(<lockref::$policy as lockref::Policy>::EVENTS)
        )
    };
}

/// All of them, in the order in which they are listed.
pub(super) static LOCKS: [LockType; 30] = [
    LockType {
        name: c"mutex",
        family: "mutex",
        ops: Ops::PLAIN,
        events: None,
        sound: true,
        new: || Subject::plain::<peers::Mutex>((c"mutex", static_lock_class!())),
        refs: None,
    },
    LockType {
        name: c"rwsem_c",
        family: "rwsem",
        ops: Ops::SEMAPHORE,
        events: None,
        sound: true,
        new: || Subject::semaphore::<peers::RwSemaphore>((c"rwsem_c", static_lock_class!())),
        refs: None,
    },
    rwsem!(rwsem_xadd::Nospin),
    rwsem!(rwsem_xadd::Base),
    rwsem!(rwsem_xadd::P1),
    rwsem!(rwsem_xadd::P2),
    rwsem!(rwsem_xadd::P3),
    rwsem!(rwsem_xadd::P4),
    rwsem!(rwsem_xadd::P4_16),
    rwsem!(rwsem_xadd::P4Time),
    rwsem!(rwsem_xadd::P4Null),
    rwsem!(rwsem_xadd::P6),
    rwsem!(rwsem_xadd::P7),
    rwsem!(rwsem_xadd::Posted),
    rwsem!(rwsem_xadd::Xadd),
    rwsem!(rwsem::C73),
    rwsem!(rwsem::HandoffStop),
    rwsem!(rwsem::HandoffStopFull),
    rwsem!(rwsem::Rwsem),
    LockType {
        name: c"percpu_rwsem_c",
        family: "percpu_rwsem",
        ops: Ops::PLAIN,
        events: None,
        sound: true,
        new: || {
            Subject::plain::<percpu_peer::PercpuRwSemaphore>((
                c"percpu_rwsem_c",
                static_lock_class!(),
            ))
        },
        refs: None,
    },
    percpu_rwsem!(percpu_rwsem::Percpu),
    percpu_rwsem!(percpu_rwsem::TwoSync),
    percpu_rwsem!(percpu_rwsem::TwoExpedited),
    percpu_rwsem!(percpu_rwsem::ReaderMb),
    counted!(c"lockref_c", CLockRef, None),
    counted!(c"spin_ref", SpinRef, None),
    counted!(Rfc2),
    counted!(C73),
    LockType {
        name: c"lock_busted",
        family: "busted",
        ops: Ops::PLAIN,
        events: None,
        sound: false,
        new: Subject::busted,
        refs: None,
    },
    LockType {
        name: c"lock_lossy",
        family: "busted",
        ops: Ops::PLAIN,
        events: None,
        sound: false,
        new: || Subject::plain::<Lossy>((c"lock_lossy", static_lock_class!())),
        refs: None,
    },
];

/// All that counts events, by name.
pub(super) fn event_sources() -> impl Iterator<Item = (&'static str, &'static dyn EventSource)> {
    let osq: (&str, &dyn EventSource) = ("osq", &osq::EVENTS);
    let counting = LOCKS
        .iter()
        .filter_map(|lock| Some((lock.name(), lock.events?)));
    // Named in full: `pin_init::Init` has a method of that name too.
    Iterator::chain(counting, [osq])
}

/// A line per lock: name, family, operations.
pub(super) fn describe(out: &mut Text) -> Result {
    for lock in &LOCKS {
        out.put(fmt!("{} {}", lock.name(), lock.family))?;
        for op in lock.ops.names() {
            out.put(fmt!(" {op}"))?;
        }
        out.put(fmt!("\n"))?;
    }
    Ok(())
}

/// Some of the locks, at least one.
#[derive(Clone, Copy)]
pub(super) struct Selection(u64);

const _: () = assert!(LOCKS.len() <= u64::BITS as usize);

impl Selection {
    /// All that lock.
    pub(super) fn sound() -> Self {
        Self::of(|lock| lock.sound)
    }

    /// Those in a comma-separated list, each once.
    ///
    /// # Errors
    ///
    /// `EINVAL` when a name is unknown or there twice.
    pub(super) fn parse(list: &str) -> Result<Self> {
        let mut all = Self(0);
        for name in list.split(',') {
            let one = Self::of(|lock| lock.name() == name);
            if one.0 == 0 || all.0 & one.0 != 0 {
                return Err(EINVAL);
            }
            all.0 |= one.0;
        }
        Ok(all)
    }

    /// Those selected.
    pub(super) fn types(self) -> impl Iterator<Item = &'static LockType> {
        self.indices()
            .filter_map(|index| LOCKS.get(usize::from(index)))
    }

    /// The numbers in the table of those selected.
    pub(super) fn indices(self) -> impl Iterator<Item = u8> {
        (0..u64::BITS as u8).filter(move |bit| self.0 >> bit & 1 != 0)
    }

    /// All names, those selected in brackets.
    pub(super) fn show(self, out: &mut Text) -> Result {
        super::show_choice(
            out,
            LOCKS
                .iter()
                .enumerate()
                .map(|(i, lock)| (lock.name(), self.0 >> i & 1 != 0)),
        )
    }

    fn of(wanted: impl Fn(&LockType) -> bool) -> Self {
        let bits = (0..).zip(&LOCKS).filter(|(_, lock)| wanted(lock));
        Self(bits.fold(0, |bits, (i, _): (u32, _)| bits | 1 << i))
    }
}
