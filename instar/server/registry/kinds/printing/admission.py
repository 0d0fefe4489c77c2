"""Table cells of webhook configurations, admission policies and bindings.

``printer.py`` calls them for Table responses (``kubectl get``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.server.registry.kinds.printing.printer import Cells
from instar.server.registry.kinds.printing.texts import UNSET, age_of, name_of, part


def _webhooks(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), len(obj.get("webhooks") or ()), age_of(obj, now)]


def _policy(steps: str) -> Cells:
    def cells(obj: Object, now: datetime) -> list[Any]:
        spec = part(obj, "spec")
        kind = spec.get("paramKind")
        shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET
        return [name_of(obj), len(spec.get(steps) or ()), shown, age_of(obj, now)]

    return cells


def _binding(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [name_of(obj), spec.get("policyName", ""), _parameters(spec), age_of(obj, now)]


def _parameters(spec: Object) -> str:
    reference = spec.get("paramRef")
    if reference is None:
        return UNSET
    if reference.get("selector") is not None:
        return _go_selector(reference["selector"])
    return f"{reference.get('namespace') or '*'}/{reference.get('name', '')}"


def _go_selector(selector: Object) -> str:
    """Format a selector like Go's default struct printing, as upstream does."""
    labels = "".join(
        f"{key}: {value}," for key, value in sorted(part(selector, "matchLabels").items())
    )
    needs = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{needs}}},}}"
    )


CELLS: Mapping[str, Cells] = {
    "mutatingadmissionpolicies": _policy("mutations"),
    "mutatingadmissionpolicybindings": _binding,
    "mutatingwebhookconfigurations": _webhooks,
    "validatingadmissionpolicies": _policy("validations"),
    "validatingadmissionpolicybindings": _binding,
    "validatingwebhookconfigurations": _webhooks,
}
