#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of report.py on small inputs made here."""

import contextlib
import io
import math
import subprocess
import tempfile
import unittest
from pathlib import Path

import report

CODE = """
.globl fast
.type fast, @function
fast:
    push %rbp
    lock xadd %rax, (%rdi)
    js 1f
    jmp 2f
1:  call slow
2:  pop %rbp
    ret
slow:
    pause
    jmp slow
"""
TEXT, MODULE = 0xFFFFFFFF81000000, 0xFFFFFFFFC0000000
LOCK = "_RNvMs_NtCsgAbC_11klocks_main10rwsem_xaddINtB4_5RwSemNtB4_4BaseE10down_write"


def result(lock, block, **values):
    values = {"elapsed-ns": 5, "block": block, "overlaps": 0, "torn": 0, **values}
    pairs = " ".join(f"{value} {unit}" for unit, value in values.items())
    return f"BenchmarkRwsemMix/lock={lock}/threads=1/ratio=0:1/load=0 10 0.500 ns/op {pairs}"


def tally(**fields):
    return " ".join(str(fields.get(field, 0)) for field in report.FIELDS)


class FakeKernel:
    """A kernel with a lock function, a waker and a scheduler."""

    regions = {TEXT: "lock", TEXT + 0x40: "lock", TEXT + 0x100: "wake", TEXT + 0x180: "wake"}
    wake, sleeps, queue = TEXT + 0x100, {TEXT + 0x200}, TEXT + 0x180

    def address(self, name):
        return {"down_write": TEXT, "up_write": TEXT + 0x40}[name]

    def fast_paths(self, name):
        return {7} if name == "down_write" else {5}


class Guests(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def write(self, blocks, counts_end="done\n", guest_end="cells done\n"):
        """BLOCKS: (result line, [line of the plugin])."""
        counts = report.FORMAT + "\n"
        guest = f"{MODULE:x} t {LOCK} [klocks]\n{MODULE + 0x100:x} t _RNvNtCs1_11klocks_main7harness3run [klocks]\n"
        guest += "lock rwsem_c\ncell write scenario=rwsem_mix threads=1 skew=3 skew=0\n"
        for number, (line, tallies) in enumerate(blocks):
            guest += line + "\n"
            counts += f"run {number} total 1000 unbooked 0\n" + "".join(t + "\n" for t in tallies) + f"end {number}\n"
        (self.directory / "counts.txt").write_text(counts + counts_end)
        (self.directory / "guest.txt").write_text(guest + guest_end)

    def counts(self):
        counts = report.Counts(FakeKernel())
        counts.add_guest(self.directory)
        return counts

    def refused(self, words):
        with self.assertRaises(report.Unusable) as caught:
            counts = self.counts()
            for (shape, lock), skews in counts.cells.items():
                for skew in skews:
                    counts.units(shape, lock, skew)
        self.assertIn(words, str(caught.exception))

    def pair(self):
        """A C lock of 70 + 50 instructions in 10 operations, and ours of 60, each after a warm-up."""
        c = [
            f"{MODULE + 0x100:x} - {tally(insns=30)}",
            f"{TEXT:x} down_write {tally(insns=70, entries=10, locked=10)}",
            f"{TEXT + 0x40:x} up_write {tally(insns=50, entries=10)}",
        ]
        ours = [
            f"{MODULE:x} - {tally(insns=10, locked=10)}",
            f"{MODULE + 4:x} - {tally(insns=50, read_misses=1, invalidations=2)}",
            f"{MODULE + 0x100:x} - {tally(insns=30)}",
            f"{TEXT + 0x100:x} try_to_wake_up {tally(insns=20, entries=2)}",
            f"{TEXT + 0x200:x} schedule {tally(insns=20, entries=1)}",
        ]
        warm = [f"{TEXT:x} down_write {tally(insns=999, entries=1)}"]
        return [(result("rwsem_c", 0), warm), (result("rwsem_c", 1), c), (result("rwsem_xadd.base", 1), ours)]

    def test_values(self):
        self.write(self.pair())
        counts = self.counts()
        c = counts.units("write", "rwsem_c", 0)
        self.assertEqual((c["insns/op"], c["locked/op"], c["all-insns/op"]), (12, 1, 100))
        self.assertNotIn("wakes/sleep", c)
        ours = counts.units("write", "rwsem_xadd.base", 0)
        self.assertEqual((ours["insns/op"], ours["lock-insns/op"], ours["wake-insns/op"]), (8, 6, 2))
        self.assertEqual((ours["lines/op"], ours["wakes/sleep"], ours["sleeps/op"]), (0.3, 2, 0.1))

    def test_scoreboard_and_limits(self):
        self.write(self.pair())
        counts = self.counts()
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            row = "rwsem_xadd.base/write/insns/op"
            self.assertEqual(report.scoreboard(counts, [("*/insns/op", 0.6), ("*", 9)], print), [row])
            self.assertEqual(report.scoreboard(counts, [("*/write/insns/op", 0.7)], print), [])
        self.assertIn("0.667", shown.getvalue())

    def test_wakes_of_writers(self):
        scheduler = f"{TEXT + 0x200:x} schedule {tally(insns=20, entries=5, writer_entries=2)}"
        waker = f"{TEXT + 0x100:x} try_to_wake_up {tally(insns=20, entries=23)}"
        lock = f"{MODULE:x} - {tally(insns=10)}"
        self.write([(result("rwsem", 1), [lock, waker, scheduler])])
        values = self.counts().units("write", "rwsem", 0)
        self.assertEqual((values["wakes/sleep"], values["wakes/writer-sleep"]), (23 / 5, 10))

    def test_gaps_are_told(self):
        self.write(self.pair())
        counts = self.counts()
        lines = []
        report.gaps(counts, lines.append)
        self.assertEqual(lines, [])
        counts.threads["2W"] = 2
        counts.cells["2W", "rwsem_c"][0]["ops"] = 1000
        counts.cells["write", "rwsem_xadd.base"][0]["ops"] = 3
        report.gaps(counts, lines.append)
        self.assertEqual(
            lines,
            [
                "rwsem_xadd.base is not counted in 2W: no cell has it",
                "rwsem_xadd.base has other numbers of operations than its peer in write (3 of 10)",
            ],
        )

    def test_what_scenarios_count(self):
        line = result("rwsem", 1, **{"grace-periods": 20})
        self.write([(line, [f"{MODULE:x} - {tally(insns=10)}"])])
        values = self.counts().units("write", "rwsem", 0)
        self.assertEqual(values["grace-periods/op"], 2)
        self.assertNotIn("expedited/op", values)

    def test_failed_compare_exchanges(self):
        # 8 pairs and 2 holds change the word 18 times; 3 times a lock was waited for.
        tallies = [
            f"{MODULE:x} - {tally(insns=10, locked=20)}",
            f"{TEXT + 0x180:x} queued_spin_lock_slowpath {tally(insns=9, locked=3, entries=3)}",
        ]
        self.write([(result("lockref", 1, holds=2), tallies)])
        counts = self.counts()
        self.assertNotIn("failed/op", counts.units("write", "lockref", 0))
        counts.scenarios["write"] = "ref_storm"
        self.assertEqual(counts.units("write", "lockref", 0)["failed/op"], 0.2)

    def test_every_lock_is_counted(self):
        self.write(self.pair())
        counts = self.counts()
        counts.check_complete()
        counts.wanted.add("forgotten")
        with self.assertRaises(report.Unusable) as caught:
            counts.check_complete()
        self.assertIn("no cell counts forgotten", str(caught.exception))

    def test_inlined_into_the_harness(self):
        blocks = self.pair()
        blocks[2][1].append(f"{MODULE + 0x104:x} - {tally(insns=200)}")
        self.write(blocks)
        with self.assertRaises(report.Unusable) as caught:
            report.scoreboard(self.counts(), [], lambda line: None)
        self.assertIn("23.00 instructions", str(caught.exception))

    def test_self_test(self):
        self.write(self.pair())
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            self.assertTrue(report.self_test(self.counts(), print))
            FakeKernel.fast_paths, kept = lambda self, name: {6}, FakeKernel.fast_paths
            self.addCleanup(setattr, FakeKernel, "fast_paths", kept)
            self.assertFalse(report.self_test(self.counts(), print))
        self.assertIn("12 instructions (7 + 5)", shown.getvalue())

    def test_refuses_what_proves_nothing(self):
        self.write(self.pair(), counts_end="")
        self.refused("has no end")
        self.write(self.pair(), counts_end="error of the plugin\ndone\n")
        self.refused("of the plugin")
        self.write(self.pair(), guest_end="")
        self.refused("did not run all cells")
        self.write(self.pair() + [(result("rwsem_c", 1, torn=1), [])])
        self.refused("did not exclude")
        self.write([(result("rwsem_xadd.base", 1), [])])
        self.refused("is not where it is looked for")
        self.write([(result("rwsem_xadd.base", 1), [f"{MODULE - 8:x} - {tally(insns=1)}"])])
        self.refused("no function of the module")
        self.write(self.pair())
        with open(self.directory / "guest.txt", "a", encoding="ascii") as guest:
            guest.write(result("rwsem_c", 2) + "\n")
        self.refused("3 blocks were counted and 4 reported")
        (self.directory / "counts.txt").write_text("something else\n")
        self.refused("not an output of this plugin")


class Parts(unittest.TestCase):
    def test_what_spins(self):
        for name, spins in (
            ("_RNvMs_NtCsgAbC_11klocks_main3osqNtB4_3Osq4wait", True),
            ("_RINvNtCsgAbC_11klocks_main4spin13spin_on_ownerINtNtB4_5rwsem5RwSemNtBV_3C73EEB4_", True),
            ("_RNvMs1_NtCsgAbC_11klocks_main5rwsemINtB5_5RwSemNtB5_3C73E14spin_for_writeB7_", True),
            ("_RNvMs1_NtCsgAbC_11klocks_main5rwsemINtB5_5RwSemNtB5_3C73E14read_lock_slowB7_", False),
        ):
            self.assertEqual(bool(report.SPINS.search(name)), spins, name)

    def test_regions_of_the_module(self):
        names = {
            LOCK: "lock",
            "_RNvNtCsgAbC_11klocks_main3osq4lock": "lock",
            "_RNvNtNtCsgAbC_11klocks_main4kapi6wake_q5drain": "wake",
            "_RNvMNtNtCsgAbC_11klocks_main4kapi11percpu_peerNtB2_18PercpuRwSemaphore9down_read": "lock",
            "_RINvNtNtCsgAbC_11klocks_main7harness9ref_storm4pairNtNtNtB6_4kapi7lockref8CLockRefEB6_": "lock",
            "_RNvMs_NtNtCsgAbC_11klocks_main7harness9ref_stormINtB4_5StormNtNtNtB8_4kapi7lockref8CLockRefE4holdB8_": "lock",
            "_RNvMs_NtNtCsgAbC_11klocks_main7harness9ref_stormINtB4_5StormNtNtNtB8_4kapi7lockref8CLockRefE8measuredB8_": "harness",
            "_RINvNtCs8_4core3ptr13drop_in_placeNtNtCsgAbC_11klocks_main7harness5TableEB1_": "harness",
            "_RNvNtCsgAbC_11klocks_main6_2fast1f": "lock",
            "_RNvNtCs8_4core9panicking5panic": None,
            "kapi_slow": None,
        }
        for name, region in names.items():
            module = report.Module([f"{MODULE:x} t {name} [klocks]"])
            if region:
                self.assertEqual(module.region(MODULE + 8), region, name)
            else:
                self.assertRaises(report.Unusable, module.region, MODULE)

    def test_a_module_without_addresses(self):
        self.assertRaises(report.Unusable, report.Module, [])
        self.assertRaises(report.Unusable, report.Module, [f"{0:016x} t {LOCK} [klocks]"])

    def test_peers(self):
        locks = {"mutex", "rwsem_c", "percpu_rwsem_c", "rwsem", "rwsem_xadd.base", "percpu_rwsem.sync"}
        self.assertEqual(report.peer("rwsem_xadd.base", locks), "rwsem_c")
        self.assertEqual(report.peer("rwsem", locks), "rwsem_c")
        self.assertEqual(report.peer("percpu_rwsem.sync", locks), "percpu_rwsem_c")
        self.assertIsNone(report.peer("lockref", locks))
        self.assertIsNone(report.peer("mutex", locks))
        self.assertIsNone(report.peer("rwsem_c", locks))

    def test_ratio(self):
        self.assertEqual(report.ratio(0, 0), 1)
        self.assertEqual(report.ratio(1, 0), math.inf)
        self.assertEqual(report.ratio(0, 2), 0)
        self.assertEqual(report.ratio(3, 2), 1.5)
        self.assertEqual(report.ratio(0.0005, 0), 1)
        self.assertEqual(report.ratio(19.001, 19), 1)

    def test_limits(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "limits"
            path.write_text("# comment\n\n*/insns/op 1.5 # why\n")
            self.assertEqual(report.read_limits(path), [("*/insns/op", 1.5)])
            for bad in "one", "a b c", "pattern x":
                path.write_text(bad)
                self.assertRaises(SystemExit, report.read_limits, path)
            self.assertRaises(report.Unusable, report.read_limits, Path(directory) / "none")

    def test_fast_paths(self):
        with tempfile.TemporaryDirectory() as directory:
            kernel = report.Kernel.__new__(report.Kernel)
            kernel.image = Path(directory) / "vmlinux"
            source = Path(directory) / "code.s"
            source.write_text(CODE)
            subprocess.run(
                ["gcc", "-nostdlib", "-static", "-Wl,-e,fast", "-o", kernel.image, source], check=True
            )
            self.assertEqual(kernel.fast_paths("fast"), {6})
            self.assertRaises(report.Unusable, kernel.fast_paths, "missing")


if __name__ == "__main__":
    unittest.main()
