# SPDX-License-Identifier: Apache-2.0
"""Rules with random mistakes: whatever is typed, the answer is a kernel or an error whose message is not empty and
whose caret stands in the text. It takes no interest in which error that is."""

from __future__ import annotations

import random
import re
import time
import warnings

import elsewise as ew
import pytest

VALID = [
    "i<n/4: x*0.5; i>=n-n/4: x*2; else x",
    "isnan(x): 0; x > hi: hi; else clip(x, lo, hi)",
    "where(i % 2 == 0 and not (x < 0), x**2, -x)",
    "a <= i < b: x + y*(1 - float(i)/n)\nelse\n  x  # the rest",
    "i in [1, 3]: x.abs() if c else np.sqrt(x); otherwise: 0",
    "[b, t]\nlet w = float(t)/len(t)\nt < len(t)/2: x*w; else x",
    "if i > 3 & i < 5 then x[i] ? 1 : 2 else return 0x1f >> 2",
    "lambda x: pow(x, 2) ≤ 3 ? “a” : x.shape[0]",
]
TOKEN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|[0-9.]+|\s+|[<>=!&|*/]{1,2}|.", re.DOTALL)
JUNK = [
    *"()[]{}:;,.?=<>!&|^~+-*/%#\\\"'`@$ \t\n", "<=", "**", "//", "..", "->", "&&", "else", "if", "elif", "let", "in",
    "and", "or", "not", "is", "return", "then", "lambda", "AND", "between", "otherwise", "true", "nan", "1e999", "0x",
    "1.2.3", "9" * 40, "i", "n", "x", "foo", "np.", ".abs()", "x[i]", "(((", ")))", "é", "日", "\u00a0", "\u202e",
    "\x00", "\x1b", "\u0301", "🙂", "/*", "*/", "range(", "sum(x)", "out[i] =", "≤", "²",
]  # fmt: skip


def mutate(rng: random.Random) -> str:
    tokens = TOKEN.findall(rng.choice(VALID))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(tokens) + 1)
        kind = rng.random()
        if kind < 0.3 and tokens:
            del tokens[at : at + rng.choice((1, 1, 2, 5))]
        elif kind < 0.6:
            tokens.insert(at, rng.choice(JUNK))
        elif kind < 0.8:
            tokens[at : at + 1] = [rng.choice(JUNK)]
        elif tokens:
            other = TOKEN.findall(rng.choice(VALID))
            tokens[at : at + 2] = other[rng.randrange(len(other)) :][:3]
    return "".join(tokens)


def judge(spec: str) -> str:
    """Compiles a spec; the code of its first error, or "" if it is right."""
    try:
        ew.kernel(spec)
        return ""
    except ew.SpecError as error:
        found = error.diagnostics
    assert found and any(d.error for d in found)
    lines = spec.split("\n")
    size = len(spec.encode())
    for d in found:
        assert d.message.strip() and d.code, d
        assert "{" not in re.sub("`[^`]*`", "", d.message), d
        assert 1 <= d.line <= len(lines) and 1 <= d.column <= len(lines[d.line - 1]) + 1, d
        assert (d.end_line, d.end_column) >= (d.line, d.column), d
        head, _, caret = d.rendered.split("\n")[:3]
        assert head.endswith(f"[{d.code}]") and re.fullmatch(r"[ \t]*\^[~\t]*", caret), d.rendered
        for fixit in d.fixits:
            assert 0 <= fixit.begin <= fixit.end <= size and fixit.label
            mended = fixit.apply(spec)
            assert mended != spec, d
    return str(next(d.code for d in found if d.error))


@pytest.mark.parametrize("seed", range(5))
def test_mutations(seed: int) -> None:
    rng = random.Random(seed)
    begin, seen = time.perf_counter(), set()
    slowest = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ew.SpecWarning)
        for _ in range(1000):
            spec = mutate(rng)
            start = time.perf_counter()
            try:
                seen.add(judge(spec))
            except Exception as error:
                raise AssertionError(f"{spec!r}") from error
            slowest = max(slowest, time.perf_counter() - start)
    assert len(seen) > 25, seen  # the mutations reach far
    assert slowest < 2 and time.perf_counter() - begin < 60


@pytest.mark.filterwarnings("ignore::elsewise.SpecWarning")
def test_a_mended_mistake_is_no_worse() -> None:
    """Fix-its of random mistakes, applied one after the other, come to an end."""
    rng = random.Random(7)
    for _ in range(300):
        spec = mutate(rng)
        for _ in range(40):
            try:
                ew.kernel(spec)
                break
            except ew.SpecError as error:
                fixits = [d.fixits[0] for d in error.diagnostics if d.error and d.fixits]
            if not fixits:
                break
            spec = fixits[0].apply(spec)
        else:
            raise AssertionError(f"no end of fix-its: {spec!r}")
