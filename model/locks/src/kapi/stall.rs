// SPDX-License-Identifier: GPL-2.0

//! Stall points: the checkers delay everywhere.

/// Nothing.
macro_rules! stall {
    ($name:ident) => {};
}
pub(crate) use stall;
