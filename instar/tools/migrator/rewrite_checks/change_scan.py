"""Finds the fields of every object that a rewrite would change, without writing.

Called by ``instar migrate --plan`` and, with the CRD of a release, by ``instar upgrade``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field

from instar.base.errors import ApiError
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.kube.schema.metadata.types import MetaError
from instar.tools.migrator.content_diff import differences
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.live_crd import LiveCrd
from instar.tools.migrator.object_pages import Lister, Unlistable
from instar.tools.migrator.outcomes import Fate
from instar.tools.migrator.progress import Progress
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.rewrite_checks.rewrite_checker import ChangeTally, RewriteChecker
from instar.tools.migrator.rewrite_checks.rewrite_effect import (
    ChangeCause,
    FieldChange,
    RewriteEffect,
    not_accepted,
)
from instar.wire.client.client import Client


@dataclass
class ChangeScan:
    """The changes that rewrites of all objects would make."""

    objects: int = 0
    changing: int = 0
    """Objects that a rewrite would change."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Objects whose rewrite could not be tried, and why."""
    tally: ChangeTally = field(default_factory=ChangeTally)
    stopped: str = ""
    """Why not every object was looked at."""

    def lines(self, storage: str) -> list[str]:
        proven = self.objects - self.changing - len(self.unknown)
        lines = [f"proven to stay the same at every served version: {counted(proven, 'object')}"]
        if self.changing:
            lines.append(f"a rewrite would change {counted(self.changing, 'object')}:")
            lines += [f"  {line}" for line in self.tally.lines(storage)]
        for key, why in list(self.unknown.items())[:3]:
            lines.append(f"unknown, because the rewrite cannot be tried: {key}: {why}")
        if len(self.unknown) > 3:
            lines.append(f"unknown: {counted(len(self.unknown), 'object')} in all")
        if self.stopped:
            lines.append(f"not every object was looked at: {self.stopped}")
        return lines

    def to_json(self) -> Object:
        return {
            "objects": self.objects,
            "changing": self.changing,
            "unknown": len(self.unknown),
            "fields": self.tally.to_json(),
            "stopped": self.stopped,
        }


async def scan_rewrites(
    client: Client,
    live: LiveCrd,
    checker: RewriteChecker,
    patience: RetryPolicy,
    progress: Progress,
    *,
    page: int = 500,
) -> ChangeScan:
    """Prove the rewrite of every object under the current CRD."""
    scan = ChangeScan(tally=checker.tally)

    async def look(objects: list[ListedObject]) -> None:
        for outcome in await checker.refusals(objects):
            if outcome.fate is Fate.REFUSED:
                scan.changing += 1
            else:
                scan.unknown[outcome.key] = outcome.message

    lister = Lister(client, live, patience, limit=page, verify=True)
    token = ""
    while True:
        try:
            listed = await lister.page(token)
        except (Unlistable, ApiError) as error:
            scan.stopped = str(error)
            return scan
        if not token and listed.remaining is not None:
            progress.begin("proving", len(listed.found) + listed.remaining)
        await look(listed.found)
        scan.unknown |= {outcome.key: outcome.message for outcome in listed.undecodable}
        scan.objects += len(listed.found) + len(listed.undecodable)
        progress.advance(len(listed.found))
        token = listed.token
        if not token:
            return scan


async def scan_release(
    client: Client,
    live: LiveCrd,
    release: LiveCrd,
    patience: RetryPolicy,
    *,
    accepted: Collection[str] = (),
    page: int = 500,
) -> ChangeScan:
    """Compute what every object would lose under a release's CRD with conversion None, from the
    readings of the versions that are served now."""
    scan = ChangeScan()
    effect = ReleaseEffect(release)
    lister = Lister(client, live, patience, limit=page, verify=True)
    token = ""
    while True:
        try:
            listed = await lister.page(token)
        except (Unlistable, ApiError) as error:
            scan.stopped = str(error)
            return scan
        for found in listed.found:
            changes = not_accepted(effect.losses(found), accepted)
            scan.changing += bool(changes)
            scan.tally.add(found.key, changes)
        scan.objects += len(listed.found)
        token = listed.token
        if not token:
            return scan


class ReleaseEffect:
    """The effect of a rewrite under the CRD of a release, compared with the current readings."""

    def __init__(self, release: LiveCrd) -> None:
        self._crd = release.crd
        self._written = release.write_version
        self._effect = RewriteEffect(release.crd, release.write_version)

    def losses(self, found: ListedObject) -> list[FieldChange]:
        """Return the fields that an object would lose: fields that a version shows now, and that
        neither this version nor (if the release drops it) the written version shows afterwards.
        """
        changes: list[FieldChange] = []
        for version, reading in found.readings.items():
            shown = version if self._crd.version(version) is not None else self._written
            api_version = f"{self._crd.group}/{self._written}"
            try:
                after = self._effect.readings_after({**reading, "apiVersion": api_version}, [shown])
            except MetaError:
                continue
            same = {**after[shown], "apiVersion": reading.get("apiVersion")}
            changes += [
                FieldChange(version, difference, ChangeCause.PRUNED)
                for difference in differences(reading, same)
                if difference.is_loss
            ]
        return changes
