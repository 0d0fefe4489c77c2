"""Validates Deployments, ReplicaSets, DaemonSets, StatefulSets and ReplicationControllers.

Called by ``server/registry/kinds/workloads/sets.py``.
"""

from __future__ import annotations

from typing import Any

from instar.base.field_errors import (
    FieldError,
    child,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1123_label
from instar.kube.builtin_rules.basics import (
    amount,
    choice_errors,
    count_errors,
    dns_label_errors,
    int_or_percent_errors,
    whole_percent_errors,
)
from instar.kube.builtin_rules.claims import claim_errors
from instar.kube.builtin_rules.go_internal_text import internal
from instar.kube.builtin_rules.pods.pod_spec import (
    label_and_annotation_errors,
    lasting_template_errors,
)
from instar.kube.builtin_rules.selectors import (
    in_go_order,
    is_convertible,
    is_empty,
    label_errors,
    selector_errors,
)

STS_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
STS_IMMUTABLE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
_DEPLOYMENT_TYPES = ("Recreate", "RollingUpdate")


_DEPLOYMENT_COUNTS = (
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
)


def statefulset_name(name: str, prefix: bool) -> list[str]:
    """Check the name, which becomes a label value of the pods."""
    return dns1123_label(f"{name[:-1]}a" if prefix and name.endswith("-") else name)


def _selector_errors(spec: Object, kind: str) -> list[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    found = selector_errors(selector, "spec.selector")
    if is_empty(selector):
        text = f"empty selector is invalid for {kind}"
        found.append(invalid("spec.selector", in_go_order(selector), text))
    return found


def _template_errors(spec: Object, owner: str, unreadable: str | None) -> list[FieldError]:
    """Check selector and template; ``unreadable`` is the message for an invalid selector."""
    selector, template = spec.get("selector"), spec.get("template") or {}
    if unreadable is not None and selector is not None and not is_convertible(selector):
        return [invalid("spec.selector", in_go_order(selector), unreadable)]
    labels = (template.get("metadata") or {}).get("labels")
    found = label_errors(selector, labels, "spec.template")
    return found + lasting_template_errors(template, "spec.template", owner)


def deployment_errors(spec: Object) -> list[FieldError]:
    found = count_errors(spec, "spec", "replicas")
    found += _selector_errors(spec, "deployment")
    found += _template_errors(spec, "ReplicaSet", "invalid label selector")
    found += _strategy_errors(spec.get("strategy") or {}, "spec.strategy")
    found += count_errors(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    found += count_errors(spec, "spec", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        text = "must be greater than minReadySeconds"
        found.append(invalid("spec.progressDeadlineSeconds", deadline, text))
    return found


def _strategy_errors(strategy: Object, path: str) -> list[FieldError]:
    type, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    where = child(path, "rollingUpdate")
    if type == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden(where, text)]
    if type != "RollingUpdate":
        return [
            not_supported(path, _go_strategy(strategy, "DeploymentStrategy"), _DEPLOYMENT_TYPES)
        ]
    unavailable, surge = (rolling or {}).get("maxUnavailable"), (rolling or {}).get("maxSurge")
    found = int_or_percent_errors(unavailable or 0, child(where, "maxUnavailable"))
    found += int_or_percent_errors(surge or 0, child(where, "maxSurge"))
    if amount(unavailable) == 0 and amount(surge) == 0:
        text = "may not be 0 when `maxSurge` is 0"
        found.append(invalid(child(where, "maxUnavailable"), unavailable, text))
    return found + whole_percent_errors(unavailable, child(where, "maxUnavailable"))


def deployment_status_errors(status: Object) -> list[FieldError]:
    """Check that no replica count exceeds the total."""
    found = count_errors(status, "status", "observedGeneration")
    for name in _DEPLOYMENT_COUNTS:
        found += count_errors(status, "status", name)
    found += count_errors(status, "status", "collisionCount", "terminatingReplicas")
    total = status.get("replicas", 0)
    for name in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        if status.get(name, 0) > total:
            text = "cannot be greater than status.replicas"
            found.append(invalid(child("status", name), status.get(name, 0), text))
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        text = "cannot be greater than readyReplicas"
        found.append(invalid("status.availableReplicas", status["availableReplicas"], text))
    return found


def replicaset_errors(spec: Object) -> list[FieldError]:
    found = count_errors(spec, "spec", "replicas", "minReadySeconds")
    found += _selector_errors(spec, "deployment")
    return found + _template_errors(spec, "ReplicaSet", "invalid label selector")


def daemonset_errors(spec: Object) -> list[FieldError]:
    selector, template = spec.get("selector"), spec.get("template") or {}
    found = [] if selector is None else selector_errors(selector, "spec.selector")
    if selector is None or is_convertible(selector):
        labels = (template.get("metadata") or {}).get("labels")
        found += label_errors(selector, labels, "spec.template")
    if selector is not None and is_empty(selector):
        text = "empty selector is invalid for daemonset"
        found.append(invalid("spec.selector", in_go_order(selector), text))
    found += lasting_template_errors(template, "spec.template", "DaemonSet")
    found += count_errors(spec, "spec", "minReadySeconds")
    found += _daemon_update_errors(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    return found + count_errors(spec, "spec", "revisionHistoryLimit")


def _daemon_update_errors(strategy: Object, path: str) -> list[FieldError]:
    type = strategy.get("type", "")
    if type == "OnDelete":
        return []
    if type != "RollingUpdate":
        shown = _go_strategy(strategy, "DaemonSetUpdateStrategy")
        return [not_supported(path, shown, ("RollingUpdate", "OnDelete"))]
    where, rolling = child(path, "rollingUpdate"), strategy.get("rollingUpdate") or {}
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    found: list[FieldError] = []
    for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        found += int_or_percent_errors(value or 0, child(where, name))
        found += whole_percent_errors(value, child(where, name))
    if amount(unavailable) and amount(surge):
        text = "may not be set when maxUnavailable is non-zero"
        found.append(invalid(child(where, "maxSurge"), surge, text))
    elif not amount(unavailable) and not amount(surge):
        where = child(where, "maxUnavailable")
        found.append(required(where, "cannot be 0 when maxSurge is 0"))
    return found


def statefulset_errors(spec: Object, *, created: bool) -> list[FieldError]:
    """Check a spec; ``created``: claim templates cannot change and are checked once."""
    found: list[FieldError] = []
    policy = spec.get("podManagementPolicy", "")
    if policy not in ("OrderedReady", "Parallel"):
        text = "must be 'OrderedReady' or 'Parallel'"
        found.append(invalid("spec.podManagementPolicy", policy, text))
    found += _stateful_update_errors(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    where = "spec.persistentVolumeClaimRetentionPolicy"
    for name, value in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        found += choice_errors(value, child(where, name), ("Retain", "Delete"))
    if created:
        for position, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            where = index("spec.volumeClaimTemplates", position)
            found += claim_errors(claim.get("spec") or {}, child(where, "spec"))
    found += count_errors(spec, "spec", "replicas", "minReadySeconds")
    found += count_errors(spec.get("ordinals") or {}, "spec.ordinals", "start")
    if spec.get("serviceName"):
        found += dns_label_errors(spec["serviceName"], "spec.serviceName")
    found += _selector_errors(spec, "statefulset")
    found += _template_errors(_with_claims(spec), "StatefulSet", "")
    metadata = (spec.get("template") or {}).get("metadata") or {}
    return found + label_and_annotation_errors(metadata, "spec.template")


def ready_errors(status: Object, names: tuple[str, ...]) -> list[FieldError]:
    """Check counts that are parts of ``status.replicas``."""
    most = status.get("replicas", 0)
    found = [
        invalid(f"status.{name}", status.get(name, 0), "cannot be greater than status.replicas")
        for name in names
        if status.get(name, 0) > most
    ]
    if "availableReplicas" in names:
        ready, available = status.get("readyReplicas", 0), status.get("availableReplicas", 0)
        if available > ready:
            text = "cannot be greater than readyReplicas"
            found.append(invalid("status.availableReplicas", available, text))
    return found


def _with_claims(spec: Object) -> Object:
    """Return the pod spec with a volume for each claim template."""
    claims = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for claim in spec.get("volumeClaimTemplates") or ()
        for name in [(claim.get("metadata") or {}).get("name", "")]
    ]
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    present = pod.get("volumes") or []
    names = {volume.get("name") for volume in present}
    volumes = [*present, *(claim for claim in claims if claim["name"] not in names)]
    return {**spec, "template": {**template, "spec": {**pod, "volumes": volumes}}}


def _stateful_update_errors(strategy: Object, path: str) -> list[FieldError]:
    type, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    where = child(path, "rollingUpdate")
    if type not in ("OnDelete", "RollingUpdate"):
        shown = _go_strategy(strategy, "StatefulSetUpdateStrategy")
        return [invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]
    if rolling is None:
        return []
    if type == "OnDelete":
        shown = internal("apps/v1#RollingUpdateStatefulSetStrategy", rolling)
        return [invalid(where, shown, "only allowed for updateStrategy 'RollingUpdate'")]
    found = count_errors(rolling, where, "partition")
    unavailable = rolling.get("maxUnavailable")
    if unavailable is not None:
        place = child(where, "maxUnavailable")
        found += int_or_percent_errors(unavailable, place)
        if not amount(unavailable):
            found.append(invalid(place, unavailable, "cannot be 0"))
        found += whole_percent_errors(unavailable, place)
    return found


def _go_strategy(strategy: Object, message: str) -> Any:
    return internal(f"apps/v1#{message}", strategy)


def replication_controller_errors(spec: Object) -> list[FieldError]:
    found = count_errors(spec, "spec", "minReadySeconds")
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        found.append(required("spec.selector"))
    found += count_errors(spec, "spec", "replicas")
    if template is None:
        return [*found, required("spec.template")]
    labels = (template.get("metadata") or {}).get("labels")
    found += label_errors({"matchLabels": selector}, labels, "spec.template")
    return found + lasting_template_errors(template, "spec.template", "ReplicationController")


def revision_errors(revision: Object) -> list[FieldError]:
    """Check a new revision; an update may not change its data."""
    found = count_errors(revision, "", "revision")
    data = revision.get("data")
    if data is None:
        found.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        found.append(required("data", "data must be a valid JSON object"))
    return found
