# SPDX-License-Identifier: Apache-2.0
"""`python -m elsewise new`: a file to start from, with a rule, a call, a check against plain torch and its time. What
its arguments are is found by trying them; it parses no rule, and overwrites no file."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._errors import SpecError
from ._kernel import Kernel, kernel

SHAPES = ((1_000_000,), (1_000, 1_000), (100, 100, 100), (50, 20, 50, 20))  # of a million elements
OWN = {  # names of the file itself
    *("check", "copy", "copy_us", "ew", "first", "last", "microseconds", "np"),
    *("random", "result", "rule", "rule_us", "time", "torch"),
}
NUMBERS = ("3", "0.5", "True")  # a count, a factor, a switch


class Tensor(NamedTuple):
    """A tensor argument, and what makes it in torch and in NumPy; `{shape}` stands for the domain."""

    what: str
    torch: str
    numpy: str


TENSORS = (
    Tensor("float32", "torch.randn(shape, device=device)", "random.standard_normal(shape, np.float32)"),
    Tensor("int64", "torch.randint(-100, 100, shape, device=device)", "random.integers(-100, 100, shape)"),
    Tensor("bool", "torch.rand(shape, device=device) < 0.5", "random.random(shape) < 0.5"),
)


def new(rule: str, path: Path | None) -> int:
    """Writes the file, or prints it without a path. 1: the rule is wrong; 2: the file is there already."""
    try:
        made = kernel(rule)
        shape, values = find(made)
    except SpecError as error:
        print(error, file=sys.stderr)
        return 1
    except (TypeError, ValueError) as error:
        print(f"no arguments were found that this rule takes: {error}", file=sys.stderr)
        return 1
    text = render(rule, shape, values)
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


def find(rule: Kernel) -> tuple[tuple[int, ...], dict[str, Tensor | str]]:
    """A shape, and for each argument a tensor or a number, with which the rule runs. Raises the first attempt's error
    if there are none."""
    first: Exception | None = None
    random = np.random.default_rng(0)
    for shape, values in _attempts(rule):
        small = tuple(min(length, 4) for length in shape)
        given = {
            name: eval(value.numpy, {"random": random, "np": np, "shape": small})
            if isinstance(value, Tensor)
            else eval(value)
            for name, value in values.items()
        }
        tensors = any(isinstance(value, Tensor) for value in values.values())
        try:
            rule(**given, **({} if tensors else {"shape": small}))
        except (SpecError, TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
            first = first or error
        else:
            return shape, values
    assert first is not None
    raise first


def _attempts(rule: Kernel) -> Iterator[tuple[tuple[int, ...], dict[str, Tensor | str]]]:
    """Likely ones first: the main input is a tensor, the others are numbers; what a guard sets beside positions alone
    counts them."""
    main = "x" if "x" in rule.arguments else None
    guards = [line.partition(" => ")[0] for line in str(rule.emit("ast")).splitlines() if " => " in line]
    choices: list[tuple[Tensor | str, ...]] = []
    for name in rule.arguments:
        naming = [set(re.findall(r"\w+", guard)) for guard in guards if re.search(rf"\b{name}\b", guard)]
        if name == main:
            choices.append(TENSORS)
        elif any(main not in names for names in naming):
            choices.append((*NUMBERS, *TENSORS))
        else:
            choices.append((NUMBERS[1], NUMBERS[0], NUMBERS[2], *TENSORS))
    for shape in SHAPES:
        for values in itertools.islice(itertools.product(*choices), 500):
            yield shape, dict(zip(rule.arguments, values))


def render(rule: str, shape: tuple[int, ...], values: dict[str, Tensor | str]) -> str:
    """The file's text."""
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    numbers = {name: value for name, value in values.items() if isinstance(value, str)}
    main = "x" if "x" in tensors else next(iter(tensors), None) if len(values) == 1 else None
    arguments = [_variable(name) if name == main else f"{name}={_variable(name)}" for name in (*tensors, *numbers)]
    new = ", ".join(arguments if tensors else [*arguments, "shape=shape", "device=device"])
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
            "# parameters: passed at each call, so a new value compiles nothing; a tensor would be read by position",
            *(f"{_variable(name)} = {number}" for name, number in numbers.items()),
            "",
        ]
    if tensors:
        lines += [
            "# tensors: of any strides, and of shapes that broadcast",
            "if torch is not None:",
            *(f"    {_variable(name)} = {tensor.torch}" for name, tensor in tensors.items()),
            "else:",
            "    random = np.random.default_rng(0)",
            *(f"    {_variable(name)} = {tensor.numpy}" for name, tensor in tensors.items()),
            "",
        ]
    lines += [
        f"result = rule({new})  # a new {'result' if tensors else 'result of this shape, since no argument has one'}",
        f"rule({into})  # into memory that you have" + (", an input's own too" if tensors else ""),
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
    return f"{name}_" if name in OWN else name


def _quoted(rule: str) -> str:
    """A literal of the rule, on lines as it has them if it can be."""
    if "\\" in rule or '"' in rule or (not rule.isprintable() and not rule.replace("\n", "").isprintable()):
        return repr(rule)
    return f'"""{rule}"""' if "\n" in rule else f'"{rule}"'
