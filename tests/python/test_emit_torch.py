# SPDX-License-Identifier: Apache-2.0
"""`emit("torch")`, executed: its results are those of NumPy, written out here by hand for each rule.

`k.check()` trusts this source, so that this is where it is held to the language rather than to the compiler.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest

torch = pytest.importorskip("torch")

Array = np.ndarray
FLOATS = ("f16", "f32", "f64")
INTEGERS = ("u8", "i8", "i16", "i32", "i64")
NUMPY = {
    "bool": np.bool_,
    "u8": np.uint8,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}
SHAPES = ((), (0,), (1,), (7,), (257,), (5, 8), (3, 1, 4))


def sample(kind: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Values that lean towards what breaks arithmetic."""
    rng = np.random.default_rng(seed)
    dtype = NUMPY[kind]
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(dtype)
    if kind in INTEGERS:
        info = np.iinfo(dtype)
        values = rng.integers(-9, 10, shape).astype(np.int64).astype(dtype)
        ends = np.array([info.min, info.max, 0], dtype)[rng.integers(0, 3, shape)]
        return np.where(rng.random(shape) < 0.2, ends, values).astype(dtype)
    special = np.array([0.0, -0.0, 1.0, -2.5, 0.1, np.inf, -np.inf, np.nan, 65504.0, 6e-8, 300.5, -129.9])
    values = rng.normal(size=shape) * 4
    return np.where(rng.random(shape) < 0.3, special[rng.integers(0, len(special), shape)], values).astype(dtype)


def run(spec: str, arguments: dict[str, Any], shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Array:
    """The emitted function on those arguments."""
    kinds, given = {}, {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            spelled = next(k for k, v in NUMPY.items() if v == value.dtype)
            kinds[name] = f"{spelled}[{value.ndim}]"
            given[name] = torch.from_numpy(value.copy())
        else:
            kinds[name] = type(value).__name__
            given[name] = value
    source = str(ew.kernel(spec).emit("torch", dtype=dtype, **kinds))
    names: dict[str, Any] = {}
    exec(compile(source, "<emit('torch')>", "exec"), names)
    rule = names["rule"]
    wanted = inspect.signature(rule).parameters
    extra = {"shape": shape} if shape is not None else {}
    return np.asarray(rule(**{n: given[n] for n in wanted if n in given}, **extra))


def same(actual: Array, expected: Array) -> None:
    """Dtype, shape and every bit, NaNs as one."""
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)
    if actual.dtype.kind == "f":
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual)[number], np.signbit(expected)[number])


def positions(x: Array) -> tuple[Array, int]:
    return np.arange(x.size).reshape(x.shape), x.size


def work(x: Array) -> Array:
    """Data in the type that it is worked in."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", FLOATS)
def test_seed(kind: str, shape: tuple[int, ...]) -> None:
    x = sample(kind, shape)
    i, n = positions(x)
    half, double = (work(x) * work(x).dtype.type(f) for f in (0.5, 2))
    expected = np.where(i < n // 4, half, np.where(i >= n - n // 4, double, work(x)))
    with np.errstate(over="ignore"):
        expected = np.where((i >= n // 4) & (i < n - n // 4), x, expected.astype(x.dtype))
    same(run("i<n/4: x*0.5; i>=n-n/4: x*2; else x", {"x": x}), expected)


def test_first_matching_piece_wins() -> None:
    x = sample("f32", (50,))
    i, n = positions(x)
    expected = np.select([i < 10, i < 20, i % 3 == 0, i == n - 1], [np.float32(k) for k in (1, 2, 3, 4)], x)
    same(run("i < 10: 1; i < 20: 2; i % 3 == 0: 3; i == n-1: 4; else x", {"x": x}), expected)


Elementwise = tuple[str, Callable[..., Array]]
with_floats: list[Elementwise] = [
    ("x + y", lambda x, y: x + y),
    ("x - y*2", lambda x, y: x - y * 2),
    ("x / y", lambda x, y: x / y),
    ("x / 3", lambda x, y: x / x.dtype.type(3)),
    ("-x", lambda x, y: -x),
    ("abs(x)", lambda x, y: np.abs(x)),
    ("sqrt(x)", lambda x, y: np.sqrt(x)),
    ("floor(x)", lambda x, y: np.floor(x)),
    ("ceil(x)", lambda x, y: np.ceil(x)),
    ("round(x)", lambda x, y: np.rint(x)),
    ("min(x, y)", lambda x, y: np.minimum(x, y)),
    ("max(x, y, 0.5)", lambda x, y: np.maximum(np.maximum(x, y), x.dtype.type(0.5))),
    ("clip(x, -1, 1)", lambda x, y: np.minimum(np.maximum(x, x.dtype.type(-1)), x.dtype.type(1))),
    ("where(x > y, x, y)", lambda x, y: np.where(x > y, x, y)),
    ("where(isnan(x), 0, x)", lambda x, y: np.where(np.isnan(x), x.dtype.type(0), x)),
]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(("spec", "expected"), with_floats, ids=[s for s, _ in with_floats])
def test_floats(spec: str, expected: Callable[..., Array], kind: str) -> None:
    x, y = sample(kind, (300,), 1), sample(kind, (300,), 2)
    arguments = {"x": x, "y": y} if "y" in spec else {"x": x}
    with np.errstate(all="ignore"):
        same(run(spec, arguments), expected(work(x), work(y)).astype(x.dtype))


def total(operate: Callable[[int, int], int]) -> Callable[[Array, Array], Array]:
    """An operation on exact integers, wrapped to the dtype."""

    def apply(x: Array, y: Array) -> Array:
        info = np.iinfo(x.dtype)
        span = int(info.max) - int(info.min) + 1
        exact = [operate(int(a), int(b)) for a, b in zip(x.ravel(), y.ravel())]
        wrapped = [(v - int(info.min)) % span + int(info.min) for v in exact]
        return np.array(wrapped, x.dtype).reshape(x.shape)

    return apply


with_integers: list[tuple[str, Callable[[int, int], int]]] = [
    ("x + y", lambda a, b: a + b),
    ("x - y", lambda a, b: a - b),
    ("x * y", lambda a, b: a * b),
    ("x // y", lambda a, b: a // b if b else 0),
    ("x % y", lambda a, b: a % b if b else 0),
    ("x & y", lambda a, b: a & b),
    ("x | y", lambda a, b: a | b),
    ("x ^ y", lambda a, b: a ^ b),
    ("~x", lambda a, b: ~a),
    ("-x", lambda a, b: -a),
    ("abs(x)", lambda a, b: abs(a)),
    ("min(x, y)", lambda a, b: min(a, b)),
    ("max(x, y, 5)", lambda a, b: max(a, b, 5)),
    ("clip(x, 2, 9)", lambda a, b: min(max(a, 2), 9)),
    ("x ** 3", lambda a, b: a**3),
    ("floor(x)", lambda a, b: a),
    ("x // 3 + x % 3", lambda a, b: a // 3 + a % 3),
]


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize(("spec", "operate"), with_integers, ids=[s for s, _ in with_integers])
def test_integers(spec: str, operate: Callable[[int, int], int], kind: str) -> None:
    x, y = sample(kind, (300,), 1), sample(kind, (300,), 2)
    arguments = {"x": x, "y": y} if "y" in spec else {"x": x}
    same(run(spec, arguments), total(operate)(x, y))


@pytest.mark.parametrize("kind", INTEGERS)
def test_shifts(kind: str) -> None:
    x, y = sample(kind, (400,), 1), sample(kind, (400,), 3)
    bits = x.dtype.itemsize * 8
    same(run("x << y", {"x": x, "y": y}), total(lambda a, b: a << b if 0 <= b < bits else 0)(x, y))
    same(run("x >> y", {"x": x, "y": y}), total(lambda a, b: a >> b if 0 <= b < bits else -(a < 0))(x, y))


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("kind", FLOATS)
def test_floats_to_integers_saturate(kind: str, to: str) -> None:
    x = sample(kind, (400,))
    info = np.iinfo(NUMPY[to])

    def saturated(v: float) -> int:
        if math.isnan(v):
            return 0
        return info.max if v >= info.max else info.min if v <= info.min else math.trunc(v)

    same(run(f"{to}(x)", {"x": x}), np.array([saturated(float(v)) for v in x], NUMPY[to]))


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_to_integers_wrap(kind: str, to: str) -> None:
    x = sample(kind, (400,))
    same(run(f"{to}(x)", {"x": x}), x.astype(NUMPY[to]))
    same(run("x", {"x": x}, dtype=to), x.astype(NUMPY[to]))


def test_doubles_to_halves_round_once() -> None:
    x = np.array(
        [1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 1 + 2**-11, 65519.999999, 65520.0, 2**-25 + 2**-60, np.nan, -np.inf]
    )
    with np.errstate(over="ignore"):
        same(run("f16(x)", {"x": x}), x.astype(np.float16))


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("literal", [-1, 0, 3, 127, 200, 255, 256, 300, -40000, 2**40])
@pytest.mark.parametrize("kind", INTEGERS)
def test_literals_compare_exactly(kind: str, literal: int, op: str) -> None:
    x = sample(kind, (60,))
    expected = np.array([eval(f"{int(v)} {op} {literal}") for v in x])
    same(run(f"x {op} {literal}", {"x": x}), expected)


def test_indexes_compare_exactly_with_floats() -> None:
    shape = (64,)
    for rate in (0.25, 0.1, 1 / 3, -1.0, math.inf, -math.inf, math.nan, 1e300):
        expected = np.array([i < rate * 64 for i in range(64)])
        same(run("i < rate*n", {"rate": rate}, shape), expected)
    for k in (-5, 0, 17, 2**63, -(2**63) - 1, 2**100):
        same(run("i < k", {"k": k}, shape), np.array([i < k for i in range(64)]))
        same(run("k - 3 >= i", {"k": k}, shape), np.array([k - 3 >= i for i in range(64)]))


def test_halves_compare_with_rounded_literals() -> None:
    x = np.array([0.1, 0.0999, 0.1001, 2048, 2049, 2050], np.float16)
    same(run("x >= 0.1", {"x": x}), x >= np.float16(0.1))
    same(run("x < 2049", {"x": x}), x < np.float16(2049))
    same(run("x == rate", {"x": x, "rate": 0.1}), x == np.float16(0.1))


def test_nothing_overflows_in_comparisons() -> None:
    big, n = 2**62, 9
    expected = [i * i * 3 * big >= n * 2 * 10**19 for i in range(n)]
    same(run(f"i*i*k*{big} >= n*{2 * 10**19}", {"k": 3}, (n,)), np.array(expected))
    same(
        run(f"i**9 * {big} < k and i != 2", {"k": 2**70}, (n,)),
        np.array([i**9 * big < 2**70 and i != 2 for i in range(n)]),
    )
    same(run("i << 100 >= g", {"g": 2.0**101}, (n,)), np.array([i << 100 >= 2.0**101 for i in range(n)]))


def test_conditions_without_a_position() -> None:
    x = sample("f32", (6,))
    nested = "k > 3: where(f, x, where(k > 9, 1, 2)); k > 1: 7; else 0.5"
    for k in (0, 2, 4, 10):
        for f in (False, True):
            value = x if f else 1 if k > 9 else 2
            expected = value if k > 3 else 7 if k > 1 else 0.5
            same(run(nested, {"x": x, "k": k, "f": f}), np.broadcast_to(np.asarray(expected, np.float32), (6,)))


def test_powers() -> None:
    for kind in ("f32", "f64"):
        x = sample(kind, (500,))
        one = x.dtype.type(1)
        with np.errstate(all="ignore"):
            for spec, expected in (
                ("x**0", np.ones_like(x)),
                ("x**1", x),
                ("x**2", x * x),
                ("x**3", x * x * x),
                ("x**-1", one / x),
            ):
                same(run(spec, {"x": x}), expected)


def test_no_tensor() -> None:
    same(run("i", {}, (5,)), np.arange(5))
    same(run("i // 2 - n", {}, (2, 3)), (np.arange(6) // 2 - 6).reshape(2, 3))
    same(run("float(i)/n", {}, (7,)), np.arange(7).astype(np.float32) / np.float32(7))
    same(run("float(i)/n", {}, (7,), "f64"), np.arange(7) / 7)
    same(run("0.1", {}, (3,)), np.full(3, 0.1, np.float32))
    same(run("i < 2: 300; else i", {}, (4,), "u8"), np.array([44, 44, 2, 3], np.uint8))
    same(run("i % 2 == 0", {}, (4,)), np.array([True, False, True, False]))


def test_arithmetic_on_the_host() -> None:
    def uniform(spec: str, expected: Any, **arguments: Any) -> None:
        same(run(spec, arguments, (2,)), np.full(2, expected, np.asarray(expected).dtype))

    uniform("k // 3", np.int64(-3), k=-7)
    uniform("k % 3", np.int64(2), k=-7)
    uniform("k << 3", np.int64(-56), k=-7)
    uniform("k >> j", np.int64(-1), k=-7, j=90)
    uniform("k ** j", np.int64(-343), k=-7, j=3)
    uniform("min(k, 3) + max(k, 3) + abs(k) + clip(k, -2, 2)", np.int64(-7 + 3 + 7 - 2), k=-7)
    uniform("fmin(k, 3) + 10*fmax(k, 3)", np.int64(-7 + 30), k=-7)
    uniform("g / 0.0", np.float32(np.inf), g=1.5)
    uniform("g // 0.4", np.float32(3), g=1.5)
    uniform("g % -0.4", np.float32(1.5 % -0.4), g=1.5)
    uniform("sqrt(g)", np.float32(np.sqrt(2.0)), g=2.0)
    uniform("sqrt(-g)", np.float32(np.nan), g=2.0)
    uniform("int(g) + 1", np.int64(-1), g=-2.9)
    uniform("int(g)", np.int64(0), g=math.nan)
    uniform("f and not h: 1; else 2", np.int64(1), f=True, h=False)
    uniform("where(f, k, 0.5)", np.float32(4), f=True, k=4)
    uniform("u8(k)", np.uint8(44), k=300)


def test_broadcasting_and_0d() -> None:
    x, y, z = sample("f32", (4, 5)), sample("f32", (5,)), np.array(2.0, np.float64)
    i = np.arange(20).reshape(4, 5)
    same(run("i % 2 == 0: x + y; else x*z", {"x": x, "y": y, "z": z}), np.where(i % 2 == 0, x + y, x * np.float32(2)))
    same(run("z", {"z": z}), z)
    same(run("y", {"y": y}, (4, 5)), np.broadcast_to(y, (4, 5)))


def test_names_of_arguments_hide_nothing() -> None:
    x = sample("i32", (9,))
    same(
        run("torch // math + _floordiv*0", {"torch": x, "math": x, "_floordiv": x}),
        np.where(x == 0, 0, 1).astype(np.int32),
    )


def test_comments_cannot_leave_their_line() -> None:
    x = sample("f32", (4,))
    spec = 'i < 2: x # """ \' \\\n# import os\nelse x'
    same(run(spec, {"x": x}), x)
