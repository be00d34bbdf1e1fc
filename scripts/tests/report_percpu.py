# SPDX-License-Identifier: GPL-2.0
"""Cases of report.sh: the tables of the per-CPU rwsem's scenarios."""

import re
import unittest

from samples import RUN, results, shown


def run(name, lines, ops=1000):
    """What a run prints: `lines` are (parameters, ops, ns, more) of a block each; each lock has blocks 0 and 1."""
    text = RUN.format(vcpus=2, ops=ops, blocks=1, oversubscribed="no", order="a")
    for parameters, count, ns, more in lines:
        for block in 0, 1:
            text += f"Benchmark{name}/{parameters} {count} {ns:.3f} ns/op {ns * count:.0f} elapsed-ns {block} block {more}\n"
    return text


def rows(text):
    """The words of the lines that begin with the name of a lock."""
    return [line.split() for line in text.splitlines() if re.match(r"  (percpu_rwsem|lock_busted)", line)]


class Percpu(unittest.TestCase):
    def test_write(self):
        periods = "{} grace-periods {} expedited"
        text = shown(
            results(
                "percpu_write",
                run(
                    "PercpuWrite",
                    [
                        ("lock=percpu_rwsem/threads=1/load=0", 1000, 100, periods.format(10, 0)),
                        ("lock=percpu_rwsem_c/threads=1/load=0", 1000, 200, periods.format(20, 0)),
                    ],
                ),
                run("PercpuWrite", [("lock=percpu_rwsem.expedited/threads=1/load=0", 4, 1000, periods.format(0, 8))], ops=9),
                locks="percpu_rwsem,percpu_rwsem_c,percpu_rwsem.expedited",
            )
        )
        self.assertEqual(
            rows(text)[:3],
            [
                "percpu_rwsem 1 1000 100 0.0100 0.0000 0.500 [0.500 0.500]".split(),
                "percpu_rwsem_c 1 1000 200 0.0200 0.0000 -".split(),
                # other work than C's: no ratio
                "percpu_rwsem.expedited 1 4 1000 0.0000 2.0000 -".split(),
            ],
        )
        self.assertIn("percpu_rwsem: 10 times as fast as percpu_rwsem.expedited", text)
        self.assertIn("percpu_rwsem_c: 5 times", text)
        self.assertIn("more than 1.5 times", text)

    def test_toggle(self):
        more = "7 run-ns {} waits 6 grace-periods 2 expedited 50 lost-ppm 3 switches/s 1000 interrupts/s 2500000 longest-gap-ns"
        line = "lock={}/threads=1/gap={}"
        text = shown(
            results(
                "percpu_toggle",
                run("PercpuToggle", [(line.format("percpu_rwsem", 20), 4, 1e6, more.format(1))]),
                run("PercpuToggle", [(line.format("percpu_rwsem.sync", 0), 2, 33.75e6, more.format(4))]),
                locks="percpu_rwsem,percpu_rwsem.sync",
            )
        )
        self.assertEqual(
            rows(text),
            [
                "percpu_rwsem.sync 0 2 67.50 2.000 4 3.00 1.00 50 3 1000 2.5".split(),
                "percpu_rwsem 20 4 2.00 0.250 1 1.50 0.50 50 3 1000 2.5".split(),
            ],
        )
        self.assertIn("in 67.5 s, like percpu_rwsem.sync", text)
        self.assertIn("in 13.3 s, like percpu_rwsem", text)
        self.assertNotIn("13.5 s", text)

    def test_read(self):
        line = "lock={}/threads=1/ratio=1:0/gap=0"
        more = "0 writes 0 grace-periods 0 expedited"
        text = shown(
            results(
                "percpu_read",
                run("PercpuRead", [(line.format(f"percpu_rwsem{lock}"), 1000, ns, more) for lock, ns in (("", 80), ("_c", 100), (".mb", 160))]),
                locks="percpu_rwsem,percpu_rwsem_c,percpu_rwsem.mb",
            )
        )
        self.assertEqual(
            rows(text),
            [
                "percpu_rwsem 1 80.0 0.800 [0.800 0.800] 0.500 [0.500 0.500]".split(),
                "percpu_rwsem_c 1 100.0 - 0.625 [0.625 0.625]".split(),
                "percpu_rwsem.mb 1 160.0 1.600 [1.600 1.600] -".split(),
            ],
        )
        self.assertIn("12 % faster", text)

    def test_spacing(self):
        def lines(ratio, gap, writes, slow):
            more = f"{writes} writes 2 grace-periods 0 expedited"
            line = f"lock=percpu_rwsem{{}}/threads=2/ratio={ratio}/gap={gap}"
            return run("PercpuRead", [(line.format(""), 1000, 1e6, f"{more} {slow} slow-reads"), (line.format("_c"), 1000, 1e6, more)])

        text = shown(
            results(
                "percpu_spacing",
                lines("1:1", 0, 500, 900),
                lines("1:1", 20, 50, 100),
                lines("1:0", 0, 0, 0),
                locks="percpu_rwsem,percpu_rwsem_c",
            )
        )
        self.assertEqual(
            rows(text),
            [
                "percpu_rwsem no writer 1000 1000 0.00 % 0 2 0".split(),
                "percpu_rwsem_c no writer 1000 1000 - 0 2 0".split(),
                "percpu_rwsem 20 ms 1000 1000 10.00 % 50 2 0".split(),
                "percpu_rwsem_c 20 ms 1000 1000 - 50 2 0".split(),
                "percpu_rwsem 0 ms 1000 1000 90.00 % 500 2 0".split(),
                "percpu_rwsem_c 0 ms 1000 1000 - 500 2 0".split(),
            ],
        )

    def test_freeze3(self):
        line = "lock=percpu_rwsem{}/threads=1"
        text = shown(
            results(
                "freeze3",
                run(
                    "Freeze3",
                    [
                        (line.format(""), 10, 30e6, "60 grace-periods 0 expedited"),
                        (line.format(".shared"), 10, 10e6, "20 grace-periods 0 expedited"),
                    ],
                ),
                locks="",
            )
        )
        self.assertEqual(
            rows(text),
            ["percpu_rwsem 10 30.00 6.00 0.00".split(), "percpu_rwsem.shared 10 10.00 2.00 0.00".split()],
        )
