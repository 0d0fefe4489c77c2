"""The seam of version conversion: objects in, the same objects at another version out.

Batches only; one object is a list of one. A converter knows neither schemas nor storage:
``registry/codec.py`` decides what is pruned and defaulted before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Object = dict[str, Any]


class Converter(Protocol):
    """Turns objects of one CRD into ``api_version`` (``group/version``).

    The input is never changed. Objects already at ``api_version`` come back as they are.
    Raises an ``ApiError`` for the whole batch; never returns a part.
    """

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]: ...


class NoneConverter:
    """Strategy ``None``: only ``apiVersion`` changes."""

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        return [{**obj, "apiVersion": api_version} for obj in objects]
