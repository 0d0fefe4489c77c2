"""ResourceQuota plugin: rejects a write that would exceed its namespace's quota.

The admission chain (``server/lifecycle/admission_setup.py``) calls it for each write. The plugin
counts the stored objects plus writes in flight, instead of trusting the quota's status, which
``server/registry/controllers/quotas.py`` writes.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from instar.base.errors import forbidden
from instar.base.json_values import Object
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.server.registry.admission.plugins.limit_ranger import amount_text
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.admission.plugins.quota.quota_scopes import (
    in_scope,
    is_terminating_pod,
)
from instar.server.registry.admission.plugins.quota.quota_usage import (
    Place,
    added_usage,
    counts,
    missing_requirements,
)
from instar.server.registry.admission.plugins.quota.usage_totals import (
    QuotaSelection,
    Usage,
    UsageTotals,
    selection,
)
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend, Objects

_IN_FLIGHT_SECONDS = 10.0
FREE = frozenset({("", "events"), ("events.k8s.io", "events"), ("", "bindings")})
_PODS = ("", "pods")
_GROWING = frozenset(
    {
        _PODS,
        ("", "services"),
        ("", "persistentvolumeclaims"),
        ("resource.k8s.io", "resourceclaims"),
    }
)
"""Resources whose objects may take more of a quota when they are updated."""


class _QuotaDemand(NamedTuple):
    """A quota that counts the written object."""

    quota: Object
    selection: QuotaSelection
    wanted: Usage


class _Admitted(NamedTuple):
    """A write that was admitted and may not be stored yet."""

    until: float
    obj: Object
    old: Object | None
    revision: int
    """Of the stored object that it replaces; 0 for a create."""


class QuotaAdmission:
    def __init__(
        self, backend: Backend, home: Backend, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``backend`` has the objects that count, ``home`` the quotas."""
        self._clock = clock
        self._quotas = Lookup(home, "", "resourcequotas")
        self._totals = UsageTotals(backend)
        self._allowed: dict[tuple[str, str], dict[str, _Admitted]] = {}
        """(collection, namespace) → admitted writes by key suffix."""

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return quota_interest(serving, verb)

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        target, obj = operation.target, operation.obj
        if obj is None or not self._quotas or not may_take_quota(operation):
            return None
        asked = [
            one
            for quota in self._quotas.in_namespace(target.namespace)
            if (one := _demand(operation, obj, quota)) is not None
        ]
        if self._judge(operation, asked):
            return None
        return self._judge_when_known(operation, asked)

    async def _judge_when_known(self, operation: Operation, asked: Sequence[_QuotaDemand]) -> None:
        while not self._judge(operation, asked):
            for one in asked:
                await self._totals.of(operation.target.resource.objects, one.selection)

    def _judge(self, operation: Operation, asked: Sequence[_QuotaDemand]) -> bool:
        """Raise if a quota would be exceeded. Return False where usage must be summed up first.
        Nothing is awaited between the sum and noting the object as admitted."""
        if not asked:
            return True
        used = [self._totals.known(one.selection) for one in asked]
        target, obj = operation.target, operation.obj
        assert obj is not None
        objects, name = target.resource.objects, refused_name(operation)
        suffix = f"{target.namespace}/{name}"
        allowed = self._in_flight(objects, target.namespace, suffix)
        for one, found in zip(asked, used, strict=True):
            if found is None:
                return False
            text = _exceeded(one, found, allowed)
            if text:
                raise forbidden(*one.selection.place, name, text)
        if not operation.dry_run:
            until = self._clock() + _IN_FLIGHT_SECONDS
            admitted = _Admitted(until, obj, operation.old, _revision(objects, suffix))
            self._allowed.setdefault((objects.prefix, target.namespace), {})[suffix] = admitted
        return True

    def _in_flight(self, objects: Objects, namespace: str, own: str) -> list[_Admitted]:
        """Return the writes in flight except an earlier attempt at the object ``own``."""
        key, now = (objects.prefix, namespace), self._clock()
        waiting = {
            suffix: one
            for suffix, one in self._allowed.get(key, {}).items()
            if one.until > now and _revision(objects, suffix) == one.revision
        }
        self._allowed[key] = waiting
        return [one for suffix, one in waiting.items() if suffix != own]


def quota_interest(serving: Serving, verb: Verb) -> PluginPhases:
    """Return the phases of both ResourceQuota plugins."""
    place = (serving.group, serving.plural)
    counted = serving.namespaced and place not in FREE
    takes = (counted and verb is Verb.CREATE) or (place in _GROWING and verb is Verb.UPDATE)
    return PluginPhases.VALIDATE if takes else PluginPhases.NONE


def may_take_quota(operation: Operation) -> bool:
    """Return whether the write may take more of a quota, as kube-apiserver decides it."""
    serving, obj, old = operation.target.serving, operation.obj or {}, operation.old
    place = (serving.group, serving.plural)
    if place == _PODS and operation.subresource == "resize":
        return True
    if operation.subresource:
        return False
    if operation.verb is Verb.CREATE or old is None or place != _PODS:
        return True
    return is_terminating_pod(obj["spec"]) != is_terminating_pod(old["spec"])


def check_requirements(operation: Operation, place: Place, quota: Object, hard: Object) -> None:
    """Raise if a container does not set what the quota limits."""
    if place == _PODS and operation.obj is not None:
        lacking = missing_requirements(hard, operation.obj)
        if lacking:
            name = quota["metadata"]["name"]
            raise forbidden(*place, refused_name(operation), f"failed quota: {name}: {lacking}")


def refused_name(operation: Operation) -> str:
    """Return the name of the object in a refusal."""
    metadata = (operation.obj or {}).get("metadata") or {}
    return operation.name or metadata.get("name", "")


def _demand(operation: Operation, obj: Object, quota: Object) -> _QuotaDemand | None:
    """Return what the write takes of the quota; None if nothing."""
    target = operation.target
    place = (target.serving.group, target.serving.plural)
    hard = (quota.get("spec") or {}).get("hard") or {}
    matched = [name for name in hard if counts(place, name)]
    if not matched or not in_scope(quota, *place, obj):
        return None
    check_requirements(operation, place, quota, hard)
    added = added_usage(quota, place, obj, operation.old)
    wanted = {name: added[name] for name in sorted(matched) if added.get(name)}
    if not wanted:
        return None
    return _QuotaDemand(quota, selection(place, target.namespace, list(wanted), quota), wanted)


def _revision(objects: Objects, suffix: str) -> int:
    entry = objects.entries.get(suffix)
    return 0 if entry is None else entry.revision


def _exceeded(one: _QuotaDemand, used: Usage, allowed: list[_Admitted]) -> str:
    quota, (place, _, names, _), wanted = one
    hard = quota["spec"]["hard"]
    for admitted in allowed:
        if in_scope(quota, *place, admitted.obj):
            for name, amount in added_usage(quota, place, admitted.obj, admitted.old).items():
                if name in used:
                    used[name] += amount
    over = [name for name in names if used[name] + wanted[name] > quantity_value(hard[name])]
    if not over:
        return ""

    def shown(amounts: Usage) -> str:
        return ",".join(f"{name}={amount_text(name, amounts[name])}" for name in over)

    limited = ",".join(f"{name}={hard[name]}" for name in over)
    return (
        f"exceeded quota: {quota['metadata']['name']}, requested: {shown(wanted)}, "
        f"used: {shown(used)}, limited: {limited}"
    )
