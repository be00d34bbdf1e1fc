#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Turns results of the benchmarks into tables.

Input is the Go benchmark format: `key: value` lines that hold for what follows, and a line for each block,
`Benchmark<Scenario>/<parameter>=<value>/... <operations> <value> <unit> <value> <unit> ...`; other lines are
ignored. Block 0 of each cell warmed up and is dropped.

Exit code: 0; 1 the results prove nothing (a lock is broken, blocks are missing); 2 usage.
"""

import argparse
import collections
import re
import sys

import numpy

# Of the bootstrap: the same results give the same interval.
RESAMPLES = 10_000
RANDOM_SEED = 1
# Half the interval's complement, in percent.
TAIL = 2.5

# What figures of an accelerator are worth.
LANES = {
    "tcg": "QEMU emulated the processor (TCG): its nanoseconds are not those of any hardware.",
    "icount": "Virtual time (icount): one instruction takes a fixed time, only one vCPU runs at a time. Not hardware speed.",
    "uml": "User-mode Linux: native instructions, but sleeping and waking cost host system calls. Not bare-metal speed.",
    "kvm": "Hardware virtualisation (KVM): native instructions, wake-ups cost exits to the host.",
}
# Accelerators under which guest CPUs share the CPUs of the host as its scheduler sees fit.
SHARING = ("tcg", "uml", "kvm")


class Unusable(Exception):
    """The results prove nothing: no figure may be shown."""


class Header(dict):
    """`key: value` lines."""

    def __missing__(self, key):
        raise Unusable(f"the results lack a line '{key}: ...'")


class Block:
    """A line of results with the header that held for it."""

    def __init__(self, header, scenario, parameters, operations, values):
        self.header = header
        self.scenario = scenario
        self.parameters = parameters
        self.operations = operations
        self.values = values

    @property
    def lock(self):
        return self.parameters["lock"]

    @property
    def cell(self):
        """All parameters but the lock: what blocks of two locks have in common when they can be compared."""
        return tuple((key, value) for key, value in self.parameters.items() if key != "lock")

    @property
    def number(self):
        return int(self.values["block"])

    def describe(self):
        return " ".join(f"{key}={value}" for key, value in self.parameters.items())


def parse(lines):
    """The header as it stands at the end, and all blocks."""
    header, blocks = Header(), []
    for number, line in enumerate(lines, 1):
        if match := re.match(r"([a-z][^\sA-Z:]*):\s+(.*\S)", line):
            header[match[1]] = match[2]
        elif line.startswith("Benchmark"):
            try:
                name, operations, *rest = line.split()
                scenario, *parameters = name.removeprefix("Benchmark").split("/")
                values = dict(zip(rest[1::2], map(float, rest[0::2]), strict=True))
                block = Block(
                    Header(header), scenario, dict(p.split("=", 1) for p in parameters), int(operations), values
                )
                if block.lock and block.number < 0:
                    raise ValueError
            except (ValueError, KeyError) as error:
                raise Unusable(f"line {number} is no line of results: {line.strip()}") from error
            blocks.append(block)
    return header, blocks


def check(header, blocks):
    """Refuses results that prove nothing."""
    faults = collections.Counter()
    examples = {}
    for block in blocks:
        count = sum(int(block.values.get(unit, 0)) for unit in ("overlaps", "torn"))
        if count:
            faults[block.lock] += count
            examples.setdefault(block.lock, block)
    if faults:
        raise Unusable(
            "; ".join(
                f"{lock} is broken: it let others in {count} times, first seen at {examples[lock].describe()}"
                for lock, count in faults.items()
            )
        )
    if "failure" in header:
        raise Unusable(f"a run failed: {header['failure']}")
    for block in blocks:
        if block.operations <= 0 or block.values.get("ns/op", 0) <= 0:
            raise Unusable(f"a block without operations: {block.describe()}")
    numbers = collections.defaultdict(list)
    for block in blocks:
        numbers[block.lock, block.cell].append(block)
    if not numbers:
        raise Unusable("there are no results")
    for series in numbers.values():
        wanted = int(series[0].header["blocks"]) + 1
        if sorted(block.number for block in series) != list(range(wanted)):
            raise Unusable(f"{len(series)} blocks instead of {wanted}: {series[0].describe()}")


def measured(blocks):
    """{cell: {lock: blocks in the order of their rounds}} without the rounds that warmed up."""
    cells = collections.defaultdict(lambda: collections.defaultdict(list))
    for block in sorted(blocks, key=lambda block: block.number):
        if block.number > 0:
            cells[block.cell][block.lock].append(block)
    return cells


def times(series):
    return numpy.array([block.values["ns/op"] for block in series])


def median_ratio(ours, theirs):
    """Median of the ratios of pairs, and its bootstrap interval. Values that share an index are a pair."""
    ratios = ours / theirs
    draws = numpy.random.default_rng(RANDOM_SEED).integers(0, len(ratios), (RESAMPLES, len(ratios)))
    low, high = numpy.percentile(numpy.median(ratios[draws], axis=1), [TAIL, 100 - TAIL])
    return float(numpy.median(ratios)), float(low), float(high)


def peer(lock, locks):
    """The C lock that `lock` is compared with: `rwsem_c` for `rwsem_xadd.base`; none for C's own."""
    if lock.endswith("_c"):
        return None
    return next((other for other in locks if other.endswith("_c") and lock.startswith(other[:-2])), None)


def joined(words):
    words = list(map(str, words))
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def counted(threads):
    """`2 and 10 threads`, in ascending order."""
    return f"{joined(sorted(threads))} {'thread' if threads == {1} else 'threads'}"


# ---- rwsem_mix ----


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


def mix_report(header, cells, out):
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


# How a scenario is shown, by its name in the lines of results.
FORMS = {"RwsemMix": mix_report}


# ---- around the tables ----


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


def report(lines, out):
    header, blocks = parse(lines)
    check(header, blocks)
    scenarios = {block.scenario for block in blocks}
    describe_machine(blocks, out)
    for scenario in sorted(scenarios):
        if scenario not in FORMS:
            raise Unusable(f"there is no form for scenario {scenario}")
        out("")
        FORMS[scenario](header, measured([block for block in blocks if block.scenario == scenario]), out)
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
