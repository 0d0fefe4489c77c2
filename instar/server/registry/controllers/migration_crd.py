"""Migration state on a CRD: the ``StorageMigrating`` condition and pruning of storedVersions.

Called by ``migrations.py`` at the start and end of a migration. Unlike upstream, storedVersions is
pruned only after success, only if the CRD's generation is still the one that the migration began
with, and only when the census shows no object at another version.
"""

from __future__ import annotations

from instar.base.errors import Conflict, NotFound
from instar.base.json_values import Object
from instar.kube.apply.field_set import contains, key_element
from instar.kube.apply.managed_fields import BadManagedFields, decode
from instar.server.registry.insight.census import ServerCensus
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.verbs.apply import apply_configuration

_CONDITION = "StorageMigrating"
_MANAGER = "migration-runner-controller"
_MESSAGE_PATH = ("f:status", "f:conditions", key_element({"type": _CONDITION}), "f:message")
"""Path of the condition's message, owned by the manager that wrote the condition last."""
_ATTEMPTS = 20
_PRUNED_TEXT = "The migration has succeeded and the stored versions have been updated"
_MOVED_TEXT = (
    "The migration has succeeded but the stored versions have not been updated due to a "
    "generation mismatch"
)
_LEFT = (
    "The migration has succeeded but the stored versions have not been updated: "
    "{} objects are stored at another version"
)
_FAILED = "The migration has failed"


class MigratingCrd:
    """The CRD of one resource under migration. Built-in resources have no CRD: nothing is
    written."""

    def __init__(self, context: Context, crds: Resource, census: ServerCensus, name: str) -> None:
        self._context = context
        self._crds = crds
        self._census = census
        self._name = name

    async def begin(self, migration: str, *, resumed: bool) -> None:
        """Set the condition. A ``resumed`` migration keeps the generation it began with."""
        for _ in range(_ATTEMPTS):
            crd = await self._read()
            if crd is None or (resumed and _is_ours(crd)):
                return
            text = f"Migration {migration} is running"
            condition = self._condition(crd, "True", "MigrationRunning", text)
            condition["observedGeneration"] = crd["metadata"].get("generation", 0)
            if await self._apply(crd, {"conditions": [condition]}):
                return

    async def end(self, *, succeeded: bool) -> None:
        for _ in range(_ATTEMPTS):
            crd = await self._read()
            if crd is None or not _is_ours(crd):
                return
            await self._census.prepare(self._name)
            if await self._apply(crd, self._final_status(crd, succeeded=succeeded)):
                return

    def _final_status(self, crd: Object, *, succeeded: bool) -> Object:
        observed = _of(crd).get("observedGeneration")
        if not succeeded:
            condition = self._condition(crd, "False", "MigrationFailed", _FAILED)
            return {"conditions": [condition]}
        storage = next(item["name"] for item in crd["spec"]["versions"] if item["storage"])
        counts = self._census.of_crd(self._name)
        left = sum(count for version, count in counts.items() if version != storage)
        moved = observed != crd["metadata"].get("generation", 0)
        text = _MOVED_TEXT if moved else _LEFT.format(left) if left else _PRUNED_TEXT
        status: Object = {"conditions": [self._condition(crd, "False", "MigrationSucceeded", text)]}
        if not moved and not left:
            status["storedVersions"] = [storage]
        return status

    def _condition(self, crd: Object, value: str, reason: str, message: str) -> Object:
        before = _of(crd)
        moved = before.get("status") != value
        since = self._context.timestamp() if moved else before["lastTransitionTime"]
        condition = {
            "type": _CONDITION,
            "status": value,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since,
        }
        if before.get("observedGeneration"):
            condition["observedGeneration"] = before["observedGeneration"]
        return condition

    async def _read(self) -> Object | None:
        entry = self._crds.objects.entries.get(self._name)
        if entry is None:
            return None
        objects = await self._crds.codec.objects([entry], self._crds.serving.versions["v1"])
        return objects[0]

    async def _apply(self, crd: Object, status: Object) -> bool:
        """Write the status; return False on a conflict, after which the CRD must be read again."""
        serving = self._crds.serving
        version = serving.versions["v1"]
        target = Target(self._crds, serving, self._crds.codec, version, name=self._name)
        config = {
            "apiVersion": version.api_version,
            "kind": version.kind,
            "metadata": {
                "name": self._name,
                "resourceVersion": crd["metadata"]["resourceVersion"],
            },
            "status": status,
        }
        options = WriteOptions(manager=_MANAGER, force=True)
        try:
            await apply_configuration(self._context, target, config, (), options, "status")
        except Conflict:
            await self._context.backend.consistent()
            return False
        except NotFound:
            return True
        return True


def _is_ours(crd: Object) -> bool:
    """Return whether the condition is true and was written by this server, not ``instar migrate``.

    At most one migration of a resource runs at a time, so a condition of ours is this one's.
    """
    if _of(crd).get("status") != "True":
        return False
    try:
        managers = decode(crd["metadata"].get("managedFields"))
    except BadManagedFields:
        return True
    owners = {
        key.manager for key, entry in managers.items() if contains(entry.fields, _MESSAGE_PATH)
    }
    return not owners or _MANAGER in owners


def _of(crd: Object) -> Object:
    conditions: list[Object] = (crd.get("status") or {}).get("conditions") or []
    return next((item for item in conditions if item["type"] == _CONDITION), {})
