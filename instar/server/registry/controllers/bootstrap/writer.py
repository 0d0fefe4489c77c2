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

_OPTIONS = WriteOptions(manager="kube-apiserver")


class BootstrapWriter:
    """Stores bootstrap objects."""

    def __init__(self, context: Context, catalog: Catalog) -> None:
        self._context, self._catalog = context, catalog
        self.supervision = context.supervision

    def timestamp(self) -> str:
        return self._context.timestamp()

    def found(self, piece: Object) -> tuple[Resource, str, CacheEntry | None]:
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
        resource, suffix, _ = self.found(piece)
        obj = copy_json(piece)
        serving, namespace = resource.serving, piece["metadata"].get("namespace", "")
        status = obj.pop("status", None)
        serving.strategy.decode(obj, serving.storage)
        target = Target(resource, serving, resource.codec, serving.storage, namespace)
        try:
            await create(self._context, target, obj, _OPTIONS)
        except (errors.AlreadyExists, errors.Forbidden, errors.NotFound):
            return False
        entry = resource.objects.entries.get(suffix)
        if status is not None and entry is not None:
            now = self._context.timestamp()
            for condition in status["conditions"]:
                condition["lastTransitionTime"] = now
            await self.rewrite(resource, entry, {**entry.decode(), "status": status})
        return True

    async def rewrite(self, resource: Resource, entry: CacheEntry, obj: Object) -> None:
        await put_server_object(self._context.backend, resource, entry.suffix, obj, entry.revision)

    async def remove(self, resource: Resource, entry: CacheEntry) -> None:
        await self._context.backend.remove(resource.objects, entry.suffix, entry.revision)
