"""SubjectAccessReview objects: validation, and the attributes to authorize.

Called by ``server/access/reviews.py``, which asks the authorizer.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.errors import BadRequest
from instar.base.field_errors import FieldError, child, invalid, required
from instar.base.json_values import Object
from instar.kube.access.attributes import Attributes, User
from instar.kube.api.selectors import parse_field_selector, parse_label_selector

_RESOURCE, _PATH = "spec.resourceAttributes", "spec.nonResourceAttributes"
_SELECTORS = ("fieldSelector", "labelSelector")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def spec_errors(review: Object, plural: str) -> list[FieldError]:
    spec = review.get("spec") or {}
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    found: list[FieldError] = []
    if resource is not None and path is not None:
        text = "cannot be specified in combination with resourceAttributes"
        found.append(invalid(_PATH, _go_path_attributes(path), text))
    if resource is None and path is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        found.append(invalid(_RESOURCE, None, text))
    others = not plural.startswith("self")
    if others and not spec.get("user") and not spec.get("groups"):
        found.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    for name in _SELECTORS:
        if resource is not None and resource.get(name) is not None:
            found += _selector_errors(resource[name], child(_RESOURCE, name))
    return found + _scope_errors(review, plural, resource, path)


def _scope_errors(
    review: Object, plural: str, resource: Object | None, path: Object | None
) -> list[FieldError]:
    local = plural == "localsubjectaccessreviews"
    free = ("managedFields", "namespace") if local else ("managedFields",)
    metadata = {k: v for k, v in review["metadata"].items() if v not in (None, "", {}, [])}
    found: list[FieldError] = []
    if any(name not in free for name in metadata):
        text = "must be empty except for namespace" if local else "must be empty"
        found.append(invalid("metadata", metadata, text))
    if not local:
        return found
    inside = metadata.get("namespace", "")
    if resource is not None and (resource.get("namespace") or "") != inside:
        where, given = child(_RESOURCE, "namespace"), resource.get("namespace") or ""
        found.append(invalid(where, given, "must match metadata.namespace"))
    if path is not None:
        found.append(
            invalid(_PATH, _go_path_attributes(path), "disallowed on this kind of request")
        )
    return found


def _selector_errors(selector: Object, where: str) -> Iterator[FieldError]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        text = "may not specified at the same time as requirements"
        yield invalid(child(where, "rawSelector"), raw, text)
    if not raw and not requirements:
        text = f"when {where} is specified, requirements or rawSelector is required"
        yield required(child(where, "requirements"), text)


def _go_path_attributes(path: Object) -> Object:
    return {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}


def selector_troubles(spec: Object) -> Iterator[str]:
    """Yield errors of the review's selectors. They do not affect the decision, but upstream
    reports invalid ones."""
    resource = spec.get("resourceAttributes") or {}
    for name in _SELECTORS:
        ignored = _ignored_part(name, resource.get(name) or {})
        if ignored:
            yield f"{child(_RESOURCE, name)} {ignored} due to parse error"


def selector_size(spec: Object) -> int:
    """Return the number of characters that ``selector_troubles`` parses; a client may send many."""
    resource = spec.get("resourceAttributes") or {}
    return sum(len((resource.get(name) or {}).get("rawSelector") or "") for name in _SELECTORS)


def _ignored_part(name: str, selector: Object) -> str:
    raw = selector.get("rawSelector")
    if raw:
        try:
            (parse_field_selector if name == "fieldSelector" else parse_label_selector)(raw)
        except BadRequest:
            return "ignored"
        return ""
    requirements = selector.get("requirements") or ()
    good = sum(one.get("operator") in _OPERATORS for one in requirements)
    if good == len(requirements):
        return ""
    return "partially ignored" if good else "ignored"


def attributes_of_review(spec: Object, user: User) -> Attributes:
    """Return the attributes exactly as the review states them: no groups are added, and an empty
    namespace means cluster scope."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes") or {}
    if resource is None:
        return Attributes(user, path.get("verb") or "", path=path.get("path") or "")
    given = {name: resource.get(name) or "" for name in _MEMBERS}
    return Attributes(user, **given)


_MEMBERS = ("verb", "group", "version", "resource", "subresource", "namespace", "name")


def field_requirements(text: str) -> list[Object]:
    """Return the requirements of a field selector as a SubjectAccessReview states them; none for a
    selector that cannot be parsed, which the request itself reports."""
    try:
        selector = parse_field_selector(text) if text else None
    except BadRequest:
        return []
    return [
        {"key": key, "operator": "NotIn" if negated else "In", "values": [value]}
        for key, negated, value in (selector.terms if selector is not None else ())
    ]


_LABEL_OPERATORS = {"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist"}
"""Operators of labels that a SubjectAccessReview has; the others are left out, as upstream does."""


def label_requirements(text: str) -> list[Object]:
    """Return the requirements of a label selector, like ``field_requirements``."""
    try:
        selector = parse_label_selector(text) if text else None
    except BadRequest:
        return []
    found: list[Object] = []
    for each in selector.requirements if selector is not None else ():
        operator = _LABEL_OPERATORS.get(each.operator)
        if operator is not None:
            values = {"values": sorted(each.values)} if each.values else {}
            found.append({"key": each.key, "operator": operator, **values})
    return found
