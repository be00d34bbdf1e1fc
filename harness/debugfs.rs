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
//! | `events/<lock>/<event>` | how often that happened in the lock's slow paths |
//! | `events/reset` | `1` sets all of these to 0 |
//!
//! What is not understood is `EINVAL` and changes nothing; changes during a run are `EBUSY`.

use super::{
    bench::Engine,
    locks::{
        self,
        Selection, //
    },
    parse,
    scenario::Scenario, //
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

/// The engine, as files hold it.
type Bench = Arc<Engine>;

/// A file for a setting: `field` of the settings, set from what `parse` makes of the input.
macro_rules! knob {
    ($field:ident, $parse:expr) => {
        File::read_write(
            |bench, out| out.put(fmt!("{}\n", bench.knobs().$field)),
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
            |bench, out| out.put(fmt!("{}\n", u32::from(bench.knobs().$field))),
            |bench, input| {
                bench.set(|knobs| {
                    knobs.$field = parse::flag(input)?;
                    Ok(())
                })
            },
        )
    };
}

static BENCH: [(&CStr, File<Bench>); 18] = [
    (
        c"scenario",
        File::read_write(
            |bench, out| bench.knobs().scenario.show(out),
            |bench, input| {
                bench.set(|knobs| {
                    knobs.scenario = Scenario::find(parse::word(input)?)?;
                    Ok(())
                })
            },
        ),
    ),
    (
        c"lock",
        File::read_write(
            |bench, out| bench.knobs().locks.show(out),
            |bench, input| {
                bench.set(|knobs| {
                    knobs.locks = Selection::parse(parse::word(input)?)?;
                    Ok(())
                })
            },
        ),
    ),
    (c"threads", knob!(threads, |i| parse::small(i, 1..=1024))),
    (c"ratio", knob!(ratio, parse::ratio)),
    (c"roles", knob!(roles, parse::roles)),
    (c"load", knob!(load, |i| parse::small(i, 0..=100_000))),
    (c"think", knob!(think, |i| parse::small(i, 0..=100_000))),
    (c"ops", knob!(ops, |i| parse::number(i, 1..=1_000_000_000))),
    (c"blocks", knob!(blocks, |i| parse::small(i, 1..=10_000))),
    (c"seed", knob!(seed, |i| parse::number(i, 0..=u64::MAX))),
    (c"skew", knob!(skew, |i| parse::small(i, 0..=1_000_000))),
    (c"pin", switch!(pin)),
    (c"check", switch!(check)),
    (
        c"run",
        File::write_only(|bench, input| match parse::word(input)? {
            "1" => bench.run(),
            "start" => bench.start().map(|_| ()),
            _ => Err(EINVAL),
        }),
    ),
    (
        c"stop",
        File::write_only(|bench, input| {
            parse::trigger(input)?;
            bench.stop()
        }),
    ),
    (
        c"state",
        File::read_only(|bench, out| bench.show_state(out)),
    ),
    (
        c"progress",
        File::read_only(|bench, out| bench.show_progress(out)),
    ),
    (
        c"results",
        File::read_only(|bench, out| bench.show_results(out)),
    ),
];

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
pub(super) fn create(engine: &Bench) -> Result<Dir> {
    let mut root = Dir::new(c"klocks")?;
    let nothing = Arc::new((), GFP_KERNEL)?;
    root.add(c"locks", &LIST, nothing.clone())?;

    let bench = root.subdir(c"bench")?;
    let context = Arc::new(engine.clone(), GFP_KERNEL)?;
    for (name, file) in &BENCH {
        bench.add(name, file, context.clone())?;
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
