# SPDX-License-Identifier: Apache-2.0
"""Rules as people write them who come from elsewhere: the first fix-it of each error, applied, gives the rule they
meant. Carets and wordings are tests/lit/errors' business."""

from __future__ import annotations

import elsewise as ew
import numpy as np
import pytest

NBSP = "\u00a0"
MEANT = {
    # conditionals
    "i < 3 ? x : 0": "where(i < 3, x, 0)",
    "i < 3 ? x : i < 5 ? 1 : 2": "where(i < 3, x, where(i < 5, 1, 2))",
    "x if i<3 else 0": "where(i<3, x, 0)",
    "x if i<3 else 1 if i<5 else 2": "where(i<3, x, where(i<5, 1, 2))",
    "if i<3: x; elif i<5: 1; else 0": "i<3: x; i<5: 1; else 0",
    "if i<3: x; else if i<5: 1; else 0": "i<3: x; i<5: 1; else 0",
    "if i<3: x; elseif i<5: 1; else 0": "i<3: x; i<5: 1; else 0",
    "if i<3 then x else 0": "i<3: x; else 0",
    "IF i<3 THEN x ELSE 0": "i<3: x; else 0",
    "if(i<3, x, 0)": "where(i<3, x, 0)",
    "IF(i<3, x, 0)": "where(i<3, x, 0)",
    "when i<3: x; otherwise: 0": "i<3: x; else: 0",
    "i<3: x; otherwise 0": "i<3: x; else 0",
    "i<3: x; default: 0": "i<3: x; else: 0",
    "i<3 -> x; else -> 0": "i<3: x; else: 0",
    "i<3 -> x; _ -> 0": "i<3: x; else: 0",
    "i<3 → x; else 0": "i<3: x; else 0",
    "case i<3: x; case _: 0": "i<3: x; else: 0",
    "i<3, x; else 0": "i<3: x; else 0",
    "i<3: x, i<5: 1, else 0": "i<3: x; i<5: 1; else 0",
    "i<3 x; else 0": "i<3: x; else 0",
    "i<3: x; 0": "i<3: x; else 0",
    "i<3: x: else 0": "i<3: x; else 0",
    "i<3: x else 0": "i<3: x; else 0",
    "i<3: x; ELSE 0": "i<3: x; else 0",
    "i<3 => x; else => 0": "i<3: x; else: 0",
    "i<3: x; esle 0": "i<3: x; else 0",
    "i<3: x els 0": "i<3: x; else 0",
    "x when i<3; else 0": "i<3: x; else 0",
    "i<3 adn x>1: 1; else 0": "i<3 and x>1: 1; else 0",
    "x if i%2 else 0": "where(i%2 != 0, x, 0)",
    "i & 1 ? x : 0": "where((i & 1) != 0, x, 0)",
    "(i & 1): x; else 0": "((i & 1) != 0): x; else 0",
    "~(i & 1): x; else 0": "(i & 1) == 0: x; else 0",
    "(~i): x; else 0": "(i == 0): x; else 0",
    "where(i=0, x, 0)": "where(i==0, x, 0)",
    "where(condition=i<3, x, 0)": "where(i<3, x, 0)",
    "Let a=x; a*2": "let a=x; a*2",
    "var a = x; a*2": "let a = x; a*2",
    "sin x": "sin(x)",
    "2 * exp 3": "2 * exp(3)",
    "x.roll(1)": "x[(i - 1) % n]",
    "x.roll(k+1)": "x[(i - (k+1)) % n]",
    "roll(x, 1)": "x[(i - 1) % n]",
    "x.flip()": "x[n-1-i]",
    "flip(x)": "x[n-1-i]",
    # functions and assignments
    "lambda x: x*2": "x*2",
    "lambda x, y: x*y": "x*y",
    "x -> x*2": "x*2",
    "(x, y) -> x+y": "x+y",
    "def f(x):\n  return x*2": "x*2",
    "return x*2": "x*2",
    "return (x+1)*2": "(x+1)*2",
    "i<3: return x; else return 0": "i<3: x; else 0",
    "y = x*2": "x*2",
    "out[i] = x*2": "x*2",
    "x[i] = 2*x": "2*x",
    "i<3: y = x; else y = 0": "i<3: x; else 0",
    "x *= 2": "x * 2",
    "i<3: x += 1; else x": "i<3: x + 1; else x",
    # operators
    "i = 3: x; else 0": "i == 3: x; else 0",
    "x * (2^3)": "x * (2**3)",
    "i>3 & i<5: x; else 0": "i>3 and i<5: x; else 0",
    "i<3 | i>5: x; else 0": "i<3 or i>5: x; else 0",
    "i>3 AND i<5: x; else 0": "i>3 and i<5: x; else 0",
    "i<3 Or x>0: x; else 0": "i<3 or x>0: x; else 0",
    "NOT (i<3): x; else 0": "not (i<3): x; else 0",
    "i mod 2 == 0: x; else 0": "i % 2 == 0: x; else 0",
    "i div 2 < 3: x; else 0": "i // 2 < 3: x; else 0",
    "i%%2 == 0: x; else 0": "i%2 == 0: x; else 0",
    "i <> 3: x; else 0": "i != 3: x; else 0",
    "i ~= 3: x; else 0": "i != 3: x; else 0",
    "i =! 3: x; else 0": "i != 3: x; else 0",
    "i === 3: x; else 0": "i == 3: x; else 0",
    "i => 3: x; else 0": "i >= 3: x; else 0",
    "i is 3: x; else 0": "i == 3: x; else 0",
    "i is not 3: x; else 0": "i != 3: x; else 0",
    "i in range(3, 5): x; else 0": "3 <= i < 5: x; else 0",
    "i in range(5): x; else 0": "0 <= i < 5: x; else 0",
    "i in [3, 5): x; else 0": "3 <= i < 5: x; else 0",
    "i in (3, 5]: x; else 0": "3 < i <= 5: x; else 0",
    "i in (1, 3, 5): x; else 0": "(i == 1 or i == 3 or i == 5): x; else 0",
    "i not in [1, 3]: x; else 0": "not ((i == 1 or i == 3)): x; else 0",
    "i between 3 and 5: x; else 0": "3 <= i <= 5: x; else 0",
    "i in 3..5: x; else 0": "3 <= i < 5: x; else 0",
    "3 < i and < 5: x; else 0": "3 < i and i < 5: x; else 0",
    "i > 3 and < 5: x; else 0": "i > 3 and i < 5: x; else 0",
    "i < 2 or > 5: x; else 0": "i < 2 or i > 5: x; else 0",
    "i == 0 or 1: x; else 0": "i == 0 or i == 1: x; else 0",
    "power(x+1, 2)*3": "((x+1)**2)*3",
    "mod(i, 2) == 0: x; else 0": "(i % 2) == 0: x; else 0",
    "np.logical_and(i>3, i<5): x; else 0": "(i>3) and (i<5): x; else 0",
    "AND(i>3, i<5): x; else 0": "(i>3) and (i<5): x; else 0",
    # names
    "clamp(x, 0, 1)": "clip(x, 0, 1)",
    "np.where(i<3, x, 0)": "where(i<3, x, 0)",
    "torch.where(i<3, x, 0)": "where(i<3, x, 0)",
    "torch.clamp(x, 0, 1)": "clip(x, 0, 1)",
    "math.sqrt(x)": "sqrt(x)",
    "np.pi * x": "pi * x",
    "x.abs()": "abs(x)",
    "(x+1).abs()": "abs(x+1)",
    "x.abs().sqrt()": "sqrt(abs(x))",
    "x.clamp(0, 1)": "clip(x, 0, 1)",
    "x.where(i<3, 0)": "where(i<3, x, 0)",
    "x.pow(2)": "pow(x, 2)",
    "(x+1).pow(2)": "pow(x+1, 2)",
    "x.double()": "f64(x)",
    "x.to(torch.float32)": "f32(x)",
    "x.astype(np.float64)": "f64(x)",
    "i < x.numel(): x; else 0": "i < n: x; else 0",
    "i < x.size: x; else 0": "i < n: x; else 0",
    "cfg.gain * x": "cfg_gain * x",
    "x / sum(x)": "x / x_sum",
    "x / x.sum()": "x / x_sum",
    "x > True": "x > true",
    "x[]": "x",
    "x[:]": "x[i]",
    "x[1:3]": "x[1+i]",
    "x[::-1]": "x[len(x)-1-i]",
    "x[:, 0]": "x[.., 0]",
    "x[..., 0]": "x[.., 0]",
    "x[(i)][0]": "x[(i), 0]",
    "x[(i, 0)]": "x[i, 0]",
    "x(i)": "x",
    # literals and characters
    "x * 1e3f": "x * 1e3",
    "x * 0.5f": "x * 0.5",
    "x * 10L": "x * 10",
    "0b101 + x": "5 + x",
    "0o17 + x": "15 + x",
    "1__000 + x": "1000 + x",
    "010 + x": "10 + x",
    "2x": "2*x",
    "2(x+1)": "2*(x+1)",
    "2π*x": "2*pi*x",
    "x²": "x**2",
    "x × 2 ÷ 3 − 1": "x * 2 / 3 - 1",
    "i ≤ n/4: x; i ≥ n-n/4: 0; else 1": "i <= n/4: x; i >= n-n/4: 0; else 1",
    "i ≠ 3: x; else 0": "i != 3: x; else 0",
    "a∧b: x; else 0": "a and b: x; else 0",
    "i<3：x；else 0": "i<3:x;else 0",
    "ｘ*２": "x*2",
    f"x{NBSP}+{NBSP}1": "x + 1",
    "x +\u200b 1": "x + 1",
    "“i<3: x; else 0”": "i<3: x; else 0",
    "'i<3: x; else 0'": "i<3: x; else 0",
    # comments
    "// head\ni<3: x; else 0": "# head\ni<3: x; else 0",
    "/* head */ i<3: x; else 0": " i<3: x; else 0",
    "x*2 // double it": "x*2 # double it",
}


def mend(spec: str) -> tuple[str, list[str]]:
    """The spec after the first fix-it of the first error that has one, again and again; and the messages seen."""
    messages: list[str] = []
    for _ in range(12):
        try:
            ew.kernel(spec)
            return spec, messages
        except ew.SpecError as error:
            mendable = [d for d in error.diagnostics if d.error and d.fixits]
            if not mendable:
                return "incurable: " + str(error), messages
            messages.append(mendable[0].message)
            spec = mendable[0].fixits[0].apply(spec)
    return "endless: " + spec, messages


@pytest.mark.filterwarnings("ignore::elsewise.SpecWarning")
@pytest.mark.parametrize(("wrong", "meant"), MEANT.items())
def test_the_fixits_give_what_was_meant(wrong: str, meant: str) -> None:
    mended, messages = mend(wrong)
    assert mended == meant, messages
    assert messages, "nothing was wrong"


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ("x*1_000", [0.0, 1000.0, 2000.0, 3000.0]),
        ("i<2: x;; else 0", [0.0, 1.0, 0.0, 0.0]),
        ("i<2: x\nelse:\n  0", [0.0, 1.0, 0.0, 0.0]),
        ("i<2:\tx\n\telse\t0", [0.0, 1.0, 0.0, 0.0]),
        ("i>1 && !(x>2) || i==0: 9; else x", [9.0, 1.0, 9.0, 3.0]),
        ("x ** 2", [0.0, 1.0, 4.0, 9.0]),
    ],
)
def test_what_looks_foreign_and_is_not(right: str, expected: list[float]) -> None:
    assert ew.kernel(right)(np.arange(4, dtype=np.float32)).tolist() == expected


def test_powers_of_data_are_told_at_the_call() -> None:
    with pytest.raises(ew.SpecError) as caught:
        ew.kernel("x ^ 2")(np.ones(3, np.float32))
    assert [f.apply("x ^ 2") for f in caught.value.fixits] == ["x ** 2"]


def test_one_message_for_all_blanks() -> None:
    with pytest.raises(ew.SpecError) as caught:
        ew.kernel(f"x{NBSP}+{NBSP}1{NBSP}*\u30002")
    (only,) = caught.value.diagnostics
    assert only.code == "foreign-blank" and "no-break space (U+00A0)" in only.message
    assert only.fixits[0].apply(caught.value.spec) == "x + 1 * 2"
