"""Limits how much defaults add to an object: their bytes are counted while they are applied.

With defaults for null list items inside other defaults, a schema can expand a few bytes to
gigabytes. ``defaulting.py`` and ``server/registry/kinds/workloads/podspec_defaults.py`` (pods) call
it. A step that adds much in the event loop is stopped and repeated in a thread
(``offload.TooLargeForLoop``); no step may add more than can be stored.
"""

from __future__ import annotations

import json
from typing import Any

from instar.base import limits, offload
from instar.base.errors import RequestTooLarge

_NAME_OVERHEAD = 4
"""Bytes around a member's name: quotes, colon and comma."""


class Growth:
    """The bytes that defaults may still add to one object."""

    __slots__ = ("_is_brief", "left")

    def __init__(self) -> None:
        self._is_brief = offload.STEP.brief
        self.left = limits.LOOP_BYTES if self._is_brief else limits.MAX_STORED

    def take(self, size: int) -> None:
        """Count ``size`` bytes of JSON before they are added. Raises ``TooLargeForLoop`` or
        ``RequestTooLarge``."""
        self.left -= size
        if self.left < 0:
            if self._is_brief:
                raise offload.TooLargeForLoop
            raise RequestTooLarge(
                f"with its defaults the object has more than {limits.MAX_STORED} bytes"
            )


def weight_of(name: str, default: Any) -> int:
    """Return the bytes that a member with this default adds."""
    return len(json.dumps(default)) + len(name) + _NAME_OVERHEAD
