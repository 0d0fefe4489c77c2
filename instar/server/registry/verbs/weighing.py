"""Runs a step that may make its object larger than the request: decoding, with its defaults.

The verbs that write (``patch.py``, ``apply.py``, ``server/rest/verbs.py``) call it. Small work runs
in the event loop; where defaults make the object large, the step is done again in a thread, and
``options.size`` says so to all steps that follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from instar.base import limits, offload
from instar.server.registry.resources.context import WriteOptions
from instar.server.registry.resources.resource import Target

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


async def work_on(
    target: Target,
    options: WriteOptions,
    size: int,
    work: Callable[[*Arguments], T],
    *arguments: *Arguments,
) -> T:
    """Return ``work(*arguments)`` on an object of ``size`` bytes."""
    if offload.is_small(target.version.read_cost(size)):
        try:
            return offload.briefly(work, *arguments)
        except offload.Outgrown:
            options.size = limits.MAX_BODY
    return await offload.apart(work, *arguments)
