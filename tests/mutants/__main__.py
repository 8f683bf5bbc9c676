"""Run the mutants: ``python -m tests.mutants``, or those whose names contain some words."""

from __future__ import annotations

import argparse
import sys

from . import MUTANTS
from .harness import run_all


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; any of them")
    parser.add_argument("--module", help="only those in files whose path contains this")
    parser.add_argument("--list", action="store_true", help="print their names and run nothing")
    parser.add_argument(
        "--check", action="store_true", help="first see that all tests pass with nothing broken"
    )
    options = parser.parse_args()
    chosen = [
        mutant
        for mutant in MUTANTS
        if (not options.names or any(name in mutant.what for name in options.names))
        and (not options.module or options.module in mutant.module)
    ]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.what}  ({mutant.module}, {mutant.function})")
        return
    if not chosen:
        sys.exit("no mutant of that name: --list prints them")
    left = run_all(chosen, options.check)
    if left:
        sys.exit(f"{left} of {len(chosen)} mutants survived")


if __name__ == "__main__":
    main()
