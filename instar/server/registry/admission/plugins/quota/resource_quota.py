"""ResourceQuota plugin: rejects a create that would exceed its namespace's quota.

The admission chain (``server/lifecycle/admission_setup.py``) calls it for each write. The plugin
counts the stored objects plus creates in flight, instead of trusting the quota's status, which
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
from instar.server.registry.admission.plugins.quota.quota_usage import in_scope, object_usage
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


class _Asked(NamedTuple):
    """A quota that counts the new object."""

    quota: Object
    selection: QuotaSelection


class QuotaAdmission:
    def __init__(
        self, backend: Backend, home: Backend, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``backend`` has the objects that count, ``home`` the quotas."""
        self._clock = clock
        self._quotas = Lookup(home, "", "resourcequotas")
        self._totals = UsageTotals(backend)
        self._allowed: dict[tuple[str, str], dict[str, tuple[float, Object]]] = {}
        """(collection, namespace) → admitted objects that may not be stored yet."""

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        counted = serving.namespaced and (serving.group, serving.plural) not in FREE
        return PluginPhases.VALIDATE if counted and verb is Verb.CREATE else PluginPhases.NONE

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        target, obj = operation.target, operation.obj
        if operation.subresource or obj is None or not self._quotas:
            return None
        place = (target.serving.group, target.serving.plural)
        quotas = [
            quota
            for quota in self._quotas.within(target.namespace)
            if in_scope(quota, *place, obj) and (quota.get("spec") or {}).get("hard")
        ]
        if not quotas:
            return None
        wanted = object_usage(*place, obj)
        asked = [
            _Asked(quota, selection(place, target.namespace, names, quota))
            for quota in quotas
            if (names := sorted(name for name in quota["spec"]["hard"] if name in wanted))
        ]
        if self._judge(operation, wanted, asked):
            return None
        return self._judge_when_known(operation, wanted, asked)

    async def _judge_when_known(
        self, operation: Operation, wanted: Usage, asked: Sequence[_Asked]
    ) -> None:
        while not self._judge(operation, wanted, asked):
            for one in asked:
                await self._totals.of(operation.target.resource.objects, one.selection)

    def _judge(self, operation: Operation, wanted: Usage, asked: Sequence[_Asked]) -> bool:
        """Raise if a quota would be exceeded. Return False where usage must be summed up first.
        Nothing is awaited between the sum and noting the object as admitted."""
        used = [self._totals.known(one.selection) for one in asked]
        target, obj = operation.target, operation.obj
        assert obj is not None
        objects, name = target.resource.objects, obj["metadata"].get("name", "")
        allowed = self._in_flight(objects, target.namespace)
        for one, found in zip(asked, used, strict=True):
            if found is None:
                return False
            text = _exceeded(one, wanted, found, allowed)
            if text:
                raise forbidden(*one.selection.place, name, text)
        if not operation.dry_run:
            self._allowed.setdefault((objects.prefix, target.namespace), {})[
                f"{target.namespace}/{name}"
            ] = (self._clock() + _IN_FLIGHT_SECONDS, obj)
        return True

    def _in_flight(self, objects: Objects, namespace: str) -> list[Object]:
        key, now = (objects.prefix, namespace), self._clock()
        waiting = {
            suffix: (until, obj)
            for suffix, (until, obj) in self._allowed.get(key, {}).items()
            if until > now and suffix not in objects.entries
        }
        self._allowed[key] = waiting
        return [obj for _, obj in waiting.values()]


def _exceeded(one: _Asked, wanted: Usage, used: Usage, allowed: list[Object]) -> str:
    quota, (place, _, names, _) = one
    hard = quota["spec"]["hard"]
    for obj in allowed:
        if in_scope(quota, *place, obj):
            for name, amount in object_usage(*place, obj).items():
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
