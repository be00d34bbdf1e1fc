// SPDX-License-Identifier: GPL-2.0

//! Mutants: scripts/model marks the places of a copy of the lock files in which something can be
//! changed, and `MODEL_MUTANT` says which change is made. One build has them all.

use crate::sync::atomic::ordering::{
    Acquire,
    AcquireOrRelaxed,
    Full,
    Ordering,
    Release,
    ReleaseOrRelaxed, //
};
use std::{
    marker::PhantomData,
    sync::{atomic::Ordering as C11, LazyLock}, //
};

/// The mutant that is run; the unchanged lock files are number 0.
static MUTANT: LazyLock<usize> = LazyLock::new(|| match std::env::var("MODEL_MUTANT") {
    Ok(text) => text.parse().expect("MODEL_MUTANT is a number"),
    Err(_) => 0,
});

/// Whether mutant `number` is run, which leaves something out.
pub fn is_mutant(number: usize) -> bool {
    *MUTANT == number
}

/// An ordering that has weaker ones.
pub trait Weaken: Ordering {
    /// These.
    const WEAKER: &'static [C11];
}

impl Weaken for Full {
    const WEAKER: &'static [C11] = &[C11::Acquire, C11::Release, C11::Relaxed];
}

impl Weaken for Acquire {
    const WEAKER: &'static [C11] = &[C11::Relaxed];
}

impl Weaken for Release {
    const WEAKER: &'static [C11] = &[C11::Relaxed];
}

/// The ordering `O`, in a place where it is the first of the weaker ones in mutant `N`, the second in
/// the next one, and so on.
pub struct Weakened<O, const N: usize>(PhantomData<O>);

impl<O: Weaken, const N: usize> Weakened<O, N> {
    /// That of `_ordering`.
    pub fn of(_ordering: O) -> Self {
        Self(PhantomData)
    }

    fn instead() -> Option<C11> {
        let index = MUTANT.checked_sub(N)?;
        O::WEAKER.get(index).copied()
    }
}

impl<O: Weaken, const N: usize> Ordering for Weakened<O, N> {
    fn c11() -> C11 {
        Self::instead().unwrap_or_else(O::c11)
    }

    fn is_full() -> bool {
        Self::instead().is_none() && O::is_full()
    }
}

impl<O: Weaken + AcquireOrRelaxed, const N: usize> AcquireOrRelaxed for Weakened<O, N> {}
impl<O: Weaken + ReleaseOrRelaxed, const N: usize> ReleaseOrRelaxed for Weakened<O, N> {}
