// SPDX-License-Identifier: GPL-2.0

//! Kernel threads that are always joined, and signals for them.
//!
//! C headers: [`include/linux/kthread.h`](srctree/include/linux/kthread.h),
//! [`include/linux/signal.h`](srctree/include/linux/signal.h).

use super::machine::CpusStay;
use core::ptr::NonNull;
use kernel::{
    bindings,
    cpumask::Cpumask,
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Completion, //
    }, //
};

/// What a thread does.
pub(crate) trait Body: Send + Sync + 'static {
    /// Runs in the thread: once if it is ever woken, else never. The thread ends when this returns.
    fn run(&self);
}

/// A body, and whether it runs. C's `kthread_stop()` lets a thread that was woken but has not come to
/// its function yet end without it, and those who wait for what the function does wait for ever.
#[pin_data]
struct Part<B> {
    body: Arc<B>,
    #[pin]
    begun: Completion,
}

/// How a thread is to run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Placement {
    /// The only CPU that it may run on; any when `None`.
    pub(crate) cpu: Option<u32>,
    /// `SCHED_FIFO` at the kernel's default priority, instead of `SCHED_NORMAL`.
    pub(crate) fifo: bool,
}

/// A kernel thread. Dropping it waits for the thread's end, without a time limit: the owner first
/// sees to it that the body returns. A leaked one leaks the body too, so that a thread which is
/// never joined keeps what it uses.
///
/// # Invariants
///
/// `task` is a thread of [`Kthread::create`] that nobody has stopped, and a reference to it is
/// held. The thread uses `part` only, which is not dropped before the thread's end.
pub(crate) struct Kthread<B: Body> {
    task: NonNull<bindings::task_struct>,
    woken: Atomic<bool>,
    /// Kept for the thread.
    part: Arc<Part<B>>,
}

// SAFETY: A thread may be woken and joined from any other.
unsafe impl<B: Body> Send for Kthread<B> {}
// SAFETY: As above.
unsafe impl<B: Body> Sync for Kthread<B> {}

impl<B: Body> Kthread<B> {
    /// A thread called `name/index` that does not run before [`Kthread::wake`].
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EINTR` when the caller is being killed.
    pub(crate) fn create(
        name: &'static CStr,
        index: u32,
        placement: Placement,
        body: Arc<B>,
    ) -> Result<Self> {
        let part = Arc::pin_init(
            pin_init!(Part {
                body,
                begun <- Completion::new(),
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: `entry` gets the pointer that it asks for, see the type's invariants; the format
        // consumes a string and an unsigned number.
        let task = from_err_ptr(unsafe {
            bindings::kthread_create_on_node(
                Some(entry::<B>),
                core::ptr::from_ref::<Part<B>>(&part).cast_mut().cast(),
                bindings::NUMA_NO_NODE,
                c"%s/%u".as_char_ptr(),
                name.as_char_ptr(),
                index,
            )
        })?;
        let task = NonNull::new(task).ok_or(ENOMEM)?;
        // SAFETY: The task is new and not yet awake, as binding it asks for.
        unsafe {
            bindings::get_task_struct(task.as_ptr());
            if let Some(cpu) = placement.cpu {
                bindings::kthread_bind(task.as_ptr(), cpu);
            }
            if placement.fifo {
                bindings::sched_set_fifo(task.as_ptr());
            }
        }
        // INVARIANT: Just created, reference taken; `part` is stored beside.
        Ok(Self {
            task,
            woken: Atomic::new(false),
            part,
        })
    }

    /// Lets the thread run. From here on it is sure to run its body.
    pub(crate) fn wake(&self) {
        // Relaxed: read when nobody shares the thread any more.
        self.woken.store(true, Relaxed);
        // SAFETY: We hold a reference.
        unsafe { bindings::wake_up_process(self.task.as_ptr()) };
    }

    /// How many references to the thread's task there are.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn references(&self) -> i32 {
        // SAFETY: We hold a reference. The field changes under us, as volatile as in C.
        unsafe { (&raw const (*self.task.as_ptr()).usage.refs.counter).read_volatile() }
    }

    /// Whether the thread has gone to sleep, off its CPU and its queue, and nobody has woken it since: a
    /// hint. One that was preempted between saying that it sleeps and doing so is not asleep.
    pub(crate) fn is_asleep(&self) -> bool {
        let task = self.task.as_ptr();
        // SAFETY: We hold a reference. The fields change under us, as volatile as in C.
        let (on_cpu, on_rq, state) = unsafe {
            (
                (&raw const (*task).on_cpu).read_volatile(),
                (&raw const (*task).on_rq).read_volatile(),
                (&raw const (*task).__state).read_volatile(),
            )
        };
        on_cpu == 0
            && on_rq == 0
            && state != bindings::TASK_RUNNING
            && state != bindings::TASK_WAKING
    }

    /// Lets the thread run on `cpus` only, as far as these are there. The kernel lets a thread of its own
    /// be moved to a CPU that is about to go and has been cleared of such threads: hence the guard.
    ///
    /// # Errors
    ///
    /// `EINVAL` when none of them runs.
    pub(crate) fn move_to(&self, cpus: &Cpumask, _stay: &CpusStay) -> Result {
        // SAFETY: We hold a reference; the mask is valid and only read.
        to_result(unsafe { bindings::set_cpus_allowed_ptr(self.task.as_ptr(), cpus.as_raw()) })
    }

    /// Sends `signal`, which the thread minds if it has called [`allow_signals`] before.
    pub(crate) fn signal(&self, signal: Signal) {
        // SAFETY: We hold a reference. Private: as from the kernel, so no permission is asked for.
        unsafe { bindings::send_sig(signal.number(), self.task.as_ptr(), 1) };
    }
}

impl<B: Body> Drop for Kthread<B> {
    fn drop(&mut self) {
        // Relaxed: whoever woke it has handed the thread over since.
        if self.woken.load(Relaxed) {
            // A stop that comes first would skip the body.
            self.part.begun.wait_for_completion();
        }
        // SAFETY: By the invariants not stopped before and referenced. A thread that was never
        // woken ends without running its body.
        unsafe {
            bindings::kthread_stop(self.task.as_ptr());
            bindings::put_task_struct(self.task.as_ptr());
        }
    }
}

/// Whether the owner of the running thread waits for its end. For threads of [`Kthread`] only.
pub(crate) fn should_stop() -> bool {
    // SAFETY: In a kthread, by the above.
    unsafe { bindings::kthread_should_stop() }
}

/// Signals that end a wait.
#[derive(Clone, Copy)]
pub(crate) enum Signal {
    /// Ends interruptible waits.
    Interrupt,
    /// Ends killable waits too.
    Kill,
}

impl Signal {
    fn number(self) -> c_int {
        // CAST: Signals are small numbers.
        match self {
            Self::Interrupt => bindings::SIGINT as c_int,
            Self::Kill => bindings::SIGKILL as c_int,
        }
    }
}

/// From here on signals end the waits of the running thread, a thread of [`Kthread`]: by themselves
/// kernel threads ignore them. A signal stays pending until [`flush_signals`].
pub(crate) fn allow_signals() {
    /// `SIG_KTHREAD`: noticed and not acted upon.
    const NOTICED: usize = 2;
    for signal in [Signal::Interrupt, Signal::Kill] {
        // SAFETY: Changes the running thread's own table of handlers; the pointer is one of those
        // that stand for no function.
        unsafe {
            bindings::kernel_sigaction(
                signal.number(),
                core::mem::transmute::<usize, bindings::__sighandler_t>(NOTICED),
            )
        };
    }
}

/// Forgets the signals that have come to the running thread.
pub(crate) fn flush_signals() {
    // SAFETY: The running task is alive.
    unsafe { bindings::flush_signals(kernel::task::Task::current_raw()) };
}

/// # Safety
///
/// `part` points to a `Part<B>` that lives until this returns.
unsafe extern "C" fn entry<B: Body>(part: *mut c_void) -> c_int {
    // SAFETY: By the contract.
    let part = unsafe { &*part.cast_const().cast::<Part<B>>() };
    part.begun.complete_all();
    part.body.run();
    0
}

#[kunit_tests(klocks_kthread)]
mod tests {
    use super::*;
    use crate::kapi::task::{
        self,
        Sleep, //
    };
    use kernel::time::{
        delay::fsleep,
        Delta, //
    };

    struct Count(Atomic<u32>);

    impl Body for Count {
        fn run(&self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn bodies_run(woken: bool) -> Result<u32> {
        let count = Arc::new(Count(Atomic::new(0)), GFP_KERNEL)?;
        for index in 0..100 {
            let thread =
                Kthread::create(c"klocks_test", index, Placement::default(), count.clone())?;
            if woken {
                thread.wake();
            }
        }
        // Relaxed: the threads have been joined.
        Ok(count.0.load(Relaxed))
    }

    #[test]
    fn woken_and_dropped_at_once_runs() {
        assert!(matches!(bodies_run(true), Ok(100)));
    }

    #[test]
    fn never_woken_does_not_run() {
        assert!(matches!(bodies_run(false), Ok(0)));
    }

    /// Sleeps until a signal comes, and forgets all that have come when no more will.
    struct Sleeper {
        over: Atomic<bool>,
        no_more: Atomic<bool>,
        forgot: Atomic<bool>,
    }

    impl Body for Sleeper {
        fn run(&self) {
            allow_signals();
            loop {
                Sleep::Killable.prepare();
                if Sleep::Killable.signal_pending() {
                    break;
                }
                task::schedule();
            }
            task::set_running();
            // Relaxed, here and below: nothing comes with these words.
            self.over.store(true, Relaxed);
            while !self.no_more.load(Relaxed) {
                fsleep(Delta::from_millis(1));
            }
            flush_signals();
            self.forgot
                .store(!Sleep::Killable.signal_pending(), Relaxed);
        }
    }

    #[test]
    fn kill_ends_a_killable_wait() -> Result {
        let sleeper = Sleeper {
            over: Atomic::new(false),
            no_more: Atomic::new(false),
            forgot: Atomic::new(false),
        };
        let sleeper = Arc::new(sleeper, GFP_KERNEL)?;
        let thread = Kthread::create(c"klocks_test", 0, Placement::default(), sleeper.clone())?;
        thread.wake();
        // Again and again: one that comes before the thread allows it is lost.
        while !sleeper.over.load(Relaxed) {
            thread.signal(Signal::Kill);
            fsleep(Delta::from_millis(1));
        }
        sleeper.no_more.store(true, Relaxed);
        drop(thread);
        assert!(sleeper.forgot.load(Relaxed));
        Ok(())
    }
}
