# SPDX-License-Identifier: Apache-2.0
"""The parser against two others: Python's own for trees, and Lark reading grammar/elsewise.lark for what is a spec.

Neither shares code with the compiler. Messages and carets are tests/lit/errors' business.
"""

from __future__ import annotations

import ast
import random
import re

import elsewise as ew
import pytest
from sentences import SENTENCES, blanks, corpus, in_grammar, mutated, programs

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "and", ast.Or: "or", ast.Not: "not", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
}  # fmt: skip


def codes(spec: str) -> set[str]:
    """The codes of what is wrong with a spec's form: what the lexer and the parser report."""
    try:
        ew.format(spec)
    except ew.SpecError as error:
        return {diagnostic.code for diagnostic in error.diagnostics}
    return set()


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


# Refused for what a name or a number means, or for how much there is, not for the form.
MEANING = {
    "xor-of-literals", "duplicate-axis", "let-hides", "used-before-let", "foreign-word", "own-element", "lone-number",
    "operator-function", "too-deep", "too-complex", "too-many-axes", "too-many-pieces", "integer-too-large",
    "float-too-large", "indexed-let",
}  # fmt: skip
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
    accepted = 0
    for _ in range(6000):
        text = soup(rng)
        takes = grammatical(text)
        assert takes is None or in_grammar(text) == takes, (text, codes(text))
        accepted += bool(takes)
    assert 300 < accepted < 5000


def grammatical(spec: str) -> bool | None:
    """Whether the parser takes the form of a spec; None where it refuses only what a name or number means there."""
    reported = codes(spec)
    return None if reported and reported <= MEANING else not reported


def test_what_the_grammar_derives_parses() -> None:
    rng = random.Random(3)
    told = 0
    for _ in range(3000):
        text = " ".join(SENTENCES.draw(rng, rng.randint(12, 34)))
        assert in_grammar(text), text
        takes = grammatical(text)
        assert takes is not False, (text, codes(text))
        told += takes is None
    assert told < 1500


def test_however_it_is_typed_both_take_it_or_neither() -> None:
    rng = random.Random(5)
    for _ in range(2000):
        text = blanks(rng, SENTENCES.draw(rng, rng.randint(12, 30)))
        takes = grammatical(text)
        assert takes is None or in_grammar(text) == takes, (text, codes(text))


def test_specs_of_tests_and_pages_are_in_both_or_neither() -> None:
    specs = corpus()
    accepted = 0
    for text in specs:
        takes = grammatical(text)
        assert takes is None or in_grammar(text) == takes, (text, codes(text))
        accepted += bool(takes)
    assert accepted > 150 and len(specs) - accepted > 100


def test_random_programs_are_in_the_grammar() -> None:
    for text in programs(2000, seed=17):
        assert grammatical(text) is not False and in_grammar(text), (text, codes(text))


def test_mutations_are_in_both_or_neither() -> None:
    rng = random.Random(9)
    good = [text for text in corpus() if grammatical(text)] + programs(300, seed=23)
    accepted = count = 0
    for _ in range(4000):
        text = rng.choice(good) if rng.random() < 0.6 else " ".join(SENTENCES.draw(rng, rng.randint(12, 26)))
        text = mutated(rng, text)
        takes = grammatical(text)
        if takes is not None:
            assert in_grammar(text) == takes, (text, codes(text))
            accepted, count = accepted + takes, count + 1
    assert 400 < accepted < count - 400


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
        "i < n: x\n",
        "i < n: x; let v = 2;\n;\n",
        "let v =!a; v",
    ],
)
def test_specs_are_in_both(spec: str) -> None:
    assert in_grammar(spec)
    assert not codes(spec)


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
    assert codes(spec)
