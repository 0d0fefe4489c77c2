"""Finds the value that a server cannot decode, for answers that name no field.

Used by ``validate.py``. A value of the wrong type ends decoding with a 400, whose text has Go's
names and no list positions. The search leaves out one value after the other: the answer changes
when the one at fault is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from instar.base.json_values import Object, Pointer, copy_json

_MOST_TRIES = 400
_IDENTITY = ("apiVersion", "kind")

StillFails = Callable[[Object], Awaitable[bool]]
"""Whether the server gives the same answer to another object."""


async def fault_pointer(obj: Object, still_fails: StillFails) -> Pointer:
    """Return where the fault is, as deep as it can be told within the number of tries."""
    found: list[str | int] = []
    value: Any = obj
    tries = _MOST_TRIES
    while True:
        for token in _children(value, top=not found):
            tries -= 1
            if tries < 0:
                return tuple(found)
            if not await still_fails(_without(obj, [*found, token])):
                found.append(token)
                value = value[token]
                break
        else:
            return tuple(found)


def _children(value: Any, *, top: bool) -> Iterator[str | int]:
    if isinstance(value, dict):
        yield from (name for name in value if not (top and name in _IDENTITY))
    elif isinstance(value, list):
        yield from range(len(value))


def _without(obj: Object, pointer: list[str | int]) -> Object:
    copy: Object = copy_json(obj)
    inside: Any = copy
    for token in pointer[:-1]:
        inside = inside[token]
    del inside[pointer[-1]]
    return copy
