# SPDX-License-Identifier: Apache-2.0
"""Specs to parse: random derivations of grammar/elsewise.lark, and all that the tests and pages hold. It knows no rule
of the grammar by itself, so what is added there is drawn too.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import lark

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("ELSEWISE_BUILD_DIR", "build/dev")


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


def _words() -> list[str]:
    """What terminals are drawn from: names and numbers of every form, and every spelling of the language's tables."""
    found = re.findall(r"\S+", "a b c x y i n t w _k order iff lets nano e1 min clip f32 len border")
    found += [*re.findall(r"\S+", "0 1 7 00 1_000 0x1f 0X_F 007 0.5 .5 1. 1e3 1.5e-3 2E+4 08.5 1_0.0_1"), "\n"]
    for table in ("operators.def", "tokens.def"):
        text = (ROOT / "grammar" / table).read_text(encoding="utf-8")
        found += re.findall(r'"([^" ]+)"', text[text.rindex("#endif") :])
    return sorted(set(found))


WORDS = _words()


class Sentences:
    """Random derivations of the grammar's rules, as deep as asked and then as short as they can be."""

    def __init__(self) -> None:
        self.rules: dict[str, list[list[str]]] = {}
        for rule in GRAMMAR.rules:
            if rule.origin.name != "$root_start":
                self.rules.setdefault(rule.origin.name, []).append([symbol.name for symbol in rule.expansion])
        self.terminals: dict[str, list[str]] = {}
        for terminal in GRAMMAR.terminals:
            if terminal.name not in GRAMMAR.ignore_tokens:
                pattern = re.compile(terminal.pattern.to_regexp())
                self.terminals[terminal.name] = [word for word in WORDS if pattern.fullmatch(word)]
        assert all(self.terminals.values()), self.terminals
        self.least = dict.fromkeys(self.terminals, 0)  # levels that a symbol needs below it
        while len(self.least) < len(self.terminals) + len(self.rules):
            for name, expansions in self.rules.items():
                ready = [e for e in expansions if all(symbol in self.least for symbol in e)]
                if ready and name not in self.least:
                    self.least[name] = 1 + min(self.needs(e) for e in ready)

    def needs(self, expansion: list[str]) -> int:
        return max((self.least[symbol] for symbol in expansion), default=0)

    def draw(self, rng: random.Random, depth: int, symbol: str = "start") -> list[str]:
        if symbol in self.terminals:
            return [rng.choice(self.terminals[symbol])]
        expansions = self.rules[symbol]
        able = [e for e in expansions if self.needs(e) < depth]
        if not able or rng.random() < 0.75:
            least = min(map(self.needs, expansions))
            able = [e for e in expansions if self.needs(e) == least]
        return [word for part in rng.choice(able) for word in self.draw(rng, depth - 1, part)]


SENTENCES = Sentences()


def blanks(rng: random.Random, words: list[str]) -> str:
    """The words as somebody may have typed them: blanks, comments, and line ends where they separate nothing."""
    text = ""
    depth = 0
    for k, word in enumerate(words):
        depth += word in ("(", "[")
        depth -= word in (")", "]")
        text += word
        following = words[k + 1] if k + 1 < len(words) else ""
        joined = re.match(r"\w", word[-1:]) and re.match(r"[\w.]", following)
        free = depth > 0 or word in {",", ":", "and", "or", "not", "+", "-", "*", "==", "<"}
        if free and rng.random() < 0.1:
            text += rng.choice(["\n", "\n\n  ", "  # c\n", "\n # c\n\n"])
        elif word == "\n" and rng.random() < 0.3:
            text += rng.choice(["\n", "# a comment\n", "\n\n  # c\n", "  "])
        elif joined or word == "." or word.endswith(".") or following.startswith(".") or rng.random() < 0.6:
            text += rng.choice([" ", " ", "  ", "\t"])
        elif following and word[-1] + following[0] in {
            "**",
            "//",
            "<<",
            ">>",
            "<=",
            ">=",
            "==",
            "||",
            "&&",
            "!=",
            "->",
        }:
            text += " "
    if rng.random() < 0.2:
        text = rng.choice(["# c\n", "\n", "# c\n\n# d\n", " "]) + text
    return text + rng.choice(["", "", "\n", " # c", "\n# c\n"])


def corpus() -> list[str]:
    """Every spec that the tests and pages show, the wrong ones too."""
    found: set[str] = set()
    for path in (ROOT / "tests/lit").rglob("*.ew"):
        found.add(path.read_bytes().decode("utf-8", "replace"))
    pages = [*(ROOT / "tests").rglob("*.test"), *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    for path in [*pages, *(ROOT / "grammar").glob("*.md"), *(ROOT / "examples").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        found.update(re.findall(r"(?<!\S)-e '([^']*)'", text))
        found.update(re.findall(r'(?<!\S)-e "([^"$]*)"', text))
        found.update(a or b for a, b in re.findall(r'ew\.kernel\((?:"""(.*?)"""|"([^"]*)")\)', text, re.DOTALL))
    return sorted(found)


def programs(count: int, seed: int) -> list[str]:
    """The texts of random programs of the fuzzer."""
    command = [BUILD / "tests/ew_tests", "fuzz", f"--texts={count}", f"--seed={seed}"]
    said = subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.decode()
    texts = said.split("\0")
    assert len(texts) == count + 1 and not texts[-1]
    return texts[:-1]


def mutated(rng: random.Random, text: str) -> str:
    """A spec with a few words or characters left out, doubled, exchanged or put in."""
    parts = re.findall(r"\w+|\s+|\W", text) if rng.random() < 0.7 else list(text)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(parts) + 1)
        kind = rng.random()
        if kind < 0.3:
            parts[at : at + 1] = []
        elif kind < 0.5:
            parts[at:at] = parts[at : at + 1]
        elif kind < 0.7:
            parts[at : at + 1] = [rng.choice(WORDS)]
        elif kind < 0.9:
            parts[at:at] = [rng.choice([" ", *WORDS])]
        else:
            parts[at : at + 2] = parts[at : at + 2][::-1]
    return "".join(parts)
