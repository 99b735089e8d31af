# SPDX-License-Identifier: Apache-2.0
"""The parser against two others: Python's own for trees, and Lark reading grammar/elsewise.lark for what is a spec.

Neither shares code with the compiler. Messages and carets are tests/lit/errors' business.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

import elsewise as ew
import lark
import pytest

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "and", ast.Or: "or", ast.Not: "not", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
}  # fmt: skip


def codes(spec: str) -> list[str]:
    """The codes of what is wrong with a spec."""
    try:
        ew.kernel(spec)
    except ew.SpecError as error:
        return [diagnostic.code for diagnostic in error.diagnostics]
    return []


def tree(node: ast.expr) -> str:
    """Python's tree of an expression, written as `emit('ast')` writes ours."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.UnaryOp):
        return f"({OPERATORS[type(node.op)]} {tree(node.operand)})"
    if isinstance(node, ast.BinOp):
        return f"({OPERATORS[type(node.op)]} {tree(node.left)} {tree(node.right)})"
    if isinstance(node, ast.BoolOp):
        parts = [tree(value) for value in node.values]
        operator = OPERATORS[type(node.op)]
    elif isinstance(node, ast.Compare):
        operands = [tree(value) for value in (node.left, *node.comparators)]
        parts = [f"({OPERATORS[type(op)]} {a} {b})" for op, a, b in zip(node.ops, operands, operands[1:])]
        operator = "and"
    else:
        raise AssertionError(ast.dump(node))
    text = parts[0]
    for part in parts[1:]:
        text = f"({operator} {text} {part})"
    return text


def number(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice("abcdefgh")
    kind = rng.random()
    if kind < 0.15:
        return f"({number(rng, depth - 1)})"
    if kind < 0.3:
        return rng.choice("-+") + number(rng, depth - 1)
    operator = rng.choice(["+", "-", "*", "/", "//", "%", "**"])
    return f"{number(rng, depth - 1)} {operator} {number(rng, depth - 1)}"


def bits(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice("abcdefgh")
    kind = rng.random()
    if kind < 0.15:
        return f"({bits(rng, depth - 1)})"
    if kind < 0.25:
        return "~" + bits(rng, depth - 1)
    operator = rng.choice(["&", "|", "^", "<<", ">>", "+", "*"])
    return f"{bits(rng, depth - 1)} {operator} {bits(rng, depth - 1)}"


def condition(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        operators = [rng.choice(["<", "<=", ">", ">=", "==", "!="]) for _ in range(rng.choice([1, 1, 2, 3]))]
        return number(rng, 2) + "".join(f" {operator} {number(rng, 2)}" for operator in operators)
    if kind < 0.4:
        return f"({condition(rng, depth - 1)})"
    if kind < 0.55:
        return "not " + condition(rng, depth - 1)
    return f"{condition(rng, depth - 1)} {rng.choice(['and', 'or'])} {condition(rng, depth - 1)}"


@pytest.mark.parametrize("make", [number, bits, condition])
def test_trees_are_pythons(make) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(7)
    for _ in range(400):
        text = make(rng, 4)
        assert ew.kernel(text).emit("ast") == f"1:1 => {tree(ast.parse(text, mode='eval').body)}\n", text


class Newlines:
    """Drops the newlines that separate nothing: see the head of elsewise.lark."""

    always_accept = ("_NEWLINE",)
    behind = re.compile(
        r"COLON|COMMA|EQUAL|ELSE|OR|AND|NOT|COMPARE|SHIFT|SIGN|TIMES|POWER|VBAR|CIRCUMFLEX|AMPERSAND|TILDE"
    )

    def process(self, stream: Iterator[lark.Token]) -> Iterator[lark.Token]:
        tokens = list(stream)
        hidden, opened = [0] * (len(tokens) + 1), []
        for k, token in enumerate(tokens):
            if token.type == "SEMICOLON":
                opened = []
            elif token.type in ("LPAR", "LSQB"):
                opened.append(k)
            elif token.type in ("RPAR", "RSQB"):
                opener = "LPAR" if token.type == "RPAR" else "LSQB"
                while opened and tokens[opened[-1]].type != opener:
                    opened.pop()
                if opened:
                    begin = opened.pop()
                    hidden[begin] += 1
                    hidden[k] -= 1
        depth, last = 0, ""
        for k, token in enumerate(tokens):
            depth += hidden[k]
            if token.type == "_NEWLINE" and (depth or self.behind.fullmatch(last)):
                continue
            last = token.type
            yield token


GRAMMAR = lark.Lark(
    (ROOT / "grammar/elsewise.lark").read_text(encoding="utf-8"), parser="lalr", lexer="basic", postlex=Newlines()
)


def in_grammar(spec: str) -> bool:
    try:
        GRAMMAR.parse(spec)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


def grammatical_codes() -> set[str]:
    """Slugs of the catalogue's groups for lexing and parsing."""
    catalogue = (ROOT / "compiler/diagnostics/diagnostics.def").read_text(encoding="utf-8")
    part = catalogue[catalogue.index("// Lexing") : catalogue.index("// Names")]
    return set(re.findall(r'^DIAGNOSTIC\(\w+, \w+, "([^"]+)"', part, re.MULTILINE))


# Refused for what a name means, not for the form.
MEANING = {"xor-of-literals", "duplicate-axis", "let-hides", "used-before-let", "unused-let", "indexed-let"}
WORD = re.compile(r"# c\n|\n|min\(x, y\)|let v =|\S+")
WORDS = WORD.findall(
    "i n x min(x, y) clip( f32( ( ) ( ) : : ; ; \n , < <= == + - ** * / // % & | ^ ~ << not and or ! && || "
    "else else 1 1 0x1f 2.5 .5 1e3 007 1_0 true nan # c\n if let x y x let w = = [b,t] [b ] [ .. .., "
    "x[ s[ s[i] x[.., ] ]"
)
GOOD = [
    WORD.findall("i < n : x * 0.5 ; not ( i == 3 or x > 2 ) : ( x & y ) ; \n else - x ** 2"),
    WORD.findall("[ b , .. , t ] \n let v = x * 2 ; t < 3 : v ; let w = \n v + v ; else w ** 2"),
    WORD.findall("i < n : x[ i - 1 ] * s[ .. , i ] ; else s[ i // 2 , .. , x ] + s[ .. ]"),
    WORD.findall("[ t , ] ; let v = t ; x * v ; let w = 1"),
]


def soup(rng: random.Random) -> str:
    """Some words, or a good spec with a few of its words changed."""
    if rng.random() < 0.5:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 9)))
    words = list(rng.choice(GOOD))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(words))
        words[at : at + rng.randint(0, 2)] = [rng.choice(WORDS) for _ in range(rng.randint(0, 2))]
    return " ".join(words)


def test_the_formal_grammar_accepts_the_same() -> None:
    rng = random.Random(11)
    wrong = grammatical_codes()
    accepted = 0
    for _ in range(6000):
        text = soup(rng)
        reported = {code for code in codes(text) if code in wrong}
        if reported and reported <= MEANING:
            continue
        assert in_grammar(text) == (not reported), (text, reported)
        accepted += not reported
    assert 300 < accepted < 5000


@pytest.mark.parametrize(
    "spec",
    [
        "i<n/4: x*0.5; i>=n-n/4: x*2; else x",
        "\n\ni < 3:\n  x +\n\n  1   # c\n;\nelse:\n  min(x,\n  y)\n\n",
        "a <= i < b != c and not d: -x**-2 ** y; else (x | y) == 3",
        "else x",
        "x\r\n",
        "1. + .5 + 1e-3 + 0x1F + 1_000 + 08.5 + 0e0",
        "[b, .., t]\nlet w = x*2; t < 3: w\nlet v =\n  w + 1\nelse v",
        "[\n b,\n t\n]\nx",
        "[]; x",
        "[..]\nlet v = x; v; let w = 2",
        "x[i-1] + lut[int(x)] + w[(i)]",
        "[b, t]; t < lens[b]: x[.., t // 2] + s[b, .., t] * s[..]; else x[b, ..]",
        "s [\n i,\n i\n]",
    ],
)
def test_specs_are_in_both(spec: str) -> None:
    assert in_grammar(spec)
    assert not set(codes(spec)) & grammatical_codes()


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "x; y",
        "else x; y",
        "i<3: x; y",
        "x y",
        "min(x,)",
        "(x",
        "i<3:",
        "x < 1 & 2",
        "2x",
        "0x",
        "017",
        "[t] x",
        "[t]",
        "[t,]; x",
        "[.., ..]; x",
        "x; [t]",
        "let w; x",
        "let w == 2; x",
        "let w: 2; x",
        "else x; let w = 2",
        "x[]",
        "x[i",
        "x[i,]",
        "x[,i]",
        "x[1:3]",
        "x[i][0]",
        "x[(i, i)]",
        "x[.., i, ..]",
        "(x)[i]",
        "min(x, 1)[i]",
        "x\n[i]",
    ],
)
def test_what_is_in_neither(spec: str) -> None:
    assert not in_grammar(spec)
    assert set(codes(spec)) & grammatical_codes()
