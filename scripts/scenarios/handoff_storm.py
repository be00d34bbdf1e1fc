# SPDX-License-Identifier: GPL-2.0
"""The handoff patch, before and after: work done, handoffs, how spins ended, and how long tasks waited."""

from results import events_of, in_order, median_ratio, operations, table, times, total

# Without the patch, and as C is.
BEFORE = "rwsem.c73"
# How a spin ended: with the lock, for nothing, at once.
SPINS = {
    "with the lock": ("opt_lock",),
    "in vain": ("opt_fail", "reader_spin_exhausted"),
    "for the handoff": ("opt_handoff",),
    "not begun": ("opt_nospin",),
}
WAITS = ("p50", "p99", "p99.9", "max")


def report(header, cells, out):
    out("Short holds of all tasks but one, which holds the lock for 10 ms now and then: whoever queued meanwhile asks for")
    out(f"a handoff. Before the patch: {BEFORE}, which does as C. What spinning costs is counted by scripts/count --handoff.")
    for cell, series in cells.items():
        parameters = dict(cell)
        out("")
        out(f"{parameters['threads']} tasks, {parameters['ratio']} readers to writers, load {parameters['load']}")
        work(in_order(series, header), series.get(BEFORE), out)
        waits(in_order(series, header), out)


def work(series, before, out):
    rows = []
    for lock, blocks in series:
        done, seconds, events = operations(blocks), total(blocks, "elapsed-ns") / 1e9, events_of(blocks)

        def each(*names):
            return f"{1000 * sum(events.get(name, 0) for name in names) / done:.1f}" if events else "-"

        ratio = "-"
        if before:
            middle, low, high = median_ratio(times(before), times(blocks))
            ratio = f"{middle:.2f} [{low:.2f} {high:.2f}]"
        handoffs = each("rlock_handoff", "wlock_handoff"), each("handoff_granted")
        rows.append((lock, f"{done / seconds:.0f}", ratio, *handoffs, *(each(*names) for names in SPINS.values())))
    out("")
    out(f"Operations/s of all tasks, in ratio to {BEFORE} over pairs of blocks with the bootstrap 95 % interval (above 1 is")
    out("faster); of 1000 operations: handoffs asked for and granted, and spins by how they ended.")
    out("")
    table(out, ("lock", "ops/s", "ratio", "asked", "granted", *(f"spins {name}" for name in SPINS)), rows)


def waits(series, out):
    rows = []
    for kind in "read", "write":
        if rows:
            rows.append(None)
        for lock, blocks in series:
            if f"{kind}-max-ns" not in blocks[0].values:
                continue

            def middle(unit):
                values = sorted(block.values[unit] for block in blocks)
                return values[len(values) // 2]

            most = max(block.values[f"{kind}-max-ns"] for block in blocks)
            values = [middle(f"{kind}-{name}-ns") for name in WAITS[:-1]] + [most]
            rows.append((f"{lock} {kind}", *(f"{value / 1000:.0f}" for value in values)))
    out("")
    out("Microseconds until an operation has the lock; percentiles: the median of the blocks' own, to one part in eight;")
    out("max of all.")
    out("")
    table(out, ("lock", *WAITS), rows)
