"""Error responses of mutating policies: 403 with a cause for each error and the first error as
message.

Called by ``server/registry/admission/policies/mutating.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from instar.base.errors import ApiError, Forbidden


class MutationRejected(NamedTuple):
    """One error; ``binding`` is None if the policy itself is misconfigured."""

    policy: str
    binding: str | None
    message: str
    misconfigured: bool = False

    def __str__(self) -> str:
        if self.binding is None:
            return f'policy "{self.policy}" denied request: {self.message}'
        bound = f"policy '{self.policy}' with binding '{self.binding}'"
        return f"{bound} denied request: {self.message}"


def misconfigured_policy_error(policy: str, binding: str | None, why: str) -> MutationRejected:
    what = "policy" if binding is None else "binding"
    return MutationRejected(
        policy, binding, f"failed to configure {what}: {why}", misconfigured=True
    )


class _InvalidButForbidden(ApiError):
    """A failed evaluation; upstream answers 403, as for a denial."""

    code = 403
    reason = "Invalid"


def refusal_error(refused: Sequence[MutationRejected], details: dict[str, Any]) -> ApiError:
    texts = [str(each) for each in refused]
    chosen = Forbidden if refused[0].misconfigured else _InvalidButForbidden
    return chosen(texts[0], details={**details, "causes": [{"message": text} for text in texts]})
