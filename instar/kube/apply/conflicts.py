"""An apply that would change what others own: the 409 and its words."""

from __future__ import annotations

from collections.abc import Mapping

from instar.base import errors
from instar.base.field_errors import go_quote
from instar.kube.apply.field_set import FieldSet, members, path_text
from instar.kube.apply.managed_fields import UPDATE, ManagerKey


class ApplyConflict(errors.Conflict):
    """Names every manager and every path, each path in its owner's version."""

    def __init__(self, conflicts: Mapping[ManagerKey, FieldSet]) -> None:
        found = {
            who: [path_text(path) for path in members(conflicts[who])] for who in sorted(conflicts)
        }
        super().__init__(
            _message(found),
            details={
                "causes": [
                    {
                        "reason": "FieldManagerConflict",
                        "message": f"conflict with {_shown(who)}",
                        "field": path,
                    }
                    for who, paths in found.items()
                    for path in paths
                ]
            },
        )


def _message(found: Mapping[ManagerKey, list[str]]) -> str:
    count = sum(map(len, found.values()))
    if count == 1:
        who, paths = next(iter(found.items()))
        return f"Apply failed with 1 conflict: conflict with {_shown(who)}: {paths[0]}"
    lines: list[str] = []
    for who, paths in found.items():
        lines.append(f"conflicts with {_shown(who)}:")
        lines += [f"- {path}" for path in paths]
    return f"Apply failed with {count} conflicts: " + "\n".join(lines)


def _shown(who: ManagerKey) -> str:
    text = go_quote(who.manager)
    if who.subresource:
        text += f" with subresource {go_quote(who.subresource)}"
    return f"{text} using {who.api_version}" if who.operation == UPDATE else text
