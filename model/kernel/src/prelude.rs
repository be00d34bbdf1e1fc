// SPDX-License-Identifier: GPL-2.0

//! What nearly all files use.

pub use crate::{
    error::{code::*, Error, Result},
    pr_warn, try_pin_init,
};
pub use core::{ffi::CStr, pin::Pin};
pub use klocks_model_macros::kunit_tests;
pub use pin_init::{init, pin_data, pin_init, pinned_drop, Init, PinInit};
