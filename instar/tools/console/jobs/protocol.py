"""Pipe protocol between the console and a job process, which runs a review or a check.

Each message is one JSON document on one line, in both directions. ``worker.py`` uses it in the job
process; ``supervisor.py`` in the console is the other end.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import orjson

from instar.base.json_values import Object


class JobLine:
    """The job process's end of the pipe."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source = source
        self._target = target

    def hear(self) -> Object:
        text = self._source.readline()
        if not text:
            raise SystemExit(1)  # the server is gone
        message: Object = orjson.loads(text)
        return message

    def send(self, message: Object) -> None:
        self._target.write(orjson.dumps(message) + b"\n")
        self._target.flush()

    def note(self, found: Any) -> None:
        self.send({"note": found})

    def ask(self, question: Object) -> Object:
        self.send({"ask": question})
        return self.hear()
