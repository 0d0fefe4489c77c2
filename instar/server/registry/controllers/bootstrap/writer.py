"""Creates, updates and deletes bootstrap objects through the verbs, as the server itself.

Used by ``controller.py``, ``api_services.py``, ``ip_addresses.py``,
``address_claims.py`` and ``server_lease.py``.
"""

from __future__ import annotations

from instar.base import errors
from instar.base.json_values import Object, copy_json
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.make_entry import put_server_object
from instar.server.registry.verbs.write import create
from instar.wire.storage.store import Stale

_OPTIONS = WriteOptions(manager="kube-apiserver")


class BootstrapWriter:
    """Stores bootstrap objects."""

    def __init__(self, context: Context, catalog: Catalog) -> None:
        self._context, self._catalog = context, catalog
        self.supervision = context.supervision

    def timestamp(self) -> str:
        return self._context.timestamp()

    def find(self, piece: Object) -> tuple[Resource, str, CacheEntry | None]:
        """Return the resource of an object, its key suffix, and the stored entry if any."""
        group = piece["apiVersion"].rpartition("/")[0]
        resource = self._catalog.of_kind(group, piece["kind"])
        assert resource is not None, f"{piece['kind']} is a kind of ours"
        metadata = piece["metadata"]
        namespace = metadata.get("namespace", "")
        suffix = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
        return resource, suffix, resource.objects.entries.get(suffix)

    async def make(self, piece: Object) -> bool:
        """Create the object, then write its status, which a create would ignore. Return False where
        another replica was first, or the namespace is terminating."""
        resource, suffix, _ = self.find(piece)
        obj = copy_json(piece)
        serving, namespace = resource.serving, piece["metadata"].get("namespace", "")
        status = obj.pop("status", None)
        serving.strategy.decode(obj, serving.storage)
        target = Target(resource, serving, resource.codec, serving.storage, namespace)
        try:
            await create(self._context, target, obj, _OPTIONS)
        except (errors.AlreadyExists, errors.Forbidden, errors.NotFound):
            return False
        if status is not None:
            await self._write_first_status(resource, suffix, status)
        return True

    async def _write_first_status(self, resource: Resource, suffix: str, status: Object) -> None:
        """Write the status, unless another controller writes one at the same time."""
        entry = resource.objects.entries.get(suffix)
        if entry is None or _has_conditions(entry):
            return
        now = self._context.timestamp()
        conditions = [{**each, "lastTransitionTime": now} for each in status["conditions"]]
        obj = {**entry.decode(), "status": {**status, "conditions": conditions}}
        try:
            await self.rewrite(resource, entry, obj)
        except Stale:
            newer = resource.objects.entries.get(suffix)
            if newer is not None and not _has_conditions(newer):
                raise

    async def rewrite(self, resource: Resource, entry: CacheEntry, obj: Object) -> None:
        await put_server_object(self._context.backend, resource, entry.suffix, obj, entry.revision)

    async def remove(self, resource: Resource, entry: CacheEntry) -> None:
        await self._context.backend.remove(resource.objects, entry.suffix, entry.revision)


def _has_conditions(entry: CacheEntry) -> bool:
    return bool((entry.decode().get("status") or {}).get("conditions"))
