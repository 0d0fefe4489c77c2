"""How this room asks for conversions without waiting for them.

A step is a generator that yields batches of conversions and is sent the results, so the
registry can drive it with an async converter and a test with a plain function. Results come
in the order of the batch; None stands for an object that could not be converted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple, TypeVar

from instar.base.json_values import Object

Result = TypeVar("Result")


class NeededConversion(NamedTuple):
    obj: Object
    api_version: str


Need = list[NeededConversion]
"""One batch; its conversions do not depend on each other and may go out together."""
Answer = list[Object | None]
Step = Generator[Need, Answer, Result]


def convert(obj: Object, current: str, wanted: str) -> Step[Object | None]:
    """``obj`` at another version; no question asked when it is already there."""
    if current == wanted:
        return obj
    answer = yield [NeededConversion(obj, wanted)]
    return answer[0]


def convert_all(objects: list[Object], versions: Iterable[str]) -> Step[list[dict[str, Object]]]:
    """Each object in every version, in one batch: version to object, failures left out."""
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
    """Run a step with a converter that need not be waited for."""
    try:
        need = next(step)
        while True:
            need = step.send([converter(obj, version) for obj, version in need])
    except StopIteration as done:
        result: Result = done.value
        return result
