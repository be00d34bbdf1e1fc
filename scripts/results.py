# SPDX-License-Identifier: GPL-2.0
"""Results of the benchmarks: reading them, refusing bad ones, comparing locks.

The format is Go's: `key: value` lines that hold for what follows, and a line for each block,
`Benchmark<Scenario>/<parameter>=<value>/... <operations> <value> <unit> <value> <unit> ...`; other lines are
ignored. Block 0 of each cell warmed up and is dropped.
"""

import collections
import re

import numpy

# Of the bootstrap: the same results give the same interval.
RESAMPLES = 10_000
RANDOM_SEED = 1
# Half the interval's complement, in percent.
TAIL = 2.5
# How units end that count lock events; blocks without one have no such value.
EVENTS = "-events"


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


def in_order(series, header):
    """The items of {lock: blocks} in the order of the list of locks, not that of the first round."""
    return sorted(series.items(), key=lambda item: header["locks"].split(",").index(item[0]))


def times(series):
    return numpy.array([block.values["ns/op"] for block in series])


def events_of(series):
    """How often each lock event happened in blocks."""
    counts = collections.Counter()
    for block in series:
        for unit, count in block.values.items():
            if unit.endswith(EVENTS):
                counts[unit.removesuffix(EVENTS)] += count
    return counts


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


def table(out, heads, rows):
    """Columns as wide as they must be: the first to the left, numbers to the right. `None` is a gap between rows."""
    lines = [list(map(str, row)) for row in [heads, *filter(None, rows)]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def put(cells):
        _, *rest = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        out("  " + "  ".join([cells[0].ljust(widths[0]), *rest]).rstrip())

    put(lines[0])
    put(["-" * width for width in widths])
    for row in rows:
        if row is None:
            out("")
        else:
            put(list(map(str, row)))


def total(series, unit):
    """The sum over blocks of what was counted in `unit`."""
    return sum(block.values[unit] for block in series)


def operations(series):
    return sum(block.operations for block in series)
