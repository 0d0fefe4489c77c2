"""Text helpers that all modules of table cells in this package call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.kube.api.label_selector import selector_text
from instar.server.registry.resources.columns import age

NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
_SHOWN_ITEMS = 3
"""Items of a list that a cell shows; of the others it shows the number."""


def part(obj: Any, *names: str) -> Any:
    """Return a nested member; an empty object where one is missing."""
    for name in names:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return {} if obj is None else obj


def name_of(obj: Object) -> str:
    return str(part(obj, "metadata").get("name", ""))


def since(moment: str | None, now: datetime) -> str:
    return age(moment, now) if moment else UNKNOWN


def age_of(obj: Object, now: datetime) -> str:
    return since(part(obj, "metadata").get("creationTimestamp"), now)


def labels_text(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_cell(selector: Object | None) -> str:
    return selector_text(selector or {}) or NONE


def first_few(
    items: Sequence[str], nothing: str, most: int = _SHOWN_ITEMS, joint: str = ","
) -> str:
    """Join the first items, and append the number of remaining ones."""
    shown = joint.join(items[:most])
    if len(items) > most:
        return f"{shown} + {len(items) - most} more..."
    return shown or nothing


def containers_of(template: Object) -> tuple[str, str]:
    """Return names and images of a template's containers."""
    containers: Iterable[Object] = part(template, "spec").get("containers") or ()
    found = [(one.get("name", ""), one.get("image", "")) for one in containers]
    return ",".join(name for name, _ in found), ",".join(image for _, image in found)


def is_terminating(obj: Object) -> bool:
    return bool(part(obj, "metadata").get("deletionTimestamp"))


def condition(obj: Object, type: str) -> Object | None:
    found: Iterable[Object] = part(obj, "status").get("conditions") or ()
    return next((one for one in found if one.get("type") == type), None)


def balancer_addresses(obj: Object) -> str:
    """Return the addresses of a load balancer, each once, in order."""
    ingress: Iterable[Object] = part(obj, "status", "loadBalancer").get("ingress") or ()
    found = {one.get("ip") or one.get("hostname") or "" for one in ingress}
    return ",".join(sorted(found - {""}))
