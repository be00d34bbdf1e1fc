// SPDX-License-Identifier: GPL-2.0

//! Tasks: the checker's threads, how they sleep and are woken, and the events that happen to them.

use super::{
    preempt::PreemptDisabled,
    rcu, //
};
use kernel::{
    model,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        barrier::{
            self,
            smp_mb, //
        }, //
    }, //
};
use std::{
    cell::{Cell, RefCell},
    rc::Rc, //
};

/// When an event happens, counted in the places that ask for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Never.
    Never,
    /// Once, in one of the next so many places, or not at all: all are explored.
    Within(u32),
    /// In the place after so many.
    After(u32),
}

/// The events that may happen to a task.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Another task is to run on its CPU.
    pub(crate) resched: When,
    /// It finds the owner of a lock not running.
    pub(crate) owner_off_cpu: When,
    /// It finds another virtual CPU preempted.
    pub(crate) vcpu_preempted: When,
    /// It wakes without having been woken.
    pub(crate) spurious: When,
    /// It finds that it has spun for readers long enough.
    pub(crate) patience_ends: When,
    /// It finds a waiter to have waited for long.
    pub(crate) waited_long: When,
    /// It is a real-time task.
    pub(crate) rt: bool,
}

impl Plan {
    /// Nothing happens.
    pub(crate) const QUIET: Self = Self {
        resched: When::Never,
        owner_off_cpu: When::Never,
        vcpu_preempted: When::Never,
        spurious: When::Never,
        patience_ends: When::Never,
        waited_long: When::Never,
        rt: false,
    };
}

/// A task's state.
const RUNNING: u32 = 0;
const SLEEPING: u32 = 1;

/// The worst signal that is pending.
const NO_SIGNAL: u32 = 0;
const FATAL: u32 = 2;

/// A task structure.
pub(super) struct TaskStruct {
    number: usize,
    state: Atomic<u32>,
    in_wake_q: Atomic<u32>,
    signal: Atomic<u32>,
    exited: Atomic<u32>,
    /// How many things forbid it to sleep.
    atomic: Cell<u32>,
    /// How many of these are preemption that is off.
    unpreemptible: Cell<u32>,
    need_resched: Cell<bool>,
    plan: RefCell<Plan>,
}

thread_local! {
    static TASKS: RefCell<Vec<Rc<TaskStruct>>> = const { RefCell::new(Vec::new()) };
}

fn task(number: usize) -> Rc<TaskStruct> {
    TASKS.with_borrow(|tasks| Rc::clone(&tasks[number]))
}

/// The running task.
pub(super) fn this() -> Rc<TaskStruct> {
    task(model::thread_index())
}

impl TaskStruct {
    fn new(number: usize, plan: Plan) -> Self {
        Self {
            number,
            state: Atomic::new(RUNNING),
            in_wake_q: Atomic::new(0),
            signal: Atomic::new(NO_SIGNAL),
            exited: Atomic::new(0),
            atomic: Cell::new(0),
            unpreemptible: Cell::new(0),
            need_resched: Cell::new(false),
            plan: RefCell::new(plan),
        }
    }

    pub(super) fn cpu(&self) -> u32 {
        self.number as u32
    }

    pub(super) fn enter_atomic(&self) {
        self.atomic.set(self.atomic.get() + 1);
    }

    pub(super) fn leave_atomic(&self) {
        self.atomic.set(self.atomic.get() - 1);
    }

    /// Turns preemption off: whether it was on.
    pub(super) fn enter_unpreemptible(&self) -> bool {
        self.enter_atomic();
        self.unpreemptible.replace(self.unpreemptible.get() + 1) == 0
    }

    /// Turns preemption on: whether it is now.
    pub(super) fn leave_unpreemptible(&self) -> bool {
        self.leave_atomic();
        self.unpreemptible.set(self.unpreemptible.get() - 1);
        self.unpreemptible.get() == 0
    }

    pub(super) fn is_atomic(&self) -> bool {
        self.atomic.get() != 0
    }

    #[track_caller]
    pub(super) fn assert_may_sleep(&self) {
        assert_eq!(self.atomic.get(), 0, "sleeps while atomic");
    }

    /// A reschedule that is due happens, unless it cannot yet.
    pub(super) fn preemption_point(&self) {
        if self.atomic.get() == 0 {
            self.need_resched.set(false);
        }
    }

    /// Whether the event happens in this place.
    pub(super) fn happens(&self, event: impl FnOnce(&mut Plan) -> &mut When) -> bool {
        let mut plan = self.plan.borrow_mut();
        let when = event(&mut plan);
        match *when {
            When::Never => false,
            When::Within(0) => {
                *when = When::Never;
                false
            }
            When::Within(places) => {
                let now = model::choose(2) == 1;
                *when = if now {
                    When::Never
                } else {
                    When::Within(places - 1)
                };
                now
            }
            When::After(0) => {
                *when = When::Never;
                true
            }
            When::After(places) => {
                *when = When::After(places - 1);
                model::time_passes();
                false
            }
        }
    }

    /// `wake_up_process()`.
    #[track_caller]
    fn wake_up(&self) {
        smp_mb(barrier::Full);
        // The state is read under a lock of the task's: what it finds is the newest.
        let _ = self.state.cmpxchg(SLEEPING, RUNNING, Release);
    }
}

/// An execution begins, in task 0, with as many tasks as there are plans.
pub(crate) fn begin(plans: &[Plan]) {
    let tasks = plans.iter().enumerate();
    let tasks = tasks.map(|(number, &plan)| Rc::new(TaskStruct::new(number, plan)));
    TASKS.set(tasks.collect());
    rcu::reset();
}

/// How many tasks there are.
pub(super) fn count() -> usize {
    TASKS.with_borrow(Vec::len)
}

/// Starts task `number`, which is the next one.
pub(crate) fn start(number: usize, body: impl FnOnce() + Send + 'static) -> model::JoinHandle {
    model::spawn(move || {
        assert_eq!(model::thread_index(), number, "tasks are started in order");
        body();
        let this = this();
        this.assert_may_sleep();
        assert_eq!(
            this.state.load(Relaxed),
            RUNNING,
            "ends in another state than running"
        );
        this.exited.store(1, Relaxed);
    })
}

/// Sends task `number` a fatal signal.
pub(crate) fn kill(number: usize) {
    let task = task(number);
    // A task that sleeps through signals wakes as well here: such wake-ups are always possible.
    task.signal.store(FATAL, Relaxed);
    task.wake_up();
}

/// The identity of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task(usize);

/// Task structures are aligned to that.
const ALIGN: usize = 64;

impl Task {
    /// The running task.
    pub(crate) fn current() -> Self {
        Self(model::thread_index())
    }

    /// Its address, for owner words.
    pub(crate) fn addr(self) -> usize {
        (self.0 + 1) * ALIGN
    }

    /// The task of that address.
    pub(crate) fn from_addr(addr: usize) -> Self {
        assert!(addr != 0 && addr % ALIGN == 0, "not a task");
        Self(addr / ALIGN - 1)
    }

    /// Whether the task runs on a CPU that itself runs: yes, but for an event.
    ///
    /// # Safety
    ///
    /// As in the module.
    pub(crate) unsafe fn is_on_cpu(self, _pin: &PreemptDisabled) -> bool {
        !this().happens(|plan| &mut plan.owner_off_cpu)
    }

    /// Wakes the task.
    #[track_caller]
    pub(super) fn wake_up(self) {
        task(self.0).wake_up();
    }

    /// Its number.
    ///
    /// # Safety
    ///
    /// As in the module.
    pub(crate) unsafe fn pid(self) -> i32 {
        self.0 as i32
    }

    /// Takes a reference.
    ///
    /// # Safety
    ///
    /// The task is alive; a violation is reported.
    #[track_caller]
    pub(crate) unsafe fn get(self) -> TaskRef {
        let task = task(self.0);
        assert_eq!(
            task.exited.load(Relaxed),
            0,
            "a reference to a task that has exited"
        );
        TaskRef(task)
    }
}

/// A counted reference to a task.
pub(crate) struct TaskRef(Rc<TaskStruct>);

impl TaskRef {
    pub(super) fn in_wake_q(&self) -> &Atomic<u32> {
        &self.0.in_wake_q
    }

    #[track_caller]
    pub(super) fn wake_up(&self) {
        self.0.wake_up();
    }
}

/// Whether the running task should let another run; once it should, until it does.
pub(crate) fn need_resched() -> bool {
    let this = this();
    let need = this.need_resched.get() || this.happens(|plan| &mut plan.resched);
    this.need_resched.set(need);
    need
}

/// Whether the hypervisor took the CPU away from virtual CPU `cpu`.
pub(crate) fn vcpu_is_preempted(_cpu: u32) -> bool {
    this().happens(|plan| &mut plan.vcpu_preempted)
}

/// Whether the running task is real-time or deadline.
pub(crate) fn current_is_rt() -> bool {
    this().plan.borrow().rt
}

/// How a waiter sleeps, that is, which signals end its wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    /// No signal does.
    Uninterruptible,
    /// Any signal does.
    Interruptible,
    /// A fatal signal does.
    Killable,
    /// No signal does, but the task may be frozen meanwhile.
    Freezable,
}

impl Sleep {
    /// Whether a signal that ends this kind of wait is pending for the running task.
    #[track_caller]
    pub(crate) fn signal_pending(self) -> bool {
        match self {
            Sleep::Uninterruptible | Sleep::Freezable => false,
            Sleep::Interruptible => this().signal.load(Relaxed) != NO_SIGNAL,
            Sleep::Killable => this().signal.load(Relaxed) == FATAL,
        }
    }

    /// Declares the running task about to sleep, with a full barrier after it.
    #[track_caller]
    pub(crate) fn prepare(self) {
        this().state.store(SLEEPING, Relaxed);
        smp_mb(barrier::Full);
    }
}

/// The task runs on.
#[track_caller]
pub(crate) fn set_running() {
    this().state.store(RUNNING, Relaxed);
}

/// Sleeps until woken.
#[track_caller]
pub(crate) fn schedule() {
    let this = this();
    this.assert_may_sleep();
    this.need_resched.set(false);
    if this.happens(|plan| &mut plan.spurious) {
        this.state.store(RUNNING, Relaxed);
    } else {
        this.state.update_blocking(
            RUNNING,
            |state| (state == RUNNING).then_some(state),
            Acquire,
        );
    }
}
