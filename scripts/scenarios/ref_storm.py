# SPDX-License-Identifier: GPL-2.0
"""The storm on a reference count: a table for each kind of cell, then what was published beside what is here."""

import collections

import numpy

from results import joined, median_ratio, peer, times

# A kind of cell, in the order of the tables: the scenario in the lines of results, its ratio, what it does.
KINDS = [
    ("RefStorm", "1:0", "A reference of one object, for all threads the same, got and put."),
    ("RefStorm", "99:1", "The same, but one of 100 operations holds the lock for 5 PAUSEs."),
    ("RefWalk", "99:1", "Walks from a leaf to its root (two parents got, two nodes put); one of 100 moves the leaf."),
    ("RefBurst", None, "Got and put while the first thread, in between, holds the lock again and again for 5 PAUSEs."),
]

# What the mails say of a lockless count beside a locked one: change of the jobs a minute by users and nodes.
RFC = "2013, AIM7 short in a RAM disk, 8 nodes of 10 cores, Linux 3.10-rc4"
RFC_NODES = (1, 2, 4, 8)
RFC_CHANGES = {
    "10-100 users": (1.3, 0.3, 203.6, 195.7),
    "200-1000 users": (0.2, 1.3, 454.1, 448.9),
    "1100-2000 users": (0.9, 1.2, 411.3, 502.8),
}
# And of tries without a pause in between beside tries with one, by processes.
PAUSE = "Linux 6.3, will-it-scale, 96 threads of Cascade Lake"
PAUSE_PROCESSES = (8, 24, 48, 96)
PAUSE_CHANGES = {"open3": (18, 84, 72, 134), "fstat2": (69, 144, 209, 423)}


def rate(block):
    """Thousands of operations of all threads in a second."""
    return block.operations * 1e6 / block.values["elapsed-ns"]


def median(series, value):
    return float(numpy.median([value(block) for block in series]))


def figure(value):
    """Three digits and more."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def mean(series, unit):
    """Of the blocks, `-` where nobody counted."""
    values = [block.values[unit] for block in series if unit in block.values]
    return figure(sum(values) / len(values)) if values else "-"


def interval(ratio):
    return "{:.3f} [{:.3f} {:.3f}]".format(*ratio)


def versus(series, theirs):
    return interval(median_ratio(times(series), times(theirs))) if theirs else "-"


def thread_rates(series):
    """Of the slowest and the fastest thread of a block. All do the same work."""

    def one(unit):
        def of(block):
            threads = int(block.parameters["threads"])
            return block.operations / threads * 1e6 / block.values[unit]

        return figure(median(series, of))

    return f"{one('slowest-ns')} to {one('fastest-ns')}"


def table(columns, rows, out):
    """`columns` is {title: width}, negative where text begins at the left; rows with None are gaps."""

    def line(texts):
        out("  " + "  ".join(f"{text:{'<' if width < 0 else '>'}{abs(width)}}" for text, width in zip(texts, columns.values())).rstrip())

    line(columns)
    line("-" * abs(width) for width in columns.values())
    for row in rows:
        line(row) if row else out("")


def by_lock(locks, threads):
    """All rows of a table: (lock, threads, its blocks, those of its peer), with None between locks."""
    there = [lock for lock in locks if any(lock in series for series in threads.values())]
    for lock in there:
        if lock != there[0]:
            yield None
        for number, series in sorted(threads.items()):
            if lock in series:
                yield lock, number, series[lock], series.get(peer(lock, locks))


def storm_table(locks, threads, out):
    columns = {
        "lock": -14, "threads": 7, "1000 op/s": 9, "slowest to fastest thread": -25,
        "failed/op": 9, "falls/Mop": 9, "time : C [interval]": -21,
    }
    rows = (
        row and (
            row[0], row[1], figure(median(row[2], rate)), thread_rates(row[2]),
            mean(row[2], "retries/op"), mean(row[2], "fallbacks/Mop"), versus(row[2], row[3]),
        )
        for row in by_lock(locks, threads)
    )
    table(columns, rows, out)


def burst_table(locks, threads, out):
    def phase(series, name):
        return median(series, lambda block: block.values[f"ns-{name}/op"])

    def recovery(series):
        after, before = (numpy.array([block.values[f"ns-{name}/op"] for block in series]) for name in ("after", "before"))
        return interval(median_ratio(after, before))

    columns = {
        "lock": -14, "threads": 7, "ns before": 9, "ns during": 9, "ns after": 9,
        "falls after": 11, "after : before [interval]": -25,
    }
    rows = (
        row and (
            row[0], row[1], *(figure(phase(row[2], name)) for name in ("before", "during", "after")),
            mean(row[2], "fallbacks-after"), recovery(row[2]),
        )
        for row in by_lock(locks, threads)
    )
    table(columns, rows, out)


def percent(value):
    return f"{value:+.1f} %" if abs(value) < 10 else f"{value:+.0f} %"


def change(ours, theirs, threads):
    """In percent, of the operations a second, by the number of threads."""
    return {
        number: (1 / median_ratio(times(series[ours]), times(series[theirs]))[0] - 1) * 100
        for number, series in sorted(threads.items())
        if ours in series and theirs in series
    }


def published(locks, kinds, accelerator, out):
    """Figures of others beside the comparison here that comes closest."""

    def rows(title, places, changes):
        for name, values in changes.items():
            out(f"    {name:<16}{', '.join(f'{place}: {percent(value)}' for place, value in zip(places, values))}")
        out(f"      ({title})")

    def here(ours, theirs):
        if ours not in locks or theirs not in locks:
            return
        for (scenario, ratio, _), threads in kinds.items():
            if scenario != "RefStorm":
                continue
            values = change(ours, theirs, threads)
            if text := ", ".join(f"{number}: {percent(value)}" for number, value in values.items()):
                out(f"    here, {ratio:<10}{text}")
        out(f"      ({ours} beside {theirs} by threads, {accelerator})")

    out("Published, and here: change of the operations in a second.")
    out("")
    out("  A lockless count beside one under its lock, by nodes:")
    rows(RFC, RFC_NODES, RFC_CHANGES)
    here("lockref.rfc2", "spin_ref")
    here("lockref", "spin_ref")
    out("")
    out("  Tries without a pause beside tries with one, by processes:")
    rows(PAUSE, PAUSE_PROCESSES, PAUSE_CHANGES)
    here("lockref", "lockref.rfc2")
    out("")
    out("  What was gained there came of cache lines that travel between many CPUs and nodes, which a guest on a few")
    out("  CPUs does not have: here scripts/count counts the transfers.")


def report(header, cells, out):
    locks = header["locks"].split(",")
    kinds = {kind: collections.defaultdict(dict) for kind in KINDS}
    for cell, series in cells.items():
        parameters = dict(cell)
        scenario = next(iter(series.values()))[0].scenario
        for kind in KINDS:
            if kind[:2] == (scenario, parameters.get("ratio")):
                kinds[kind][int(parameters["threads"])] = series
    kinds = {kind: threads for kind, threads in kinds.items() if threads}
    lanes = joined(sorted({block.header["accelerator"] for series in cells.values() for blocks in series.values() for block in blocks}))

    for (scenario, _, words), threads in kinds.items():
        out(words)
        out("")
        (burst_table if scenario == "RefBurst" else storm_table)(locks, threads, out)
        out("")
    out("Median of the blocks; failed: compare-exchanges; falls: operations that took the lock, - where nobody counts")
    out("(C has no such events, spin_ref takes the lock each time). Time in ratio to lockref_c, median of the ratios of")
    out("pairs of blocks with its bootstrap 95 % interval.")
    out("In the burst: nanoseconds of an operation in the other threads; falls after it, in all threads of a block.")
    out("")
    published(locks, kinds, lanes, out)
