"""Puts objects back as the undo journal recorded them.

Called when a rewrite changed an object (``rewrite_pass.py``), by ``instar migrate --undo`` and by
the roll
back of ``instar upgrade``. An object is put back by an update at the storage version, where no
conversion happens, guarded by its resourceVersion; afterwards every served version is read again
and compared with the journal. An object that another client has written since is left alone.
Everything may be repeated, and a run that was killed goes on where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum
from functools import partial

from instar.base.errors import ApiError, Conflict, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.tools.migrator.content_diff import differences
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.live_crd import USER_AGENT, LiveCrd
from instar.tools.migrator.object_pages import Lister
from instar.tools.migrator.ownership import entries_of, is_same_ownership
from instar.tools.migrator.progress import Progress
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.tools.migrator.undo.journal import JournalledObject, UndoJournal
from instar.wire.client.client import Client

_ROUNDS = 5
_NAMED = 1000
_SHOWN = 20
_PATHS = 3


class UndoState(StrEnum):
    PUT_BACK = "put back"
    UNCHANGED = "as it was"
    """The object is as the journal has it."""
    CHANGED_SINCE = "changed since"
    """Another client wrote it after the migration; it is left alone."""
    GONE = "gone"
    NOT_RESTORED = "not restored"
    """It was written, and some version still shows something else."""
    FAILED = "failed"


_WELL = (UndoState.PUT_BACK, UndoState.UNCHANGED)


@dataclass(frozen=True, slots=True)
class UndoneObject:
    key: str
    state: UndoState
    text: str = ""

    def __str__(self) -> str:
        return f"{self.key}: {self.state}{f': {self.text}' if self.text else ''}"


@dataclass
class UndoReport:
    """How putting back went, object by object."""

    counts: dict[UndoState, int] = field(default_factory=dict)
    objects: list[UndoneObject] = field(default_factory=list)
    """Those that were touched or could not be; at most a thousand."""

    @property
    def ok(self) -> bool:
        wrong = (UndoState.NOT_RESTORED, UndoState.FAILED, UndoState.CHANGED_SINCE)
        return not any(self.counts.get(state) for state in wrong)

    def add(self, done: UndoneObject) -> None:
        self.counts[done.state] = self.counts.get(done.state, 0) + 1
        if done.state is not UndoState.UNCHANGED and len(self.objects) < _NAMED:
            self.objects.append(done)

    def lines(self, shown: int = _SHOWN) -> list[str]:
        parts = [
            f"{self.counts[state]} {state.value}" for state in UndoState if self.counts.get(state)
        ]
        total = sum(self.counts.values())
        lines = [f"undo of {counted(total, 'object')}: {', '.join(parts) or 'none'}"]
        ordered = sorted(self.objects, key=lambda item: item.state in _WELL)
        lines += [f"  {item}" for item in ordered[:shown]]
        if len(ordered) > shown:
            lines.append(f"  and {len(ordered) - shown} more (--report names a thousand)")
        return lines

    def to_json(self) -> Object:
        return {
            "ok": self.ok,
            "counts": {state.value: number for state, number in self.counts.items()},
            "objects": [
                {"key": item.key, "state": item.state.value, "text": item.text}
                for item in self.objects
            ],
        }


class ObjectRestorer:
    """Puts the objects of one CRD back."""

    def __init__(
        self, client: Client, live: LiveCrd, patience: RetryPolicy, journal: UndoJournal
    ) -> None:
        self._client = client
        self._live = live
        self._patience = patience
        self._journal = journal
        self._lister = Lister(client, live, patience, verify=True)

    async def put_all_back(self, progress: Progress, *, concurrency: int = 8) -> UndoReport:
        """Never raises an ``ApiError``: what happens to an object is in the report."""
        keys = self._journal.keys()
        progress.begin("putting back", len(keys))
        report = UndoReport()
        queue = iter(keys)

        async def work() -> None:
            for key in queue:
                report.add(await self.put_back(key))
                progress.advance(1)

        await asyncio.gather(*(work() for _ in range(min(concurrency, len(keys)))))
        report.objects.sort(key=lambda item: item.key)
        return report

    async def put_these_back(self, keys: Iterable[str]) -> UndoReport:
        report = UndoReport()
        for key in keys:
            report.add(await self.put_back(key))
        return report

    async def put_back(self, key: str) -> UndoneObject:
        entry = self._journal.entry(key)
        if entry is None:
            return UndoneObject(key, UndoState.FAILED, "the journal does not have it")
        if entry.undone:
            return UndoneObject(key, UndoState.UNCHANGED)
        try:
            done = await self._put_back(entry)
        except NotFound:
            done = UndoneObject(key, UndoState.GONE)
        except ApiError as error:
            done = UndoneObject(key, UndoState.FAILED, error.message)
        if done.state in _WELL:
            self._journal.note_undone(key)
        return done

    async def _put_back(self, entry: JournalledObject) -> UndoneObject:
        now = await self._lister.again(entry.key)
        wrong = _wrong(entry, now)
        if not wrong or now.revision == entry.revision:
            return UndoneObject(entry.key, UndoState.UNCHANGED)
        if not _is_left_by_us(entry, now):
            text = "another client has written it since; it was left alone"
            return UndoneObject(entry.key, UndoState.CHANGED_SINCE, text)
        first = ", ".join(wrong[:_PATHS])
        for _ in range(_ROUNDS):
            try:
                await self._write(entry, now)
            except Conflict:
                again = await self._lister.again(entry.key)
                if not again.same_content(now.digests):
                    text = "another client writes it at the same time; it was left alone"
                    return UndoneObject(entry.key, UndoState.CHANGED_SINCE, text)
                now = again
                continue
            now = await self._lister.again(entry.key)
            wrong = _wrong(entry, now)
            if not wrong:
                return UndoneObject(entry.key, UndoState.PUT_BACK, first)
        return UndoneObject(entry.key, UndoState.NOT_RESTORED, self._why(wrong))

    async def _write(self, entry: JournalledObject, now: ListedObject) -> None:
        """Write what differs: the object, its status, its field owners."""
        live = self._live
        version = next((name for name in live.read_versions if name in entry.readings), "")
        if not version:
            return
        wanted, revision = entry.readings[version], now.revision
        shown = now.readings.get(version)
        if shown is None or any(_is_outside_status(d.path) for d in differences(wanted, shown)):
            after = await self._put(version, entry.key, wanted, revision)
            revision, shown = after["metadata"]["resourceVersion"], after
        model = live.crd.version(version)
        if model is not None and model.has_status and list(differences(wanted, shown)):
            after = await self._put(version, entry.key, wanted, revision, "status")
            revision, shown = after["metadata"]["resourceVersion"], after
        if not is_same_ownership(entries_of(wanted), entries_of(shown)):
            owners = _owners(entries_of(wanted), entries_of(shown))
            body = {"metadata": {"resourceVersion": revision, "managedFields": owners}}
            patch = partial(
                self._client.patch, live.path(version, entry.key), body, fieldManager=USER_AGENT
            )
            await call_with_retries(patch, self._patience)

    async def _put(
        self, version: str, key: str, wanted: Object, revision: str, subresource: str = ""
    ) -> Object:
        body = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": revision}}
        path = self._live.path(version, key, subresource)
        put = partial(self._client.put, path, body, fieldManager=USER_AGENT)
        return await call_with_retries(put, self._patience)

    def _why(self, wrong: list[str]) -> str:
        storage = self._live.storage
        text = f"{', '.join(wrong[:_PATHS])} cannot be put back while {storage} is stored"
        others = [name for name in self._live.read_versions if name != storage]
        if not others:
            return text
        crd = self._live.name
        return (
            f"{text}; make the version that shows it the storage version (instar versions {crd} "
            f"storage {others[0]}), undo again, then make {storage} the storage version again"
        )


def _wrong(entry: JournalledObject, now: ListedObject) -> list[str]:
    """Return what differs from the journal, at every version that both were read at."""
    found = []
    for version, wanted in entry.readings.items():
        shown = now.readings.get(version)
        if shown is None:
            continue
        found += [f"{item.path} at {version}" for item in differences(wanted, shown)]
    shared = next((name for name in entry.readings if name in now.readings), None)
    if not found and shared is not None:
        wanted = entry.readings[shared]
        if not is_same_ownership(entries_of(wanted), now.entries):
            found.append("metadata.managedFields")
    return found


def _is_left_by_us(entry: JournalledObject, now: ListedObject) -> bool:
    """Return whether the present state is the one that the migration's write left.

    Where a kill hid the result of the write, its trace is a version that shows what it showed.
    """
    if entry.uid != now.uid:
        return False
    if entry.after and entry.after == now.revision:
        return True
    if entry.after:
        # An undo that was killed put the content back, and perhaps not yet the owners.
        return all(now.has_content(name, obj) for name, obj in _shared(entry, now))
    return any(now.has_content(name, obj) for name, obj in _shared(entry, now))


def _shared(entry: JournalledObject, now: ListedObject) -> list[tuple[str, Object]]:
    return [(name, obj) for name, obj in entry.readings.items() if name in now.digests]


def _is_outside_status(path: str) -> bool:
    return path != "status" and not path.startswith(("status.", "status["))


def _owners(wanted: list[Object], shown: list[Object]) -> list[Object]:
    """Return the entries of the journal, and those of managers that came since."""
    known = {entry.get("manager") for entry in wanted} | {USER_AGENT}
    return [*wanted, *(entry for entry in shown if entry.get("manager") not in known)]
