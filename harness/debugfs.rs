// SPDX-License-Identifier: GPL-2.0

//! The files below `/sys/kernel/debug/klocks/`: one value a file, a newline behind it.
//!
//! | file | meaning |
//! |---|---|
//! | `locks` | a line per lock: name, family, operations |
//! | `bench/scenario` | what to run; reads all names, the choice in brackets |
//! | `bench/lock` | comma-separated list of the locks that take turns; reads as `scenario` |
//! | `bench/threads` | worker threads, 1 to 1024 |
//! | `bench/ratio` | reads to writes, as in `10:1`; each up to 1000000 |
//! | `bench/roles` | `mixed`: each thread does both; `split`: that ratio of threads only read, the first ones only write |
//! | `bench/load` | PAUSEs while the lock is held, up to 100000 |
//! | `bench/think` | PAUSEs between two operations on average, up to 100000; the number is random |
//! | `bench/gap` | milliseconds between two writes where a scenario writes at a distance, up to 10000 |
//! | `bench/ops` | operations of each thread in each block, 1 to 1000000000 |
//! | `bench/blocks` | measured rounds, 1 to 10000; one more warms up |
//! | `bench/seed` | what all that is random depends on |
//! | `bench/skew` | PAUSEs by which a thread starts later than the one before it, up to 1000000 |
//! | `bench/pin` | 1: each thread stays on one CPU |
//! | `bench/check` | 1: workers check that the lock excludes |
//! | `bench/run` | `1` runs to the end, `start` returns at once |
//! | `bench/stop` | `1` stops the run and waits for that |
//! | `bench/state` | `idle`, `running`, `done`, `failed` or `stopped` |
//! | `bench/progress` | blocks done, blocks in all |
//! | `bench/results` | of the last run; a snapshot taken at open |
//! | `torture/lock` | comma-separated list of the locks that are tortured at the same time |
//! | `torture/nreaders_stress`, `nwriters_stress` | such workers of each lock, up to 1024 |
//! | `torture/ntrylocks_stress` | workers that do not wait |
//! | `torture/nkillables_stress`, `ninterruptibles_stress` | workers that wait until a signal comes, and get some |
//! | `torture/ndowngraders_stress` | writers that go on as readers |
//! | `torture/nrtwriters_stress` | real-time writers |
//! | `torture/nshortlived_stress` | workers whose operations are done by tasks that exit at once |
//! | `torture/load`, `think` | the most PAUSEs in and between sections, up to 100000 |
//! | `torture/long_hold` | milliseconds for which a lock is held now and then, up to 1000 |
//! | `torture/nested_locks` | the most further locks taken while one is held, up to 8 |
//! | `torture/stutter` | jiffies to run and to halt, in turn, up to 10000; 0: never halt |
//! | `torture/shuffle_interval` | jiffies until workers must keep off another CPU, up to 10000; 0: never |
//! | `torture/onoff_interval`, `onoff_holdoff` | seconds between two CPUs going or coming, up to 3600, 0: never; and until the first |
//! | `torture/rt_boost`, `rt_boost_factor` | 1: writers are real-time for a while, at one of so many operations |
//! | `torture/acq_writer_lim` | jiffies that a write may wait, up to 1000000; 0: any number |
//! | `torture/watchdog_ms` | milliseconds after which a wait counts as stuck, 100 to 3600000 |
//! | `torture/duration_ms` | 1 to 86400000 |
//! | `torture/seed` | what all that is random depends on |
//! | `torture/run`, `stop`, `state`, `progress`, `results` | as in `bench/`; progress in milliseconds |
//! | `dump/<lock>` | words and queue of the locks of that type that are in use, also during a run that is stuck |
//! | `events/<lock>/<event>` | how often that happened in the lock's slow paths |
//! | `events/reset` | `1` sets all of these to 0 |
//!
//! What is not understood is `EINVAL` and changes nothing; changes during a run are `EBUSY`.

use super::{
    dump,
    engine::{
        Engine,
        Plan, //
    },
    knobs::Knobs,
    locks::{
        self,
        Selection,
        LOCKS, //
    },
    parse,
    scenario::Scenario,
    torture::knobs::{
        Stress,
        MOST_WORKERS, //
    }, //
};
use crate::kapi::{
    debugfs::{
        Dir,
        File, //
    },
    events::EventSource, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};

/// An engine of benchmarks, as files hold it.
type Bench = Arc<Engine<Knobs>>;

/// An engine of torture, as files hold it.
type Torture = Arc<Engine<Stress>>;

/// A file for a setting: `field` of the settings, set from what `parse` makes of the input.
macro_rules! knob {
    ($field:ident, $parse:expr) => {
        File::read_write(
            |bench, out| out.put(fmt!("{}\n", bench.plan().$field)),
            |bench, input| {
                bench.set(|knobs| {
                    knobs.$field = $parse(input)?;
                    Ok(())
                })
            },
        )
    };
}

/// As [`knob`], for a setting that is on or off.
macro_rules! switch {
    ($field:ident) => {
        File::read_write(
            |bench, out| out.put(fmt!("{}\n", u32::from(bench.plan().$field))),
            |bench, input| {
                bench.set(|knobs| {
                    knobs.$field = parse::flag(input)?;
                    Ok(())
                })
            },
        )
    };
}

/// As [`knob`], for a number of workers.
macro_rules! workers {
    ($field:ident) => {
        knob!($field, |i| parse::small(i, 0..=MOST_WORKERS))
    };
}

/// A file for the selection of locks.
macro_rules! locks {
    () => {
        File::read_write(
            |engine, out| engine.plan().locks.show(out),
            |engine, input| {
                engine.set(|plan| {
                    plan.locks = Selection::parse(parse::word(input)?)?;
                    Ok(())
                })
            },
        )
    };
}

static BENCH: &[(&CStr, File<Bench>)] = &[
    (
        c"scenario",
        File::read_write(
            |bench, out| bench.plan().scenario.show(out),
            |bench, input| {
                bench.set(|knobs| {
                    knobs.scenario = Scenario::find(parse::word(input)?)?;
                    Ok(())
                })
            },
        ),
    ),
    (c"lock", locks!()),
    (c"threads", knob!(threads, |i| parse::small(i, 1..=1024))),
    (c"ratio", knob!(ratio, parse::ratio)),
    (c"roles", knob!(roles, parse::roles)),
    (c"load", knob!(load, |i| parse::small(i, 0..=100_000))),
    (c"think", knob!(think, |i| parse::small(i, 0..=100_000))),
    (c"gap", knob!(gap, |i| parse::small(i, 0..=10_000))),
    (c"ops", knob!(ops, |i| parse::number(i, 1..=1_000_000_000))),
    (c"blocks", knob!(blocks, |i| parse::small(i, 1..=10_000))),
    (c"seed", knob!(seed, |i| parse::number(i, 0..=u64::MAX))),
    (c"skew", knob!(skew, |i| parse::small(i, 0..=1_000_000))),
    (c"pin", switch!(pin)),
    (c"check", switch!(check)),
];

/// The files of every kind of run.
const fn controls<P: Plan>() -> [(&'static CStr, File<Arc<Engine<P>>>); 5] {
    [
        (
            c"run",
            File::write_only(|engine, input| match parse::word(input)? {
                "1" => engine.run(),
                "start" => engine.start().map(|_| ()),
                _ => Err(EINVAL),
            }),
        ),
        (
            c"stop",
            File::write_only(|engine, input| {
                parse::trigger(input)?;
                engine.stop()
            }),
        ),
        (
            c"state",
            File::read_only(|engine, out| engine.show_state(out)),
        ),
        (
            c"progress",
            File::read_only(|engine, out| engine.show_progress(out)),
        ),
        (
            c"results",
            File::read_only(|engine, out| engine.show_results(out)),
        ),
    ]
}

static TORTURE: [(&CStr, File<Torture>); 23] = [
    (c"lock", locks!()),
    (c"seed", knob!(seed, |i| parse::number(i, 0..=u64::MAX))),
    (c"nreaders_stress", workers!(nreaders_stress)),
    (c"nwriters_stress", workers!(nwriters_stress)),
    (c"ntrylocks_stress", workers!(ntrylocks_stress)),
    (c"nkillables_stress", workers!(nkillables_stress)),
    (c"ninterruptibles_stress", workers!(ninterruptibles_stress)),
    (c"ndowngraders_stress", workers!(ndowngraders_stress)),
    (c"nrtwriters_stress", workers!(nrtwriters_stress)),
    (c"nshortlived_stress", workers!(nshortlived_stress)),
    (c"load", knob!(load, |i| parse::small(i, 0..=100_000))),
    (c"think", knob!(think, |i| parse::small(i, 0..=100_000))),
    (
        c"long_hold",
        knob!(long_hold, |i| parse::small(i, 0..=1000)),
    ),
    (
        c"nested_locks",
        knob!(nested_locks, |i| parse::small(i, 0..=8)),
    ),
    (c"stutter", knob!(stutter, |i| parse::small(i, 0..=10_000))),
    (
        c"shuffle_interval",
        knob!(shuffle_interval, |i| parse::small(i, 0..=10_000)),
    ),
    (
        c"onoff_interval",
        knob!(onoff_interval, |i| parse::small(i, 0..=3600)),
    ),
    (
        c"onoff_holdoff",
        knob!(onoff_holdoff, |i| parse::small(i, 0..=3600)),
    ),
    (c"rt_boost", switch!(rt_boost)),
    (
        c"rt_boost_factor",
        knob!(rt_boost_factor, |i| parse::small(i, 1..=1_000_000)),
    ),
    (
        c"acq_writer_lim",
        knob!(acq_writer_lim, |i| parse::small(i, 0..=1_000_000)),
    ),
    (
        c"watchdog_ms",
        knob!(watchdog_ms, |i| parse::small(i, 100..=3_600_000)),
    ),
    (
        c"duration_ms",
        knob!(duration_ms, |i| parse::small(i, 1..=86_400_000)),
    ),
];

static TORTURE_CONTROLS: [(&CStr, File<Torture>); 5] = controls();

static BENCH_CONTROLS: [(&CStr, File<Bench>); 5] = controls();

static DUMP: File<&'static str> = File::read_only(|name, out| dump::show(name, out));

static LIST: File<()> = File::read_only(|(), out| locks::describe(out));

/// One event of one lock.
struct Event {
    source: &'static dyn EventSource,
    index: usize,
}

static EVENT: File<Event> =
    File::read_only(|event, out| out.put(fmt!("{}\n", event.source.read(event.index))));

static RESET: File<()> = File::write_only(|(), input| {
    parse::trigger(input)?;
    for (_, source) in locks::event_sources() {
        source.reset();
    }
    Ok(())
});

/// Makes all files. They go with the directory that this returns.
///
/// # Errors
///
/// `ENOMEM`, `EEXIST`, or `ENODEV` in a kernel without debugfs.
pub(super) fn create(bench: &Bench, torture: &Torture) -> Result<Dir> {
    let mut root = Dir::new(c"klocks")?;
    let nothing = Arc::new((), GFP_KERNEL)?;
    root.add(c"locks", &LIST, nothing.clone())?;

    let dir = root.subdir(c"bench")?;
    let context = Arc::new(bench.clone(), GFP_KERNEL)?;
    for (name, file) in Iterator::chain(BENCH.iter(), &BENCH_CONTROLS) {
        dir.add(name, file, context.clone())?;
    }

    let dir = root.subdir(c"torture")?;
    let context = Arc::new(torture.clone(), GFP_KERNEL)?;
    for (name, file) in Iterator::chain(TORTURE.iter(), &TORTURE_CONTROLS) {
        dir.add(name, file, context.clone())?;
    }

    let dump = root.subdir(c"dump")?;
    for lock in &LOCKS {
        let context = Arc::new(lock.name(), GFP_KERNEL)?;
        dump.add(&name(lock.name())?, &DUMP, context)?;
    }

    let events = root.subdir(c"events")?;
    events.add(c"reset", &RESET, nothing)?;
    for (lock, source) in locks::event_sources() {
        let dir = events.subdir(&name(lock)?)?;
        for (index, event) in source.names().iter().enumerate() {
            let context = Arc::new(Event { source, index }, GFP_KERNEL)?;
            dir.add(&name(event)?, &EVENT, context)?;
        }
    }
    Ok(root)
}

fn name(text: &str) -> Result<CString> {
    CString::try_from_fmt(fmt!("{text}"))
}
