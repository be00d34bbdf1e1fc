# SPDX-License-Identifier: GPL-2.0
"""Runs the cases of report.sh, which are in report_*.py beside this: methods of TestCase, each a KTAP result by
the kernel's own helper."""

import contextlib
import io
import unittest
from pathlib import Path

import ksft


def cases(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases(each)
        else:
            yield each


def main():
    found = list(cases(unittest.defaultTestLoader.discover(str(Path(__file__).parent), "report_*.py")))
    ksft.print_header()
    ksft.set_plan(len(found))
    for case in found:
        outcome = unittest.TestResult()
        with contextlib.redirect_stdout(io.StringIO()):
            case.run(outcome)
        for _, trace in outcome.failures + outcome.errors:
            for text in trace.splitlines():
                ksft.print_msg(text)
        ksft.test_result(outcome.wasSuccessful(), case.id())
    ksft.finished()


if __name__ == "__main__":
    main()
