// SPDX-License-Identifier: GPL-2.0

//! This module as the kernel sees it.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h).

use kernel::{
    bindings,
    module::this_module,
    prelude::*, //
};

/// The kernel's `THIS_MODULE`.
pub(super) const fn as_ptr() -> *mut bindings::module {
    this_module::<crate::LocalModule>().as_ptr()
}

/// A reference to a module: while there is one, `rmmod` fails with `EWOULDBLOCK`. A leaked
/// one keeps the module for good.
#[must_use = "the module can be unloaded as soon as the reference is dropped"]
pub(crate) struct ModuleRef(&'static ThisModule);

impl ModuleRef {
    /// Takes a reference to `module`.
    ///
    /// # Errors
    ///
    /// `ENODEV` when the module is about to go.
    pub(crate) fn get(module: &'static ThisModule) -> Result<Self> {
        // SAFETY: A loaded module by the type.
        if unsafe { bindings::try_module_get(module.as_ptr()) } {
            Ok(Self(module))
        } else {
            Err(ENODEV)
        }
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: Gives back what `get` took.
        unsafe { bindings::module_put(self.0.as_ptr()) };
    }
}

/// Gives the module a version, in `modinfo` and in `/sys/module/klocks/version`: what `module!` has no
/// key for.
macro_rules! version {
    ($version:literal) => {
        const _: () = {
            const TEXT: &str = concat!("version=", $version, "\0");
            #[used]
            #[link_section = ".modinfo"]
            static VERSION: [u8; TEXT.len()] = match TEXT.as_bytes().first_chunk() {
                Some(text) => *text,
                None => unreachable!(),
            };
        };
    };
}
pub(crate) use version;
