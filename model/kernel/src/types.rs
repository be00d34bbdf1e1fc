// SPDX-License-Identifier: GPL-2.0

//! Marker types.

use core::marker::PhantomData;

/// Keeps a type in its thread.
pub type NotThreadSafe = PhantomData<*mut ()>;

/// The value of that type.
#[allow(non_upper_case_globals)]
pub const NotThreadSafe: NotThreadSafe = PhantomData;
