#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the model's tests on lock files with one ordering weakened or one statement left out.

Started by scripts/model, which has built what the tests build on. All mutants are in one build, each under
a number that the tests are told in MODEL_MUTANT. Prints KTAP: a mutant passes when a test fails on it, or
when docs/model.md tells why none does.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOC = ROOT / "docs" / "model.md"

# The lock files, and the tests that see a fault in each.
RWSEMS = ["rwsem::"]
FILES = {
    "osq.rs": ["osq::"],
    "lockref.rs": ["lockref::"],
    "rcu_sync.rs": ["rcu_sync::"],
    "percpu_rwsem.rs": ["percpu_rwsem::"],
    "rwsem_xadd.rs": ["rwsem::xadd"],
    "rwsem.rs": ["rwsem::c73", "rwsem::handoff_stop", "rwsem::rwsem_default"],
    "semaphore.rs": RWSEMS,
    "spin.rs": RWSEMS,
    "waiters.rs": RWSEMS,
}

# So many executions of each test come first, and of each random one, since most faults show at once.
FEW = (1500, 100)

WEAKER = {"Full": ["Acquire", "Release", "Relaxed"], "Acquire": ["Relaxed"], "Release": ["Relaxed"]}
# As an argument; a barrier's kind is none.
ORDERING = re.compile(r"(?<!barrier::)\b(Full|Acquire|Release)\)")

# One call, on a line of its own, whose result nobody uses. What debuggers are told is no part of the model,
# and what ends here ends with its scope otherwise.
STATEMENT = re.compile(r"^(\s*)((?:unsafe \{ )?[\w(*][^!]*\)(?: \})?;)$")
NOT = re.compile(
    r"^\s*(let|return|use|mod|break|pub|const|static|struct|type|fn|unsafe fn)\b"
    r"|EVENTS|assert|annotate::|might_sleep|\bdep(_map)?\b|on_sleep|report\(\)"
    r"|check_held|\bdrop\((pin|ring|queue)\)|wakes\.wake_all\(\)"
)


@dataclasses.dataclass
class Mutant:
    """One change. The name tells the function, so that it outlives other edits."""

    number: int
    name: str
    file: str
    line: int


def code_lines(lines):
    """The numbers of the lines that are code, outside of imports and of the KUnit tests."""
    in_use = False
    for number, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith("#[kunit_tests"):
            return
        if stripped.startswith("use "):
            in_use = True
        if not in_use and not stripped.startswith("//"):
            yield number
        if in_use and stripped.endswith(";"):
            in_use = False


class Mutants:
    """All mutants of all files, and the files with them in."""

    def __init__(self):
        self.all = []
        self.lines = {}
        self.originals = {}
        self.names = {}
        for file in FILES:
            self.read(file)

    def add(self, file, line, function, text, what):
        name = f"{file}: {function}: {text.strip()}: {what}"
        self.names[name] = self.names.get(name, 0) + 1
        if self.names[name] > 1:
            name += f" ({self.names[name]})"
        self.all.append(Mutant(len(self.all) + 1, name, file, line))

    def read(self, file):
        """Enters the mutants of a file."""
        original = (ROOT / file).read_text().split("\n")
        lines = list(original)
        function = "?"
        previous = ""
        for number in code_lines(original):
            text = original[number]
            if found := re.search(r"\bfn (\w+)", text):
                function = found[1]
            place = 0
            for match in ORDERING.finditer(text):
                first = len(self.all) + 1
                for weaker in WEAKER[match[1]]:
                    self.add(file, number, function, text, f"{match[1]} -> {weaker}")
                site = f"::kernel::model::Weakened::<_, {first}>::of({match[1]})"
                start = lines[number].index(f"{match[1]})", place)
                lines[number] = lines[number][:start] + site + lines[number][start + len(match[1]) :]
                place = start + len(site)
            begins = previous.endswith((";", "{", "}")) or previous.strip().startswith("//")
            if (found := STATEMENT.match(lines[number])) and not NOT.search(text) and begins:
                self.add(file, number, function, text, "left out")
                guard = f"if !::kernel::model::is_mutant({len(self.all)})"
                lines[number] = f"{found[1]}{guard} {{ {found[2]} }}"
            if text.strip():
                previous = text
        self.lines[file] = lines
        self.originals[file] = original

    def undo(self, file, line):
        """Takes the mutants of a line out, which do not compile: what they were."""
        self.lines[file][line] = self.originals[file][line]
        gone = [m for m in self.all if (m.file, m.line) == (file, line)]
        self.all = [m for m in self.all if (m.file, m.line) != (file, line)]
        return gone


class Tests:
    """The tests, on a copy of the sources with the mutants in."""

    def __init__(self, tree, args):
        self.tree = tree
        self.cargo = ["cargo", "test", "--locked", "--offline", "--no-run", "--package", "klocks-model"]
        for crate, directory in ("loom", "loom"), ("pin_init", "pin-init"):
            self.cargo += ["--config", f'patch.crates-io.{crate}.path="{args.sources}/{directory}"']
        shutil.copytree(ROOT / "model", tree / "model", ignore=shutil.ignore_patterns("target"))
        for file in ROOT.glob("*.rs"):
            shutil.copy(file, tree)
        self.program = None

    def build(self, mutants):
        """Builds the test program; which mutants do not compile."""
        gone = []
        while True:
            for file, lines in mutants.lines.items():
                (self.tree / file).write_text("\n".join(lines))
            result = subprocess.run(
                self.cargo, cwd=self.tree / "model", capture_output=True, text=True, check=False
            )
            if result.returncode == 0:
                built = re.search(r"Executable unittests [^(]*\((.*)\)", result.stderr)[1]
                self.program = shutil.copy(built, self.tree / "tests")
                return gone
            # Of an error, the places in lock files.
            places = set(re.findall(r"-->\s+\S*?(\w+\.rs):(\d+)", result.stderr))
            taken = [m for file, line in places if file in FILES for m in mutants.undo(file, int(line) - 1)]
            # Or the error is elsewhere, since what is left out would have given a value anew.
            if not taken:
                numbers = re.findall(r"is_mutant\((\d+)\)[^\n]*\n[^\n]*reinitialization might", result.stderr)
                cause = {(m.file, m.line) for m in mutants.all if str(m.number) in numbers}
                taken = [m for place in cause for m in mutants.undo(*place)]
            if not taken:
                sys.exit(f"mutants.py: the build fails:\n{result.stderr[-3000:]}")
            gone += taken

    def first_failure(self, mutant, names, limits):
        """The first test to fail, how it was explored, and why; or None."""
        executions, samples = limits
        with tempfile.NamedTemporaryFile("r") as report:
            env = dict(
                os.environ,
                MODEL_MUTANT=str(mutant),
                MODEL_REPORT=report.name,
                MODEL_EXECUTIONS=str(executions),
                MODEL_SAMPLES=str(samples),
            )
            failure = self.run([self.program, "--test-threads", "1", "--nocapture", "--skip", "::deep::", *names], env)
            if failure:
                how = re.findall(r"^\S+ (.*?) executions=", report.read(), re.M)
                failure = (failure[0], how[-1] if how else "", failure[1])
            return failure

    @staticmethod
    def run(command, env):
        """Runs it until a test fails: which, and why."""
        # One that goes round in circles without a step of the checker ends as well.
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (900, 900))
        test = "a test"
        reason = None
        with subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=limit
        ) as run:
            for line in run.stdout:
                if found := re.match(r"^test (?:tests::)?(\S+) \.\.\.", line):
                    test = found[1]
                if not reason and re.search(r"\bthread '.*' .*panicked at", line):
                    # The line after the place tells the reason.
                    reason = run.stdout.readline().strip()
                # By then its line is in the report.
                if reason and re.search(r"\bFAILED$", line):
                    run.kill()
            run.wait()
            return (test, reason or "it dies") if reason or run.returncode else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", required=True)
    parser.add_argument("--lock", type=int, required=True, help="file descriptor, closed when all is built")
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("chosen", nargs="*")
    args = parser.parse_args()

    mutants = Mutants()
    is_chosen = lambda m: not args.chosen or any(re.search(c, m.name) for c in args.chosen)
    chosen = [m for m in mutants.all if is_chosen(m)]
    if not chosen:
        sys.exit("mutants.py: no mutant is called like that")
    if args.list:
        print("\n".join(m.name for m in chosen))
        return 0
    known = DOC.read_text() if DOC.exists() else ""
    most = int(os.environ["MODEL_EXECUTIONS"]), int(os.environ["MODEL_SAMPLES"])
    bad = 0
    with tempfile.TemporaryDirectory() as directory:
        tests = Tests(pathlib.Path(directory), args)
        print(f"mutants.py: building {len(mutants.all)} mutants at once", file=sys.stderr)
        unbuilt = {m.name for m in tests.build(mutants)}
        os.close(args.lock)
        print(f"KTAP version 1\n1..{len(chosen)}", flush=True)

        def judge(mutant):
            if mutant.name in unbuilt:
                return f"ok {{}} {mutant.name} # SKIP does not compile"
            for limits in FEW, most:
                start = time.monotonic()
                if caught := tests.first_failure(mutant.number, FILES[mutant.file], limits):
                    test, how, reason = caught
                    how = f"{how}, {time.monotonic() - start:.1f} s"
                    return f"ok {{}} {mutant.name} # caught by {test} ({how}): {reason}"
            if f"`{mutant.name}`" in known:
                return f"ok {{}} {mutant.name} # survives, see docs/model.md"
            return f"not ok {{}} {mutant.name} # survives"

        for file in sorted({m.file for m in chosen}):
            if failure := tests.first_failure(0, FILES[file], FEW):
                sys.exit(f"mutants.py: {failure[0]} fails without a mutant: {failure[2]}")
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for number, result in enumerate(pool.map(judge, chosen), 1):
                bad |= result.startswith("not")
                print(result.replace("{}", str(number), 1), flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
