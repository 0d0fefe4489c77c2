"""Probes one version on the sandbox: reads every object, writes it back unchanged, creates it
again.

``version_checks.py`` calls it after each step. A failure that also happens in the state before the
release is not reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from instar.base.json_values import Object
from instar.server.lifecycle.embedded import EmbeddedReply
from instar.tools.migrator.ownership import entries_of, lost
from instar.tools.rehearsal.converting import ConversionMode
from instar.tools.rehearsal.model import MOST_EXAMPLES, DamageFact, Exchange
from instar.tools.rehearsal.object_diff import (
    content_digest,
    diff,
    differences,
    key_of,
    losses,
    summary,
)
from instar.tools.rehearsal.sandbox import Listed, Sandbox, SandboxReading, answer
from instar.tools.rehearsal.version_findings import (
    NO_CONVERTER,
    ReferenceReadings,
    VersionFindings,
)
from instar.tools.reviewer.report import Damage

_INVALID = 422
_ELSEWHERE = "rehearsal-of-a-creation"
"""A namespace without objects of the copy."""
_LONG_NAME = 240
_DROPPED = ("uid", "resourceVersion", "managedFields", "creationTimestamp", "generation")
_Attempt = Callable[[str, str, Object], Awaitable[EmbeddedReply]]


class VersionProbe:
    """One probe of one version."""

    def __init__(
        self,
        stage: Sandbox,
        reference: ReferenceReadings,
        version: str,
        step: str,
        holds: VersionFindings | None,
        *,
        creates: bool,
    ) -> None:
        """``holds``: earlier results of writes, valid for objects that read as before. ``creates``:
        whether creation of such objects has to be tested again.
        """
        self._stage, self._reference, self._version = stage, reference, version
        self._holds, self._creates = holds, creates
        self._found = VersionFindings(version, since=step)
        self._told: Counter[Damage] = Counter()
        self._again: set[str] = set()
        """Keys of objects that were written again."""
        self._sure = stage.conversion is not ConversionMode.ABSENT

    async def run(self) -> VersionFindings:
        found = self._found
        async for listed in self._stage.pages(self._version):
            found.warnings, found.list_failed = listed.warnings, listed.failed
            await self._page(listed)
        if self._holds is not None:
            found.writes += [harm for harm in self._holds.writes if harm.key not in self._again]
            found.before |= self._holds.before - self._again
        return found

    async def _page(self, listed: Listed) -> None:
        writable = []
        for reading in listed.readings:
            self._found.judged += 1
            if reading.obj is None:
                await self._unreadable(reading)
                continue
            now = content_digest(reading.obj)
            before = self._reference.marks.get(self._version)
            if self._holds is None or before is None or before.get(reading.key) != now:
                writable.append(reading.obj)
                self._again.add(reading.key)
            if before is not None:
                if before.get(reading.key) not in (None, now):
                    await self._reads_differently(reading.key, reading.obj)
            elif self._stage.conversion is ConversionMode.NONE:
                await self._at_a_new_version(reading.key, reading.obj, now)
        await self._stage.each(writable, self._write)

    async def _unreadable(self, reading: SandboxReading) -> None:
        other = self._reference.other_version(reading.key)
        if not self._sure:
            self._found.unknown[NO_CONVERTER] += 1
        elif not other or (
            self._reference.knows(self._version)
            and reading.key not in self._reference.marks[self._version]
        ):
            self._found.before.add(reading.key)
        else:
            assert reading.problem is not None
            text = f"cannot be read at {self._version}: {reading.problem.answer}"
            self._reads(reading.key, Damage.UNREADABLE, text, reading.problem)

    async def _reads_differently(self, key: str, now: Object) -> None:
        reading = await self._reference.stage.read(self._version, key)
        if reading.obj is None:
            return
        for damage, texts in differences(reading.obj, now).items():
            text = f"at {self._version}, {summary(texts)}"
            self._reads(key, damage, text, None, self._diff(damage, reading.obj, now))

    async def _at_a_new_version(self, key: str, obj: Object, now: bytes) -> None:
        """Return the losses at a new version; strategy None renames nothing, so a missing value is
        lost.
        """
        other = self._reference.other_version(key)
        if not other or self._reference.marks[other][key] == now:
            return
        reading = await self._reference.stage.read(other, key)
        gone = losses(reading.obj, obj) if reading.obj is not None else []
        if gone and reading.obj is not None:
            text = f"at {self._version}, {summary(gone)}"
            self._reads(key, Damage.PRUNED, text, None, self._diff(Damage.PRUNED, reading.obj, obj))

    async def _write(self, obj: Object) -> None:
        key = key_of(obj)
        refused = await self._update(key, obj)
        if not refused and self._creates:
            await self._create(key, obj)

    async def _update(self, key: str, obj: Object) -> bool:
        path = self._stage.path(self._version, key)
        reply = await self._stage.ask("PUT", path, obj, query={"dryRun": "All"})
        if reply.refused:
            exchange = Exchange(f"PUT {path} (unchanged)", key, answer(reply))
            await self._refused(key, reply, exchange)
            return True
        await self._compare(key, obj, reply.document)
        return False

    async def _compare(self, key: str, sent: Object, after: Object) -> None:
        """Check that a no-op write changed neither the content nor the owners of fields."""
        changed = content_digest(after) != content_digest(sent)
        owners = entries_of(sent)
        missing = lost(owners, entries_of(after)) if owners != entries_of(after) else []
        if not changed and not missing:
            return
        exchange = Exchange(f"PUT {self._stage.path(self._version, key)} (unchanged)", key, "200")
        sent_before, before = await self._before(key, self._try_update)
        if before is not None and sent_before is not None and not before.refused:
            changed = changed and content_digest(before.document) == content_digest(sent_before)
            known = lost(entries_of(sent_before), entries_of(before.document))
            missing = [] if known else missing
        for damage, texts in differences(sent, after).items() if changed else ():
            text = f"changed by an unchanged write at {self._version}: {summary(texts)}"
            self._writes(key, damage, text, exchange, self._diff(damage, sent, after))
        if missing:
            text = f"a write at {self._version} takes fields from their owners: {missing[0]}"
            self._writes(key, Damage.OWNERSHIP_LOST, text, exchange)

    async def _refused(self, key: str, reply: EmbeddedReply, exchange: Exchange) -> None:
        if not self._sure and reply.status != _INVALID:
            self._found.unknown[NO_CONVERTER] += 1
            return
        _, before = await self._before(key, self._try_update)
        if before is not None and before.refused:
            self._found.before.add(key)
            return
        told = exchange._replace(before="" if before is None else answer(before))
        text = f"even an unchanged write at {self._version} is refused: {exchange.answer}"
        self._writes(key, Damage.INVALID, text, told)

    async def _create(self, key: str, obj: Object) -> None:
        path, body = recreation_of(self._stage, self._version, key, obj)
        reply = await self._stage.ask("POST", path, body, query={"dryRun": "All"})
        if not reply.refused:
            return
        if not self._sure and reply.status != _INVALID:
            self._found.unknown[NO_CONVERTER] += 1
            return
        _, before = await self._before(key, self._try_create)
        if before is not None and before.refused:
            return
        exchange = Exchange(
            f"POST {path} (the same object)",
            key,
            answer(reply),
            "" if before is None else answer(before),
        )
        text = f"kept, but created anew at {self._version} it would be refused: {exchange.answer}"
        self._writes(key, Damage.FROZEN, text, exchange)

    async def _before(
        self, key: str, attempt: _Attempt
    ) -> tuple[Object | None, EmbeddedReply | None]:
        """Return the request to the state before the release and its response; None if it
        cannot be sent.
        """
        reference = self._reference
        version = self._version if reference.knows(self._version) else reference.other_version(key)
        if not version:
            return None, None
        reading = await reference.stage.read(version, key)
        if reading.obj is None:
            return None, None
        return reading.obj, await attempt(key, version, reading.obj)

    async def _try_update(self, key: str, version: str, obj: Object) -> EmbeddedReply:
        stage = self._reference.stage
        return await stage.ask("PUT", stage.path(version, key), obj, query={"dryRun": "All"})

    async def _try_create(self, key: str, version: str, obj: Object) -> EmbeddedReply:
        path, body = recreation_of(self._reference.stage, version, key, obj)
        return await self._reference.stage.ask("POST", path, body, query={"dryRun": "All"})

    def _diff(self, damage: Damage, before: Object, after: Object) -> tuple[str, ...]:
        """Add a diff, only for objects that the report will show, because diffs are expensive."""
        if self._told[damage] >= MOST_EXAMPLES:
            return ()
        return diff(before, after)

    def _reads(
        self,
        key: str,
        damage: Damage,
        text: str,
        exchange: Exchange | None = None,
        shown: tuple[str, ...] = (),
    ) -> None:
        self._told[damage] += 1
        self._found.readings.append(DamageFact(key, self._version, damage, text, exchange, shown))

    def _writes(
        self,
        key: str,
        damage: Damage,
        text: str,
        exchange: Exchange,
        shown: tuple[str, ...] = (),
    ) -> None:
        self._told[damage] += 1
        self._found.writes.append(DamageFact(key, self._version, damage, text, exchange, shown))


def recreation_of(stage: Sandbox, version: str, key: str, obj: Object) -> tuple[str, Object]:
    """Return the path and body to create an object like this one."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _DROPPED}
    if stage.crd.namespaced:
        metadata["namespace"] = _ELSEWHERE
        path = stage.path(version, f"{_ELSEWHERE}/x").rpartition("/")[0]
    else:
        metadata["name"] = f"{metadata['name'][:_LONG_NAME]}-rehearsed"
        path = stage.path(version)
    metadata.pop("deletionTimestamp", None)
    metadata.pop("deletionGracePeriodSeconds", None)
    return path, {**obj, "metadata": metadata}
