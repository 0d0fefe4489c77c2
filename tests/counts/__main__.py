"""``python -m tests.counts [--accept]``: what requests cost in counts, beside the table."""

from __future__ import annotations

import argparse
import sys

from tests.counts.measuring import measured
from tests.counts.table import TABLE, accept, counted, grown, load, shrunk


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.counts", description=__doc__)
    parser.add_argument("--accept", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    found = measured()
    recorded = load()["rows"] if TABLE.exists() else {}
    more = [
        change
        for name, row in recorded.items()
        if name in found
        for change in (*grown(name, row, found[name]), *shrunk(name, row, found[name]))
    ]
    for name, row in found.items():
        print(f"{name:52}", ", ".join(f"{what} {value}" for what, value in counted(row).items()))
    if more:
        print("\nagainst the table:", *more, sep="\n  ")
    if options.accept:
        accept(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
