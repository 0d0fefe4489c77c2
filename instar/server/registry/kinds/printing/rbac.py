"""Table cells of RBAC bindings; roles show only name and creation time.

``printer.py`` calls them for Table responses (``kubectl get``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.server.registry.kinds.printing.printer import Cells
from instar.server.registry.kinds.printing.texts import age_of, name_of, part


def _binding(obj: Object, now: datetime) -> list[Any]:
    role = part(obj, "roleRef")
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "ServiceAccount" and subject.get("namespace"):
            name = f"{subject['namespace']}/{name}"
        subjects.setdefault(kind, []).append(name)
    return [
        name_of(obj),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age_of(obj, now),
        ", ".join(subjects["User"]),
        ", ".join(subjects["Group"]),
        ", ".join(subjects["ServiceAccount"]),
    ]


CELLS: Mapping[str, Cells] = {"rolebindings": _binding, "clusterrolebindings": _binding}
