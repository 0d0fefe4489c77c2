"""Counts what one request makes the interpreter do: calls, by the package they are in, and the
functions in C that matter. The same request gives the same numbers, on every machine."""

from __future__ import annotations

import gc
import sqlite3
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import orjson

ROOT = Path(__file__).resolve().parents[2]
_OURS = f"{ROOT / 'instar'}/"
_HARNESS = (f"{ROOT / 'tests'}/", f"{ROOT / 'bench'}/")
_BUILTINS: dict[Any, str] = {orjson.loads: "decodes", orjson.dumps: "encodes"}
_METHODS = {"execute": "statements", "executemany": "statements"}
_FUNCTIONS = {("instar/wire/rpc/channel.py", "GrpcChannel.call"): "etcd calls"}
ROUNDS = 10
_KEPT_ROUNDS, _KEPT_REQUESTS = 3, 50

Step = Callable[[int], Awaitable[object]]


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Fills in what was called in this thread; ``package:…`` says where."""
    found: Counter[str] = Counter()

    def seen(frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if event not in ("call", "c_call") or file.startswith(_HARNESS):
            return
        if event == "call":
            found["calls"] += 1
            found[f"package:{_package(file)}"] += 1
            if named := _FUNCTIONS.get((file.removeprefix(f"{ROOT}/"), frame.f_code.co_qualname)):
                found[named] += 1
            return
        found["calls into C"] += 1
        if (named := _BUILTINS.get(argument)) is not None:
            found[named] += 1
        elif isinstance(getattr(argument, "__self__", None), sqlite3.Connection):
            found[_METHODS.get(argument.__name__, "other")] += 1

    sys.setprofile(seen)
    try:
        yield found
    finally:
        sys.setprofile(None)


async def per_request(step: Step, rounds_made: int = ROUNDS) -> dict[str, int]:
    """The least of several: what is done now and then only is no request's."""
    for number in range(rounds_made):
        await step(number)
    rounds = []
    for number in range(rounds_made, 2 * rounds_made):
        with counting() as found:
            await step(number)
        rounds.append(found)
    names = sorted(set().union(*rounds))
    return {name: min(found[name] for found in rounds) for name in names}


async def kept(step: Step) -> int:
    """Blocks of memory that a request leaves behind."""
    least = sys.maxsize
    for turn in range(_KEPT_ROUNDS):
        gc.collect()
        before = sys.getallocatedblocks()
        for number in range(_KEPT_REQUESTS):
            await step(100 + turn * _KEPT_REQUESTS + number)
        gc.collect()
        least = min(least, sys.getallocatedblocks() - before)
    return max(0, round(least / _KEPT_REQUESTS))


def _package(file: str) -> str:
    if not file.startswith(_OURS):
        return "libraries"
    group, _, rest = file[len(_OURS) :].partition("/")
    name, slash, _ = rest.partition("/")
    return f"{group}.{name}" if slash else group
