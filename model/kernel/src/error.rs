// SPDX-License-Identifier: GPL-2.0

//! Error codes.

use std::convert::Infallible;

/// A kernel error number, negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error(i32);

impl Error {
    /// The number, negative.
    pub fn to_errno(self) -> i32 {
        self.0
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A result with a kernel error.
pub type Result<T = (), E = Error> = core::result::Result<T, E>;

/// The codes that locks return.
pub mod code {
    use super::Error;

    /// Interrupted by a signal.
    pub const EINTR: Error = Error(-4);
    /// No memory.
    pub const ENOMEM: Error = Error(-12);
}
