"""ApplyConflict: the 409 response of an apply that would change fields of other managers.

Raised by ``applying.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from instar.base import errors
from instar.base.field_errors import go_quote
from instar.kube.apply.field_set import FieldSet, members, path_text
from instar.kube.apply.managed_fields import UPDATE, ManagerKey


class ApplyConflict(errors.Conflict):
    """Names every conflicting manager and path, each path in its manager's version."""

    def __init__(self, conflicts: Mapping[ManagerKey, FieldSet]) -> None:
        found = {
            owner: [path_text(path) for path in members(conflicts[owner])]
            for owner in sorted(conflicts)
        }
        super().__init__(
            _message(found),
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


def _message(found: Mapping[ManagerKey, list[str]]) -> str:
    count = sum(map(len, found.values()))
    if count == 1:
        owner, paths = next(iter(found.items()))
        return f"Apply failed with 1 conflict: conflict with {_manager_text(owner)}: {paths[0]}"
    lines: list[str] = []
    for owner, paths in found.items():
        lines.append(f"conflicts with {_manager_text(owner)}:")
        lines += [f"- {path}" for path in paths]
    return f"Apply failed with {count} conflicts: " + "\n".join(lines)


def _manager_text(owner: ManagerKey) -> str:
    text = go_quote(owner.manager)
    if owner.subresource:
        text += f" with subresource {go_quote(owner.subresource)}"
    return f"{text} using {owner.api_version}" if owner.operation == UPDATE else text
