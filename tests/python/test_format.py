# SPDX-License-Identifier: Apache-2.0
"""ew.format(): it changes no meaning, and nothing that it has formatted."""

from __future__ import annotations

import random
import re
import warnings

import elsewise as ew
import pytest
from sentences import SENTENCES, blanks, corpus, mutated, programs
from specs import RULES


def tree(spec: str) -> list[str]:
    """The syntax tree without the places of its parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ew.SpecWarning)
        return re.sub(r"^\d+:\d+ ", "", ew.kernel(spec).emit("ast"), flags=re.MULTILINE).splitlines()


def words(spec: str) -> list[str]:
    """The tokens of a spec in one spelling, separators as one, and its comments."""
    names = {"||": "or", "&&": "and", "!": "not"}
    found = [
        names.get(word, word)
        for word in re.findall(
            r"#[^\n]*|[A-Za-z_]\w*|(?:\d[\w.]*[eE][+-]\d\w*)|\.?\d(?:[\w]|\.(?!\.))*|\.\.|[<>=!]=|<<|>>|\*\*|//|\|\||&&|\S",
            spec.replace("\ufeff", ""),
        )
    ]
    found = [word.rstrip() for word in found if word != ";"]
    return [word for k, word in enumerate(found) if word != ":" or without_comments(found[:k])[-1:] != ["else"]]


def without_comments(found: list[str]) -> list[str]:
    return [word for word in found if not word.startswith("#")]


def holds(spec: str) -> str | None:
    """Formats a spec that parses; None for another one."""
    try:
        text = ew.format(spec)
    except ew.SpecError:
        return None
    assert words(text) == words(spec), f"{spec!r}\n{text!r}"
    assert ew.format(text) == text, f"{spec!r}\n{text!r}"
    assert text.endswith("\n") == ("\n" in spec)
    lines = text.splitlines()
    assert all(line == line.rstrip() for line in lines) and "\t" not in re.sub("#.*", "", text)
    return text


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("i<n/4:x*.5;i>=n - n/4&&!keep : x;else:0", "i < n/4: x*.5; i >= n-n/4 and not keep: x; else 0"),
        ("x;", "x"),
        ("x\n", "x\n"),
        ("x # why ", "x    # why"),
        ("# why\nx", "# why\nx\n"),
        ("[b,..,t];;x", "[b, .., t]; x"),
        ("[\n b,\n t]\nx", "[b, t]\nx\n"),
        ("[ # rows\n b]\nx", "[    # rows\n    b]\nx\n"),
        ("let w=2*x+1; w", "let w = 2*x + 1; w"),
        ("i<3:0\ni  <  n/2 :x\nelse:-x\n", "i < 3:   0\ni < n/2: x\nelse     -x\n"),
        ("i<3:0\n\n\n\ni<n/2:x\nelse -x", "i < 3: 0\n\ni < n/2: x\nelse     -x\n"),
        ("i<3:0\n# c\nelse x", "i < 3: 0\n# c\nelse x\n"),
        ("i<3: # c\n0\nelse x;", "i < 3:    # c\n    0\nelse x\n"),
        ("else # c\n : x", "else    # c\n    x\n"),
        ("min(x,\n    y)", "min(x,\n    y)\n"),
        ("x+\n# c\n\n\ny", "x +\n    # c\n    y\n"),
        ("1+-x; ", "1 + -x"),
        ("a*b", "a*b"),
        ("a *( b+1 )", "a * (b+1)"),
        ("a*(b)+1", "a*(b) + 1"),
        ("x//-2", "x // -2"),
        ("(2*x+1)/3", "(2*x + 1) / 3"),
        ("f(i-1,2*i-1)", "f(i-1, 2*i - 1)"),
        ("x<<1|y>>2&z^w", "x << 1 | y >> 2 & z ^ w"),
        ("x ** -2+~y", "x**-2 + ~y"),
        ("! a and not(b)", "not a and not (b)"),
        ("a<b-1<=c", "a < b-1 <= c"),
        ("x\r\n", "x\n"),
        ("\ufeffx", "x"),
    ],
)
def test_style(spec: str, text: str) -> None:
    assert ew.format(spec) == text
    assert holds(spec) == text


def test_long_guards_do_not_push_their_neighbours() -> None:
    guard = " and ".join(["i < n/2"] * 5)
    assert ew.format(f"{guard}: 0\nelse x") == f"{guard}: 0\nelse x\n"


def test_trees_stay() -> None:
    kept = 0
    for spec in [*corpus(), *programs(1000, seed=31), *(rule.spec for rule in RULES.values())]:
        text = holds(spec)
        try:
            before = tree(spec)
        except (ew.SpecError, TypeError, ValueError):
            continue
        assert text is not None and tree(text) == before, spec
        kept += 1
    assert kept > 700


def test_derivations_of_the_grammar() -> None:
    rng = random.Random(41)
    formatted = 0
    for _ in range(3000):
        spec = blanks(rng, SENTENCES.draw(rng, rng.randint(12, 30)))
        formatted += holds(mutated(rng, spec) if rng.random() < 0.2 else spec) is not None
    assert formatted > 1500


def test_the_cases_are_written_in_the_style() -> None:
    for name, rule in RULES.items():
        text = rule.spec.strip("\n")
        assert ew.format(text).strip("\n") == text, name


def test_what_does_not_parse_is_an_error() -> None:
    with pytest.raises(ew.SpecError, match="has no value on its right"):
        ew.format("x +")
    with pytest.raises(TypeError, match="a spec is a str"):
        ew.format(3)  # type: ignore[arg-type]
    assert ew.format("nosuch( 1 )") == "nosuch(1)"
