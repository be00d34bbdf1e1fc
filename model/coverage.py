#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints how much of the lock files' pure functions a run of the tests came by.

Started by scripts/model with what `llvm-cov export` says of that run. Prints KTAP: a function passes when
each of its regions was executed.
"""

import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The types whose functions are pure: transitions and questions.
PURE = {"Count", "Owner", "Code", "Gp", "Block", "Word"}


def functions(path):
    """The pure functions of a lock file: the name of each by the numbers of its lines."""
    of_line = {}
    inside = name = None
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.startswith("#[kunit_tests"):
            break
        if found := re.match(r"impl (\w+) \{", line):
            inside = found[1] if found[1] in PURE else None
        elif line == "}":
            inside = name = None
        if inside and (found := re.match(r"    (?:pub\S* )?(?:const )?fn (\w+)", line)):
            name = f"{path.name}: {inside}::{found[1]}"
        if name:
            of_line[number] = name
        if line == "    }":
            name = None
    return of_line


def main():
    known = {path.name: functions(path) for path in ROOT.glob("*.rs")}
    # Of each function, how often each of its regions was executed, in all its instances together.
    regions = {name: collections.Counter() for lines in known.values() for name in lines.values()}
    for function in json.load(sys.stdin)["data"][0]["functions"]:
        lines = known.get(pathlib.Path(function["filenames"][0]).name, {})
        for region in function["regions"]:
            first, column, _, _, count, _, _, kind = region
            if kind == 0 and (name := lines.get(first)):
                regions[name][(first, column)] += count
    print(f"KTAP version 1\n1..{len(regions)}")
    bad = 0
    for number, (name, counts) in enumerate(sorted(regions.items()), 1):
        executed = sum(count > 0 for count in counts.values())
        missing = sorted({line for (line, _), count in counts.items() if not count})
        result = "ok" if counts and not missing else "not ok"
        where = f", not lines {', '.join(map(str, missing))}" if missing else ""
        most = max(counts.values(), default=0)
        print(f"{result} {number} {name} # regions {executed} of {len(counts)}, executed {most} times{where}")
        bad |= result != "ok"
    return bad


if __name__ == "__main__":
    sys.exit(main())
