# SPDX-License-Identifier: GPL-2.0
"""Delays of real-time tasks that are woken beside spinners."""

from results import in_order, table, total


def report(header, cells, out):
    out("Microseconds from the wake-up of a real-time task on a spinner's CPU until it runs. p50 and p99: the median of")
    out("the blocks' own, to one part in eight; max of all. A lock that does not reschedule at the end of a spin makes")
    out("the task wait for the section, which takes longer with more load.")
    for cell, series in cells.items():
        out("")
        out(f"load {dict(cell)['load']}, {dict(cell)['threads']} spinners")
        rows = []
        for lock, blocks in in_order(series, header):

            def middle(unit):
                values = sorted(block.values[unit] for block in blocks)
                return f"{values[len(values) // 2] / 1000:.1f}"

            most = max(block.values["max-ns"] for block in blocks) / 1000
            rows.append((lock, f"{total(blocks, 'wakes'):.0f}", middle("p50-ns"), middle("p99-ns"), f"{most:.1f}"))
        table(out, ("lock", "wake-ups", "p50", "p99", "max"), rows)
