"""Adds up the resources that a pod needs as a whole; pure functions.

Quotas count with it. Sidecars (init containers that keep running) count beside the containers,
other init containers set a minimum, resources of the pod itself replace the sum of its containers,
and a running container counts with what it has been given if that is more than what it wants.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from instar.base.json_values import Object
from instar.kube.builtin_rules.pods.compute_resources import quantity_value

Amounts = dict[str, Fraction]
_WHOLE_POD = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def pod_needs(pod: Object, member: str) -> Amounts:
    """Return the sum of ``requests`` or ``limits``, as ``member`` says."""
    spec = pod.get("spec") or {}
    given = _given_by_name(pod)
    infeasible = _is_infeasible(pod)

    def need(container: Object) -> Amounts:
        wanted = _amounts((container.get("resources") or {}).get(member))
        status = given.get(container.get("name"))
        if status is None or not status.get("resources"):
            return wanted
        actual = [_amounts(status["resources"].get(member))]
        if member == "requests":
            actual.append(_amounts(status.get("allocatedResources")))
        return _most(*actual) if infeasible else _most(wanted, *actual)

    total = _sum(*map(need, spec.get("containers") or ()))
    sidecars: Amounts = {}
    least: Amounts = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            total, sidecars = _sum(total, need(container)), _sum(sidecars, need(container))
            least = _most(least, sidecars)
        else:
            wanted = _amounts((container.get("resources") or {}).get(member))
            least = _most(least, _sum(wanted, sidecars))
    return _with_whole_pod(_most(total, least), spec, member)


def has_pod_resources(spec: Object) -> bool:
    """Return whether requests or limits are set for the pod as a whole."""
    resources = spec.get("resources") or {}
    return any(
        _is_for_pods(name) for part in ("requests", "limits") for name in resources.get(part) or ()
    )


def _with_whole_pod(total: Amounts, spec: Object, member: str) -> Amounts:
    whole = _amounts((spec.get("resources") or {}).get(member))
    total |= {name: amount for name, amount in whole.items() if _is_for_pods(name)}
    for name, amount in _amounts(spec.get("overhead")).items():
        if member == "requests" or total.get(name):
            total[name] = total.get(name, Fraction()) + amount
    return total


def _is_for_pods(name: str) -> bool:
    return name in _WHOLE_POD or name.startswith(_HUGE_PAGES)


def _given_by_name(pod: Object) -> dict[Any, Object]:
    status = pod.get("status") or {}
    lists = (status.get("containerStatuses"), status.get("initContainerStatuses"))
    return {one.get("name"): one for found in lists for one in found or ()}


def _is_infeasible(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(
        one.get("type") == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in conditions
    )


def _amounts(texts: Object | None) -> Amounts:
    return {name: quantity_value(text) for name, text in (texts or {}).items()}


def _sum(*several: Amounts) -> Amounts:
    found: Amounts = {}
    for one in several:
        for name, amount in one.items():
            found[name] = found.get(name, Fraction()) + amount
    return found


def _most(*several: Amounts) -> Amounts:
    found: Amounts = {}
    for one in several:
        for name, amount in one.items():
            found[name] = max(found.get(name, Fraction()), amount)
    return found
