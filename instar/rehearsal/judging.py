"""After a step: every object read at every served version, written back unchanged, created anew.

What the world of before would have answered, too, is nobody's doing and is left out. A version's
judgement is kept as long as nothing it depends on has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import orjson

from instar.migrator.ownership import entries_of, lost, versions_named
from instar.plain import Object
from instar.rehearsal.converting import Conversion
from instar.rehearsal.model import MOST_EXAMPLES, Exchange, Harm
from instar.rehearsal.readings import diff, differences, key_of, losses, mark, summary
from instar.rehearsal.stage import Listed, Reading, Stage, answer
from instar.reviewer.report import Damage
from instar.server.life.embedded import Reply

_INVALID = 422
_ELSEWHERE = "rehearsal-of-a-creation"
"""A namespace where no object of the copy is."""
_LONG_NAME = 240
_DROPPED = ("uid", "resourceVersion", "managedFields", "creationTimestamp", "generation")
NO_CONVERTER = "conversion was not judged: the CRD has a webhook, and none was given"


@dataclass
class VersionJudgement:
    """Everything that was found out about one version after one step."""

    version: str
    judged: int = 0
    harms: list[Harm] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    before: set[str] = field(default_factory=set)
    """Objects that were unreadable or refused before the upgrade began."""
    list_failed: Exchange | None = None
    warnings: tuple[str, ...] = ()
    since: str = ""
    """Which step it was made after."""


class Reference:
    """The world of before a release: what it reads, and what it would have answered."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.marks: dict[str, dict[str, bytes]] = {}
        """By version and key; an object that cannot be read is missing."""
        self.warnings: dict[str, tuple[str, ...]] = {}
        self.home: dict[str, str] = {}
        """The version each object is stored in."""

    async def learn(self) -> None:
        for version in self.stage.crd.served():
            marks = self.marks.setdefault(version, {})
            async for listed in self.stage.pages(version):
                self.warnings[version] = listed.warnings
                for reading in listed.readings:
                    if reading.obj is not None:
                        marks[reading.key] = mark(reading.obj)

    def knows(self, version: str) -> bool:
        return version in self.marks

    def other_version(self, key: str) -> str:
        """Where an object can be read at all, its own version first."""
        home = self.home.get(key, "")
        served = [home, *self.marks] if home in self.marks else list(self.marks)
        return next((version for version in served if key in self.marks[version]), "")


_Attempt = Callable[[str, str, Object], Awaitable[Reply]]


class Judge:
    def __init__(self, stage: Stage, reference: Reference) -> None:
        self._stage = stage
        self._reference = reference
        self._known: dict[str, tuple[str, VersionJudgement]] = {}
        self.rewritten = 0
        """Counts migrations: readings of before say nothing about objects rewritten since."""

    async def look(self, step: str) -> dict[str, VersionJudgement]:
        found = {}
        for version in self._stage.crd.served():
            inputs = self._inputs(version)
            known = self._known.get(version)
            if known is not None and known[0] == inputs:
                found[version] = known[1]
                continue
            judgement = await _Look(self._stage, self._reference, version, step).run()
            self._known[version] = (inputs, judgement)
            found[version] = judgement
        bereft = await self._bereft()
        if bereft:
            first = next(iter(found))
            found[first] = replace(found[first], harms=[*found[first].harms, *bereft])
        return found

    def _inputs(self, version: str) -> str:
        """What readings and writes at a version depend on."""
        spec, crd = self._stage.document["spec"], self._stage.crd
        touching = {version, crd.storage_version(), *crd.stored_versions}
        schemas = {
            item["name"]: item.get("schema")
            for item in spec["versions"]
            if item["name"] in touching
        }
        deprecated = [
            item.get("deprecated") for item in spec["versions"] if item["name"] == version
        ]
        parts = [schemas, spec.get("conversion"), crd.storage_version(), deprecated, self.rewritten]
        return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS).decode()

    async def _bereft(self) -> list[Harm]:
        """Objects whose managedFields name a version that this release has taken away. An instar
        server drops those entries alone; kube-apiserver, which this is about, drops all."""
        crd = self._stage.crd
        known = {version.name for version in crd.versions}
        gone = {version.name for version in self._reference.stage.crd.versions} - known
        served = crd.served()
        if not gone or not served:
            return []
        harms = []
        async for listed in self._stage.pages(served[0]):
            for reading in listed.readings:
                named = versions_named(reading.obj, crd.group) if reading.obj is not None else set()
                for version in sorted(named & gone):
                    text = (
                        f"managedFields name {version}, which is gone: with the next write a "
                        "kube-apiserver drops every owner of every field"
                    )
                    harms.append(Harm(reading.key, served[0], Damage.OWNERSHIP_LOST, text))
        return harms


class _Look:
    """One version, once."""

    def __init__(self, stage: Stage, reference: Reference, version: str, step: str) -> None:
        self._stage, self._reference, self._version = stage, reference, version
        self._found = VersionJudgement(version, since=step)
        self._told: Counter[Damage] = Counter()
        self._sure = stage.conversion is not Conversion.ABSENT

    async def run(self) -> VersionJudgement:
        found = self._found
        async for listed in self._stage.pages(self._version):
            found.warnings, found.list_failed = listed.warnings, listed.failed
            await self._page(listed)
        return found

    async def _page(self, listed: Listed) -> None:
        writable = []
        for reading in listed.readings:
            self._found.judged += 1
            if reading.obj is None:
                await self._unreadable(reading)
                continue
            writable.append(reading.obj)
            now = mark(reading.obj)
            before = self._reference.marks.get(self._version)
            if before is not None:
                if before.get(reading.key) not in (None, now):
                    await self._reads_differently(reading.key, reading.obj)
            elif self._stage.conversion is Conversion.NONE:
                await self._at_a_new_version(reading.key, reading.obj, now)
        await self._stage.each(writable, self._write)

    async def _unreadable(self, reading: Reading) -> None:
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
            self._harm(reading.key, Damage.UNREADABLE, text, reading.problem)

    async def _reads_differently(self, key: str, now: Object) -> None:
        reading = await self._reference.stage.read(self._version, key)
        if reading.obj is None:
            return
        for damage, texts in differences(reading.obj, now).items():
            text = f"at {self._version}, {summary(texts)}"
            self._harm(key, damage, text, None, self._diff(damage, reading.obj, now))

    async def _at_a_new_version(self, key: str, obj: Object, now: bytes) -> None:
        """Strategy None renames nothing, so what is missing is lost."""
        other = self._reference.other_version(key)
        if not other or self._reference.marks[other][key] == now:
            return
        reading = await self._reference.stage.read(other, key)
        gone = losses(reading.obj, obj) if reading.obj is not None else []
        if gone and reading.obj is not None:
            text = f"at {self._version}, {summary(gone)}"
            self._harm(key, Damage.PRUNED, text, None, self._diff(Damage.PRUNED, reading.obj, obj))

    async def _write(self, obj: Object) -> None:
        key = key_of(obj)
        refused = await self._update(key, obj)
        if not refused:
            await self._create(key, obj)

    async def _update(self, key: str, obj: Object) -> bool:
        path = self._stage.path(self._version, key)
        reply = await self._stage.ask("PUT", path, obj, query={"dryRun": "All"})
        exchange = Exchange(f"PUT {path} (unchanged)", key, answer(reply))
        if reply.refused:
            await self._refused(key, reply, exchange)
            return True
        await self._compare(key, obj, reply.document, exchange)
        return False

    async def _compare(self, key: str, sent: Object, after: Object, exchange: Exchange) -> None:
        """A write that changes nothing must change nothing: not the content, not its owners."""
        changed = mark(after) != mark(sent)
        owners = entries_of(sent)
        missing = lost(owners, entries_of(after)) if owners != entries_of(after) else []
        if not changed and not missing:
            return
        sent_before, before = await self._before(key, self._try_update)
        if before is not None and sent_before is not None and not before.refused:
            changed = changed and mark(before.document) == mark(sent_before)
            known = lost(entries_of(sent_before), entries_of(before.document))
            missing = [] if known else missing
        for damage, texts in differences(sent, after).items() if changed else ():
            text = f"an unchanged write at {self._version} changes it: {summary(texts)}"
            self._harm(key, damage, text, exchange, self._diff(damage, sent, after))
        if missing:
            text = f"a write at {self._version} takes fields from their owners: {missing[0]}"
            self._harm(key, Damage.OWNERSHIP_LOST, text, exchange)

    async def _refused(self, key: str, reply: Reply, exchange: Exchange) -> None:
        if not self._sure and reply.status != _INVALID:
            self._found.unknown[NO_CONVERTER] += 1
            return
        _, before = await self._before(key, self._try_update)
        if before is not None and before.refused:
            self._found.before.add(key)
            return
        told = exchange._replace(before="" if before is None else answer(before))
        text = f"even an unchanged write at {self._version} is refused: {exchange.answer}"
        self._harm(key, Damage.INVALID, text, told)

    async def _create(self, key: str, obj: Object) -> None:
        path, body = anew(self._stage, self._version, key, obj)
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
        self._harm(key, Damage.FROZEN, text, exchange)

    async def _before(self, key: str, attempt: _Attempt) -> tuple[Object | None, Reply | None]:
        """What was sent to the world of before and what it answered; None where it cannot be
        asked."""
        reference = self._reference
        version = self._version if reference.knows(self._version) else reference.other_version(key)
        if not version:
            return None, None
        reading = await reference.stage.read(version, key)
        if reading.obj is None:
            return None, None
        return reading.obj, await attempt(key, version, reading.obj)

    async def _try_update(self, key: str, version: str, obj: Object) -> Reply:
        stage = self._reference.stage
        return await stage.ask("PUT", stage.path(version, key), obj, query={"dryRun": "All"})

    async def _try_create(self, key: str, version: str, obj: Object) -> Reply:
        path, body = anew(self._reference.stage, version, key, obj)
        return await self._reference.stage.ask("POST", path, body, query={"dryRun": "All"})

    def _diff(self, damage: Damage, before: Object, after: Object) -> tuple[str, ...]:
        """Only for objects that may be shown: a diff costs more than everything else."""
        if self._told[damage] >= MOST_EXAMPLES:
            return ()
        return diff(before, after)

    def _harm(
        self,
        key: str,
        damage: Damage,
        text: str,
        exchange: Exchange | None = None,
        shown: tuple[str, ...] = (),
    ) -> None:
        self._told[damage] += 1
        self._found.harms.append(Harm(key, self._version, damage, text, exchange, shown))


def anew(stage: Stage, version: str, key: str, obj: Object) -> tuple[str, Object]:
    """Where and as what an object like this would be created."""
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
