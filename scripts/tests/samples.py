# SPDX-License-Identifier: GPL-2.0
"""Results for the cases of report.sh to be made of."""

import report

MACHINE = """\
kernel-name: lean
config-hash: 0123456789ab
rust-compiler: rustc 1.85.0
compiler: clang 19
host-cpus: 2
host-cpu: A processor
commit: 0123456789
tag: none
dirty: no
date: 2025-01-01T00:00:00Z
accelerator: tcg
"""

# What the module says first in each run.
RUN = """\
kernel: 7.3.4
config-inline-helpers: y
preempt: full
vcpus: {vcpus}
seed: 1
ops: {ops}
blocks: {blocks}
oversubscribed: {oversubscribed}
order: {order}
"""


def results(form, *runs, locks):
    """What a measurement of scenario `form` leaves: a header, and what each of its runs printed."""
    return MACHINE + f"form: {form}\nlocks: {locks}\n" + "".join(runs)


def shown(text):
    out = []
    report.report(text.splitlines(), out.append)
    return "\n".join(out)
