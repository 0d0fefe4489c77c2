"""Parameters of a policy: which objects a binding means. Where they lie is the caller's to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from instar.kube.api.label_selector import selector_of
from instar.kube.api.selectors import LabelSelector

NOT_FOUND = "no params found for policy binding with `Deny` parameterNotFoundAction"


class ParamError(Exception):
    """A policy cannot be asked as its binding wants it; the text is upstream's."""


class Wanted(NamedTuple):
    """Objects of the parameter kind: one by name, or all that are selected."""

    namespace: str
    """Empty for a kind that is in no namespace."""
    name: str
    selector: LabelSelector | None


def wanted_params(ref: Mapping[str, Any], *, namespaced: bool, request_namespace: str) -> Wanted:
    """Raises ``ParamError``."""
    given = ref.get("namespace") or ""
    if given and not namespaced:
        text = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
        raise ParamError(text)
    namespace = (given or request_namespace) if namespaced else ""
    if namespaced and not namespace:
        raise ParamError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return Wanted(namespace, ref.get("name") or "", selector_of(ref.get("selector")))


def refuses_none(ref: Mapping[str, Any]) -> bool:
    """Whether a request is refused when there is no parameter."""
    return ref.get("parameterNotFoundAction") == "Deny"
