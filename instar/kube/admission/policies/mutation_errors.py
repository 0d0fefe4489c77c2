"""Why a mutating policy refuses a request, in upstream's shape: 403, every error a cause, the first
of them the message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from instar.base.errors import ApiError, Forbidden


class MutationRejected(NamedTuple):
    """``binding`` None: the policy itself is at fault."""

    policy: str
    binding: str | None
    message: str
    misconfigured: bool = False

    def __str__(self) -> str:
        if self.binding is None:
            return f'policy "{self.policy}" denied request: {self.message}'
        bound = f"policy '{self.policy}' with binding '{self.binding}'"
        return f"{bound} denied request: {self.message}"


def misconfigured(policy: str, binding: str | None, why: str) -> MutationRejected:
    what = "policy" if binding is None else "binding"
    return MutationRejected(
        policy, binding, f"failed to configure {what}: {why}", misconfigured=True
    )


class _InvalidButForbidden(ApiError):
    """An evaluation that failed: upstream keeps the code of a refusal."""

    code = 403
    reason = "Invalid"


def refusal(refused: Sequence[MutationRejected], details: dict[str, Any]) -> ApiError:
    texts = [str(each) for each in refused]
    chosen = Forbidden if refused[0].misconfigured else _InvalidButForbidden
    return chosen(texts[0], details={**details, "causes": [{"message": text} for text in texts]})
