"""ResourceQuota of a server without the quota controller: checked by the status of quotas.

``lifecycle/admission_setup.py`` puts it in place of ``resource_quota.py`` if the quota controller
is off. A quota without a status limits nothing, as with kube-apiserver alone. A quota whose status
a client wrote limits creates, and each create that it allows is added to ``status.used``.
"""

from __future__ import annotations

from collections.abc import Awaitable
from fractions import Fraction

from instar.base.errors import conflict, forbidden
from instar.base.json_values import Object
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.server.registry.admission.home_views import KindOf
from instar.server.registry.admission.plugins.limit_ranger import amount_text
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.admission.plugins.quota.quota_usage import in_scope, object_usage
from instar.server.registry.admission.plugins.quota.resource_quota import FREE
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
        counted = serving.namespaced and (serving.group, serving.plural) not in FREE
        return PluginPhases.VALIDATE if counted and verb is Verb.CREATE else PluginPhases.NONE

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        if not self._quotas or operation.subresource or operation.obj is None:
            return None
        return self._count(operation, operation.obj)

    async def _count(self, operation: Operation, obj: Object) -> None:
        serving, namespace = operation.target.serving, operation.target.namespace
        place = (serving.group, serving.plural)
        wanted = object_usage(*place, obj)
        quotas = [one for one in self._quotas.within(namespace) if in_scope(one, *place, obj)]
        for quota in quotas:
            found = exceeded_status(quota, wanted)
            if found:
                raise forbidden(*place, obj["metadata"].get("name", ""), found)
        if operation.dry_run:
            return
        for quota in quotas:
            await self._add(f"{namespace}/{quota['metadata']['name']}", wanted)

    async def _add(self, suffix: str, wanted: dict[str, Fraction]) -> None:
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


def exceeded_status(quota: Object, wanted: dict[str, Fraction]) -> str:
    """Why the quota does not allow what is wanted; nothing where it does."""
    status, name = quota.get("status") or {}, quota["metadata"]["name"]
    hard, used = status.get("hard") or {}, status.get("used") or {}
    limited = sorted(each for each in hard if each in wanted)
    if any(each not in used for each in limited):
        return f"status unknown for quota: {name}, resources: {','.join(limited)}"
    over = [
        each
        for each in limited
        if wanted[each] and quantity_value(used[each]) + wanted[each] > quantity_value(hard[each])
    ]
    if not over:
        return ""
    requested = ",".join(f"{each}={amount_text(each, wanted[each])}" for each in over)
    return (
        f"exceeded quota: {name}, requested: {requested}, "
        f"used: {','.join(f'{each}={used[each]}' for each in over)}, "
        f"limited: {','.join(f'{each}={hard[each]}' for each in over)}"
    )


def used_after(quota: Object, wanted: dict[str, Fraction]) -> dict[str, str]:
    """The changed part of ``status.used`` once what is wanted is stored."""
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    return {
        each: amount_text(each, quantity_value(used[each]) + wanted[each])
        for each in sorted(hard)
        if each in used and wanted.get(each)
    }
