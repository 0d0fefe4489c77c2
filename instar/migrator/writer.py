"""One object written back unchanged, guarded by its resourceVersion."""

from __future__ import annotations

from instar.client.client import Client
from instar.errors import ApiError, Conflict, NotFound
from instar.migrator.content import digest
from instar.migrator.live_crd import USER_AGENT, LiveCrd
from instar.migrator.outcomes import Fate, Outcome, differs, failed
from instar.migrator.pages import Found
from instar.migrator.retrying import Patience, persistently
from instar.plain import Object


class NoopWriter:
    def __init__(
        self,
        client: Client,
        live: LiveCrd,
        patience: Patience,
        *,
        dry_run: bool = False,
        via_status: bool = False,
    ) -> None:
        self._client = client
        self._live = live
        self._patience = patience
        self._dry_run = dry_run
        self._subresource = "status" if via_status else ""

    async def rewrite(self, found: Found) -> Outcome:
        """Never raises an ``ApiError``: whatever happens is the object's outcome."""
        try:
            after = await persistently(lambda: self._patch(found), self._patience)
        except NotFound:
            return Outcome(found.key, Fate.GONE)
        except Conflict as error:
            return await self._after_conflict(found, error)
        except ApiError as error:
            return failed(found.key, error)
        return self._judge(found, after)

    async def _patch(self, found: Found) -> Object:
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

    def _judge(self, found: Found, after: Object) -> Outcome:
        version = self._live.write_version
        revision = after["metadata"].get("resourceVersion", "")
        before = found.digests.get(version)
        if before is not None and digest(after) != before:
            return differs(found.key, revision, version)
        if self._dry_run:
            return Outcome(found.key, Fate.WOULD_PASS, revision)
        fate = Fate.CURRENT if revision == found.revision else Fate.REWRITTEN
        return Outcome(found.key, fate, revision)

    async def _after_conflict(self, found: Found, error: Conflict) -> Outcome:
        """Usually somebody was faster. If nobody was, the conflict is the object's own."""
        path = self._live.path(self._live.write_version, found.key)
        try:
            now = await persistently(lambda: self._client.get(path), self._patience)
        except NotFound:
            return Outcome(found.key, Fate.GONE)
        except ApiError as failure:
            return failed(found.key, failure)
        revision = now["metadata"].get("resourceVersion", "")
        if revision == found.revision:
            return failed(found.key, error)
        return Outcome(found.key, Fate.OVERTAKEN, revision)
