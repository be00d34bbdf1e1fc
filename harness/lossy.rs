// SPDX-License-Identifier: GPL-2.0

//! A lock that excludes, and now and then forgets to wake: what the sampler and the watchdog are for.
//!
//! It goes on forgetting, since one wake-up that is missing is made up for by the next as long as others
//! come by. Who was forgotten looks again by itself after a while, and then it wakes again: so a run with
//! it comes to an end.

use super::dump::Inspect;
use crate::{
    kapi::debugfs::Text,
    rwlock::RawRwLock, //
};
use kernel::{
    new_condvar,
    prelude::*,
    sync::{
        lock::{
            mutex::MutexBackend,
            Guard, //
        },
        CondVar,
        CondVarTimeoutResult,
        LockClassKey,
        Mutex, //
    },
    time::msecs_to_jiffies, //
};

/// After so many releases it wakes nobody any more.
const FORGETS: u64 = 100;
/// After so many milliseconds who waits looks again.
const AGAIN_MS: u32 = 8000;

/// See the module.
#[pin_data]
pub(super) struct Lossy {
    #[pin]
    state: Mutex<State>,
    #[pin]
    freed: CondVar,
}

struct State {
    readers: u32,
    writer: bool,
    /// Since it last forgot to wake.
    releases: u64,
}

impl Lossy {
    /// Changes the state by `step` as soon as that says that it may.
    fn take(&self, step: impl Fn(&mut State) -> bool) {
        let mut state = self.state.lock();
        while !step(&mut state) {
            // Nobody sends signals.
            let woken = self
                .freed
                .wait_interruptible_timeout(&mut state, msecs_to_jiffies(AGAIN_MS));
            if matches!(woken, CondVarTimeoutResult::Timeout) {
                state.releases = 0;
            }
        }
    }

    fn release(&self, mut state: Guard<'_, State, MutexBackend>) {
        state.releases = state.releases.wrapping_add(1);
        if state.releases < FORGETS {
            self.freed.notify_all();
        }
    }
}

impl State {
    fn read(&mut self) -> bool {
        let free = !self.writer;
        self.readers = self.readers.saturating_add(u32::from(free));
        free
    }

    fn write(&mut self) -> bool {
        let free = !self.writer && self.readers == 0;
        self.writer |= free;
        free
    }
}

// SAFETY: A writer gets in while nobody is inside, readers while no writer is; the mutex orders them.
unsafe impl RawRwLock for Lossy {
    type ReadToken = ();

    fn init(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            state <- Mutex::new(
                State {
                    readers: 0,
                    writer: false,
                    releases: 0,
                },
                name,
                key,
            ),
            freed <- new_condvar!(),
        })
    }

    fn down_read(&self) {
        self.take(State::read);
    }

    fn down_read_trylock(&self) -> Option<()> {
        self.state.lock().read().then_some(())
    }

    unsafe fn up_read(&self, _token: ()) {
        let mut state = self.state.lock();
        state.readers = state.readers.saturating_sub(1);
        self.release(state);
    }

    fn down_write(&self) {
        self.take(State::write);
    }

    unsafe fn up_write(&self) {
        let mut state = self.state.lock();
        state.writer = false;
        self.release(state);
    }
}

impl Inspect for Lossy {
    fn dump(&self, out: &mut Text) -> Result {
        let state = self.state.lock();
        let (readers, writer) = (state.readers, u32::from(state.writer));
        drop(state);
        out.put(fmt!("readers: {readers}\nwriter: {writer}\n"))
    }
}
