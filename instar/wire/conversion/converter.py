"""The converter interface: takes objects, returns them at another version; and strategy None.

Implemented by the modules of this package. A converter works on batches; one object is a list of
one. ``server/registry/stored/codec.py`` prunes and defaults before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from instar.base.json_values import Object


class ObjectWithJson(Object):
    """An object together with its encoded JSON, so that it is not encoded again for a webhook."""

    __slots__ = ("json",)

    def __init__(self, obj: Object, json: bytes) -> None:
        super().__init__(obj)
        self.json = json


class VersionConverter(Protocol):
    """Converts objects of one CRD to ``api_version`` (``group/version``).

    Both versions must be the CRD's; the caller checks that, because it needs their schemas anyway.
    The input is never changed; the result may be changed, except values shared with the input.
    Objects already at ``api_version`` are returned as they are. Raises an ``ApiError`` for the
    whole batch; never returns a part.
    """

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]: ...


class NoneConverter:
    """Strategy ``None``: only ``apiVersion`` changes."""

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        return [{**obj, "apiVersion": api_version} for obj in objects]
