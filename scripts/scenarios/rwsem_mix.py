# SPDX-License-Identifier: GPL-2.0
"""The table of the 2014 series: times of all cells, then their ratios to the C peer."""

import collections

import numpy

from results import joined, median_ratio, peer, times


def milliseconds(value):
    """Four digits and more, as wide as in the mails."""
    return f"{value:.1f}".ljust(5) if value < 1000 else f"{value:.0f}".ljust(5)


class MixTable:
    """The form of the table in the mails: a row for a lock, ratio and number of threads, loads side by side."""

    def __init__(self, title, out):
        self.out = out
        out(f"  {'lock/r:w ratio':<24} {'# of threads':<13} Load:{title}")
        out(f"  {'-' * 24} {'-' * 12}  {'-' * (5 + len(title))}")

    def row(self, label, threads, texts):
        """`texts` is {load: text}."""
        text = ", ".join(f"{load}:{text}" for load, text in texts.items())
        self.out(f"  {label:<24} {threads:>7}       {text.rstrip()}")


def report(header, cells, out):
    def label(lock, ratio):
        return lock if lock == "mutex" else f"{lock}/{ratio}"

    locks = header["locks"].split(",")
    locks.sort(key=lambda lock: lock != "mutex")
    # {lock: {(ratio, threads): {load: blocks}}} in the order of the mails
    rows = {lock: collections.defaultdict(dict) for lock in locks}
    for cell, series in cells.items():
        parameters = dict(cell)
        for lock, blocks in series.items():
            rows[lock][parameters["ratio"], int(parameters["threads"])][int(parameters["load"])] = blocks

    def table(title, chosen, text):
        """A table of text(lock, ratio, threads, load, blocks) for the chosen locks; a gap between locks."""
        form = MixTable(title, out)
        for position, lock in enumerate(chosen):
            if position:
                out("")
            for (ratio, threads), loads in sorted(rows[lock].items(), key=lambda item: item[0][1]):
                texts = {load: text(lock, ratio, threads, load, loads[load]) for load in sorted(loads)}
                form.row(label(lock, ratio), threads, texts)

    out("Milliseconds for 1 000 000 operations (lock and unlock) of each thread, which is the same number as")
    out("nanoseconds per operation of a thread; load = PAUSEs inside. Median of the blocks.")
    out("")
    table("Execution Time (ms)", locks, lambda *a: milliseconds(numpy.median(times(a[-1]))))

    def ratio_text(lock, ratio, threads, load, blocks):
        theirs = rows[peer(lock, locks)][ratio, threads][load]
        middle, low, high = median_ratio(times(blocks), times(theirs))
        return f"{middle:.3f} [{low:.3f} {high:.3f}]"

    compared = [lock for lock in locks if peer(lock, locks)]
    out("")
    if compared:
        pairs = {len(blocks) for lock in compared for loads in rows[lock].values() for blocks in loads.values()}
        out(f"Time in ratio to the C peer, {joined(sorted({peer(lock, locks) for lock in compared}))}, of the same cell; below 1 is faster. Median of the")
        out(f"ratios of {joined(sorted(pairs))} pairs of blocks, with its bootstrap 95 % interval.")
        out("")
        table("Ratio [interval]", compared, ratio_text)
    else:
        out("Ratios: none, because no lock was measured beside a C peer.")

    out("")
    out("Operations of each thread in each block, equal for all locks of a cell:")
    out("")
    form = MixTable("Operations", out)
    some = {key: loads for lock in locks for key, loads in rows[lock].items()}
    for (ratio, threads), loads in sorted(some.items(), key=lambda item: item[0][1]):
        form.row(f"all/{ratio}", threads, {load: str(loads[load][0].operations // threads) for load in sorted(loads)})
