# SPDX-License-Identifier: GPL-2.0
"""Times and grace periods of writes back to back, beside what the 2015 series said."""

import numpy

from results import median_ratio, operations, peer, table, times, total

BEFORE = "percpu_rwsem.expedited"


def report(header, cells, out):
    out("One thread takes and gives up the lock for writing, back to back; nobody reads. Time of a pair: median of the")
    out("blocks. Grace periods: those that the whole system had meanwhile. Ratio to C of paired blocks, with the")
    out("bootstrap 95 % interval; below 1 is faster.")
    for cell, series in cells.items():
        load = dict(cell)["load"]
        out("")
        if len(cells) > 1:
            out(f"load {load}")
        rows = []
        for lock, blocks in series.items():
            pairs = operations(blocks)
            theirs = series.get(peer(lock, series))
            ratio = "-"
            # Those that ran out of time did other work.
            if theirs and [block.operations for block in blocks] == [block.operations for block in theirs]:
                middle, low, high = median_ratio(times(blocks), times(theirs))
                ratio = f"{middle:.3f} [{low:.3f} {high:.3f}]"
            rows.append(
                (
                    lock,
                    len(blocks),
                    pairs,
                    f"{numpy.median(times(blocks)):.0f}",
                    f"{total(blocks, 'grace-periods') / pairs:.4f}",
                    f"{total(blocks, 'expedited') / pairs:.4f}",
                    ratio,
                )
            )
        table(out, ("lock", "blocks", "pairs", "ns/pair", "grace periods/pair", "expedited/pair", "ratio to C"), rows)
        if BEFORE in series:
            out("")
            before = numpy.median(times(series[BEFORE]))
            for lock in "percpu_rwsem", "percpu_rwsem_c":
                if lock in series:
                    out(f"  {lock}: {before / numpy.median(times(series[lock])):.0f} times as fast as {BEFORE}")
            out("  The series, on 2 CPUs under KVM in 2015: more than 1.5 times as fast as before")
