"""Rewrites all objects of a resource in batches, so that each is stored in the storage version.

Used by ``migrations.py``. An object whose bytes would not change is not written, so it keeps its
resourceVersion.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import islice

from instar.base import offload
from instar.base.errors import ApiError, Conflict, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.write import update
from instar.server.registry.verbs.write_request import Proposal, UpdateRules

_BATCH_SIZE = 100
_KEYS_PER_SLICE = 1_000
_OPTIONS = WriteOptions(manager="storage-version-migrator-controller", field_validation="Ignore")
_RULES = UpdateRules(unconditional=True, uid_is_precondition=False)


@dataclass
class RewriteBatches:
    """A resource's objects up to a revision, processed in rounds; failures are retried in the
    next."""

    context: Context
    resource: Resource
    until: int
    """Objects newer than this revision were written at the storage version anyway."""
    pending: list[str] = field(default_factory=list)
    retry: list[str] = field(default_factory=list)
    total: int = 0
    failed: list[tuple[str, ApiError]] = field(default_factory=list)
    """Objects with a permanent failure, and the failure."""
    trouble: ApiError | None = None
    """The last temporary failure."""

    @classmethod
    async def of(cls, context: Context, resource: Resource, until: int) -> RewriteBatches:
        """Collect the objects to rewrite; ones deleted or written meanwhile need no rewrite."""
        # Reversed, because batches are popped from the end, which is cheap.
        found = cls(context, resource, until)
        keys, breaks = iter(list(reversed(resource.objects.keys))), offload.Breaks()
        while some := list(islice(keys, _KEYS_PER_SLICE)):
            found.pending += [entry.suffix for entry in found._stale(some)]
            await breaks.between()
        found.total = len(found.pending)
        return found

    @property
    def left(self) -> int:
        return len(self.pending) + len(self.retry)

    def next_round(self) -> None:
        self.pending, self.retry, self.trouble = self.retry, [], None

    async def batch(self) -> None:
        batch = [self.pending.pop() for _ in range(min(_BATCH_SIZE, len(self.pending)))]
        await self._prefetch(batch)
        outcomes = await asyncio.gather(*(self._rewrite(suffix) for suffix in batch))
        for suffix, error in zip(batch, outcomes, strict=True):
            if error is None:
                continue
            if error.retryable:
                self.retry.append(suffix)
                self.trouble = error
            else:
                self.failed.append((suffix, error))

    async def _prefetch(self, suffixes: Sequence[str]) -> None:
        """Convert the batch in one webhook call; if that fails, objects are converted one by
        one."""
        entries = list(self._stale(suffixes))
        resource = self.resource
        if entries and resource.serving.converts_remotely:
            try:
                await resource.codec.views(entries, resource.serving.storage)
            except ApiError:
                return

    def _stale(self, suffixes: Iterable[str]) -> Iterable[CacheEntry]:
        for suffix in suffixes:
            entry = self.resource.objects.entries.get(suffix)
            if entry is not None and entry.revision <= self.until:
                yield entry

    async def _rewrite(self, suffix: str) -> ApiError | None:
        if not list(self._stale([suffix])):
            return None
        serving = self.resource.serving
        namespace, _, name = suffix.rpartition("/")
        target = Target(
            self.resource, serving, self.resource.codec, serving.storage, namespace, name
        )
        try:
            await update(self.context, target, _unchanged, _OPTIONS, _RULES)
        except (NotFound, Conflict):
            return None
        except ApiError as error:
            return error
        return None


async def _unchanged(old: Object, entry: CacheEntry) -> Proposal:
    return Proposal({**old, "metadata": dict(old["metadata"])})
