"""Builds the default roles and bindings, and merges them into stored ones; pure functions.

Called by ``controller.py``. A merge removes nothing that a user added.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.json_values import Object, copy_json
from instar.kube.access.rbac.policy import GROUP
from instar.kube.access.rbac.rules import rules_of, uncovered_rules
from instar.server.registry.controllers.roles.component_rules import (
    COMPONENT_BINDINGS,
    COMPONENT_ROLES,
    NAMESPACED_BINDINGS,
    NAMESPACED_ROLES,
)
from instar.server.registry.controllers.roles.controller_rules import CONTROLLER_ROLES
from instar.server.registry.controllers.roles.default_rules import (
    AGGREGATED,
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    FEEDS,
    ROLES,
)
from instar.server.registry.controllers.roles.rule_lines import rule_from_line, rules_by_role

_API = f"{GROUP}/v1"
_CONTROLLER = "system:controller:"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"


def default_roles() -> Iterator[Object]:
    """Yield the roles; they come before bindings, which refuse a missing role."""
    for name, lines in CLUSTER_ROLES.items():
        yield _role("ClusterRole", name, lines)
    for name in AGGREGATED:
        labels = {_feeds(name): "true"}
        rule = {"clusterRoleSelectors": [{"matchLabels": labels}]}
        yield {**_role("ClusterRole", name, ()), "aggregationRule": rule}
    for (namespace, name), lines in ROLES.items():
        yield _role("Role", name, lines, namespace)


def component_roles() -> Iterator[Object]:
    """Yield the roles of Kubernetes' components, which this server does not need itself."""
    for name, lines in rules_by_role(CONTROLLER_ROLES).items():
        yield _role("ClusterRole", f"{_CONTROLLER}{name}", lines)
    for name, lines in rules_by_role(COMPONENT_ROLES).items():
        yield _role("ClusterRole", name, lines)
    for path, lines in rules_by_role(NAMESPACED_ROLES).items():
        namespace, _, name = path.partition("/")
        yield _role("Role", name, lines, namespace)


def default_bindings() -> Iterator[Object]:
    for name, subjects in CLUSTER_BINDINGS.items():
        yield _binding("ClusterRoleBinding", name, ("ClusterRole", name), subjects)
    for (namespace, name), (role, subjects) in BINDINGS.items():
        yield _binding("RoleBinding", name, ("Role", role), subjects, namespace)


def component_bindings() -> Iterator[Object]:
    """Yield the bindings of ``component_roles``."""
    for account in rules_by_role(CONTROLLER_ROLES):
        name, subject = f"{_CONTROLLER}{account}", f"ServiceAccount kube-system/{account}"
        yield _binding("ClusterRoleBinding", name, ("ClusterRole", name), (subject,))
    for name, subjects in COMPONENT_BINDINGS.items():
        yield _binding("ClusterRoleBinding", name, ("ClusterRole", name), subjects)
    for path, subjects in NAMESPACED_BINDINGS.items():
        namespace, _, name = path.partition("/")
        yield _binding("RoleBinding", name, ("Role", name), subjects, namespace)


def update_to_default(obj: Object, wanted: Object) -> Object | None:
    """Return the updated object, or None if it is current. Existing labels win; missing rules and
    subjects are added."""
    metadata = obj["metadata"]
    if (metadata.get("annotations") or {}).get(AUTOUPDATE) == "false":
        return None
    new = copy_json(obj)
    for name in ("labels", "annotations"):
        given = wanted["metadata"].get(name) or {}
        if given:
            new["metadata"][name] = {**given, **(metadata.get(name) or {})}
    if "roleRef" in wanted:
        _add(new, wanted, "subjects")
    elif "aggregationRule" in wanted:
        _add(new.setdefault("aggregationRule", {}), wanted["aggregationRule"], _SELECTORS)
    else:
        missing = uncovered_rules(rules_of(obj), rules_of(wanted))
        if missing:
            new["rules"] = [*(obj.get("rules") or ()), *(rule.to_object() for rule in missing)]
    return new if new != obj else None


_SELECTORS = "clusterRoleSelectors"


def _add(new: Object, wanted: Object, name: str) -> None:
    present = new.get(name) or []
    missing = [item for item in wanted.get(name) or () if item not in present]
    if missing:
        new[name] = [*present, *missing]


def _feeds(name: str) -> str:
    return f"rbac.authorization.k8s.io/aggregate-to-{name}"


def _metadata(name: str, namespace: str = "") -> Object:
    feeds = {_feeds(FEEDS[name]): "true"} if name in FEEDS else {}
    metadata: Object = {
        "name": name,
        "labels": {**_LABELS, **feeds},
        "annotations": {AUTOUPDATE: "true"},
    }
    if namespace:
        metadata["namespace"] = namespace
    return metadata


def _role(kind: str, name: str, lines: tuple[str, ...], namespace: str = "") -> Object:
    return {
        "apiVersion": _API,
        "kind": kind,
        "metadata": _metadata(name, namespace),
        "rules": [rule_from_line(line) for line in lines] or None,
    }


def _binding(
    kind: str, name: str, role: tuple[str, str], subjects: tuple[str, ...], namespace: str = ""
) -> Object:
    binding: Object = {
        "apiVersion": _API,
        "kind": kind,
        "metadata": _metadata(name, namespace),
        "roleRef": {"apiGroup": GROUP, "kind": role[0], "name": role[1]},
    }
    if subjects:
        binding["subjects"] = [_subject(text) for text in subjects]
    return binding


def _subject(text: str) -> Object:
    kind, _, name = text.partition(" ")
    if kind == "ServiceAccount":
        namespace, _, account = name.partition("/")
        return {"kind": kind, "name": account, "namespace": namespace}
    return {"kind": kind, "apiGroup": GROUP, "name": name}
