// SPDX-License-Identifier: GPL-2.0

//! The C interface: what `include/klocks.h` declares.
//!
//! Each function is one call of the Rust function of that name. Neither side can drift from the
//! other unnoticed: bindgen reads the header, and the module does not build unless every signature,
//! and the size and alignment of every structure, is that of the Rust function or type.
//!
//! # Safety
//!
//! The header asks of callers what the Rust functions ask of theirs; the `SAFETY` comments refer to
//! it as "the header's contract". For all functions: the pointer is to a lock that was initialised,
//! does not move, and that nobody frees meanwhile; and names and class keys live longer than the
//! lock that they are given to.

use crate::{
    lockref::LockRef,
    percpu_rwsem::{
        Percpu,
        PercpuRwSem, //
    },
    rcu_sync::{
        Any,
        RcuSync, //
    },
    rwlock::{
        RawRwLock,
        RawRwSem, //
    },
    rwsem,
    rwsem_xadd,
    semaphore::RareForms, //
};
use core::{
    mem::{
        forget,
        offset_of,
        ManuallyDrop, //
    },
    ops::Deref,
    pin::Pin, //
};
use kernel::{
    bindings,
    prelude::*,
    sync::LockClassKey, //
};

/// What the header declares, over the Rust types.
#[expect(unreachable_pub, reason = "generated")]
#[allow(
    improper_ctypes,
    dead_code,
    non_camel_case_types,
    non_upper_case_globals,
    reason = "generated"
)]
mod header {
    use super::*;

    pub type kl_rwsem = rwsem::RwSem<rwsem::Rwsem>;
    pub type kl_rwsem_xadd = rwsem_xadd::RwSem<rwsem_xadd::Xadd>;
    pub type kl_lockref = LockRef;
    pub type kl_rcu_sync = RcuSync<Any>;
    pub type kl_percpu_rwsem = PercpuRwSem<Percpu>;

    include!(concat!(env!("KLOCKS_OBJ"), "/capi_bindings.rs"));
}
use header::{
    kl_lockref,
    kl_percpu_rwsem,
    kl_rcu_sync,
    kl_rwsem,
    kl_rwsem_xadd, //
};

/// Has the build fail where a structure in the header is not as large as the Rust type, or not as
/// aligned.
macro_rules! same_layout {
    ($($type:ident)*) => { kernel::macros::paste! {$(
        const _: () = assert!(
            header::[<$type _SIZE>] == size_of::<header::$type>()
                && header::[<$type _ALIGN>] == align_of::<header::$type>(),
            concat!("struct ", stringify!($type), " in include/klocks.h differs from the Rust type"),
        );
    )*}};
}

same_layout! { kl_rwsem kl_rwsem_xadd kl_lockref kl_rcu_sync kl_percpu_rwsem }

/// The same for the place of `dep_map`, the one member that C looks at. A read-write semaphore is its
/// words alone.
const _: () = assert!(
    header::kl_rwsem_DEP_MAP == offset_of!(<kl_rwsem as Deref>::Target, dep_map)
        && header::kl_rwsem_xadd_DEP_MAP == offset_of!(<kl_rwsem_xadd as Deref>::Target, dep_map)
        && header::kl_percpu_rwsem_DEP_MAP == offset_of!(kl_percpu_rwsem, dep),
    "the place of dep_map in include/klocks.h differs from that in the Rust type",
);

/// Exports functions to C under their names, after comparing them with the header.
macro_rules! export {
    ($(
        fn $name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)? $body:block
    )*) => {$(
        // Branches of one `if` have one type.
        const _: () = {
            if true {
                header::$name
            } else {
                $name
            };
        };

        /// See `include/klocks.h`.
        ///
        /// # Safety
        ///
        /// The header's contract.
        #[no_mangle]
        unsafe extern "C" fn $name($($arg: $type),*) $(-> $ret)? $body
    )*};
}

/// The lock behind a pointer from C.
///
/// # Safety
///
/// The header's contract.
#[inline(always)]
unsafe fn lock<'a, L>(lock: *mut L) -> &'a L {
    // SAFETY: By the contract.
    unsafe { &*lock }
}

/// A name and a class key from C.
///
/// # Safety
///
/// The header's contract.
unsafe fn class(
    name: *const c_char,
    key: *mut bindings::lock_class_key,
) -> (&'static CStr, Pin<&'static LockClassKey>) {
    // SAFETY: They live for as long as the lock does, so for as long as they are used; the key is in
    // static memory of the caller, and `LockClassKey` is a transparent wrapper of it.
    unsafe {
        (
            CStr::from_char_ptr(name),
            Pin::static_ref(&*key.cast::<LockClassKey>()),
        )
    }
}

/// Makes a lock where C has memory for it.
///
/// # Safety
///
/// `slot` is valid for writes, and nobody uses what is there.
unsafe fn init<L, E>(slot: *mut L, init: impl PinInit<L, E>) -> Result<(), E> {
    // SAFETY: By the contract; the header says that the lock does not move.
    unsafe { init.__init(slot) }
}

/// C's `int`: 0 or an error.
fn to_int(result: Result) -> c_int {
    result.map_or_else(Error::to_errno, |()| 0)
}

/// Exports a read-write semaphore: the functions of `$kl`, all by the same rules.
macro_rules! export_rwsem {
    ($kl:ident) => { kernel::macros::paste! { export! {
        fn [<$kl _init>](sem: *mut $kl, name: *const c_char, key: *mut bindings::lock_class_key) {
            // SAFETY: By the header's contract.
            let (name, key) = unsafe { class(name, key) };
            // These semaphores need no memory, so nothing can fail.
            // SAFETY: As above.
            let _ = unsafe { init(sem, $kl::new(name, key)) };
        }

        fn [<$kl _down_read>](sem: *mut $kl) {
            // SAFETY: By the header's contract, as in all of these.
            unsafe { lock(sem) }.down_read();
        }

        fn [<$kl _down_read_interruptible>](sem: *mut $kl) -> c_int {
            // SAFETY: As above.
            to_int(unsafe { lock(sem) }.down_read_interruptible())
        }

        fn [<$kl _down_read_killable>](sem: *mut $kl) -> c_int {
            // SAFETY: As above.
            to_int(unsafe { lock(sem) }.down_read_killable())
        }

        fn [<$kl _down_read_trylock>](sem: *mut $kl) -> bool {
            // SAFETY: As above.
            unsafe { lock(sem) }.down_read_trylock().is_some()
        }

        fn [<$kl _down_read_nested>](sem: *mut $kl, subclass: c_uint) {
            // SAFETY: As above.
            unsafe { lock(sem) }.down_read_nested(subclass);
        }

        fn [<$kl _down_read_killable_nested>](sem: *mut $kl, subclass: c_uint) -> c_int {
            // SAFETY: As above.
            to_int(unsafe { lock(sem) }.down_read_killable_nested(subclass))
        }

        fn [<$kl _down_read_non_owner>](sem: *mut $kl) {
            // SAFETY: As above.
            unsafe { lock(sem) }.down_read_non_owner();
        }

        fn [<$kl _up_read>](sem: *mut $kl) {
            // SAFETY: As above; the caller holds it for reading.
            unsafe { lock(sem).up_read(()) };
        }

        fn [<$kl _up_read_non_owner>](sem: *mut $kl) {
            // SAFETY: As above; it was taken by `down_read_non_owner`.
            unsafe { lock(sem).up_read_non_owner() };
        }

        fn [<$kl _down_write>](sem: *mut $kl) {
            // SAFETY: As above.
            unsafe { lock(sem) }.down_write();
        }

        fn [<$kl _down_write_killable>](sem: *mut $kl) -> c_int {
            // SAFETY: As above.
            to_int(unsafe { lock(sem) }.down_write_killable())
        }

        fn [<$kl _down_write_trylock>](sem: *mut $kl) -> bool {
            // SAFETY: As above.
            unsafe { lock(sem) }.down_write_trylock()
        }

        fn [<$kl _down_write_nested>](sem: *mut $kl, subclass: c_uint) {
            // SAFETY: As above.
            unsafe { lock(sem) }.down_write_nested(subclass);
        }

        fn [<$kl _down_write_killable_nested>](sem: *mut $kl, subclass: c_uint) -> c_int {
            // SAFETY: As above.
            to_int(unsafe { lock(sem) }.down_write_killable_nested(subclass))
        }

        fn [<$kl _up_write>](sem: *mut $kl) {
            // SAFETY: As above; the caller holds it for writing.
            unsafe { lock(sem).up_write() };
        }

        fn [<$kl _downgrade_write>](sem: *mut $kl) {
            // SAFETY: As above; the caller holds it for writing.
            unsafe { lock(sem).downgrade_write() };
        }

        fn [<$kl _is_locked>](sem: *mut $kl) -> bool {
            // SAFETY: As above.
            unsafe { lock(sem) }.is_locked()
        }

        fn [<$kl _is_contended>](sem: *mut $kl) -> bool {
            // SAFETY: As above.
            unsafe { lock(sem) }.is_contended()
        }
    }}};
}

export_rwsem! { kl_rwsem }
export_rwsem! { kl_rwsem_xadd }

export! {
    fn __kl_lockref_init(
        lockref: *mut kl_lockref,
        name: *const c_char,
        key: *mut bindings::lock_class_key
    ) {
        // SAFETY: By the header's contract.
        let (name, key) = unsafe { class(name, key) };
        // SAFETY: As above.
        let Ok(()) = unsafe { init(lockref, kl_lockref::new(name, key)) };
    }

    fn kl_lockref_get(lockref: *mut kl_lockref) {
        // SAFETY: By the header's contract, as in all of these.
        unsafe { lock(lockref) }.get();
    }

    fn kl_lockref_get_not_zero(lockref: *mut kl_lockref) -> bool {
        // SAFETY: As above.
        unsafe { lock(lockref) }.get_not_zero()
    }

    fn kl_lockref_get_not_dead(lockref: *mut kl_lockref) -> bool {
        // SAFETY: As above.
        unsafe { lock(lockref) }.get_not_dead()
    }

    fn kl_lockref_put_return(lockref: *mut kl_lockref) -> c_int {
        // SAFETY: As above.
        unsafe { lock(lockref) }.put_return().unwrap_or(-1)
    }

    fn kl_lockref_put_or_lock(lockref: *mut kl_lockref) -> bool {
        // SAFETY: As above.
        unsafe { lock(lockref) }.put_or_lock().map(forget).is_none()
    }

    fn kl_lockref_lock(lockref: *mut kl_lockref) {
        // SAFETY: As above.
        forget(unsafe { lock(lockref) }.lock());
    }

    fn kl_lockref_trylock(lockref: *mut kl_lockref) -> bool {
        // SAFETY: As above.
        unsafe { lock(lockref) }.try_lock().map(forget).is_some()
    }

    fn kl_lockref_unlock(lockref: *mut kl_lockref) {
        // SAFETY: As above; the caller holds the lock, and guards of it are all leaked.
        drop(unsafe { lock(lockref).assume_locked() });
    }

    fn kl_lockref_mark_dead(lockref: *mut kl_lockref) {
        // SAFETY: As in `kl_lockref_unlock`.
        ManuallyDrop::new(unsafe { lock(lockref).assume_locked() }).mark_dead();
    }

    fn kl_lockref_count(lockref: *mut kl_lockref) -> c_int {
        // SAFETY: As above.
        unsafe { lock(lockref) }.count()
    }

    fn kl_lockref_set_count(lockref: *mut kl_lockref, count: c_int) {
        // SAFETY: As in `kl_lockref_unlock`.
        ManuallyDrop::new(unsafe { lock(lockref).assume_locked() }).set_count(count);
    }

    fn kl_lockref_is_dead(lockref: *mut kl_lockref) -> bool {
        // SAFETY: As above.
        unsafe { lock(lockref) }.is_dead()
    }

    fn kl_lockref_is_dead_or_zero(lockref: *mut kl_lockref) -> bool {
        // SAFETY: As above.
        unsafe { lock(lockref) }.is_dead_or_zero()
    }
}

export! {
    fn kl_rcu_sync_init(rss: *mut kl_rcu_sync) {
        // SAFETY: By the header's contract.
        let Ok(()) = unsafe { init(rss, kl_rcu_sync::new()) };
    }

    fn kl_rcu_sync_is_idle(rss: *mut kl_rcu_sync) -> bool {
        // SAFETY: By the header's contract, as in all of these.
        unsafe { lock(rss) }.is_idle()
    }

    fn kl_rcu_sync_enter(rss: *mut kl_rcu_sync) {
        // SAFETY: As above.
        unsafe { lock(rss) }.enter();
    }

    fn kl_rcu_sync_enter_nowait(rss: *mut kl_rcu_sync) {
        // SAFETY: As above.
        unsafe { lock(rss) }.enter_nowait();
    }

    fn kl_rcu_sync_wait(rss: *mut kl_rcu_sync) {
        // SAFETY: As above.
        unsafe { lock(rss) }.wait();
    }

    fn kl_rcu_sync_exit(rss: *mut kl_rcu_sync) {
        // SAFETY: As above.
        unsafe { lock(rss) }.exit();
    }

    fn kl_rcu_sync_dtor(rss: *mut kl_rcu_sync) {
        // SAFETY: As above; nobody uses it any more.
        unsafe { rss.drop_in_place() };
    }
}

export! {
    fn __kl_percpu_init_rwsem(
        sem: *mut kl_percpu_rwsem,
        name: *const c_char,
        key: *mut bindings::lock_class_key
    ) -> c_int {
        // SAFETY: By the header's contract.
        to_int(unsafe {
            let (name, key) = class(name, key);
            kl_percpu_rwsem::init_at(sem, name, key)
        })
    }

    fn kl_percpu_free_rwsem(sem: *mut kl_percpu_rwsem) {
        // SAFETY: By the header's contract.
        unsafe { kl_percpu_rwsem::free_at(sem) };
    }

    fn kl_percpu_down_read(sem: *mut kl_percpu_rwsem) {
        // SAFETY: By the header's contract, as in all of these.
        unsafe { lock(sem) }.down_read();
    }

    fn kl_percpu_down_read_freezable(sem: *mut kl_percpu_rwsem) {
        // SAFETY: As above.
        unsafe { lock(sem) }.down_read_freezable();
    }

    fn kl_percpu_down_read_trylock(sem: *mut kl_percpu_rwsem) -> bool {
        // SAFETY: As above.
        unsafe { lock(sem) }.down_read_trylock()
    }

    fn kl_percpu_up_read(sem: *mut kl_percpu_rwsem) {
        // SAFETY: As above; the caller holds it for reading.
        unsafe { lock(sem).up_read() };
    }

    fn kl_percpu_down_write(sem: *mut kl_percpu_rwsem) {
        // SAFETY: As above.
        unsafe { lock(sem) }.down_write();
    }

    fn kl_percpu_up_write(sem: *mut kl_percpu_rwsem) {
        // SAFETY: As above; the caller holds it for writing.
        unsafe { lock(sem).up_write() };
    }

    fn kl_percpu_is_read_locked(sem: *mut kl_percpu_rwsem) -> bool {
        // SAFETY: As above.
        unsafe { lock(sem) }.is_read_locked()
    }

    fn kl_percpu_is_write_locked(sem: *mut kl_percpu_rwsem) -> bool {
        // SAFETY: As above.
        unsafe { lock(sem) }.is_write_locked()
    }

    fn kl_percpu_rwsem_release(sem: *mut kl_percpu_rwsem) {
        // SAFETY: As above; the caller holds it.
        unsafe { lock(sem).hand_over() };
    }

    fn kl_percpu_rwsem_acquire(sem: *mut kl_percpu_rwsem, write: bool) {
        // SAFETY: As above; it was given to `kl_percpu_rwsem_release`.
        unsafe { lock(sem).take_over(write) };
    }
}
