# SPDX-License-Identifier: Apache-2.0
"""`python -m elsewise new`: the files it writes run as they are, with torch and without, and it overwrites none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import elsewise as ew
import pytest
from elsewise import _new

from .conftest import python

RULES = [
    "i<n/4: x*0.5; i>=n-n/4: x*2; else x",
    "i<128: x*a; i>=n-m: min(x, c); else x*b",
    "i < edge: 0; else x*gain",
    "x*(1 - float(i)/n)",
    "2*i < n: i; else i-n",
    "float(i)/n",
    "x & 1",
    "not x",
    "where(flag, x, 0)",
    "isnan(x): 0; x > hi: hi; else x",
    "a*s + b*(1 - s)",
    "q*s",
    "x << k",
    "x + y*time - rule*result",
    "\ni == 0: x*2\nelse x  # the first one",
    "i%2 == 0: f16(x); else 0",
    "[ch, t]\nt < rise: x*(float(t)/rise)\nt >= len(t) - fall: x*(float(len(t)-1-t)/fall)\nelse x",
    "[.., q, k]; k > q: -inf; else x - slope*float(q - k)",
    "[a, b, c, d]; border() < edge: 0; else x",
    "lut[clip(int(x), 0, len(lut)-1)]",
    "lut[clip(idx[i], 0, len(lut)-1)]*x",
    "a[i] + x",
    "q*s[i/2]",
    "x*w[i*k + 1]",
    "[b, t]; t < lens[b]: x*gain; else 0",
    "[y, x, c]; border(y, x) < w: color[c]; else img",
    "[r, c]; tab[r*len(c) + c]*x",
    "[r, c]; x[c, r]",
    "0 < i < n-1: (v[i-1] + v[i+1])/2; else v",
    "[.., d]; d+1 < len(d): x[.., d+1]; else x",
    "let q = 3*m; i < q: x; else w[i//q]",
    "rand(seed) < p: 0; else x/(1-p)",
    "x*min + max*print",
]


def command(*arguments: str, code: int = 0, **env: str) -> tuple[str, str]:
    done = python(*arguments, code=code, **env)
    return done.stdout, done.stderr


def written(rule: str, path: Path) -> Path:
    assert _new.new(rule, path) == 0
    return path


@pytest.mark.parametrize("rule", RULES)
def test_what_is_written_runs(rule: str, tmp_path: Path, torch: object) -> None:
    """Within this process, for speed: the file is a script that needs nothing of its surroundings."""
    text = written(rule, tmp_path / "start.py").read_text()
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(text, "start.py", "exec"), names)
    assert isinstance(names["rule"], ew.Kernel) and names["rule"].spec == rule
    assert type(names["result"]).__module__ == "torch"


@pytest.mark.parametrize("rule", [RULES[1], RULES[4], RULES[7]])
def test_with_numpy_alone(rule: str, tmp_path: Path) -> None:
    path = written(rule, tmp_path / "start.py")
    (tmp_path / "torch.py").write_text("raise ImportError('hidden')")  # beside the script, so it comes first
    out, _ = command(str(path))
    assert "not checked, since torch is not installed" in out and " us a call" in out


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "start.py"
    said, _ = command("-m", "elsewise", "new", RULES[1], "--out", str(path))
    assert said == f"wrote {path}: python {path}\n"
    out, _ = command(str(path))
    assert "against plain torch: Check(ok, 1000000 elements)" in out or "not checked" in out
    assert path.read_text() == command("-m", "elsewise", "new", RULES[1])[0]


@pytest.mark.parametrize("rule", [RULES[0], RULES[4], RULES[13], 'x*2 # "quoted" \\n'])
def test_what_is_written_is_well_laid_out(rule: str, tmp_path: Path) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    path = written(rule, tmp_path / "start.py")
    for check in (
        ["format", "--diff", "--line-length=120"],
        ["check", "--isolated", "--select=E,F,I,B", "--line-length=120"],
    ):
        done = subprocess.run([ruff, *check, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "start.py"
    path.write_text("mine")
    assert _new.new("x*2", path) == 2 and path.read_text() == "mine"
    assert "exists, and is left as it is" in capsys.readouterr().err
    assert _new.new("x*2", tmp_path / "nowhere" / "start.py") == 2
    assert "cannot be written: No such file" in capsys.readouterr().err


def test_a_wrong_rule_shows_its_place(tmp_path: Path) -> None:
    path = tmp_path / "start.py"
    _, said = command("-m", "elsewise", "new", "i < n/4: x*(i/n); else x", "--out", str(path), code=1)
    assert "^" in said and "i//n" in said and "Traceback" not in said
    assert not path.exists()


@pytest.mark.parametrize("rule", ["x[i-1]", "i < 3: lowest; else highest"])
def test_where_no_arguments_are_found_that_is_said(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _new.new(rule, None) == 1
    out, said = capsys.readouterr()
    assert not out and said.startswith("no arguments were found that this rule takes; the first that were tried: ")


def found(rule: str) -> dict[str, str]:
    values = _new.find(ew.kernel(rule)).values
    return {name: value if isinstance(value, str) else value.numpy for name, value in values.items()}


def test_a_parameter_beside_positions_is_a_count_and_others_are_factors() -> None:
    values = _new.find(ew.kernel("i < edge: 0; x > hi: hi; else x*gain")).values
    assert values["x"] == _new.tensors("shape")[0] and values["edge"] == "3" and values["hi"] == values["gain"] == "0.5"


def test_what_is_compared_with_a_share_is_one() -> None:
    assert found("rand(seed) < p: 0; else x/(1-p)")["p"] == "0.5" and found("i < p*n: 0; else x")["p"] == "0.5"
    assert found("float(i)/n < p: 0; else x")["p"] == "0.5"


def test_the_main_input_need_not_be_called_x() -> None:
    assert "(shape," in found("[b, h, q, k]; k > q: -inf; else s")["s"]
    values = found("[.., q, k]; k > q: -inf; else s*scale - slope[q]")
    assert "(shape," in values["s"] and values["scale"] == "0.5" and "(shape[-2],)" in values["slope"]


def test_a_condition_by_itself_is_a_mask() -> None:
    values = found("keep: img; else bg")
    assert values["keep"] == "random.random(shape) < 0.5" and values["img"] == "0.5" and "(shape," in values["bg"]


def test_what_is_read_at_indices_is_as_long_as_they_reach() -> None:
    values = found("[b, t]; t < lens[b]: x*gain; else 0")
    assert values["lens"] == "random.integers(0, shape[1] + 1, (shape[0],))"
    assert "(shape[1], shape[0])" in found("[r, c]; x[c, r]")["x"]
    assert "(8, shape[0])" in found("x + s[0, i%len(s, 1)]")["s"]
    assert "(shape[0] + 3,)" in found("x + w[i+3]")["w"] and "(256,)" in found("x + w[3]")["w"]
