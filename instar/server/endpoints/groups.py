"""Discovery documents, one part per API group, so that a CRD change affects a single part.

``documents.py`` and ``openapi.py`` call it. A part is made when it is first requested and cached
until a CRD of its group changes; it consists of immutable values, so a thread may encode it. No
HTTP here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha512
from typing import TYPE_CHECKING, NamedTuple

from instar import __version__
from instar.kube.api import discovery
from instar.kube.api.discovery import Rank
from instar.kube.api.encoding.json_text import encode
from instar.kube.api.names import GroupVersion
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.stored_schemas import StoredSchemas

if TYPE_CHECKING:
    from instar.server.aggregation.aggregator import Aggregator

SERVER_VERSION = "v1.36.4+instar." + __version__
Piece = tuple[Rank, bytes]


class GroupMember(NamedTuple):
    """A resource with the schemas that its OpenAPI documents are made of."""

    resource: discovery.DiscoveryResource
    stored: StoredSchemas | None
    """None for built-in kinds, which change only with the server."""

    def digest(self) -> bytes:
        """Digest of everything in its OpenAPI."""
        return SERVER_VERSION.encode() if self.stored is None else self.stored.digest


class GroupPart:
    """Discovery documents of one group."""

    def __init__(self, name: str, members: Sequence[GroupMember]) -> None:
        self.name = name
        self.members = members
        self.resources = [member.resource for member in members]
        self.remote: frozenset[str] = frozenset()
        """Versions that another server serves."""

    @cached_property
    def listed(self) -> Piece | None:
        return _encode_ranked(discovery.listed_group(self.name, self.resources))

    @cached_property
    def aggregated(self) -> Piece | None:
        return _encode_ranked(discovery.aggregated_group(self.name, self.resources))

    @cached_property
    def versions(self) -> list[GroupVersion]:
        """Versions with a discovery and an OpenAPI document."""
        found = {
            version
            for resource in self.resources
            if resource.established
            for version in resource.crd.served()
        }
        return sorted(GroupVersion(self.name, version) for version in found)

    @property
    def shown(self) -> set[GroupVersion]:
        """Versions that clients can ask for, here and elsewhere."""
        return {*self.versions, *(GroupVersion(self.name, version) for version in self.remote)}

    @cached_property
    def published(self) -> dict[GroupVersion, str]:
        """The hash of each OpenAPI document, computed from the members, so that no document has to
        be made for it."""
        said: dict[GroupVersion, list[bytes]] = {version: [] for version in self.versions}
        for member in self.members:
            if member.resource.established:
                for version in member.resource.crd.served():
                    said[GroupVersion(self.name, version)].append(member.digest())
        return {version: _hash(str(version), digests) for version, digests in said.items()}

    def index(self) -> dict[GroupVersion, str]:
        """The hash of each OpenAPI v3 document that clients can ask for."""
        return self.published

    def document(self) -> bytes | None:
        """The document at ``/apis/<group>``; None where nothing is served."""
        found = discovery.group(self.resources, self.name)
        return None if found is None else encode(found)

    def resource_list(self, version: str) -> bytes | None:
        """The document at ``/apis/<group>/<version>``; None where nothing is served."""
        kept = self._resource_lists.get(version)
        if kept is None and GroupVersion(self.name, version) in self.versions:
            found = discovery.resource_list(self.resources, self.name, version)
            kept = self._resource_lists[version] = encode(found)
        return kept

    @cached_property
    def _resource_lists(self) -> dict[str, bytes]:
        return {}


MergeParts = Callable[[str, list[GroupMember], "Aggregator"], GroupPart]


class Groups:
    """Cache of the parts of all groups; a part is dropped when a CRD of its group changes."""

    def __init__(
        self,
        catalog: Catalog,
        aggregator: Aggregator | None = None,
        merge: MergeParts | None = None,
    ) -> None:
        """``merge`` makes the part of a group of which the aggregator has a route."""
        self._catalog, self.aggregator, self._merge = catalog, aggregator, merge
        self._parts: dict[str, GroupPart] = {}
        catalog.on_group_changed(self._forget)

    def _forget(self, group: str) -> None:
        self._parts.pop(group, None)

    def all(self) -> list[GroupPart]:
        names = self._catalog.groups()
        if self.aggregator is not None:
            names |= self.aggregator.table.groups
        return [part for name in names if (part := self.part(name))]

    def part(self, name: str) -> GroupPart | None:
        """None for an unknown group."""
        found = self._parts.get(name)
        if found is None:
            stored = self._catalog.stored
            members = [
                GroupMember(
                    discovery.DiscoveryResource(item.crd, item.serving.builtin, item.serving.verbs),
                    None if item.serving.builtin else stored(item.crd.name),
                )
                for item in self._catalog.members(name)
            ]
            found = self._merged(name, members) or (GroupPart(name, members) if members else None)
            if found is not None:
                self._parts[name] = found
        return found

    def _merged(self, name: str, members: list[GroupMember]) -> GroupPart | None:
        if self._merge is None or self.aggregator is None:
            return None
        if name not in self.aggregator.table.groups:
            return None
        return self._merge(name, members, self.aggregator)


def _encode_ranked(ranked: discovery.Ranked | None) -> Piece | None:
    return None if ranked is None else (ranked[0], encode(ranked[1]))


def _hash(name: str, said: list[bytes]) -> str:
    whole = sha512(f"{SERVER_VERSION} {name}".encode())
    for digest in sorted(said):
        whole.update(digest)
    return whole.hexdigest().upper()
