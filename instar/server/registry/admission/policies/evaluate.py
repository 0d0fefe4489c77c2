"""Evaluates a policy's program on the event loop, or in a thread if that takes too long.

Called by ``validating.py`` and ``mutating.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from instar.base import offload
from instar.kube.admission.evaluation import ExpressionInputs, Meter, TooLongForLoop
from instar.server.registry.admission.policies.definitions import PolicyDefinition

T = TypeVar("T")
_THREAD_EVALUATIONS = 100
"""After one evaluation was too slow for the event loop, the next 100 go straight to a thread."""


async def program_of(policy: PolicyDefinition, make: Callable[[dict[str, object]], T]) -> T:
    """Return the policy's program, compiling it on first use."""
    if policy.program is None:
        policy.program = await offload.run(policy.size, lambda: make(policy.spec))
    program: T = policy.program
    return program


async def evaluate(
    policy: PolicyDefinition, inputs: ExpressionInputs, work: Callable[[Meter, ExpressionInputs], T]
) -> T:
    """Return the result of ``work``, which may run twice and must have no side effects."""
    if policy.heavy:
        policy.heavy -= 1
    else:
        try:
            return work(Meter(asks=inputs.authorizer is not None), inputs)
        except TooLongForLoop:
            policy.heavy = _THREAD_EVALUATIONS
    return await offload.run_in_thread(lambda: work(Meter(hurried=False), inputs))
