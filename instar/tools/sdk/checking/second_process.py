"""Converts objects in a second Python process whose environment differs, to find nondeterministic
converters.

The second process has another hash seed, another time zone, a clock that is 400 days ahead, fresh
module state, and gets the objects in another order. ``determinism.py`` compares its answers.

Run as ``python -m instar.tools.sdk.checking.second_process CONVERTER QUESTIONS ANSWERS``; the last
two are files, because a converter may print.
"""

from __future__ import annotations

import datetime
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from instar.base.json_values import Object
from instar.tools.sdk.errors import ConversionError
from instar.tools.sdk.loading import load

_SECONDS = 60
_AHEAD = datetime.timedelta(days=400, hours=7)
_SEED = "20260"
_ZONE = "Pacific/Kiritimati"

REFUSED = {"refused": True}
"""The answer for an object that the converter refuses."""
Question = tuple[Object, str]
"""An object, and the ``apiVersion`` it shall get."""


class NoSecondProcess(Exception):
    """The converter cannot be run in another process; the message says why."""


def convert_elsewhere(converter: str, questions: Sequence[Question]) -> list[Any]:
    """Return the results of a second process, in the order of the inputs.

    Each is the converted object, or ``REFUSED``.
    """
    order = list(range(len(questions)))
    random.Random(0).shuffle(order)
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "questions"), Path(folder, "answers")
        asked.write_bytes(orjson.dumps([questions[place] for place in order]))
        _run([converter, str(asked), str(answered)])
        try:
            answers = orjson.loads(answered.read_bytes())
        except (OSError, orjson.JSONDecodeError) as error:
            raise NoSecondProcess(str(error)) from None
    found: list[Any] = [None] * len(questions)
    for place, answer in zip(order, answers, strict=True):
        found[place] = answer
    return found


def _run(words: list[str]) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": _SEED, "TZ": _ZONE}
    environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    command = [sys.executable, "-m", "instar.tools.sdk.checking.second_process", *words]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoSecondProcess(str(error)) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise NoSecondProcess(said[-1] if said else f"exit code {done.returncode}")


def main(converter: str, questions: str, answers: str) -> None:
    """Entry point of the second process."""
    _set_clock_ahead()
    built = load(converter)
    found: list[Any] = []
    for obj, api_version in orjson.loads(Path(questions).read_bytes()):
        try:
            found.append(built.convert_all([obj], api_version)[0])
        except ConversionError:
            found.append(REFUSED)
    Path(answers).write_bytes(orjson.dumps(found, default=repr))


def _set_clock_ahead() -> None:
    """Replace the clock functions before the converter is imported, so that it cannot import the
    real ones.
    """
    seconds = _AHEAD.total_seconds()
    wall, nanoseconds = time.time, time.time_ns

    class ShiftedDatetime(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> ShiftedDatetime:
            return super().now(tz) + _AHEAD

        @classmethod
        def utcnow(cls) -> ShiftedDatetime:
            return cls.now(datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> ShiftedDatetime:
            return cls.now()

    class ShiftedDate(datetime.date):
        @classmethod
        def today(cls) -> ShiftedDate:
            return super().today() + _AHEAD

    time.time = lambda: wall() + seconds
    time.time_ns = lambda: nanoseconds() + int(seconds * 1e9)
    datetime.datetime = ShiftedDatetime  # type: ignore[misc]
    datetime.date = ShiftedDate  # type: ignore[misc]


if __name__ == "__main__":
    main(*sys.argv[1:])
