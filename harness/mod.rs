// SPDX-License-Identifier: GPL-2.0

//! Measures and tests locks, driven through debugfs.
//!
//! Three tables say what there is: [`locks::LOCKS`], [`scenario::SCENARIOS`] and the files in
//! [`debugfs`]. A run ([`engine`]) is one controller thread, which plays a scenario ([`bench`](mod@bench)): crews of worker
//! threads ([`crew`]), one crew a block, that use a lock under test ([`subject`]); or it tortures locks
//! ([`torture`]).

mod bench;
#[cfg(CONFIG_KUNIT = "y")]
mod cases;
mod checks;
mod counted;
mod crew;
mod cycle;
mod debugfs;
mod dump;
mod engine;
mod freeze3;
#[cfg(CONFIG_KUNIT = "y")]
mod handoff_cases;
mod handoff_storm;
mod histogram;
mod knobs;
mod locks;
mod lossy;
mod mmap_storm;
mod order;
mod osq;
mod parse;
mod peers;
mod percpu_irq;
mod percpu_life;
mod percpu_read;
mod percpu_slow;
mod percpu_toggle;
mod percpu_write;
mod rcu_sync;
mod ref_burst;
mod ref_kill;
mod ref_storm;
mod ref_torture;
mod ref_walk;
mod rng;
mod rt_wake;
mod rwsem_mix;
mod scenario;
mod subject;
mod tally;
mod torture;
mod tree;

use crate::kapi::debugfs::{
    Dir,
    Text, //
};
use engine::Engine;
use kernel::{
    prelude::*,
    processor::cpu_relax,
    sync::Arc, //
};
use knobs::Knobs;
use torture::knobs::Stress;

/// The harness, from the module's start to its end.
///
/// A run that is not over keeps the module, so that this is never dropped during one.
pub(crate) struct Harness {
    /// Goes first, which waits for those who still are in a file's function.
    _files: Dir,
    _bench: engine::Joined<Knobs>,
    _torture: engine::Joined<Stress>,
}

impl Harness {
    /// Sets up the files.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `ENODEV` in a kernel without debugfs.
    pub(crate) fn new(module: &'static ThisModule) -> Result<Self> {
        // SAFETY: Once, before any file or lock under test is there.
        unsafe { dump::init() };
        let bench = Arc::pin_init(Engine::new(module), GFP_KERNEL)?;
        let torture = Arc::pin_init(Engine::new(module), GFP_KERNEL)?;
        Ok(Self {
            _files: debugfs::create(&bench, &torture)?,
            _bench: engine::Joined(bench),
            _torture: engine::Joined(torture),
        })
    }
}

/// Executes `count` PAUSE instructions: what the locks' load is measured in.
#[inline(always)]
fn pause(count: u32) {
    for _ in 0..count {
        cpu_relax();
    }
}

/// Shows what can be chosen, with brackets around what is: `[one] other`.
fn show_choice(out: &mut Text, items: impl Iterator<Item = (&'static str, bool)>) -> Result {
    let mut gap = "";
    for (name, chosen) in items {
        if chosen {
            out.put(fmt!("{gap}[{name}]"))?;
        } else {
            out.put(fmt!("{gap}{name}"))?;
        }
        gap = " ";
    }
    out.put(fmt!("\n"))
}
