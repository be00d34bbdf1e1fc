# SPDX-License-Identifier: GPL-2.0
"""Three levels frozen one after the other: grace periods and time."""

import numpy

from results import operations, table, times, total


def report(header, cells, out):
    out("Three semaphores are taken for writing one after the other, from a state in which readers are on their fast")
    out("path. Grace periods: those that the whole system had meanwhile. Median of the blocks.")
    out("")
    for series in cells.values():
        table(
            out,
            ("levels", "freezes", "ms/freeze", "grace periods/freeze", "expedited/freeze"),
            [
                (
                    lock,
                    operations(blocks),
                    f"{numpy.median(times(blocks)) / 1e6:.2f}",
                    f"{total(blocks, 'grace-periods') / operations(blocks):.2f}",
                    f"{total(blocks, 'expedited') / operations(blocks):.2f}",
                )
                for lock, blocks in series.items()
            ],
        )
