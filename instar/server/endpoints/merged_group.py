"""Discovery documents of a group of which another server serves a version, or all of them.

``documents.py`` gives it to ``groups.py``, which makes it instead of a ``GroupPart``
for such a group. Versions are ordered by the priorities of the APIServices, as upstream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.api import discovery
from instar.kube.api.encoding.json_text import encode
from instar.kube.api.names import GroupVersion
from instar.server.aggregation.routes import (
    ApiRoute,
    RankedVersion,
    group_rank,
    sort_versions,
)
from instar.server.endpoints.groups import GroupMember, GroupPart, Piece

if TYPE_CHECKING:
    from instar.server.aggregation.aggregator import Aggregator

_CUSTOM_VERSION_PRIORITY, _BUILTIN_VERSION_PRIORITY = 100, 15


class MergedGroupPart(GroupPart):
    """Discovery documents of one group with remote versions."""

    def __init__(self, name: str, members: Sequence[GroupMember], aggregator: Aggregator) -> None:
        super().__init__(name, members)
        table = aggregator.table
        self._explicit: Mapping[str, ApiRoute] = {
            version: route for (group, version), route in table.explicit.items() if group == name
        }
        self._entries = {
            route.version: aggregator.discovery.entry(name, route.version)
            for route in table.of_group(name)
        }
        self.remote = frozenset(self._entries)
        self._hashes = aggregator.openapi.hashes(name)

    @cached_property
    def listed(self) -> Piece | None:
        ranked = self._ranked()
        return (group_rank(self.name, ranked), encode(self._body(ranked))) if self.name else None

    @cached_property
    def aggregated(self) -> Piece | None:
        ranked = self._ranked()
        local = discovery.aggregated_group(self.name, self.resources)
        known = {one["version"]: one for one in local[1]["versions"]} if local else {}
        known |= self._entries
        body = {
            "metadata": {"name": self.name} if self.name else {},
            "versions": [known[one.name] for one in ranked if one.name in known],
        }
        return (group_rank(self.name, ranked)[0], self.name), encode(body)

    def index(self) -> dict[GroupVersion, str]:
        local = super().index()
        here = {version: said for version, said in local.items() if self._is_local(version)}
        elsewhere = {GroupVersion(self.name, name): said for name, said in self._hashes.items()}
        return here | elsewhere

    def _is_local(self, version: GroupVersion) -> bool:
        return version.version not in self.remote

    def document(self) -> bytes | None:
        return encode({"kind": "APIGroup", "apiVersion": "v1", **self._body(self._ranked())})

    def _body(self, ranked: list[RankedVersion]) -> Object:
        versions = [
            {"groupVersion": f"{self.name}/{one.name}", "version": one.name} for one in ranked
        ]
        return {"name": self.name, "versions": versions, "preferredVersion": versions[0]}

    def _ranked(self) -> list[RankedVersion]:
        found = {
            version: RankedVersion(version, route.group_priority, route.version_priority)
            for version, route in self._explicit.items()
            if version in self.remote
        }
        for resource in self.resources:
            for version in resource.crd.served():
                found.setdefault(version, self._local(version, builtin=resource.builtin))
        return sort_versions(found.values())

    def _local(self, version: str, *, builtin: bool) -> RankedVersion:
        route = self._explicit.get(version)
        if route is not None:
            return RankedVersion(version, route.group_priority, route.version_priority)
        if not builtin:
            group = discovery.CUSTOM_GROUP_PRIORITY
            return RankedVersion(version, group, _CUSTOM_VERSION_PRIORITY)
        group = discovery.BUILTIN_GROUP_PRIORITIES.get(
            self.name, discovery.UNLISTED_BUILTIN_PRIORITY
        )
        return RankedVersion(version, group, _BUILTIN_VERSION_PRIORITY)
