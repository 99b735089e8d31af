# SPDX-License-Identifier: Apache-2.0
"""Measures how far every builtin with a bound in ULP is from the exact value, and writes docs/ulp.md from the results.

    python tools/ulp_table.py measure [--count=1000000] [--device=cpu]     # writes benchmarks/results/ulp-<device>.json
    python tools/ulp_table.py [--check]                                    # writes the page from those files

References are the C library's long doubles: independent of the table's own. The page judges nothing; tests/python and
tests/gpu hold the bounds.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builtins_page import field

ROOT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = ROOT / "docs/ulp.md", ROOT / "benchmarks/results"
DTYPES = ("f32", "f64")


@dataclass(frozen=True)
class Row:
    name: str
    arity: int
    ulp: int  # 0: no bound of its own
    bounded: bool  # Sameness::Ulp
    derivative: str
    torch: str


def rows() -> list[Row]:
    """Rows of grammar/builtins.def, in their order."""
    table = (ROOT / "grammar/builtins.def").read_text()
    found = []
    for text in re.split(r"^(?=\{\.name)", table, flags=re.MULTILINE)[1:]:
        found.append(
            Row(
                field(text, "name", r'"([^"]*)"'),
                int(field(text, "min_arguments", r"(\d+)")),
                int(field(text, "ulp", r"(\d+)", "0")),
                field(text, "sameness", r"Sameness::(\w+)", "Bits") == "Ulp",
                field(text, "derivative", r'"([^"]*)"'),
                field(text, "torch", r'"([^"]*)"'),
            )
        )
    return found


def library(name: str) -> Callable[[Any], Any]:
    """A long double function of the C library that NumPy does not have; ctypes alone would round it to a double."""
    import ctypes

    import numpy as np

    class Long(ctypes.c_longdouble):  # a subclass is not converted
        pass

    function = getattr(ctypes.CDLL("libm.so.6"), name)
    function.argtypes, function.restype = [Long], Long

    def of(x: Any) -> Any:
        found = np.empty_like(x)
        for k, v in enumerate(x):
            found[k] = np.frombuffer(function(Long.from_buffer_copy(v.tobytes())), dtype=np.longdouble, count=1)[0]
        return found

    return of


def gelu(x: Any, erfc: Callable[[Any], Any]) -> Any:
    """x * erfc(-x * sqrt(1/2)) / 2. erfc magnifies what the product rounds away by twice the square of it: that is
    found exactly, and put in by the derivative."""
    import numpy as np

    half = np.longdouble(0.5)
    top = np.rint(np.sqrt(half) * 2**11) / 2**11  # so short that x * top is exact
    rest = (half - top * top) / (np.sqrt(half) + top)
    big, small = -x * top, -x * rest
    z = big + small
    lost = np.where(np.isfinite(z), small - (z - big), 0)
    slope = -2 / np.sqrt(np.longdouble(np.pi)) * np.exp(-z * z)
    return np.where(x == -np.inf, np.nan, half * x * (erfc(z) + slope * lost))


def references() -> dict[str, Callable[..., Any]]:
    """Long doubles to long doubles, of every row that has a bound."""
    import numpy as np

    erfc = library("erfcl")
    return {
        "pow": np.power,
        "exp": np.exp,
        "exp2": np.exp2,
        "expm1": np.expm1,
        "log": np.log,
        "log2": np.log2,
        "log10": np.log10,
        "log1p": np.log1p,
        "sin": np.sin,
        "cos": np.cos,
        "tan": np.tan,
        "asin": np.arcsin,
        "acos": np.arccos,
        "atan": np.arctan,
        "atan2": np.arctan2,
        "hypot": np.hypot,
        "sinh": np.sinh,
        "cosh": np.cosh,
        "tanh": np.tanh,
        "asinh": np.arcsinh,
        "acosh": np.arccosh,
        "atanh": np.arctanh,
        "erf": library("erfl"),
        "erfc": erfc,
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "silu": lambda x: x / (1 + np.exp(-x)),
        "gelu": lambda x: gelu(x, erfc),
        "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    }


SLOW = {"erf", "erfc", "gelu"}  # a call for each element: a tenth of the inputs


def inputs(arity: int, dtype: str, count: int) -> list[Any]:
    """What breaks functions, then bits at random, then everyday sizes."""
    import numpy as np

    kind = np.float32 if dtype == "f32" else np.float64
    info = np.finfo(kind)
    special = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 20.0, 87.5, 88.9, 89.4, 103.5, 709.5, 710.4, 745.0, 1e5, 1e18, 2e18]
    special += [math.pi, math.pi / 2, 1e-3, 1e-10, info.max, info.max / 2, info.tiny, info.tiny / 8, math.inf]
    one = float(np.nextafter(kind(1), kind(0)))
    values = np.array([*special, one, *(-v for v in special), -one, math.nan]).astype(kind)
    random = np.random.default_rng(7)

    def some(n: int) -> Any:
        bits = random.integers(0, 2 ** (8 * kind().itemsize), n, dtype=np.uint64)
        anything = bits.astype(np.uint32 if dtype == "f32" else np.uint64).view(kind)
        everyday = (np.exp2(random.uniform(-9, 8, n)) * random.choice([-1.0, 1.0], n)).astype(kind)
        return np.where(random.random(n) < 0.3, anything, everyday)

    if arity == 1:
        return [np.concatenate([values, some(count)])]
    grid = np.meshgrid(values, values)
    return [np.concatenate([g.ravel(), some(count)]) for g in grid]


def ulps(got: Any, want: Any) -> Any:
    """Distance in units of the last place; infinite where a NaN, an infinity or a zero's sign is wrong."""
    import numpy as np

    bits, least = (24, -149) if got.dtype == np.float32 else (53, -1074)
    with np.errstate(all="ignore"):
        nearest = want.astype(got.dtype)
        _, exponent = np.frexp(want)
        unit = np.ldexp(np.longdouble(1), np.maximum(exponent - bits, least))
        distance = np.abs(got.astype(np.longdouble) - want) / unit
        same = (np.isnan(got) & np.isnan(want)) | (
            (got == nearest) & ((nearest != 0) | (np.signbit(got) == np.signbit(want)))
        )
        broken = np.isnan(got) | np.isnan(want) | np.isinf(got) | np.isinf(nearest) | ((want == 0) & ~same)
    return np.where(same & ~np.isfinite(got), 0, np.where(broken & ~same, np.inf, distance))


@dataclass(frozen=True)
class Worst:
    ulps: float
    at: list[float]


def worst(name: str, arity: int, dtype: str, count: int, *runs: Callable[..., Any]) -> list[Worst]:
    """Greatest distance of each of `runs` from the reference, and where."""
    import numpy as np

    operands = inputs(arity, dtype, count // 10 if name in SLOW else count)
    with np.errstate(all="ignore"):
        want = references()[name](*(x.astype(np.longdouble) for x in operands))
    found = []
    for run in runs:
        error = ulps(run(*operands), want)
        at = int(np.argmax(error))
        found.append(Worst(float(error[at]), [float(x[at]) for x in operands]))
    return found


def ours(row: Row, device: str) -> Callable[..., Any]:
    import elsewise as ew
    import torch

    kernel = ew.kernel(f"{row.name}({', '.join('xy'[: row.arity])})")

    def run(*operands: Any) -> Any:
        tensors = [torch.from_numpy(x).to(device) for x in operands]
        return kernel(**dict(zip("xy", tensors))).cpu().numpy()

    return run


def theirs(row: Row, device: str) -> Callable[..., Any]:
    import torch

    def run(*operands: Any) -> Any:
        tensors = [torch.from_numpy(x).to(device) for x in operands]
        text = (
            row.torch.format(*(f"operands[{k}]" for k in range(row.arity)))
            if row.torch
            else "operands[0] ** operands[1]"
        )
        return eval(text, {"torch": torch, "operands": tensors}).cpu().numpy()

    return run


def measure(count: int, device: str) -> dict[str, Any]:
    """Every row with a bound: {name: {dtype: {"elsewise": {"ulps": …, "at": […]}, "torch": …}}}."""
    result: dict[str, Any] = {}
    for row in rows():
        if row.bounded:
            for dtype in DTYPES:
                both = worst(row.name, row.arity, dtype, count, ours(row, device), theirs(row, device))
                cells = ({"ulps": plain(w.ulps), "at": [plain(v) for v in w.at]} for w in both)
                result.setdefault(row.name, {})[dtype] = dict(zip(("elsewise", "torch"), cells))
    return result


def beyond(kept: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """What a file of results holds that is outside its row's bound, and not torch's own error on the same input."""
    return {
        (row.name, dtype): found
        for row in rows()
        for dtype, found in kept["worst"].get(row.name, {}).items()
        if not float(found["elsewise"]["ulps"]) <= row.ulp and found["elsewise"] != found["torch"]
    }


def plain(value: float) -> float | str:
    """JSON has no infinities."""
    return value if math.isfinite(value) else str(value)


def device_name(device: str) -> str:
    if device == "cpu":
        return "cpu"
    import torch

    return re.sub(r"\W+", "-", torch.cuda.get_device_name())


def save(folder: Path, device: str, count: int) -> Path:
    """Measures; writes ulp-<device>.json."""
    import torch

    path = folder / f"ulp-{device_name(device)}.json"
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda if device != "cpu" else None}
    kept = {"device": device_name(device), **versions, "inputs": count, "worst": measure(count, device)}
    path.write_text(json.dumps(kept, indent=1) + "\n")
    return path


def shown(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "not measured yet"
    value = float(cell["ulps"])
    return "wrong" if math.isinf(value) else f"{value:.2f}" if value < 1000 else f"{value:.0e}"


def page() -> str:
    kept = {path.stem[len("ulp-") :]: json.loads(path.read_text()) for path in sorted(RESULTS.glob("ulp-*.json"))}
    cpu = kept.pop("cpu")
    columns: dict[str, Any] = {"CPU": cpu, **(kept or {"GPU": None})}
    lines = [
        "<!-- made by tools/ulp_table.py from grammar/builtins.def and benchmarks/results/ulp-*.json -->",
        "# How exact the functions are",
        "",
        "The greatest distance from the exact value that was found, in units of the last place (ULP), and the bound",
        "that the tests hold. Beyond it a device may be only where torch is too, by the same error on the same input.",
        "`wrong`: an infinity, a NaN or a zero where the exact value is a number, or the reverse.",
        "Operators and functions that are not listed are correctly rounded, or have the same bits everywhere by their",
        "definition.",
        "",
    ]
    for name, found in columns.items():
        if found is not None:
            cuda = f", CUDA {found['cuda']}" if found["cuda"] else ""
            lines.append(f"- {name}: {found['inputs']} inputs a function, beside torch {found['torch']}{cuda}")
    lines += ["", "| function | bound |" + "".join(f" {c} {t} | torch {c} {t} |" for c in columns for t in DTYPES)]
    lines += ["|---|---|" + "---|---|" * (len(DTYPES) * len(columns))]
    for row in rows():
        if not row.bounded:
            continue
        cells = [
            (found and found["worst"].get(row.name, {}).get(t)) or {} for found in columns.values() for t in DTYPES
        ]
        text = "".join(f" {shown(c.get('elsewise'))} | {shown(c.get('torch'))} |" for c in cells)
        lines.append(f"| `{row.name}` | {row.ulp or 'as torch'} |{text}")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["measure", "page"], default="page")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    if options.what == "measure":
        print(save(RESULTS, options.device, options.count))
        return 0
    if options.check:
        return int(not PAGE.exists() or PAGE.read_text() != page())
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
