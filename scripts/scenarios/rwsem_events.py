# SPDX-License-Identifier: GPL-2.0
"""Lock events for each 1000 operations, cell by cell."""

from results import Unusable, events_of, in_order, operations, table

def report(header, cells, out):
    if not any(events_of(blocks) for series in cells.values() for blocks in series.values()):
        raise Unusable("the kernel counts no lock events (CONFIG_LOCK_EVENT_COUNTS)")
    out("Lock events for 1000 operations; those that no lock had are not shown. C counts its own elsewhere.")
    for cell, series in cells.items():
        parameters = dict(cell)
        ours = {lock: (events_of(blocks), operations(blocks)) for lock, blocks in in_order(series, header) if events_of(blocks)}
        out("")
        out(f"{parameters['ratio']}, {parameters['threads']} threads, load {parameters['load']}")
        if not ours:
            out("  none: nobody waited")
            continue
        names = sorted(set().union(*(events for events, _ in ours.values())))
        rows = [(name, *(f"{1000 * events[name] / done:.1f}" for events, done in ours.values())) for name in names]
        table(out, ("event", *(lock.removeprefix("rwsem_xadd.") for lock in ours)), rows)
