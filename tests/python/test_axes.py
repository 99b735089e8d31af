# SPDX-License-Identifier: Apache-2.0
"""Rules over named axes on the CPU, against plain torch: layouts, in place, lengths, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import elsewise as ew
import numpy as np
import pytest

torch = pytest.importorskip("torch")


def positions(shape: tuple[int, ...]) -> list[Any]:
    return [torch.arange(n).reshape([-1] + [1] * (len(shape) - 1 - d)) for d, n in enumerate(shape)]


def layouts(shape: tuple[int, ...]) -> Any:
    """The shape in every memory order, with a gap, backwards in memory where NumPy allows it, and repeated."""
    rank = len(shape)
    for order in itertools.permutations(range(rank)):
        yield torch.randn([shape[d] for d in order]).permute([order.index(d) for d in range(rank)])
    yield torch.randn([n + 2 for n in shape])[tuple(slice(1, n + 1) for n in shape)]
    yield torch.randn((1, *shape[1:])).expand(shape)


@pytest.mark.parametrize("shape", [(5, 7, 33), (1, 6, 6), (3, 1, 40), (4, 5, 1), (0, 3, 2)])
def test_rules_on_layouts(shape: tuple[int, ...]) -> None:
    b, h, t = positions(shape)
    n = torch.arange(b.numel() * h.numel() * t.numel()).reshape(shape)
    zero = torch.zeros(())
    face = torch.minimum(torch.minimum(h, shape[1] - 1 - h), torch.minimum(t, shape[2] - 1 - t))
    for x in layouts(shape):
        for rule, want in {
            "[b, h, t]; t <= h: x; else 0": torch.where(t <= h, x, zero),
            "[.., r, c]; c > r + 2: 0; else x*2": torch.where(t > h + 2, zero, x * 2),
            "[b, h, t]; b == 0 and h % 2 == 0: x*2; t < len(t)/4: 0; else x": torch.where(
                (b == 0) & (h % 2 == 0), x * 2, torch.where(t < shape[2] // 4, zero, x)
            ),
            "[.., y, z]; border(y, z) < 2: 0; else x": torch.where(face < 2, zero, x),
            "[b, h, t]; i < n//2 and t < 3: 0; else x": torch.where((n < n.numel() // 2) & (t < 3), zero, x),
            "[b, ..]; x + b": x + b,
        }.items():
            assert torch.equal(ew.kernel(rule)(x), want.broadcast_to(shape)), (rule, x.stride())


def test_an_axis_may_be_called_as_the_flat_position_is() -> None:
    assert ew.kernel("[i, j]; 10*i + j + 100*n")(shape=(2, 3)).tolist() == [[600, 601, 602], [610, 611, 612]]
    assert ew.kernel("[b, n]; 10*i + n + 100*len(n)")(shape=(2, 3)).tolist() == [[300, 311, 322], [330, 341, 352]]


def test_in_place() -> None:
    x = torch.randn(6, 50)
    want = torch.where(torch.arange(50) <= torch.arange(6)[:, None], x, 0.0)
    ew.kernel("[r, c]; c <= r: x; else 0")(x, out=x)
    assert torch.equal(x, want)


def test_lengths_of_arguments_shape_nothing() -> None:
    x, s = torch.ones(2, 10), torch.zeros(3, 4)
    y = ew.kernel("[b, t]; t < len(s): x*len(s, 1); else x")(x, s=s)
    assert torch.equal(y, torch.where(torch.arange(10) < 3, 4.0, 1.0).expand(2, 10))
    with pytest.raises(TypeError, match=r"`len\(s, 1\)`: `s` has 1 axis, shape \(3,\)"):
        ew.kernel("[b, t]; t < len(s, 1): x; else 0")(x, s=torch.zeros(3))


def test_ranks() -> None:
    with pytest.raises(ValueError, match=r"the rule names 3 axes \[b, h, t\], the domain has 2: shape \(4, 5\)"):
        ew.kernel("[b, h, t]; x*t")(torch.ones(4, 5))
    with pytest.raises(ValueError, match=r"the rule names 2 axes \[\.\., r, c\], the domain has 1: shape \(4,\)"):
        ew.kernel("[.., r, c]; x*c")(torch.ones(4))
    assert torch.equal(
        torch.as_tensor(ew.kernel("[r, c]; r*10 + c")(shape=(2, 3))), torch.tensor([[0, 1, 2], [10, 11, 12]])
    )


def test_a_check_of_a_row_that_no_position_reaches() -> None:
    k = ew.kernel("[b, t]; b > 5 and t < 3: x * (t // k); else x")
    x = torch.ones(4, 5)
    assert torch.equal(k(x, k=0), x)
    with pytest.raises(ZeroDivisionError):
        k(torch.ones(7, 5), k=0)


def test_a_fault_of_a_row_that_a_condition_chooses() -> None:
    x = torch.ones(2, 3)
    for rule in ("[r, c]; r < 1: x*(c//k); else x", "[r, c]; r == 1: x*(5//k); else x"):
        with pytest.raises(ZeroDivisionError):
            ew.kernel(rule)(x, k=0)
    with pytest.raises(OverflowError):
        ew.kernel("[r, c]; r == 1: c*k; else 0")(shape=(2, 3), k=2**62)
    assert ew.kernel("[r, c]; r > 1: x*(c//k); else x")(x, k=0).tolist() == x.tolist()


def test_bounds_beyond_64_bits() -> None:
    k = ew.kernel("[b, t]; t < b*k: x; else 0")
    x = torch.ones(3, 4)
    assert torch.equal(k(x, k=2**63), torch.tensor([[0.0] * 4, [1.0] * 4, [1.0] * 4]))
    assert torch.equal(k(x, k=-(2**63)), torch.zeros(3, 4))


def test_emit_with_a_rank() -> None:
    k = ew.kernel("[.., r, c]; c <= r: x; else 0")
    assert "rows over 1 axis" in k.emit("cuda", x="f32")
    assert "rows over 2 axes" in k.emit("cuda", x="f32[4]")
    with pytest.raises(ValueError, match="the rule names 1 axis"):
        ew.kernel("[t]; x*t").emit("cuda", x="f32[2]")


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_zero_position_divides(length: int) -> None:
    """It gives 0, also where the axis has no other position."""
    x, t = torch.ones(2, length), torch.arange(length)
    by = torch.where(t == 0, 0, 5 // t.clamp(min=1)).float().expand(2, length)
    assert torch.equal(ew.kernel("[b, t]; x * (5 // t)")(x), by)
    assert torch.equal(ew.kernel("[b, t]; x * (k // t)")(x, k=5), by)
    assert torch.equal(ew.kernel("[b, t]; 5 // t > 2: x*2; else x")(x), torch.where(by > 2, 2.0, 1.0))
    rest = torch.where(t == 0, 0, 5 % t.clamp(min=1)).float().expand(2, length)
    assert torch.equal(ew.kernel("[b, t]; where(5 % t == 0, x, 0)")(x), (rest == 0).float())
    with pytest.raises(ZeroDivisionError):
        ew.kernel("[b, t]; t // k > 2: x*2; else x")(x, k=0)


def test_a_tensor_asked_for_lengths_has_no_say_in_the_rank() -> None:
    k = ew.kernel("[t]; x * len(s) * t")
    assert k.check(torch.ones(3), s=torch.ones(2, 2))
    assert "rule" in k.emit("torch", x="f32[1]", s="f32[2]")
    with pytest.raises(ValueError, match="the rule names 1 axis"):
        k.emit("torch", x="f32[2]", s="f32[1]")
    with pytest.raises(ValueError, match="the rule names 1 axis"):
        ew.kernel("[t]; t * len(s)").emit("torch", s="f32[2]")


def test_lets_that_share() -> None:
    """What a chain of lets holds twice is looked at once: a hundred of them take no longer than the text."""
    lets = "; ".join(f"let a{j} = (a{j - 1}*a{j - 1}*3 + a{j - 1}) % 7" for j in range(1, 100))
    x = torch.ones(3, 20)
    t = torch.arange(20)
    for _ in range(99):
        t = (t * t * 3 + t) % 7
    k = ew.kernel(f"[b, t]; let a0 = t; {lets}; a99 < 3: x*2; else x")
    assert torch.equal(k(x), torch.where(t < 3, 2.0, 1.0).expand(3, 20))
    doubled = "; ".join(f"let a{j} = a{j - 1} + a{j - 1}" for j in range(1, 40))
    assert "rule" not in ew.kernel(f"[b, t]; let a0 = t; {doubled}; a39 < 3: x*2; else x").emit("cuda", x="f32")
    squares = "; ".join(f"let a{j} = a{j - 1}*a{j - 1}*3 + a{j - 1}" for j in range(1, 60))
    with pytest.raises(OverflowError):
        ew.kernel(f"[b, t]; let a0 = t; {squares}; a59 < 3: x*2; else x")(x)


def test_rules_people_write() -> None:
    """A sliding window, slopes by head, a picture's frame, the far end of an axis: any header, any leading axes."""
    x = torch.randn(2, 3, 9, 9)
    b, h, q, t = positions((2, 3, 9, 9))
    zero = torch.zeros(())
    face = torch.minimum(torch.minimum(q, 8 - q), torch.minimum(t, 8 - t))
    slope = torch.tensor([0.5, 0.25, 0.125]).reshape(3, 1, 1)
    for rule, want in {
        "[.., q, t]; q - w < t <= q: x; else 0": torch.where((q - 3 < t) & (t <= q), x, zero),
        "[.., q, t]; let d = q - t; 0 <= d < w: x; else 0": torch.where((q - 3 < t) & (t <= q), x, zero),
        "[.., h, q, t]; t <= q: x + slope*(t - q); else -inf": torch.where(t <= q, x + slope * (t - q), -torch.inf),
        "[.., y, z]; border(y, z) < w: 0; else x": torch.where(face < 3, zero, x),
        "[b, .., t]; t >= len(t) - len(t)/3 and b == 1: x*2; else x": torch.where((t >= 6) & (b == 1), x * 2, x),
        "[b, ..]; let last = len(b) - 1; b == last: -x; else x": torch.where(b == 1, -x, x),
        "[..]; i < n/2: x; else 0": torch.where(b < 1, x, zero),
        "[..]; x * len(x, -3)": x * 3,
        "[b, h, q, t]; let edge = len(h)/3; h >= len(h) - edge: 0; else x": torch.where(h >= 2, zero, x),
    }.items():
        k = ew.kernel(rule)
        given = {name: value for name, value in {"w": 3, "slope": slope}.items() if name in k.arguments}
        assert torch.equal(k(x, **given), want), rule
        assert k.check(x, **given), rule
        swapped = x.transpose(1, 3).contiguous().transpose(1, 3)
        assert torch.equal(k(swapped, out=swapped, **given), want), rule
    assert float(ew.kernel("[]; x*2")(torch.tensor(4.0))) == 8.0


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        ("[]; x*2", ValueError, r"the rule names 0 axes \[\], the domain has 2: shape \(4, 5\)"),
        ("[r]; x*r", ValueError, r"the rule names 1 axis \[r\], the domain has 2"),
        ("[b, .., r, c]; x*r", ValueError, r"the rule names 3 axes \[b, \.\., r, c\], the domain has 2"),
        ("[r, c]; x*len(x, 2)", TypeError, r"`len\(x, 2\)`: `x` has 2 axes, shape \(4, 5\)"),
        ("[r, c]; x*len(x, -3)", TypeError, r"`len\(x, -3\)`: `x` has 2 axes"),
        ("[r, c]; let r = 1; x*r", ew.SpecError, "`r` is an axis already, and a let hides nothing"),
        ("[r, c]; let a = b; let b = 2; x*a*r", ew.SpecError, "`b` is used before its `let`"),
        ("[r, c]; let a = 1; let a = 2; x*a", ew.SpecError, "`a` is a let already"),
        ("[r, c]; let a = r/2; x*a", ew.SpecError, "divides whole numbers, which has two quotients"),
        ("[r, r]; x", ew.SpecError, "axis `r` is named twice"),
        ("[.., ..]; x", ew.SpecError, "a second `..`"),
        ("[r, c]; border(r, q) < 1: 0; else x", ew.SpecError, "`border` takes names of axes, not `q`"),
        ("[r, c]; border(0) < 1: 0; else x", ew.SpecError, "`border` takes names of axes, not an expression"),
    ],
)
def test_refused(rule: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ew.kernel(rule)(torch.ones(4, 5))


def test_data_beside_bounds_beyond_64_bits() -> None:
    x = torch.tensor([-(2**63), -1, 0, 2**63 - 1])
    for text in (*map(str, (2**64, 1 - 2**64, -(2**63) - 1, 2**100)), "2**64", "1-2**64"):
        positive = eval(text) > 0
        want = x if positive else torch.zeros_like(x)
        assert torch.equal(ew.kernel(f"x < {text}: x; else 0")(x), want), text
        assert torch.equal(ew.kernel(f"[t]; {text} > x: x; else 0")(x), want), text
        below = x.float() if positive else torch.zeros(4)
        assert torch.equal(ew.kernel(f"x < {text}: x; else 0")(x.float()), below), text
    with pytest.raises(OverflowError):
        ew.kernel("x < i + 2**64: x; else 0")(x)


@pytest.mark.parametrize("rule", ["c >= 2", "c == 2", "c % 3 == 2", "c >= 2 and b < 1"])
def test_faults_of_rows(rule: str) -> None:
    """What a piece raises it raises where conditions of rows let a position come to it, and nowhere else."""
    k = ew.kernel(f"[c, b]; {rule}: n//(k - 1); else x")
    x = torch.ones(8, 3, dtype=torch.int64)
    for given in (x, torch.ones(3, 8, dtype=torch.int64).T):
        with pytest.raises(ZeroDivisionError, match="division of whole numbers by zero"):
            k(x=given, k=1)
        assert torch.equal(k(x=given[:2], k=1), given[:2])
        assert k.check(x=given, k=3)


def test_a_piece_that_only_a_row_of_one_position_keeps_has_its_argument() -> None:
    k = ew.kernel("[a]; max(11, border(a)) < reflect(2, 11): y; border(a) != g: z + border(a); else 7")
    for n in (0, 1, 2, 5):
        y = np.full(n, 3, np.float32)
        border = np.minimum(np.arange(n), np.arange(n)[::-1])
        want = np.where(border != 0.5, 2.0 + border, 7)
        assert k(y=y, g=0.5, z=np.array(2.0, np.float32)).tolist() == want.tolist()
