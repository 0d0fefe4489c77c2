"""A program is asked: on the event loop, or in a thread where that would take too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from instar.base import offload
from instar.kube.admission.evaluation import ExpressionInputs, Meter, TooLongHere
from instar.server.registry.admission.policies.definitions import PolicyDefinition

T = TypeVar("T")
_HEAVY_FOR = 100
"""Requests that are spared the first try after one was too much."""


async def program_of(policy: PolicyDefinition, make: Callable[[dict[str, object]], T]) -> T:
    """The policy's program, compiled when it is first needed."""
    if policy.program is None:
        policy.program = await offload.run(policy.size, lambda: make(policy.spec))
    program: T = policy.program
    return program


async def ask(
    policy: PolicyDefinition, inputs: ExpressionInputs, work: Callable[[Meter, ExpressionInputs], T]
) -> T:
    """What ``work`` makes of the inputs. It may be done twice, and must change nothing."""
    if policy.heavy:
        policy.heavy -= 1
    else:
        try:
            return work(Meter(asks=inputs.authorizer is not None), inputs)
        except TooLongHere:
            policy.heavy = _HEAVY_FOR
    return await offload.apart(lambda: work(Meter(hurried=False), inputs))
