#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the model's tests on lock files with one ordering weakened or one statement left out.

Started by scripts/model, which has built what the tests build on. Prints KTAP: a mutant passes when a
test fails on it, or when docs/model.md tells why none does.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOC = ROOT / "docs" / "model.md"

# The lock files, and the tests that see a fault in each: the first ones to fail are the quick ones.
FILES = {
    "osq.rs": ["osq::"],
    "rwsem_xadd.rs": ["rwsem_xadd::"],
    "spin.rs": ["rwsem_xadd::"],
    "waiters.rs": ["rwsem_xadd::"],
}

WEAKER = {"Full": ["Acquire", "Release", "Relaxed"], "Acquire": ["Relaxed"], "Release": ["Relaxed"]}

# One call, on a line of its own, whose result nobody uses.
STATEMENT = re.compile(r"^\s*(?!let |return|use |assert|mod |P::EVENTS|EVENTS)(unsafe \{ )?[\w(*].*\)( \})?;$")


def code_lines(text):
    """The numbers of the lines that are code, outside of imports and of the KUnit tests."""
    in_use = False
    for number, line in enumerate(text.split("\n")):
        stripped = line.strip()
        if stripped.startswith("#[kunit_tests"):
            return
        if stripped.startswith("use "):
            in_use = True
        if not in_use and not stripped.startswith("//"):
            yield number
        if in_use and stripped.endswith(";"):
            in_use = False


def mutants_of(file):
    """Names and texts: a name tells the function and the change, so that it outlives other edits."""
    text = (ROOT / file).read_text()
    lines = text.split("\n")
    function = "?"
    seen = {}
    for number in code_lines(text):
        line = lines[number]
        found = re.search(r"\bfn (\w+)", line)
        if found:
            function = found[1]
        changes = []
        for match in re.finditer(r"\b(Full|Acquire|Release)\)", line):
            for weaker in WEAKER[match[1]]:
                changes.append((f"{match[1]} -> {weaker}", line[: match.start()] + weaker + line[match.end() - 1 :]))
        if STATEMENT.match(line):
            changes.append(("left out", ""))
        for what, new in changes:
            name = f"{file}: {function}: {line.strip()}: {what}"
            seen[name] = seen.get(name, 0) + 1
            if seen[name] > 1:
                name += f" ({seen[name]})"
            yield name, "\n".join(lines[:number] + [new] + lines[number + 1 :])


class Tests:
    """The tests, on a copy of the sources that a mutant can be put into."""

    def __init__(self, tree, args):
        self.tree = tree
        self.jobs = args.jobs
        self.cargo = ["cargo", "test", "--locked", "--offline", "--no-run", "--package", "klocks-model"]
        for crate, directory in ("loom", "loom"), ("pin_init", "pin-init"):
            self.cargo += ["--config", f'patch.crates-io.{crate}.path="{args.sources}/{directory}"']
        self.env = dict(os.environ, MODEL_REPORT=str(tree / "report"))
        shutil.copytree(ROOT / "model", tree / "model", ignore=shutil.ignore_patterns("target"))
        for file in ROOT.glob("*.rs"):
            shutil.copy(file, tree)

    def build(self):
        """The test program, or None when it does not compile."""
        result = subprocess.run(
            self.cargo, cwd=self.tree / "model", env=self.env, capture_output=True, text=True, check=False
        )
        found = re.search(r"Executable unittests [^(]*\((.*)\)", result.stderr)
        return found[1] if result.returncode == 0 and found else None

    def first_failure(self, program, names):
        """The first test to fail and why, or None."""
        command = [program, "--test-threads", str(self.jobs), "--nocapture", *names]
        with subprocess.Popen(
            command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as run:
            reason = "it dies"
            for line in run.stdout:
                found = re.search(
                    r"Causality violation[^.]*|deadlock|exceeded maximum number of branches|exceeded max_steps"
                    r"|use after free|assertion.*failed.*|[Aa]n? \w+ inside with.*|two \w+ inside",
                    line,
                )
                if found:
                    reason = found[0].strip()
                failed = re.match(r"^test (?:tests::)?(\S+).* FAILED$", line) or re.match(
                    r"^thread '(?:tests::)?([^']+)'.* panicked at", line
                )
                if failed and failed[1] != "main":
                    # The line after the place tells the reason.
                    after = run.stdout.readline().strip()
                    run.kill()
                    return failed[1], after or reason
            return None if run.wait() == 0 else ("a test", reason)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("chosen", nargs="*")
    args = parser.parse_args()

    mutants = [m + (file,) for file in FILES for m in mutants_of(file)]
    mutants = [m for m in mutants if not args.chosen or any(c in m[0] for c in args.chosen)]
    if not mutants:
        sys.exit("mutants.py: no mutant is called like that")
    if args.list:
        print("\n".join(name for name, _, _ in mutants))
        return 0
    known = DOC.read_text() if DOC.exists() else ""
    print(f"KTAP version 1\n1..{len(mutants)}", flush=True)
    bad = 0
    with tempfile.TemporaryDirectory() as directory:
        tests = Tests(pathlib.Path(directory), args)
        for number, (name, text, file) in enumerate(mutants, 1):
            (tests.tree / file).write_text(text)
            program = tests.build()
            if program is None:
                result = f"ok {number} {name} # SKIP does not compile"
            elif caught := tests.first_failure(program, FILES[file]):
                result = f"ok {number} {name} # caught by {caught[0]}: {caught[1]}"
            elif f"`{name}`" in known:
                result = f"ok {number} {name} # survives, see docs/model.md"
            else:
                result = f"not ok {number} {name} # survives"
                bad = 1
            print(result, flush=True)
            shutil.copy(ROOT / file, tests.tree)
    return bad


if __name__ == "__main__":
    sys.exit(main())
