"""Makes the furniture when the server is up, and what a namespace needs when one appears.

Whatever is there stays as it is, except a namespace's certificate of the cluster: clients trust by
it. One server of several does it. Nothing waits for any of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

from instar import errors
from instar.plain import Object, copy_json
from instar.registry.admission.namespaces import is_terminating
from instar.registry.controllers.furniture.flows import flow_pieces
from instar.registry.controllers.furniture.pieces import (
    ACCOUNT,
    AUTHORITY,
    api_pieces,
    class_pieces,
    namespace_pieces,
    service_pieces,
)
from instar.registry.controllers.leadership import Leadership
from instar.registry.controllers.queue import Delays, Queue
from instar.registry.resources.catalog import Catalog
from instar.registry.resources.context import Context, WriteOptions
from instar.registry.resources.resource import Resource, Target
from instar.registry.stored.entry import Entry
from instar.registry.stored.writing import put_own
from instar.registry.verbs.write import create
from instar.storage.cache import Change

_OPTIONS = WriteOptions(manager="kube-apiserver")
_DELAYS = Delays(0.5, 30.0)
_CLUSTER = ""
"""The key of what belongs to no namespace."""


@dataclass(frozen=True)
class House:
    """What the furniture says about the server it stands in."""

    authority: str
    """The certificate clients trust us by, PEM."""
    host: str
    port: int
    network: IPv4Network
    """Where services get their addresses from."""


class Furniture:
    def __init__(self, context: Context, catalog: Catalog, leadership: Leadership) -> None:
        self._context, self._catalog, self._leadership = context, catalog, leadership
        self._house: House | None = None
        self._places: Queue[str] = Queue("furniture of", self._furnish, _DELAYS, at_once=1)

    def start(self, house: House) -> None:
        """Once the server can be reached."""
        self._house = house
        for plural, name in (("configmaps", AUTHORITY), ("serviceaccounts", ACCOUNT)):
            self._watch(plural, f"/{name}")
        namespaces = self._catalog.builtin("", "namespaces").objects
        namespaces.listeners.append(lambda change: self._places.add(change.suffix))
        self._context.backend.cache.on_reset(self._look_at_all)
        self._leadership.on_elected(self._elected)
        if self._leadership.leads:
            self._look_at_all()

    async def stop(self) -> None:
        await self._places.stop()

    async def _elected(self) -> None:
        self._look_at_all()

    def _watch(self, plural: str, ending: str) -> None:
        def changed(change: Change[Entry]) -> None:
            if change.old is not None and change.suffix.endswith(ending):
                self._places.add(change.suffix.removesuffix(ending))

        self._catalog.builtin("", plural).objects.listeners.append(changed)

    def _look_at_all(self) -> None:
        for name in self._catalog.builtin("", "namespaces").objects.entries:
            self._places.add(name)
        self._places.add(_CLUSTER)

    async def _furnish(self, place: str) -> None:
        if not self._leadership.leads or self._house is None:
            return
        for piece in self._pieces(place, self._house):
            await self._make_sure_of(piece)

    def _pieces(self, place: str, house: House) -> Iterable[Object]:
        if place != _CLUSTER:
            entry = self._catalog.builtin("", "namespaces").objects.entries.get(place)
            if entry is None or is_terminating(entry):
                return ()
            return namespace_pieces(place, house.authority)
        return self._cluster_pieces(house)

    def _cluster_pieces(self, house: House) -> Iterator[Object]:
        yield from class_pieces()
        yield from service_pieces(house.host, house.port, house.network)
        yield from flow_pieces()
        yield from api_pieces(self._group_versions())

    def _group_versions(self) -> Iterator[tuple[str, str, bool]]:
        versions: dict[str, list[str]] = {}
        for resource in self._catalog.resources():
            serving = resource.serving
            known = versions.setdefault(serving.group, []) if serving.builtin else []
            known += [
                one.name
                for one in serving.versions.values()
                if one.served and one.name not in known
            ]
        for group, names in versions.items():
            for name in names:
                yield group, name, len(names) > 1 and name == names[0]

    async def _make_sure_of(self, piece: Object) -> None:
        group = piece["apiVersion"].rpartition("/")[0]
        resource = self._catalog.of_kind(group, piece["kind"])
        assert resource is not None, f"{piece['kind']} is a kind of ours"
        metadata = piece["metadata"]
        namespace = metadata.get("namespace", "")
        suffix = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
        entry = resource.objects.entries.get(suffix)
        if entry is None:
            await self._make(resource, suffix, namespace, copy_json(piece))
        elif metadata["name"] == AUTHORITY:
            await self._mend(resource, entry, piece)

    async def _make(self, resource: Resource, suffix: str, namespace: str, piece: Object) -> None:
        serving = resource.serving
        status = piece.pop("status", None)
        serving.strategy.decode(piece, serving.storage)
        target = Target(resource, serving, resource.codec, serving.storage, namespace)
        try:
            await create(self._context, target, piece, _OPTIONS)
        except (errors.AlreadyExists, errors.Forbidden, errors.NotFound):
            return  # another's was first, or the namespace is on its way out
        entry = resource.objects.entries.get(suffix)
        if status is not None and entry is not None:
            now = self._context.timestamp()
            for condition in status["conditions"]:
                condition["lastTransitionTime"] = now
            obj = {**entry.decode(), "status": status}
            await put_own(self._context.backend, resource, suffix, obj, entry.revision)

    async def _mend(self, resource: Resource, entry: Entry, piece: Object) -> None:
        obj = entry.decode()
        if obj.get("data") == piece["data"]:
            return
        obj["data"] = dict(piece["data"])
        await put_own(self._context.backend, resource, entry.suffix, obj, entry.revision)
