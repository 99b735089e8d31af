# SPDX-License-Identifier: Apache-2.0
"""The emitted CUDA C as text, and what NVRTC makes of it: laid out as clang-format would, straight bodies that move 16
bytes at a time and compare no position. Nothing runs here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import elsewise as ew
import pytest

from .conftest import SEED

ROOT = Path(__file__).resolve().parents[2]
CI = os.environ.get("CI", "").lower() in ("1", "true")
ARCHS = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]
FLOATS = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
INTEGERS = {"u8": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u16": 2, "u32": 4, "u64": 8}
# The seed rule in arithmetic that keeps each dtype: `x*0.5` would make f32 of a whole number, `x*2` i64 of a bool.
RULES: dict[str, tuple[str, str, int]] = {
    **{d: (SEED, d, size) for d, size in FLOATS.items()},
    **{d: ("i<n/4: x*3; i>=n-n/4: x*2; else x", d, size) for d, size in INTEGERS.items()},
    "bool": ("i<n/4: not x; i>=n-n/4: x and true; else x", "bool[1]", 1),
}


def nvrtc(kernel: ew.Kernel, stage: str, arch: str, **kinds: str) -> str | bytes:
    """A stage that NVRTC makes. Without one the test is skipped in sight; CI brings one."""
    try:
        return kernel.emit(stage, arch=arch, **kinds)
    except RuntimeError as error:
        if CI or "no NVRTC was found" not in str(error):
            raise
        pytest.skip(str(error).partition("\n")[0])


# --- bytes in words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_words_do_what_bytes_do(dtype: str, tmp_path: Path) -> None:
    """Every byte beside every other: what a body makes of four at once is what it makes of each."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ here")
    shifts = [f"{side} {op} {by}" for side in ("x", "(x ^ y)") for op in ("<<", ">>") for by in range(8)]
    rules = [*shifts, "x & y", "x | ~y", "~(x ^ 37)", "(x & 15) | (y << 4)", "(x >> 2 & y) << 3 ^ x >> 1"]
    parts, tests = [], []
    for number, rule in enumerate(rules):
        kernel = ew.kernel(rule)
        text = kernel.emit("cuda", **dict.fromkeys(kernel.arguments, dtype))
        assert "piece1x4(" in text, rule
        parts.append(f"namespace rule{number} {{\n" + text.partition('extern "C"')[0] + "}")
        given = "x, y" if "y" in rule else "x"
        lanes = [f"lane(rule{number}::piece1x4({given.replace('x', 'a').replace('y', 'b')}), {k})" for k in range(4)]
        bytes_ = [
            f"rule{number}::piece1({given.replace('x', f'lane(a, {k})').replace('y', f'lane(b, {k})')})"
            for k in range(4)
        ]
        same = " && ".join(f"{w} == (byte){b}" for w, b in zip(lanes, bytes_))
        tests.append(f"    if (!({same})) return {number + 1};")
    kind = "signed char" if dtype == "i8" else "unsigned char"
    program = "\n".join(
        [
            "#define __device__",
            f"typedef {kind} byte;",
            "byte lane(unsigned w, int k) { return (byte)(w >> 8 * k); }",
            *parts,
            "int main() {",
            "  for (unsigned n = 0; n < 65536; ++n) {",
            "    const unsigned x = n & 255, y = n >> 8, a = x | (255 - x) << 8 | y << 16 | x << 24;",
            "    const unsigned b = y | x << 8 | (255 - x) << 16 | (y ^ 85) << 24;",
            *tests,
            "  }",
            "}",
        ]
    )
    source, binary = tmp_path / "words.cpp", tmp_path / "words"
    source.write_text(program)
    subprocess.run([compiler, "-std=c++17", "-O1", "-w", "-o", binary, source], check=True)
    failed = subprocess.run([binary], check=False).returncode
    assert failed == 0, rules[failed - 1]


# --- PTX -------------------------------------------------------------------------------------------------------------


@dataclass
class Block:
    """A basic block: bytes of its global loads and stores, one number an instruction, and its comparisons."""

    loads: list[int] = field(default_factory=list)
    stores: list[int] = field(default_factory=list)
    compares: list[str] = field(default_factory=list)


ACCESS = re.compile(r"(ld|st)\.global(?:\.[a-z]+)*?(?:\.v(\d))?\.[bsuf](\d+)\s")


def blocks(ptx: str) -> list[Block]:
    """Basic blocks of the entry, in order: each ends at a label or behind a branch."""
    found = [Block()]
    for line in ptx[ptx.index(".entry") :].splitlines():
        text = line.strip()
        if text.startswith(("$", "ret")):
            found.append(Block())
        access = ACCESS.match(text)
        if access:
            size = int(access[2] or 1) * int(access[3]) // 8
            (found[-1].loads if access[1] == "ld" else found[-1].stores).append(size)
        if re.match(r"setp\.\w+(\.\w+)?\.[bsu](32|64)\s", text):  # positions have 32 or 64 bits, bools 16
            found[-1].compares.append(text)
        if re.match(r"(@!?%p\d+\s+)?bra", text):
            found.append(Block())
    return found


def wrong_bodies(ptx: str, bodies: int, loads: int, stores: int) -> list[str]:
    """What is wrong with the straight bodies: there must be `bodies` blocks that store whole vectors, each of them
    loading `loads` bytes a thread or none, storing `stores`, always 16 bytes an instruction (or all, if they are
    fewer), and comparing no position."""
    wrong = []
    straight = [b for b in blocks(ptx) if sum(b.stores) == stores and len(b.stores) == max(1, stores // 16)]
    if len(straight) != bodies:
        wrong.append(f"{len(straight)} blocks store a vector of {stores} bytes, not {bodies}")
    for block in straight:
        if any(size != min(16, stores) for size in block.stores):
            wrong.append(f"stores of {block.stores} bytes")
        if block.loads and (sum(block.loads) != loads or any(size != min(16, loads) for size in block.loads)):
            wrong.append(f"loads of {block.loads} bytes, not {loads} in all")
        wrong += [f"compares a position: {compare}" for compare in block.compares]
    return wrong


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", RULES)
def test_straight_bodies_move_vectors_and_compare_nothing(dtype: str, arch: str) -> None:
    rule, kind, _ = RULES[dtype]
    ptx = nvrtc(ew.kernel(rule), "ptx", arch, x=kind)
    assert isinstance(ptx, str)
    wrong = wrong_bodies(ptx, bodies=3, loads=16, stores=16)
    if dtype == "bool":  # the truth of a byte, not a position, is what is compared with 0
        wrong = [w for w in wrong if not re.fullmatch(r"compares a position: setp\.(eq|ne)\.s32 \t%p\d+, %r\d+, 0;", w)]
    assert wrong == []


@pytest.mark.parametrize(
    ("rule", "kinds", "loads", "stores"),
    [
        (SEED, {"x": "i8"}, 4, 16),  # V = 4 positions: 16 bytes of f32
        (SEED, {"x": "i64"}, 32, 16),  # 32 bytes in are two loads
        ("i<n/4: x*2; i>=n/2: x+1; else f32(x)", {"x": "f16"}, 8, 16),
        ("i<n/4: i8(x); i>=n/2: i8(x+1); else i8(x*2)", {"x": "f64"}, 32, 4),
    ],
)
def test_straight_bodies_of_mixed_dtypes(rule: str, kinds: dict[str, str], loads: int, stores: int) -> None:
    ptx = nvrtc(ew.kernel(rule), "ptx", "sm_80", **kinds)
    assert isinstance(ptx, str)
    assert wrong_bodies(ptx, bodies=3, loads=loads, stores=stores) == []


def test_the_check_of_bodies_can_fail() -> None:
    """A control: the same check on PTX that is wrong in each way it looks for."""
    good = """.visible .entry elsewise(
    setp.eq.s16 %p8, %rs6, 1;
    @%p8 bra $L__BB0_5;
    ld.global.nc.v4.u32 {%r27, %r28, %r29, %r30}, [%rd7];
    st.global.v4.u32 [%rd8], {%r27, %r28, %r29, %r30};
    bra.uni $L__BB0_6;
$L__BB0_5:
    ld.global.nc.v2.f64 {%fd1, %fd2}, [%rd7];
    setp.nan.f32 %p3, %f1, %f1;
    st.global.v2.f64 [%rd8], {%fd1, %fd2};
$L__BB0_6:
    ret;
"""
    assert wrong_bodies(good, 2, 16, 16) == []
    scalar = good.replace("st.global.v2.f64 [%rd8], {%fd1, %fd2};", "st.global.f64 [%rd8], %fd1;\n" * 2)
    assert wrong_bodies(scalar, 2, 16, 16) != []
    assert wrong_bodies(good.replace("nc.v2.f64", "nc.f64"), 2, 16, 16) == ["loads of [8] bytes, not 16 in all"]
    compares = good.replace("setp.nan.f32 %p3, %f1, %f1", "setp.lt.s32 %p3, %r1, %r2")
    assert wrong_bodies(compares, 2, 16, 16) == ["compares a position: setp.lt.s32 %p3, %r1, %r2;"]
    assert wrong_bodies(good, 3, 16, 16) == ["2 blocks store a vector of 16 bytes, not 3"]


def test_the_check_of_bodies_fails_on_real_code() -> None:
    """Another control, through NVRTC: lanes that a guard on data chooses are not three straight bodies."""
    ptx = nvrtc(ew.kernel("x<0: x*0.5; i>=n-n/4: x*2; else x"), "ptx", "sm_80")
    assert isinstance(ptx, str)
    assert wrong_bodies(ptx, bodies=3, loads=16, stores=16) != []


# --- text ------------------------------------------------------------------------------------------------------------

# Each form of text: straight bodies, lanes, masks on one line and on many, casts, shared subexpressions, long lists.
PROGRAMS: list[tuple[str, dict[str, str]]] = [
    (SEED, {}),
    ("x", {}),
    ("x*2", {"x": "f64"}),
    ("i<n/2: x; else -inf", {"x": "bf16"}),
    ("3<=i<n-2: x**2; i==1 or i>5: x//2; else x%3", {}),
    ("i%3==0: x*i; else x", {}),
    ("x!=x: 0; i<k: x*g; else y", {"k": "int", "g": "float", "y": "f16"}),
    ("clip(x, lo, hi) + sqrt(abs(x)) * sqrt(abs(x))", {"lo": "float", "hi": "float"}),
    ("where(x>0 and y>0, x*y, where(x<0, -x, y)) / (x*x + y*y + 1)", {}),
    ("(x+y)*(x-y)*(x+y)*(x-y)/(x*y+1)/(x*y-1) + floor(x*y+1)*ceil(x*y-1)", {"x": "f16", "y": "i32"}),
    ("~(x<<3) ^ y//7 & 63 | (-x)**3", {"x": "i8", "y": "i8"}),
    ("i<1: 1; i<3: 2; 5<=i<n/7: 3; i>=n-3 or i==9: 4; 20<=i<n/3: 5; 30<=i<n/2: 6; else x", {}),
    ("; ".join(f"i<{k}*n//40: x*{k}.25" for k in range(1, 40)) + "; else x", {}),
    ("a+b+c+d+e+f+g+h", dict.fromkeys("abcdefgh", "f32")),
    ("i < first: out_*rows_; else threadIdx + blockIdx", {"first": "int"}),
]


def clang_format() -> str:
    beside = Path(sys.executable).parent / "clang-format"
    found = str(beside) if beside.exists() else shutil.which("clang-format")
    if not found:
        if CI:
            pytest.fail("clang-format is not installed (pip install clang-format)")
        pytest.skip("clang-format is not installed (pip install clang-format)")
    return found


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(("rule", "kinds"), PROGRAMS, ids=[str(k) for k in range(len(PROGRAMS))])
def test_text_is_laid_out_as_clang_format_would(rule: str, kinds: dict[str, str], in_place: bool) -> None:
    text = ew.kernel(rule).emit("cuda", in_place=in_place, **kinds)
    assert isinstance(text, str)
    command = [clang_format(), f"--style=file:{ROOT / '.clang-format'}", "--assume-filename=rule.cu"]
    formatted = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    assert plain_tables(formatted) == plain_tables(text)


def plain_tables(text: str) -> str:
    """Tables of constants with single blanks: clang-format sets their entries in columns, and we do not."""
    return re.sub(r"constants\d+\[\] = \{[^}]*\};", lambda table: re.sub(r"\s+", " ", table[0]), text)


# The form of short rows, which a signature alone does not ask for.
FLAT: list[tuple[str, list[str]]] = [
    ("[r, t]; t < len(t)/4: x*0.5; t >= len(t)-len(t)/4: x*2; else x", []),
    ("[a, b, h, t]; t < lens[h]: x + y; t == b: x*i; else g*a", ["--arg=lens:i32[1]", "--arg=g:float", "--arg=y:f16"]),
    ("[r, c]; c <= r: x; r < i < 3*r: 1; else rand(g)", ["--window", "--in-place", "--arg=g:int"]),
    ("i%3==0: x*i; x>z: z; else x", ["--rows=3", "--arg=z:f32[0]", "--arg=x:u8"]),
]


@pytest.mark.parametrize(("rule", "options"), FLAT, ids=[str(k) for k in range(len(FLAT))])
def test_the_form_of_short_rows_is_laid_out_and_compiles(rule: str, options: list[str]) -> None:
    # As the installed command does, which finds pip's NVRTC.
    command = [sys.executable, "-c", "from elsewise._ewc import main; main()", "-e", rule, "--flat", *options]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    layout = [clang_format(), f"--style=file:{ROOT / '.clang-format'}", "--assume-filename=rule.cu"]
    assert subprocess.run(layout, input=text, capture_output=True, text=True, check=True).stdout == text
    for arch in ARCHS:
        done = subprocess.run([*command, "--emit=ptx", f"--arch={arch}"], capture_output=True, text=True, check=False)
        if done.returncode and not CI and "no NVRTC was found" in done.stderr:
            pytest.skip(done.stderr.partition("\n")[0])
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("rule", "kinds"), PROGRAMS, ids=[str(k) for k in range(len(PROGRAMS))])
def test_programs_compile_for_every_architecture(rule: str, kinds: dict[str, str]) -> None:
    kernel = ew.kernel(rule)
    for arch in ARCHS:
        cubin = nvrtc(kernel, "cubin", arch, **kinds)
        assert isinstance(cubin, bytes)
        assert cubin[:4] == b"\x7fELF"


def test_the_first_rule_is_short_and_has_no_numbered_temporaries() -> None:
    text = ew.kernel(SEED).emit("cuda", x="f32")
    assert isinstance(text, str)
    assert text == (ROOT / "tests/lit/emit-cuda/Inputs/seed.cu").read_text()
    assert len(text.splitlines()) <= 50
    assert not re.search(r"\b(t|tmp|temp|v|r)\d+\b", text)
    assert "#include" not in text


def test_a_missing_nvrtc_says_where_it_was_looked_for(tmp_path: Path) -> None:
    program = (
        "import elsewise as ew\n"
        f"ew._elsewise.set_nvrtc_paths([{str(tmp_path)!r}]) if hasattr(ew._elsewise, 'set_nvrtc_paths') else None\n"
        "try: ew.kernel('x').emit('ptx', arch='sm_80')\n"
        "except RuntimeError as error: print(error)\n"
    )
    env = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH")}
    env["ELSEWISE_NVRTC"] = str(tmp_path / "nowhere")
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True)
    if not run.stdout:
        pytest.skip("an NVRTC is installed where the loader always looks")
    assert "pip install nvidia-cuda-nvrtc" in run.stdout
    assert f"{tmp_path / 'nowhere'}: not there" in run.stdout
    assert "/usr/local/cuda/lib64" in run.stdout


@pytest.mark.parametrize("rule", ["min(-x, k)", "min(7 - x, k)", "max(x*3, k)", "x % 2 == 0: min(-x, k); else x"])
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_bytes_of_a_vector_get_their_sign(rule: str, arch: str) -> None:
    """NVRTC 13 left out some where it saw that bytes came from one word: `min` compared 16 bits with rubbish above."""
    ptx = nvrtc(ew.kernel(rule), "ptx", arch, x="i8", k="int")
    assert isinstance(ptx, str)
    worked, signed = (
        len(re.findall(r"(min|max)\.s16", ptx)),
        len(re.findall(r"cvt\.(s(16|32)\.s8|s8\.s(16|32))\s", ptx)),
    )
    assert worked > 0
    assert signed >= worked


@pytest.mark.parametrize(
    "rule", ["0 <= abs(v): 1; else 0", "where(v < 0, 0 - v, v)", "max(v, -v)", "where(v < 0, -v, v)"]
)
@pytest.mark.parametrize("dtype", ["i16", "i32", "i64"])
def test_a_magnitude_is_no_instruction_of_its_own(rule: str, dtype: str) -> None:
    """ptxas takes the sign of abs.s64 to be plus (CUDA 13.0, sm_90), and the least integer is its own magnitude."""
    ptx = nvrtc(ew.kernel(rule), "ptx", "sm_90", v=dtype)
    assert isinstance(ptx, str)
    assert not re.search(r"\babs\.s", ptx)
