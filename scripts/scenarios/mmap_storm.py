# SPDX-License-Identifier: GPL-2.0
"""Work for each second beside readers that sleep, and what it cost in sleeps and wake-ups."""

import numpy

from results import events_of, in_order, median_ratio, operations, table, times, total

# What the stages are compared with: no spinning at all.
WITHOUT = "rwsem_xadd.nospin"


def show(header, cells, out, work):
    """A row a lock; `work` names operations that count."""
    for cell, series in cells.items():
        parameters = dict(cell)
        out("")
        out(f"{parameters['ratio']}, {parameters['threads']} tasks, load {parameters['load']}")
        rows = []
        for lock, blocks in in_order(series, header):
            done = total(blocks, "reads") + total(blocks, "writes")
            seconds = total(blocks, "elapsed-ns") / 1e9
            events = events_of(blocks)

            def each(*names):
                return f"{sum(events.get(name, 0) for name in names) / done:.3f}" if events else "-"

            def most(unit):
                return max(block.values[unit] for block in blocks)

            ratio = "-"
            if WITHOUT in series:
                middle, low, high = median_ratio(times(series[WITHOUT]), times(blocks))
                ratio = f"{middle:.2f} [{low:.2f} {high:.2f}]"
            rows.append(
                (
                    lock,
                    f"{operations(blocks) / seconds:.0f}",
                    ratio,
                    f"{total(blocks, 'writes') / seconds:.0f}",
                    each("wake_reader", "wake_writer"),
                    each("sleep_reader", "sleep_writer"),
                    wait_lock(blocks),
                    f"{most('most-bypassed'):.0f}",
                    f"{most('longest-write-ns') / 1e6:.1f}",
                )
            )
        table(
            out,
            (
                "lock",
                f"{work}/s",
                "ratio to nospin",
                "writes/s",
                "wakes/release",
                "sleeps/op",
                "% in wait lock",
                "bypassed",
                "longest ms",
            ),
            rows,
        )


def legend(out):
    out("% in wait lock: samples in which the lock's wait lock was taken. Bypassed: the most writes of others during the")
    out("wait of a writer; longest: the longest such wait.")


def wait_lock(blocks):
    shares = [block.values["wait-lock-ppm"] for block in blocks if "wait-lock-ppm" in block.values]
    return f"{numpy.mean(shares) / 1e4:.2f}" if shares else "-"


def report(header, cells, out):
    out("16 tasks by default read and write; one read of eight sleeps for 100 us with the lock held. Operations of all")
    out(f"tasks for each second, and in ratio to {WITHOUT} over pairs of blocks, with the bootstrap 95 % interval:")
    out("above 1 is faster.")
    legend(out)
    show(header, cells, out, "ops")
