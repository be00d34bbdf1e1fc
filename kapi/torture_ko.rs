// SPDX-License-Identifier: GPL-2.0

//! The kernel's rule that there is one torture test at a time.
//!
//! C header: [`include/linux/torture.h`](srctree/include/linux/torture.h). Its functions are in
//! `torture.ko`, which not every kernel has: so they are looked up when they are wanted. While that
//! module is not loaded there is no other test to be kept away. What else it has (stuttering,
//! shuffling, hotplug) is written for tests that cannot do without it; here it would be for some
//! kernels only.

use core::mem::transmute;
use kernel::{
    bindings,
    prelude::*, //
};

/// A function of `torture.ko`, which stays loaded as long as this lives.
struct Symbol {
    name: &'static CStr,
    addr: *mut c_void,
}

impl Symbol {
    /// `None` when `torture.ko` is not loaded.
    fn get(name: &'static CStr) -> Option<Self> {
        // SAFETY: Looks up a name, and takes a reference to its module.
        let addr = unsafe { bindings::__symbol_get(name.as_char_ptr()) };
        (!addr.is_null()).then(|| Self { name, addr })
    }
}

impl Drop for Symbol {
    fn drop(&mut self) {
        // SAFETY: Gives back the reference that `get` has taken.
        unsafe { bindings::__symbol_put(self.name.as_char_ptr()) };
    }
}

/// The right to be the one torture test.
///
/// # Invariants
///
/// The symbols are those that the fields' names say; `torture.ko` has been told of a test.
pub(crate) struct Claim {
    cleanup_begin: Symbol,
    cleanup_end: Symbol,
}

// SAFETY: The functions may be called by any thread.
unsafe impl Send for Claim {}
// SAFETY: As above.
unsafe impl Sync for Claim {}

impl Claim {
    /// Keeps all other torture tests away, as far as they go through `torture.ko`. `None` when that is
    /// not loaded.
    ///
    /// # Errors
    ///
    /// `EBUSY` while another runs.
    pub(crate) fn take() -> Result<Option<Self>> {
        let symbol = |name| Symbol::get(name).ok_or(ENOENT);
        let Ok(begin) = symbol(c"torture_init_begin") else {
            return Ok(None);
        };
        let end = symbol(c"torture_init_end")?;
        let claim = Self {
            cleanup_begin: symbol(c"torture_cleanup_begin")?,
            cleanup_end: symbol(c"torture_cleanup_end")?,
        };
        // SAFETY: The types are those of the header. The name lives for ever; `end` is called by the
        // same thread, right after.
        unsafe {
            let begin: unsafe extern "C" fn(*const c_char, c_int) -> bool = transmute(begin.addr);
            let end: unsafe extern "C" fn() = transmute(end.addr);
            if !begin(c"klocks".as_char_ptr(), 0) {
                // There is nothing to be cleaned up, and the test that runs must not be.
                claim.forget();
                return Err(EBUSY);
            }
            end();
        }
        // INVARIANT: Told just now.
        Ok(Some(claim))
    }

    /// Gives back the symbols and calls nothing.
    fn forget(self) {
        let this = core::mem::ManuallyDrop::new(self);
        // SAFETY: Each is read once, and `this` is not used any more.
        unsafe {
            drop(core::ptr::read(&this.cleanup_begin));
            drop(core::ptr::read(&this.cleanup_end));
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // SAFETY: The types are those of the header; begun by the type's invariant. The first says
        // whether the machine is about to shut down, and then not to call the second.
        unsafe {
            let begin: unsafe extern "C" fn() -> bool = transmute(self.cleanup_begin.addr);
            let end: unsafe extern "C" fn() = transmute(self.cleanup_end.addr);
            if !begin() {
                end();
            }
        }
    }
}
