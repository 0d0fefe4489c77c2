"""Writes one object back unchanged, guarded by its resourceVersion. The API server stores what it
is sent at the storage version, so this moves the object there.

Called by ``rewrite_pass.py`` for objects whose rewrite was checked
(``rewrite_checks/rewrite_checker.py``) and which are in the undo journal. When another client
writes the object first, the object is read, checked and recorded again (``WriteGuard``), and only
then written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial

from instar.base.errors import ApiError, Conflict, NotFound
from instar.base.json_values import Object
from instar.tools.migrator.content_diff import digest
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.live_crd import USER_AGENT, LiveCrd
from instar.tools.migrator.object_pages import Lister
from instar.tools.migrator.outcomes import (
    Fate,
    ObjectResult,
    differs,
    dispossessed,
    failed,
    unwritable,
)
from instar.tools.migrator.ownership import entries_of, lost, relabelled
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.tools.migrator.rewrite_checks.rewrite_checker import RewriteChecker
from instar.wire.client.client import Client

_ROUNDS = 4
"""So often another client may be faster before the object is left to it."""
_RESTORES = 4

WriteGuard = Callable[[ListedObject], Awaitable[ObjectResult | None]]
"""Proves and journals an object that was read again; an outcome means that it is not written."""


async def _unguarded(found: ListedObject) -> ObjectResult | None:
    return None


class StorageVersionRewriter:
    """Writes one object back unchanged, so that it is stored at the storage version."""

    def __init__(
        self,
        client: Client,
        live: LiveCrd,
        patience: RetryPolicy,
        lister: Lister,
        checker: RewriteChecker,
        *,
        dry_run: bool = False,
        via_status: bool = False,
    ) -> None:
        self._client = client
        self._live = live
        self._patience = patience
        self._lister = lister
        self._checker = checker
        self._dry_run = dry_run
        self._subresource = "status" if via_status else ""

    async def rewrite(self, found: ListedObject, guard: WriteGuard = _unguarded) -> ObjectResult:
        """Write the object and return its outcome. Never raises an ``ApiError``."""
        if self._subresource and found.managed_fields is not None:
            text = "its managedFields name a version that is gone, and /status cannot mend them"
            return ObjectResult(found.key, Fate.FAILED, reason="OwnershipAtRisk", message=text)
        first, reading = found, None
        for _ in range(_ROUNDS):
            try:
                after = await call_with_retries(partial(self._patch, found), self._patience)
            except NotFound as error:
                return await self._not_found(found, error)
            except Conflict as error:
                outcome, found = await self._after_conflict(first, found, error)
                outcome = outcome or await guard(found)
                if outcome is not None:
                    return outcome
                reading = found
            except ApiError as error:
                return failed(found.key, error)
            else:
                outcome = await self._judged(found, after)
                return replace(outcome, reading=outcome.reading or reading)
        return ObjectResult(found.key, Fate.OVERTAKEN, found.revision, reading=reading)

    async def _patch(self, found: ListedObject) -> Object:
        metadata: Object = {"resourceVersion": found.revision}
        if found.managed_fields is not None:
            metadata["managedFields"] = found.managed_fields
        path = self._live.path(self._live.write_version, found.key, self._subresource)
        return await self._client.patch(
            path,
            {"metadata": metadata},
            fieldManager=USER_AGENT,
            dryRun="All" if self._dry_run else None,
        )

    async def _judged(self, found: ListedObject, after: Object) -> ObjectResult:
        version = self._live.write_version
        revision = after["metadata"].get("resourceVersion", "")
        before = found.digests.get(version)
        if before is not None and digest(after) != before:
            changes = self._checker.seen_changes(found, version, after)
            if changes or found.readings.get(version) is None:
                what = [str(change.difference) for change in changes[:3]]
                why = self._checker.explained(changes) if changes else ""
                return differs(found.key, revision, version, what, why)
        missing = self._missing(found, after)
        restored = False
        if missing and not self._dry_run and not self._subresource:
            after, missing = await self._restored(found, after, missing)
            revision, restored = after["metadata"].get("resourceVersion", ""), not missing
        if missing:
            return dispossessed(found.key, revision, missing, again=not self._dry_run)
        if self._dry_run:
            return ObjectResult(found.key, Fate.WOULD_PASS, revision)
        fate = Fate.CURRENT if revision == found.revision else Fate.REWRITTEN
        return ObjectResult(found.key, fate, revision, restored=restored)

    def _missing(self, found: ListedObject, after: Object) -> list[str]:
        return lost(found.expected, entries_of(after), self._checker.given_up(found))

    async def _restored(
        self, found: ListedObject, after: Object, missing: list[str]
    ) -> tuple[Object, list[str]]:
        """Write the managedFields again that the server dropped because a webhook failed, or
        because it cannot see the object at the version of one entry: under conversion None a
        kube-apiserver fails at a field that this version lacks. So the later attempts write all
        entries as entries of the written version.
        """
        for attempt in range(_RESTORES):
            revision = after["metadata"].get("resourceVersion", "")
            entries = _merged(found, after)
            if attempt >= _RESTORES // 2:
                entries = self._at_written_version(found, after, entries)
            again = replace(found, revision=revision, managed_fields=entries)
            try:
                after = await call_with_retries(partial(self._patch, again), self._patience)
            except ApiError:
                break
            missing = self._missing(found, after)
            if not missing:
                break
        return after, missing

    def _at_written_version(
        self, found: ListedObject, after: Object, entries: list[Object]
    ) -> list[Object]:
        crd, written = self._live.crd, self._live.write_version
        others = [version.name for version in crd.versions if version.name != written]
        owned = {**after, "metadata": {**after["metadata"], "managedFields": entries}}
        carried = relabelled(owned, crd.group, others, found.readings)
        return entries if carried is None else carried.entries

    async def _not_found(self, found: ListedObject, error: NotFound) -> ObjectResult:
        """Read the object to find out whether it is gone; a write also fails if the namespace is
        missing.
        """
        try:
            await self._lister.read_one(found.key)
        except NotFound:
            return ObjectResult(found.key, Fate.GONE)
        except ApiError as failure:
            return failed(found.key, failure)
        return unwritable(found.key, error)

    async def _after_conflict(
        self, first: ListedObject, found: ListedObject, error: Conflict
    ) -> tuple[ObjectResult | None, ListedObject]:
        """Read the object again. The other write may have been an earlier one of this tool (before
        a kill, or with a lost response), so an object with equal content is still compared with its
        first reading.
        """
        try:
            now = await self._lister.read_one(found.key)
        except NotFound:
            return ObjectResult(found.key, Fate.GONE), found
        except ApiError as failure:
            return failed(found.key, failure), found
        if now.revision == found.revision:
            return failed(found.key, error), found
        if now.uid == first.uid and now.same_content(first.digests):
            now = now.with_digests_of({**now.digests, **first.digests})
            if first.expected and not now.entries:
                # The server dropped them: see ownership.py.
                now = replace(now, managed_fields=first.expected)
        return None, now


def _merged(found: ListedObject, after: Object | None) -> list[Object]:
    """Return the expected entries and those that other managers added since."""
    known = {_identity(entry) for entry in found.expected}
    others: Iterable[Object] = entries_of(after) if after is not None else ()
    return [*found.expected, *(entry for entry in others if _identity(entry) not in known)]


def _identity(entry: Object) -> tuple[object, ...]:
    operation = entry.get("operation")
    version = None if operation == "Apply" else entry.get("apiVersion")
    return (entry.get("manager"), operation, version, entry.get("subresource"))
