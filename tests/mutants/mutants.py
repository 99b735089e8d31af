# SPDX-License-Identifier: Apache-2.0
"""Breaks the compiler in small ways, one at a time, and sees whether the tests notice. It judges tests, not code.

    python tests/mutants/mutants.py --tree ../scratch --count 120 --log benchmarks/results/mutants.json
    … --round 2, … --round 3
    … --again KEY… --show unit:'Fold.*' lit:passes

`--tree` is a checkout of its own with a configured `build/dev`: files in it are changed and put back. A mutant is one
edit of one line by one rule of RULES. They are drawn evenly over rules and files, the same for the same sources and
seed. What does not build says nothing of the tests and is drawn again. A mutant is killed by the first suite that
fails. Round 1 draws mutants and shows each the suites that usually notice a change of its file; rounds 2 and 3 show
what survived the rest of what CI runs. `--again` shows mutants of the log a test that was written since. A log is added
to as mutants end, and those in it are not run again; other sources want another seed, for a mutant is known by its
line. Read each survivor: either it changes nothing that can be observed, and `why` in its entry says for what reason,
or a test is missing. A reason must hold for every input, and no rule is dropped because its mutants survive.

The last run is benchmarks/results/mutants-2026-12-02.json, in two parts: 74 mutants that built of the sources c363d1a
with seed 1, and 46 of d3d7545 with seed 2, which say so under `revision`. Of the 120, 96 were killed (55 by unit, 26 by
lit, 8 by python, 7 by fuzz), 32 of them by tests written for them, and 24 change nothing, with the reason in the log;
none is open. Survivors were shown the tests chosen for them and not the whole of rounds 2 and 3.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import run as runner

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


def run(command: list[str], tree: Path, seconds: int) -> tuple[int, str]:
    """Exit status and what was printed; a program that works longer than `seconds` is stopped by its own limit."""
    command = [str(Path(sys.executable).parent / c) if c in ("lit", "python") else c for c in command]
    env = dict(os.environ, ELSEWISE_BUILD_DIR="build/dev", PYTHONPATH=str(tree / "build/dev/python"))
    env["LD_LIBRARY_PATH"] = runner.with_nvrtc()["LD_LIBRARY_PATH"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        os.setsid()

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as shown:
        env["ELSEWISE_CACHE_DIR"] = folder
        with subprocess.Popen(
            command, cwd=tree, env=env, stdin=subprocess.DEVNULL, stdout=shown, stderr=shown, preexec_fn=limit
        ) as child:
            try:
                code = child.wait(timeout=12 * seconds)  # the machine may be busy, or all threads asleep
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                code = 124
        shown.seek(0)
        text = shown.read().decode(errors="replace")
    return 124 if -code in (signal.SIGXCPU, signal.SIGKILL) else code, text


@dataclass(frozen=True)
class Suite:
    """A part of the tests: it can fail a mutant within `seconds` of a processor, or is taken to hang."""

    name: str
    command: list[str]
    seconds: int


MEMORY = 12 << 30
TARGETS = ("ew_tests", "ewc", "_elsewise", "elsewise_package")  # the first is enough for the program
PROGRAM = "build/dev/tests/ew_tests"  # all unit tests too
NEVER = "never occurred"  # what the fuzzer says of what its programs lacked


def unit(name: str, chosen: str) -> Suite:
    return Suite(name, [PROGRAM, "--gtest_brief=1", "--gtest_fail_fast", f"--gtest_filter={chosen}"], 150)


def lit(name: str, *folders: str) -> Suite:
    command = ["lit", "-s", "-v", "-j1", "--order=lexical", "--max-failures=1"]
    return Suite(name, [*command, *(f"tests/lit/{folder}" for folder in folders)], 60)


def pytest(name: str, *given: str) -> Suite:
    return Suite(name, ["python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *given], 900)


def fuzz(programs: int, shim: int) -> Suite:
    given = [f"--programs={programs}", f"--shim={shim}", "--ir=100", "--nvrtc=0", "--archs=0"]
    return Suite("fuzz", [PROGRAM, "fuzz", *given], 100)


DEVICE = "CudaDevice*"
PASSES = "Ranges.*:LiveRanges.*:Passes.*:Fold.*:Dead.*:Form.*:Schedule.*"
CALLS = [f"tests/python/test_{name}.py" for name in ("call", "window", "launch", "reads", "read_calls", "types")]
SLOW_NAMES = ("command", "many_kernels", "doctor", "new", "grammar", "format", "mutations")
SLOW = [f"tests/python/test_{name}.py" for name in SLOW_NAMES]

# What usually notices a change of a file comes first: the first row whose beginning fits. It only saves time.
FIRST: tuple[tuple[str, tuple[Suite, ...]], ...] = (
    ("compiler/emit/cuda", (lit("lit", "emit-cuda"), fuzz(100, 60))),
    ("compiler/emit/llvm", (unit("unit", "Llvm*:Jit.*"),)),
    ("compiler/emit/torch", (lit("lit", "emit-torch"), pytest("python", "tests/python/test_emit_torch.py"))),
    ("compiler/passes/bounds", (unit("unit", "Bounds.*:Facade.*"), lit("lit", "check"))),
    ("compiler/passes", (unit("unit", f"{PASSES}:LowerRandom.*:LlvmLoops.*"), lit("lit", "passes"))),
    ("compiler/lower", (unit("unit", "Lower.*:Facade.*:Specialise.*:LowerRandom.*"),)),
    ("compiler/check/promote", (unit("unit", "Promote.*"),)),
    ("compiler/check", (unit("unit", "Specialise.*:Coverage.*:Facade.*"), lit("lit", "check"))),
    ("compiler/ir", (unit("unit", f"Arithmetic.*:Builder.*:{PASSES}:Lower*"),)),
    ("runtime/host", (unit("unit", "Host*:Intervals.*:Limits.*:Calls.*:Facade.*"),)),
    ("runtime/layout", (unit("unit", "Layout.*:Plan.*:Overlap.*:Slots.*"),)),
    ("runtime/launch", (unit("unit", "Calls.*:Facade.*:LlvmLoops.*"),)),
    ("runtime/cuda", (unit("unit", "Geometry.*:CudaUnload.*:CudaNvrtc.*"),)),
    ("grammar/builtins.def", (unit("unit", "Catalogue.*:Rows*:Llvm.EveryBuiltinRow:CudaKernel.EveryExactRow"),)),
)

# Round by round; what a round leaves goes to the next.
ROUNDS: tuple[tuple[Suite, ...], ...] = (
    (fuzz(200, 0),),
    (
        unit("unit", f"-{DEVICE}"),
        lit("lit", "passes", "ir", "emit-cuda", "emit-llvm", "emit-torch", "ptx", "check", "driver"),
        pytest("python", *CALLS),
        pytest("cases", "tests/cases"),
        pytest("python", "tests/python", *(f"--ignore={path}" for path in (*SLOW, *CALLS))),
    ),
    (
        lit("lit", "errors", "lexer", "parser"),
        pytest("docs", "tests/docs"),
        Suite("fuzz", [PROGRAM, "fuzz"], 700),
        pytest("python", *SLOW),
        pytest("build", "tests/build"),
    ),
)


def suites_for(file: str, number: int) -> list[Suite]:
    first = next((suites for begins, suites in FIRST if file.startswith(begins)), ()) if number == 0 else ()
    return [*first, *ROUNDS[number]]


def suites_of(number: int) -> list[Suite]:
    """All that a mutant of some file may be shown in a round."""
    first = [s for _, suites in FIRST for s in suites] if number == 0 else []
    every = [*first, *ROUNDS[number]]
    return [s for at, s in enumerate(every) if s not in every[:at]]


def fails(suite: Suite, tree: Path) -> str | None:
    """None if the suite passes, else how it failed."""
    code, text = run(suite.command, tree, suite.seconds)
    if suite.name == "fuzz" and code == 1:  # a short run need not hold everything
        failed = re.search(r"(\d+) failed, \d+ skipped\s*\Z", text)
        if failed and int(failed[1]) == len(re.findall(rf"^MISMATCH: .*{NEVER}$", text, re.MULTILINE)):
            code = 0
    if not code:
        return None
    if code == 124:
        return "took too long"
    words = ("FAILED tests/", "[  FAILED  ]", "MISMATCH", "error: CHECK", "error: ", "Assertion", "FAIL:")
    lines = [line for word in words for line in text.splitlines() if word in line]
    return f"exit status {code}: {(lines or text.splitlines()[-1:] or [''])[0].strip()[:160]}"


def changed(m: Mutant, source: str) -> str:
    lines = source.splitlines(keepends=True)
    assert lines[m.line - 1].rstrip("\n") == m.before, f"{m.file}:{m.line} is another line than in the log"
    lines[m.line - 1] = m.after + "\n"
    return "".join(lines)


def suffer(m: Mutant, tree: Path, build: list[str], suites: list[Suite], entry: dict) -> dict:
    """Builds the mutant and shows it the suites."""
    path = tree / m.file
    original = path.read_text()
    start = time.monotonic()
    try:
        path.write_text(changed(m, original))
        code, _ = run([*build, *TARGETS[:1]], tree, 900)
        entry.setdefault("seconds", {})["build"] = round(time.monotonic() - start)
        if code:
            return entry | {"end": "not built"}
        all_built = False
        for suite in suites:
            if suite.command[0] != PROGRAM and not all_built:
                all_built = True
                code, text = run([*build, *TARGETS], tree, 900)
                assert not code, text
            start = time.monotonic()
            how = fails(suite, tree)
            entry["seconds"][suite.name] = entry["seconds"].get(suite.name, 0) + round(time.monotonic() - start)
            if how:
                return entry | {"end": "killed", "by": suite.name, "how": how}
        return entry | {"end": "survived"}
    finally:
        path.write_text(original)


def revision_of(tree: Path) -> str:
    command = ["git", "-C", str(tree), "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def read_log(path: Path) -> list[dict]:
    return json.loads(path.read_text()) if path.exists() else []


def note(path: Path, entry: dict) -> None:
    """Puts an entry into the log, in the place of the one it had; words written there meanwhile stay."""
    log = read_log(path)
    at = next((k for k, old in enumerate(log) if old["key"] == entry["key"]), len(log))
    log[at : at + 1] = [{**entry, **{k: log[at][k] for k in ("why",) if at < len(log) and k in log[at]}}]
    path.write_text("[\n" + ",\n".join(" " + json.dumps(e) for e in log) + "\n]\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--round", type=int, default=1, choices=range(1, len(ROUNDS) + 1))
    parser.add_argument("--again", nargs="*", default=[], help="keys to run again in this round, whatever they were")
    parser.add_argument("--show", nargs="*", default=[], help="unit:FILTER, lit:FOLDER or python:FILE: only these")
    parser.add_argument("--unchecked", action="store_true", help="do not look whether the tree passes as it is")
    parser.add_argument("--build", default="cmake --build build/dev --target", help="the command that builds targets")
    parser.add_argument("--list", action="store_true", help="count what there is and stop")
    given = parser.parse_args()
    tree = given.tree.resolve()
    every = mutants_of(tree)
    if given.list:
        for rule in RULES:
            print(f"{sum(m.rule == rule.name for m in every):5} {rule.name}")
        print(f"{len(every):5} in all")
        return 0
    build, number = given.build.split(), given.round - 1
    shown = [
        {"unit": unit, "lit": lit, "python": pytest}[kind](kind, what)
        for kind, what in (text.split(":", 1) for text in given.show)
    ]
    if not given.unchecked:
        code, text = run([*build, *TARGETS], tree, 3600)
        for suite in () if code else shown or suites_of(number):
            code, text = (1, how) if (how := fails(suite, tree)) else (0, "")
            if code:
                break
        if code:
            print(f"the tree fails as it is: {text[-500:]}")
            return 1
    revision = revision_of(tree)
    log = {entry["key"]: entry for entry in read_log(given.log)}
    for m in draw(every, given.seed):
        old = log.get(m.key)
        if (
            number == 0
            and not given.again
            and sum(entry["end"] != "not built" for entry in log.values()) >= given.count
        ):
            break
        wanted = (
            old is None if number == 0 else old is not None and old["end"] == "survived" and old["rounds"] == number
        )
        if m.key in given.again:
            old = old and {k: v for k, v in old.items() if k not in ("end", "by", "how")}
        elif given.again or not wanted:
            continue
        entry = old or {
            "key": m.key,
            "revision": revision,
            "rule": m.rule,
            "file": m.file,
            "line": m.line,
            "before": m.before.strip(),
        }
        suites = shown or suites_for(m.file, number)
        log[m.key] = suffer(
            m,
            tree,
            build,
            suites,
            {**entry, "after": m.after.strip(), "rounds": max(given.round, entry.get("rounds", 1))},
        )
        note(given.log, log[m.key])
        end, by = log[m.key]["end"], log[m.key].get("by", "")
        print(f"{m.key} {end:9} {by:7} {m.file}:{m.line} {m.rule}: {m.after.strip()[:90]}", flush=True)
    ended = [entry for entry in log.values() if entry["end"] != "not built"]
    print(f"{sum(entry['end'] == 'killed' for entry in ended)} of {len(ended)} killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
