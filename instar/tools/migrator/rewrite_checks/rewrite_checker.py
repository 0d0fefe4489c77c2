"""Determines before each write which fields of the object it would change, for all objects of a
page.

Called by ``rewrite_pass.py`` before a page is recorded in the undo journal and written, and by
``instar migrate --plan`` and ``--dry-run``. With conversion strategy None the effect is computed
from the readings and the schemas (``rewrite_effect.py``). With a webhook the object is converted
there and back: a dry-run update at each other served version shows what that version would show
after the rewrite, because the API server encodes the result at the storage version and decodes it
again. Where mutating admission may change objects, a dry-run update at the version that is written
shows the change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial

from instar.base.errors import ApiError, Conflict, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.kube.schema.metadata.types import MetaError
from instar.tools.migrator.content_diff import differences
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.live_crd import USER_AGENT, LiveCrd
from instar.tools.migrator.outcomes import ObjectResult, failed, refused, unproven
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.tools.migrator.rewrite_checks.rewrite_effect import (
    ChangeCause,
    FieldChange,
    RewriteEffect,
    explain,
    not_accepted,
)
from instar.wire.client.client import Client

_SHOWN = 10


@dataclass
class ChangeCount:
    """A field that rewrites would change, counted over all objects."""

    version: str
    field: str
    cause: ChangeCause
    example: str
    """The key of the first such object."""
    lost: bool
    objects: int = 0

    def text(self, storage: str) -> str:
        verb = "would be lost" if self.lost else "would change"
        return (
            f"{self.field} at {self.version} {verb}: {counted(self.objects, 'object')}, for "
            f"example {self.example} ({explain(self.cause, self.version, storage)})"
        )

    def to_json(self) -> Object:
        return {
            "field": self.field,
            "version": self.version,
            "cause": self.cause.value,
            "lost": self.lost,
            "objects": self.objects,
            "example": self.example,
        }


@dataclass
class ChangeTally:
    """The fields that rewrites would change, each with a count and an example."""

    changes: dict[tuple[str, str], ChangeCount] = field(default_factory=dict)

    def add(self, key: str, changes: Collection[FieldChange]) -> None:
        counted_here: set[tuple[str, str]] = set()
        for change in changes:
            place = (change.version, change.field)
            if place in counted_here:
                continue
            counted_here.add(place)
            if place not in self.changes:
                lost = change.difference.is_loss
                tallied = ChangeCount(change.version, change.field, change.cause, key, lost)
                self.changes[place] = tallied
            self.changes[place].objects += 1

    def lines(self, storage: str) -> list[str]:
        ordered = sorted(self.changes.values(), key=lambda item: -item.objects)
        lines = [item.text(storage) for item in ordered[:_SHOWN]]
        if len(ordered) > _SHOWN:
            lines.append(f"and {counted(len(ordered) - _SHOWN, 'more field')}")
        if ordered:
            paths = " ".join(f"--accept-change {name}" for name in self._fields()[:_SHOWN])
            lines.append(f"to let a rewrite change them: {paths}")
        return lines

    def to_json(self) -> list[Object]:
        return [item.to_json() for item in self.changes.values()]

    def _fields(self) -> list[str]:
        return list(dict.fromkeys(name for _, name in self.changes))


class RewriteChecker:
    """Proves that a rewrite of an object changes nothing at any served version."""

    def __init__(
        self,
        client: Client,
        live: LiveCrd,
        patience: RetryPolicy,
        *,
        accepted: Collection[str] = (),
        accepted_keys: Collection[str] = (),
        concurrency: int = 16,
        admission: bool = False,
    ) -> None:
        """``accepted``: paths whose change the user accepts in every object. ``accepted_keys``:
        objects of which any change is accepted. ``admission``: mutating admission may change
        objects.
        """
        self._client = client
        self._live = live
        self._patience = patience
        self._accepted = tuple(accepted)
        self._accepted_keys = frozenset(accepted_keys)
        self._concurrency = concurrency
        self._admission = admission
        self._effect = RewriteEffect(live.crd, live.write_version)
        self._changing: set[str] = set()
        self.tally = ChangeTally()

    @property
    def asks_server(self) -> bool:
        """Return whether a proof needs requests."""
        return not self._effect.is_computed

    def take_accepted(self) -> set[str]:
        """Return the objects, since the last call, whose writes make accepted changes."""
        found, self._changing = self._changing, set()
        return found

    def given_up(self, found: ListedObject) -> list[str]:
        """Return the paths of fields that an object may lose, because the user accepted it."""
        paths = list(self._accepted)
        if found.key in self._accepted_keys:
            with suppress(MetaError):
                changes = self._effect.of(found.readings)
                paths += [change.field for change in changes if change.difference.is_loss]
        return paths

    def unaccepted(self, key: str, changes: Collection[FieldChange]) -> list[FieldChange]:
        """Return the changes of an object that the user did not accept."""
        return [] if key in self._accepted_keys else not_accepted(changes, self._accepted)

    async def refusals(self, page: Sequence[ListedObject]) -> list[ObjectResult]:
        """Return the objects of a page that must not be written, each with the reason."""
        outcomes: list[ObjectResult | None] = [None] * len(page)
        queue = iter(enumerate(page))

        async def work() -> None:
            for position, found in queue:
                outcomes[position] = await self.refusal(found)

        asks = self.asks_server or self._admission
        workers = min(self._concurrency, len(page)) if asks else 1
        await asyncio.gather(*(work() for _ in range(workers)))
        return [outcome for outcome in outcomes if outcome is not None]

    async def refusal(self, found: ListedObject) -> ObjectResult | None:
        """Return why an object must not be written; None if the write is proven to change nothing,
        or if the object has changed since it was read, so that the write will fail with a conflict.
        """
        unread = [name for name in self._live.read_versions if name not in found.readings]
        if unread and found.key not in self._accepted_keys:
            return unproven(found.key, found.revision, unread)
        try:
            changes = self._effect.of(found.readings)
            changes += await self._tried(found, changes)
        except MetaError as error:
            return refused(found.key, found.revision, f"its effect is unknown: {error}")
        except (Conflict, NotFound):
            return None
        except ApiError as error:
            return failed(found.key, error)
        left = self.unaccepted(found.key, changes)
        if not left:
            if changes:
                self._changing.add(found.key)
            return None
        self.tally.add(found.key, left)
        return refused(found.key, found.revision, self._changes_text(left))

    def seen_changes(self, found: ListedObject, version: str, after: Object) -> list[FieldChange]:
        """Return the changes that a write made at a version, without those that the user
        accepted.
        """
        before = found.readings.get(version)
        if before is None:
            return []
        try:
            expected = {
                (change.version, change.difference.path): change.cause
                for change in self._effect.of(found.readings)
            }
        except MetaError:
            expected = {}
        other = ChangeCause.ADMITTED
        if self.asks_server and version != self._live.write_version:
            other = ChangeCause.CONVERTED
        changes = [
            FieldChange(version, item, expected.get((version, item.path), other))
            for item in differences(before, after)
        ]
        return self.unaccepted(found.key, changes)

    def explained(self, changes: Sequence[FieldChange]) -> str:
        """Return the cause of the first of some changes."""
        first = changes[0]
        return explain(first.cause, first.version, self._live.storage)

    async def _tried(self, found: ListedObject, known: Sequence[FieldChange]) -> list[FieldChange]:
        """Return the changes that only dry runs show, besides the computed ones."""
        written, storage = self._live.write_version, self._live.storage
        computed = {(change.version, change.difference.path) for change in known}
        changes: list[FieldChange] = []
        for version in self._live.read_versions:
            before = found.readings.get(version)
            converts = self.asks_server and version != storage
            if before is None or not (converts or (self._admission and version == written)):
                continue
            cause = ChangeCause.ADMITTED if version == written else ChangeCause.CONVERTED
            after = await self._dry_run(found, version)
            changes += [
                FieldChange(version, difference, cause)
                for difference in differences(before, after)
                if (version, difference.path) not in computed
            ]
        return changes

    async def _dry_run(self, found: ListedObject, version: str) -> Object:
        path = self._live.path(version, found.key)
        body = {"metadata": {"resourceVersion": found.revision}}
        patch = partial(self._client.patch, path, body, fieldManager=USER_AGENT, dryRun="All")
        return await call_with_retries(patch, self._patience)

    def _changes_text(self, changes: Sequence[FieldChange]) -> str:
        shown = "; ".join(str(change) for change in changes[:3])
        more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
        return f"{shown}{more} ({self.explained(changes)})"
