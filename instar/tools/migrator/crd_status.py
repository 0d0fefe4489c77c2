"""Writes a migration into the status of its CRD: a condition while it runs, then storedVersions.

Called by ``migration.py`` and the console, before the first and after the last rewrite. Every write
fails if the CRD's resourceVersion has changed. The trimming of storedVersions also fails if the
CRD's generation has changed: if the storage version changed during the run, objects may be stored
at another version again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from instar.base.errors import ApiError, Conflict
from instar.base.json_values import Object
from instar.base.times import time_text
from instar.tools.migrator.live_crd import LiveCrd, read_live_crd
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path

CONDITION = "StorageMigrating"
_ATTEMPTS = 20


class CrdStatus:
    """Reads and trims ``status.storedVersions`` of one CRD."""

    def __init__(self, client: Client, live: LiveCrd, patience: RetryPolicy, who: str) -> None:
        self._client = client
        self._name = live.name
        self._uid = live.crd.uid
        self._generation = live.crd.generation
        self._patience = patience
        self._who = who

    async def begin(self) -> str:
        """Set the condition that a migration runs. Return its message if another run has set it."""
        crd = await self._read()
        found = _condition(crd)
        other = found["message"] if found.get("status") == "True" else ""
        written = _new_condition(
            found, "True", "MigrationRunning", f"instar migrate ({self._who}) is running"
        )
        written["observedGeneration"] = self._generation
        await self._change(lambda current: {"conditions": _replaced(current, written)})
        return str(other)

    async def why_changed(self) -> str:
        """Return why a proof made for the planned CRD is no longer valid; empty while it is."""
        crd = read_live_crd(await self._read()).crd
        if crd.uid != self._uid:
            return "the CRD was deleted and created anew"
        if crd.generation != self._generation:
            return f"the CRD was changed (generation {self._generation} then, {crd.generation} now)"
        return ""

    async def end(self, *, prune: bool, message: str) -> str:
        """Remove the condition. Return why storedVersions was not trimmed; empty if it was."""
        for _ in range(_ATTEMPTS):
            crd = await self._read()
            live = read_live_crd(crd)
            refusal = "" if prune else message
            if live.crd.uid != self._uid:
                return "the CRD was deleted and created anew during the run"
            if prune and live.crd.generation != self._generation:
                refusal = (
                    f"the CRD was changed during the run (generation {self._generation} then, "
                    f"{live.crd.generation} now); run again"
                )
            reason = "MigrationFailed" if refusal else "MigrationSucceeded"
            text = (
                refusal or "The migration has succeeded and the stored versions have been updated"
            )
            status: Object = {
                "conditions": _replaced(crd, _new_condition(_condition(crd), "False", reason, text))
            }
            if not refusal:
                status["storedVersions"] = [live.storage]
            try:
                await self._patch(crd, status)
            except Conflict:
                continue
            return refusal
        return "other clients change the CRD all the time"

    async def _change(self, make: Any) -> None:
        for _ in range(_ATTEMPTS):
            crd = await self._read()
            try:
                await self._patch(crd, make(crd))
                return
            except Conflict:
                continue
            except ApiError as error:
                if error.code in (403, 405):
                    return
                raise

    async def _read(self) -> Object:
        return await call_with_retries(
            lambda: self._client.get(crd_path(self._name)), self._patience
        )

    async def _patch(self, crd: Object, status: Object) -> None:
        body = {
            "metadata": {"resourceVersion": crd["metadata"]["resourceVersion"]},
            "status": status,
        }
        path = crd_path(self._name, subresource="status")
        await call_with_retries(lambda: self._client.patch(path, body), self._patience)


def _condition(crd: Object) -> Object:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return next((item for item in conditions if item.get("type") == CONDITION), {})


def _new_condition(before: Object, value: str, reason: str, message: str) -> Object:
    since = before.get("lastTransitionTime")
    if before.get("status") != value or not since:
        since = time_text(datetime.now(UTC))
    return {
        **before,
        "type": CONDITION,
        "status": value,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def _replaced(crd: Object, condition: Object) -> list[Object]:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    kept = [item for item in conditions if item.get("type") != CONDITION]
    return [*kept, condition]
