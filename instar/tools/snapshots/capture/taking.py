"""Takes a snapshot part by part: CRDs, their objects, related configurations, usage.

The ``snapshot`` command and ``live.py`` call ``take``. A collection that cannot be read is reported
once and recorded as missing; everything else is captured. Only one page of objects is in memory at
a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from instar import __version__
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.base.times import time_text
from instar.kube.api.crd import Crd, read_crd
from instar.kube.api.crd_codec import CrdDecodeError
from instar.kube.crds.documents import read_definition
from instar.tools.migrator.progress import Progress
from instar.tools.snapshots.capture.journal import CaptureJournal, CaptureProgress, read_journal
from instar.tools.snapshots.capture.pseudonyms import Pseudonyms
from instar.tools.snapshots.capture.redacting import Redaction
from instar.tools.snapshots.capture.scope import (
    CRD_RESOURCE,
    CapturedResource,
    CaptureScope,
    Touching,
    built_in_resources,
    configurations,
    resource_of,
)
from instar.tools.snapshots.capture.source import CaptureBatch, Gap, Source
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.manifest import AUDIT, USAGE, Manifest, Row
from instar.tools.snapshots.snapshot_writer import GrowingPart, SnapshotWriter

_BATCH = 500
Clock = Callable[[], str]
"""Returns the current time as RFC 3339."""


def _now() -> str:
    return time_text(datetime.now(UTC))


async def take(
    source: Source,
    packing: SnapshotWriter,
    asked: CaptureScope,
    progress: Progress,
    *,
    resume: bool = False,
    key: bytes | None = None,
    audit: Iterable[Object] = (),
    lacking: Sequence[str] = (),
    clock: Clock = _now,
) -> Manifest:
    """Take a snapshot into ``packing``, which is new or resumed. ``key`` keys the pseudonyms;
    without one the snapshot generates a key and deletes it at the end. ``lacking`` is read last and
    lists what the source itself lacks. Raises ``SnapshotError``.
    """
    if resume:
        journal = read_journal(packing.folder)
        if (journal.origin, journal.asked) != (source.origin, asked.document()):
            raise SnapshotError(
                f"{packing.folder}: it was begun as another snapshot, of {journal.origin} or "
                "with other flags"
            )
    else:
        packing.start()
        journal = CaptureJournal(source.origin, clock(), asked.document())
        journal.write(packing.folder)
    pseudonyms = Pseudonyms(key or packing.key())
    redaction = Redaction(pseudonyms, asked.redacted, secrets=not asked.secret_data)
    taking = Capture(source, packing, asked, journal, redaction, progress, clock)
    try:
        return await taking.run(audit, lacking)
    except SnapshotError:
        if not taking.begun:
            packing.discard()  # nothing to resume
        raise


class Capture:
    """One capture. ``journal`` is new, or the one of an interrupted run."""

    def __init__(
        self,
        source: Source,
        packing: SnapshotWriter,
        asked: CaptureScope,
        journal: CaptureJournal,
        redaction: Redaction,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self._source, self._packing, self._asked = source, packing, asked
        self._journal, self._redaction = journal, redaction
        self._progress, self._clock = progress, clock
        self._targets: dict[tuple[str, str], str] = {}
        """(group, plural) → name of the CRDs that are taken."""

    async def run(self, audit: Iterable[Object] = (), lacking: Sequence[str] = ()) -> Manifest:
        """Capture everything and return the manifest of the finished file; ``audit`` are events.
        Raises ``SnapshotError`` if the CRDs cannot be read.
        """
        found = await self._crds()
        for resource in found:
            await self._collection(resource)
        await self._touching()
        for resource in built_in_resources(self._asked):
            await self._collection(resource)
        await self._usage()
        await self._audit(audit)
        for text in lacking:
            self._problem(text)
        manifest = Manifest(
            origin=self._source.origin,
            started=self._journal.started,
            finished=self._clock(),
            exact=self._source.exact,
            complete=not self._journal.problems,
            parts=self._journal.done,
            redacted=self._redaction.document(),
            problems=self._journal.problems,
            instar=__version__,
        )
        await asyncio.to_thread(self._packing.finish, manifest)
        return manifest

    @property
    def begun(self) -> bool:
        """Return whether something was captured, so that a resume is useful."""
        return bool(self._journal.done)

    # --- parts ----------------------------------------------------------------------------------

    async def _crds(self) -> list[CapturedResource]:
        """Read the CRDs, also in a resumed run: they are few, and the rest of the capture depends
        on them.
        """
        part, revision, found = self._packing.part(CRD_RESOURCE.part), "", list[CapturedResource]()
        seen, missing = set[str](), 0
        try:
            async for batch in self._source.batches(CRD_RESOURCE):
                if batch.anew:
                    part = self._packing.part(CRD_RESOURCE.part)
                wanted = [obj for obj in batch.objects if self._asked.wants(_name(obj))]
                await asyncio.to_thread(part.add, wanted)
                revision, missing = batch.revision, missing + batch.unreadable
                for obj in wanted:
                    seen.add(_name(obj))
                    found += self._resource(obj)
        except Gap as gap:
            raise SnapshotError(f"the CRDs cannot be read: {gap}") from None
        self._count_missing(CRD_RESOURCE, missing)
        for name in sorted(self._asked.crds - seen):
            raise SnapshotError(f"there is no CustomResourceDefinition {name}")
        self._note(part.row(revision, missing=missing))
        return list(dict.fromkeys(found))

    def _resource(self, obj: Object) -> list[CapturedResource]:
        name = _name(obj)
        try:
            crd: Crd = read_crd(read_definition(obj).raw)
        except (CrdDecodeError, KeyError, TypeError, ValueError) as error:
            self._problem(f"CRD {name} is not readable, so its objects are not taken: {error}")
            return []
        self._targets[crd.group, crd.names.plural] = name
        resource = resource_of(crd, stored=not self._source.needs_serving)
        if resource is None:
            self._problem(f"{name}: no version is served, so its objects cannot be read")
            return []
        return [resource]

    async def _collection(self, resource: CapturedResource) -> None:
        if self._journal.row(resource.part) is not None:
            return
        part, standing = self._begin(resource)
        revision, consistent, missing = standing.revision, standing.consistent, standing.missing
        self._progress.begin(resource.name, None)
        try:
            async for batch in self._source.batches(resource, standing.token):
                if batch.anew:
                    part, consistent, missing = self._packing.part(resource.part), True, 0
                await asyncio.to_thread(part.add, self._redacted(batch.objects, resource))
                revision, consistent = batch.revision, consistent and batch.consistent
                missing += batch.unreadable
                self._show_progress(resource, part, batch)
                standing = CaptureProgress(
                    resource.part, part.packed, dict(part.versions), batch.token, revision,
                    consistent, missing,
                )  # fmt: skip
                self._keep(replace(self._journal, standing=standing))
        except Gap as gap:
            if gap.absent:
                return
            missing += gap.missing
            self._problem(f"{resource.name}: {gap}")
        self._count_missing(resource, missing)
        if not consistent:
            self._problem(f"{resource.name}: the list is not of one moment; it took too long")
        self._note(part.row(revision, consistent=consistent, missing=missing))

    def _begin(self, resource: CapturedResource) -> tuple[GrowingPart, CaptureProgress]:
        standing = self._journal.standing
        if standing is not None and standing.part == resource.part and standing.token:
            part = self._packing.part_again(resource.part, standing.packed, standing.versions)
            return part, standing
        return self._packing.part(resource.part), CaptureProgress(
            resource.part, 0, {}, "", "", True, 0
        )

    async def _touching(self) -> None:
        """Capture the admission configurations that match captured resources. They are few."""
        every = {resource.kind: resource for resource in configurations()}
        if all(self._journal.row(resource.part) is not None for resource in every.values()):
            return
        touching, revisions = Touching(list(self._targets)), dict[str, str]()
        for resource in every.values():
            try:
                async for batch in self._source.batches(resource):
                    touching.add(batch.objects)
                    revisions[resource.part] = batch.revision
            except Gap as gap:
                if not gap.absent:
                    self._problem(f"{resource.name}: {gap}")
        kept = touching.kept()
        for kind, resource in every.items():
            part = self._packing.part(resource.part)
            mine = [obj for obj in kept if obj.get("kind") == kind]
            await asyncio.to_thread(part.add, self._redacted(mine, resource))
            self._note(part.row(revisions.get(resource.part, "")))

    async def _usage(self) -> None:
        document = await self._source.usage()
        if document is None or self._journal.row(USAGE) is not None:
            return
        uses = [
            use
            for use in document.get("uses") or ()
            if (use.get("group"), use.get("resource")) in self._targets
        ]
        self._note(self._packing.document(USAGE, {**document, "uses": uses}))

    async def _audit(self, given: Iterable[Object]) -> None:
        if self._journal.row(AUDIT) is not None:
            return
        part = self._packing.part(AUDIT)
        self._progress.begin("audit log", None)
        events = self._about_ours(given)
        try:
            while batch := await asyncio.to_thread(lambda: list(islice(events, _BATCH))):
                await asyncio.to_thread(part.add, batch)
                self._progress.advance(len(batch))
        except (OSError, EOFError) as error:
            self._problem(f"audit log: {error}")
        if part.count:
            self._note(replace(part.row(), versions={}))

    def _about_ours(self, events: Iterable[Object]) -> Iterator[Object]:
        for event in events:
            about = event.get("objectRef") or {}
            name = self._targets.get((str(about.get("apiGroup")), str(about.get("resource"))))
            if name is not None:
                yield self._redaction.event(event, name)

    # --- bookkeeping ----------------------------------------------------------------------------

    def _redacted(self, objects: list[Object], resource: CapturedResource) -> Iterable[Object]:
        return (self._redaction.redact(obj, resource.name) for obj in objects)

    def _show_progress(
        self, resource: CapturedResource, part: GrowingPart, batch: CaptureBatch
    ) -> None:
        if batch.remaining is not None and part.count == len(batch.objects):
            self._progress.begin(resource.name, part.count + batch.remaining)
        self._progress.advance(len(batch.objects))

    def _count_missing(self, resource: CapturedResource, missing: int) -> None:
        if missing:
            self._problem(f"{resource.name}: {counted(missing, 'object')} could not be read")

    def _problem(self, text: str) -> None:
        text = " ".join(text.split())
        if text not in self._journal.problems:
            self._progress.note(text)
            self._keep(replace(self._journal, problems=(*self._journal.problems, text)))

    def _note(self, row: Row) -> None:
        self._keep(self._journal.finished(row))

    def _keep(self, journal: CaptureJournal) -> None:
        self._journal = journal
        journal.write(self._packing.folder)


def _name(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")
