"""ResourceQuota of a server without the quota controller: checked by the status of quotas.

``lifecycle/admission_setup.py`` puts it in place of ``resource_quota.py`` if the quota controller
is off. A quota without a status limits nothing, as with kube-apiserver alone. A quota whose status
a client wrote limits writes, and what a write that it allows takes is added to ``status.used``.
"""

from __future__ import annotations

from collections.abc import Awaitable

from instar.base.errors import conflict, forbidden
from instar.base.json_values import Object
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.server.registry.admission.home_views import KindOf
from instar.server.registry.admission.plugins.limit_ranger import amount_text
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.admission.plugins.quota.quota_scopes import in_scope
from instar.server.registry.admission.plugins.quota.quota_usage import Usage, added_usage, counts
from instar.server.registry.admission.plugins.quota.resource_quota import (
    check_requirements,
    may_take_quota,
    quota_interest,
    refused_name,
)
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.make_entry import put_server_object
from instar.wire.storage.store import Stale

_TRIES = 4
_CHANGED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class StatusQuotaAdmission:
    def __init__(self, backend: Backend, of_kind: KindOf) -> None:
        self._backend, self._of_kind = backend, of_kind
        self._quotas = Lookup(backend, "", "resourcequotas")

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return quota_interest(serving, verb)

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        if not self._quotas or operation.obj is None or not may_take_quota(operation):
            return None
        return self._count(operation, operation.obj)

    async def _count(self, operation: Operation, obj: Object) -> None:
        serving, namespace = operation.target.serving, operation.target.namespace
        place = (serving.group, serving.plural)
        taken: list[tuple[str, Usage]] = []
        for quota in self._quotas.in_namespace(namespace):
            hard = (quota.get("status") or {}).get("hard") or {}
            matched = [name for name in hard if counts(place, name)]
            if not matched or not in_scope(quota, *place, obj):
                continue
            check_requirements(operation, place, quota, hard)
            added = added_usage(quota, place, obj, operation.old)
            found = exceeded_status(quota, matched, added)
            if found:
                raise forbidden(*place, refused_name(operation), found)
            taken.append((quota["metadata"]["name"], added))
        if operation.dry_run:
            return
        for name, added in taken:
            await self._add(f"{namespace}/{name}", added)

    async def _add(self, suffix: str, wanted: Usage) -> None:
        quotas = self._of_kind("", "ResourceQuota")
        assert quotas is not None, "ResourceQuota is a built-in kind"
        for _ in range(_TRIES):
            entry = quotas.objects.entries.get(suffix)
            if entry is None:
                return  # it was deleted, and limits nothing any more
            quota = entry.decode()
            used = used_after(quota, wanted)
            if not used:
                return
            quota["status"]["used"] = {**quota["status"]["used"], **used}
            try:
                await put_server_object(self._backend, quotas, suffix, quota, entry.revision)
                return
            except Stale:
                await self._backend.consistent()
        raise conflict("", "resourcequotas", suffix.partition("/")[2], _CHANGED)


def exceeded_status(quota: Object, names: list[str], wanted: Usage) -> str:
    """Why the quota does not allow what is wanted; nothing where it does. ``names`` are those of
    its limits that count for such objects."""
    status, name = quota.get("status") or {}, quota["metadata"]["name"]
    hard, used = status.get("hard") or {}, status.get("used") or {}
    if any(each not in used for each in names):
        return f"status unknown for quota: {name}, resources: {','.join(sorted(names))}"
    limited = sorted(each for each in names if wanted.get(each))
    over = [
        each
        for each in limited
        if quantity_value(used[each]) + wanted[each] > quantity_value(hard[each])
    ]
    if not over:
        return ""
    requested = ",".join(f"{each}={amount_text(each, wanted[each])}" for each in over)
    return (
        f"exceeded quota: {name}, requested: {requested}, "
        f"used: {','.join(f'{each}={used[each]}' for each in over)}, "
        f"limited: {','.join(f'{each}={hard[each]}' for each in over)}"
    )


def used_after(quota: Object, wanted: Usage) -> dict[str, str]:
    """The changed part of ``status.used`` once what is wanted is stored."""
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    return {
        each: amount_text(each, quantity_value(used[each]) + wanted[each])
        for each in sorted(hard)
        if each in used and wanted.get(each)
    }
