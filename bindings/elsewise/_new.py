# SPDX-License-Identifier: Apache-2.0
"""`python -m elsewise new`: a file to start from, with a rule, a call, its check against plain torch and its time. What
its arguments are is guessed from how the rule uses them and found by trying; it parses no rule, and overwrites no
file."""

from __future__ import annotations

import builtins
import contextlib
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Union

import numpy as np

from ._errors import SpecError
from ._kernel import Kernel, kernel

LENGTHS = (  # of a million elements, by the number of axes
    (1_000_000,),
    (500, 2_000),
    (50, 100, 200),
    (10, 20, 50, 100),
    (5, 10, 20, 25, 40),
    (10,) * 6,
)
SMALL = 8  # the longest axis of a first trial
ENTRIES = 256  # of a table whose index holds no position
OWN = {  # names of the file itself
    *("check", "copy", "copy_us", "ew", "first", "last", "microseconds", "np"),
    *("random", "result", "rule", "rule_us", "time", "torch"),
}
COUNTS = ("3", "0.5", "True")
FACTORS = ("0.5", "3", "True")
COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}

Tree = Union[str, list["Tree"]]  # an expression of `emit("ast")`


class Tensor(NamedTuple):
    """A tensor argument, and what makes it in torch and in NumPy, where `shape` is the domain's."""

    what: str
    torch: str
    numpy: str


def tensors(shape: str) -> tuple[Tensor, ...]:
    """Of this shape, the likely one first."""
    return (
        Tensor("float32", f"torch.randn({shape}, device=device)", f"random.standard_normal({shape}, np.float32)"),
        Tensor("int64", f"torch.randint(-100, 100, {shape}, device=device)", f"random.integers(-100, 100, {shape})"),
        Tensor("bool", f"torch.rand({shape}, device=device) < 0.5", f"random.random({shape}) < 0.5"),
    )


def whole_numbers(end: str, shape: str) -> Tensor:
    """From 0 to `end`, exclusive."""
    return Tensor("int64", f"torch.randint(0, {end}, {shape}, device=device)", f"random.integers(0, {end}, {shape})")


def new(rule: str, path: Path | None) -> int:
    """Writes the file, or prints it without a path. 1: the rule is wrong; 2: the file is there already."""
    try:
        made = kernel(rule)
    except (SpecError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    try:
        start = find(made)
    except TRIED as error:
        print(f"no arguments were found that this rule takes; the first that were tried: {error}", file=sys.stderr)
        return 1
    text = render(rule, start)
    if path is None:
        print(text, end="")
        return 0
    try:
        with path.open("x") as file:
            file.write(text)
    except FileExistsError:
        print(f"{path} exists, and is left as it is: give another --out", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{path} cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    print(f"wrote {path}: python {path}")
    return 0


CALLED = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError)  # by which a call is refused
TRIED = (SpecError, *CALLED)  # and by which the kinds of its arguments are


class Start(NamedTuple):
    """A domain, and arguments with which the rule runs there. shaped: they have its shape, which need not be given;
    in_place: it may be written into one of them."""

    shape: tuple[int, ...]
    values: dict[str, Tensor | str]
    shaped: bool
    in_place: bool


def find(rule: Kernel) -> Start:
    """A shape, and for each argument a tensor or a number, with which the rule runs. Raises the first attempt's error
    if there are none."""
    uses = _Uses(rule)
    first: Exception | None = None
    for shape, values in uses.attempts():
        in_place = any(isinstance(value, Tensor) for name, value in values.items() if name not in uses.reads)
        try:
            return _reaching(rule, _started(rule, Start(shape, values, True, in_place)))
        except TRIED as error:
            first = first or error
    assert first is not None
    raise first


def _started(rule: Kernel, start: Start) -> Start:
    """The same, with its shape given where that is needed. Raises what a call raises."""
    if any(isinstance(value, Tensor) for value in start.values.values()):
        with contextlib.suppress(*CALLED):
            if _runs(rule, start):
                return start
    start = start._replace(shaped=False)
    _runs(rule, start)
    return start


def _runs(rule: Kernel, start: Start) -> bool:
    """Calls the rule on few elements and on all, since what a read reaches depends on lengths. True if the results have
    the domain's shape."""
    shapes = [tuple(min(length, most) for length in start.shape) for most in (SMALL, max(start.shape))]
    return all(rule(**_arguments(start, shape)).shape == shape for shape in shapes)


def _arguments(start: Start, shape: tuple[int, ...]) -> dict[str, Any]:
    names = {"random": np.random.default_rng(0), "np": np, "shape": shape}
    values = {
        name: eval(value.numpy if isinstance(value, Tensor) else value, names) for name, value in start.values.items()
    }
    return values if start.shaped else {**values, "shape": shape}


def _reaching(rule: Kernel, start: Start) -> Start:
    """The same with the first numbers of which most pieces have positions."""
    numbers = [name for name, value in start.values.items() if isinstance(value, str)]
    best, most = start, 0
    for values in [
        tuple(start.values[name] for name in numbers),
        *itertools.islice(itertools.product(COUNTS, repeat=len(numbers)), 30),
    ]:
        other = start._replace(values={**start.values, **dict(zip(numbers, values))})
        with contextlib.suppress(*TRIED):
            _runs(rule, other)
            pieces = rule.explain(**_arguments(other, start.shape), exact=True).pieces
            reached = sum(bool(piece.positions) for piece in pieces)
            if reached > most:
                best, most = other, reached
            if reached == len(pieces):
                break
    return best


class _Uses:
    """How a rule uses its arguments, by its syntax."""

    def __init__(self, rule: Kernel) -> None:
        self.arguments = rule.arguments
        self.axes: list[str] = []
        self.guards: list[Tree] = []
        self.values: list[Tree] = []
        lets: dict[str, Tree] = {}
        for line in str(rule.emit("ast")).splitlines():
            text = line.partition(" ")[2]
            if text.startswith("["):
                self.axes = re.findall(r"[^\s,\[\]]+", text)
            elif text.startswith("let "):
                name, _, value = text[len("let ") :].partition(" = ")
                lets[name] = _replaced(_tree(value), lets)
            elif "=> " in text:
                guard, _, value = text.partition("=> ")
                self.guards += [_replaced(_tree(guard), lets)] if guard.strip() not in ("", "else") else []
                self.values.append(_replaced(_tree(value), lets))
        nodes = [node for tree in (*self.guards, *self.values) for node in _nodes(tree)]
        self.reads: dict[str, list[list[Tree]]] = {}  # of each argument, the indices of each read
        self.elementwise: set[str] = set()
        asked: set[str] = set()
        for node in nodes:
            if isinstance(node, str):
                continue
            if node[0] == "read":
                self.reads.setdefault(str(node[1]), []).append(node[2:])
            operands = {str(part) for part in node[2 if node[0] == "read" else 1 :] if part in self.arguments}
            if _may_be_length(node):
                asked |= operands
            else:
                self.elementwise |= operands
        self.elementwise |= {str(tree) for tree in (*self.guards, *self.values) if tree in self.arguments}
        self.comparisons = [node for node in nodes if isinstance(node, list) and node[0] in COMPARISONS]
        self.elementwise |= asked - self.reads.keys()
        indices = [index for reads in self.reads.values() for read in reads for index in read]
        self.whole = {word for index in indices for word in _words(index)}
        self.main = self._main()

    def attempts(self) -> Iterator[tuple[tuple[int, ...], dict[str, Tensor | str]]]:
        """Likely ones first: the main input is a tensor, what is read at indices too, and the others are numbers."""
        for shape in LENGTHS:
            if self.has_rank(len(shape)):
                choices = [self.choices(name, len(shape)) for name in self.arguments]
                for values in itertools.islice(itertools.product(*choices), 500):
                    yield shape, dict(zip(self.arguments, values))

    def has_rank(self, rank: int) -> bool:
        named = len(self.axes) - (".." in self.axes)
        return not self.axes or rank == named or (".." in self.axes and rank > named)

    def choices(self, name: str, rank: int) -> tuple[Tensor | str, ...]:
        """What an argument may be, likely ones first."""
        if name in self.elementwise:
            if name == self.main or name in self.reads:
                return (*tensors("shape"), *FACTORS)
            if name in self.guards:  # alone: a mask
                return (*tensors("shape")[::-1], *COUNTS)
            if name in self.whole:
                return (COUNTS[0], *tensors("shape"))
            return (*(COUNTS if self._counts(name) else FACTORS), *tensors("shape"))
        shapes = [*self._shapes(name, rank), "shape"] if name in self.reads else ["shape"]
        return tuple(tensor for shape in shapes for tensor in self._tables(name, shape, rank))

    def _main(self) -> str | None:
        """The argument that the result is made of: what a piece gives as it is, or what the last value names first if
        no position is in that."""
        if "x" in self.arguments:
            return "x"
        for value in reversed(self.values):
            if isinstance(value, str) and value in self.elementwise:
                return value
        last = _words(_without_indices(self.values[-1]))
        return None if self._positions(last) else next((word for word in last if word in self.elementwise), None)

    def _positions(self, words: Sequence[str]) -> list[str]:
        """The positions among some words; `i` is one unless an axis has its name, and so is `n`."""
        return [word for word in dict.fromkeys(words) if word in ("i", "n", *self.axes)]

    def _counts(self, name: str) -> bool:
        """True if it is compared with positions or the like."""
        return any(name in _words(node) and self.main not in _words(node) for node in self.comparisons)

    def _shapes(self, name: str, rank: int) -> list[str]:
        """Of a tensor that is read at indices: as long as the positions in its indices, then longer."""
        reads = self.reads[name]
        if any(".." in read for read in reads):
            return ["shape"]
        found = []
        axes = [[read[k] for read in reads if k < len(read)] for k in range(len(reads[0]))]
        for more in range(3):
            lengths = [self._length(axis, rank, more, ENTRIES if len(axes) == 1 else SMALL) for axis in axes]
            text = f"({', '.join(lengths)}{',' if len(lengths) == 1 else ''})"
            if text not in found:
                found.append(text)
        return found

    def _length(self, indices: Sequence[Tree], rank: int, more: int = 0, entries: int = ENTRIES) -> str:
        """For an axis that is read at these: 0: as long as their positions; 1: with what is added to them; 2: with what
        they are multiplied by. Without positions at least `entries`."""
        words = [word for index in indices for word in _words(index)]
        positions = self._positions(words)
        if not positions:
            return str(max([entries, *(number + 1 for number in map(_whole, words))]))
        base = " + ".join(dict.fromkeys(self._extent(position, rank) for position in positions))
        if more == 2 and "*" in words and len(positions) > 1:
            return "int(np.prod(shape))"
        if more == 2 and "*" in words:
            factor = max(int(COUNTS[0]), *map(_whole, words))
            base = f"{factor}*({base})" if " " in base else f"{factor}*{base}"
        parameters = sum(word in self.elementwise for word in words) * int(COUNTS[0])
        added = parameters + max(sum(map(_whole, _words(index))) for index in indices)
        return f"{base} + {added}" if more and added else base

    def _extent(self, position: str, rank: int) -> str:
        """The length of a named axis, or of all."""
        if position not in self.axes:
            return "shape[0]" if rank == 1 else "int(np.prod(shape))"
        place = self.axes.index(position)
        return f"shape[{place if '..' not in self.axes[:place] else place - len(self.axes)}]"

    def _tables(self, name: str, shape: str, rank: int) -> tuple[Tensor, ...]:
        """Contents of a tensor that is read at indices: whole numbers where they are bounds of positions or indices
        themselves."""
        for node in self.comparisons:
            for side, other in ((node[1], node[2]), (node[2], node[1])):
                if any(isinstance(part, list) and part[:2] == ["read", name] for part in _nodes(side)):
                    for position in self._positions(_words(other)):
                        return (whole_numbers(f"{self._extent(position, rank)} + 1", shape), *tensors(shape))
        for reads in self.reads.values():
            for read in reads:
                for index in read:
                    if any(isinstance(part, list) and part[:2] == ["read", name] for part in _nodes(index)):
                        inside = [word for word in _words(index) if word not in ("i", "n", *self.axes)]
                        return (whole_numbers(self._length(inside, rank), shape), *tensors(shape))
        return tensors(shape)


def _may_be_length(node: list[Tree]) -> bool:
    """True for a function of one name, or of a name and a number: of its element or of the lengths of the whole."""
    numbers = [part for part in node[2:] if isinstance(part, str) and part.isdecimal()]
    return str(node[0]).isidentifier() and len(node) <= 3 and len(numbers) == len(node) - 2


def _whole(word: str) -> int:
    return int(word) if word.isdecimal() else 0


def _tree(text: str) -> Tree:
    """An expression: a word, or a list of an operator and its operands."""
    stack: list[list[Tree]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    return stack[0][0]


def _replaced(tree: Tree, lets: dict[str, Tree]) -> Tree:
    if isinstance(tree, str):
        return lets.get(tree, tree)
    return [tree[0], *(_replaced(part, lets) for part in tree[1:])]


def _without_indices(tree: Tree) -> Tree:
    if isinstance(tree, str):
        return tree
    return [_without_indices(part) for part in (tree[:2] if tree[0] == "read" else tree)]


def _nodes(tree: Tree) -> Iterator[Tree]:
    yield tree
    for part in tree if isinstance(tree, list) else ():
        yield from _nodes(part)


def _words(tree: Tree) -> list[str]:
    return [node for node in _nodes(tree) if isinstance(node, str)]


def render(rule: str, start: Start) -> str:
    """The file's text."""
    shape, values, shaped, in_place = start
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    numbers = {name: value for name, value in values.items() if isinstance(value, str)}
    main = "x" if "x" in tensors else next(iter(tensors), None) if len(values) == 1 else None
    arguments = [
        _variable(name) if name == main else f"{name}={_variable(name)}"
        for name in sorted((*tensors, *numbers), key=lambda name: name != main)
    ]
    new = ", ".join([*arguments, *([] if shaped else ["shape=shape"]), *([] if tensors else ["device=device"])])
    into = ", ".join([*arguments, "out=result"])
    lengths = ", ".join(f"{length:_}" for length in shape) + ("," if len(shape) == 1 else "")
    lines = [
        "# A file to start from, made by `python -m elsewise new`: change the rule, and run it.",
        "import time",
        "",
        "import elsewise as ew",
        "import numpy as np",
        "",
        "try:",
        "    import torch",
        "except ImportError:  # NumPy alone will do",
        "    torch = None",
        "",
        f"rule = ew.kernel({_quoted(rule)})",
        "",
        f"shape = ({lengths})  # any other with the rule's axes will do, and compiles nothing again",
        "device = None  # of NumPy's arrays",
        "if torch is not None:",
        '    device = "cuda" if torch.cuda.is_available() else "cpu"',
        "",
    ]
    if numbers:
        lines += [
            "# parameters: passed at each call; another of its kind compiles nothing, a tensor is read by position",
            *(f"{_variable(name)} = {number}" for name, number in numbers.items()),
            "",
        ]
    if tensors:
        lines += [
            "# tensors: of any strides, and of shapes that broadcast"
            + ("" if shaped else ", or of what is read of them"),
            "if torch is not None:",
            *(f"    {_variable(name)} = {tensor.torch}" for name, tensor in tensors.items()),
            "else:",
            "    random = np.random.default_rng(0)",
            *(f"    {_variable(name)} = {tensor.numpy}" for name, tensor in tensors.items()),
            "",
        ]
    lines += [
        f"result = rule({new})  # a new result" + ("" if shaped else " of this shape, since no argument has one"),
        f"rule({into})  # into memory that you have" + (", an input's own too" if in_place else ""),
        "first, last = (part.tolist() for part in (result.reshape(-1)[:4], result.reshape(-1)[-4:]))",
        'print(f"{result.dtype} {tuple(result.shape)}: {first} … {last}")',
        "",
        "if torch is None:",
        '    print("against plain torch: not checked, since torch is not installed")',
        "else:",
        f"    check = rule.check({new})  # the same rule in plain torch",
        '    print(f"against plain torch: {check}")',
        "    assert check or check.max_ulp <= 4, check  # functions such as exp may differ in the last places",
        "",
        "",
        "def microseconds(work, calls=20):",
        '    """The time of one call, the best of some."""',
        "    times = []",
        "    for _ in range(5):",
        "        start = time.perf_counter()",
        "        for _ in range(calls):",
        "            work()",
        '        if device == "cuda":',
        "            torch.cuda.synchronize()",
        "        times.append((time.perf_counter() - start) / calls * 1e6)",
        "    return min(times)",
        "",
        "",
        "copy = result.copy() if torch is None else result.clone()",
        f"rule_us = microseconds(lambda: rule({into}))",
        "copy_us = microseconds(lambda: np.copyto(copy, result) if torch is None else copy.copy_(result))",
        'print(f"{rule_us:.1f} us a call, where copying the result takes {copy_us:.1f} us")',
        "",
    ]
    return "\n".join(lines)


def _variable(name: str) -> str:
    """What an argument is called in the file: its own name, unless that is taken there."""
    return f"{name}_" if name in OWN or hasattr(builtins, name) else name


def _quoted(rule: str) -> str:
    """A literal of the rule, on lines as it has them if it can be."""
    if "\\" in rule or '"' in rule or (not rule.isprintable() and not rule.replace("\n", "").isprintable()):
        return repr(rule)
    return f'"""{rule}"""' if "\n" in rule else f'"{rule}"'
