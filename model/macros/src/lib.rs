// SPDX-License-Identifier: GPL-2.0

//! The kernel's `kunit_tests` for the host.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};
use std::path::Path;

/// Suites that need tasks, memory and time of a kernel: here they consist of what is added to them.
const OF_THE_KERNEL: &[&str] = &[
    "klocks_lockref",
    "klocks_percpu_rwsem",
    "klocks_rcu_sync",
    "klocks_spin",
];

/// Makes a lock file's KUnit suite an ordinary test module, with `src/transitions/SUITE.rs` at its
/// end where there is one: tests that need the lock's private items, but a host to run.
#[proc_macro_attribute]
pub fn kunit_tests(suite: TokenStream, module: TokenStream) -> TokenStream {
    let suite = suite.to_string();
    let more = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo"))
        .join("src/transitions")
        .join(format!("{suite}.rs"));
    let more: TokenStream = if more.exists() {
        format!("include!({more:?});")
            .parse()
            .expect("a macro call")
    } else {
        TokenStream::new()
    };
    let keep = !OF_THE_KERNEL.contains(&suite.as_str());
    let body = |token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let own = keep.then(|| group.stream()).into_iter().flatten();
            let tokens = own.chain(more.clone()).collect();
            TokenTree::Group(Group::new(Delimiter::Brace, tokens))
        }
        token => token,
    };
    let cfg: TokenStream = "#[cfg(test)]".parse().expect("an attribute");
    cfg.into_iter()
        .chain(module.into_iter().map(body))
        .collect()
}
