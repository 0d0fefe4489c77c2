"""View of the home page: every CRD with its versions, stored objects and recent requests.

Called by ``tools/console/api.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from instar.base.json_values import Object
from instar.kube.api.user_agents import is_ours
from instar.tools.console.views.list_counts import MOST, count_objects
from instar.tools.console.views.server_facts import MissingDocuments, read_document
from instar.tools.console.views.summaries import Summaries
from instar.wire.client.client import Client

VersionKey = tuple[str, str, str]


class Uses(NamedTuple):
    """Requests to one version: the recent number, and the time of the last one."""

    recent: dict[VersionKey, int]
    last: dict[VersionKey, str]


async def overview(client: Client, summaries: Summaries) -> Object:
    """Return the document of the home page: each CRD with counts, uses and webhook health."""
    unknown = MissingDocuments()
    crds = await summaries.all(client)
    census = await read_document(client, "census", unknown)
    usage = await read_document(client, "usage", unknown)
    webhooks = await read_document(client, "webhooks", unknown)
    counted = (census or {}).get("crds") or {}
    totals = {} if census is not None else await count_objects(client, crds)
    if census is None and len(crds) > MOST:
        unknown.add("objects", f"Objects are counted for the first {MOST} CRDs.")
    uses = None if usage is None else _uses(usage)
    called = None if webhooks is None else _conversions(webhooks)
    return {
        "exact": census is not None,
        "usageSince": None if usage is None else usage.get("since"),
        "recentSince": None if usage is None else usage.get("recentSince"),
        "crds": [
            _row(crd, counted.get(crd["name"]), totals.get(crd["name"]), uses, called)
            for crd in crds
        ],
        "unknown": unknown.lines,
    }


def _row(
    crd: Object,
    counted: Object | None,
    listed: int | None,
    uses: Uses | None,
    called: dict[str, Object] | None,
) -> Object:
    objects = None if counted is None else counted.get("objects") or {}
    calls = None if called is None else called.get(crd["name"], {})
    shown = {name: value for name, value in crd.items() if name != "webhook"}
    return {
        **shown,
        "conversion": {
            "strategy": crd["conversion"],
            "failures": None if calls is None else calls.get("failures", 0),
            "lastFailure": ((calls or {}).get("lastFailure") or {}).get("at"),
        },
        "total": listed if objects is None else sum(objects.values()),
        "versions": [_version(crd, version, objects, listed, uses) for version in crd["versions"]],
    }


def _version(
    crd: Object, version: Object, objects: Object | None, listed: int | None, uses: Uses | None
) -> Object:
    name = version["name"]
    key = (crd["group"], crd["plural"], name)
    stored = None if objects is None else objects.get(name, 0)
    return {
        **version,
        "stored": stored,
        "storedAtMost": stored if stored is not None else _possible(crd, name, listed),
        "recent": None if uses is None else uses.recent.get(key, 0),
        "lastUsed": None if uses is None else uses.last.get(key),
    }


def _possible(crd: Object, version: str, listed: int | None) -> int | None:
    """Return how many objects may be stored at a version: none where storedVersions lacks it."""
    if listed is None:
        return None
    return listed if version in crd["storedVersions"] else 0


def _uses(usage: Object) -> Uses:
    recent = {_key(item): int(item["count"]) for item in usage.get("recent") or ()}
    last: dict[VersionKey, str] = {}
    for item in usage.get("uses") or ():
        if not is_ours(item.get("userAgent") or ""):
            key = _key(item)
            last[key] = max(last.get(key, ""), str(item["last"]))
    return Uses(recent, last)


def _key(item: Object) -> VersionKey:
    return str(item["group"]), str(item["resource"]), str(item["version"])


def _conversions(webhooks: Object) -> dict[str, Any]:
    listed = webhooks.get("webhooks") or ()
    return {item["name"]: item for item in listed if item.get("type") == "conversion"}
