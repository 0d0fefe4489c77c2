"""Finds out the state of a CRD's versions on a cluster, and renders it as JSON.

Called by ``instar versions`` and the console; ``lifecycle.py`` checks it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from instar.base.json_values import Object
from instar.tools.migrator.census.references import dependents, naming_entries
from instar.tools.migrator.census.usage import VersionUsage, from_server
from instar.tools.migrator.census.version_census import estimate, exact_census
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.rewrite_checks.pass_record import load_record
from instar.tools.migrator.versions.lifecycle import Situation, next_steps
from instar.wire.client.client import Client

QUIET_DAYS = 14.0
"""A version without requests for this number of days counts as unused."""


async def situation_of(
    client: Client,
    raw: Object,
    *,
    quiet_days: float = QUIET_DAYS,
    usage: VersionUsage | None = None,
    clients_migrated: bool = False,
    removing: str = "",
) -> Situation:
    """Read the state. ``usage``: use counts from another source than the server. ``removing``: a
    version to be removed, for which the objects of all kinds are read.
    """
    live = read_live_crd(raw)
    exact = await exact_census(client)
    census = None if exact is None else exact.get(live.name)
    if census is None:
        record = load_record(live.name, client.access.server)
        census = await estimate(client, live, record=record)
    references: dict[str, Any] = {}
    if removing and live.crd.version(removing) is not None:
        references = {
            "dependents": await dependents(client, live, [removing]),
            "named": await naming_entries(client, live, removing),
        }
    return Situation(
        crd=live.crd,
        census=census,
        usage=await from_server(client, live) if usage is None else usage,
        now=datetime.now(UTC),
        quiet=timedelta(days=quiet_days),
        clients_migrated=clients_migrated,
        **references,
    )


def as_document(situation: Situation) -> Object:
    census, usage, crd = situation.census, situation.usage, situation.crd
    return {
        "crd": crd.name,
        "storedVersions": list(crd.stored_versions),
        "census": None if census is None else census.to_json(),
        "usageSince": None if usage.since is None else usage.since.isoformat(),
        "versions": [_version(situation, item.name) for item in crd.versions],
    }


def _version(situation: Situation, name: str) -> Object:
    census, version = situation.census, situation.crd.version(name)
    assert version is not None
    stored = None
    if census is not None and census.counted:
        stored = {"atLeast": census.counts.get(name, 0), "atMost": census.at_most(name)}
    last = situation.usage.latest(name)
    used = None
    if last is not None:
        used = {
            "when": last.last.isoformat(),
            "verb": last.verb,
            "user": last.user,
            "userAgent": last.agent,
        }
    return {
        "name": name,
        "served": version.served,
        "storage": version.storage,
        "deprecated": version.deprecated,
        "stored": stored,
        "lastUsed": used,
        "next": [{"step": step, "blockedBy": why} for step, why in next_steps(situation, name)],
    }
