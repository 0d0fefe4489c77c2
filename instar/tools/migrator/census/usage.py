"""Counts the uses of each version: from instar's counters, or from audit logs of other servers.

Called by ``instar versions``, ``instar snapshot`` and the console; ``versions/lifecycle.py``
decides by the counts whether a version may be removed.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path

import orjson

from instar.base.errors import ApiError
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api.user_agents import is_ours
from instar.tools.migrator.live_crd import LiveCrd
from instar.wire.client.client import Client

ENDPOINT = "/instar/usage"
_FINAL_STAGES = {"ResponseComplete", "ResponseStarted", "Panic"}


@dataclass(frozen=True, slots=True)
class VersionUse:
    """Requests at one version by one client."""

    version: str
    verb: str
    user: str
    agent: str
    count: int
    last: datetime


@dataclass
class VersionUsage:
    """Known uses of one resource; ``since`` None means that nothing was counted."""

    since: datetime | None = None
    """Requests before this are unknown."""
    uses: list[VersionUse] = field(default_factory=list)
    how: str = ""

    def latest(self, version: str) -> VersionUse | None:
        """Return the last use by a client other than the migrator."""
        found = [use for use in self.uses if use.version == version]
        return max((use for use in found if not is_ours(use.agent)), key=_when, default=None)

    def users(self, version: str, after: datetime) -> list[VersionUse]:
        """Return the uses after a time, most recent first."""
        found = [
            use
            for use in self.uses
            if use.version == version and use.last > after and not is_ours(use.agent)
        ]
        return sorted(found, key=_when, reverse=True)


async def from_server(client: Client, live: LiveCrd) -> VersionUsage:
    """Read the counters of an instar server; return no uses for any other server."""
    try:
        document = await client.get(ENDPOINT)
    except ApiError:
        return VersionUsage()
    crd = live.crd
    uses = [
        VersionUse(
            version=item["version"],
            verb=item["verb"],
            user=item["user"],
            agent=item["userAgent"],
            count=item["count"],
            last=datetime.fromisoformat(item["last"]),
        )
        for item in document.get("uses") or ()
        if (item["group"], item["resource"]) == (crd.group, crd.names.plural)
    ]
    since = datetime.fromisoformat(document["since"])
    return VersionUsage(since, uses, "counted by instar")


def from_audit_logs(paths: Iterable[Path], live: LiveCrd) -> VersionUsage:
    """Read files of ``audit.k8s.io`` events: one JSON object per line, plain or gzipped.

    Raises ``OSError`` for a file that cannot be read; a line that is no event is passed over.
    """
    crd = live.crd
    tallies: dict[tuple[str, str, str, str], tuple[int, datetime]] = {}
    since: datetime | None = None
    files = list(paths)
    for event in audit_events(files):
        moment = _moment(event)
        if moment is None:
            continue
        since = moment if since is None else min(since, moment)
        about = event.get("objectRef") or {}
        if (about.get("apiGroup"), about.get("resource")) != (crd.group, crd.names.plural):
            continue
        # The impersonated user needs the version, not the one that impersonates.
        asked = event.get("impersonatedUser") or event.get("user") or {}
        user = asked.get("username") or ""
        key = (
            str(about.get("apiVersion", "")),
            str(event.get("verb", "")),
            str(user),
            str(event.get("userAgent", "")),
        )
        count, last = tallies.get(key, (0, moment))
        tallies[key] = (count + 1, max(last, moment))
    uses = [VersionUse(*key, count, last) for key, (count, last) in tallies.items()]
    return VersionUsage(
        since, uses, f"from {len(files)} audit log file{'s' if len(files) > 1 else ''}"
    )


def audit_events(paths: Iterable[Path]) -> Iterator[Object]:
    """Yield the audit events of such files, each request once."""
    for path in paths:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            lines: Iterable[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw
            for line in lines:
                try:
                    event = orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
                if isinstance(event, dict) and event.get("stage") in _FINAL_STAGES:
                    yield event


def _moment(event: Object) -> datetime | None:
    text = event.get("requestReceivedTimestamp") or event.get("stageTimestamp")
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _when(use: VersionUse) -> datetime:
    return use.last
