"""Restores objects to the state that the undo journal recorded.

Called by ``rewrite_pass.py`` when a rewrite changed an object, by ``instar migrate --undo`` and by
the rollback of ``instar upgrade``. An object is restored by an update at the storage version, where
no conversion happens, with its resourceVersion as precondition; afterwards every served version is
read again and compared with the journal. Where another version still shows something else than the
journal, the object is updated at that version. An object that another client has written since is
left alone. Every step can be repeated, and a run that was killed continues where it stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from enum import StrEnum
from functools import partial

from instar.base.errors import ApiError, Conflict, NotFound
from instar.base.escaping import shell_word
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import ABSENT, Object
from instar.base.plurals import counted
from instar.tools.migrator.content_diff import differences
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.live_crd import USER_AGENT, LiveCrd
from instar.tools.migrator.object_pages import Lister
from instar.tools.migrator.ownership import entries_of, is_same_ownership, lost, relabelled
from instar.tools.migrator.progress import Progress
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.tools.migrator.undo.journal import JournalledObject, UndoJournal, UndoJournalError
from instar.wire.client.client import Client

_RACES = 5
"""So often another client may be faster before an object is left to it."""
_NAMED = 1000
_SHOWN = 20
_PATHS = 3


class UndoState(StrEnum):
    """What an undo did with one object."""

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
    """One object of an undo, with the reason if it was not put back."""

    key: str
    state: UndoState
    text: str = ""

    def __str__(self) -> str:
        return f"{self.key}: {self.state}{f': {self.text}' if self.text else ''}"


@dataclass
class UndoReport:
    """Result of an undo, object by object."""

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


class _Overtaken(Exception):
    """Another client changes the object faster than it can be restored."""


class ObjectRestorer:
    """Restores the objects of one CRD."""

    def __init__(
        self,
        client: Client,
        live: LiveCrd,
        patience: RetryPolicy,
        journal: UndoJournal,
        *,
        served_only: bool = False,
    ) -> None:
        """``served_only``: ignore versions that the CRD does not serve now, because they came with
        a release that was rolled back.
        """
        self._client = client
        self._live = live
        self._patience = patience
        self._journal = journal
        self._lister = Lister(client, live, patience, verify=True)
        self._served_only = served_only

    async def put_all_back(self, progress: Progress, *, concurrency: int = 8) -> UndoReport:
        """Restore all objects. Never raises an ``ApiError``: errors are in the report, by
        object.
        """
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
        if self._served_only:
            served = self._live.read_versions
            kept = {name: obj for name, obj in entry.readings.items() if name in served}
            entry = entry._replace(readings=kept)
        try:
            done = await self._put_back(entry)
        except NotFound:
            done = UndoneObject(key, UndoState.GONE)
        except ApiError as error:
            done = UndoneObject(key, UndoState.FAILED, error.message)
        if done.state in _WELL:
            # Without the note the next undo compares the object again, and finds it as it was.
            with suppress(UndoJournalError):
                self._journal.note_undone(key)
        return done

    async def _put_back(self, entry: JournalledObject) -> UndoneObject:
        now = await self._lister.read_one(entry.key)
        wrong = _wrong(entry, now)
        if not wrong or now.revision == entry.revision:
            return UndoneObject(entry.key, UndoState.UNCHANGED)
        if entry.undone:
            text = "it was put back before, and another client has written it since; left alone"
            return UndoneObject(entry.key, UndoState.CHANGED_SINCE, text)
        if not _is_left_by_us(entry, now):
            text = "another client has written it since; it was left alone"
            return UndoneObject(entry.key, UndoState.CHANGED_SINCE, text)
        first = ", ".join(wrong[:_PATHS])
        attempts: dict[str, ListedObject] = {}
        for version in self._worth_writing(entry):
            if attempts and not any(item.endswith(f" at {version}") for item in wrong):
                continue
            try:
                now = await self._written(entry, now, version)
            except _Overtaken:
                text = "another client writes it at the same time; it was left alone"
                return UndoneObject(entry.key, UndoState.CHANGED_SINCE, text)
            attempts[version], wrong = now, _wrong(entry, now)
            if not wrong:
                return UndoneObject(entry.key, UndoState.PUT_BACK, first)
        best = min(attempts, key=lambda name: _losses(entry, attempts[name]), default="")
        if best and not now.same_content(attempts[best].digests):
            now = await self._written(entry, now, best)
            wrong = _wrong(entry, now)
        return UndoneObject(entry.key, UndoState.NOT_RESTORED, self._failure_text(entry, wrong))

    def _worth_writing(self, entry: JournalledObject) -> list[str]:
        """Return the versions at which an update may restore something, the best one first. Without
        a webhook the storage version alone decides what is stored.
        """
        known = [name for name in self._live.read_versions if name in entry.readings]
        return known[:1] if self._live.crd.conversion.strategy == "None" else known

    async def _written(
        self, entry: JournalledObject, now: ListedObject, version: str
    ) -> ListedObject:
        """Write the object at a version and read it again. Raises ``_Overtaken``."""
        for _ in range(_RACES):
            try:
                await self._write(entry, now, version)
            except Conflict:
                again = await self._lister.read_one(entry.key)
                if not again.same_content(now.digests):
                    raise _Overtaken from None
                now = again
                continue
            now = await self._lister.read_one(entry.key)
            # The next undo sees by this that only this tool has written the object since.
            with suppress(UndoJournalError):
                self._journal.note_written({entry.key: now.revision})
            return now
        raise _Overtaken

    async def _write(self, entry: JournalledObject, now: ListedObject, version: str) -> None:
        """Write what differs at a version: the object, its status, its field owners."""
        live = self._live
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
            await self._write_owners(entry, version, shown, revision)

    async def _write_owners(
        self, entry: JournalledObject, version: str, shown: Object, revision: str
    ) -> None:
        """Write the field owners. A kube-apiserver forgets all of them when it cannot see the
        object at the version of one: then all are written as owners at the present version.
        """
        wanted = entry.readings[version]
        owners = _owners(entries_of(wanted), entries_of(shown))
        after = await self._patch_owners(version, entry.key, owners, revision)
        if not lost(entries_of(wanted), entries_of(after)):
            return
        others = [name for name in self._live.read_versions if name != version]
        owned = {**wanted, "metadata": {**wanted["metadata"], "managedFields": owners}}
        carried = relabelled(owned, self._live.crd.group, others, entry.readings)
        if carried is not None:
            revision = after["metadata"]["resourceVersion"]
            await self._patch_owners(version, entry.key, carried.entries, revision)

    async def _patch_owners(
        self, version: str, key: str, owners: list[Object], revision: str
    ) -> Object:
        body = {"metadata": {"resourceVersion": revision, "managedFields": owners}}
        path = self._live.path(version, key)
        patch = partial(self._client.patch, path, body, fieldManager=USER_AGENT)
        return await call_with_retries(patch, self._patience)

    async def _put(
        self, version: str, key: str, wanted: Object, revision: str, subresource: str = ""
    ) -> Object:
        body = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": revision}}
        path = self._live.path(version, key, subresource)
        put = partial(self._client.put, path, body, fieldManager=USER_AGENT)
        return await call_with_retries(put, self._patience)

    def _failure_text(self, entry: JournalledObject, wrong: list[str]) -> str:
        storage = self._live.storage
        unread = [name for name in entry.readings if name not in self._live.read_versions]
        if unread:
            return (
                f"what {', '.join(unread)} showed cannot be compared, because it is not served "
                "now; serve it, then undo again"
            )
        text = f"{', '.join(wrong[:_PATHS])} cannot be put back while {storage} is stored"
        others = [name for name in self._live.read_versions if name != storage]
        if not others:
            return text
        crd = self._live.name
        return (
            f"{text}; make the version that shows it the storage version (instar versions "
            f"{shell_word(crd)} "
            f"storage {shell_word(others[0])}), undo again, then make {storage} the "
            "storage version again"
        )


def _wrong(entry: JournalledObject, now: ListedObject) -> list[str]:
    """Return the differences to the journal. A version that cannot be read now counts as
    different.
    """
    found = []
    for version, wanted in entry.readings.items():
        shown = now.readings.get(version)
        if shown is None:
            found.append(f"everything at {version}")
            continue
        found += [f"{item.path} at {version}" for item in differences(wanted, shown)]
    shared = next((name for name in entry.readings if name in now.readings), None)
    if not found and shared is not None:
        wanted = entry.readings[shared]
        if not is_same_ownership(entries_of(wanted), now.entries):
            found.append("metadata.managedFields")
    return found


def _losses(entry: JournalledObject, now: ListedObject) -> int:
    """Return how many fields of the journal are missing now."""
    shown = ((wanted, now.readings.get(name)) for name, wanted in entry.readings.items())
    return sum(
        difference.before is not ABSENT
        for wanted, seen in shown
        if seen is not None
        for difference in differences(wanted, seen)
    )


def _is_left_by_us(entry: JournalledObject, now: ListedObject) -> bool:
    """Return whether the current state is that of the migration's write.

    Where a kill hid the result of the write, its trace is a version that shows what it showed,
    without an owner that came since.
    """
    if entry.uid != now.uid:
        return False
    if entry.after and entry.after == now.revision:
        return True
    if _has_new_owners(entry, now):
        return False
    if entry.after:
        # An undo that was killed put the content back, and perhaps not yet the owners.
        return all(now.has_content(name, obj) for name, obj in _shared(entry, now))
    return any(now.has_content(name, obj) for name, obj in _shared(entry, now))


def _has_new_owners(entry: JournalledObject, now: ListedObject) -> bool:
    """Return whether a client other than this tool wrote fields after the journal's reading: each
    of its writes leaves an entry with a new time."""
    known = {_write_of(item) for reading in entry.readings.values() for item in entries_of(reading)}
    others = (item for item in now.entries if item.get("manager") != USER_AGENT)
    return any(_write_of(item) not in known for item in others)


def _write_of(item: Object) -> tuple[object, ...]:
    return tuple(item.get(name) for name in ("manager", "operation", "subresource", "time"))


def _shared(entry: JournalledObject, now: ListedObject) -> list[tuple[str, Object]]:
    return [(name, obj) for name, obj in entry.readings.items() if name in now.digests]


def _is_outside_status(path: str) -> bool:
    return path != "status" and not path.startswith(("status.", "status["))


def _owners(wanted: list[Object], shown: list[Object]) -> list[Object]:
    """Return the entries of the journal, and those that other managers added since."""
    known = {entry.get("manager") for entry in wanted} | {USER_AGENT}
    return [*wanted, *(entry for entry in shown if entry.get("manager") not in known)]
