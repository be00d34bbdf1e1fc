// SPDX-License-Identifier: GPL-2.0

//! Accesses to shared memory, told to the data race detector: the compiler instruments C for it and
//! not Rust. Empty in normal builds; those of `make DEBUG=1` tell it on kernels that have it.
//!
//! C header: [`include/linux/kcsan-checks.h`](srctree/include/linux/kcsan-checks.h).

/// The caller reads `what` by plain accesses, which race with all writes.
#[inline(always)]
pub(crate) fn reads<T: ?Sized>(what: &T) {
    #[cfg(klocks_debug)]
    // SAFETY: The address is only recorded and compared.
    unsafe {
        super::shim::kapi_kcsan_check(
            core::ptr::from_ref(what).cast_mut().cast(),
            size_of_val(what),
            false,
        )
    };
    #[cfg(not(klocks_debug))]
    let _ = what;
}

/// The caller writes `what` by plain accesses, which race with all others.
#[inline(always)]
pub(crate) fn writes<T: ?Sized>(what: &T) {
    #[cfg(klocks_debug)]
    // SAFETY: The address is only recorded and compared.
    unsafe {
        super::shim::kapi_kcsan_check(
            core::ptr::from_ref(what).cast_mut().cast(),
            size_of_val(what),
            true,
        )
    };
    #[cfg(not(klocks_debug))]
    let _ = what;
}
