"""Runs a step that may make its object larger than the request: decoding, with its defaults.

The verbs that write (``patch.py``, ``apply.py``, ``server/rest/verbs.py``) call it. Small work runs
in the event loop; where defaults make the object large, the step is repeated in a thread, and
``options.size`` is raised, so that all later steps run in a thread, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from instar.base import limits, offload
from instar.server.registry.resources.context import WriteOptions
from instar.server.registry.resources.resource import Target

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


async def run_growing_step(
    target: Target,
    options: WriteOptions,
    size: int,
    work: Callable[[*Arguments], T],
    *arguments: *Arguments,
) -> T:
    """Return ``work(*arguments)`` on an object of ``size`` bytes."""
    if offload.is_small(target.version.read_cost(size)):
        try:
            return offload.run_inline(work, *arguments)
        except offload.TooLargeForLoop:
            options.size = limits.MAX_BODY
    return await offload.run_in_thread(work, *arguments)
