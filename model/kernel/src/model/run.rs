// SPDX-License-Identifier: GPL-2.0

//! A run: all executions of one program.

use super::{word, Checker, Word, CHECKER};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt,
    io::Write,
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        Arc, //
    },
    time::Instant,
};

/// How far a run goes; from the environment, which scripts/model sets.
#[derive(Clone, Copy)]
pub struct Limits {
    /// `MODEL_BOUND`: at most so many preemptions in an execution; none for "all".
    pub bound: Option<usize>,
    /// `MODEL_SAMPLES`: executions that [`sample`] draws.
    pub samples: usize,
    /// `MODEL_EXECUTIONS`: [`explore`] ends before so many, incomplete. Not a time, so that the
    /// same executions take place on any machine.
    pub executions: usize,
}

/// How many [`sample`] draws by default; fewer are a run that was cut.
const SAMPLES: usize = 2000;

/// The limits in force.
pub fn limits() -> Limits {
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}='{text}' is not a number")),
        Err(_) => default,
    };
    Limits {
        bound: match std::env::var("MODEL_BOUND").as_deref() {
            Ok("all") => None,
            _ => Some(number("MODEL_BOUND", 2) as usize),
        },
        samples: number("MODEL_SAMPLES", SAMPLES as u64) as usize,
        executions: number("MODEL_EXECUTIONS", 1_000_000) as usize,
    }
}

thread_local! {
    static TRACE: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
    static COVERED: RefCell<BTreeMap<(usize, &'static str), u64>> =
        const { RefCell::new(BTreeMap::new()) };
}

/// Notes that an execution came by the point `name` of `group`.
pub fn cover(group: usize, name: &'static str) {
    COVERED.with_borrow_mut(|covered| *covered.entry((group, name)).or_default() += 1);
}

/// What a run did.
pub struct Report {
    /// How many executions there were.
    pub executions: u64,
    /// Whether these are all that the limits allow.
    pub complete: bool,
    covered: BTreeMap<(usize, &'static str), u64>,
}

impl Report {
    /// Whether an execution came by the point `name` of `group`.
    pub fn covers(&self, group: usize, name: &'static str) -> bool {
        self.covered.contains_key(&(group, name))
    }
}

/// A step of an execution, for the trace of one that fails (`MODEL_TRACE=1`).
#[track_caller]
pub(super) fn trace(word: &Word, what: fmt::Arguments<'_>) {
    TRACE.with_borrow_mut(|trace| {
        let Some(trace) = trace else { return };
        let place = std::panic::Location::caller();
        let file = place.file().rsplit('/').next().unwrap_or_default();
        trace.push(format!(
            "thread {} {file}:{} {word:p} {what}",
            super::thread_index(),
            place.line()
        ));
    });
}

/// Says how a run went, also when the program's panic ends it.
struct Monitor {
    name: String,
    how: String,
    start: Instant,
    executions: Arc<AtomicU64>,
    complete: bool,
}

impl Monitor {
    fn begin(checker: Checker, name: &str, how: String) -> Self {
        CHECKER.set(Some(checker));
        COVERED.take();
        TRACE.set(std::env::var_os("MODEL_TRACE").map(|_| Vec::new()));
        Self {
            name: name.rsplit("tests::").next().unwrap_or(name).into(),
            how,
            start: Instant::now(),
            executions: Arc::default(),
            complete: false,
        }
    }

    fn counted<P: Fn() + Send + Sync + 'static>(
        &self,
        program: P,
    ) -> impl Fn() + Send + Sync + use<P> {
        let executions = Arc::clone(&self.executions);
        move || {
            executions.fetch_add(1, Relaxed);
            word::reset_statics();
            TRACE.with_borrow_mut(|trace| trace.as_mut().map(Vec::clear));
            program();
        }
    }

    fn end(mut self, complete: bool) -> Report {
        self.complete = complete;
        Report {
            executions: self.executions.load(Relaxed),
            complete,
            covered: COVERED.take(),
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        CHECKER.set(None);
        let verdict = if std::thread::panicking() {
            "stopped"
        } else if self.complete {
            "complete"
        } else {
            "cut"
        };
        if std::thread::panicking() {
            for step in TRACE.take().into_iter().flatten() {
                eprintln!("{step}");
            }
        }
        let line = format!(
            "{} {} executions={} seconds={:.2} {verdict}\n",
            self.name,
            self.how,
            self.executions.load(Relaxed),
            self.start.elapsed().as_secs_f64(),
        );
        let file = std::env::var_os("MODEL_REPORT").map(|path| {
            let file = std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path);
            file.and_then(|mut file| file.write_all(line.as_bytes()))
        });
        if !matches!(file, Some(Ok(()))) {
            eprint!("{line}");
        }
    }
}

/// Runs `program` in all executions that the limits' bound allows, and under weak memory.
pub fn explore(name: &str, program: impl Fn() + Send + Sync + 'static) -> Report {
    let limits = limits();
    let bound = limits.bound.map_or("all".into(), |bound| bound.to_string());
    let monitor = Monitor::begin(Checker::Loom, name, format!("loom bound={bound}"));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = limits.bound;
    builder.max_branches = 5000;
    builder.max_permutations = Some(limits.executions);
    // The limit is looked at that often.
    builder.checkpoint_interval = limits.executions;
    builder.max_duration = None;
    builder.check(monitor.counted(program));
    let executions = monitor.executions.load(Relaxed) as usize;
    monitor.end(executions + 1 < limits.executions)
}

/// Runs `program` in random executions, sequentially consistent: half of them drawn step by step,
/// half with few preemptions at random places.
pub fn sample(name: &str, program: impl Fn() + Send + Sync + 'static) -> Report {
    let limits = limits();
    let monitor = Monitor::begin(Checker::Shuttle, name, "shuttle".into());
    let mut config = shuttle::Config::new();
    config.silence_warnings = true;
    config.max_steps = shuttle::MaxSteps::FailAfter(100_000);
    let program = Arc::new(program);
    let half = limits.samples.div_ceil(2);
    let random = shuttle::scheduler::RandomScheduler::new_from_seed(1, half);
    let few_preemptions = shuttle::scheduler::PctScheduler::new_from_seed(1, 3, half);
    let counted = |program: &Arc<_>| {
        let program: Arc<dyn Fn() + Send + Sync> = Arc::clone(program) as _;
        monitor.counted(move || program())
    };
    shuttle::Runner::new(random, config.clone()).run(counted(&program));
    shuttle::Runner::new(few_preemptions, config).run(counted(&program));
    monitor.end(limits.samples >= SAMPLES)
}
