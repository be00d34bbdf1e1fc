# SPDX-License-Identifier: GPL-2.0
"""Writes at a distance: grace periods, time, and the bystanders' losses."""

from results import operations, table, total

# Of the mail: what its loop did, in seconds, by the lock that comes closest.
SEED = {"percpu_rwsem.expedited": "13.5", "percpu_rwsem.sync": "67.5", "percpu_rwsem": "13.3"}
WRITES = 2000


def mean(blocks, unit):
    return total(blocks, unit) / len(blocks)


def report(header, cells, out):
    out(f"A thread writes, then waits. Time: seconds in the lock's functions, for {WRITES} writes. Waits: grace periods that")
    out("a write waited for, on average, and in all; grace periods: those that the whole system had meanwhile, for a")
    out("write. Bystanders, one a CPU, see time that they lost, in millionths; switches and interrupts by the second")
    out("and CPU; the longest gap. lock_busted takes no lock: what there is anyway, such as the host's other work.")
    gaps = sorted({int(dict(cell)["gap"]) for cell in cells})
    out("")
    rows = []
    for gap in gaps:
        if rows:
            rows.append(None)
        for cell, series in cells.items():
            if int(dict(cell)["gap"]) != gap:
                continue
            for lock, blocks in series.items():
                writes = operations(blocks)
                waits = int(total(blocks, "waits"))
                nanoseconds = sum(block.values["ns/op"] * block.operations for block in blocks)
                rows.append(
                    (
                        lock,
                        gap,
                        writes,
                        f"{nanoseconds / writes * WRITES / 1e9:.2f}",
                        f"{waits / writes:.3f}",
                        waits,
                        f"{total(blocks, 'grace-periods') / writes:.2f}",
                        f"{total(blocks, 'expedited') / writes:.2f}",
                        f"{mean(blocks, 'lost-ppm'):.0f}",
                        f"{mean(blocks, 'switches/s'):.0f}",
                        f"{mean(blocks, 'interrupts/s'):.0f}",
                        f"{max(block.values['longest-gap-ns'] for block in blocks) / 1e6:.1f}",
                    )
                )
    heads = ("lock", "gap ms", "writes", "time s", "waits", "all", "grace p.", "exped.", "lost", "switches", "interr.", "gap max ms")
    table(out, heads, rows)
    out("")
    shown = {lock for series in cells.values() for lock in series}
    for lock, seconds in SEED.items():
        if lock in shown:
            out(f"  The series, on 2 CPUs under KVM in 2015: a probe switched 2000 times in {seconds} s, like {lock}")
    out("  and with rcu_sync 1 to 3 waits in all of them.")
