"""Which resources a server has: one row per kind that can be listed, at its preferred version."""

from __future__ import annotations

from typing import NamedTuple

from instar.client.client import Client
from instar.client.paths import resource_path
from instar.errors import ApiError, NotFound


class ResourceType(NamedTuple):
    group: str
    version: str
    plural: str
    kind: str
    verbs: frozenset[str]

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "") -> str:
        return resource_path(self.group, self.version, self.plural, namespace=namespace, name=name)


class Discovered(NamedTuple):
    types: list[ResourceType]
    unknown: dict[str, str]
    """Group versions whose resources the server does not tell, and why."""


async def listable(client: Client) -> Discovered:
    """Every kind once. Raises ``ApiError`` when not even the groups can be read."""
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
                found.types.append(
                    ResourceType(name, version, str(item["name"]), str(item["kind"]), verbs)
                )
    return found
