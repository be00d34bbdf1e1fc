// SPDX-License-Identifier: GPL-2.0

//! `Atomic<T>` with the kernel's interface, on a word of the model checker.

use crate::model::{fence, Word};
use std::{
    ptr,
    sync::atomic::Ordering as C11, //
};

pub use ordering::{Acquire, Full, Relaxed, Release};

/// Orderings as types.
pub mod ordering {
    use super::C11;

    /// No order.
    pub struct Relaxed;
    /// What follows stays behind the read.
    pub struct Acquire;
    /// What precedes stays before the write.
    pub struct Release;
    /// A full barrier before and after.
    pub struct Full;

    /// Any of them.
    pub trait Ordering {
        /// The same in C11, but for [`Full`], which is a sequentially consistent fence as well.
        fn c11() -> C11;
        /// Whether it is [`Full`].
        fn is_full() -> bool {
            false
        }
    }

    impl Ordering for Relaxed {
        fn c11() -> C11 {
            C11::Relaxed
        }
    }
    impl Ordering for Acquire {
        fn c11() -> C11 {
            C11::Acquire
        }
    }
    impl Ordering for Release {
        fn c11() -> C11 {
            C11::Release
        }
    }
    impl Ordering for Full {
        fn c11() -> C11 {
            C11::AcqRel
        }
        fn is_full() -> bool {
            true
        }
    }

    /// Orderings of a load.
    pub trait AcquireOrRelaxed: Ordering {}
    impl AcquireOrRelaxed for Acquire {}
    impl AcquireOrRelaxed for Relaxed {}

    /// Orderings of a store.
    pub trait ReleaseOrRelaxed: Ordering {}
    impl ReleaseOrRelaxed for Release {}
    impl ReleaseOrRelaxed for Relaxed {}
}

/// What an [`Atomic`] can hold: anything that goes through a `u64` and back.
///
/// # Safety
///
/// `decode` is the inverse of `encode`.
pub unsafe trait AtomicType: Copy {
    /// The value as the checker's word.
    fn encode(self) -> u64;
    /// The value of a word that `encode` has made.
    fn decode(word: u64) -> Self;
}

/// A type that `Rhs` can be added to: encoded sums are sums of encodings, wrapped.
///
/// # Safety
///
/// As said.
pub unsafe trait AtomicAdd<Rhs: AtomicType = Self>: AtomicType {}

macro_rules! atomic_types {
    ($($t:ty: $value:ident => $encode:expr, $word:ident => $decode:expr;)*) => {$(
        // SAFETY: One is the inverse of the other.
        unsafe impl AtomicType for $t {
            fn encode(self) -> u64 {
                let $value = self;
                $encode
            }
            fn decode($word: u64) -> Self {
                $decode
            }
        }
        // SAFETY: Encodings are the values, or the values in the upper half: both wrap alike.
        unsafe impl AtomicAdd for $t {}
    )*};
}

atomic_types! {
    u64: v => v, w => w;
    i64: v => v as u64, w => w as i64;
    usize: v => v as u64, w => w as usize;
    isize: v => v as u64, w => w as isize;
    u32: v => u64::from(v) << 32, w => (w >> 32) as u32;
    i32: v => u64::from(v as u32) << 32, w => (w >> 32) as i32;
}

// SAFETY: 0 and 1.
unsafe impl AtomicType for bool {
    fn encode(self) -> u64 {
        self.into()
    }
    fn decode(word: u64) -> Self {
        word != 0
    }
}

// SAFETY: Its address. The checker's memory has no provenance, so it is exposed.
unsafe impl<T> AtomicType for *mut T {
    fn encode(self) -> u64 {
        self.expose_provenance() as u64
    }
    fn decode(word: u64) -> Self {
        ptr::with_exposed_provenance_mut(word as usize)
    }
}

// SAFETY: As above.
unsafe impl<T> AtomicType for *const T {
    fn encode(self) -> u64 {
        self.expose_provenance() as u64
    }
    fn decode(word: u64) -> Self {
        ptr::with_exposed_provenance(word as usize)
    }
}

/// What a live [`Atomic`] has in its `live` field.
const LIVE: u64 = 0x6c69_7665_776f_7264;

/// A shared word.
pub struct Atomic<T: AtomicType> {
    /// [`LIVE`] until it is dropped, so that late accesses are noticed.
    live: u64,
    init: T,
    /// The checker's word; none in a static, which has another one in each execution.
    word: Option<Word>,
}

// SAFETY: All accesses go through the model checker, which runs its threads in one of the system's.
unsafe impl<T: AtomicType> Send for Atomic<T> {}
// SAFETY: As above.
unsafe impl<T: AtomicType> Sync for Atomic<T> {}

impl<T: AtomicType> Atomic<T> {
    /// A word that holds `v`.
    pub const fn new(v: T) -> Self {
        core::intrinsics::const_eval_select((v,), Self::new_in_static, Self::new_in_execution)
    }

    const fn new_in_static(init: T) -> Self {
        Self {
            live: LIVE,
            init,
            word: None,
        }
    }

    fn new_in_execution(init: T) -> Self {
        Self {
            live: LIVE,
            init,
            word: Some(Word::new(init.encode())),
        }
    }

    #[track_caller]
    fn with<R>(&self, operation: impl FnOnce(&Word) -> R) -> R {
        // SAFETY: A reference is valid; volatile because faulty code may have dropped its target.
        let live = unsafe { ptr::read_volatile(&self.live) };
        assert!(live == LIVE, "use after free of a shared word");
        match &self.word {
            Some(word) => operation(word),
            None => Word::of_static(ptr::from_ref(self).addr(), self.init.encode(), operation),
        }
    }

    /// Reads it.
    #[track_caller]
    pub fn load<Ordering: ordering::AcquireOrRelaxed>(&self, _: Ordering) -> T {
        T::decode(self.with(|word| word.load(Ordering::c11())))
    }

    /// Writes it.
    #[track_caller]
    pub fn store<Ordering: ordering::ReleaseOrRelaxed>(&self, v: T, _: Ordering) {
        self.with(|word| word.store(v.encode(), Ordering::c11()));
    }

    /// Writes it; what it was.
    #[track_caller]
    pub fn xchg<Ordering: ordering::Ordering>(&self, v: T, _: Ordering) -> T {
        let before = self.with(|word| word.swap(v.encode(), Ordering::c11()));
        barrier_if_full::<Ordering>();
        T::decode(before)
    }

    /// Writes it if it is `old`; what it was. Orders nothing when it fails.
    #[track_caller]
    pub fn cmpxchg<Ordering: ordering::Ordering>(
        &self,
        old: T,
        new: T,
        _: Ordering,
    ) -> Result<T, T> {
        match self.with(|word| word.exchange_if(old.encode(), new.encode(), Ordering::c11())) {
            Ok(_) => {
                barrier_if_full::<Ordering>();
                Ok(old)
            }
            Err(now) => Err(T::decode(now)),
        }
    }

    /// For the stand-ins of what blocks: waits, not spinning, until `step` makes something of the
    /// value, and stores that; what it was. `now` is what it is taken for at first.
    #[track_caller]
    pub fn update_blocking<Ordering: ordering::Ordering>(
        &self,
        now: T,
        step: impl Fn(T) -> Option<T>,
        _: Ordering,
    ) -> T {
        let step = |word| step(T::decode(word)).map(T::encode);
        let before = self.with(|word| word.update_when(now.encode(), step, Ordering::c11()));
        barrier_if_full::<Ordering>();
        T::decode(before)
    }

    /// Adds to it.
    #[track_caller]
    pub fn add<Rhs: AtomicType>(&self, v: Rhs, ordering: Relaxed)
    where
        T: AtomicAdd<Rhs>,
    {
        self.fetch_add(v, ordering);
    }

    /// Adds to it; what it was.
    #[track_caller]
    pub fn fetch_add<Rhs: AtomicType, Ordering: ordering::Ordering>(&self, v: Rhs, _: Ordering) -> T
    where
        T: AtomicAdd<Rhs>,
    {
        let before = self.with(|word| word.fetch_add(v.encode(), Ordering::c11()));
        barrier_if_full::<Ordering>();
        T::decode(before)
    }

    /// Subtracts from it; what it was.
    #[track_caller]
    pub fn fetch_sub<Rhs: AtomicType, Ordering: ordering::Ordering>(&self, v: Rhs, _: Ordering) -> T
    where
        T: AtomicAdd<Rhs>,
    {
        let before = self.with(|word| word.fetch_add(v.encode().wrapping_neg(), Ordering::c11()));
        barrier_if_full::<Ordering>();
        T::decode(before)
    }
}

/// The checker takes sequentially consistent accesses for acquire and release: the barrier of a
/// `Full` operation has to be there by itself.
fn barrier_if_full<Ordering: ordering::Ordering>() {
    if Ordering::is_full() {
        fence(C11::SeqCst);
    }
}

impl<T: AtomicType> Drop for Atomic<T> {
    fn drop(&mut self) {
        // SAFETY: Valid for writes; volatile since it is for those who come too late.
        unsafe { ptr::write_volatile(&mut self.live, 0) };
    }
}
