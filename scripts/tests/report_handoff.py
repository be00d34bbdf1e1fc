# SPDX-License-Identifier: GPL-2.0
"""Cases of report.sh: the handoff patch before and after."""

import unittest

import samples
from samples import RUN, shown

WAITS = " ".join(
    f"{value} {kind}-{name}-ns"
    for kind in ("read", "write")
    for name, value in {"p50": 1000, "p99": 2000, "p99.9": 3000, "max": 4000}.items()
)


class Handoff(unittest.TestCase):
    def run_of(self, times, events=""):
        text = RUN.format(vcpus=4, ops=2, blocks=2, oversubscribed="yes", order="a")
        for lock, ns in times.items():
            for block in range(3):
                text += (
                    f"BenchmarkHandoffStorm/lock={lock}/threads=8/ratio=1:1/load=5 14 {ns} ns/op {2 * ns} elapsed-ns "
                    f"{block} block 0 overlaps 0 torn 3 long-holds {WAITS}{events}\n"
                )
        return [line.split() for line in shown(samples.results("handoff_storm", text, locks=",".join(times))).splitlines()]

    def test_beside_the_lock_without(self):
        rows = self.run_of(
            {"rwsem.c73": 4000, "rwsem.handoff_stop": 2000}, " 7 wlock_handoff-events 6 handoff_granted-events 14 opt_lock-events 28 opt_handoff-events"
        )
        self.assertIn("rwsem.handoff_stop 3500000 2.00 [2.00 2.00] 500.0 428.6 1000.0 0.0 2000.0 0.0".split(), rows)
        self.assertIn("rwsem.c73 1750000 1.00 [1.00 1.00] 500.0 428.6 1000.0 0.0 2000.0 0.0".split(), rows)

    def test_waits_of_each_class(self):
        rows = self.run_of({"rwsem.c73": 4000})
        self.assertIn("rwsem.c73 read 1 2 3 4".split(), rows)
        self.assertIn("rwsem.c73 write 1 2 3 4".split(), rows)

    def test_kernel_that_counts_none(self):
        rows = self.run_of({"rwsem.c73": 4000})
        self.assertIn("rwsem.c73 1750000 1.00 [1.00 1.00] - - - - - -".split(), rows)

    def test_without_the_lock_that_is_without(self):
        rows = self.run_of({"rwsem_c": 4000})
        self.assertIn("rwsem_c 1750000 - - - - - - -".split(), rows)
