# SPDX-License-Identifier: GPL-2.0
"""Cases of report.sh: what stages of the 2014 series change, their events, and readers that sleep."""

import unittest

import report_cases
import results
import samples
from samples import RUN, shown


def changes(before, after, ratio="1:1", threads=2):
    """Tables of a run of `before` and `after` beside C, as lines of words."""
    times = {"rwsem_c": [1, 10, 10], "rwsem_xadd.base": [1, before, before], "rwsem_xadd.posted": [1, after, after]}
    text = shown(
        samples.results("rwsem_mix", report_cases.run(times, ratio=ratio, threads=threads), locks=",".join(times))
    )
    return [line.split() for line in text.splitlines()]


class Changes(unittest.TestCase):
    def test_beside_the_mails(self):
        lines = changes(200, 50)
        self.assertIn("rwsem_xadd.posted/1:1 2 1:-75.0% (mails: 1:-93.5%, 5:-91.9%, 10:-88.7%)".split(), lines)
        self.assertIn("Cells of rwsem_xadd.posted that are slower where the mails' were faster: none.".split(), lines)

    def test_cell_that_the_mails_lack(self):
        self.assertIn("rwsem_xadd.posted/7:1 2 1:-75.0%".split(), changes(200, 50, ratio="7:1"))

    def test_other_direction_is_named(self):
        lines = [" ".join(line) for line in changes(100, 150, ratio="0:1", threads=10)]
        self.assertTrue(any("faster: 0:1 with 10 threads, load 1 (+50.0%)." in line for line in lines))

    def test_no_before_no_change(self):
        text = shown(
            samples.results(
                "rwsem_mix",
                report_cases.run({"rwsem_c": [1, 2], "rwsem_xadd.posted": [1, 2]}),
                locks="rwsem_c,rwsem_xadd.posted",
            )
        )
        self.assertNotIn("% change", text)


class Events(unittest.TestCase):
    def run_of(self, more):
        text = RUN.format(vcpus=3, ops=500, blocks=2, oversubscribed="no", order="a")
        for lock, events in more.items():
            for block in range(3):
                text += report_cases.line(lock, 2, "1:1", 5, 500, 10, block).rstrip() + events + "\n"
        return samples.results("rwsem_events", text, locks=",".join(more))

    def test_for_a_thousand_operations(self):
        text = shown(
            self.run_of(
                {"rwsem_xadd.base": " 30 opt_lock-events 4 rlock-events", "rwsem_xadd.p7": " 5 respin-events", "rwsem_c": ""}
            )
        )
        rows = [line.split() for line in text.splitlines()]
        self.assertIn("event base p7".split(), rows)
        self.assertIn("opt_lock 30.0 0.0".split(), rows)
        self.assertIn("respin 0.0 5.0".split(), rows)

    def test_kernel_that_counts_none(self):
        with self.assertRaisesRegex(results.Unusable, "counts no lock events"):
            shown(self.run_of({"rwsem_xadd.base": ""}))


class Storm(unittest.TestCase):
    def run_of(self, scenario, name):
        text = RUN.format(vcpus=3, ops=4, blocks=2, oversubscribed="no", order="a")
        for lock, ns in ("rwsem_xadd.nospin", 1000), ("rwsem_xadd.p2", 4000), ("rwsem_c", 2000):
            events = " 8 wake_reader-events 4 sleep_writer-events" if lock != "rwsem_c" else ""
            for block in range(3):
                text += (
                    f"Benchmark{name}/lock={lock}/threads=2/ratio=3:1/load=5 8 {ns} ns/op {4 * ns} elapsed-ns {block} block "
                    f"0 overlaps 0 torn 6 reads 2 writes {block} most-bypassed 3000000 longest-write-ns 20000 "
                    f"wait-lock-ppm{events}\n"
                )
        text = shown(samples.results(scenario, text, locks="rwsem_xadd.nospin,rwsem_xadd.p2,rwsem_c"))
        return [line.split() for line in text.splitlines()]

    def test_work_and_its_cost(self):
        rows = self.run_of("mmap_storm", "MmapStorm")
        self.assertIn("rwsem_xadd.nospin 2000000 1.00 [1.00 1.00] 500000 1.000 0.500 2.00 2 3.0".split(), rows)
        self.assertIn("rwsem_xadd.p2 500000 0.25 [0.25 0.25] 125000 1.000 0.500 2.00 2 3.0".split(), rows)
        self.assertIn("rwsem_c 1000000 0.50 [0.50 0.50] 250000 - - 2.00 2 3.0".split(), rows)

    def test_of_readers(self):
        self.assertIn("reads/s", [word for row in self.run_of("sleeping_readers", "SleepingReaders") for word in row])


class RtWake(unittest.TestCase):
    def test_delays(self):
        text = RUN.format(vcpus=3, ops=4, blocks=3, oversubscribed="no", order="a")
        for block, p99 in enumerate((9, 3000, 1000, 2000)):
            text += (
                f"BenchmarkRtWake/lock=rwsem_xadd.p1/threads=2/load=10 8 10 ns/op 80 elapsed-ns {block} block 0 overlaps "
                f"0 torn 5 wakes 500 p50-ns {p99} p99-ns {2 * p99} max-ns\n"
            )
        rows = [line.split() for line in shown(samples.results("rt_wake", text, locks="rwsem_xadd.p1")).splitlines()]
        self.assertIn("rwsem_xadd.p1 15 0.5 2.0 6.0".split(), rows)


if __name__ == "__main__":
    unittest.main()
