"""ResourceQuota plugin: rejects a create that would exceed its namespace's quota.

Counts the stored objects plus creates in flight, instead of trusting the quota's status, which
``server/registry/controllers/quotas.py`` writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction

from instar.base.errors import forbidden
from instar.base.json_values import Object
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.server.registry.admission.plugins.limit_ranger import amount_text
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.admission.plugins.quota_usage import in_scope, needs_content, taken
from instar.server.registry.resources.admission import Interest, Operation, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend, Objects
from instar.server.registry.stored.entry import UnreadableEntry

_IN_FLIGHT_SECONDS = 10.0
FREE = frozenset({("", "events"), ("events.k8s.io", "events"), ("", "bindings")})


class QuotaAdmission:
    def __init__(self, backend: Backend, clock: Callable[[], float] = time.monotonic) -> None:
        self._backend, self._clock = backend, clock
        self._quotas = Lookup(backend, "", "resourcequotas")
        self._allowed: dict[tuple[str, str], dict[str, tuple[float, Object]]] = {}
        """(collection, namespace) → admitted objects that may not be stored yet."""

    def interest(self, serving: Serving, verb: Verb) -> Interest:
        counted = serving.namespaced and (serving.group, serving.plural) not in FREE
        return Interest.VALIDATE if counted and verb is Verb.CREATE else Interest.NONE

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> None:
        target, obj = operation.target, operation.obj
        serving = target.serving
        place = (serving.group, serving.plural)
        if operation.subresource or obj is None:
            return
        if not self._quotas:
            return
        quotas = [
            quota
            for quota in self._quotas.within(target.namespace)
            if in_scope(quota, *place, obj) and (quota.get("spec") or {}).get("hard")
        ]
        if not quotas:
            return
        wanted = taken(*place, obj)
        name = obj["metadata"].get("name", "")
        objects = target.resource.objects
        allowed = self._in_flight(objects, target.namespace)
        for quota in quotas:
            found = self._exceeded(quota, place, wanted, objects, target.namespace, allowed)
            if found:
                raise forbidden(*place, name, found)
        if not operation.dry_run:
            self._allowed.setdefault((objects.prefix, target.namespace), {})[
                f"{target.namespace}/{name}"
            ] = (self._clock() + _IN_FLIGHT_SECONDS, obj)

    def _in_flight(self, objects: Objects, namespace: str) -> list[Object]:
        key, now = (objects.prefix, namespace), self._clock()
        waiting = {
            suffix: (until, obj)
            for suffix, (until, obj) in self._allowed.get(key, {}).items()
            if until > now and suffix not in objects.entries
        }
        self._allowed[key] = waiting
        return [obj for _, obj in waiting.values()]

    def _exceeded(
        self,
        quota: Object,
        place: tuple[str, str],
        wanted: dict[str, Fraction],
        objects: Objects,
        namespace: str,
        allowed: list[Object],
    ) -> str:
        hard = quota["spec"]["hard"]
        names = sorted(name for name in hard if name in wanted)
        if not names:
            return ""
        scope = quota if _has_scopes(quota) else None
        used = usage(objects, place, namespace, names, scope)
        for obj in allowed:
            if in_scope(quota, *place, obj):
                for name, amount in taken(*place, obj).items():
                    if name in used:
                        used[name] += amount
        over = [name for name in names if used[name] + wanted[name] > quantity_value(hard[name])]
        if not over:
            return ""

        def shown(amounts: dict[str, Fraction]) -> str:
            return ",".join(f"{name}={amount_text(name, amounts[name])}" for name in over)

        limited = ",".join(f"{name}={hard[name]}" for name in over)
        return (
            f"exceeded quota: {quota['metadata']['name']}, requested: {shown(wanted)}, "
            f"used: {shown(used)}, limited: {limited}"
        )


def _has_scopes(quota: Object) -> bool:
    spec = quota["spec"]
    return bool(spec.get("scopes") or spec.get("scopeSelector"))


def usage(
    objects: Objects,
    place: tuple[str, str],
    namespace: str,
    names: list[str],
    scope: Object | None,
) -> dict[str, Fraction]:
    """Return the usage of a collection's objects by the given names; ``scope`` is the quota when
    its scopes select objects."""
    used = dict.fromkeys(names, Fraction())
    if scope is None and not any(needs_content(name) for name in names):
        count = Fraction(sum(1 for _ in objects.suffixes(f"{namespace}/")))
        return dict.fromkeys(names, count)
    for obj in _objects(objects, namespace):
        if scope is not None and not in_scope(scope, *place, obj):
            continue
        for name, amount in taken(*place, obj).items():
            if name in used:
                used[name] += amount
    return used


def _objects(objects: Objects, namespace: str) -> Iterator[Object]:
    for suffix in list(objects.suffixes(f"{namespace}/")):
        try:
            yield objects.entries[suffix].decode()
        except (UnreadableEntry, KeyError):
            continue
