// SPDX-License-Identifier: GPL-2.0

//! The engine behind the files in `bench/`: settings, one run at a time, results.
//!
//! ```text
//!   idle ──start──> running ──> done      all blocks ran
//!                           ──> failed    a check failed, or the run could not go on
//!                           ──> stopped   on demand, with nothing found
//! ```
//!
//! and from each of the last three by the next start to running again.
//!
//! A run is a controller thread. It holds the module's reference and gives it up as its last act,
//! so that the module cannot go before; whoever looks at the engine after that joins the thread.
//! When workers are stuck the state says `failed` at once, and the run stays, with all that the
//! workers use, for as long as they are.

use super::knobs::Knobs;
use crate::kapi::{
    debugfs::Text,
    kthread::{
        Body,
        Kthread,
        Placement, //
    },
    machine,
    module::ModuleRef, //
};
use kernel::{
    fmt,
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        CondVar,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// How often a stop looks whether the run is over.
const STOP_STEP: Delta = Delta::from_millis(10);

/// What became of the last run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    Done,
    Failed,
    Stopped,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// What workers look at while they work, on a cache line that is only read until the run stops.
#[repr(align(64))]
pub(super) struct Control {
    stop: Atomic<bool>,
}

impl Control {
    /// Whether the run is to end early.
    #[inline(always)]
    pub(super) fn stopped(&self) -> bool {
        // Relaxed: no data comes with it.
        self.stop.load(Relaxed)
    }

    fn set(&self, stop: bool) {
        // Relaxed: as above.
        self.stop.store(stop, Relaxed);
    }
}

/// Settings, the run and its results.
#[pin_data]
pub(super) struct Engine {
    module: &'static ThisModule,
    control: Arc<Control>,
    #[pin]
    inner: Mutex<Inner>,
    /// A run has ended.
    #[pin]
    ended: CondVar,
}

struct Inner {
    knobs: Knobs,
    /// The number of the last run, from 1.
    number: u64,
    state: State,
    /// Blocks that are over, and all.
    progress: (u64, u64),
    results: Text,
    /// The controller of the last run, until it is joined.
    controller: Option<Kthread<Controller>>,
    /// There while a run goes on.
    module: Option<ModuleRef>,
    /// A check failed or the run could not go on.
    failed: bool,
    /// Workers did not stop; the run may never be over.
    stuck: bool,
    /// Operations of all blocks.
    ops: u64,
}

impl Engine {
    /// An engine that has not run, for `module`.
    pub(super) fn new(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            module,
            control: Arc::new(
                Control {
                    stop: Atomic::new(false),
                },
                GFP_KERNEL
            )?,
            inner <- new_mutex!(Inner {
                knobs: Knobs::new(),
                number: 0,
                state: State::Idle,
                progress: (0, 0),
                results: Text::new(),
                controller: None,
                module: None,
                failed: false,
                stuck: false,
                ops: 0,
            }),
            ended <- new_condvar!(),
        })
    }

    /// The settings.
    pub(super) fn knobs(&self) -> Knobs {
        self.inner.lock().knobs
    }

    /// Changes the settings by `change`, or leaves all as it was when that fails.
    ///
    /// # Errors
    ///
    /// `EBUSY` during a run, or the error of `change`.
    pub(super) fn set(&self, change: impl FnOnce(&mut Knobs) -> Result) -> Result {
        let mut inner = self.inner.lock();
        if inner.is_running() {
            return Err(EBUSY);
        }
        let mut knobs = inner.knobs;
        change(&mut knobs)?;
        inner.knobs = knobs;
        Ok(())
    }

    /// Starts a run with the present settings, and returns its number.
    ///
    /// # Errors
    ///
    /// `EBUSY` during another, `EINVAL` when the settings do not go together, `ENOMEM`.
    pub(super) fn start(self: &Arc<Self>) -> Result<u64> {
        self.join();
        let mut inner = self.inner.lock();
        if inner.is_running() {
            return Err(EBUSY);
        }
        let knobs = inner.knobs;
        (knobs.scenario.check)(&knobs)?;
        let module = ModuleRef::get(self.module)?;
        let controller = Kthread::create(
            c"klocks_bench",
            0,
            Placement::default(),
            Arc::new(
                Controller {
                    engine: self.clone(),
                    knobs,
                },
                GFP_KERNEL,
            )?,
        )?;
        inner.results.clear();
        inner.state = State::Running;
        inner.progress = (0, (knobs.scenario.blocks)(&knobs));
        inner.failed = false;
        inner.stuck = false;
        inner.ops = 0;
        inner.module = Some(module);
        self.control.set(false);
        controller.wake();
        inner.controller = Some(controller);
        inner.number = inner.number.wrapping_add(1);
        Ok(inner.number)
    }

    /// Runs to the end. Whether it went well is for [`Engine::show_state`] to say.
    ///
    /// # Errors
    ///
    /// Those of [`Engine::start`]; `EINTR` when a signal came, after the run was stopped for it.
    pub(super) fn run(self: &Arc<Self>) -> Result {
        let number = self.start()?;
        let mut inner = self.inner.lock();
        while inner.is_running() && inner.number == number {
            if self.ended.wait_interruptible(&mut inner) {
                drop(inner);
                // A run that is stuck stays behind; its results say so.
                let _ = self.stop();
                return Err(EINTR);
            }
        }
        drop(inner);
        self.join();
        Ok(())
    }

    /// Stops the run, if there is one, and waits for its end.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT` when workers are stuck.
    pub(super) fn stop(&self) -> Result {
        if self.inner.lock().is_running() {
            self.control.set(true);
        }
        // Bounded: the controller finds out when workers are stuck.
        loop {
            let inner = self.inner.lock();
            if !inner.is_running() {
                break;
            }
            if inner.stuck {
                return Err(ETIMEDOUT);
            }
            drop(inner);
            fsleep(STOP_STEP);
        }
        self.join();
        Ok(())
    }

    /// Joins the controller of a run that is over, so that the module is free to go.
    pub(super) fn join(&self) {
        let mut inner = self.inner.lock();
        let controller = if inner.is_running() {
            None
        } else {
            inner.controller.take()
        };
        drop(inner);
        // Not under the lock, though it would not take long: the thread is at its end.
        drop(controller);
    }

    /// Shows the state.
    pub(super) fn show_state(&self, out: &mut Text) -> Result {
        self.join();
        let state = self.inner.lock().state;
        out.put(fmt!("{}\n", state.name()))
    }

    /// Shows the number of blocks that are over, and of all.
    pub(super) fn show_progress(&self, out: &mut Text) -> Result {
        let (done, total) = self.inner.lock().progress;
        out.put(fmt!("{done} {total}\n"))
    }

    /// Shows the results of the last run, or as much as there is of this one's.
    pub(super) fn show_results(&self, out: &mut Text) -> Result {
        out.append(&self.inner.lock().results)
    }
}

impl Inner {
    /// Whether a run is not over. It may have failed already.
    fn is_running(&self) -> bool {
        self.module.is_some()
    }

    /// Adds a line to the results that says why the run has failed.
    fn fail(&mut self, why: fmt::Arguments<'_>) {
        self.failed = true;
        // Without memory for the reason, the state still says it.
        let _ = self.results.put(fmt!("failure: {why}\n"));
    }
}

/// The engine, of which every thread is joined in the end.
pub(super) struct Joined(pub(super) Arc<Engine>);

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.join();
    }
}

/// The thread that carries out a run.
struct Controller {
    engine: Arc<Engine>,
    knobs: Knobs,
}

impl Body for Controller {
    fn run(&self) {
        let session = Session {
            engine: &self.engine,
        };
        let result = session
            .put_header(&self.knobs)
            .and_then(|()| (self.knobs.scenario.run)(&self.knobs, &session));

        let mut inner = self.engine.inner.lock();
        let stopped = session.stopped();
        if let Err(e) = result {
            inner.fail(fmt!("the run could not go on, error {}", e.to_errno()));
        } else if inner.ops == 0 && !stopped && !inner.failed {
            inner.fail(fmt!("the lock was never acquired"));
        }
        inner.state = if inner.failed {
            State::Failed
        } else if stopped {
            State::Stopped
        } else {
            State::Done
        };
        let module = inner.module.take();
        drop(inner);
        self.engine.ended.notify_all();
        drop(module);
    }
}

/// A run as its scenario sees it.
pub(super) struct Session<'a> {
    engine: &'a Engine,
}

impl Session<'_> {
    /// What workers look at.
    pub(super) fn control(&self) -> Arc<Control> {
        self.engine.control.clone()
    }

    /// Whether to end early.
    pub(super) fn stopped(&self) -> bool {
        self.engine.control.stopped()
    }

    /// Adds to the results.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn put(&self, text: fmt::Arguments<'_>) -> Result {
        self.engine.inner.lock().results.put(text)
    }

    /// Says that the run has failed, and why. It goes on.
    pub(super) fn fail(&self, why: fmt::Arguments<'_>) {
        self.engine.inner.lock().fail(why);
    }

    /// Says that `workers` workers are stuck in some way, and makes the others end.
    pub(super) fn stuck(&self, workers: u32, how: &str) {
        self.engine.control.set(true);
        let mut inner = self.engine.inner.lock();
        inner.fail(fmt!("stuck: {workers} workers {how}"));
        inner.state = State::Failed;
        inner.stuck = true;
        pr_err!("stuck: {} workers {}\n", workers, how);
    }

    /// Counts a block that is over.
    pub(super) fn block_done(&self) {
        let mut inner = self.engine.inner.lock();
        inner.progress.0 = inner.progress.0.saturating_add(1);
    }

    /// Counts operations that were done. A run without any is no success.
    pub(super) fn count_ops(&self, ops: u64) {
        let mut inner = self.engine.inner.lock();
        inner.ops = inner.ops.saturating_add(ops);
    }

    /// Says what runs where.
    fn put_header(&self, knobs: &Knobs) -> Result {
        let inline = yes_no(machine::INLINE_HELPERS);
        let cpus = machine::cpu_count();
        let Knobs {
            scenario,
            seed,
            ops,
            blocks,
            think,
            skew,
            roles,
            ..
        } = knobs;
        let oversubscribed = yes_no(knobs.threads > cpus);
        self.put(fmt!("kernel: {}\n", machine::kernel_release()))?;
        self.put(fmt!("module: {}\n", machine::MODULE_BUILD))?;
        self.put(fmt!("config-inline-helpers: {inline}\n"))?;
        self.put(fmt!("preempt: {}\n", machine::preempt_model()))?;
        self.put(fmt!("hz: {}\nvcpus: {cpus}\n", machine::HZ))?;
        self.put(fmt!("rustc: {}\n", machine::rustc_version()))?;
        self.put(fmt!("scenario: {}\nseed: {seed}\n", scenario.name))?;
        self.put(fmt!("ops: {ops}\nblocks: {blocks}\n"))?;
        self.put(fmt!("roles: {roles}\n"))?;
        self.put(fmt!("check: {}\n", u32::from(knobs.check)))?;
        self.put(fmt!("pin: {}\n", u32::from(knobs.pin)))?;
        self.put(fmt!("think: {think}\nskew: {skew}\n"))?;
        self.put(fmt!("oversubscribed: {oversubscribed}\n"))
    }
}

fn yes_no(yes: bool) -> &'static str {
    if yes {
        "yes"
    } else {
        "no"
    }
}
