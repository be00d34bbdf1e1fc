#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Turns the counts of one or more guests into a scoreboard and benchmark lines.

A guest's directory holds counts.txt (from the plugin: what workers executed in each function, run by
run) and guest.txt (from the guest: the module's symbols, then for each cell the module's results). The
n-th run of the one belongs to the n-th result of the other.

An operation is an acquire-release pair. What is counted is what workers execute between their first
and last operation in lock text and in wake-up and wait-lock text, C's or ours, but not in interrupts, in
the scheduler, in the harness and in the call that reaches a lock. lines/op are cache-line transfers: reads
of a line that another CPU has and this one has not, and writes to a line that others have.
sleeps/op are calls into the scheduler to sleep, wakes/sleep the wake-ups that were issued for each, and
wakes/writer-sleep those of writers alone, where threads only read or only write.

spin-insns/op and spin-pauses/op are what the spin queue and the wait for an owner execute; in bench scenario
handoff_storm the patch is compared with the lock that is without, and ns/op is virtual time for an operation of
all threads together.

What is inlined into its user, as reference counts are, the harness keeps in functions of their own. failed/op are
their compare-exchanges that failed: the locked operations beyond those that changed the word or first tried to lock it.

Exit code: 0; 1 a ratio is beyond its limit or the self-test fails; 2 usage; 4 the input proves nothing.
"""

import argparse
import bisect
import collections
import fnmatch
import math
import re
import subprocess
import sys
from pathlib import Path

FORMAT = "klocks-count 2"
FIELDS = "insns locked pauses calls loads stores read_misses invalidations entries writer_entries".split()

# Lock text of C is what these objects define; wake-up and wait-lock text is what those and some
# functions of the scheduler are.
LOCK_OBJECTS = """kernel/locking/rwsem.o kernel/locking/osq_lock.o kernel/locking/mutex.o
    kernel/locking/percpu-rwsem.o kernel/rcu/sync.o lib/lockref.o""".split()
WAKE_OBJECTS = "kernel/locking/spinlock.o kernel/locking/qspinlock.o".split()
WAKE_FUNCTIONS = re.compile(
    r"wake_q_|wake_up_|__wake_up|__wake_q_|try_to_wake_up$|ttwu_|default_wake_function$|rcuwait_wake_up$"
)
# A sleep is an entry of one of these, a wake-up an entry of that, by a worker outside of interrupts.
SLEEPS, WAKE = ("schedule", "schedule_preempt_disabled"), "try_to_wake_up"
# Where a spinlock is waited for.
QUEUE = "queued_spin_lock_slowpath"

# Text of the module is the lock's, except for what these modules of its crate define; of these in turn the
# wrappers of C's inline functions are, and what the harness keeps apart for being inlined elsewhere.
CRATE = "klocks_main"
OTHER_REGIONS = {"harness": "harness", "kapi": "wake"}
LOCKS_THERE = {"harness": re.compile(r"9ref_storm(.*E)?4(pair|hold)"), "kapi": re.compile(r"11percpu_peer|7lockref")}

# Text that spins: in C, as far as it has functions of its own, and in the module, by parts of mangled names.
SPINS_OF_C = "osq_lock osq_unlock osq_wait_next rwsem_spin_on_owner".split()
SPINS = re.compile(r"klocks_main3osq|klocks_main4spin|14spin_for_write|14wait_for_owner")

# C's function pairs whose length is checked against the disassembly.
SELF_TEST = {
    ("rwsem_c", "write"): ("down_write", "up_write"),
    ("rwsem_c", "read"): ("down_read", "up_read"),
    ("mutex", "write"): ("mutex_lock", "mutex_unlock"),
    ("lockref_c", "get-put"): ("lockref_get", "lockref_put_or_lock"),
}

# What says in a result that a lock did not do its work.
FAULTS = "overlaps torn thawed".split()

# What scenarios count themselves that is shown for each operation, too.
REPORTED = "grace-periods", "expedited"

# Rows of the scoreboard for a shape of one thread, and for more.
UNITS_ALONE = ["insns/op", "locked/op", "calls/op", *(f"{unit}/op" for unit in REPORTED)]
UNITS_TOGETHER = ["insns/op", "locked/op", "lines/op", "pauses/op", "sleeps/op", "wakes/sleep", "wakes/writer-sleep", "failed/op"]

UNITS_HANDOFF = ["spin-pauses/op", "spin-insns/op", "insns/op", "locked/op", "lines/op", "sleeps/op", "ns/op"]

# What the handoff patch is compared with there.
HANDOFF, BEFORE = "handoff_storm", "rwsem.c73"


# Why scripts/count leaves a lock of a family out of a shape of its C peer.
REASONS = {"percpu_rwsem": "each write waits for grace periods, 20 to 45 ms of virtual time"}


class Unusable(Exception):
    """The input proves nothing: no figure may be shown."""


def read(path):
    try:
        return path.read_text()
    except OSError as error:
        raise Unusable(f"cannot read {path}: {error.strerror}") from error


def run(*command):
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unusable(f"cannot run {command[0]}: {error.strerror}") from error
    if result.returncode:
        raise Unusable(f"{command[0]} failed: {result.stderr.strip()}")
    return result.stdout


class Kernel:
    """The functions of the kernel image and the regions of those that locks consist of."""

    def __init__(self, directory):
        self.image = directory / "vmlinux"
        self.addresses = collections.defaultdict(set)
        for line in read(directory / "System.map").splitlines():
            address, kind, name = line.split()
            if kind in "tTwW":
                self.addresses[name].add(int(address, 16))
        self.regions = {}
        for region, objects in ("lock", LOCK_OBJECTS), ("wake", WAKE_OBJECTS):
            for name in self.defined([directory / obj for obj in objects]):
                self.regions[self.address(name)] = region
        for name in filter(WAKE_FUNCTIONS.match, self.addresses):
            self.regions.update(dict.fromkeys(self.addresses[name], "wake"))
        self.wake = self.address(WAKE)
        self.queue = self.address(QUEUE)
        # The second does what the first does, by a call of it or by a copy of its code.
        outer = self.disassemble(SLEEPS[1])
        called = any(f"<{SLEEPS[0]}>" in words for words in outer.values())
        self.sleeps = {self.address(name) for name in SLEEPS[: 1 if called else 2]}

    def defined(self, objects):
        for obj in objects:
            if not obj.exists():
                raise Unusable(f"{obj} is missing: build the kernel again")
        for line in run("nm", "--defined-only", "--no-sort", *map(str, objects)).splitlines():
            fields = line.split()
            if len(fields) == 3 and fields[1] in "tTwW" and not fields[2].startswith("__pfx_"):
                yield fields[2]

    def address(self, name):
        """Where function `name` is; more than one of that name could be mistaken for each other."""
        if len(self.addresses[name]) != 1:
            raise Unusable(f"the kernel has {len(self.addresses[name])} functions called {name}")
        return next(iter(self.addresses[name]))

    def disassemble(self, name):
        """The instructions of function `name`, {address: [mnemonic, operand...]}."""
        code = {}
        listing = run("objdump", f"--disassemble={name}", "--no-show-raw-insn", str(self.image))
        for line in listing.splitlines():
            if match := re.match(r"\s*([0-9a-f]+):\s+(.+)", line):
                code[int(match[1], 16)] = match[2].split()
        if not code:
            raise Unusable(f"objdump shows no code of {name}")
        return code

    def fast_paths(self, name):
        """The lengths in instructions of all ways through `name` that call nothing and do not loop."""
        code = self.disassemble(name)
        following = dict(zip(sorted(code), sorted(code)[1:]))
        lengths, todo = set(), [(min(code), 1)]
        while todo:
            address, length = todo.pop()
            words = [word for word in code.get(address, ["out"]) if word != "lock"]
            mnemonic, target = words[0], re.match(r"([0-9a-f]+)$", words[1]) if len(words) > 1 else None
            if mnemonic.startswith("ret"):
                lengths.add(length)
            elif mnemonic.startswith("j"):
                if target and int(target[1], 16) > address:
                    todo.append((int(target[1], 16), length + 1))
                if mnemonic != "jmp" and address in following:
                    todo.append((following[address], length + 1))
            elif not mnemonic.startswith(("call", "out", "ud2", "int3")) and address in following:
                todo.append((following[address], length + 1))
        return lengths


class Module:
    """The functions of the loaded module, from the guest's /proc/kallsyms."""

    def __init__(self, lines):
        symbols = sorted((int(line.split()[0], 16), line.split()[2]) for line in lines if line.split()[1] in "tTwW")
        if not symbols or symbols[-1][0] == 0:
            raise Unusable("the guest shows no addresses of the module's functions")
        self.addresses = [address for address, _ in symbols]
        self.names = [name for _, name in symbols]

    def name(self, address):
        """The function around `address`."""
        index = bisect.bisect_right(self.addresses, address) - 1
        return self.names[index] if index >= 0 else hex(address)

    def region(self, address):
        """The region of the function around `address`, by the first module of our crate in its name."""
        name = self.name(address)
        # A mangled path: each name after its length, parted by an underscore from one that starts so.
        path = re.search(rf"{len(CRATE)}{CRATE}(\d+)_?(\w+)", name)
        if not path:
            raise Unusable(f"workers executed {name}, which is no function of the module's crate")
        top, below = path[2][: int(path[1])], path[2][int(path[1]) :]
        if top in LOCKS_THERE and LOCKS_THERE[top].match(below):
            return "lock"
        return OTHER_REGIONS.get(top, "lock")


def parse_counts(path):
    """A list of runs, each the instructions of all vCPUs and {(address, name): tally}."""
    lines = iter(read(path).splitlines())
    if next(lines, None) != FORMAT:
        raise Unusable(f"{path} is not an output of this plugin")
    runs = []
    for line in lines:
        first, *rest = line.split()
        if first == "error":
            raise Unusable(line.removeprefix("error "))
        if first == "done":
            return runs
        if first == "run":
            tallies = {}
            runs.append((int(rest[2]), tallies))
        elif first != "end":
            tallies[int(first, 16), rest[0]] = dict(zip(FIELDS, map(int, rest[1:])))
    raise Unusable(f"{path} has no end: the guest did not shut down")


def parse_guest(path):
    """The module, the locks that are to be counted, and the results: (shape, knobs, line)."""
    symbols, locks, results, done = [], [], [], False
    for line in read(path).splitlines():
        if line.startswith("cell "):
            _, shape, *knobs = line.split()
            knobs = dict(knob.split("=", 1) for knob in knobs)
        elif line.startswith("lock "):
            locks.append(line.split()[1])
        elif line.startswith("Benchmark"):
            results.append((shape, knobs, line))
        elif line.endswith("[klocks]"):
            symbols.append(line)
        done = done or line == "cells done"
    if not done:
        raise Unusable(f"{path} has no end: the guest did not run all cells")
    return Module(symbols), locks, results


class Counts:
    """What was counted, summed over the measured blocks of each (shape, lock) and skew."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.threads = {}
        self.scenarios = {}
        self.wanted = set()
        self.cells = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))

    def add_guest(self, directory):
        module, locks, results = parse_guest(directory / "guest.txt")
        self.wanted.update(locks)
        runs = parse_counts(directory / "counts.txt")
        if len(runs) != len(results):
            raise Unusable(f"{directory}: {len(runs)} blocks were counted and {len(results)} reported")
        for (total, tallies), (shape, knobs, line) in zip(runs, results):
            name, ops, *values = line.split()
            values = dict(zip(values[1::2], values[0::2]))
            lock = re.search(r"/lock=([^/]+)", name)[1]
            if any(int(values.get(fault, 0)) for fault in FAULTS):
                raise Unusable(f"{lock} did not exclude in {shape}: its counts mean nothing")
            if int(values["block"]) == 0:
                continue  # the warm-up round
            self.threads[shape] = int(knobs["threads"])
            self.scenarios[shape] = knobs["scenario"]
            sums = self.cells[shape, lock][int(knobs["skew"])]
            sums["ops"] += int(ops)
            sums["total"] += total
            sums["holds"] += int(values.get("holds", 0))
            for unit in REPORTED:
                if unit in values:
                    sums["reported", unit] += int(values[unit])
            sums["ns"] += int(values["elapsed-ns"])
            self.add_block(sums, tallies, module)

    def add_block(self, sums, tallies, module):
        for (address, name), tally in tallies.items():
            inside = name != "-"
            region = self.kernel.regions.get(address, "rest") if inside else module.region(address)
            for field, count in tally.items():
                sums[region, field] += count
            if name in SPINS_OF_C if inside else SPINS.search(module.name(address)):
                for field in "insns", "pauses":
                    sums["spin", field] += tally[field]
            if inside:
                for field in "insns", "locked", "entries", "writer_entries":
                    sums[address, field] += tally[field]

    def check_complete(self):
        """That no lock of the guests' tables was left out."""
        left = self.wanted - {lock for _, lock in self.cells}
        if left:
            raise Unusable(f"no cell counts {', '.join(sorted(left))}: scripts/count has to name a shape for it")

    def units(self, shape, lock, skew):
        """The benchmark values of a cell."""
        sums = self.cells[shape, lock][skew]
        of = {field: sums["lock", field] + sums["wake", field] for field in FIELDS}
        if not sums["lock", "insns"]:
            raise Unusable(f"nothing of {lock} was executed in {shape}: its code is not where it is looked for")
        sleeps, writer_sleeps = (
            sum(sums[address, field] for address in self.kernel.sleeps) for field in ("entries", "writer_entries")
        )
        wakes = sums[self.kernel.wake, "entries"]
        per_op = {
            "insns/op": of["insns"],
            "lock-insns/op": sums["lock", "insns"],
            "wake-insns/op": sums["wake", "insns"],
            "harness-insns/op": sums["harness", "insns"],
            "locked/op": of["locked"],
            "lines/op": of["read_misses"] + of["invalidations"],
            "misses/op": of["read_misses"],
            "invalidations/op": of["invalidations"],
            "loads/op": of["loads"],
            "stores/op": of["stores"],
            "calls/op": of["calls"],
            "pauses/op": of["pauses"],
            "sleeps/op": sleeps,
            "wakes/op": wakes,
            "spin-insns/op": sums["spin", "insns"],
            "spin-pauses/op": sums["spin", "pauses"],
            "ns/op": sums["ns"],
            "all-insns/op": sums["total"],
        }
        per_op.update({f"{unit}/op": sums["reported", unit] for unit in REPORTED if ("reported", unit) in sums})
        if self.scenarios[shape] == "ref_storm":
            # A get, a put and a hold each change the word once: without the lock, or by the first try to take it.
            changes = 2 * (sums["ops"] - sums["holds"]) + sums["holds"]
            per_op["failed/op"] = of["locked"] - sums[self.kernel.queue, "locked"] - changes
        values = {unit: count / sums["ops"] for unit, count in per_op.items()}
        rare = sums["ops"] / 100
        if sleeps > rare:
            values["wakes/sleep"] = wakes / sleeps
        # A reader is woken once for each sleep.
        if writer_sleeps > rare:
            values["wakes/writer-sleep"] = (wakes - (sleeps - writer_sleeps)) / writer_sleeps
        return values


def family(lock):
    """The C lock's name without its end: `rwsem` for `rwsem_xadd.base` and `rwsem_c`; the lock itself if it has none."""
    return next((f for f in ("percpu_rwsem", "lockref", "rwsem") if lock.startswith(f)), lock)


def peer(lock, locks):
    """The C lock that `lock` is compared with: `rwsem_c` for `rwsem_xadd.base`; none for C's own."""
    base = f"{family(lock)}_c"
    return base if base in locks and lock != base else None


def ratio(ours, theirs):
    """How many times theirs ours is. What differs by less than a hundredth is the odd tick."""
    ours, theirs = round(ours, 2), round(theirs, 2)
    if ours == theirs:
        return 1.0
    return ours / theirs if theirs else math.inf


def read_limits(path):
    """`PATTERN MAX` lines; a pattern is LOCK/SHAPE/UNIT with wildcards, the first that fits counts."""
    limits = []
    for number, line in enumerate(read(path).splitlines(), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        try:
            pattern, value = fields
            limits.append((pattern, float(value)))
        except ValueError:
            sys.exit(f"{path}:{number}: not 'LOCK/SHAPE/UNIT MAX': {line}")
    return limits


def self_test(counts, out):
    """Compares what was counted of C's pairs with their disassembly. True when all agree."""
    all_agree = True
    for (lock, shape), functions in SELF_TEST.items():
        if (shape, lock) not in counts.cells:
            continue
        sums = sum(counts.cells[shape, lock].values(), collections.Counter())
        lengths, agree = [], True
        for name in functions:
            address = counts.kernel.address(name)
            insns, entries = sums[address, "insns"], sums[address, "entries"]
            length = round(insns / entries) if entries else 0
            # A tick that finds a reason to reschedule sends one call of thousands another way.
            if abs(insns - entries * length) > entries / 100:
                raise Unusable(f"{name} took {insns} instructions in {entries} calls: not on its fast path")
            if length not in (paths := counts.kernel.fast_paths(name)):
                out(f"self-test: {name} was counted as {length}, its disassembly says {sorted(paths)}")
                agree = False
            lengths.append(length)
        if agree:
            parts = " + ".join(map(str, lengths))
            out(f"self-test: {lock} {shape} pair {sum(lengths)} instructions ({parts}), as disassembled")
        all_agree = all_agree and agree
    return all_agree


def check_reach(counts, shape, skew, lock, base):
    """Without contention the one loop of rwsem_mix does the same for every lock, unless it contains part of one."""
    if counts.threads[shape] != 1 or counts.scenarios[shape] != "rwsem_mix":
        return
    unit = "harness-insns/op"
    ours, theirs = (counts.units(shape, which, skew)[unit] for which in (lock, base))
    # What it does once a block shows where operations are few.
    if abs(ours - theirs) > 0.5 + 100 / counts.cells[shape, lock][skew]["ops"]:
        raise Unusable(
            f"in {shape} the harness executes {ours:.2f} instructions an operation for {lock} and"
            f" {theirs:.2f} for its peer: part of a lock is inlined into the harness"
        )


def scoreboard(counts, limits, out):
    """Prints a row for each lock with a peer, shape and unit. The rows beyond their limits."""
    locks = {lock for _, lock in counts.cells}
    shapes = list(counts.threads)
    beyond = []
    out(f"{'row':<46}{'C':>10}{'Rust':>10}{'ratio':>8}{'worst':>8}{'limit':>8}")
    for shape, lock in sorted(counts.cells, key=lambda cell: (shapes.index(cell[0]), cell[1])):
        skews = counts.cells[shape, lock]
        base = peer(lock, locks)
        handoff = counts.scenarios[shape] == HANDOFF
        if handoff and lock not in (base, BEFORE) and (shape, BEFORE) in counts.cells:
            base = base and BEFORE
        if base is None:
            continue
        pairs = [(counts.units(shape, lock, skew), counts.units(shape, base, skew)) for skew in skews]
        for skew in skews:
            check_reach(counts, shape, skew, lock, base)
        units = UNITS_HANDOFF if handoff else UNITS_ALONE if counts.threads[shape] == 1 else UNITS_TOGETHER
        if handoff:
            out(f"in ratio to {base}:")
        for unit in units:
            values = [(ours[unit], theirs[unit]) for ours, theirs in pairs if unit in ours and unit in theirs]
            if not values:
                continue
            ratios = [ratio(*value) for value in values]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if min(ratios) > 0 else 0.0
            row = f"{lock}/{shape}/{unit}"
            limit = next((limit for pattern, limit in limits if fnmatch.fnmatchcase(row, pattern)), None)
            ours, theirs = (sum(column) / len(values) for column in zip(*values))
            mark = ""
            if limit is not None and mean > limit:
                beyond.append(row)
                mark = "  BEYOND"
            shown = "-" if limit is None else f"{limit:.3f}"
            out(f"{row:<46}{theirs:>10.3f}{ours:>10.3f}{mean:>8.3f}{max(ratios):>8.3f}{shown:>8}{mark}")
    return beyond


def gaps(counts, out):
    """Says which locks are not in all shapes of their C peers, or have fewer operations there."""
    locks = {lock for _, lock in counts.cells}
    missing, fewer = collections.defaultdict(list), collections.defaultdict(list)
    for lock in sorted(locks):
        base = peer(lock, locks)
        for shape in counts.threads:
            if base is None or (shape, base) not in counts.cells:
                continue
            if (shape, lock) not in counts.cells:
                missing[lock].append(shape)
                continue
            ours, theirs = (sum(s["ops"] for s in counts.cells[shape, which].values()) for which in (lock, base))
            if ours != theirs:
                fewer[lock].append(f"{shape} ({ours} of {theirs})")
    for lock, shapes in missing.items():
        out(f"{lock} is not counted in {', '.join(shapes)}: {REASONS.get(family(lock), 'no cell has it')}")
    for lock, shapes in fewer.items():
        out(f"{lock} has other numbers of operations than its peer in {', '.join(shapes)}")


def benchmark_lines(counts, header):
    yield from header
    for (shape, lock), skews in counts.cells.items():
        for skew, sums in sorted(skews.items()):
            values = counts.units(shape, lock, skew)
            name = f"BenchmarkCount/lock={lock}/shape={shape}/skew={skew}"
            yield " ".join([name, str(sums["ops"]), *(f"{value:.6f} {unit}" for unit, value in values.items())])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", type=Path, required=True, help="directory of the built kernel")
    parser.add_argument("--limits", type=Path, required=True)
    parser.add_argument("--header", action="append", default=[], help="a 'key: value' line for the output")
    parser.add_argument("--out", type=Path, required=True, help="where the benchmark lines go")
    parser.add_argument("guests", type=Path, nargs="+", help="directory of a counted guest")
    arguments = parser.parse_args()

    counts = Counts(Kernel(arguments.kernel))
    for guest in arguments.guests:
        counts.add_guest(guest)
    counts.check_complete()
    lines = list(benchmark_lines(counts, arguments.header))
    arguments.out.write_text("\n".join(lines) + "\n")
    agree = self_test(counts, print)
    beyond = scoreboard(counts, read_limits(arguments.limits), print)
    gaps(counts, print)
    if beyond:
        print(f"beyond their limits: {len(beyond)} rows, the first is {beyond[0]}")
    return 0 if agree and not beyond else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unusable as reason:
        print(f"count: {reason}", file=sys.stderr)
        sys.exit(4)
