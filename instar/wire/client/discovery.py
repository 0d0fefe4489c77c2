"""Discovery client: lists a server's listable resources, each at its preferred version.

Used by the migrator's census and the restorer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from instar.base.errors import ApiError, NotFound
from instar.base.json_values import Object
from instar.wire.client.client import Client
from instar.wire.client.paths import resource_path


class ResourceType(NamedTuple):
    """A resource as discovery lists it."""

    group: str
    version: str
    plural: str
    kind: str
    verbs: frozenset[str]
    namespaced: bool = False
    names: frozenset[str] = frozenset()
    """All names a user may type, in lower case: kind, singular, plural, short names."""

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "") -> str:
        return resource_path(self.group, self.version, self.plural, namespace=namespace, name=name)


class Discovered(NamedTuple):
    """The resources of a cluster, and the group versions that could not be discovered."""

    types: list[ResourceType]
    unknown: dict[str, str]
    """Group versions that could not be discovered, and why."""


async def listable_resources(client: Client) -> Discovered:
    """Return every kind once. Raises ``ApiError`` when the groups cannot be read."""
    groups = await client.get("/apis")
    preferred = [("", "v1")]
    for group in groups.get("groups") or ():
        version = (group.get("preferredVersion") or {}).get("version")
        preferred.append((str(group["name"]), str(version or group["versions"][0]["version"])))
    found = Discovered([], {})
    for name, version in preferred:
        prefix = f"/apis/{name}/{version}" if name else f"/api/{version}"
        try:
            document = await client.get(prefix)
        except NotFound:
            continue
        except ApiError as error:
            found.unknown[f"{name}/{version}"] = error.message
            continue
        for item in document.get("resources") or ():
            verbs = frozenset(item.get("verbs") or ())
            if "list" in verbs and "/" not in item["name"]:
                found.types.append(_type(name, version, item, verbs))
    return found


def _type(group: str, version: str, item: Object, verbs: frozenset[str]) -> ResourceType:
    words = [item["name"], item["kind"], item.get("singularName"), *(item.get("shortNames") or ())]
    names = frozenset(str(word).lower() for word in words if word)
    namespaced = item.get("namespaced") is True
    return ResourceType(
        group, version, str(item["name"]), str(item["kind"]), verbs, namespaced, names
    )


def types_named(types: Iterable[ResourceType], word: str) -> list[ResourceType]:
    """Return the types that ``word`` or ``word.group`` names."""
    wanted = word.lower()
    return [
        each
        for each in types
        if any(wanted in (name, f"{name}.{each.group}") for name in each.names)
    ]
