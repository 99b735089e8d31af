# SPDX-License-Identifier: Apache-2.0
"""Promotion and stores of every pair of dtypes against the torch in use: what dtype, and what values.

The differences that are meant stand in grammar/language.md under "Beside torch", and here in `as_here`.
"""

from __future__ import annotations

from typing import Any

import elsewise as ew
import numpy as np
import pytest

torch = pytest.importorskip("torch")

DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}
SPELLED = {dtype: spelling for spelling, dtype in DTYPES.items()}
SCALARS: dict[str, Any] = {"True": True, "3": 3, "2.5": 2.5}


def tensor(spelling: str, dims: int, seed: int = 0) -> Any:
    """Small whole values, and the ends of the dtype."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[spelling]
    values = rng.integers(0, 7, 16)
    if spelling == "bool":
        made = torch.tensor(values % 2 == 0)
    elif dtype.is_floating_point:
        made = torch.tensor(values - 3.25, dtype=torch.float64).to(dtype)
    else:
        limits = torch.iinfo(dtype)
        ends = [limits.min, limits.max, limits.max // 2 + 1, *(int(v) for v in values[3:])]
        made = torch.tensor(ends, dtype=dtype)
    return made if dims else made[5]


def operands() -> list[tuple[str, Any]]:
    """Every dtype with a dimension and without, and each kind of Python's numbers."""
    found: list[tuple[str, Any]] = []
    for spelling in DTYPES:
        found += [(f"{spelling}[1]", tensor(spelling, 1, 1)), (f"{spelling}[0]", tensor(spelling, 0, 2))]
    return found + list(SCALARS.items())


def torchs(operation: Any, *values: Any) -> Any:
    """torch's own result, or None where it has none for these dtypes."""
    try:
        return operation(*values)
    except NotImplementedError:
        return None
    except RuntimeError as error:
        assert "not implemented" in str(error) or "not supported" in str(error), error
        return None


def same(ours: Any, theirs: Any) -> bool:
    if ours.dtype != theirs.dtype:
        return False
    if ours.dtype.is_floating_point:
        return bool(torch.equal(torch.nan_to_num(ours), torch.nan_to_num(theirs)))
    return bool(ours.tolist() == theirs.tolist())


def as_here(x: Any, y: Any) -> Any:
    """A product of a half and whole numbers: torch rounds those to the half first, where 65535 is infinite."""
    wide = [v.to(torch.float32) if torch.is_tensor(v) else v for v in (x, y)]
    return torch.mul(*wide).to(torch.result_type(x, y))


def codes(error: ew.SpecError) -> list[str]:
    return [d.code for d in error.diagnostics]


def result_type(x: Any, y: Any) -> Any:
    try:
        return torch.result_type(x, y)
    except RuntimeError:
        return None


FIRST = operands()


@pytest.mark.parametrize("seen", [name for name, _ in FIRST])
@pytest.mark.parametrize("spec", ["x * y", "where(c, x, y)", "i < 8: x; else y"])
def test_pairs(spec: str, seen: str) -> None:
    """Promotion is `torch.result_type`: of every pair of dtypes, with dimensions and without, and Python's scalars."""
    x = dict(FIRST)[seen]
    condition = torch.arange(16) % 3 == 0
    for name, y in FIRST:
        if not torch.is_tensor(x) and not torch.is_tensor(y):
            continue
        if spec == "x * y" and isinstance(x, bool) and isinstance(y, bool):
            continue
        given = {"x": x, "y": y, **({"c": condition} if "c" in spec else {})}
        wanted = result_type(x, y)
        rule = ew.kernel(spec)
        shape = {} if any(torch.is_tensor(v) and v.ndim for v in given.values()) else {"shape": (16,)}
        if wanted is None:
            with pytest.raises(ew.SpecError) as caught:
                rule(**given, **shape)
            assert codes(caught.value) == ["no-common-dtype"], (seen, name)
            fixit = caught.value.diagnostics[0].fixits[0]
            assert ew.kernel(fixit.apply(spec))(**given, **shape).shape == (16,)
            continue
        got = rule(**given, **shape)
        assert got.dtype == wanted, (spec, seen, name, got.dtype, wanted)
        if spec == "x * y":
            assert rule.check(**given, **shape), (seen, name)
            half = wanted in (torch.float16, torch.bfloat16)
            theirs = as_here(x, y) if half else torchs(torch.mul, x, y)
        elif spec == "where(c, x, y)":
            theirs = torchs(torch.where, condition, x, y)
        else:
            theirs = torchs(torch.where, torch.arange(16) < 8, x, y)
        if theirs is not None:
            assert same(got, theirs.expand(16).contiguous()), (spec, seen, name, got, theirs)


@pytest.mark.parametrize("seen", [name for name, _ in FIRST])
def test_comparisons(seen: str) -> None:
    """Comparisons promote too, but whole numbers beside an exact one are compared exactly."""
    x = dict(FIRST)[seen]
    for name, y in FIRST:
        if not torch.is_tensor(x) and not torch.is_tensor(y):
            continue
        shape = {} if any(torch.is_tensor(v) and v.ndim for v in (x, y)) else {"shape": (16,)}
        rule = ew.kernel("x <= y")
        if result_type(x, y) is None:
            with pytest.raises(ew.SpecError, match="no dtype in common"):
                rule(x=x, y=y, **shape)
            continue
        assert rule.check(x=x, y=y, **shape), (seen, name)
        theirs = torchs(torch.le, x, y) if torch.is_tensor(x) else torchs(torch.ge, y, x)
        if theirs is not None:
            assert same(rule(x=x, y=y, **shape), theirs.expand(16)), (seen, name)


@pytest.mark.parametrize("literal", ["1", "2.5", "true"])
@pytest.mark.parametrize("spelling", DTYPES)
def test_literals(spelling: str, literal: str) -> None:
    """Lengths, literals, parameters count as Python scalars."""
    x = tensor(spelling, 1)
    value = {"1": 1, "2.5": 2.5, "true": True}[literal]
    for text in (f"x * {literal}", f"where(x == x, {literal}, x)"):
        assert ew.kernel(text)(x).dtype == torch.result_type(x, value), text
    if literal == "1":
        assert ew.kernel("x * n")(x).dtype == torch.result_type(x, 1) == ew.kernel("x * len(x)")(x).dtype


@pytest.mark.parametrize("spelling", DTYPES)
def test_positions(spelling: str) -> None:
    """Positions count as i64 tensors; `float(i)` is weak and changes no floating dtype."""
    for dims in (0, 1):
        x = tensor(spelling, dims)
        wanted = result_type(x, torch.arange(16))
        shape = {"shape": (16,)} if not dims else {}
        for text in ("x * i", "i < 8: x; else i"):
            if wanted is None:
                with pytest.raises(ew.SpecError, match="`i` is i64, as whole numbers that vary are"):
                    ew.kernel(text)(x=x, **shape)
            else:
                assert ew.kernel(text)(x=x, **shape).dtype == wanted, (text, dims)
        weak = ew.kernel("x * float(i)")(x=x, **shape)
        assert weak.dtype == torch.result_type(x, 1.0)


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("of", DTYPES)
def test_stores(of: str, to: str) -> None:
    """`dtype=` or an `out` of another dtype converts at the store where torch's `out=` would, else an error."""
    x, into = tensor(of, 1), torch.zeros(16, dtype=DTYPES[to])
    fits = torch.can_cast(DTYPES[of], DTYPES[to])
    rule = ew.kernel("i < n//2: x; else x")
    if not fits:
        with pytest.raises(RuntimeError, match="can't be cast"):
            torch.mul(x, 1, out=into)
        for option in ({"out": into}, {"dtype": DTYPES[to]}, {"dtype": to}):
            with pytest.raises((ew.SpecError, TypeError), match="cannot be stored as"):
                rule(x=x, **option)
        return
    got = rule(x=x, dtype=to)
    assert got.dtype == DTYPES[to]
    assert rule(x=x, out=into) is into
    assert same(got, into) and rule.check(x=x, dtype=to)
    theirs = torch.zeros(16, dtype=DTYPES[to])
    if torchs(lambda: torch.mul(x, torch.ones((), dtype=x.dtype), out=theirs)) is not None:
        assert same(got, theirs), (of, to, got, theirs)


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("of", DTYPES)
def test_casts(of: str, to: str) -> None:
    """float -> int truncates, saturates, NaN gives 0; int -> int wraps; a cast that names a dtype is never weak."""
    x = tensor(of, 1)
    got = ew.kernel(f"{to}(x)")(x)
    assert got.dtype == DTYPES[to] and ew.kernel(f"{to}(x)").check(x)
    if DTYPES[of].is_floating_point and not DTYPES[to].is_floating_point and to != "bool":
        low, high = torch.iinfo(DTYPES[to]).min, torch.iinfo(DTYPES[to]).max
        assert got.tolist() == [min(max(int(v), low), high) for v in x.tolist()]
    else:
        assert same(got, x.to(DTYPES[to]))
