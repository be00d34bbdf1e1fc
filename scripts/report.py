#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Turns results of the benchmarks (see results.py) into tables.

The tables of a scenario are made by scenarios/<scenario>.py, in a function

    report(header, cells, out)

where `header` has the `key: value` lines, `cells` is {cell: {lock: blocks}} as results.measured() returns it,
and `out` takes a line of text. The line `form: <scenario>` says which.

Exit code: 0; 1 the results prove nothing (a lock is broken, blocks are missing); 2 usage.
"""

import argparse
import importlib
import sys
from pathlib import Path

from results import Unusable, check, counted, joined, measured, parse

# What figures of an accelerator are worth.
LANES = {
    "tcg": "QEMU emulated the processor (TCG): its nanoseconds are not those of any hardware.",
    "icount": "Virtual time (icount): one instruction takes a fixed time, only one vCPU runs at a time. Not hardware speed.",
    "uml": "User-mode Linux: native instructions, but sleeping and waking cost host system calls. Not bare-metal speed.",
    "kvm": "Hardware virtualisation (KVM): native instructions, wake-ups cost exits to the host.",
}
# Accelerators under which guest CPUs share the CPUs of the host as its scheduler sees fit.
SHARING = ("tcg", "uml", "kvm")


def describe_machine(blocks, out):
    header = blocks[0].header

    def field(key):
        return header.get(key, "unknown")

    guests = {}
    for block in blocks:
        guests[block.header["vcpus"]] = guests.get(block.header["vcpus"], set()) | {int(block.parameters["threads"])}
    shapes = joined(f"{vcpus} vCPUs ({counted(threads)})" for vcpus, threads in guests.items())
    out(f"Linux {field('kernel')}, kernel {field('kernel-name')} (configuration {field('config-hash')}), preemption {field('preempt')}, helpers")
    out(f"inlined: {field('config-inline-helpers')}; {field('rust-compiler')}; {field('compiler')}")
    out(f"klocks {field('commit')[:12]} (tag {field('tag')}, local changes: {field('dirty')}), {field('date')}, seed {field('seed')}")
    out(f"Under {field('accelerator')} on {field('host-cpus')} host CPUs ({field('host-cpu')}): {shapes}")


def caveats(blocks, out):
    """What keeps figures from meaning what they seem to."""

    def cells(condition):
        threads = {int(block.parameters["threads"]) for block in blocks if condition(block)}
        return f"all cells with {counted(threads)}" if threads else "none"

    def indicative(block):
        return block.header["accelerator"] in SHARING and int(block.parameters["threads"]) > int(block.header["host-cpus"])

    out(f"Oversubscribed (more threads than vCPUs): {cells(lambda block: block.header['oversubscribed'] == 'yes')}.")
    out(f"Indicative (more threads than the host has CPUs): {cells(indicative)}.")
    for accelerator in sorted({block.header["accelerator"] for block in blocks}):
        out(LANES[accelerator])


def form_of(name):
    """The module that shows scenario `name`."""
    if not name.isidentifier() or not (Path(__file__).parent / "scenarios" / f"{name}.py").is_file():
        raise Unusable(f"there is no form for scenario {name}")
    return importlib.import_module(f"scenarios.{name}")


def report(lines, out):
    header, blocks = parse(lines)
    check(header, blocks)
    describe_machine(blocks, out)
    out("")
    form_of(header["form"]).report(header, measured(blocks), out)
    out("")
    caveats(blocks, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", help="file with results")
    arguments = parser.parse_args()
    try:
        with open(arguments.results, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"cannot read {arguments.results}: {error}")
    text = []
    try:
        report(lines, text.append)
    except Unusable as reason:
        print(f"report: {reason}", file=sys.stderr)
        return 1
    print("\n".join(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
