# SPDX-License-Identifier: Apache-2.0
"""`python -m elsewise demo | doctor | new | explain | bench`. It only finds the command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m elsewise", description="Elementwise kernels from one-line rules about positions."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="run a rule on a million elements, check it against torch, time both")
    demo.add_argument("--device", choices=("cpu", "cuda"), help="default: a GPU if there is one")
    demo.add_argument("-n", type=int, default=1_000_000, help="number of elements (default: %(default)s)")
    demo.add_argument(
        "--measure", choices=("elsewise", "in place", "plain"), help=argparse.SUPPRESS
    )  # one child process of the demo
    commands.add_parser("doctor", help="try what this machine has, and say how to get what is missing")
    new = commands.add_parser("new", help="write a file to start from: a rule, its call, its check and its time")
    new.add_argument("rule", help="such as 'i < edge: 0; else x*gain'")
    new.add_argument("--out", type=Path, help="the file to write, which must not be there; default: print it")
    explain = commands.add_parser("explain", help="say what a call would do: pieces, loop, bytes, code; runs nothing")
    bench = commands.add_parser("bench", help="measure a call beside a copy of its result and plain torch")
    for command in (explain, bench):
        command.add_argument("rule", help="such as 'i < edge: 0; else x*gain'")
        command.add_argument(
            "--arg",
            action="append",
            default=[],
            metavar="NAME=KIND",
            help="a tensor of random numbers (x=f32:1000000, x=f16:64x1024) or a number (gain=0.5, edge=3, on=true)",
        )
        command.add_argument("--out", metavar="NAME", help="write into this argument, in place")
        command.add_argument("--shape", help="the domain, such as 64x1024")
        command.add_argument("--dtype", help="the result's")
        command.add_argument("--device", help="cpu, cuda, cuda:1; default: a GPU if there is one")
    explain.add_argument("--exact", action="store_true", help="run the guards to count what elements decide")
    bench.add_argument("--repeats", type=int, default=15, help="samples of each time (default: %(default)s)")
    bench.add_argument("--cold", action="store_true", help="also with empty caches")
    bench.add_argument("--plot", metavar="FILE", help="draw the times into a file, by matplotlib")
    options = parser.parse_args()
    if options.command in ("explain", "bench"):
        from ._commands import run

        return run(options)
    if options.command == "doctor":
        from ._environment import doctor

        return 0 if doctor() else 1
    if options.command == "new":
        from ._new import new as write

        return write(options.rule, options.out)
    from . import _demo

    if options.measure:
        return _demo.measure(options.measure, options.n)
    return _demo.demo(options.n, options.device)


if __name__ == "__main__":
    sys.exit(main())
