# SPDX-License-Identifier: GPL-2.0
"""What a barrier in the reader costs around a small piece of work."""

import numpy

from results import median_ratio, peer, table, times

FENCED = "percpu_rwsem.mb"
OURS = "percpu_rwsem"


def ratio(ours, theirs):
    middle, low, high = median_ratio(times(ours), times(theirs))
    return f"{middle:.3f} [{low:.3f} {high:.3f}]"


def report(header, cells, out):
    out("Each thread reads around the work of a one-byte write to a file of its own. Median of the blocks; ratios of")
    out("paired blocks, with the bootstrap 95 % interval; below 1 is faster.")
    out("")
    rows = []
    for cell, series in cells.items():
        if rows:
            rows.append(None)
        for lock, blocks in series.items():
            to_c = series.get(peer(lock, series))
            fenced = series.get(FENCED) if lock != FENCED else None
            rows.append(
                (
                    lock,
                    dict(cell)["threads"],
                    f"{numpy.median(times(blocks)):.1f}",
                    ratio(blocks, to_c) if to_c else "-",
                    ratio(blocks, fenced) if fenced else "-",
                )
            )
    table(out, ("lock", "threads", "ns/read", "ratio to C", f"ratio to {FENCED}"), rows)
    out("")
    out("  The series, in 2015: a loop of one-byte writes is 12 % faster without the barriers, a ratio of 0.89.")
