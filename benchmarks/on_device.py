# SPDX-License-Identifier: Apache-2.0
"""Rules on a GPU beside torch's copy, torch operators, torch.compile, Triton and CuPy: what they take, and whether the
bars are met.

    python benchmarks/on_device.py [--only=SUBSTRING] [--quick] [--budget=SECONDS] [--sass]
    python benchmarks/on_device.py --cpu-check     every rule against torch on a CPU, small, without timing
    python benchmarks/on_device.py --plot=RESULT.json

Each result is compared with torch's before it is timed. A time is the median of at least 11 calls, each between two
events, the works of a row in turn; below 2^22 elements after a write of 256 MB where the script in benchmarks/peers
that the bar is from does so. Beside it stand the time behind a busy device, without the caller's own, and the time
after that write at every size. Rows are printed as they end; table, JSON and plots are kept in benchmarks/results/.
Quote ratios of one run, never times of two.
"""

from __future__ import annotations

import argparse
import collections
import gc
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import elsewise as ew
import torch
from _measure import FLUSH_BYTES, RESULTS, Work, event_seconds, facts, in_turn, place
from _rows import COPY, OURS, ROWS, SEED, Bar, Case, Row, Tools, where_seed

Say = Callable[..., None]
Found = dict[str, Any]
MODES = ("idle", "queued", "flushed")
FIELDS = ("REG", "STACK", "LOCAL", "SHARED")


# Right first


def poison(y: torch.Tensor) -> None:
    y.fill_(float("nan") if y.is_floating_point() else 77)


def difference(result: torch.Tensor, want: torch.Tensor, exact: bool) -> str | None:
    """None if they are the same, by bits or within the rounding of another order of operations."""
    if result.shape != want.shape or result.dtype != want.dtype:
        return f"{result.dtype} {tuple(result.shape)}, not {want.dtype} {tuple(want.shape)}"
    if exact:
        return None if torch.equal(result, want) else "wrong result"
    return None if torch.allclose(result, want, rtol=1e-5, atol=1e-5) else "wrong result"


def verified(case: Case) -> tuple[dict[str, Work], dict[str, str]]:
    """The works that give what they must, and why the others do not; ours comes first."""
    want, works, wrong = case.want(), {}, {}
    for name, work in {OURS: case.ours, **case.peers}.items():
        if case.refresh is not None:
            case.refresh()
        else:
            poison(case.out)
        try:
            result = work()
            if case.out.is_cuda:
                torch.cuda.synchronize()
        except Exception as error:  # a peer that does not compile here, for one
            wrong[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
            continue
        why = None if name == "torch.mul" else difference(case.out if result is None else result, want, case.exact)
        if why is None:
            works[name] = work
        else:
            wrong[name] = why
        del result
    return works, wrong


def small_checks(only: str, say: Say) -> int:
    """Every case on the CPU, small: the number of faults."""
    import os

    tools = Tools.found(cuda=False, interpret=os.environ.get("TRITON_INTERPRET") == "1")
    count = faults = 0
    for row in ROWS:
        if only not in row.name:
            continue
        for case in row.cases(tools, "cpu", True):
            works, wrong = verified(case)
            count += 1
            faults += len(wrong)
            for name, why in wrong.items():
                say(f"{row.name}, {case.size}: {name}: {why}")
            say(f"{row.name:<16}{case.size:<36}{', '.join(works)}")
    if hasattr(ew.Kernel, "foreach") and only in "foreach":
        tensors = [torch.randn(64) for _ in range(5)]
        before = [t.clone() for t in tensors]
        ew.kernel("x*g").foreach(tensors, g=-1.0, out=tensors)
        count += 1
        if not all(torch.equal(t, -b) for t, b in zip(tensors, before)):
            faults += 1
            say("foreach: wrong result")
    if count == 0:
        say(f"no row's name holds `{only}`")
        return 1
    say(f"{count} cases, {faults} faults")
    return faults


# Then fast


def kinds(args: dict[str, Any]) -> dict[str, str]:
    return {
        name: f"{str(value.dtype).removeprefix('torch.')}[{value.ndim}]"
        if isinstance(value, torch.Tensor)
        else type(value).__name__
        for name, value in args.items()
    }


def resources(cubin: bytes, sass: bool) -> Found:
    """Registers and memory a thread, and with `sass` the loads and stores by width, as the device's disassembler says.

    The code is that of contiguous arguments, which is what the launch runs in every row but the transposed ones."""
    disassembler = shutil.which("cuobjdump")
    if disassembler is None:
        return {}

    def ask(option: str, path: str) -> str:
        return subprocess.run([disassembler, option, path], capture_output=True, text=True, check=False).stdout

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = ask("--dump-resource-usage", file.name)
        text = ask("-sass", file.name) if sass else ""
    found: Found = {
        field.lower(): int(m[1]) for field in FIELDS if (m := re.search(rf"\b{field}:(\d+)", usage)) is not None
    }
    if sass:
        accesses = collections.Counter()
        for name, modifiers in re.findall(r"\b(LDG|STG|LDL|STL|LDS|STS|LDC)\b((?:\.\w+)*)", text):
            width = re.search(r"\.(U8|S8|U16|S16|64|128)\b", modifiers)
            accesses[f"{name}.{width[1] if width else '32'}"] += 1
        found["accesses"] = dict(sorted(accesses.items()))
        found["sass"] = text
    return found


def emitted(case: Case, sass: bool) -> Found:
    kernel, of = ew.kernel(case.rule), kinds(case.args)
    try:
        cubin = kernel.emit("cubin", in_place=case.in_place, **of)
        found = resources(cubin, sass) if isinstance(cubin, bytes) else {}
        if sass:
            found["cuda"] = kernel.emit("cuda", in_place=case.in_place, **of)
    except Exception as error:  # said in the table: code that cannot be looked at is no wrong result
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return found


def verdict(bar: Bar, modes: dict[str, dict[str, float]]) -> Found:
    """Whether ours is within the bar by the peers' own method; None while a work that it names has no time. `queued` is
    the same ratio without the caller's time, in which a slow caller looks no slower than its kernel."""
    times = modes["idle"]
    missing = [name for name in bar.over if name not in times]
    there = [name for name in bar.over if name in times]
    if not there:
        return {"over": list(bar.over), "limit": bar.limit, "ratio": None, "met": None, "missing": missing}
    fastest = min(there, key=lambda name: times[name])
    ratio = times[OURS] / times[fastest]
    met = None if missing and ratio <= bar.limit else ratio <= bar.limit
    found = {"over": fastest, "limit": bar.limit, "ratio": ratio, "met": met, "missing": missing}
    if "queued" in modes:
        queued = modes["queued"]
        found["queued"] = queued[OURS] / min(queued[name] for name in there)
    return found


def rounds_for(seconds: float, quick: bool) -> int:
    """An odd number from 11 to 51, fewer where a call is long."""
    return 11 if quick else max(15, min(51, int(0.008 / seconds))) | 1


def measured(case: Case, quick: bool, flush: torch.Tensor, modes: tuple[str, ...]) -> Found:
    works, wrong = verified(case)
    found: Found = {"size": case.size, "rule": case.rule, "moved": case.moved, "left out": wrong}
    if OURS not in works:
        found["failed"] = wrong[OURS]
        return found
    assert case.copy is not None
    works = {COPY: case.copy, **works}
    for _ in range(3):
        case.copy()
    torch.cuda.synchronize()
    rounds = rounds_for(statistics.median(event_seconds(case.copy) for _ in range(5)), quick)
    times: dict[str, dict[str, float]] = {}
    spread: dict[str, list[float]] = {}
    for mode in modes:
        how = "flushed" if mode == "idle" and case.flush else mode
        if mode == "flushed" and case.flush:
            times[mode] = times["idle"]
            continue
        if case.refresh is not None:
            case.refresh()
        samples = in_turn(works, rounds, how, flush)
        times[mode] = {name: statistics.median(taken) * 1e6 for name, taken in samples.items()}
        if mode == "idle":
            spread = {
                name: [round(q * 1e6, 3) for q in statistics.quantiles(taken, n=4)] for name, taken in samples.items()
            }
    idle = times["idle"]
    bars = [verdict(bar, times) for bar in case.bars]
    limit = idle[COPY] * case.moved / case.copied
    if case.streams is not None:
        share = limit / idle[OURS]
        bars.append({"over": "bytes", "limit": case.streams, "ratio": share, "met": share >= case.streams})
    found |= {
        "rounds": rounds,
        "times": times,
        "quartiles": spread,
        "bytes limit": limit,
        "bars": bars,
    }
    return found


def met(value: bool | None) -> str:
    return {True: "met", False: "NOT MET", None: "open"}[value]


def bar_text(bar: Found) -> str:
    if bar["ratio"] is None:
        return f"nothing of {', '.join(bar['over'])} is there: open"
    sign = ">=" if bar["over"] == "bytes" else "<="
    name = "share of the bytes' limit" if bar["over"] == "bytes" else f"of {bar['over']}"
    missing = f" (without {', '.join(bar['missing'])})" if bar.get("missing") else ""
    queued = f" (queued {bar['queued']:.3f})" if "queued" in bar else ""
    return f"{bar['ratio']:.3f} {name} {sign} {bar['limit']:g}{missing}: {met(bar['met'])}{queued}"


def show(row: str, found: Found, say: Say) -> None:
    say("", f"{row}, {found['size']}")
    rule = found["rule"].splitlines()
    say(*(f"    {line}" for line in (rule if len(rule) < 8 else [*rule[:2], f"... {len(rule)} lines"])))
    for name, why in found.get("left out", {}).items():
        say(f"  {name} left out: {why}")
    if "failed" in found:
        say(f"  FAILED: {found['failed']}")
        return
    times = found["times"]
    idle, copy = times["idle"], times["idle"][COPY]
    others = {mode: times[mode] for mode in times if mode != "idle"}
    say(f"  {'':<16}{'us':>10}{'of copy':>9}" + "".join(f"{mode + ', of copy':>19}" for mode in others))
    for name, t in idle.items():
        rest = "".join(f"{of[name] / of[COPY]:>19.3f}" for of in others.values())
        say(f"  {name:<16}{t:>10.2f}{t / copy:>9.3f}{rest}")
    say(f"  bytes' limit    {found['bytes limit']:>10.2f}{found['bytes limit'] / copy:>9.3f}")
    code = found.get("code", {})
    if "reg" in code:
        say("  " + ", ".join(f"{field} {code[field.lower()]}" for field in FIELDS if field.lower() in code))
    if "accesses" in code:
        say("  " + ", ".join(f"{count} {name}" for name, count in code["accesses"].items()))
    if "error" in code:
        say(f"  no code to look at: {code['error']}")
    say(*(f"  {bar_text(bar)}" for bar in found["bars"]))


# Memory and many tensors


def extra_bytes(work: Work) -> int:
    """The most device memory that was allocated during a call, beyond what was before it."""
    result = work()
    torch.cuda.synchronize()
    del result
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = work()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    del result
    return peak


def memory(say: Say) -> Found:
    kernel = ew.kernel(SEED)
    x = torch.randn(1 << 26, device="cuda")
    y, size = torch.empty_like(x), x.numel() * x.element_size()
    peaks = {
        "elsewise k(x)": (extra_bytes(lambda: kernel(x)), size),
        "elsewise k(x, out=y)": (extra_bytes(lambda: kernel(x, out=y)), 0),
        "elsewise in place": (extra_bytes(lambda: kernel(y, out=y)), 0),
        "torch where": (extra_bytes(lambda: where_seed(x)), None),
    }
    say("", f"peak extra device memory, 2^26 float32 ({size >> 20} MiB of output)")
    bars = []
    for name, (peak, limit) in peaks.items():
        verdict = ""
        if limit is not None:
            bars.append({"over": name, "limit": limit, "ratio": peak, "met": peak <= limit})
            verdict = f"  <= {limit >> 20}: {met(peak <= limit)}"
        say(f"  {name:<24}{peak / 2**20:>10.1f} MiB{verdict}")
    return {"size": "2^26 float32", "peaks": {name: peak for name, (peak, _) in peaks.items()}, "memory bars": bars}


def many_tensors(quick: bool, flush: torch.Tensor, say: Say) -> Found:
    """`foreach` in place over 400 tensors of 4096, by a factor of -1, so that values stay as large as they are."""
    if not hasattr(ew.Kernel, "foreach"):
        say("", "foreach, 400 tensors of 4096: not there yet")
        return {"size": "400 x 4096", "not there yet": True}
    kernel = ew.kernel("x*g")
    mine = [torch.randn(4096, device="cuda") for _ in range(400)]
    theirs, single = [t.clone() for t in mine], [t.clone() for t in mine]

    def one_by_one() -> None:
        for t in single:
            kernel(t, g=-1.0, out=t)

    source = torch.cat(mine)
    target = torch.empty_like(source)
    works: dict[str, Work] = {
        COPY: lambda: target.copy_(source),
        OURS: lambda: kernel.foreach(mine, g=-1.0, out=mine),
        "_foreach_mul_": lambda: torch._foreach_mul_(theirs, -1.0),
        "400 single calls": one_by_one,
    }
    for work in works.values():
        work()
    found: Found = {"size": "400 x 4096", "rule": "x*g", "moved": 2 * 400 * 4096 * 4, "left out": {}}
    if not all(torch.equal(torch.cat(each), -source) for each in (mine, theirs, single)):
        found["failed"] = "wrong result"
    else:
        rounds = 11 if quick else 31
        times = {
            mode: {n: statistics.median(s) * 1e6 for n, s in in_turn(works, rounds, mode, flush).items()}
            for mode in MODES
        }
        bars = [Bar(("_foreach_mul_",), 1.0), Bar(("400 single calls",), 0.1)]
        found |= {
            "times": times,
            "rounds": rounds,
            "bytes limit": times["idle"][COPY],
            "bars": [verdict(bar, times) for bar in bars],
        }
    show("foreach", found, say)
    return found


def steps(rows: list[Found]) -> list[Found]:
    """Growth is linear: twice the elements take at most twice the time, and 2 % for noise, from 2^24 on."""
    grown = sorted(((r["moved"], r) for r in rows if r["row"] == "growth" and "times" in r), key=lambda pair: pair[0])
    bars = []
    for (a, first), (b, second) in zip(grown, grown[1:]):
        if a >= 8 << 24:
            ratio = second["times"]["idle"][OURS] / first["times"]["idle"][OURS] * a / b
            over = f"{first['size']}'s time an element, {second['size']}"
            bars.append({"over": over, "limit": 1.02, "ratio": ratio, "met": ratio <= 1.02})
    return bars


def run_row(
    row: Row, tools: Tools, options: argparse.Namespace, flush: torch.Tensor, late: Callable[[], bool]
) -> Iterator[Found]:
    """The cases of a row as they end; one that would begin late is not begun."""
    if tools.compiles:
        torch._dynamo.reset()
    cases = row.cases(tools, "cuda", False)
    while True:
        if late():
            yield {"size": "the rest", "not begun": True}
            return
        if tools.compiles and row.recompiles:
            torch._dynamo.reset()  # else it stops compiling after eight shapes of one function, and says so nowhere
        case = next(cases, None)
        if case is None:
            return
        start = time.perf_counter()
        found = measured(case, options.quick, flush, MODES[:1] if row.name == "growth" else MODES)
        if "times" in found:
            found["code"] = emitted(case, options.sass)
        found["seconds"] = time.perf_counter() - start
        yield found
        del case
        gc.collect()
        torch.cuda.empty_cache()


def measure(options: argparse.Namespace) -> int:
    begin = time.perf_counter()
    lines: list[str] = []
    json_path, text_path = place("on_device", True, "json"), place("on_device", True, "txt")
    kept: Found = {**facts(True), "rows": []}

    def say(*more: str) -> None:
        for line in more:
            print(line, flush=True)
        lines.extend(more)

    def keep(row: str, found: Found) -> None:
        """After each row, so that a run that is cut short has kept what it found."""
        log = found.get("code", {})
        if "cuda" in log:
            with open(text_path.with_suffix(".log"), "a") as file:
                file.write(f"==== {row}, {found['size']}\n{log.pop('cuda')}\n{log.pop('sass', '')}\n")
        kept["rows"].append({"row": row, **found})
        text_path.write_text("\n".join(lines) + "\n")
        json_path.write_text(json.dumps(kept, indent=1) + "\n")

    def late() -> bool:
        return options.budget is not None and time.perf_counter() - begin > options.budget

    text_path.with_suffix(".log").unlink(missing_ok=True)
    say(*(f"{name:<10}{value}" for name, value in kept.items() if name != "rows"))
    tools = Tools.found(cuda=True)
    if options.quick:
        tools.compiles = False
        tools.missing["torch.compile"] = "--quick"
    if tools.missing:
        say("left out: " + ", ".join(f"{name} ({why})" for name, why in tools.missing.items()))
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    for row in ROWS:
        if options.only in row.name:
            for found in run_row(row, tools, options, flush, late):
                if "not begun" in found:
                    say("", f"{row.name}: the rest left out, {options.budget:g} s are spent")
                else:
                    show(row.name, found, say)
                keep(row.name, found)
    if options.only in "memory":
        keep("memory", memory(say))
    if options.only in "foreach":
        keep("foreach", many_tensors(options.quick, flush, say))
    kept["steps"] = steps(kept["rows"])
    if kept["steps"]:
        say("", "growth: time an element of each size over that of the size before")
        say(*(f"  {bar_text(bar)}" for bar in kept["steps"]))
    say("", *summary(kept), "", f"{time.perf_counter() - begin:.0f} s")
    text_path.write_text("\n".join(lines) + "\n")
    json_path.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"kept in {text_path} and .json")
    plot(json_path)
    return sum("failed" in row for row in kept["rows"])


def summary(kept: Found) -> list[str]:
    """One line a bar, last, where it is seen."""
    lines, count = [], collections.Counter()
    for row in kept["rows"]:
        bars = [(bar, bar_text(bar)) for bar in row.get("bars", [])]
        bars += [(bar, f"{bar['over']}: {met(bar['met'])}") for bar in row.get("memory bars", [])]
        for bar, text in bars:
            lines.append(f"{row['row'] + ', ' + row['size']:<44}{text}")
            count[met(bar["met"])] += 1
        if "failed" in row:
            lines.append(f"{row['row']}, {row['size']}: FAILED: {row['failed']}")
            count["FAILED"] += 1
        if "not there yet" in row:
            lines.append(f"{row['row']}, {row['size']}: not there yet")
        if "not begun" in row:
            lines.append(f"{row['row']}: the rest left out")
    for bar in kept["steps"]:
        count[met(bar["met"])] += 1
    return [*lines, "", "bars: " + ", ".join(f"{n} {name}" for name, n in count.items())]


# Plots


def plot(result: Path) -> int:
    """Draws what is kept in a JSON file beside it: bars over the copy's time, and growth."""
    try:
        import matplotlib
    except ImportError:
        print("no plots: matplotlib is not installed; --plot draws them later")
        return 1
    matplotlib.use("Agg")
    from matplotlib import pyplot

    kept = json.loads(result.read_text())
    title = f"{kept['device'].split(',')[0]}, {kept['date'].split()[0]}, {kept['versions'].split(',')[0]}"
    drawn = [r for r in kept["rows"] if "times" in r and r["row"] != "growth"]
    if drawn:
        most = 2.2  # what is beyond is told as a number, or it would squash the others
        figure, axes = pyplot.subplots(figsize=(10, 1 + 0.36 * len(drawn)))
        for k, row in enumerate(drawn):
            idle = row["times"]["idle"]
            rest = {n: t for n, t in idle.items() if n not in (COPY, OURS, "torch.mul")}
            best = min(rest, key=lambda name: rest[name], default=None)
            ours = idle[OURS] / idle[COPY]
            axes.barh(k - 0.2, min(ours, most), 0.38, color="#1f77b4", label="elsewise" if k == 0 else None)
            if ours > most:
                axes.text(most, k - 0.2, f" {ours:.1f}", va="center", fontsize=7)
            if best is not None:
                share = rest[best] / idle[COPY]
                axes.barh(k + 0.2, min(share, most), 0.38, color="#c7c7c7", label="best peer" if k == 0 else None)
                number = f" {share:.1f}" if share > most else ""
                axes.text(min(share, most), k + 0.2, f"{number} {best}", va="center", fontsize=7)
            axes.plot([row["bytes limit"] / idle[COPY]] * 2, [k - 0.42, k + 0.42], color="black", linewidth=1)
        axes.axvline(1, color="black", linewidth=0.6, linestyle=":")
        axes.set_yticks(range(len(drawn)), [f"{r['row']}, {r['size']}" for r in drawn], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("time over that of y.copy_(x); black: the limit of the bytes that have to move")
        axes.set_title(title, fontsize=9)
        axes.margins(y=0.01)
        axes.set_xlim(0, most)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        saved(figure, result, "rows")
    grown = [r for r in kept["rows"] if "times" in r and r["row"] == "growth"]
    if grown:
        figure, axes = pyplot.subplots(figsize=(8, 5))
        names = dict.fromkeys(name for r in grown for name in r["times"]["idle"])
        for name in names:
            points = [(r["moved"] // 8, r["times"]["idle"][name]) for r in grown if name in r["times"]["idle"]]
            style = {"linewidth": 2.4, "zorder": 5} if name == OURS else {"linewidth": 1}
            axes.plot(*zip(*points), marker=".", label=name, **style)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.axvline(1 << 31, color="black", linewidth=0.6, linestyle=":")
        axes.set_xlabel("elements (float32)")
        axes.set_ylabel("us")
        axes.set_title(f"{SEED}   {title}", fontsize=9)
        axes.legend()
        saved(figure, result, "growth")
    return 0


def saved(figure: Any, result: Path, name: str) -> None:
    for ending in ("png", "svg"):
        path = result.with_name(f"{result.stem}-{name}.{ending}")
        figure.savefig(path, dpi=150, bbox_inches="tight")
        print(f"drawn in {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="the rows whose name holds it")
    parser.add_argument("--quick", action="store_true", help="11 calls each, and nothing compiled by torch")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="begin nothing new after that")
    parser.add_argument("--sass", action="store_true", help="keep each kernel's CUDA and machine code, count accesses")
    parser.add_argument("--cpu-check", action="store_true", help="only check each rule against torch, small, on a CPU")
    parser.add_argument("--plot", type=Path, metavar="RESULT.json", help="only draw what a run has kept")
    options = parser.parse_args()
    if options.plot is not None:
        sys.exit(plot(options.plot))
    if options.cpu_check:
        sys.exit(min(1, small_checks(options.only, lambda line: print(line, flush=True))))
    names = [row.name for row in ROWS] + ["memory", "foreach"]
    if not any(options.only in name for name in names):
        sys.exit(f"no row's name holds `{options.only}`; there are {', '.join(names)}")
    if not torch.cuda.is_available():
        sys.exit("no GPU: --cpu-check checks the rules on a CPU")
    RESULTS.mkdir(exist_ok=True)
    sys.exit(min(1, measure(options)))


if __name__ == "__main__":
    main()
