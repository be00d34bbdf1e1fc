// SPDX-License-Identifier: GPL-2.0

//! The engine behind the files in `bench/` and `torture/`: settings, one run at a time, results.
//! What a run does is its [`Plan`].
//!
//! ```text
//!   idle ──start──> running ──> done      it ran to its end
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

use crate::kapi::{
    debugfs::Text,
    kthread::{
        Body,
        Kthread,
        Placement, //
    },
    machine,
    module::ModuleRef,
    torture_ko::Claim, //
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

/// What a run is to do: its settings, and how it goes.
pub(super) trait Plan: Copy + Send + Sync + Unpin + 'static {
    /// The name of the controller's thread.
    const THREAD: &'static CStr;
    /// How that thread runs.
    const PLACEMENT: Placement;

    /// The settings at the start.
    fn new() -> Self;

    /// Whether the settings go together; `EINVAL` when not.
    fn check(&self) -> Result;

    /// What nobody else may have during the run, if there is such a thing.
    fn claim() -> Result<Option<Claim>>;

    /// How many steps it has, for `progress`.
    fn steps(&self) -> u64;

    /// Runs it to its end, or to the session's.
    fn run(&self, session: &Session<'_>) -> Result;
}

/// Settings of a kind of run, and the run.
#[pin_data]
pub(super) struct Engine<P: Plan> {
    module: &'static ThisModule,
    #[pin]
    settings: Mutex<Settings<P>>,
    #[pin]
    run: Run,
}

struct Settings<P: Plan> {
    plan: P,
    /// The controller of the last run, until it is joined.
    controller: Option<Kthread<Controller<P>>>,
}

/// A run and its results.
#[pin_data]
struct Run {
    control: Arc<Control>,
    /// Taken within the settings' lock, if with that.
    #[pin]
    outcome: Mutex<Outcome>,
    /// A run has ended.
    #[pin]
    ended: CondVar,
}

struct Outcome {
    /// The number of the last run, from 1.
    number: u64,
    state: State,
    /// Steps that are done, and all.
    progress: (u64, u64),
    results: Text,
    /// There while a run goes on.
    holds: Option<Holds>,
    /// A check failed or the run could not go on.
    failed: bool,
    /// Workers did not stop; the run may never be over.
    stuck: bool,
    /// Operations so far.
    ops: u64,
}

/// What a run keeps to its end.
struct Holds {
    _claim: Option<Claim>,
    /// Goes last.
    _module: ModuleRef,
}

impl<P: Plan> Engine<P> {
    /// An engine that has not run, for `module`.
    pub(super) fn new(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            module,
            settings <- new_mutex!(Settings {
                plan: P::new(),
                controller: None,
            }),
            run <- Run::new(),
        })
    }

    /// The settings.
    pub(super) fn plan(&self) -> P {
        self.settings.lock().plan
    }

    /// Changes the settings by `change`, or leaves all as it was when that fails.
    ///
    /// # Errors
    ///
    /// `EBUSY` during a run, or the error of `change`.
    pub(super) fn set(&self, change: impl FnOnce(&mut P) -> Result) -> Result {
        let mut settings = self.settings.lock();
        if self.run.outcome.lock().is_running() {
            return Err(EBUSY);
        }
        let mut plan = settings.plan;
        change(&mut plan)?;
        settings.plan = plan;
        Ok(())
    }

    /// Starts a run with the present settings, and returns its number.
    ///
    /// # Errors
    ///
    /// `EBUSY` during another, `EINVAL` when the settings do not go together, `ENOMEM`.
    pub(super) fn start(self: &Arc<Self>) -> Result<u64> {
        self.join();
        let mut settings = self.settings.lock();
        if self.run.outcome.lock().is_running() {
            return Err(EBUSY);
        }
        let plan = settings.plan;
        plan.check()?;
        let holds = Holds {
            _claim: P::claim()?,
            _module: ModuleRef::get(self.module)?,
        };
        let controller = Controller {
            engine: self.clone(),
            plan,
        };
        let controller = Arc::new(controller, GFP_KERNEL)?;
        let controller = Kthread::create(P::THREAD, 0, P::PLACEMENT, controller)?;
        let number = self.run.begin(holds, plan.steps());
        controller.wake();
        settings.controller = Some(controller);
        Ok(number)
    }

    /// Runs to the end. Whether it went well is for [`Engine::show_state`] to say.
    ///
    /// # Errors
    ///
    /// Those of [`Engine::start`]; `EINTR` when a signal came, after the run was stopped for it.
    pub(super) fn run(self: &Arc<Self>) -> Result {
        let number = self.start()?;
        if self.run.wait_for(number).is_err() {
            // A run that is stuck stays behind; its results say so.
            let _ = self.stop();
            return Err(EINTR);
        }
        self.join();
        Ok(())
    }

    /// Stops the run, if there is one, and waits for its end.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT` when workers are stuck.
    pub(super) fn stop(&self) -> Result {
        self.run.stop()?;
        self.join();
        Ok(())
    }

    /// Joins the controller of a run that is over, so that the module is free to go.
    pub(super) fn join(&self) {
        let mut settings = self.settings.lock();
        let controller = if self.run.outcome.lock().is_running() {
            None
        } else {
            settings.controller.take()
        };
        drop(settings);
        // Not under the lock, though it would not take long: the thread is at its end.
        drop(controller);
    }

    /// Shows the state.
    pub(super) fn show_state(&self, out: &mut Text) -> Result {
        self.join();
        let state = self.run.outcome.lock().state;
        out.put(fmt!("{}\n", state.name()))
    }

    /// Shows the number of steps that are done, and of all.
    pub(super) fn show_progress(&self, out: &mut Text) -> Result {
        let (done, total) = self.run.outcome.lock().progress;
        out.put(fmt!("{done} {total}\n"))
    }

    /// Shows the results of the last run, or as much as there is of this one's.
    pub(super) fn show_results(&self, out: &mut Text) -> Result {
        out.append(&self.run.outcome.lock().results)
    }
}

impl Run {
    fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            control: Arc::new(
                Control {
                    stop: Atomic::new(false),
                },
                GFP_KERNEL
            )?,
            outcome <- new_mutex!(Outcome {
                number: 0,
                state: State::Idle,
                progress: (0, 0),
                results: Text::new(),
                holds: None,
                failed: false,
                stuck: false,
                ops: 0,
            }),
            ended <- new_condvar!(),
        })
    }

    /// A run of so many steps begins; its number.
    fn begin(&self, holds: Holds, steps: u64) -> u64 {
        let mut outcome = self.outcome.lock();
        outcome.results.clear();
        outcome.state = State::Running;
        outcome.progress = (0, steps);
        outcome.failed = false;
        outcome.stuck = false;
        outcome.ops = 0;
        outcome.holds = Some(holds);
        outcome.number = outcome.number.wrapping_add(1);
        self.control.set(false);
        outcome.number
    }

    /// The run is over, with `result`. What it held is given up, which lets the module go.
    fn end(&self, result: Result) {
        let mut outcome = self.outcome.lock();
        let stopped = self.control.stopped();
        if let Err(e) = result {
            outcome.fail(fmt!("the run could not go on, error {}", e.to_errno()));
        } else if outcome.ops == 0 && !stopped && !outcome.failed {
            outcome.fail(fmt!("the lock was never acquired"));
        }
        outcome.state = if outcome.failed {
            State::Failed
        } else if stopped {
            State::Stopped
        } else {
            State::Done
        };
        let holds = outcome.holds.take();
        drop(outcome);
        self.ended.notify_all();
        drop(holds);
    }

    /// Waits for the end of run `number`; `EINTR` when a signal comes first.
    fn wait_for(&self, number: u64) -> Result {
        let mut outcome = self.outcome.lock();
        while outcome.is_running() && outcome.number == number {
            if self.ended.wait_interruptible(&mut outcome) {
                return Err(EINTR);
            }
        }
        Ok(())
    }

    /// Makes the run end early, and waits for that. See [`Engine::stop`].
    fn stop(&self) -> Result {
        if self.outcome.lock().is_running() {
            self.control.set(true);
        }
        // Bounded: the controller finds out when workers are stuck.
        loop {
            let outcome = self.outcome.lock();
            if !outcome.is_running() {
                return Ok(());
            }
            if outcome.stuck {
                return Err(ETIMEDOUT);
            }
            drop(outcome);
            fsleep(STOP_STEP);
        }
    }
}

impl Outcome {
    /// Whether a run is not over. It may have failed already.
    fn is_running(&self) -> bool {
        self.holds.is_some()
    }

    /// Adds a line to the results that says why the run has failed.
    fn fail(&mut self, why: fmt::Arguments<'_>) {
        self.failed = true;
        // Without memory for the reason, the state still says it.
        let _ = self.results.put(fmt!("failure: {why}\n"));
    }
}

/// The engine, of which every thread is joined in the end.
pub(super) struct Joined<P: Plan>(pub(super) Arc<Engine<P>>);

impl<P: Plan> Drop for Joined<P> {
    fn drop(&mut self) {
        self.0.join();
    }
}

/// The thread that carries out a run.
struct Controller<P: Plan> {
    engine: Arc<Engine<P>>,
    plan: P,
}

impl<P: Plan> Body for Controller<P> {
    fn run(&self) {
        let run = &self.engine.run;
        run.end(self.plan.run(&Session { run }));
    }
}

/// A run as its plan sees it.
pub(super) struct Session<'a> {
    run: &'a Run,
}

impl Session<'_> {
    /// What workers look at.
    pub(super) fn control(&self) -> Arc<Control> {
        self.run.control.clone()
    }

    /// Whether to end early.
    pub(super) fn stopped(&self) -> bool {
        self.run.control.stopped()
    }

    /// Adds to the results.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn put(&self, text: fmt::Arguments<'_>) -> Result {
        self.run.outcome.lock().results.put(text)
    }

    /// Adds `text` to the results.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn append(&self, text: &Text) -> Result {
        self.run.outcome.lock().results.append(text)
    }

    /// Says that the run has failed, and why. It goes on.
    pub(super) fn fail(&self, why: fmt::Arguments<'_>) {
        self.run.outcome.lock().fail(why);
    }

    /// Says that `workers` workers are stuck in some way, and makes the others end.
    pub(super) fn stuck(&self, workers: u32, how: &str) {
        self.run.control.set(true);
        let mut outcome = self.run.outcome.lock();
        outcome.fail(fmt!("stuck: {workers} workers {how}"));
        outcome.state = State::Failed;
        outcome.stuck = true;
        pr_err!("stuck: {} workers {}\n", workers, how);
    }

    /// Counts a step that is done, in benchmarks a block.
    pub(super) fn block_done(&self) {
        let mut outcome = self.run.outcome.lock();
        outcome.progress.0 = outcome.progress.0.saturating_add(1);
    }

    /// Says how many steps are done.
    pub(super) fn set_done(&self, steps: u64) {
        self.run.outcome.lock().progress.0 = steps;
    }

    /// Counts operations that were done. A run without any is no success.
    pub(super) fn count_ops(&self, ops: u64) {
        let mut outcome = self.run.outcome.lock();
        outcome.ops = outcome.ops.saturating_add(ops);
    }

    /// Says what it runs on.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn put_machine(&self) -> Result {
        let inline = if machine::INLINE_HELPERS { "yes" } else { "no" };
        self.put(fmt!("kernel: {}\n", machine::kernel_release()))?;
        self.put(fmt!("module: {}\n", machine::MODULE_BUILD))?;
        self.put(fmt!("config-inline-helpers: {inline}\n"))?;
        self.put(fmt!("preempt: {}\n", machine::preempt_model()))?;
        self.put(fmt!("hz: {}\n", machine::HZ))?;
        self.put(fmt!("vcpus: {}\n", machine::cpu_count()))?;
        self.put(fmt!("rustc: {}\n", machine::rustc_version()))
    }
}
