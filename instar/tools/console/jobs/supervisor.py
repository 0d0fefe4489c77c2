"""Console side of jobs: starts the process, sends the input, answers its requests for data, stops
it.

Used by the review and check views. Messages are JSON lines: ``{"ask": …}`` needs an answer,
``{"note": …}`` is a partial result, ``{"result": …}`` or ``{"refused": "…"}`` is the last message.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any

import orjson

from instar.base import limits
from instar.base.errors import ApiError, BadRequest, Internal, Timeout
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.console.jobs.shares import JobShares

log = logging.getLogger(__name__)
_WORKER = "instar.tools.console.jobs.worker"
_LONGEST_LINE = 64 << 20
_KEPT_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "PATH", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV")
Answer = Callable[[Object], Awaitable[Object]]


async def _nothing_to_ask(question: Object) -> Object:
    raise Internal("the job sent a question, but this kind of job has none")


@dataclass
class JobResult:
    """Result of a job."""

    result: Any = None
    notes: list[Any] = field(default_factory=list)
    complete: bool = True
    """False: the time limit was reached, and only the notes exist."""


class Jobs:
    """Runs a few jobs at the same time, because each uses a CPU core; more jobs wait in a queue."""

    def __init__(self, at_once: int = limits.JOBS_AT_ONCE, more: int = limits.JOBS_WAITING) -> None:
        self._shares = JobShares(at_once, more)

    async def run(
        self, job: str, work: Object, *, user: str, seconds: float, answer: Answer = _nothing_to_ask
    ) -> JobResult:
        """Run a job of a user. Raises ``TooManyRequests``, ``BadRequest`` with the job's message,
        or the ``ApiError`` of an answer."""
        async with self._shares.place(user):
            running = await _Running.start(seconds)
            try:
                async with asyncio.timeout(seconds):
                    return await running.talk({"job": job, **work}, answer)
            except TimeoutError:
                return JobResult(notes=running.notes, complete=False)
            finally:
                await running.stop()


class _Running:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self.notes: list[Any] = []

    @classmethod
    async def start(cls, seconds: float) -> _Running:
        kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        command = (sys.executable, "-P", "-m", _WORKER, str(int(seconds) + 1))
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LONGEST_LINE,
            env=kept,
        )
        return cls(process)

    async def talk(self, work: Object, answer: Answer) -> JobResult:
        await self._send(work)
        while True:
            message = await self._receive()
            match message:
                case {"ask": question}:
                    await self._send(await _answered(question, answer))
                case {"note": note}:
                    self.notes.append(note)
                case {"refused": text}:
                    raise BadRequest(text)
                case {"result": result}:
                    return JobResult(result, self.notes)

    async def _send(self, message: Object) -> None:
        try:
            self._stdin.write(orjson.dumps(message) + b"\n")
            await self._stdin.drain()
        except ConnectionError:
            raise _process_failed() from None

    async def _receive(self) -> Object:
        try:
            line = await self._stdout.readline()
        except ValueError:
            raise Internal("what was found is too large to be shown") from None
        if not line:
            raise _process_failed()
        message: Object = orjson.loads(line)
        return message

    async def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._stdin.close()
        await asyncio.shield(self._process.wait())


async def _answered(question: Object, answer: Answer) -> Object:
    try:
        return await answer(question)
    except ApiError as error:
        return {"failed": error.message, "unreachable": error.code in (429, 503)}


def _process_failed() -> ApiError:
    return Timeout("the work took more memory or time than it may, and was given up")
