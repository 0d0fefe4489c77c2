"""The seam of version conversion: objects in, the same objects at another version out.

Batches only; one object is a list of one. A converter knows neither schemas nor storage:
``server/registry/stored/codec.py`` decides what is pruned and defaulted before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from instar.base.json_values import Object


class Known(Object):
    """An object whose JSON is at hand, so that nobody writes it again on its way to a webhook."""

    __slots__ = ("json",)

    def __init__(self, obj: Object, json: bytes) -> None:
        super().__init__(obj)
        self.json = json


class VersionConverter(Protocol):
    """Turns objects of one CRD into ``api_version`` (``group/version``).

    Both versions are the CRD's; the caller has looked, because it needs their schemas anyway.
    The input is never changed; what comes back is the caller's to change, but for values it shares
    with the input. Objects already at ``api_version`` come back as they are.
    Raises an ``ApiError`` for the whole batch; never returns a part.
    """

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]: ...


class NoneConverter:
    """Strategy ``None``: only ``apiVersion`` changes."""

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        return [{**obj, "apiVersion": api_version} for obj in objects]
