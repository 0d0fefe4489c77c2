"""Generator protocol by which ``kube/apply`` requests conversions from its caller.

A step is a generator that yields batches of conversions and receives the results, so the registry
(``server/registry/verbs/apply.py``) can run it with an async converter and a test with a plain
function. Results come in the order of the batch; None means that an object could not be converted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple, TypeVar

from instar.base.json_values import Object

Result = TypeVar("Result")


class NeededConversion(NamedTuple):
    """One object and the version it is needed at."""

    obj: Object
    api_version: str


Need = list[NeededConversion]
"""One batch; its conversions are independent and may run concurrently."""
Answer = list[Object | None]
Step = Generator[Need, Answer, Result]


def convert(obj: Object, current: str, wanted: str) -> Step[Object | None]:
    """Convert ``obj`` to another version; yields nothing when it already has that version."""
    if current == wanted:
        return obj
    answer = yield [NeededConversion(obj, wanted)]
    return answer[0]


def convert_all(objects: list[Object], versions: Iterable[str]) -> Step[list[dict[str, Object]]]:
    """Convert each object to every version in one batch; return objects by version without
    failures."""
    wanted = sorted(versions)
    if not wanted:
        return [{} for _ in objects]
    answer = yield [NeededConversion(obj, version) for obj in objects for version in wanted]
    results = iter(answer)
    return [
        {version: found for version in wanted if (found := next(results)) is not None}
        for _ in objects
    ]


def drive(step: Step[Result], converter: Callable[[Object, str], Object | None]) -> Result:
    """Run a step with a synchronous converter."""
    try:
        need = next(step)
        while True:
            need = step.send([converter(obj, version) for obj, version in need])
    except StopIteration as done:
        result: Result = done.value
        return result
