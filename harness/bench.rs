// SPDX-License-Identifier: GPL-2.0

//! The runs behind the files in `bench/`: a scenario, played in blocks.

pub(super) use super::engine::{
    Control,
    Session, //
};
use super::{
    engine::Plan,
    knobs::Knobs, //
};
use crate::kapi::{
    kthread::Placement,
    machine,
    torture_ko::Claim, //
};
use kernel::prelude::*;

impl Plan for Knobs {
    const THREAD: &'static CStr = c"klocks_bench";
    const PLACEMENT: Placement = Placement {
        cpu: None,
        fifo: false,
    };

    fn new() -> Self {
        Knobs::new()
    }

    fn check(&self) -> Result {
        (self.scenario.check)(self)
    }

    fn claim() -> Result<Option<Claim>> {
        Ok(None)
    }

    fn steps(&self) -> u64 {
        (self.scenario.blocks)(self)
    }

    fn run(&self, session: &Session<'_>) -> Result {
        put_header(self, session)?;
        (self.scenario.run)(self, session)
    }
}

/// Says what runs where.
fn put_header(knobs: &Knobs, session: &Session<'_>) -> Result {
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
    let oversubscribed = if knobs.threads > machine::cpu_count() {
        "yes"
    } else {
        "no"
    };
    session.put_machine()?;
    session.put(fmt!("scenario: {}\nseed: {seed}\n", scenario.name))?;
    session.put(fmt!("ops: {ops}\nblocks: {blocks}\n"))?;
    session.put(fmt!("roles: {roles}\n"))?;
    session.put(fmt!("check: {}\n", u32::from(knobs.check)))?;
    session.put(fmt!("pin: {}\n", u32::from(knobs.pin)))?;
    session.put(fmt!("think: {think}\nskew: {skew}\n"))?;
    session.put(fmt!("oversubscribed: {oversubscribed}\n"))
}
