"""Validates HorizontalPodAutoscalers (v2) and PodDisruptionBudgets.

Called by ``server/registry/kinds/autoscaling.py``.
"""

from __future__ import annotations

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
from instar.kube.api.string_rules import path_segment_name
from instar.kube.builtin_rules.basics import (
    choice_errors,
    count_errors,
    int_or_percent_errors,
    texts_at,
    whole_percent_errors,
)
from instar.kube.builtin_rules.go_internal_text import internal
from instar.kube.builtin_rules.selectors import selector_errors

_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_PLACES = {name: name[:1].lower() + name[1:] for name in _TYPES}
_NEED = "must set either a target raw value or a target utilization"
_LONGEST_WINDOW = 3600
_LONGEST_PERIOD = 1800


def autoscaler_errors(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and least < 1:
        text = "must be greater than or equal to 1"
        found.append(invalid("spec.minReplicas", least, text))
    if most == 0:
        found.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 1:
        text = "must be greater than or equal to 1"
        found.append(invalid("spec.maxReplicas", most, text))
    if least is not None and most < least:
        text = "must be greater than or equal to `minReplicas`"
        found.append(invalid("spec.maxReplicas", most, text))
    found += _reference_errors(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
    found += _metrics_errors(spec.get("metrics") or [], least, "spec.metrics")
    behavior = spec.get("behavior") or {}
    for name in ("scaleUp", "scaleDown"):
        if behavior.get(name) is not None:
            found += _rule_errors(behavior[name], f"spec.behavior.{name}")
    return found


def _reference_errors(reference: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name in ("kind", "name"):
        value, where = reference.get(name, ""), child(path, name)
        found += texts_at(where, value, path_segment_name(value)) if value else [required(where)]
    version = reference.get("apiVersion", "")
    if "/" not in version and not (version == "v1" and reference.get("kind")):
        text = "apiVersion must specify API group"
        found.append(invalid(child(path, "apiVersion"), version, text))
    return found


def _metrics_errors(metrics: list[Object], least: int | None, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, metric in enumerate(metrics):
        found += _metric_errors(metric, index(path, position))
    to_zero = any(metric.get("type") in ("Object", "External") for metric in metrics)
    if least == 0 and not to_zero:
        text = (
            "must specify at least one Object or External metric to support scaling to zero "
            "replicas"
        )
        found.append(forbidden(path, text))
    return found


def _metric_errors(metric: Object, path: str) -> list[FieldError]:
    type = metric.get("type", "")
    if type not in _TYPES:
        # Upstream checks it once as a type and once as a source, and reports both.
        unknown = not_supported(child(path, "type"), type, _TYPES)
        absent = required(child(path, "type"), "must specify a metric source type")
        return [unknown, unknown] if type else [absent, unknown, unknown]
    place = _PLACES[type]
    found: list[FieldError] = []
    if metric.get(place) is None:
        text = "must populate information for the given metric source"
        found.append(required(child(path, place), text))
    else:
        found += _source_errors(metric[place], type, child(path, place))
    for other in _PLACES.values():
        if other != place and metric.get(other) is not None:
            text = "must populate the given metric source only"
            found.append(forbidden(child(path, other), text))
    return found


def _source_errors(source: Object, type: str, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    where, target = child(path, "target"), source.get("target") or {}
    if type in ("Resource", "ContainerResource"):
        if not source.get("name"):
            found.append(required(child(path, "name"), "must specify a resource name"))
        if type == "ContainerResource" and not source.get("container"):
            found.append(required(child(path, "container"), "must specify a container"))
        return found + _resource_target_errors(target, where)
    metric = source.get("metric") or {}
    if not metric.get("name"):
        text = "must specify a metric name"
        found.append(required(child(path, "metric.name"), text))
    if metric.get("selector") is not None:
        found += selector_errors(metric["selector"], child(path, "metric.selector"))
    found += _target_type_errors(target, where)
    if type == "Object":
        found += _described_errors(source.get("describedObject") or {}, path)
    return found + _value_errors(target, type, where)


def _described_errors(reference: Object, path: str) -> list[FieldError]:
    where = child(path, "describedObject")
    return [required(child(where, name)) for name in ("kind", "name") if not reference.get(name)]


def _target_type_errors(target: Object, path: str) -> list[FieldError]:
    type = target.get("type", "")
    found: list[FieldError] = []
    if not type:
        found.append(required(child(path, "type"), "must specify a metric target type"))
    if type not in ("Utilization", "Value", "AverageValue"):
        text = "must be either Utilization, Value, or AverageValue"
        found.append(invalid(child(path, "type"), type, text))
    return found


def _resource_target_errors(target: Object, path: str) -> list[FieldError]:
    found = _target_type_errors(target, path)
    usage, average = target.get("averageUtilization"), target.get("averageValue")
    where = child(path, "averageUtilization")
    if usage is not None and usage < 1:
        found.append(invalid(where, usage, "must be greater than 0"))
    if usage is None and average is None:
        found.append(required(where, _NEED))
    if usage is not None and average is not None:
        text = "may not set both a target raw value and a target utilization"
        found.append(forbidden(child(path, "averageValue"), text))
    return found


def _value_errors(target: Object, type: str, path: str) -> list[FieldError]:
    value, average = target.get("value"), target.get("averageValue")
    if type == "Pods":
        text = "must specify a positive target averageValue"
        return [] if average is not None else [required(child(path, "averageValue"), text)]
    if value is None and average is None:
        text = "must set either a target value for metric or a per-pod target"
        return [required(child(path, "averageValue"), text)]
    if value is not None and average is not None and type == "External":
        text = "may not set both a target value for metric and a per-pod target"
        return [forbidden(child(path, "value"), text)]
    return []


def _rule_errors(rules: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    window, where = rules.get("stabilizationWindowSeconds"), "stabilizationWindowSeconds"
    if window is not None and window < 0:
        found.append(invalid(child(path, where), window, "must be greater than or equal to zero"))
    if window is not None and window > _LONGEST_WINDOW:
        text = f"must be less than or equal to {_LONGEST_WINDOW}"
        found.append(invalid(child(path, where), window, text))
    policy = rules.get("selectPolicy")
    if policy is not None:
        choices = ("Disabled", "Max", "Min")
        found += choice_errors(policy, child(path, "selectPolicy"), choices)
    if not rules.get("policies"):
        found.append(required(child(path, "policies"), "must specify at least one Policy"))
    for position, one in enumerate(rules.get("policies") or ()):
        found += _policy_errors(one, index(child(path, "policies"), position))
    return found


def _policy_errors(policy: Object, path: str) -> list[FieldError]:
    found = choice_errors(policy.get("type", ""), child(path, "type"), ("Percent", "Pods"))
    for name in ("value", "periodSeconds"):
        if policy.get(name, 0) <= 0:
            text = "must be greater than zero"
            found.append(invalid(child(path, name), policy.get(name, 0), text))
    if policy.get("periodSeconds", 0) > _LONGEST_PERIOD:
        text = f"must be less than or equal to {_LONGEST_PERIOD}"
        found.append(invalid(child(path, "periodSeconds"), policy["periodSeconds"], text))
    return found


def budget_errors(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        text = "minAvailable and maxUnavailable cannot be both set"
        shown = internal("policy/v1#PodDisruptionBudgetSpec", spec)
        found.append(invalid("spec", shown, text))
    for name in ("minAvailable", "maxUnavailable"):
        if spec.get(name) is not None:
            found += int_or_percent_errors(spec[name], child("spec", name))
            found += whole_percent_errors(spec[name], child("spec", name))
    if spec.get("selector") is not None:
        found += selector_errors(spec["selector"], "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None:
        choices = ("AlwaysAllow", "IfHealthyBudget")
        found += choice_errors(policy, "spec.unhealthyPodEvictionPolicy", choices)
    return found


def budget_status_errors(status: Object) -> list[FieldError]:
    names = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return count_errors(status, "status", *names)
