# SPDX-License-Identifier: GPL-2.0
"""Readers beside a writer: their rate, and the share of them that take the slow path."""

import numpy

from results import operations, table, total


def distance(cell):
    parameters = dict(cell)
    return None if parameters["ratio"].endswith(":0") else int(parameters["gap"])


def report(header, cells, out):
    out("Threads read, one writes at a distance. Reads a second: of all threads, median of the blocks. Slow: reads that")
    out("found the gate closed, where the lock counts them. Grace periods: of the whole system, by the second.")
    out("")
    rows = []
    for cell, series in sorted(cells.items(), key=lambda item: (distance(item[0]) is not None, -(distance(item[0]) or 0))):
        if rows:
            rows.append(None)
        gap = distance(cell)
        for lock, blocks in series.items():
            seconds = total(blocks, "elapsed-ns") / 1e9
            rates = [block.operations / block.values["elapsed-ns"] * 1e9 for block in blocks]
            counted = "slow-reads" in blocks[0].values
            rows.append(
                (
                    lock,
                    "no writer" if gap is None else f"{gap} ms",
                    operations(blocks),
                    f"{numpy.median(rates):.0f}",
                    f"{100 * total(blocks, 'slow-reads') / operations(blocks):.2f} %" if counted else "-",
                    f"{total(blocks, 'writes') / seconds:.0f}",
                    f"{total(blocks, 'grace-periods') / seconds:.0f}",
                    f"{total(blocks, 'expedited') / seconds:.0f}",
                )
            )
    table(out, ("lock", "writer each", "reads", "reads/s", "slow", "writes/s", "grace p./s", "expedited/s"), rows)
