// SPDX-License-Identifier: GPL-2.0
/* Exports what Kbuild finds in the crate, as the kernel exports its own crates. */
#include <linux/export.h>

#define EXPORT_SYMBOL_RUST_GPL(sym) extern int sym; EXPORT_SYMBOL_GPL(sym)

#include "exports.h"
