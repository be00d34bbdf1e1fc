// SPDX-License-Identifier: GPL-2.0

//! A client in Rust: the guards of every lock and the other public types of klocks, used from another
//! crate. `client.sh` loads it and reads the results of its KUnit suite.

use kernel::prelude::*;

module! {
    type: Client,
    name: "kl_client_rs",
    authors: ["klocks developers"],
    description: "Tests klocks from Rust",
    license: "GPL",
}

struct Client;

impl kernel::Module for Client {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}

#[kunit_tests(kl_client_rs)]
mod tests {
    use super::*;
    use core::mem::ManuallyDrop;
    use kernel::{
        sync::{
            atomic::{
                Atomic,
                Full, //
            },
            rcu,
            static_lock_class,
            Arc,
            Completion, //
        },
        workqueue, //
    };
    use klocks::{
        lockref::{
            LockRef,
            RefLock,
            C73, //
        },
        new_locked,
        percpu_rwsem::PercpuRwSemaphore,
        rcu_sync::{
            Rcu,
            RcuSync, //
        },
        rwlock::{
            Locked,
            RawRwLock,
            RawRwSem, //
        },
        rwsem::RwSemaphore,
        rwsem_xadd::RwSemaphoreXadd, //
    };
    use pin_init::stack_pin_init;

    const TASKS: u32 = 4;
    const ROUNDS: u32 = 500;

    /// Two words that differ only while a writer is at work.
    #[pin_data]
    struct Scene<R: RawRwLock> {
        #[pin]
        words: Locked<(u32, u32), R>,
        torn: Atomic<u32>,
        left: Atomic<u32>,
        #[pin]
        done: Completion,
    }

    impl<R: RawRwLock> Scene<R> {
        fn work(&self, rounds: u32) {
            for _ in 0..rounds {
                {
                    let mut words = self.words.write();
                    words.0 += 1;
                    words.1 += 1;
                }
                let words = self.words.read();
                self.torn.fetch_add(u32::from(words.0 != words.1), Full);
            }
            if self.left.fetch_sub(1, Full) == 1 {
                self.done.complete_all();
            }
        }
    }

    /// Whether tasks at once, on the kernel's own queue, lose no write and see none half done. The
    /// queue cannot be flushed: a task may have some instructions left, far less than other cases.
    fn excludes<R: RawRwLock + 'static>(rounds: u32) -> Result<bool> {
        let scene = Arc::pin_init(
            try_pin_init!(Scene {
                words <- new_locked!((0, 0), "kl_client_rs"),
                torn: Atomic::new(0),
                left: Atomic::new(TASKS),
                done <- Completion::new(),
            }),
            GFP_KERNEL,
        )?;
        for _ in 0..TASKS {
            let theirs: Arc<Scene<R>> = scene.clone();
            workqueue::system_unbound().try_spawn(GFP_KERNEL, move || theirs.work(rounds))?;
        }
        scene.done.wait_for_completion();
        let sum = TASKS * rounds;
        let words = scene.words.read();
        Ok(*words == (sum, sum) && scene.torn.load(kernel::sync::atomic::Relaxed) == 0)
    }

    fn excludes_type<T, R: RawRwLock + 'static>(
        _alias: fn(Locked<T, R>),
        rounds: u32,
    ) -> Result<bool> {
        excludes::<R>(rounds)
    }

    #[test]
    fn rwsem_excludes() -> Result {
        assert!(excludes_type(drop::<RwSemaphore<()>>, ROUNDS)?);
        Ok(())
    }

    #[test]
    fn rwsem_xadd_excludes() -> Result {
        assert!(excludes_type(drop::<RwSemaphoreXadd<()>>, ROUNDS)?);
        Ok(())
    }

    #[test]
    fn percpu_rwsem_excludes() -> Result {
        assert!(excludes_type(drop::<PercpuRwSemaphore<()>>, 20)?);
        Ok(())
    }

    /// Every guard of a semaphore, alone.
    fn guards<R: RawRwSem>(lock: &Locked<u32, R>) -> Result<bool> {
        *lock.write() += 1;
        *lock.write_killable()? += 1;
        let mut ok = *lock.read() == 2 && *lock.read_interruptible()? == 2;
        ok &= *lock.read_killable()? == 2;
        {
            let mut writer = lock.try_write().ok_or(EBUSY)?;
            ok &= lock.try_read().is_none() && lock.try_write().is_none();
            *writer += 1;
            let reader = writer.downgrade();
            ok &= *reader == 3 && lock.try_write().is_none();
            ok &= lock.try_read().is_some();
        }
        ok &= lock.try_write().is_some();
        Ok(ok)
    }

    /// A lock in memory of its own.
    fn lock<R: RawRwLock>(data: u32) -> Result<Pin<KBox<Locked<u32, R>>>> {
        KBox::pin_init(new_locked!(data), GFP_KERNEL)
    }

    #[test]
    fn rwsem_guards() -> Result {
        let lock: Pin<KBox<RwSemaphore<u32>>> = lock(0)?;
        assert!(guards(&lock)?);
        Ok(())
    }

    #[test]
    fn rwsem_xadd_guards() -> Result {
        let lock: Pin<KBox<RwSemaphoreXadd<u32>>> = lock(0)?;
        assert!(guards(&lock)?);
        Ok(())
    }

    #[test]
    fn percpu_rwsem_guards() -> Result {
        let lock: Pin<KBox<PercpuRwSemaphore<u32>>> = lock(1)?;
        assert!(*lock.read() == 1);
        {
            let mut writer = lock.write();
            *writer += 1;
            assert!(lock.try_read().is_none());
        }
        assert!(lock.try_read().is_some_and(|value| *value == 2));
        Ok(())
    }

    /// A guard that is leaked keeps the lock, and that is all.
    #[test]
    fn a_leaked_guard_keeps_the_lock() -> Result {
        let lock: Pin<KBox<RwSemaphore<u32>>> = lock(7)?;
        let mut guard = ManuallyDrop::new(lock.read());
        assert!(lock.try_write().is_none());
        assert!(lock.try_read().is_some_and(|value| *value == 7));
        // SAFETY: Once. A lock that is held must not be freed.
        unsafe { ManuallyDrop::drop(&mut guard) };
        Ok(())
    }

    #[test]
    fn lockref_counts() {
        stack_pin_init!(let lockref = LockRef::<C73>::new(c"kl_client_rs", static_lock_class!()));
        lockref.get();
        assert!(lockref.get_not_zero() && lockref.count() == 3);
        assert!(lockref.put_return() == Some(2));
        assert!(lockref.put_or_lock().is_none());
        let last = lockref.put_or_lock();
        assert!(last.is_some() && lockref.try_lock().is_none());
        if let Some(mut last) = last {
            last.mark_dead();
        }
        assert!(lockref.is_dead() && !lockref.get_not_dead());
    }

    #[test]
    fn reflock_gives_data_under_the_lock() {
        stack_pin_init!(
            let object = RefLock::<u32>::new(1, c"kl_client_rs", static_lock_class!())
        );
        let Some(reference) = object.get() else {
            return;
        };
        *reference.lock() += 1;
        let last = reference.put();
        assert!(last.is_some_and(|last| **last == 2));
        assert!(object.count() == 0);
    }

    #[test]
    fn rcu_sync_gate() -> Result {
        let gate = KBox::pin_init(RcuSync::<Rcu>::new(), GFP_KERNEL)?;
        let idle = || {
            let _reader = rcu::read_lock();
            gate.is_idle()
        };
        assert!(idle());
        gate.enter();
        assert!(!idle());
        gate.exit();
        Ok(())
    }
}
