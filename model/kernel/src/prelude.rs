// SPDX-License-Identifier: GPL-2.0

//! What nearly all files use.

pub use crate::{
    error::{code::*, Error, Result},
    try_pin_init,
};
pub use core::ffi::CStr;
pub use klocks_model_macros::kunit_tests;
pub use pin_init::{init, pin_data, pin_init, Init, PinInit};
