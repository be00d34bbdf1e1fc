// SPDX-License-Identifier: GPL-2.0

//! Host stand-in for the parts of the `kernel` crate that lock files use. Their shared words are
//! words of a model checker.

#![feature(core_intrinsics, const_eval_select)]
#![allow(internal_features)]

pub mod error;
pub mod model;
pub mod prelude;
pub mod processor;
pub mod sync;
pub mod types;

/// A key of the place where it stands.
#[macro_export]
macro_rules! static_lock_class {
    () => {{
        static KEY: $crate::sync::LockClassKey = $crate::sync::LockClassKey::new();
        ::core::pin::Pin::static_ref(&KEY)
    }};
}

/// A lock that complains is a failure.
#[macro_export]
macro_rules! pr_warn {
    ($($args:tt)*) => {
        panic!($($args)*)
    };
}

/// As the kernel's: fallible, and the error type need not be named.
#[macro_export]
macro_rules! try_pin_init {
    ($($args:tt)*) => {
        ::pin_init::pin_init!(
            #[default_error($crate::error::Error)]
            $($args)*
        )
    };
}
