"""ApplyConflict: the 409 response of an apply that would change fields of other managers.

Raised by ``applying.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from instar.base import errors, limits
from instar.base.field_errors import go_quote
from instar.kube.apply.field_set import FieldSet, members, path_text
from instar.kube.apply.managed_fields import UPDATE, ManagerKey


class ApplyConflict(errors.Conflict):
    """Names conflicting managers and paths, each path in its manager's version; as many as an
    error response may have."""

    def __init__(self, conflicts: Mapping[ManagerKey, FieldSet]) -> None:
        found, count = _shown_paths(conflicts)
        super().__init__(
            _message(found, count),
            details={
                "causes": [
                    {
                        "reason": "FieldManagerConflict",
                        "message": f"conflict with {_manager_text(owner)}",
                        "field": path,
                    }
                    for owner, paths in found.items()
                    for path in paths
                ]
            },
        )


def _shown_paths(
    conflicts: Mapping[ManagerKey, FieldSet],
) -> tuple[dict[ManagerKey, list[str]], int]:
    """Return the paths that the response names, and how many there are."""
    found: dict[ManagerKey, list[str]] = {}
    count = size = 0
    for owner in sorted(conflicts):
        for path in members(conflicts[owner]):
            count += 1
            if count > limits.MAX_ERRORS_TOLD or size > limits.MAX_REFUSAL // 2:
                continue  # each is in the message and in a cause
            text = path_text(path)
            size += len(text) + len(owner.manager)
            found.setdefault(owner, []).append(text)
    return found, count


def _message(found: Mapping[ManagerKey, list[str]], count: int) -> str:
    if count == 1:
        owner, paths = next(iter(found.items()))
        return f"Apply failed with 1 conflict: conflict with {_manager_text(owner)}: {paths[0]}"
    lines: list[str] = []
    for owner, paths in found.items():
        lines.append(f"conflicts with {_manager_text(owner)}:")
        lines += [f"- {path}" for path in paths]
    if count > sum(map(len, found.values())):
        lines.append("and there are more conflicts")
    return f"Apply failed with {count} conflicts: " + "\n".join(lines)


def _manager_text(owner: ManagerKey) -> str:
    text = go_quote(owner.manager)
    if owner.subresource:
        text += f" with subresource {go_quote(owner.subresource)}"
    return f"{text} using {owner.api_version}" if owner.operation == UPDATE else text
