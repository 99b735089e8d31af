# SPDX-License-Identifier: Apache-2.0
"""Random rules over named axes and lets, on random layouts, against NumPy's own indices. Each rule is made together
with its meaning, which shares nothing with the compiler; what needs dtypes beyond the common ones stands elsewhere."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest

NAMES = ("b", "h", "t", "y")
DTYPES = ("float32", "float64", "float16", "int64", "int32")
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Model:
    """One rule on one domain: builds text beside the NumPy value that it stands for. A whole uniform is a Python int, a
    float one a Python float, computed as a double; what has a position or a tensor in it is an array."""

    def __init__(self, rng: random.Random, shape: tuple[int, ...], dtype: str) -> None:
        self.rng, self.shape = rng, shape
        self.dtype = np.dtype(dtype)
        self.floating = self.dtype.kind == "f"
        self.working = np.float64 if dtype == "float64" else np.float32 if self.floating else np.int64
        self.header, self.axes = self.make_header()
        place = np.indices(shape, dtype=np.int64)
        self.place = {name: place[axis] for name, axis in self.axes.items()}
        size = int(np.prod(shape, dtype=np.int64))
        self.flat, self.size = np.arange(size, dtype=np.int64).reshape(shape), size
        face = [np.minimum(p, n - 1 - p) for p, n in zip(place, shape)]
        self.face = face
        self.arguments: dict[str, Any] = {}
        self.lets: list[str] = []
        self.whole: list[tuple[str, Any]] = []
        self.quotients: list[tuple[str, Any]] = []
        self.truths: list[tuple[str, Any]] = []
        self.weak: list[tuple[str, Any]] = []

    def make_header(self) -> tuple[str, dict[str, int]]:
        rng, rank = self.rng, len(self.shape)
        names = rng.sample(NAMES, min(rank, rng.randrange(4)))
        if len(names) == rank and rng.random() < 0.7:
            return f"[{', '.join(names)}]", {name: axis for axis, name in enumerate(names)}
        left = rng.randrange(len(names) + 1)
        axes = {name: axis for axis, name in enumerate(names[:left])}
        axes |= {name: rank - (len(names) - left) + at for at, name in enumerate(names[left:])}
        return f"[{', '.join((*names[:left], '..', *names[left:]))}]", axes

    def leaf(self) -> tuple[str, Any]:
        rng = self.rng
        rank = len(self.shape)
        options: list[Callable[[], tuple[str, Any]]] = [
            lambda: ("i", self.flat),
            lambda: ("n", self.size),
            lambda: (str(c := rng.randrange(6)), c),
            lambda: ("k", self.parameter("k", 3)),
        ]
        if rank:
            axis = rng.randrange(-rank, rank)
            options.append(lambda: (f"len(x, {axis})", self.shape[axis]))
            options.append(lambda: ("len(x)", self.shape[0]))
            options.append(lambda: ("border()", np.minimum.reduce(self.face)))
        side = rng.randrange(-2, 2)
        options.append(lambda: (f"len(s, {side})", self.side().shape[side]))
        for name, axis in self.axes.items():
            options.append(lambda name=name: (name, self.place[name]))
            options.append(lambda name=name: (name, self.place[name]))
            options.append(lambda name=name, axis=axis: (f"len({name})", self.shape[axis]))
            options.append(lambda name=name, axis=axis: (f"border({name})", self.face[axis]))
        if len(self.axes) > 1:
            (a, p), (b, q) = rng.sample(sorted(self.axes.items()), 2)
            options.append(lambda: (f"border({a}, {b})", np.minimum(self.face[p], self.face[q])))
        if self.whole:
            options += [lambda: rng.choice(self.whole)] * 2
        return rng.choice(options)()

    def parameter(self, name: str, value: Any) -> Any:
        return self.arguments.setdefault(name, value)

    def side(self) -> np.ndarray:
        """A tensor of which only lengths are read: it shapes nothing."""
        return self.arguments.setdefault("s", np.zeros((4, 2), np.int8))

    def index(self, depth: int) -> tuple[str, Any]:
        if depth == 0 or self.rng.random() < 0.3:
            return self.leaf()
        op = self.rng.choice("+-*/%mMw")
        (a, x), (b, y) = self.index(depth - 1), self.index(depth - 1)
        if op in "/%":  # by a position that may be 0, which gives 0, or by a literal that is not
            divisor = self.rng.choice((2, 3, -4))
            symbol = "//" if op == "/" else "%"
            by = operator.floordiv if op == "/" else operator.mod
            if self.axes and self.rng.random() < 0.4:
                name = self.rng.choice(list(self.axes))
                d = self.place[name]
                return f"({a} {symbol} {name})", np.where(d == 0, 0, by(x, np.where(d == 0, 1, d)))
            return f"({a} {symbol} {divisor})", by(x, divisor)
        if op in "mM":
            uniform = isinstance(x, int) and isinstance(y, int)
            if op == "m":
                return f"min({a}, {b})", min(x, y) if uniform else np.minimum(x, y)
            return f"max({a}, {b})", max(x, y) if uniform else np.maximum(x, y)
        if op == "w":
            guard, holds = self.comparison(depth - 1)
            if isinstance(holds, bool | np.bool_) and isinstance(x, int) and isinstance(y, int):
                return f"where({guard}, {a}, {b})", x if holds else y
            return f"where({guard}, {a}, {b})", np.where(holds, x, y)
        by = {"+": operator.add, "-": operator.sub, "*": operator.mul}[op]
        return f"({a} {op} {b})", by(x, y)

    def side_of_comparison(self, depth: int) -> tuple[str, Any]:
        text, value = self.index(depth)
        if self.rng.random() < 0.3:
            if self.quotients and self.rng.random() < 0.5:
                quotient, q = self.rng.choice(self.quotients)
            else:
                quotient, q = self.quotient()
            sign = self.rng.choice("+-")
            return f"{text} {sign} {quotient}", value + q if sign == "+" else value - q
        return text, value

    def quotient(self) -> tuple[str, Any]:
        """Means floor; not of parameters, nor of a literal alone."""
        divisor = self.rng.choice((2, 3, 4))
        options = [("i", self.flat), ("n", self.size), ("(n - 3)", self.size - 3), ("(2*i + 1)", 2 * self.flat + 1)]
        options += [(name, place) for name, place in self.place.items()]
        options += [(f"len({name})", self.shape[axis]) for name, axis in self.axes.items()]
        text, value = self.rng.choice(options)
        return f"{text}/{divisor}", value // divisor

    def comparison(self, depth: int) -> tuple[str, Any]:
        (a, x), (b, y) = self.side_of_comparison(depth), self.side_of_comparison(depth)
        op = self.rng.choice(list(COMPARE))
        text, value = f"{a} {op} {b}", COMPARE[op](x, y)
        if self.rng.random() < 0.2:
            c, z = self.side_of_comparison(0)
            return f"{text} < {c}", np.logical_and(value, y < z)
        return text, value

    def guard(self, depth: int, x: np.ndarray | None) -> tuple[str, Any]:
        roll = self.rng.random()
        if depth and roll < 0.45:
            (a, p), (b, q) = self.guard(depth - 1, x), self.guard(depth - 1, x)
            word = self.rng.choice(("and", "or"))
            return f"({a} {word} {b})", np.logical_and(p, q) if word == "and" else np.logical_or(p, q)
        if roll < 0.55:
            a, p = self.guard(0, x)
            return f"not ({a})", np.logical_not(p)
        if self.truths and roll < 0.65:
            return self.rng.choice(self.truths)
        if x is not None and roll < 0.72:
            return "x > 1", x > 1
        text, value = self.comparison(1)
        return f"({text})", value

    # Floats: of two Python floats a double, else the working float, once per operation.
    def joined(self, by: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        if isinstance(a, float) and isinstance(b, float):
            return by(a, b)
        return by(np.asarray(a).astype(self.working), np.asarray(b).astype(self.working))

    def weak_float(self, depth: int) -> tuple[str, Any]:
        roll = self.rng.random()
        if self.weak and roll < 0.3:
            return self.rng.choice(self.weak)
        if depth and roll < 0.6:
            (a, x), (b, y) = self.weak_float(depth - 1), self.weak_float(depth - 1)
            op = self.rng.choice("+-*")
            by = {"+": operator.add, "-": operator.sub, "*": operator.mul}[op]
            return f"({a} {op} {b})", self.joined(by, x, y)
        if roll < 0.7:
            return "gain", float(self.parameter("gain", 0.375))
        a, x = self.index(1)
        if roll < 0.85:
            over = self.rng.choice((3.0, 7.0, 0.5))
            x = float(x) if isinstance(x, int) else x
            return f"(float({a})/{over})", self.joined(operator.truediv, x, over)
        x = float(x) if isinstance(x, int) else x
        return f"float({a})", x

    def value(self, depth: int, x: np.ndarray) -> tuple[str, Any]:
        """In the working float or in 64 bits: converted once, at the store."""
        if depth == 0:
            return "x", x.astype(self.working)
        a, p = self.value(depth - 1, x)
        roll = self.rng.random()
        if roll < 0.2:
            return f"-({a})", -p
        if roll < 0.35:
            guard, holds = self.guard(1, x)
            b, q = self.value(depth - 1, x)
            return f"where({guard}, {a}, {b})", np.where(holds, p, q)
        if roll < 0.65 and self.floating:
            b, q = self.weak_float(1)
        else:
            b, q = self.index(1)
            if self.dtype == np.int32:  # a position would make it 64 bits wide
                b, q = "3", 3
        op = self.rng.choice("+-*")
        by = {"+": operator.add, "-": operator.sub, "*": operator.mul}[op]
        return f"({a}) {op} ({b})", by(p, np.asarray(q).astype(self.working))

    def add_lets(self) -> None:
        for at in range(self.rng.randrange(4)):
            kind = self.rng.choice(("whole", "truths", "quotients") + ("weak",) * self.floating)
            if kind == "whole":
                text, value = self.index(2)
            elif kind == "truths":
                text, value = self.comparison(1)
            elif kind == "quotients":
                text, value = self.quotient()
            else:
                text, value = self.weak_float(1)
            self.lets.append(f"let v{at} = {text}")
            getattr(self, kind).append((f"v{at}", value))

    def rule(self, x: np.ndarray) -> tuple[str, np.ndarray]:
        self.add_lets()
        pieces = [(*self.guard(2, x), *self.value(self.rng.randrange(3), x)) for _ in range(self.rng.randrange(1, 4))]
        text, want = self.value(1, x)
        lines = [f"else {text}"]
        want = np.broadcast_to(np.asarray(want), self.shape)
        for guard, holds, value, p in reversed(pieces):
            lines.insert(0, f"{guard}: {value}")
            want = np.where(holds, p, want)
        with np.errstate(over="ignore"):
            return "\n".join((self.header, *self.lets, *lines)), want.astype(self.dtype)


def layout(rng: random.Random, values: np.ndarray, *, writable: bool = False) -> np.ndarray:
    """The same values: permuted in memory, in steps, backwards, or repeated along an axis."""
    shape = values.shape
    order = list(range(values.ndim))
    rng.shuffle(order)
    steps = [rng.choice((1, 1, 2, -1, -3)) for _ in shape]
    base = np.zeros([shape[d] * abs(steps[d]) for d in order], values.dtype)
    view = base.transpose([order.index(d) for d in range(values.ndim)])[(..., *(slice(None, None, s) for s in steps))]
    assert view.shape == shape
    view[...] = values
    if not writable and values.ndim and rng.random() < 0.2:
        axis = rng.randrange(values.ndim)
        view = np.broadcast_to(view[(slice(None),) * axis + (slice(0, 1),)], shape)
    return view if rng.random() < 0.8 else view.copy()


def make(seed: int) -> tuple[random.Random, str, np.ndarray, dict[str, Any], np.ndarray, bool]:
    rng = random.Random(seed)
    shape = tuple(
        rng.choice((0, 1, 1, 2, 3, 5, 8, 17) if rng.random() < 0.4 else (2, 3, 5, 9)) for _ in range(seed % 5)
    )
    dtype = DTYPES[seed % 7 % 5]  # a tensor without axes does not make floats of positions wider
    model = Model(rng, shape, "float32" if dtype == "float64" and not shape else dtype)
    values = np.random.default_rng(seed).integers(-8, 9, shape).astype(model.dtype)
    x = layout(rng, values)
    text, want = model.rule(x)
    return rng, text, x, model.arguments, want, model.floating


def agree(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@pytest.mark.filterwarnings("ignore::elsewise.SpecWarning")
@pytest.mark.parametrize("part", range(12))
def test_against_indices(part: int) -> None:
    for seed in range(part * 25, part * 25 + 25):
        rng, text, x, arguments, want, floating = make(seed)
        k = ew.kernel(text)
        given = {name: value for name, value in arguments.items() if name in k.arguments}
        what = f"seed {seed}\n{text}\nshape {x.shape} strides {x.strides} {x.dtype} {given}"
        result = k(x, **given)
        assert agree(result, want) if floating else np.array_equal(result, want), what
        if result.dtype != want.dtype:  # an integer rule of positions
            continue
        out = layout(rng, np.zeros_like(want), writable=True)
        assert k(x, out=out, **given) is out and agree(out, want), what
        own = layout(rng, np.array(x), writable=True)
        k(own, out=own, **given)
        assert agree(own, want), what


@pytest.mark.filterwarnings("ignore::elsewise.SpecWarning")
@pytest.mark.parametrize("part", range(4))
def test_plain_torch_too(part: int) -> None:
    """`check()` compares with the torch source, which is another reading of the same rule."""
    pytest.importorskip("torch")
    for seed in range(1000 + part * 15, 1000 + part * 15 + 15):
        _, text, x, arguments, want, floating = make(seed)
        k = ew.kernel(text)
        given = {name: value for name, value in arguments.items() if name in k.arguments}
        checked = k.check(np.array(x), **given)  # torch has no strides below 0
        assert checked, f"seed {seed}\n{text}\n{x.shape} {x.dtype} {checked}"
        expected = checked.expected.numpy()
        assert agree(expected, want) if floating else np.array_equal(expected, want), f"seed {seed}\n{text}"
