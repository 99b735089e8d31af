# SPDX-License-Identifier: Apache-2.0
"""Breaks the compiler in small ways, one at a time, and sees whether the tests notice. It judges tests, not code.

    python tests/mutants/mutants.py --tree ../scratch --count 120 --log benchmarks/results/mutants.json

`--tree` is a checkout of its own with a configured `build/dev`: files in it are changed and put back. A mutant is one
edit of one line by one rule of RULES. They are drawn evenly over rules and files, the same for the same sources and
seed. Each is built and then shown the suites of SUITES, the quick ones first, until one fails: it is killed. What does
not build says nothing of the tests and is drawn again. A log is added to as mutants end, and those in it are not run
again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

FILES = (
    "compiler/check/promote.cpp",
    "compiler/check/specialise.cpp",
    "compiler/emit/*.cpp",
    "compiler/ir/arithmetic.cpp",
    "compiler/ir/builder.cpp",
    "compiler/lower/*.cpp",
    "compiler/passes/*.cpp",
    "grammar/builtins.def",
    "runtime/cuda/geometry.cpp",
    "runtime/cuda/nvrtc.cpp",
    "runtime/cpu/codegen.cpp",
    "runtime/host/*.cpp",
    "runtime/launch.cpp",
    "runtime/layout/*.cpp",
)


@dataclass(frozen=True)
class Rule:
    """`pattern` in the code of a line (strings too if `strings`) becomes `becomes`; `files` narrows where."""

    name: str
    pattern: str
    becomes: str
    strings: bool = False
    files: str = ""


ARGUMENT = r"((?:[^(),]|\([^()]*\))+)"
RULES = (
    Rule("less for at most", r" <= ", " < "),
    Rule("at most for less", r" < (?!.*>[ (&*])", " <= "),
    Rule("more for at least", r" >= ", " > "),
    Rule("at least for more", r" > (?!.*<)", " >= "),
    Rule("equal for unequal", r" == ", " != "),
    Rule("or for and", r" && ", " || "),
    Rule("and for or", r" \|\| ", " && "),
    Rule("one too few", r" \+ 1\b(?![.\w])", ""),
    Rule("one too many", r" - 1\b(?![.\w])", ""),
    Rule("zero for one", r"integer\((\w+::\w+, )?1\)", r"integer(\g<1>0)"),
    Rule("ceiling for floor", r"floor_row\(\)", "ceil_row()"),
    Rule("floor for ceiling", r"ceil_row\(\)", "floor_row()"),
    Rule("truncation for floor", r"BinaryOp::FloorDiv\b", "BinaryOp::Div", files="compiler/(lower|passes)/"),
    Rule("signed for unsigned", r"CreateZExt", "CreateSExt"),
    Rule("unsigned for signed", r"CreateSExt", "CreateZExt"),
    Rule("signed order", r"ICmpSLT", "ICmpULT"),
    Rule("logical shift", r"CreateAShr", "CreateLShr"),
    Rule(
        "swapped operands",
        rf"(Create(?:Sub|SDiv|SRem|UDiv|URem|Shl|LShr|AShr|FSub|FDiv))\({ARGUMENT}, {ARGUMENT}\)",
        r"\1(\3, \2)",
    ),
    Rule(
        "swapped operands of a node",
        rf"(BinaryOp::(?:Sub|FloorDiv|Mod|Div|Shl|Shr)), {ARGUMENT}, {ARGUMENT}\)",
        r"\1, \3, \2)",
    ),
    Rule("wrong else", rf"(CreateSelect)\({ARGUMENT}, {ARGUMENT}, {ARGUMENT}\)", r"\1(\2, \4, \3)"),
    Rule("wrong else of a node", rf"(b\.where)\({ARGUMENT}, {ARGUMENT}, {ARGUMENT}\)", r"\1(\2, \4, \3)"),
    Rule("conditional turned round", r"([^?]*[^? ]) \? ([^?:]+) : ([^?:;]+);", r"\1 ? \3 : \2;"),
    Rule("negation dropped", r"([( =])!(?=[a-z(])", r"\1"),
    Rule("least for greatest", r"\b(smax|greatest_row\(\)|std::max)", r"smin_of_\1"),  # see BECOMES
    Rule("int for i64", r"i64 ", "int ", strings=True, files="compiler/emit/cuda"),
    Rule("less for at most, in emitted text", r" <= ", " < ", strings=True, files="compiler/emit/cuda"),
    Rule("at most for less, in emitted text", r" < ", " <= ", strings=True, files="compiler/emit/cuda"),
    Rule("one more, in emitted text", r" \+ 1\b", "", strings=True, files="compiler/emit/cuda"),
    Rule("unordered comparison", r"FCmpO(LT|LE|GT|GE|EQ)", r"FCmpU\1"),
    Rule("NaN dropped by min", r"llvm\.minimum", "llvm.minnum", strings=True),
    Rule("NaN dropped by max", r"llvm\.maximum", "llvm.maxnum", strings=True),
    Rule("NaN dropped in emitted text", r"a != a \|\| ", "", strings=True),
    Rule("sign of zero dropped", r" \|\| \(a == b && !?signbit\(a\)\)", "", strings=True),
    Rule("contraction in NVRTC", r"--fmad=false", "--fmad=true", strings=True),
    Rule("contraction on the CPU", r"FPOpFusion::Strict", "FPOpFusion::Fast"),
    Rule("halves to odd", r"llvm\.roundeven", "llvm.round", strings=True),
    Rule("rounding by another rule", r"\brintf?\(", "round(", strings=True),
    Rule("trunc for floor", r"\bfloorf?\(\{0\}\)", "trunc({0})", strings=True),
    Rule("rounding left out", r"to_odd\(", "(", strings=True),
    Rule("two nodes taken for one", r" \|\| a\.(sub|type|stage) != b\.\1", ""),
    Rule("a type for another", r"DType::F64\b", "DType::F32"),
    Rule("a narrower index", r"DType::I64\b", "DType::I32"),
    Rule("a category for another", r"Category::Dim\b", "Category::ZeroDim"),
    Rule("a slot for another", r"SlotKind::(RowPitch|InStride)", "SlotKind::OutStride"),
    Rule("true for false", r"\bfalse\b", "true"),
    Rule("false for true", r"\btrue\b", "false"),
)
BECOMES = {"smin_of_smax": "smin", "smin_of_greatest_row()": "least_row()", "smin_of_std::max": "std::min"}


@dataclass(frozen=True)
class Mutant:
    """One edit."""

    rule: str
    file: str
    line: int
    before: str
    after: str

    @property
    def key(self) -> str:
        text = f"{self.rule}|{self.file}|{self.before.strip()}|{self.after.strip()}|{self.line}"
        return hashlib.blake2b(text.encode(), digest_size=5).hexdigest()


def code_spans(line: str) -> list[tuple[int, int, bool]]:
    """The parts of a line as (begin, end, is a string), its comment left out."""
    spans, at, start = [], 0, 0
    while at < len(line):
        if line.startswith("//", at):
            break
        if line[at] == '"':
            end = at + 1
            while end < len(line) and line[end] != '"':
                end += 2 if line[end] == "\\" else 1
            spans += [(start, at, False), (at, end + 1, True)]
            at = start = end + 1
            continue
        at += 1
    return [*spans, (start, at, False)]


def mutants_of(tree: Path) -> list[Mutant]:
    """Every mutant there is."""
    found = []
    for pattern in FILES:
        for path in sorted(tree.glob(pattern)):
            name = str(path.relative_to(tree))
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if line.lstrip().startswith(("#include", "//", "static_assert", "assert(")):
                    continue
                for rule in RULES:
                    if not re.search(rule.files, name):
                        continue
                    for begin, end, is_string in code_spans(line):
                        if is_string != rule.strings:
                            continue
                        for m in re.finditer(rule.pattern, line[begin:end]):
                            new = m.expand(rule.becomes)
                            for raw, text in BECOMES.items():
                                new = new.replace(raw, text)
                            after = line[: begin + m.start()] + new + line[begin + m.end() :]
                            if after != line:
                                found.append(Mutant(rule.name, name, number, line, after))
    return found


def draw(all_of_them: list[Mutant], seed: int) -> list[Mutant]:
    """In an order that goes round the rules, and within a rule round the files."""
    shuffled = random.Random(seed).sample(all_of_them, len(all_of_them))
    rounds: dict[Mutant, tuple[int, int]] = {}
    of_rule: dict[str, int] = {}
    of_file: dict[tuple[str, str], int] = {}
    for m in shuffled:
        of_file[m.rule, m.file] = of_file.get((m.rule, m.file), 0) + 1
        rounds[m] = (of_file[m.rule, m.file], 0)
    for m in sorted(shuffled, key=lambda m: rounds[m]):
        of_rule[m.rule] = of_rule.get(m.rule, 0) + 1
        rounds[m] = (of_rule[m.rule], 0)
    return sorted(shuffled, key=lambda m: rounds[m])


def run(command: list[str], tree: Path, limit: int) -> tuple[int, str]:
    """Exit status and the end of what was printed; 124: it took too long."""
    env = dict(os.environ, ELSEWISE_BUILD_DIR="build/dev", PYTHONPATH=str(tree / "build/dev/python"))
    try:
        done = subprocess.run(
            command, cwd=tree, env=env, timeout=limit, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, ""
    return done.returncode, (done.stdout + done.stderr)[-1500:]


PYTHON = sys.executable
SUITES = (
    ("unit", ["build/dev/tests/ew_tests", "--gtest_brief=1", "--gtest_fail_fast"], 180),
    ("lit", [PYTHON, "tests/run.py", "lit"], 180),
    (
        "fuzz, short",
        ["build/dev/tests/ew_tests", "fuzz", "--programs=400", "--shim=200", "--nvrtc=0", "--archs=0"],
        240,
    ),
    ("python", [PYTHON, "-m", "pytest", "-q", "-x", "tests/python", "-p", "no:cacheprovider"], 900),
    ("fuzz", ["build/dev/tests/ew_tests", "fuzz"], 1200),
)


def suffer(m: Mutant, tree: Path, build: list[str]) -> dict:
    """Builds the mutant and shows it the suites."""
    path = tree / m.file
    original = path.read_text()
    lines = original.splitlines(keepends=True)
    lines[m.line - 1] = m.after + "\n"
    entry: dict = {"key": m.key, "rule": m.rule, "file": m.file, "line": m.line, "before": m.before.strip()}
    entry["after"] = m.after.strip()
    try:
        path.write_text("".join(lines))
        code, text = run(build, tree, 900)
        if code:
            return entry | {"end": "not built"}
        for name, command, limit in SUITES:
            start = time.monotonic()
            code, text = run(command, tree, limit)
            entry.setdefault("seconds", {})[name] = round(time.monotonic() - start, 1)
            if (
                name.startswith("fuzz")
                and code
                and "MISMATCH" in text
                and text.count("never occurred") == text.count("MISMATCH")
            ):
                code = 0  # a short run need not hold everything
            if code:
                return entry | {"end": "killed", "by": name, "how": "took too long" if code == 124 else text[-300:]}
        return entry | {"end": "survived"}
    finally:
        path.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--build", default="cmake --build build/dev", help="the command that builds the tree")
    parser.add_argument("--list", action="store_true", help="count what there is and stop")
    given = parser.parse_args()
    tree = given.tree.resolve()
    every = mutants_of(tree)
    if given.list:
        for rule in RULES:
            print(f"{sum(m.rule == rule.name for m in every):5} {rule.name}")
        print(f"{len(every):5} in all")
        return 0
    log = json.loads(given.log.read_text()) if given.log.exists() else []
    done = {entry["key"] for entry in log}
    ended = sum(entry["end"] != "not built" for entry in log)
    for m in draw(every, given.seed):
        if ended >= given.count:
            break
        if m.key in done:
            continue
        entry = suffer(m, tree, given.build.split())
        log.append(entry)
        given.log.write_text(json.dumps(log, indent=1) + "\n")
        ended += entry["end"] != "not built"
        print(
            f"{entry['end']:9} {entry.get('by', ''):12} {m.file}:{m.line} {m.rule}: {m.after.strip()[:90]}", flush=True
        )
    killed = sum(entry["end"] == "killed" for entry in log)
    print(f"{killed} of {ended} killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
