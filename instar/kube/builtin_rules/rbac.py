"""Validates Roles, ClusterRoles and their bindings.

Called by ``server/registry/kinds/rbac.py``.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError, child, index, invalid, not_supported, required
from instar.base.json_values import Object
from instar.kube.access.rbac.policy import GROUP
from instar.kube.builtin_rules.selectors import selector_errors

_SUBJECTS = ("ServiceAccount", "User", "Group")
_NO_SELECTOR = "at least one clusterRoleSelector required if aggregationRule is non-nil"


def role_errors(obj: Object, *, namespaced: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for position, rule in enumerate(obj.get("rules") or ()):
        found += _rule_errors(rule, index("rules", position), namespaced=namespaced)
    aggregation = obj.get("aggregationRule")
    if aggregation is not None:
        found += _aggregation_errors(aggregation)
    return found


def _rule_errors(rule: Object, path: str, *, namespaced: bool) -> list[FieldError]:
    found: list[FieldError] = []
    if not rule.get("verbs"):
        found.append(required(child(path, "verbs"), "verbs must contain at least one value"))
    urls, where = rule.get("nonResourceURLs"), child(path, "nonResourceURLs")
    if urls:
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            found.append(invalid(where, urls, text))
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            found.append(invalid(where, urls, text))
        return found
    if not rule.get("apiGroups"):
        text = "resource rules must supply at least one api group"
        found.append(required(child(path, "apiGroups"), text))
    if not rule.get("resources"):
        text = "resource rules must supply at least one resource"
        found.append(required(child(path, "resources"), text))
    return found


def _aggregation_errors(aggregation: Object) -> list[FieldError]:
    where, selectors = (
        "aggregationRule.clusterRoleSelectors",
        aggregation.get("clusterRoleSelectors"),
    )
    if not selectors:
        return [required(where, _NO_SELECTOR)]
    found: list[FieldError] = []
    for position, selector in enumerate(selectors):
        wrong = selector_errors(selector, index(where, position))
        found += wrong
        if wrong:
            found.append(invalid(index(where, position), None, "invalid label selector."))
    return found


def binding_errors(obj: Object, *, namespaced: bool) -> list[FieldError]:
    reference = obj.get("roleRef") or {}
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    found: list[FieldError] = []
    if reference.get("apiGroup") != GROUP:
        found.append(not_supported("roleRef.apiGroup", reference.get("apiGroup", ""), (GROUP,)))
    if reference.get("kind") not in kinds:
        found.append(not_supported("roleRef.kind", reference.get("kind", ""), kinds))
    if not reference.get("name"):
        found.append(required("roleRef.name"))
    for position, subject in enumerate(obj.get("subjects") or ()):
        found += _subject_errors(subject, index("subjects", position), namespaced=namespaced)
    return found


def _subject_errors(subject: Object, path: str, *, namespaced: bool) -> list[FieldError]:
    found: list[FieldError] = []
    if not subject.get("name"):
        found.append(required(child(path, "name")))
    kind, group = subject.get("kind", ""), subject.get("apiGroup", "")
    if kind == "ServiceAccount":
        if group:
            found.append(not_supported(child(path, "apiGroup"), group, ("",)))
        if not namespaced and not subject.get("namespace"):
            found.append(required(child(path, "namespace")))
    elif kind in _SUBJECTS:
        if group != GROUP:
            found.append(not_supported(child(path, "apiGroup"), group, (GROUP,)))
    else:
        found.append(not_supported(child(path, "kind"), kind, _SUBJECTS))
    return found


def reference_change_errors(new: Object, old: Object) -> list[FieldError]:
    after, before = new.get("roleRef") or {}, old.get("roleRef") or {}
    if after == before:
        return []
    names = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
    shown = {go: after.get(name, "") for go, name in names}
    return [invalid("roleRef", shown, "cannot change roleRef")]
