"""LimitRanger plugin: applies defaults of a namespace's LimitRanges and rejects violations.

Part of the admission chain that ``server/lifecycle/admission_setup.py`` composes; the write verbs
call it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from instar.base.errors import Forbidden, forbidden
from instar.base.json_values import Object
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.kube.quantities import canonical_quantity
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend

_ANNOTATION = "kubernetes.io/limit-ranger"
_CLAIM = "PersistentVolumeClaim"


_LIMITED_RESOURCES = ("pods", "persistentvolumeclaims")


class LimitRanger:
    def __init__(self, backend: Backend) -> None:
        self._ranges = Lookup(backend, "", "limitranges")

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        limited = not serving.group and serving.plural in _LIMITED_RESOURCES
        return PluginPhases.BOTH if limited else PluginPhases.NONE

    def admit(self, operation: Operation) -> None:
        if operation.obj is None or _kind(operation) != "pods" or operation.verb is not Verb.CREATE:
            return
        for limits in self._ranges.in_namespace(operation.target.namespace):
            _fill(operation.obj, limits["spec"].get("limits") or [])

    def validate(self, operation: Operation) -> None:
        kind = _kind(operation)
        if operation.obj is None or kind is None:
            return
        if kind == "pods" and operation.verb is not Verb.CREATE:
            return
        found: list[str] = []
        for limits in self._ranges.in_namespace(operation.target.namespace):
            for item in limits["spec"].get("limits") or ():
                found += _broken(item, operation.obj, kind)
        if found:
            raise _refused(operation, found)


def _kind(operation: Operation) -> str | None:
    serving = operation.target.serving
    if serving.group or operation.subresource or operation.verb is Verb.DELETE:
        return None
    return serving.plural if serving.plural in _LIMITED_RESOURCES else None


def _containers(obj: Object) -> Iterator[tuple[Object, str]]:
    spec = obj.get("spec") or {}
    for name, word in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(name) or ():
            yield container, word


def _fill(obj: Object, limits: list[Object]) -> None:
    """Fill in missing requests and limits of containers, and record that in an annotation."""
    told: list[str] = []
    wanted = [item for item in limits if item.get("type") == "Container"]
    given = {
        "requests": {
            k: v for item in wanted for k, v in (item.get("defaultRequest") or {}).items()
        },
        "limits": {k: v for item in wanted for k, v in (item.get("default") or {}).items()},
    }
    for container, word in _containers(obj):
        resources = container.setdefault("resources", {})
        for member, single in (("requests", "request"), ("limits", "limit")):
            present = resources.get(member) or {}
            added = sorted(set(given[member]) - set(present))
            if added:
                resources[member] = {**present, **{name: given[member][name] for name in added}}
                told.append(f"{', '.join(added)} {single} for {word} {container.get('name', '')}")
    if told:
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(told)}"


def _broken(item: Object, obj: Object, kind: str) -> Iterator[str]:
    type = item.get("type", "")
    if kind == "persistentvolumeclaims":
        if type == _CLAIM:
            requests = ((obj.get("spec") or {}).get("resources") or {}).get("requests") or {}
            yield from _violations(item, type, requests, requests, "request")
        return
    if type == "Container":
        for container, _ in _containers(obj):
            resources = container.get("resources") or {}
            requests, limits = (resources.get(name) or {} for name in ("requests", "limits"))
            yield from _violations(item, type, requests, limits, "limit")
    elif type == "Pod":
        yield from _violations(item, type, _sum(obj, "requests"), _sum(obj, "limits"), "limit")


def _violations(
    item: Object, type: str, requests: Object, limits: Object, word: str
) -> Iterator[str]:
    for name, least in sorted((item.get("min") or {}).items()):
        head = f"minimum {name} usage per {type} is {least}"
        if name not in requests:
            yield f"{head}.  No request is specified"
        elif quantity_value(requests[name]) < quantity_value(least):
            yield f"{head}, but request is {requests[name]}"
    for name, most in sorted((item.get("max") or {}).items()):
        head = f"maximum {name} usage per {type} is {most}"
        if name not in limits:
            yield f"{head}.  No {word} is specified"
        elif quantity_value(limits[name]) > quantity_value(most):
            yield f"{head}, but {word} is {limits[name]}"
    for name, ratio in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        head = f"{name} max limit to request ratio per {type} is {ratio}"
        if name not in requests or name not in limits:
            yield f"{head}, but no request is specified or request is 0"
            continue
        asked, limit = quantity_value(requests[name]), quantity_value(limits[name])
        if asked and limit / asked > quantity_value(ratio):
            yield f"{head}, but provided ratio is {float(limit / asked):.6f}"


def _sum(obj: Object, member: str) -> dict[str, str]:
    """Return the sum over containers; init containers count by their largest."""
    total: dict[str, Fraction] = {}
    largest: dict[str, Fraction] = {}
    for container, word in _containers(obj):
        for name, text in ((container.get("resources") or {}).get(member) or {}).items():
            value = quantity_value(text)
            if word == "container":
                total[name] = total.get(name, Fraction()) + value
            else:
                largest[name] = max(largest.get(name, Fraction()), value)
    names = set(total) | set(largest)
    return {
        name: amount_text(name, max(total.get(name, Fraction()), largest.get(name, Fraction())))
        for name in names
    }


def amount_text(name: str, amount: Fraction) -> str:
    """Format an amount as a quantity: thousandths for fractions, powers of 1024 for bytes."""
    if amount.denominator != 1:
        return canonical_quantity(f"{-(-(amount * 1000) // 1)}m")
    if "memory" in name or "storage" in name:
        whole = int(amount)
        return canonical_quantity(f"{whole // 1024}Ki" if whole and whole % 1024 == 0 else whole)
    return canonical_quantity(int(amount))


def _refused(operation: Operation, found: list[str]) -> Forbidden:
    serving = operation.target.serving
    name = ((operation.obj or {}).get("metadata") or {}).get("name", "")
    text = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
    return forbidden(serving.group, serving.plural, name, text)
