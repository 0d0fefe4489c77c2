"""Converter that calls a Python function in this process, with the webhook's contract.

Used for ``--converter`` and by the tools (rehearsal, suites). The function is user code: it gets
copies, runs in its own thread pool, where it may block, and its answer is checked like a webhook's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import orjson

from instar.base.errors import TooManyRequests
from instar.base.json_values import Object
from instar.kube.api.crd import Crd
from instar.kube.api.names import GroupKind
from instar.wire.conversion import contract
from instar.wire.conversion.failure import Attempt, ConversionFailed, FailureType
from instar.wire.webhooks.call_limits import Gate
from instar.wire.webhooks.transport import DEFAULT_TIMEOUT, go_duration

CALLS_AT_ONCE = 4
"""Calls of one converter that run concurrently; further ones wait."""
CALLS_WAITING = 512

ConvertFunction = Callable[[list[Object], str], Sequence[Any]]
"""(objects, desired apiVersion) -> the same objects, converted, in the same order."""

_T = TypeVar("_T")


def registered_for(converters: Mapping[str, _T], crd: str, kind: str) -> _T | None:
    """Return what is registered for a CRD: under its name, or else under ``Kind.group``."""
    found = converters.get(crd)
    return converters.get(str(GroupKind(crd.partition(".")[2], kind))) if found is None else found


class InProcessConverter:
    """A ``VersionConverter`` that calls a function."""

    def __init__(
        self, crd: Crd, function: ConvertFunction, *, timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        self._crd = crd
        self._function = function
        self._timeout = timeout
        self.address = f"in-process converter of {crd.name}"
        self._gate = Gate(f"the {self.address}", CALLS_AT_ONCE, CALLS_WAITING)
        self._threads = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="converter")

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        result = list(objects)
        positions = [at for at, obj in enumerate(objects) if obj.get("apiVersion") != api_version]
        if positions:
            sent = [objects[at] for at in positions]
            # asyncio deadlines need a separate task.
            converted = await asyncio.create_task(self._converted(sent, api_version))
            for position, obj in zip(positions, converted, strict=True):
                result[position] = obj
        return result

    async def _converted(self, objects: list[Object], api_version: str) -> list[Object]:
        source = contract.source_of(objects[0])
        attempt = Attempt(self._crd, api_version, objects, self.address)
        try:
            async with asyncio.timeout(self._timeout), self._gate:
                owned = orjson.loads(orjson.dumps(objects))
                answer = await asyncio.get_running_loop().run_in_executor(
                    self._threads, self._function, owned, api_version
                )
                # a copy, as the function may keep a reference
                converted = orjson.loads(orjson.dumps(list(answer)))
        except TooManyRequests:
            raise
        except TimeoutError as error:
            problem = f"no answer within {go_duration(self._timeout)}"
            raise self._failed(attempt, source, problem, FailureType.CALL) from error
        except Exception as error:
            raise self._failed(
                attempt, source, _exception_text(error), FailureType.MALFORMED
            ) from error
        try:
            return contract.accept_all(objects, converted, api_version)
        except contract.BrokenContract as broken:
            guilty = objects if broken.index < 0 else [objects[broken.index]]
            sentence = broken.sentence(contract.source_of(guilty[0]), batch=len(objects) > 1)
            raise Attempt(self._crd, api_version, guilty, self.address).failed(
                sentence, broken.stage.failure_type, broken.text
            ) from broken

    def _failed(
        self, attempt: Attempt, source: object, problem: str, failure_type: FailureType
    ) -> ConversionFailed:
        return attempt.failed(
            f"conversion webhook for {source} failed: {problem}",
            failure_type,
            problem,
            advice="the converter given to the server failed on this object; mend one of them",
            timed_out=failure_type is FailureType.CALL,
        )


def _exception_text(error: Exception) -> str:
    """Format the exception: with its type for Python's own, without for the author's."""
    told, kind = str(error), type(error)
    return told if told and kind.__module__ != "builtins" else f"{kind.__name__}: {told}"
