# SPDX-License-Identifier: Apache-2.0
"""`python -m elsewise demo | doctor`. It only finds the command."""

from __future__ import annotations

import argparse
import sys


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
    commands.add_parser("doctor", help="show what a call would find on this machine, and what is missing")
    options = parser.parse_args()
    if options.command == "doctor":
        from ._environment import doctor

        return 0 if doctor() else 1
    from . import _demo

    if options.measure:
        return _demo.measure(options.measure, options.n)
    return _demo.demo(options.n, options.device)


if __name__ == "__main__":
    sys.exit(main())
