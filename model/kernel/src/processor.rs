// SPDX-License-Identifier: GPL-2.0

//! The processor.

/// Every spin loop passes here: another thread has to go on before its next turn.
pub fn cpu_relax() {
    crate::model::relax();
}
