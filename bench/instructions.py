"""``python -m bench.instructions [--check] [--record]``: counts CPU instructions per request, which
do not depend on the load of the machine. Reports operations that cost 5 % more than the committed
record.

A server runs under valgrind. For each operation it forks twice: one child makes N requests, the
other 2 N. The difference divided by N is the cost of one request, without start-up and warm-up.
Hash randomisation and garbage collection are off meanwhile.

Other versions of Python, of valgrind or of the C libraries give other counts; then the ratios are
printed with a warning.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from compileall import compile_dir
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.operations import OPERATIONS, WATCHERS, Operation, stage

RECORD = Path(__file__).with_name("instructions.json")
ROOT = RECORD.parents[1]
LIBRARIES = ("google-re2", "httptools", "orjson", "sortedcontainers")
TOLD = 0.05
_REQUESTS = 100
_WARMING = 25
_PATIENCE = 150
"""Seconds for a child, which takes a few; a record must not wait for what hangs."""
_NO_VALGRIND = 3
_SOME_CACHE = "--LL=8388608,16,64"
"""Not looked at, and without it valgrind warns of the machine's own."""

Counts = dict[str, int]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 where something grew")
    parser.add_argument("--record", action="store_true", help="keep the figures for comparison")
    parser.add_argument("--only", action="append", choices=OPERATIONS, default=[])
    parser.add_argument("--inside", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen = options.only or list(OPERATIONS)
    if options.inside:
        asyncio.run(_inside(chosen, Path(options.inside)))
        return 0
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: nothing was counted, nothing compared", file=sys.stderr)
        return _NO_VALGRIND
    found = measured(chosen)
    recorded: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    others = differences(surroundings(), recorded.get("with", {}))
    grown = show(found, recorded.get("instructions", {}), others)
    if options.record:
        kept = {**recorded.get("instructions", {}), **found}
        document = {"with": surroundings(), "instructions": kept}
        RECORD.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    return 1 if options.check and grown and not others else 0


def measured(chosen: list[str]) -> Counts:
    """Return the instructions per request of each operation."""
    compile_dir(ROOT / "instar", quiet=1)  # else valgrind would watch the compiler
    with tempfile.TemporaryDirectory(prefix="instar-instructions-") as folder:
        subprocess.run(
            [
                *("valgrind", "--tool=cachegrind", "--cache-sim=no", _SOME_CACHE, "--quiet"),
                f"--cachegrind-out-file={folder}/%p.counted",
                *(sys.executable, "-m", "bench.instructions", "--inside", folder),
                *(f"--only={name}" for name in chosen),
            ],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
        )
        children = json.loads((Path(folder) / "children.json").read_text())
        counted = {
            name: [_total(Path(folder) / f"{pid}.counted") for pid in pids]
            for name, pids in children.items()
        }
    return {name: round((twice - once) / _REQUESTS) for name, (once, twice) in counted.items()}


def _total(file: Path) -> int:
    for line in reversed(file.read_text().splitlines()):
        if line.startswith("summary:"):
            return int(line.split()[1])
    raise ValueError(f"{file}: valgrind wrote no summary")


async def _inside(chosen: list[str], folder: Path) -> None:
    """Run under valgrind: fork a child for each operation and number of requests."""
    children: dict[str, list[int]] = {}
    logging.disable()  # everything takes long here
    async with stage() as on:
        on.server.machinery.watchdog.stop()  # a thread, which no child would have
        gc.collect()
        gc.disable()
        loop = asyncio.get_running_loop()
        for name in chosen:
            for requests in (_REQUESTS, 2 * _REQUESTS):
                child = os.fork()
                if child == 0:
                    asyncio._set_running_loop(loop)  # it remembers whose it was
                    await _make(OPERATIONS[name], on, requests)
                _, status = os.waitpid(child, 0)  # noqa: ASYNC222  nobody else is here
                assert status == 0, f"{name} failed"
                children.setdefault(name, []).append(child)
        (folder / "children.json").write_text(json.dumps(children))
        os._exit(0)  # an orderly end would take as long as all of this


async def _make(operation: Operation, on: Any, requests: int) -> None:
    code = 1
    signal.alarm(_PATIENCE)
    try:
        step = await operation.prepare(on)
        for number in range(_WARMING + requests):
            await step(number)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def surroundings() -> dict[str, str]:
    """Return the versions that instruction counts depend on besides our own code."""
    told = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True)
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "valgrind": told.stdout.strip(),
        **{name: version(name) for name in LIBRARIES},
    }


def differences(here: dict[str, str], recorded: dict[str, str]) -> list[str]:
    return [
        f"{name} {here.get(name, 'absent')}, recorded with {recorded.get(name, 'none')}"
        for name in sorted(here.keys() | recorded.keys())
        if here.get(name) != recorded.get(name)
    ]


def show(found: Counts, recorded: Counts, others: list[str]) -> list[str]:
    """Print a line for each operation; return those that cost more than allowed."""
    grown = []
    width = max(map(len, found))
    for name, count in found.items():
        last = recorded.get(name)
        ratio = count / last if last else 1.0
        line = f"{name:{width}}  {count:12,d} instructions"
        if last:
            line += f"  {ratio:6.3f} × the record"
        if ratio >= 1 + TOLD:
            grown.append(name)
            line += f"  MORE than {TOLD:.0%}"
        elif ratio <= 1 - TOLD:
            line += "  less: --record keeps it"
        print(line)
    if "merge patch" in found and "patch, watched" in found:
        each = (found["patch, watched"] - found["merge patch"]) / WATCHERS
        print(f"{'one delivered event':{width}}  {each:12,.0f} instructions")
    if others and recorded:
        print("NOT COMPARABLE, ratios are hints at best:", *others, sep="\n  ")
    return grown


if __name__ == "__main__":
    sys.exit(main())
