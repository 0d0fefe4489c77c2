"""The default FlowSchemas and PriorityLevelConfigurations, as data.

``controller.py`` creates them at the start; ``server/flow_control`` acts by them, and
``controllers/flow_schemas.py`` writes their status.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from instar.base.json_values import Object

_API = "flowcontrol.apiserver.k8s.io/v1"
_AUTOUPDATE_ANNOTATION = {"apf.kubernetes.io/autoupdate-spec": "true"}
_LEVELS: tuple[tuple[str, int, int, tuple[int, int, int] | None], ...] = (
    ("catch-all", 5, 0, None),
    ("system", 30, 33, (64, 6, 50)),
    ("node-high", 40, 25, (64, 6, 50)),
    ("leader-election", 10, 0, (16, 4, 50)),
    ("workload-high", 40, 50, (128, 6, 50)),
    ("workload-low", 100, 90, (128, 6, 50)),
    ("global-default", 20, 50, (128, 6, 50)),
)
"""Name, shares, lendable percent, and (queues, hand size, queue length) if requests queue."""
_EVERYONE = ("g:system:unauthenticated", "g:system:authenticated")
_MANAGER, _SCHEDULER = "u:system:kube-controller-manager", "u:system:kube-scheduler"
_SYSTEM_ACCOUNTS = "s:kube-system"


class _Resources(NamedTuple):
    """The resources of one rule, words separated by commas."""

    verbs: str
    group: str
    resources: str
    cluster_scope: bool = True


_ANYTHING = (_Resources("*", "*", "*"),)
_PROBES: tuple[_Resources, ...] = ()
_LEASES_OF_LEADERS = _Resources(
    "get,create,update", "coordination.k8s.io", "leases", cluster_scope=False
)
_LEASES_OF_NODES = _Resources("*", "coordination.k8s.io", "leases", cluster_scope=False)
_SCHEMAS: tuple[tuple[str, str, int, str, tuple[str, ...], tuple[_Resources, ...]], ...] = (
    ("exempt", "exempt", 1, "", ("g:system:masters",), _ANYTHING),
    ("probes", "exempt", 2, "", _EVERYONE, _PROBES),
    (
        "system-leader-election", "leader-election", 100, "ByUser",
        (_MANAGER, _SCHEDULER, _SYSTEM_ACCOUNTS), (_LEASES_OF_LEADERS,),
    ),
    (
        "system-node-high", "node-high", 400, "ByUser", ("g:system:nodes",),
        (_Resources("*", "", "nodes,nodes/status"), _LEASES_OF_NODES),
    ),
    ("system-nodes", "system", 500, "ByUser", ("g:system:nodes",), _ANYTHING),
    ("kube-controller-manager", "workload-high", 800, "ByNamespace", (_MANAGER,), _ANYTHING),
    ("kube-scheduler", "workload-high", 800, "ByNamespace", (_SCHEDULER,), _ANYTHING),
    (
        "kube-system-service-accounts", "workload-high", 900, "ByNamespace", (_SYSTEM_ACCOUNTS,),
        _ANYTHING,
    ),
    (
        "service-accounts", "workload-low", 9000, "ByUser", ("g:system:serviceaccounts",),
        _ANYTHING,
    ),
    ("global-default", "global-default", 9900, "ByUser", _EVERYONE, _ANYTHING),
    ("catch-all", "catch-all", 10000, "ByUser", _EVERYONE, _ANYTHING),
)  # fmt: skip
"""Name, priority level, precedence, distinguisher, subjects, and resources (none: probes)."""


def flow_objects() -> Iterator[Object]:
    """Yield the default FlowSchemas and PriorityLevelConfigurations."""
    yield _level("exempt", {"type": "Exempt"})
    for name, shares, lent, queuing in _LEVELS:
        response: Object = {"type": "Reject"}
        if queuing is not None:
            names = ("queues", "handSize", "queueLengthLimit")
            response = {"type": "Queue", "queuing": dict(zip(names, queuing, strict=True))}
        limited = {
            "nominalConcurrencyShares": shares,
            "lendablePercent": lent,
            "limitResponse": response,
        }
        yield _level(name, {"type": "Limited", "limited": limited})
    for row in _SCHEMAS:
        yield _schema(*row)


def _level(name: str, spec: Object) -> Object:
    return {
        "apiVersion": _API,
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name, "annotations": dict(_AUTOUPDATE_ANNOTATION)},
        "spec": spec,
    }


def _schema(
    name: str,
    level: str,
    precedence: int,
    method: str,
    subjects: tuple[str, ...],
    what: tuple[_Resources, ...],
) -> Object:
    rule: Object = {"subjects": [_subject(text) for text in subjects]}
    if what:
        rule["resourceRules"] = [_resource_rule(resources) for resources in what]
    if what == _ANYTHING:
        rule["nonResourceRules"] = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    elif not what:
        paths = ["/healthz", "/readyz", "/livez"]
        rule["nonResourceRules"] = [{"verbs": ["get"], "nonResourceURLs": paths}]
    spec: Object = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [rule],
    }
    if method:
        spec["distinguisherMethod"] = {"type": method}
    return {
        "apiVersion": _API,
        "kind": "FlowSchema",
        "metadata": {"name": name, "annotations": dict(_AUTOUPDATE_ANNOTATION)},
        "spec": spec,
    }


def _resource_rule(what: _Resources) -> Object:
    rule: Object = {
        "verbs": what.verbs.split(","),
        "apiGroups": [what.group],
        "resources": what.resources.split(","),
        "namespaces": ["*"],
    }
    return {**rule, "clusterScope": True} if what.cluster_scope else rule


def _subject(text: str) -> Object:
    kind, _, name = text.partition(":")
    if kind == "s":
        namespace, _, account = name.partition("/")
        account_ref = {"namespace": namespace, "name": account or "*"}
        return {"kind": "ServiceAccount", "serviceAccount": account_ref}
    if kind == "u":
        return {"kind": "User", "user": {"name": name}}
    return {"kind": "Group", "group": {"name": name}}
