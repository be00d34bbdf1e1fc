// SPDX-License-Identifier: GPL-2.0

//! A QEMU TCG plugin that counts exactly what the guest executes between marker instructions.
//!
//! The guest emits markers (see [`decode::Marker`]): a controller opens and closes a *run*, each
//! worker begins and ends its *work*, and may say that it only writes. While a run is open, every kernel function gets a [`tally::Tally`] of what the
//! working tasks executed in it: instructions, locked operations, PAUSEs, calls, loads, stores, entries
//! and cache-line transfers. A task counts from its begin marker to its end marker, on whichever vCPU it
//! runs, and only while it runs: not while it sleeps, and not inside an interrupt.
//!
//! Under `-icount` the guest is deterministic, and so is each figure. The plugin takes no part in that:
//! it only observes.
//!
//! Module map: `plugin` is the only code that talks to QEMU and the only one with `unsafe`;
//! [`decode`] classifies instruction bytes, [`lines`] models cache lines, [`symbols`] reads System.map,
//! [`tally`] decides what counts and prints.

#![deny(unsafe_op_in_unsafe_fn)]

mod decode;
mod lines;
#[cfg(not(test))]
mod plugin;
mod symbols;
mod tally;
