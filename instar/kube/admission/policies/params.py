"""Selects the parameter objects of a policy binding: one by name, or all by selector.

Called by ``server/registry/admission/policies/params.py``, which reads the objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from instar.kube.api.label_selector import selector_of
from instar.kube.api.selectors import LabelSelector

NOT_FOUND = "no params found for policy binding with `Deny` parameterNotFoundAction"


class ParamError(Exception):
    """The binding's parameter reference is unusable; the text is upstream's."""


class ParamSelection(NamedTuple):
    """The selected objects of the parameter kind: one name, or a label selector."""

    namespace: str
    """Empty for a cluster-scoped kind."""
    name: str
    selector: LabelSelector | None


def select_params(
    ref: Mapping[str, Any], *, namespaced: bool, request_namespace: str
) -> ParamSelection:
    """Return the selection. Raises ``ParamError``."""
    given = ref.get("namespace") or ""
    if given and not namespaced:
        text = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
        raise ParamError(text)
    namespace = (given or request_namespace) if namespaced else ""
    if namespaced and not namespace:
        raise ParamError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return ParamSelection(namespace, ref.get("name") or "", selector_of(ref.get("selector")))


def refuses_none(ref: Mapping[str, Any]) -> bool:
    """Return whether a request is denied when no parameter exists."""
    return ref.get("parameterNotFoundAction") == "Deny"
