"""Capture source that reads a cluster through its API: paged lists, each consistent at one
revision.

``taking.py`` reads its batches. The source sends lists only and writes nothing to the cluster.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from instar.base.errors import ApiError, Expired, NotFound, ServiceUnavailable, Unauthorized
from instar.base.json_values import Object
from instar.tools.migrator.census.usage import ENDPOINT
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.tools.snapshots.capture.scope import CapturedResource
from instar.tools.snapshots.capture.source import CaptureBatch, Gap
from instar.tools.snapshots.errors import Interrupted
from instar.wire.client.client import Client
from instar.wire.client.paths import resource_path

_SHRINK_FACTOR = 8
_GROWTH_FACTOR = 4
_MAX_PAGE_SIZE = 4000
_BRIEF_RETRIES = RetryPolicy(attempts=2)


class ClusterSource:
    """Reads objects of a cluster through its API."""

    exact = False
    needs_serving = True

    def __init__(
        self, client: Client, origin: str, *, page: int = 500, patience: RetryPolicy | None = None
    ) -> None:
        self._client = client
        self.origin = origin
        self._page = page
        self._patience = patience or RetryPolicy()

    async def batches(
        self, resource: CapturedResource, token: str = ""
    ) -> AsyncIterator[CaptureBatch]:
        reading = _Reading(self._client, resource, token, self._page, self._patience)
        while True:
            batch = await reading.next()
            yield batch
            if not batch.token:
                return

    async def usage(self) -> Object | None:
        try:
            return await call_with_retries(partial(self._client.get, ENDPOINT), _BRIEF_RETRIES)
        except ApiError:
            return None


class _Reading:
    """Reader of one list. If the continue token expires, the list is restarted once with larger
    pages; after that it continues at the current revision, which the snapshot records as
    inconsistent.
    """

    def __init__(
        self,
        client: Client,
        resource: CapturedResource,
        token: str,
        page: int,
        patience: RetryPolicy,
    ) -> None:
        self._client, self._resource, self._patience = client, resource, patience
        self._path = resource_path(resource.group, resource.version, resource.plural)
        self._token, self._page = token, page
        self._begun_anew = False
        self._remaining = 0

    async def next(self) -> CaptureBatch:
        anew, consistent = False, True
        try:
            listed = await self._listed(self._token)
        except Expired as error:
            fresh = str(error.list_meta.get("continue") or "")
            if self._begun_anew and fresh:
                listed, consistent = await self._listed(fresh), False
            elif self._begun_anew:
                raise Gap(error.message, self._remaining) from None
            else:
                self._begun_anew = anew = True
                self._page = min(self._page * _GROWTH_FACTOR, _MAX_PAGE_SIZE)
                listed = await self._listed("")
        meta = listed.get("metadata") or {}
        self._token = str(meta.get("continue") or "")
        remaining = meta.get("remainingItemCount")
        self._remaining = remaining if isinstance(remaining, int) else 0
        return CaptureBatch(
            [self._whole(item) for item in listed.get("items") or ()],
            str(meta.get("resourceVersion") or ""),
            self._token,
            remaining if isinstance(remaining, int) else None,
            consistent,
            anew,
        )

    async def _listed(self, token: str) -> Object:
        """List a page, with a smaller page size if one object makes a large page fail. Raises
        ``Expired``, ``Gap`` and ``Interrupted``.
        """
        page, patience = self._page, self._patience
        while True:
            listing = partial(self._client.list, self._path, limit=page, continue_=token)
            try:
                return await call_with_retries(listing, patience)
            except Expired:
                raise
            except (ServiceUnavailable, Unauthorized) as error:
                # a failure of the whole cluster, not of one collection
                raise Interrupted(error.message) from None
            except NotFound as error:
                raise Gap(error.message, absent=True) from None
            except ApiError as error:
                if page == 1 or not error.retryable:
                    raise Gap(error.message, self._remaining) from None
            page, patience = max(1, page // _SHRINK_FACTOR), _BRIEF_RETRIES

    def _whole(self, item: Object) -> Object:
        """Add ``apiVersion`` and ``kind``, which items of built-in lists do not have."""
        resource = self._resource
        if "kind" in item:
            return item
        group = f"{resource.group}/" if resource.group else ""
        return {"apiVersion": f"{group}{resource.version}", "kind": resource.kind, **item}
