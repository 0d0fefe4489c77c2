"""Converts HorizontalPodAutoscalers between v1 and v2; fields missing in v1 go to annotations.

``builtin_resources.py`` makes it the converter of that kind; ``autoscaling.py`` uses the names of
its annotations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from instar.base.json_values import Object, copy_json

V1, V2 = "autoscaling/v1", "autoscaling/v2"
_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS, BEHAVIOR = f"{_PREFIX}metrics", f"{_PREFIX}behavior"
_CURRENT_METRICS, _CONDITIONS = f"{_PREFIX}current-metrics", f"{_PREFIX}conditions"
_RULE_FIELDS = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY_FIELDS = ("Type", "Value", "PeriodSeconds")


class AutoscalerConverter:
    """A ``VersionConverter``."""

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        change = _to_v1 if api_version == V1 else _to_v2
        return [
            obj if obj.get("apiVersion") == api_version else change(copy_json(obj))
            for obj in objects
        ]


def _to_v1(obj: Object) -> Object:
    spec, status = obj["spec"], obj.get("status") or {}
    kept: dict[str, Any] = {}
    others = []
    for metric in spec.pop("metrics", None) or ():
        target = (metric.get("resource") or {}).get("target") or {}
        if _is_cpu(metric) and "averageUtilization" in target:
            spec["targetCPUUtilizationPercentage"] = target["averageUtilization"]
        else:
            others.append(_metric_to_v1(metric))
    if others:
        kept[METRICS] = others
    behavior = spec.pop("behavior", None)
    current = status.pop("currentMetrics", None) or []
    if current:
        kept[_CURRENT_METRICS] = [_current_to_v1(metric) for metric in current]
    for metric in current:
        found = ((metric.get("resource") or {}).get("current") or {}).get("averageUtilization")
        if _is_cpu(metric) and found is not None:
            status["currentCPUUtilizationPercentage"] = found
    if behavior is not None:
        kept[BEHAVIOR] = {
            name: _rules_to_internal(behavior.get(name[:1].lower() + name[1:]))
            for name in ("ScaleUp", "ScaleDown")
        }
    conditions = status.pop("conditions", None)
    if conditions:
        kept[_CONDITIONS] = conditions
    status.setdefault("currentReplicas", 0)
    if kept:
        texts = {name: json.dumps(kept[name], separators=(",", ":")) for name in sorted(kept)}
        annotations = obj["metadata"].get("annotations") or {}
        obj["metadata"]["annotations"] = {**annotations, **texts}
    return {**obj, "apiVersion": V1, "status": status}


def _to_v2(obj: Object) -> Object:
    metadata, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    annotations = metadata.get("annotations") or {}
    found = {
        name: _parsed(annotations.pop(name))
        for name in (METRICS, BEHAVIOR, _CURRENT_METRICS, _CONDITIONS)
        if name in annotations
    }
    if not annotations:
        metadata.pop("annotations", None)
    percentage = spec.pop("targetCPUUtilizationPercentage", None)
    metrics = [] if percentage is None else [_cpu(percentage)]
    metrics += [_metric_to_v2(metric) for metric in _objects(found.get(METRICS))]
    if metrics:
        spec["metrics"] = metrics
    behavior = found.get(BEHAVIOR)
    if isinstance(behavior, dict):
        spec["behavior"] = {
            name[:1].lower() + name[1:]: _rules_from_internal(behavior[name])
            for name in ("ScaleUp", "ScaleDown")
            if isinstance(behavior.get(name), dict)
        }
    status.pop("currentCPUUtilizationPercentage", None)
    current = [_current_to_v2(metric) for metric in _objects(found.get(_CURRENT_METRICS))]
    status["currentMetrics"] = current or None
    if _objects(found.get(_CONDITIONS)):
        status["conditions"] = _objects(found[_CONDITIONS])
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    return {**obj, "apiVersion": V2, "status": status}


def _parsed(text: str) -> Any:
    """Parse an annotation that any client may have written; invalid JSON counts as absent."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _objects(value: Any) -> list[Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _is_cpu(metric: Object) -> bool:
    return metric.get("type") == "Resource" and (metric.get("resource") or {}).get("name") == "cpu"


def _cpu(percentage: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": percentage}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _given(**members: Any) -> Object:
    return {name: value for name, value in members.items() if value is not None}


def _reference(value: Any) -> Object:
    found = value if isinstance(value, dict) else {}
    return {name: found[name] for name in ("kind", "name", "apiVersion") if name in found}


def _metric_to_v1(metric: Object) -> Object:
    type = metric.get("type", "")
    place = type[:1].lower() + type[1:]
    source = metric.get(place) or {}
    target, named = source.get("target") or {}, source.get("metric") or {}
    name, selector = named.get("name", ""), named.get("selector")
    average, usage = target.get("averageValue"), target.get("averageUtilization")
    shapes: Mapping[str, Callable[[], Object]] = {
        "Resource": lambda: _given(
            name=source.get("name"), targetAverageUtilization=usage, targetAverageValue=average
        ),
        "ContainerResource": lambda: _given(
            name=source.get("name"),
            targetAverageUtilization=usage,
            targetAverageValue=average,
            container=source.get("container"),
        ),
        "Pods": lambda: _given(metricName=name, targetAverageValue=average, selector=selector),
        "Object": lambda: _given(
            target=_reference(source.get("describedObject")),
            metricName=name,
            targetValue=target.get("value", "0"),
            selector=selector,
            averageValue=average,
        ),
        "External": lambda: _given(
            metricName=name,
            metricSelector=selector,
            targetValue=target.get("value"),
            targetAverageValue=average,
        ),
    }
    return {"type": type, place: shapes[type]()} if type in shapes else {"type": type}


def _metric_to_v2(metric: Object) -> Object:
    type = str(metric.get("type", ""))
    place = type[:1].lower() + type[1:]
    source = metric.get(place) if isinstance(metric.get(place), dict) else {}
    assert isinstance(source, dict)
    usage = source.get("targetAverageUtilization")
    average = source.get("averageValue" if type == "Object" else "targetAverageValue")
    value = None if type == "Object" and average else source.get("targetValue")
    kind = "Utilization" if usage is not None else "AverageValue" if average else "Value"
    target = _given(type=kind, value=value, averageValue=average, averageUtilization=usage)
    selector = source.get("metricSelector") or source.get("selector")
    named = _given(name=source.get("metricName", ""), selector=selector)
    if type in ("Resource", "ContainerResource"):
        body = _given(name=source.get("name"), target=target, container=source.get("container"))
    elif type == "Object":
        described = _reference(source.get("target"))
        body = {"describedObject": described, "target": target, "metric": named}
    else:
        body = {"metric": named, "target": target}
    return {"type": type, place: body} if place else {"type": type}


def _current_to_v1(metric: Object) -> Object:
    type = metric.get("type", "")
    place = type[:1].lower() + type[1:]
    source = metric.get(place) or {}
    current, named = source.get("current") or {}, source.get("metric") or {}
    average = current.get("averageValue")
    if type in ("Resource", "ContainerResource"):
        body = _given(
            name=source.get("name"),
            currentAverageUtilization=current.get("averageUtilization"),
            currentAverageValue=average or "0",
            container=source.get("container"),
        )
    elif type == "Pods":
        body = _given(
            metricName=named.get("name"),
            currentAverageValue=average or "0",
            selector=named.get("selector"),
        )
    elif type == "Object":
        body = _given(
            target=_reference(source.get("describedObject")),
            metricName=named.get("name"),
            currentValue=current.get("value", "0"),
            selector=named.get("selector"),
            averageValue=average,
        )
    else:
        body = _given(
            metricName=named.get("name"),
            metricSelector=named.get("selector"),
            currentValue=current.get("value", "0"),
            currentAverageValue=average,
        )
    return {"type": type, place: body} if place else {"type": type}


def _current_to_v2(metric: Object) -> Object:
    type = str(metric.get("type", ""))
    place = type[:1].lower() + type[1:]
    source = metric.get(place) if isinstance(metric.get(place), dict) else {}
    assert isinstance(source, dict)
    average = source.get("averageValue" if type == "Object" else "currentAverageValue")
    current = _given(
        value=source.get("currentValue"),
        averageValue=average,
        averageUtilization=source.get("currentAverageUtilization"),
    )
    selector = source.get("metricSelector") or source.get("selector")
    named = _given(name=source.get("metricName", ""), selector=selector)
    if type in ("Resource", "ContainerResource"):
        body = _given(name=source.get("name"), current=current, container=source.get("container"))
    elif type == "Object":
        described = _reference(source.get("target"))
        body = {"metric": named, "current": current, "describedObject": described}
    else:
        body = {"metric": named, "current": current}
    return {"type": type, place: body} if place else {"type": type}


def _rules_to_internal(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    shown = {name: rules.get(name[:1].lower() + name[1:]) for name in _RULE_FIELDS}
    if shown["Policies"] is not None:
        shown["Policies"] = [
            {name: policy.get(name[:1].lower() + name[1:]) for name in _POLICY_FIELDS}
            for policy in shown["Policies"]
        ]
    return shown


def _rules_from_internal(rules: Object) -> Object:
    found = {
        name[:1].lower() + name[1:]: rules[name]
        for name in _RULE_FIELDS
        if rules.get(name) is not None
    }
    if "policies" in found:
        found["policies"] = [
            {name[:1].lower() + name[1:]: policy[name] for name in _POLICY_FIELDS if name in policy}
            for policy in _objects(found["policies"])
        ]
    return found
