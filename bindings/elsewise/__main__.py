# SPDX-License-Identifier: Apache-2.0
"""`python -m elsewise demo | doctor | new`. It only finds the command."""

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
    options = parser.parse_args()
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
