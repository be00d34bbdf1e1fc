# SPDX-License-Identifier: GPL-2.0
"""The table of the 2014 series: times of all cells, their ratios to the C peer, and what stages change."""

import collections

import numpy

from results import joined, median_ratio, peer, times

# What the stages of the 2014 series are compared with, and the name that they have in common.
BEFORE = "rwsem_xadd.base"
STAGES = "rwsem_xadd"
# What the mails had for all of it: {(ratio, threads): {load: % change of the time}}.
AFTER = "rwsem_xadd.posted"
PUBLISHED = {
    ("0:1", 2): {1: -52.5, 5: -33.7, 10: -31.1},
    ("1:1", 2): {1: -93.5, 5: -91.9, 10: -88.7},
    ("10:1", 2): {1: -81.1, 5: -77.0, 10: -74.6},
    ("0:1", 10): {1: -76.8, 5: -69.7, 10: -64.8},
    ("1:1", 10): {1: -89.6, 5: -89.0, 10: -85.8},
    ("10:1", 10): {1: -78.6, 5: -75.6, 10: -62.2},
}


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

    stages = [lock for lock in locks if lock.startswith(STAGES) and lock != BEFORE]
    if BEFORE in locks and stages:

        def change(ratio, threads, load, blocks):
            middle, low, high = median_ratio(times(blocks), times(rows[BEFORE][ratio, threads][load]))
            return 100 * (middle - 1), 100 * (low - 1), 100 * (high - 1)

        def percent(values):
            return ", ".join(f"{load}:{value:+.1f}%" for load, value in sorted(values.items()))

        def change_text(lock, ratio, threads, load, blocks):
            text = f"{change(ratio, threads, load, blocks)[0]:+.1f}%"
            published = PUBLISHED.get((ratio, threads)) if lock == AFTER else None
            if published and load == max(rows[lock][ratio, threads]):
                text += f"   (mails: {percent(published)})"
            return text

        out("")
        out(f"% change of the time against {BEFORE}, the series' \"before\": median over the same pairs of blocks. Behind")
        out(f"{AFTER}, its \"after\", stands what the mails had.")
        out("")
        table("% Change", stages, change_text)
        # The whole interval on the other side of nothing.
        against = [
            f"{ratio} with {threads} threads, load {load} ({change(ratio, threads, load, blocks)[0]:+.1f}%)"
            for (ratio, threads), loads in rows.get(AFTER, {}).items()
            for load, blocks in loads.items()
            if (ratio, threads) in PUBLISHED and change(ratio, threads, load, blocks)[1] > 0
        ]
        if AFTER in locks:
            out("")
            out(f"Cells of {AFTER} that are slower where the mails' were faster: {joined(against) or 'none'}.")

    out("")
    out("Operations of each thread in each block, equal for all locks of a cell:")
    out("")
    form = MixTable("Operations", out)
    some = {key: loads for lock in locks for key, loads in rows[lock].items()}
    for (ratio, threads), loads in sorted(some.items(), key=lambda item: item[0][1]):
        form.row(f"all/{ratio}", threads, {load: str(loads[load][0].operations // threads) for load in sorted(loads)})
