# SPDX-License-Identifier: GPL-2.0
"""Cases of report.sh: reading results, refusing them, figures, the table of rwsem_mix."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy
import report
import results
import samples
from samples import MACHINE, RUN, shown


def line(lock, threads, ratio, load, ops, ns, block, overlaps=0, torn=0):
    return (
        f"BenchmarkRwsemMix/lock={lock}/threads={threads}/ratio={ratio}/load={load} {threads * ops} "
        f"{ns:.3f} ns/op {ns * ops:.0f} elapsed-ns {block} block {overlaps} overlaps {torn} torn\n"
    )


def run(times, threads=2, ratio="0:1", load=1, ops=1000, oversubscribed="no"):
    """What a run prints. `times` is {lock: ns/op of each block, the warm-up first}."""
    blocks = len(next(iter(times.values())))
    text = RUN.format(
        vcpus=threads + 1, ops=ops, blocks=blocks - 1, oversubscribed=oversubscribed, order=" ".join(times)
    )
    for block in range(blocks):
        for lock, series in times.items():
            text += line(lock, threads, ratio, load, ops, series[block], block)
    return text


GOOD = samples.results(
    "rwsem_mix",
    run({"rwsem_c": [900, 100, 200, 300], "rwsem_xadd.base": [9, 50, 110, 1530], "mutex": [5, 40, 42, 44]}),
    run({"rwsem_c": [900, 100, 200, 300], "rwsem_xadd.base": [9, 50, 110, 1530], "mutex": [5, 40, 42, 44]}, load=5),
    run({"rwsem_xadd.base": [1, 2000, 2000, 2000], "rwsem_c": [1, 1000, 1000, 1000]}, ratio="10:1"),
    run({"rwsem_c": [1, 9.5, 9.5, 9.5], "rwsem_xadd.base": [1, 19, 19, 19]}, threads=10, ratio="10:1", ops=77),
    locks="mutex,rwsem_c,rwsem_xadd.base",
)


class Parsing(unittest.TestCase):
    def test_a_line_becomes_a_block(self):
        _, [block] = results.parse(["blocks: 3", line("rwsem_c", 2, "10:1", 5, 1000, 12.5, 3)])
        self.assertEqual(block.scenario, "RwsemMix")
        self.assertEqual((block.lock, block.number, block.operations), ("rwsem_c", 3, 2000))
        self.assertEqual(block.cell, (("threads", "2"), ("ratio", "10:1"), ("load", "5")))
        self.assertEqual(block.values["ns/op"], 12.5)
        self.assertEqual(block.header, {"blocks": "3"})

    def test_a_header_holds_until_it_changes(self):
        lines = ["ops: 5", line("a", 1, "0:1", 1, 5, 1, 0), "ops: 7", line("a", 1, "0:1", 1, 7, 1, 1)]
        _, blocks = results.parse(lines)
        self.assertEqual([block.header["ops"] for block in blocks], ["5", "7"])

    def test_other_lines_are_ignored(self):
        header, blocks = results.parse(["KTAP version 1", "", "PASS", "Upper: case", "cells 3"])
        self.assertEqual((header, blocks), ({}, []))

    def test_values_of_another_scenario(self):
        _, [block] = results.parse(["BenchmarkPercpuWrite/lock=x/gap-ms=5 9 1.5 ns/op 2 block 7 periods"])
        self.assertEqual((block.scenario, block.cell, block.values["periods"]), ("PercpuWrite", (("gap-ms", "5"),), 7))

    def test_broken_lines_are_refused(self):
        for text in (
            "BenchmarkRwsemMix/lock=a 10 1 ns/op 1 block 2",
            "BenchmarkRwsemMix/lock=a ten 1 ns/op 1 block",
            "BenchmarkRwsemMix/lock=a 10 1 ns/op",
            "BenchmarkRwsemMix/threads=2 10 1 ns/op 1 block",
            "BenchmarkRwsemMix/lock 10 1 ns/op 1 block",
            "Benchmark",
        ):
            with self.subTest(text), self.assertRaisesRegex(results.Unusable, "line 1"):
                results.parse([text])


class Refusals(unittest.TestCase):
    def refused(self, text, words):
        with self.assertRaisesRegex(results.Unusable, words):
            shown(text)

    def test_nothing(self):
        self.refused("", "there are no results")
        self.refused(MACHINE, "there are no results")

    def test_broken_lock_is_named(self):
        for faults in {"overlaps": 3}, {"torn": 3}:
            for block in 0, 2:
                text = GOOD + line("lock_busted", 2, "1:1", 1, 1000, 5, block, **faults)
                self.refused(text, "lock_busted is broken: it let others in 3 times")

    def test_reason_of_the_module_is_passed_on(self):
        self.refused(GOOD + "failure: stuck: 2 workers in rwsem_c\n", "a run failed: stuck: 2 workers in rwsem_c")

    def test_missing_block(self):
        for number in range(4):
            text = "".join(
                l for l in GOOD.splitlines(True) if not ("rwsem_c/" in l and "10:1" in l and f" {number} block" in l)
            )
            self.refused(text, "3 blocks instead of 4: lock=rwsem_c")

    def test_repeated_block(self):
        self.refused(GOOD + line("rwsem_c", 10, "10:1", 1, 77, 5, 3), "5 blocks instead of 4")

    def test_block_without_operations(self):
        self.refused(GOOD.replace(" 2000 100.000 ns/op", " 0 100.000 ns/op"), "without operations: lock=rwsem_c")
        self.refused(GOOD.replace(" 2000 100.000 ns/op", " 2000 0.000 ns/op"), "without operations: lock=rwsem_c")

    def test_missing_header(self):
        self.refused(re.sub("oversubscribed: no\n", "", GOOD), "lack a line 'oversubscribed")
        self.refused(re.sub("form: .*\n", "", GOOD), "lack a line 'form")

    def test_unknown_scenario(self):
        for name in "other", "../report":
            self.refused(GOOD.replace("form: rwsem_mix", f"form: {name}"), f"no form for scenario {name}")


class Figures(unittest.TestCase):
    def test_block_0_is_dropped(self):
        cells = results.measured(results.parse(GOOD.splitlines())[1])
        series = cells[("threads", "2"), ("ratio", "0:1"), ("load", "1")]["rwsem_c"]
        self.assertEqual([block.number for block in series], [1, 2, 3])
        self.assertEqual(list(results.times(series)), [100, 200, 300])

    def test_ratio_is_the_median_over_pairs(self):
        # of the medians it would be 0.55, of the means 2.82
        middle, low, high = results.median_ratio(numpy.array([50, 110, 1530.0]), numpy.array([100, 200, 300.0]))
        self.assertEqual(middle, 0.55)
        self.assertEqual((low, high), (0.5, 5.1))
        middle, _, _ = results.median_ratio(numpy.array([10.0, 20, 90]), numpy.array([10.0, 40, 30]))
        self.assertEqual(middle, 1.0)

    def test_equal_pairs_have_no_interval(self):
        self.assertEqual(results.median_ratio(numpy.full(16, 3.0), numpy.full(16, 2.0)), (1.5, 1.5, 1.5))

    def test_interval_covers_as_often_as_it_says(self):
        random = numpy.random.default_rng(7)
        trials, covered = 200, 0
        for _ in range(trials):
            _, low, high = results.median_ratio(random.lognormal(0, 0.1, 16), numpy.ones(16))
            covered += low <= 1 <= high
        self.assertGreater(covered / trials, 0.90)
        self.assertLess(covered / trials, 1.0)

    def test_interval_is_reproducible(self):
        ours, theirs = numpy.random.default_rng(3).lognormal(0, 0.2, (2, 16))
        self.assertEqual(results.median_ratio(ours, theirs), results.median_ratio(ours, theirs))

    def test_peers(self):
        locks = ["mutex", "rwsem_c", "percpu_rwsem_c"]
        found = {lock: results.peer(lock, locks) for lock in ("mutex", "rwsem_c", "rwsem_xadd.p1", "percpu_rwsem.sync")}
        self.assertEqual(
            found,
            {"mutex": None, "rwsem_c": None, "rwsem_xadd.p1": "rwsem_c", "percpu_rwsem.sync": "percpu_rwsem_c"},
        )


class Tables(unittest.TestCase):
    def test_form_of_the_mails(self):
        text = shown(GOOD)
        table = [l.split() for l in text.splitlines() if re.search(r"^  \S+ +\d+ +1:", l)]
        self.assertEqual(
            table,
            [
                "mutex 2 1:42.0 , 5:42.0".split(),
                "rwsem_c/0:1 2 1:200.0, 5:200.0".split(),
                "rwsem_c/10:1 2 1:1000".split(),
                "rwsem_c/10:1 10 1:9.5".split(),
                "rwsem_xadd.base/0:1 2 1:110.0, 5:110.0".split(),
                "rwsem_xadd.base/10:1 2 1:2000".split(),
                "rwsem_xadd.base/10:1 10 1:19.0".split(),
                "rwsem_xadd.base/0:1 2 1:0.550 [0.500 5.100], 5:0.550 [0.500 5.100]".split(),
                "rwsem_xadd.base/10:1 2 1:2.000 [2.000 2.000]".split(),
                "rwsem_xadd.base/10:1 10 1:2.000 [2.000 2.000]".split(),
                "all/0:1 2 1:1000, 5:1000".split(),
                "all/10:1 2 1:1000".split(),
                "all/10:1 10 1:77".split(),
            ],
        )

    def test_indicative_and_oversubscribed(self):
        text = shown(GOOD)
        self.assertIn("Oversubscribed (more threads than vCPUs): none.", text)
        self.assertIn("Indicative (more threads than the host has CPUs): all cells with 10 threads.", text)
        self.assertIn("3 vCPUs (2 threads) and 11 vCPUs (10 threads)", text)
        text = shown(GOOD.replace("vcpus: 11\n", "vcpus: 4\n").replace("oversubscribed: no", "oversubscribed: yes"))
        self.assertIn("Oversubscribed (more threads than vCPUs): all cells with 2 and 10 threads.", text)
        text = shown(GOOD.replace("accelerator: tcg", "accelerator: icount"))
        self.assertIn("Indicative (more threads than the host has CPUs): none.", text)

    def test_every_lane_says_what_it_is_worth(self):
        for lane, words in ("tcg", "TCG"), ("icount", "Virtual time"), ("uml", "User-mode Linux"), ("kvm", "KVM"):
            self.assertIn(words, shown(GOOD.replace("accelerator: tcg", f"accelerator: {lane}")))

    def test_no_peer_no_ratio(self):
        text = shown(samples.results("rwsem_mix", run({"mutex": [1, 2, 3, 4]}, threads=1), locks="mutex"))
        self.assertIn("Ratios: none", text)
        self.assertIn("2 vCPUs (1 thread)", text)


class Command(unittest.TestCase):
    def call(self, content):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "results"
            if content is not None:
                path.write_bytes(content)
            return subprocess.run([sys.executable, report.__file__, path], capture_output=True, text=True, check=False)

    def test_exit_codes(self):
        good = self.call(GOOD.encode())
        self.assertEqual((good.returncode, good.stderr), (0, ""))
        for content, code in (b"", 1), (GOOD.replace(" 0 torn", " 1 torn").encode(), 1), (None, 2), (b"\xff\xfe", 2):
            result = self.call(content)
            self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
            self.assertNotIn("Traceback", result.stderr)
