# SPDX-License-Identifier: Apache-2.0
"""The rules of types, one test a rule, named in its docstring; promotion of pairs is test_promote.py's business."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest

torch = pytest.importorskip("torch")

X = np.arange(-4, 4, dtype=np.float32)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)


def whole(dtype: Any, seed: int, n: int = 300) -> np.ndarray:
    """Small values, large ones, and the ends."""
    rng = np.random.default_rng(seed)
    most = int(np.iinfo(dtype).max)
    drawn = rng.integers(0, most, n, dtype=dtype, endpoint=True)
    small = rng.integers(0, 70, n).astype(dtype)
    drawn = np.where(rng.random(n) < 0.6, small, drawn)
    drawn[:4] = [0, 1, most, most // 2 + 1]
    return drawn


def quotient(a: int, b: int) -> int:
    return a // b if b else 0


EXACTLY: list[tuple[str, Callable[[int, int, int], int]]] = [  # of a, b and the width
    ("x + y", lambda a, b, w: a + b),
    ("x - y", lambda a, b, w: a - b),
    ("x * y", lambda a, b, w: a * b),
    ("(x*y*x - y) * 3", lambda a, b, w: (a * b * a - b) * 3),
    ("x // y", lambda a, b, w: quotient(a, b)),
    ("x % y", lambda a, b, w: a - quotient(a, b) * b if b else 0),
    ("x ** y", lambda a, b, w: pow(a, b, 2**w)),
    ("x ** 3 * y", lambda a, b, w: a**3 * b),
    ("x << y", lambda a, b, w: a << b if b < w else 0),
    ("x >> y", lambda a, b, w: a >> b if b < w else 0),
    ("x & y", lambda a, b, w: a & b),
    ("x | y", lambda a, b, w: a | b),
    ("x ^ y", lambda a, b, w: a ^ b),
    ("-x + 0*y", lambda a, b, w: -a),
    ("~x | 0*y", lambda a, b, w: ~a),
    ("min(x, y)", lambda a, b, w: min(a, b)),
    ("max(x, y, 9)", lambda a, b, w: max(a, b, 9)),
    ("clip(x, 3, y)", lambda a, b, w: min(max(a, 3), b)),
    ("abs(x) + 0*y", lambda a, b, w: a),
    ("sign(x) + 0*y", lambda a, b, w: int(a > 0)),
    ("popcount(x) + 0*y", lambda a, b, w: bin(a).count("1")),
    ("where(bit(x, 3), y, 5)", lambda a, b, w: b if a >> 3 & 1 else 5),
    ("where(x < y, 0*x + 1, where(x == y, 0*x + 2, 3))", lambda a, b, w: 1 if a < b else 2 if a == b else 3),
    ("wrap(x, y)", lambda a, b, w: a % b if b else 0),
]


@pytest.mark.parametrize("dtype", UNSIGNED, ids=lambda d: d.__name__)
@pytest.mark.parametrize(("spec", "meant"), EXACTLY, ids=[spec for spec, _ in EXACTLY])
def test_unsigned(spec: str, meant: Callable[[int, int, int], int], dtype: Any) -> None:
    """Integers wrap. Every integer operation is total: `x//0` and `x%0` are 0, a shift by the width or more gives 0."""
    x, y, width = whole(dtype, 1), whole(dtype, 2), 8 * np.dtype(dtype).itemsize
    got = ew.kernel(spec)(x=x, y=y)
    assert got.dtype == dtype
    assert got.tolist() == [meant(a, b, width) % 2**width for a, b in zip(x.tolist(), y.tolist())]
    assert ew.kernel(spec).check(x=x, y=y)


COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@pytest.mark.parametrize("dtype", UNSIGNED, ids=lambda d: d.__name__)
@pytest.mark.parametrize("sign", COMPARE)
def test_exact_comparisons(sign: str, dtype: Any) -> None:
    """An integer literal or parameter (or other uniform) that does not fit the data's dtype compares exactly."""
    x = whole(dtype, 3)
    ends = [-1, 0, 5, 2**16, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**70), 2**70]
    for k in ends:
        want = [COMPARE[sign](a, k) for a in x.tolist()]
        mirrored = [COMPARE[sign](k, a) for a in x.tolist()]
        for text, given in ((f"x {sign} k", {"k": k}), (f"x {sign} {k}", {}), (f"x {sign} 2*k - k", {"k": k})):
            rule = ew.kernel(text)
            assert rule(x=x, **given).tolist() == want, (text, k)
            assert rule.check(x=x, **given), (text, k)
        assert ew.kernel(f"k {sign} x")(x=x, k=k).tolist() == mirrored
    by_position = ew.kernel(f"x {sign} i - 5")
    assert by_position(x=x).tolist() == [COMPARE[sign](a, p - 5) for p, a in enumerate(x.tolist())]
    assert by_position.check(x=x)


@pytest.mark.parametrize("dtype", (np.uint16, np.uint32, np.uint64), ids=lambda d: d.__name__)
@pytest.mark.parametrize("floating", (np.float16, np.float32, np.float64), ids=lambda d: d.__name__)
def test_float_to_unsigned(dtype: Any, floating: Any) -> None:
    """float -> int truncates, saturates, NaN gives 0."""
    values = [math.nan, math.inf, -math.inf, -1.0, -0.5, 0.9, 3.7, 65535.5, 65536.0, 2.0**32, 2.0**63, 1.8e19, 2.0**64]
    with np.errstate(over="ignore"):
        x = np.array(values).astype(floating)
    most = int(np.iinfo(dtype).max)
    want = [0 if math.isnan(v) else most if v > most else 0 if v < 0 else int(v) for v in x.tolist()]
    rule = ew.kernel({2: "u16(x)", 4: "u32(x)", 8: "u64(x)"}[np.dtype(dtype).itemsize])
    assert rule(x).tolist() == want and rule.check(x)


@pytest.mark.parametrize("floating", (np.float32, np.float64), ids=lambda d: d.__name__)
def test_u64_to_float(floating: Any) -> None:
    """u64 -> float has one rounding, to nearest even."""
    x = np.concatenate([whole(np.uint64, 5, 4000), np.array([2**63 + 1025, 2**53 + 1, 2**64 - 1025], np.uint64)])
    name = "f32(x)" if floating == np.float32 else "f64(x)"
    assert ew.kernel(name)(x).tolist() == [float(floating(int(v))) for v in x]
    assert ew.kernel(name).check(x)
    assert ew.kernel("x * 1.0")(x).dtype == np.float32


@pytest.mark.parametrize("dtype", (np.uint16, np.uint32, np.uint64), ids=lambda d: d.__name__)
def test_what_is_not_reached_need_not_fit(dtype: Any) -> None:
    """An integer that does not fit is an error only where some position reaches it; the torch source takes it too."""
    x = whole(dtype, 6)
    rule = ew.kernel("x >= 0: x; else x*(k - 7)")
    assert rule(x=x, k=3).tolist() == x.tolist() and rule.check(x=x, k=3)


@pytest.mark.parametrize("head", ["", "[a]; "])
@pytest.mark.parametrize("window", [{}, {"domain": (3000,), "offset": (100,)}], ids=["whole", "window"])
def test_what_a_guard_compares_has_to_fit(head: str, window: dict[str, Any]) -> None:
    """Also where the host alone decides the guard, and would decide it wrongly with what is left of the number."""
    x, y = np.ones(1500, np.float32), np.ones(1, np.uint8)
    with pytest.raises(OverflowError, match="does not fit u8"):
        ew.kernel(head + "1 == where(false, y, n): x; else 0")(x=x, y=y, **window)
    rule = ew.kernel(head + "k < 0 and 1 == where(false, y, n): x; else 0")
    assert not rule(x=x, y=y, k=1, **window).any()
    with pytest.raises(OverflowError, match="does not fit u8"):
        rule(x=x, y=y, k=-1, **window)


@pytest.mark.parametrize(
    "rule",
    [
        "i>=k and x+k>100: 0; else x",
        "[r]; r>=k and x+k>100: 0; else x",
        "i>k and i<k+4 and x*k>100: x; else x",
        "i<k and i>7 and x+k>3: 0; else x",
    ],
)
def test_what_does_not_fit_may_be_a_bound(rule: str) -> None:
    """A bound takes the parameter as it is, and of three positions none comes to where it has to fit u8."""
    x = np.array([1, 2, 3], np.uint8)
    assert ew.kernel(rule)(x=x, k=300).tolist() == [1, 2, 3]
    with pytest.raises(OverflowError, match="300 does not fit u8"):
        ew.kernel(rule.replace("i<k and i>7", "i<k and i>1"))(x=np.ones(400, np.uint8), k=300)


@pytest.mark.parametrize("rule", ["{0}>i", "i<{0}", "[a]; {0}>a", "[a]; a<{0}: true; else false"])
@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64])
def test_a_position_is_less_than_any_number_beyond_64_bits(rule: str, number: int) -> None:
    """Also where it is a literal that alone asks for more than 64 bits."""
    assert ew.kernel(rule.format(number))(shape=3).all()


@pytest.mark.parametrize(
    "rule",
    [
        "min(i*k*k, 9223372036854775807) == 9223372036854775807",
        "min(i*k*k, 10**20) == 10**20",
        "clip(i*k*k, 0, 2**63-1) == 2**63-1",
        "max(-i*k*k, -2**63) == -2**63",
        "max(i*k*k, 2**64) != i*k*k or i*k*k >= 2**64",
        "min(max(i*k*k, 5), 10**20) == 10**20",
    ],
)
def test_what_a_comparison_clips_may_leave_64_bits(rule: str) -> None:
    """A bound at the end of i64 is a bound: positions times 2^80 go beyond it."""
    clipped = ew.kernel(rule + ": 1; else 0")(shape=4, k=2**40).tolist()
    assert clipped == ([1, 1, 1, 1] if "!=" in rule else [0, 1, 1, 1])


def test_a_cast_of_what_is_not_known_may_have_no_dimension() -> None:
    """`u32(v)` has no dtype in common with positions if `v` has dimensions, which a rule alone does not say."""
    rule = ew.kernel("u32(v)*i")
    assert rule(v=np.array(3, np.uint32), shape=(3,)).tolist() == [0, 3, 6]
    with pytest.raises(ew.SpecError, match="no dtype in common"):
        rule(v=np.ones(3, np.uint32))


def test_a_result_that_is_not_known_yet_may_hold_it() -> None:
    """Whether `where(x != 0, 5, 6)` varies, and makes the result i64, is the kind of x: a number leaves u8 for -1."""
    rule = ew.kernel("i < 2: where(x != 0, 5, 6); i < 4: u8(0); else -1")
    assert rule(x=np.array([1, 0, 1, 0, 1, 0], np.uint8)).tolist() == [5, 6, 0, 0, -1, -1]
    with pytest.raises(ew.SpecError, match="`-1` does not fit u8"):
        rule(x=1, shape=(6,))


def test_ratio_of_u64() -> None:
    """`ramp` compares and subtracts whole numbers exactly, u64 as such."""
    x = np.array([0, 2**63, 2**63 + 2**62, 2**64 - 1], np.uint64)
    rule = ew.kernel("ramp(x, k, m)")
    given = {"k": 2**63, "m": 2**64 - 1}
    assert rule(x=x, **given).tolist() == [0, 0, 0.5, 1]
    assert rule.check(x=x, **given)
    with pytest.raises(OverflowError, match="does not fit u64"):
        rule(x=x, k=-1, m=5)
    with pytest.raises(ew.SpecError, match="does not fit u64"):
        ew.kernel("ramp(x, -1, 5)")(x=x)


def test_parameters_have_to_fit() -> None:
    """An integer literal or parameter that does not fit the data's dtype is an error in arithmetic and as a value."""
    for dtype in (*UNSIGNED, np.int8, np.int16, np.int32, np.int64):
        x, limits = np.ones(3, dtype), np.iinfo(dtype)
        for k in (int(limits.max) + 1, int(limits.min) - 1):
            for text in ("x + k", "i < 1: x; else k", "where(x > 0, k, x)", "min(x, k)"):
                with pytest.raises(OverflowError, match="does not fit"):
                    ew.kernel(text)(x=x, k=k)
                with pytest.raises(ew.SpecError, match="does not fit"):
                    ew.kernel(text.replace("k", str(k)))(x=x)
        for k in (int(limits.max), int(limits.min)):
            assert ew.kernel("i < 1: x; else k")(x=x, k=k).tolist() == [1, k, k]


def test_weak_floats() -> None:
    """A float that no tensor has entered is weak: it never changes a floating tensor's dtype."""
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        x = torch.ones(8, dtype=dtype)
        for text in ("x * (i/float(edge))", "x * sqrt(float(i))", "x * rate", "i < 3: float(i); else x"):
            given = {name: 3 for name in ("edge", "rate") if name in text}
            assert ew.kernel(text)(x=x, **given).dtype == dtype, text
    assert ew.kernel("float(i) / 3")(shape=4).dtype == np.float32
    assert ew.kernel("x * rate")(x=torch.ones(3, dtype=torch.int8), rate=0.5).dtype == torch.float32


def test_working_float() -> None:
    """Computed in f64 if a tensor argument (0-d ones aside), `dtype=`, `out` or a cast in the spec is f64, else f32."""
    single, double = (np.arange(4, dtype=d) / d(3) for d in (np.float32, np.float64))
    alone = ew.kernel("i/3.0")
    assert alone(shape=4).tolist() == single.tolist()
    assert alone(shape=4, dtype="f64").tolist() == double.tolist()
    assert alone(out=np.zeros(4), shape=4).tolist() == double.tolist()
    assert ew.kernel("i < 0: f64(0); else i/3.0")(shape=4).tolist() == double.tolist()
    beside = ew.kernel("i/3.0 + 0*x")
    assert beside(x=np.zeros(4)).tolist() == double.tolist()
    assert beside(x=np.zeros(4, np.float32)).tolist() == single.tolist()
    point = beside(x=np.array(0.0), shape=4)  # a 0-d f64 says nothing of the working float
    assert point.dtype == np.float64 and point.tolist() == single.tolist()
    for rule, given in ((alone, {"shape": 4, "dtype": "f64"}), (beside, {"x": np.zeros(4)})):
        assert rule.check(**given)


def test_points_are_tensors() -> None:
    """A 0-d tensor is a tensor with torch's rules, f64 too."""
    x, point = np.ones(4, np.float32), np.array(0.1)
    assert ew.kernel("x * p")(x=x, p=point).dtype == np.float32
    assert ew.kernel("x * p")(x=np.ones(4, np.int32), p=point).dtype == np.float64  # as torch.result_type
    assert ew.kernel("p")(p=point, shape=2).dtype == np.float64


def test_an_index_alone_yields_i64() -> None:
    """An index alone yields i64."""
    for text in ("i", "n", "k", "i*k + 3", "-1"):
        given = {"k": 3} if "k" in text else {}
        assert ew.kernel(text)(shape=4, **given).dtype == np.int64, text


def test_casts_that_keep() -> None:
    """`float(e)` takes an index to a weak float, integer and bool data to f32, and leaves floats; `int(e)` takes a
    weak float to an index, data to i64."""
    for dtype in ("bool", "uint8", "int8", "uint16", "uint32", "uint64", "int64"):
        assert ew.kernel("float(x)")(x=np.ones(2, dtype)).dtype == np.float32, dtype
        assert ew.kernel("int(x)")(x=np.ones(2, dtype)).dtype == np.int64, dtype
    for floating in (torch.float16, torch.bfloat16, torch.float64):
        x = torch.ones(2, dtype=floating)
        assert ew.kernel("float(x)")(x).dtype == floating
        assert ew.kernel("x * float(i)")(x).dtype == floating
    assert ew.kernel("int(0.5*i) * x")(x=np.ones(4, np.uint8)).dtype == np.int64
    assert ew.kernel("int(rate) * x")(x=np.ones(4, np.uint8), rate=2.5).dtype == np.uint8
    for rate, whole in ((-3e9, -3_000_000_000), (1e30, 2**63 - 1), (np.nan, 0)):  # 64 bits, and no more
        assert ew.kernel("int(rate)")(shape=2, rate=rate).tolist() == [whole] * 2
    assert ew.kernel("int(float(i) * 2.0**31)")(shape=3).tolist() == [0, 2**31, 2**32]


def test_quotients_of_integers() -> None:
    """`/` and float functions on integer data give f32."""
    for dtype in ("uint8", "int16", "int64", "uint16", "uint32", "uint64"):
        x = np.full(2, 7, dtype)
        assert ew.kernel("x / 2")(x).tolist() == [3.5, 3.5]
        assert ew.kernel("x / 2")(x).dtype == ew.kernel("sqrt(x)")(x).dtype == np.float32


def test_uniforms_are_doubles() -> None:
    """Uniforms are computed once on the host: integers exactly, floats as IEEE doubles (1/0.0 is inf)."""
    assert ew.kernel("1/g")(shape=1, g=0.0).tolist() == [math.inf]
    assert ew.kernel("x * (g*g)")(x=np.ones(1, np.float32), g=1e30).tolist() == [math.inf]
    assert ew.kernel("x * (g*g/g)")(x=np.ones(1, np.float32), g=1e30).tolist() == [float(np.float32(1e30))]


@pytest.mark.parametrize(
    "bound", ["2**62", "2**63", "2**64", "2**126", "2**127", "2**128", "k*k*k", "2**1000", "3**400+1"]
)
def test_bounds_beyond_64_bits(bound: str) -> None:
    """Bounds beyond 64 bits still compare right; inside such a comparison nothing overflows."""
    given = {"k": 2**62} if "k" in bound else {}
    for text, want in (
        (f"i < {bound}: x; else 9", X),
        (f"i >= -({bound}): x; else 9", X),
        (f"i > {bound}: x; else 9", np.full(8, 9)),
        (f"i == {bound}: x; else 9", np.full(8, 9)),
        (f"i < {bound} - ({bound}) + 3: x; else 9", np.where(np.arange(8) < 3, X, 9)),
        (f"i < min({bound}, 3): x; else 9", np.where(np.arange(8) < 3, X, 9)),
        (f"i < ({bound}) // ({bound}) + 2: x; else 9", np.where(np.arange(8) < 3, X, 9)),
    ):
        assert ew.kernel(text)(x=X, **given).tolist() == want.tolist(), text
        assert ew.kernel(text).check(x=X, **given), text
    named = ew.kernel(f"[r, c]; c < {bound}: x; else 9")
    assert named(x=X.reshape(2, 4), **given).tolist() == X.reshape(2, 4).tolist()


def test_what_leaves_64_bits_as_a_value() -> None:
    """Elsewhere index arithmetic that leaves 64 bits raises OverflowError."""
    for text in ("2**127", "k*k", "k*k*k - k*k*k", "i + 2**64", "x + k*k"):
        given = {"k": 2**62} if "k" in text else {}
        with pytest.raises(OverflowError):
            ew.kernel(text)(x=X, **given) if "x" in text else ew.kernel(text)(shape=3, **given)
    for text in ("i < 2**(2**40): 1; else 0", "i + 2**200 < g: 1; else 0"):  # beyond what is worked at all
        with pytest.raises(OverflowError):
            ew.kernel(text)(shape=3, **({"g": 1e300} if "g" in text else {}))


@pytest.mark.parametrize("value", ["k*1", "1*k", "k+0", "0+k", "k-0", "k//1", "k**1", "k<<0", "where(k>0, k, 0)*1"])
def test_an_operation_that_changes_nothing_leaves_64_bits_too(value: str) -> None:
    """A parameter is passed on as it is; what is worked from it, be it itself, has 64 bits."""
    rule = ew.kernel(f"i!=0: x; else {value}")
    with pytest.raises(OverflowError, match="leaves 64 bits"):
        rule(x=X, k=2**64 + 1)
    assert rule(x=X, k=5)[0] == 5
    assert ew.kernel("i!=0: x; else k")(x=X, k=2**64 + 1)[0] == 2.0**64
    assert ew.kernel(f"i < {value}: x; else 0")(x=X, k=2**64 + 1).tolist() == X.tolist()


@pytest.mark.parametrize("zero", ["where(false, i, n) % 1", "where(i<n, n-n, i)", "i*0", "min(i*0, 0)"])
def test_by_zero_that_was_written_with_a_position(zero: str) -> None:
    """It gives 0, also where nothing of the position is left; by a uniform zero it is a fault."""
    for divide in ("5 // z", "5 % z", "wrap(5, z)", "max(0, wrap(i, z))"):
        assert ew.kernel(f"let z = {zero}; {divide}")(shape=3).tolist() == [0, 0, 0], divide
        with pytest.raises(ZeroDivisionError):
            ew.kernel(f"let z = n-n; {divide}")(shape=3)


def test_check_knows_large_parameters() -> None:
    """The torch source compares in whole numbers of any size: `i*k` of a large parameter too."""
    for text in ("i*k < 5: x; else 0", "i + k < n: x; else 0", "k - i*k > 3: x; else 0", "i*int(g) < 5: x; else 0"):
        for k in (2**62, -(2**62), 2**63 - 1, 3, 2**31):
            given = {"k": k} if "k" in text else {"g": float(k)}
            assert ew.kernel(text).check(x=X, **given), (text, k)


def test_halves_compare_after_rounding() -> None:
    """Literals and uniforms compared with half data are rounded to it first; operands of `min max clip` are not."""
    x = torch.tensor([0.1, 0.3], dtype=torch.float16)
    assert ew.kernel("x == 0.1")(x).tolist() == [True, False] == (x == 0.1).tolist()
    assert ew.kernel("x == g")(x=x, g=0.1).tolist() == [True, False]
    assert ew.kernel("f32(min(x, 0.1)) - 0")(x).dtype == torch.float32


FLOATS = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
WHOLE = {
    "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64,
}  # fmt: skip


@pytest.mark.parametrize("spelling", [*FLOATS, *WHOLE, "bool"])
def test_extremes(spelling: str) -> None:
    """`lowest`, `highest` are those of the stored dtype, stand only as a whole value or `where` arm, don't promote."""
    dtype = {**FLOATS, **WHOLE, "bool": torch.bool}[spelling]
    limits = torch.finfo(dtype) if spelling in FLOATS else torch.iinfo(dtype) if spelling in WHOLE else None
    low, high = (limits.min, limits.max) if limits else (False, True)
    x = torch.tensor([0, 1, 1, 0, 1, 1], dtype=dtype)
    for text, want in (
        ("i < 2: lowest; i < 4: highest; else x", [low, low, high, high, 1, 1]),
        ("where(i < 2, lowest, where(i < 4, x, highest))", [low, low, 1, 0, high, high]),
        ("let low = lowest\nlet w = where(i < 4, low, x)\ni < 1: x; else w", [0, low, low, low, 1, 1]),
    ):
        got = ew.kernel(text)(x)
        assert got.dtype == dtype and got.tolist() == want, text
        assert ew.kernel(text).check(x), text
    assert ew.kernel("i < 1: lowest; else highest")(shape=2, dtype=dtype).tolist() == [low, high]
    assert ew.kernel("lowest")(out=torch.zeros(2, dtype=dtype)).tolist() == [low, low]


def test_extremes_of_a_store() -> None:
    """They are those of the stored dtype, not of what is worked or promoted."""
    x = np.array([-1, 2, 3], np.float32)
    for to, low in (("f64", np.finfo(np.float64).min), ("f16", np.finfo(np.float16).min)):
        rule = ew.kernel("where(x < 0, lowest, x)")
        assert rule(x=x, dtype=to).tolist() == [float(low), 2, 3] and rule.check(x=x, dtype=to)
    y = np.full(3, 2**24 + 1, np.int32)  # rounded where the choice around it is f32
    inner = ew.kernel("where(x < 0, x, where(x < 3, y, lowest))")
    assert inner(x=x, y=y, dtype="f64").tolist() == [-1, 2**24, float(np.finfo(np.float64).min)]
    assert inner.check(x=x, y=y, dtype="f64")
    tenth = ew.kernel("where(x < 0, x, where(x < 3, 0.1, lowest))")
    assert tenth(x=x, dtype="f64").tolist()[1] == float(np.float32(0.1)) and tenth.check(x=x, dtype="f64")
    assert ew.kernel("where(i < 2, i, highest)")(shape=3, dtype="i8").tolist() == [0, 1, 127]
    assert ew.kernel("where(f, 1//k, lowest)")(shape=1, f=False, k=0).tolist() == [-(2**63)]
    with pytest.raises(ZeroDivisionError):
        ew.kernel("where(f, 1//k, lowest)")(shape=1, f=True, k=0)
    with pytest.raises(OverflowError, match="does not fit i8"):
        ew.kernel("where(x < 0, lowest, where(x < 5, k, x))")(x=np.ones(2, np.int8), k=300)
    with pytest.raises(ew.SpecError, match="`dtype=`"):
        ew.kernel("i < 3: lowest; else highest")(shape=4)


INSIDE = """
max(x, lowest) | lowest + 1 | -lowest | x < highest | lowest: x; else 0 | f32(lowest) | not lowest: 1; else 0
where(x < 0, lowest, x) + 1 | where(lowest, 1, 2) | let m = lowest; max(m, x) | isnan(highest) | lowest and true
"""


@pytest.mark.parametrize("spec", [spec.strip() for line in INSIDE.split("\n") for spec in line.split(" | ") if spec])
def test_extremes_stand_alone(spec: str) -> None:
    """Elsewhere they are an error."""
    with pytest.raises(ew.SpecError) as caught:
        ew.kernel(spec)
    assert [d.code for d in caught.value.diagnostics] == ["extreme-inside"]


def test_a_negative_parameter_beside_128_bits() -> None:
    """It keeps its sign where its rule is worked in more bits than it came in."""
    rule = ew.kernel("(i%3)*m*(i%2)*m > k: 1; else 0")
    for m in (1, 2**40):  # 2**81 on the way
        assert rule(shape=6, m=m, k=-3).tolist() == [1] * 6, m
    assert rule(shape=6, m=2**40, k=0).tolist() == [0, 1, 0, 0, 0, 1]


def test_bits_of_a_position_where_it_is_worked_in_128() -> None:
    """The guard needs more than 64 bits of device arithmetic; the value has the 64 bits of a position still."""
    k = ew.kernel("i*i*k*4611686018427387904 < n*2000000000000000000: popcount(i - 31); else 0")
    assert k(shape=5, k=7).tolist() == [
        bin((j - 31) % 2**64).count("1") if j * j * 7 * 2**62 < 10**19 else 0 for j in range(5)
    ]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_a_shift_beyond_the_width_divides_by_zero_and_traps_nothing(dtype: str) -> None:
    """The divisor is the same everywhere, so that code may work it out ahead of its condition."""
    bits = np.iinfo(dtype).bits
    x = np.broadcast_to(np.array([bits + 8], dtype), (64,))
    y = np.full(64, 7, dtype)
    for spec in ("x//x//(31<<x)", "x % (31<<x)", "where(z > 0, 1, x//(31<<x))", "y//(31<<x) + y%(1<<x)"):
        given = {"x": x} | ({"y": y} if "y" in spec else {}) | ({"z": -np.ones(64, "f4")} if "z" in spec else {})
        assert not np.asarray(ew.kernel(spec)(**given)).any(), spec


def test_a_zero_over_a_zero_is_nan_whatever_it_is_multiplied_by() -> None:
    x = np.array([0, -0.0, 1, -2, np.inf, -np.inf, np.nan, 3e38] * 9, "f4")
    j = np.arange(72, dtype="i4") % 5 - 2
    i = np.arange(72).astype("f4")
    f, zero = j.astype("f4"), np.float32(0)
    with np.errstate(all="ignore"):
        cases = {
            "0.0/float(i)*(i-3)": zero / i * (i - 3),
            "0.0/float(i)*x": zero / i * x,
            "0.0/j*x": zero / f * x,
            "-0.0/j*x": -zero / f * x,
            "f32(j-j)/j*x": zero / f * x,
            "f32(j*0)/j*x": zero / f * x,
            "0.0/x*j": zero / x * f,
        }
    for spec, want in cases.items():
        given = {n: v for n, v in (("x", x), ("j", j)) if n in spec} or {"shape": 72}
        got = np.asarray(ew.kernel(spec)(**given))
        assert np.array_equal(got, want, equal_nan=True), spec
        assert np.array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)]), spec


def test_a_zero_keeps_its_sign_through_a_least() -> None:
    x, i = np.array([0, -0.0, 1, -1, 2], "f4"), np.arange(5).astype("f4")
    for spec, want in (
        ("x*fmin(0-float(i), 1)", x * np.minimum(0 - i, 1)),
        ("x*min(0-float(i), 1)", x * np.minimum(0 - i, 1)),
        ("1/min(0-float(i%1), x*x+1)", np.full(5, np.inf, "f4")),
    ):
        got = np.asarray(ew.kernel(spec)(x=x))
        assert np.array_equal(got, want) and np.array_equal(np.signbit(got), np.signbit(want)), (spec, got)


def test_indexes_of_128_bits_beside_f16() -> None:
    """A loop in 128 bits, whose values become halves: LLVM 23 cannot make vectors of it."""
    rule = ew.kernel(
        "i >= n/6: (border() + n) + (border() - 2); i*i*k*4611686018427387904 <= n*8000000000000000000: 1; else 2"
    )
    x = np.ones((33, 1), np.float16)
    result = rule(k=-3, out=x)
    assert result.dtype == np.float16 and result[:5].ravel().tolist() == [1.0] * 5
    inside = np.minimum(np.arange(33), 32 - np.arange(33))
    assert result.ravel().tolist()[6:] == (2.0 * np.minimum(inside, 0) + 31)[6:].tolist()


@pytest.mark.parametrize("value", ["sign(i16(1<<k))", "relu(i16(1<<k))", "bool(1<<k) ^ (x>2)", "min(i16(1<<k), x)"])
@pytest.mark.parametrize("head", ["", "[a]; "])
def test_what_a_builtin_compares_is_a_value(value: str, head: str) -> None:
    """A comparison that is written takes whole numbers beyond 64 bits as they are; one inside a builtin does not."""
    x = np.arange(5, dtype=np.int32)
    rule = ew.kernel(f"{head}x>3: {value}; else x")
    with pytest.raises(OverflowError, match="leaves 64 bits"):
        rule(x=x, k=100)
    assert rule(x=x, k=3).shape == (5,)
    assert ew.kernel(f"{head}x > i16(1<<k)")(x=x, k=100).tolist() == [False, True, True, True, True]


def test_a_guard_that_is_not_known_yet_may_never_hold() -> None:
    """A bool is never above 7, so the piece, which would make -2 leave u8, is never reached and has no say."""
    rule = ew.kernel("x>7: u8(0); else -2")
    assert rule(np.zeros(3, np.bool_)).tolist() == [-2, -2, -2]
    with pytest.raises(ew.SpecError, match="`-2` does not fit u8"):
        rule(np.zeros(3, np.int32))


@pytest.mark.parametrize(
    ("dtype", "meant"),
    [("float", "float32"), (float, "float64"), ("int", "int32"), (int, "int64"), ("i8", "int8"), ("long", "int64")],
)
def test_a_str_names_a_dtype_as_torch_does(dtype: Any, meant: str) -> None:
    """NumPy's 'i8' has eight bytes."""
    assert ew.kernel("i")(shape=2, dtype=dtype).dtype == meant


def test_what_is_beyond_a_half_is_an_infinity() -> None:
    """A literal too, as in torch.where: only whole data refuse a number that does not fit."""
    x = torch.tensor([1.0, 5.0], dtype=torch.float16)
    for rule, given in (
        ("x > 3: -1e9; else x", {}),
        ("x > 3: -1000000000; else x", {}),
        ("x > 3: v; else x", {"v": -(10**9)}),
        ("x > 3: v; else x", {"v": -1e9}),
    ):
        assert torch.equal(ew.kernel(rule)(x, **given), torch.where(x > 3, -1e9, x)), rule
        assert ew.kernel(rule)(x, **given).tolist() == [1.0, float("-inf")], rule
    assert ew.kernel("x > 3: lowest; else x")(x).tolist() == [1.0, -65504.0]
    assert torch.equal(ew.kernel("x + 70000")(x), x + 70000)
