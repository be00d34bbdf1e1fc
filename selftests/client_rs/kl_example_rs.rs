// SPDX-License-Identifier: GPL-2.0
//! Shows how a Rust module uses klocks.

use kernel::prelude::*;
use klocks::{new_locked, rwsem::RwSemaphore};

module! {
    type: Example,
    name: "kl_example_rs",
    authors: ["klocks developers"],
    description: "Shows how a Rust module uses klocks",
    license: "GPL",
}

#[pin_data]
struct Example {
    #[pin]
    value: RwSemaphore<u32>,
}

impl kernel::InPlaceModule for Example {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self { value <- new_locked!(0) }).pin_chain(|this| {
            *this.value.write() = 42;
            pr_info!("the value is {}\n", *this.value.read());
            Ok(())
        })
    }
}
