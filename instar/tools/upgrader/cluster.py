"""Reads, dry-runs, applies and rolls back one CRD on a cluster.

``upgrade.py`` calls it for each step.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

from instar.base.errors import ApiError, Conflict, NotFound
from instar.base.json_values import Object
from instar.tools.migrator.census.references import dependents, repoint
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.tools.migrator.rewrite_checks.collection_check import why_unreadable
from instar.tools.upgrader.transition_crds import crd_to_apply, loses_webhook, same_crd, way_back
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path

MANAGER = "instar-upgrade"
_POLL = 0.2
_ATTEMPTS = 10


class NotEstablished(Exception):
    """The CRD is not established; ``str()`` names the condition and the reason."""


class CrdChanged(Exception):
    """Another client changed the CRD, so that what was reviewed or applied is not what is there."""


class References(NamedTuple):
    """Result of changing owner references to a version that will be removed."""

    changed: int
    failed: list[str]
    unseen: list[str]
    """Kinds that could not be looked at: their references stay as they are."""


class CrdAccess:
    """Reads and writes the CRDs of a cluster for an upgrade."""

    def __init__(self, client: Client, patience: RetryPolicy) -> None:
        self._client = client
        self._patience = patience
        self._tried: dict[str, Object] = {}
        """Results of dry runs."""
        self._applied: dict[str, Object] = {}
        """Results of the last writes."""

    async def read(self, name: str) -> Object | None:
        try:
            return await call_with_retries(
                partial(self._client.get, crd_path(name)), self._patience
            )
        except NotFound:
            return None

    async def apply(self, crd: Object, live: Object | None, *, dry_run: bool = False) -> Object:
        """Apply server-side, because the last-applied annotation of a client-side apply is too
        small for large CRDs. Raises ``CrdChanged`` if the CRD is not ``live`` any more: that one
        was reviewed, and an apply would drop what another client has added since.
        """
        name = crd["metadata"]["name"]
        if live is None and await self.read(name) is not None:
            raise CrdChanged("another client has created the CRD since it was reviewed")
        for _ in range(_ATTEMPTS):
            try:
                after = await self._write(crd, live, dry_run=dry_run)
            except Conflict:
                current = await self.read(name)
                if live is None or current is None or not _is_same_generation(current, live):
                    raise CrdChanged("another client changed the CRD since it was read") from None
                live = current
                continue
            (self._tried if dry_run else self._applied)[name] = after
            return after
        raise CrdChanged("other clients change the CRD all the time")

    async def _write(self, crd: Object, live: Object | None, *, dry_run: bool) -> Object:
        """Write the CRD. The resourceVersion of ``live`` is the precondition."""
        body = crd_to_apply(crd)
        path = crd_path(crd["metadata"]["name"])
        mode = "All" if dry_run else None
        if live is not None and loses_webhook(crd, live):
            whole = {**live, "spec": body["spec"]}
            write = partial(self._client.put, path, whole, fieldManager=MANAGER, dryRun=mode)
            return await call_with_retries(write, self._patience)
        if live is not None:
            body["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        apply = partial(
            self._client.patch,
            path,
            body,
            type="apply",
            fieldManager=MANAGER,
            force=True,
            dryRun=mode,
        )
        return await call_with_retries(apply, self._patience)

    async def established(self, name: str, seconds: float) -> Object:
        """Wait until the CRD is established and return it. Raises ``NotEstablished``."""
        deadline = time.monotonic() + seconds
        while True:
            crd = await self.read(name)
            conditions = {
                item["type"]: item
                for item in ((crd or {}).get("status") or {}).get("conditions") or ()
            }
            bad = [
                f"{kind}: {(conditions.get(kind) or {}).get('message') or 'not yet'}"
                for kind in ("NamesAccepted", "Established")
                if (conditions.get(kind) or {}).get("status") != "True"
            ]
            if crd is not None and not bad:
                return crd
            if time.monotonic() > deadline:
                raise NotEstablished("; ".join(bad) or "it is gone")
            await asyncio.sleep(_POLL)

    async def repoint(self, live: Object, leaving: Collection[str]) -> References:
        """Change owner references to versions that will be removed, in objects of all kinds."""
        crd = read_live_crd(live)
        found = await dependents(self._client, crd, leaving)
        done = await repoint(self._client, crd, leaving, found.found, self._patience)
        return References(done.changed, _reason_lines(done.failed), _reason_lines(found.unseen))

    async def why_unreadable(self, name: str, settle: float) -> str:
        """Return why objects cannot be listed under the current CRD; empty if they can."""
        await asyncio.sleep(settle)
        live = await self.read(name)
        return "" if live is None else await why_unreadable(self._client, read_live_crd(live))

    async def take_back(self, old: Object) -> str:
        """Roll the CRD back to its earlier spec; return the error, if any. A CRD that another
        client changed since is left alone.
        """
        name = old["metadata"]["name"]
        for _ in range(_ATTEMPTS):
            live = await self.read(name)
            if live is None:
                return "the CRD is gone"
            if not self._is_ours(live, old):
                return "another client has changed the CRD since; it is left as it is"
            body = {**live, "spec": way_back(old, live)["spec"]}
            try:
                await self._client.put(crd_path(name), body, fieldManager=MANAGER)
                return ""
            except Conflict:
                continue
            except ApiError as error:
                return error.message
        return "other clients change the CRD all the time"

    def _is_ours(self, live: Object, old: Object) -> bool:
        """Return whether the CRD is as this run left it, also if the answer to its write was
        lost.
        """
        name = old["metadata"]["name"]
        left = self._applied.get(name, old)
        tried = self._tried.get(name)
        return _is_same_generation(live, left) or (tried is not None and same_crd(live, tried))


def _is_same_generation(one: Object, other: Object) -> bool:
    return all(
        one["metadata"].get(name) == other["metadata"].get(name) for name in ("uid", "generation")
    )


def _reason_lines(reasons: Mapping[str, str]) -> list[str]:
    return [f"{name}: {why}" for name, why in sorted(reasons.items())]
